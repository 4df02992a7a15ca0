"""Others who write to the table of a test of `holdfast append` while it runs."""

import collections
import contextlib
import inspect
import itertools
import re
import threading

import pytest

STRANGERS = 1_000_000  # the numbers of their appends begin here: counts() and appends_by_block() leave them out
ROWS = 10
PAUSE = 0.25  # seconds between two writes of either: each leaves parts, which are not merged

# Who they are: one that takes the table's lock (another `holdfast append`, which settles what it finds), one that
# does not (plain INSERTs), and whether the latter also writes the very rows that a dead append has staged.
LOCKED, PLAIN, COPIES = "locked", "plain", "copies"


class Strangers:
    """ch.strangers: at work from make_table() to the end of the test."""

    def __init__(self, holdfast, ch, kinds):
        self.holdfast, self.ch, self.kinds = holdfast, ch, kinds
        self.copies = collections.Counter()  # {(append, n): how often the plain one wrote it besides}
        self.written, self.failed = [], []
        self.finished = set()  # appends that the one with the lock finished for their dead
        self._copied = set()  # staging tables
        self._numbers = itertools.count(STRANGERS)
        self._over = threading.Event()
        self._turns = {}  # {kind: lock that it has while it writes}
        self._threads = []
        self.table = None

    # life

    def begin(self, table, engine):
        """Each has written once when this returns."""
        if self._threads:
            return
        self.table = table
        self.is_exact = "Replacing" not in engine
        self.is_plain_engine = engine.startswith("MergeTree")
        for kind, write in ((LOCKED, self._append), (PLAIN, self._insert)):
            if kind in self.kinds:
                self._turns[kind] = threading.RLock()
                write()
                self._threads.append(threading.Thread(target=self._run, args=(kind, write), daemon=True))
        for thread in self._threads:
            thread.start()

    def _run(self, kind, write):
        while not self._over.wait(PAUSE):
            with self._turns[kind]:
                try:
                    write()
                except Exception as error:  # told at the end
                    self.failed.append(error)
                    return

    def end(self):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def check(self):
        """Their own rows are there once, and nobody was in their way."""
        assert self.failed == [], self.failed
        found = {row["append"]: (row["c"], row["u"]) for row in self.ch.rows(
            f"SELECT append, count() AS c, uniqExact(n) AS u FROM {self.table} WHERE append >= {STRANGERS}"
            " GROUP BY append")} if self.written and self.is_exact else None
        assert found is None or [number for number in self.written if found.get(number) != (ROWS, ROWS)] == [], found

    @contextlib.contextmanager
    def resting(self, kind):
        """One of them is not writing, and does not begin."""
        with self._turns.get(kind, contextlib.nullcontext()):
            yield

    def all_write(self):
        """Each begins and ends a write before this returns: what a test needs between a crash and the repeat."""
        for kind, write in ((PLAIN, self._insert), (LOCKED, self._append)):
            if kind in self._turns:
                with self._turns[kind]:
                    write()

    # what they write

    def _append(self):
        number = next(self._numbers)
        mode = ["--direct"] if number % 2 else ["--id", f"stranger-{number}"]
        result = self.holdfast("append", "--to", self.ch.url(), "--orphans", "wait", "-w", "2s", *mode, self.table,
                               input=b"".join(b'{"append":%d,"n":%d}\n' % (number, n) for n in range(ROWS)))
        self.finished.update(re.findall(r"finished append (\S+),", result.err))
        if result.code == 0:
            self.written.append(number)
        elif result.code not in (75, 79) and "administrator command" not in result.err:
            # else it gave way, or a test has ended all sessions
            self.failed.append(result)

    def _insert(self):
        number = next(self._numbers)
        self.ch.sql(f"INSERT INTO {self.table} (append, n) SELECT {number}, number FROM numbers({ROWS})")
        self.written.append(number)
        if COPIES in self.kinds and self.is_plain_engine:
            for name in self.ch.staging_tables():
                if name.startswith("holdfast_staged_") and name not in self._copied:
                    self._copied.add(name)
                    self._copy(name)

    def _copy(self, name):
        """One block of the same rows in the same order: an equal part."""
        try:
            rows = self.ch.sql(f"SELECT append, n FROM {name} FORMAT TSV", max_threads=1)
        except Exception:  # it has just been attached and dropped
            return
        self.ch.sql(f"INSERT INTO {self.table} (append, n) FORMAT TSV", rows.encode())
        self.copies.update(tuple(map(int, line.split("\t"))) for line in rows.splitlines())


@pytest.fixture
def strangers(request, holdfast):
    if not request.param:
        yield None
        return
    ch = request.getfixturevalue("replicas")[0] if "replicas" in request.fixturenames else request.getfixturevalue("ch")
    store = request.getfixturevalue("store15" if "store15" in request.fixturenames else "store")
    ch.strangers = Strangers(holdfast.at(store.url()), ch, request.param)
    yield ch.strangers
    ch.strangers.end()
    ch.strangers.check()


def beside(*kinds):
    """Runs the test alone, and beside strangers; where it runs on two servers, alone on one and beside them on one."""
    def mark(function):
        if {"appender", "proxied"} & set(inspect.signature(function).parameters):
            names, values = "pg, strangers", [("pg15", None), ("pg18", kinds)]
        else:
            names, values = "strangers", [None, kinds]
        ids = ["alone", "beside_" + "_".join(kinds)]
        return pytest.mark.usefixtures("strangers")(
            pytest.mark.parametrize(names, values, indirect=True, ids=ids)(function))
    return mark


beside_strangers = beside(LOCKED, PLAIN, COPIES)
beside_others = beside(LOCKED, PLAIN)  # where the order of parts is looked at, and copies would be rows out of place
beside_plain = beside(PLAIN, COPIES)  # where one with the lock would do what the test is about
