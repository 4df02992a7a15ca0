"""Rows into ClickHouse by `holdfast append`, beside `clickhouse-client` with the same format; both servers in memory."""

import contextlib
import json
import pathlib
import subprocess
import tempfile
import threading
import time

from figures import figure, faster
from world import HOLDFAST, install_schema

import clickhouse  # of the tests' harness, which world has put on the path

FORMATS = ["TSV", "JSONEachRow", "CSVWithNames", "Native"]
COLUMNS = "n UInt64, account UInt32, amount Int64"


class Bench:
    def __init__(self, world, postgres, ch, folder):
        self.world = world
        self.store = install_schema(postgres.create_database())
        self.ch = ch
        self.folder = pathlib.Path(folder)
        self.rows = world.size(10_000_000, 50_000)

    def file(self, name):
        path = self.folder / name
        if not path.exists():
            with open(path, "wb") as out:
                subprocess.run(
                    [*self.client(), "--query", f"SELECT number AS n, toUInt32(number % 1000) AS account,"
                     f" toInt64(rand(number) % 100000) AS amount FROM numbers({self.rows}) FORMAT {name}"],
                    check=True, stdout=out)
        return path

    def client(self):
        return ["clickhouse-client", "--host", "127.0.0.1", "--port", str(self.ch.tcp_port)]

    def fresh_table(self):
        self.ch.sql("DROP TABLE IF EXISTS default.bench")
        self.ch.sql(f"CREATE TABLE default.bench ({COLUMNS}) ENGINE = MergeTree ORDER BY n")

    def by_client(self, name):
        with open(self.file(name), "rb") as body:
            started = time.monotonic()
            subprocess.run([*self.client(), "--query", f"INSERT INTO bench FORMAT {name}"], check=True, stdin=body)
            return time.monotonic() - started

    def by_holdfast(self, mode, name):
        """Seconds, and its summary."""
        started = time.monotonic()
        done = subprocess.run(
            [HOLDFAST, "append", "--url", self.store.url(), "--to", self.ch.url(), mode, "--format", name,
             "bench", self.file(name)], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return time.monotonic() - started, json.loads(done.stdout)

    def two_workers(self, mode, name):
        threads = [threading.Thread(target=self.by_holdfast, args=(mode, name)) for _ in range(2)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.monotonic() - started


    def speed(self, name, least):
        """Staged, direct and the client in turns."""
        rates, held = {"--staged": [], "--direct": [], "client": []}, []
        self.file(name)
        for _ in self.world.repeated:
            for way, of_way in rates.items():
                self.fresh_table()
                if way == "client":
                    seconds = self.by_client(name)
                else:
                    seconds, summary = self.by_holdfast(way, name)
                    assert summary["rows"] == self.rows, summary
                    held += [summary["lock_held_ms"] / 1000] if way == "--staged" else []
                of_way.append(self.rows / seconds)
        for way in ("--staged", "--direct"):
            yield faster(f"{name}, {way[2:]} / client", rates[way], rates["client"], least, rows_a_second)
        yield figure(f"{name}, lock held by a staged one", held, "s", 0.05)

    def workers(self, name):
        rates = {"--staged": [], "--direct": []}
        for _ in self.world.repeated:
            for mode, of_mode in rates.items():
                self.fresh_table()
                of_mode.append(2 * self.rows / self.two_workers(mode, name))
        yield faster(f"{name}, two workers, staged / direct", *rates.values(), 1.4, rows_a_second)


def rows_a_second(rate):
    return f"{rate / 1e6:.2f} M rows/s"


def append(world):
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(world.server("fsync = off\n"))
        ch = stack.enter_context(clickhouse.ClickHouse())
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=clickhouse.MEMORY))
        bench = Bench(world, postgres, ch.start(), folder)
        for name in FORMATS:
            yield from bench.speed(name, 0.95)
        for name in ("TSV", "JSONEachRow"):
            yield from bench.workers(name)


BENCHES = {"append": append}
