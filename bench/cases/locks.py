"""Locks and transactions through the library, the command and the bindings, on one server."""

import contextlib
import functools
import os
import shutil
import subprocess
import sys

from figures import duration, faster, figure, slower
from world import BUILD, HOLDFAST, ROOT, Samples, install_schema, output, servers


class Bench:
    """One server with two databases: with the schema, and without."""

    def __init__(self, world, server):
        self.world = world
        self.server = server
        self.plain = server.create_database()
        self.recorded = install_schema(server.create_database())
        self.psql = servers.postgres15_home() / "bin/psql"

    def url(self, records, **where):
        return (self.recorded if records == "records" else self.plain).url(**where)

    def program(self, name, *arguments):
        return self.world.program(name, *arguments)

    def uncontended(self):
        # Events are written once a second: a round with records lasts about as long.
        for link, where in (("socket", {}), ("TCP", {"host": "127.0.0.1"})):
            for records, least, rounds, pairs in (("plain", 0.95, 40, 2000), ("records", 0.9, 15, 10000)):
                pairs = self.world.size(pairs, 100)
                samples = self.program("uncontended", self.url(records, **where), records, rounds, pairs)
                yield faster(f"{link}, {records}", *samples.rates(pairs), least)

    def lease(self):
        """A lease is on disk before it is granted, a session lock never is: so with the disk, and without."""
        pairs = self.world.size(1000, 50)
        for disk, least in (("on", None), ("off", 0.5)):
            self.server.sql(f"alter system set fsync = {disk}")
            self.server.sql("select pg_reload_conf()")
            samples = self.program("lease", self.url("records"), "pair", 15, pairs)
            yield faster(f"pair, against a session lock, fsync {disk}", *samples.rates(pairs), least)
        samples = self.program("lease", self.url("records"), "renew", self.world.size(200, 20), 1000)
        yield slower("renewal of 1 000, against one, fsync off", samples.library, samples.control, 1.5)
        self.server.sql("alter system reset fsync")
        self.server.sql("select pg_reload_conf()")

    def handoff(self):
        for records in ("plain", "records"):
            samples = self.program("handoff", self.url(records), records, self.world.size(300, 20), 1, 0)
            yield slower(f"short wait, {records}, p50", samples.library, samples.control, 1.2)
        for records in ("plain", "records"):
            samples = self.program("handoff", self.url(records), records, self.world.size(5, 2), 8, 3200)
            yield figure(f"after 3.2 s, {records}, p50", samples.library, "s", 5e-3)
            samples = self.program("handoff", self.url(records), records, self.world.size(100, 10), 1, "ask")
            yield slower(f"to who asked, {records}, p50", samples.library, samples.control, 1.5)

    def set(self):
        for records, most in (("plain", 1.5), ("records", None)):
            samples = self.program("set", self.url(records), records, self.world.size(100, 10), 1000)
            yield slower(f"1000 labels, {records}", samples.library, samples.control, most)

    def threads(self):
        count, each = self.world.size(1000, 100), 10
        for records in ("plain", "records"):
            samples = self.program("threads", self.url(records), records, self.world.repetitions, count, each)
            yield figure(f"{count} on one label, {records}", [samples.extra["connections"]], "connections", 4)
            yield faster(f"throughput, {records}", *samples.rates(count * each), 0.9 if records == "records" else None)

    def loss(self):
        for records in ("plain", "records"):
            samples = self.program("loss", self.url(records), records, self.world.size(60, 6))
            yield figure(f"terminated → on_lost, {records}, p50", samples.library, "s", 0.1)
            yield figure(f"the same, {records}, max", [max(samples.all[0])], "s", 0.1)

    def process(self):
        rounds = self.world.size(100, 10)
        folder = servers.private_folder()
        try:
            run = [HOLDFAST, "run", "-n", "--url"]
            samples = self.program("process", rounds, *run, f"local:{folder}/store", "x", "--", "true", "--",
                                   "flock", "-n", folder / "f", "true")
            yield slower("local / flock", samples.library, samples.control, 2)
            for records, most in (("plain", 1.1), ("records", 1.2)):
                url = self.url(records)
                samples = self.program("process", rounds, *run, url, "x", "--", "true", "--",
                                       self.psql, "-Xc", "select 1", url)
                yield slower(f"PostgreSQL, {records} / psql", samples.library, samples.control, most)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # --- bindings ---------------------------------------------------------------------------------

    def languages(self):
        """A pair by each binding beside the same by hand in that language, and beside C."""
        url, rounds = self.plain.url(host="127.0.0.1") + "?sslmode=disable", 15
        pairs = self.world.size(1000, 50)
        in_c, _ = self.program("uncontended", url, "plain", rounds, pairs).rates(pairs)
        for name, command, hand in languages():
            ours, by_hand = Samples(self.world.repetitions, *command, url, rounds, pairs, hand).rates(pairs)
            yield faster(f"{name} / {hand}", ours, by_hand)
            if hand != "advisory-lock":
                yield faster(f"{name} / C", ours, in_c)

    # --- transactions -----------------------------------------------------------------------------

    def serialise(self):
        """No lock, the textbook pattern and the library, in turns, on 1, 10 and 1 000 hot rows."""
        yield from self.serialise_over("direct", self.recorded.url(host="127.0.0.1"), 0.7)
        with delayed(self.recorded.server.port, 1000) as port:
            yield from self.serialise_over("1 ms each way", self.recorded.url(host="127.0.0.1", port=port), 0.9)

    def serialise_over(self, link, url, least_of_none):
        targets = {1: ("textbook", 8), 10: ("textbook", 2), 1000: ("none", least_of_none)}
        for rows, (control, least) in targets.items():
            self.recorded.sql("drop table if exists bench_rows")
            self.recorded.sql("create table bench_rows (id int primary key, value bigint) with (fillfactor = 50)")
            self.recorded.sql(f"insert into bench_rows select i, 0 from generate_series(1, {rows}) i")
            self.recorded.sql("grant all on bench_rows to public")
            rates, retries = {pattern: [] for pattern in PATTERNS}, 0
            for _ in self.world.repeated:
                for pattern, (name, isolation) in PATTERNS.items():
                    commits, took, again, _, _ = map(float, output(
                        BUILD / "bench/bench_serialise", url, name, isolation, rows, 16, self.world.size(1.5, 0.3)).split())
                    rates[pattern].append(commits / took)
                    retries += again if pattern == "holdfast" else 0
            for pattern in ("none", "textbook"):
                yield faster(f"{link}, {rows} rows, against {pattern}", rates["holdfast"], rates[pattern],
                             least if pattern == control else None)
            if rows == 1:
                yield figure(f"{link}, 1 row, retries", [retries], "retries", 0)
            for isolation in ("REPEATABLE READ", "READ COMMITTED"):
                yield faster(f"{link}, {rows} rows, {isolation}", rates[isolation], rates["holdfast"])

    # --- networks ---------------------------------------------------------------------------------

    def gaps(self):
        """10 M transactions and 1 000 gaps take about two minutes to fill in."""
        url, ledgers, commits = self.plain.url(), self.world.size(200000, 4000), self.world.size(200, 20)
        samples = self.program("gaps", url, "answer", 9, ledgers, 50, self.world.size(1000, 20))
        yield figure("10 M rows, 1 000 gaps", samples.library, "s", 10e-3)
        yield faster("the same, against a window function", samples.control, samples.library, 100, duration)
        samples = self.program("gaps", url, "commit", 30, commits, self.world.size(100000, 1000))
        yield slower("commit, 100 000 ranges against 1", samples.library, samples.control, 1.2)


# By their name in the report: what bench_serialise calls it, and the number of its isolation level.
PATTERNS = {"none": ("none", 0), "textbook": ("textbook", 0), "holdfast": ("holdfast", 0),
            "REPEATABLE READ": ("holdfast", 1), "READ COMMITTED": ("holdfast", 2)}


@contextlib.contextmanager
def delayed(port, microseconds):
    """A way to the server that takes so long in each direction; yields its port."""
    command = [str(BUILD / "bench/bench_delay"), str(port), str(microseconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            yield int(proxy.stdout.readline())
        finally:
            proxy.stdin.close()


def languages():
    """Each with its command, and what its users would do by hand; what is built goes to the build folder."""
    library, folder = BUILD / "src/lib", BUILD / "bench/languages"
    modules = folder / "node_modules"
    prebuilt = modules / "holdfast/prebuilds" / subprocess.check_output(
        ["node", "-p", "process.platform + '-' + process.arch"], text=True).strip()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / ".deps/node/node_modules", modules, symlinks=True)
    shutil.copytree(ROOT / "bindings/node/lib", modules / "holdfast/lib")
    shutil.copy(ROOT / "bindings/node/package.json", modules / "holdfast")
    shutil.copy(ROOT / "bench/languages/pair.js", folder)
    subprocess.run([ROOT / "bindings/node/build", prebuilt / "holdfast.node"], check=True)
    subprocess.run(["npm", "install", "--silent", "--no-save", "--no-audit", "--no-fund", "--prefix", folder / "npm",
                    "advisory-lock@2.0.0"], check=True)
    for module in ("advisory-lock", "debug", "minimist", "ms"):
        shutil.copytree(folder / "npm/node_modules" / module, modules / module)
    environment = {"PKG_CONFIG_PATH": BUILD / "meson-uninstalled", "GOCACHE": BUILD / "go", "GOFLAGS": "-mod=mod",
                   "GOPROXY": "off"}
    subprocess.run(["go", "build", "-o", folder / "pair", "."], check=True, cwd=ROOT / "bench/languages/go",
                   env={**os.environ, **{name: str(value) for name, value in environment.items()}})
    with_library = ["env", f"HOLDFAST_LIBRARY={library}/libholdfast.so", f"LD_LIBRARY_PATH={library}",
                    f"PYTHONPATH={ROOT}/bindings/python"]
    return [("Python", [*with_library, sys.executable, ROOT / "bench/languages/pair.py"], "psycopg2"),
            ("Go", [*with_library, folder / "pair"], "lib/pq"),
            ("Node", [*with_library, "node", folder / "pair.js"], "pg"),
            ("Node", [*with_library, "node", folder / "pair.js"], "advisory-lock")]


def on_server(name, world):
    with world.server() as server:
        yield from getattr(Bench(world, server), name)()


NAMES = ["uncontended", "lease", "handoff", "set", "threads", "loss", "process", "languages", "serialise", "gaps"]
BENCHES = {name: functools.partial(on_server, name) for name in NAMES}
