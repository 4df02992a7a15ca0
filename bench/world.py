"""Where benchmarks run: throwaway servers with durability on, the programs that measure, how often and how long."""

import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("HOLDFAST_BUILD", ROOT / "build")).resolve()
HOLDFAST = BUILD / "src/holdfast"
sys.path.insert(0, str(ROOT / "tests/integration/harness"))

import servers  # noqa: E402

# The tests' servers forgo durability, and are in memory if there is room; here it is part of the price.
SETTINGS = "fsync = on\nfull_page_writes = on\nshared_buffers = 128MB\nmax_wal_size = 4GB\n"
servers.FOLDERS = tempfile.gettempdir()


class World:
    def __init__(self, repetitions=5, quick=False, postgres=15):
        self.repetitions = 2 if quick else repetitions
        self.quick = quick
        self.postgres = postgres
        self._stack = contextlib.ExitStack()
        self._template = None

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return self._stack.__exit__(*failure)

    def size(self, full, quick):
        return quick if self.quick else full

    @property
    def repeated(self):
        return range(self.repetitions)

    @contextlib.contextmanager
    def server(self, settings=""):
        """PostgreSQL, fresh."""
        if not self._template:
            home = servers.postgres18_home() if self.postgres == 18 else servers.postgres15_home()
            if self.postgres == 18:
                self._stack.callback(shutil.rmtree, home.parent, ignore_errors=True)
            self._template = self._stack.enter_context(servers.Postgres.template(home, f"pg{self.postgres}"))
        with servers.Postgres.copy_of(self._template, f"pg{self.postgres}", SETTINGS + settings) as server:
            yield server.start()

    def program(self, name, *arguments):
        return Samples(self.repetitions, BUILD / f"bench/bench_{name}", *arguments)


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def install_schema(database):
    output(HOLDFAST, "init", "--url", database.url())
    return database


class Samples:
    """What a program printed: a round a line, library and control in turns. A repetition is a part of the rounds."""

    def __init__(self, repetitions, *command):
        self.extra, rounds = {}, []
        for line in output(*command).splitlines():
            first, second = line.split()
            if first.isalpha():
                self.extra[first] = int(second)
            else:
                rounds.append((float(first), float(second)))
        self.all = [library for library, _ in rounds], [control for _, control in rounds]
        self.library, self.control = medians(rounds, repetitions)

    def rates(self, count):
        return [count / seconds for seconds in self.library], [count / seconds for seconds in self.control]


def medians(rounds, parts):
    """Of each column and part; a part has neighbours, between which a shared machine changes least."""
    parts = min(parts, len(rounds))
    cut = [rounds[i * len(rounds) // parts:(i + 1) * len(rounds) // parts] for i in range(parts)]
    return tuple([statistics.median(column) for column in columns] for columns in zip(*(zip(*part) for part in cut)))
