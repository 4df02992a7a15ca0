"""The ingester: catching up, at the tip, beside a backfill, memory. The controls are bare libpq with the same rows."""

import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from figures import faster, figure
from world import BUILD, HOLDFAST, output


class Bench:
    def __init__(self, world, server):
        self.world = world
        self.database = server.create_database()
        self.url = self.database.url(user="postgres")
        self.networks = 0

    # --- doing ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def network(self):
        """A fresh one; its tables go at the end."""
        self.networks += 1
        name = f"bench{self.networks}"
        yield name
        self.database.sql(f"drop schema if exists ingest_{name} cascade")

    def command(self, network, source, *options):
        return [HOLDFAST, "ingest", "--url", self.url, "--network", network, "--source", source,
                *map(str, options)]

    def ingest(self, network, source, *options):
        """Seconds of the whole process, and its greatest memory in MB."""
        began = time.monotonic()
        process = subprocess.Popen(self.command(network, source, *options), stderr=subprocess.PIPE, text=True)
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise OSError(f"holdfast ingest ended with {process.returncode}: {said}")
        return time.monotonic() - began, usage.ru_maxrss / 1024

    def control(self, what, network):
        """Of how many, in how many seconds."""
        count, seconds = output(BUILD / "bench/bench_ingest", what, self.url, f"ingest_{network}").split()
        return float(count), float(seconds)

    def write_file(self, network, path):
        """The network's ledgers as NDJSON."""
        query = ("""select '{"sequence":' || sequence || ',"hash":"' || l.hash || '","previous_hash":"' || previous_hash
            || '","closed_at":"' || to_char(l.closed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            || '","transactions":[' || string_agg(body::text, ',' order by application_order) || ']}'
            from ledgers l join transactions t on t.ledger_number = l.sequence
            group by sequence, l.hash, previous_hash, l.closed_at order by sequence""")
        with contextlib.closing(self.database.connect("postgres")) as connection, open(path, "wb") as file:
            with connection.cursor() as cursor:
                cursor.execute(f"set search_path to ingest_{network}")
                cursor.copy_expert(f"copy ({query}) to stdout with (format csv, quote e'\\x01', delimiter e'\\x02')", file)

    # --- measuring --------------------------------------------------------------------------------------

    def repeat(self, once, *arguments):
        """Columns: of each repetition the rates of the ingester and of its controls."""
        return list(zip(*(once(*arguments) for _ in self.world.repeated)))

    def sizes(self, *sizes):
        """(transactions of a ledger, ledgers)"""
        return [(transactions, self.world.size(count, count // 50)) for transactions, count in sizes]

    def catch_up(self):
        for transactions, count in self.sizes((5, 20_000), (50, 5_000), (500, 500)):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "ledgers.ndjson"
                with self.network() as network:
                    self.ingest(network, f"generate:{count},{transactions}")
                    self.write_file(network, path)
                for kind, source in (("generate", f"generate:{count},{transactions}"), ("file", path)):
                    yield faster(f"{kind}, {transactions} tx", *self.repeat(self.catch_up_once, source), 0.6, rows_a_second)

    def catch_up_once(self, source):
        with self.network() as network:
            seconds, _ = self.ingest(network, source)
            rows, bare = self.control("copy", network)
            return rows / seconds, rows / bare

    def backfill(self):
        """As fast as two workers are, against the same COPY."""
        for transactions, count in self.sizes((5, 20_000), (50, 5_000)):
            for workers in (1, 2, 4):
                rates = self.repeat(self.backfill_once, f"generate:{count},{transactions}", count, workers)
                yield faster(f"{workers} workers, {transactions} tx", *rates, show_as=rows_a_second)

    def backfill_once(self, source, count, workers):
        with self.network() as network:
            self.ingest(network, source, "--start-ledger", count)
            seconds, _ = self.ingest(network, source, "--backfill", f"1-{count}", "--workers", workers)
            rows, bare = self.control("copy", network)
            return rows / seconds, rows / bare

    def tip(self):
        for transactions, count in self.sizes((5, 6000), (50, 3000)):
            for beside, least in (("", 0.9), (", two workers beside", 0.8)):
                ours, bare, prepared = self.repeat(self.tip_once, transactions, count, bool(beside))
                yield faster(f"{transactions} tx{beside}, against prepared statements", ours, prepared, least)
                yield faster(f"{transactions} tx{beside}, against statements", ours, bare)

    def tip_once(self, transactions, count, beside, first=1_000_001):
        """A transaction of its own for each ledger, as at the tip. The controls are always alone."""
        with self.network() as network:
            source = f"generate:{first + count},{transactions}"
            self.ingest(network, f"generate:{first},{transactions}", "--start-ledger", first)
            with contextlib.ExitStack() as stack:
                if beside:
                    stack.enter_context(self.running_backfill(network, source, first))
                seconds, _ = self.ingest(network, source, "--commit-every", 1)
            self.database.sql(f"delete from ingest_{network}.transactions where ledger_number <= {first}")
            self.database.sql(f"delete from ingest_{network}.ledgers where sequence <= {first}")
            rates = [count / seconds]
            for control in ("tip", "prepared"):
                commits, bare = self.control(control, network)
                assert commits == count, commits
                rates.append(commits / bare)
            return rates

    @contextlib.contextmanager
    def running_backfill(self, network, source, first):
        process = subprocess.Popen(self.command(network, source, "--backfill", f"1-{first}", "--workers", 2),
                                   stderr=subprocess.DEVNULL)
        try:
            while not self.database.value(f"select count(*) from ingest_{network}.ledgers where sequence < {first}"):
                time.sleep(0.01)
            yield
            if process.poll() is not None:
                raise OSError("the backfill ended before the ingester")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)

    def memory(self):
        """Many small ledgers, and few of 20 000 transactions."""
        for case, workers, (transactions, count) in (
                ("live", 0, (1, 100_000)), ("live", 0, (50, 20_000)), ("live", 0, (20_000, 60)),
                ("backfill, 8 workers", 8, (50, 20_000)), ("backfill, 8 workers", 8, (20_000, 60))):
            count = self.world.size(count, count // 20)
            source, options = f"generate:{count},{transactions}", []
            with self.network() as network:
                if workers:
                    self.ingest(network, source, "--start-ledger", count)
                    options = ["--backfill", f"1-{count}", "--workers", workers]
                _, most = self.ingest(network, source, *options)
            yield figure(f"{case}, {count} ledgers of {transactions} tx", [most], "MB", 200)


def rows_a_second(rate):
    return f"{rate / 1e3:.0f} k rows/s"


def on_server(name, world):
    with world.server() as server:
        yield from getattr(Bench(world, server), name)()


BENCHES = {f"ingest-{name}": functools.partial(on_server, name.replace("-", "_"))
           for name in ("catch-up", "backfill", "tip", "memory")}
