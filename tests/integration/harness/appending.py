"""What the tests of `holdfast append` share: servers, tables whose blocks can be told apart, workers."""

import collections
import contextlib
import itertools
import json
import os
import re
import socket
import socketserver
import threading
import urllib.parse

import pytest

import clickhouse
import hf
from appending_beside import LOCKED, PLAIN, STRANGERS
from awaiting import eventually
from sockets import serving

# Ten rows are a block and a part, so that a small append has many.
BLOCK = 10
SMALL_BLOCKS = {"max_block_size": BLOCK, "max_insert_block_size": BLOCK, "min_insert_block_size_rows": BLOCK,
                "min_insert_block_size_bytes": 0}
WIDE = 10000  # bytes of a row, for rows_of


@pytest.fixture(scope="session")
def clickhouse_server():
    with clickhouse.ClickHouse() as server:
        yield server.start()


@pytest.fixture
def ch(clickhouse_server):
    """A database of the test's own; merges are stopped, so that parts stay as they were written."""
    database = clickhouse_server.create_database()
    yield database
    database.drop()


@pytest.fixture
def store15(db15):
    hf.install(db15.url())
    return db15


@pytest.fixture
def appender15(holdfast, store15, ch):
    return Appender(holdfast.at(store15.url()), ch)


class Appender:
    """`holdfast append` to a table of one database."""

    def __init__(self, holdfast, ch):
        self.holdfast = holdfast
        self.ch = ch

    def words(self, *args, **settings):
        return ["append", "--to", self.ch.url(**settings), *args]

    def __call__(self, *args, input=None, timeout=60, **settings):
        return self.holdfast(*self.words(*args, **settings), input=input, timeout=timeout)

    def start(self, *args, **settings):
        return self.holdfast.start(*self.words(*args, **settings))

    def done(self, *args, **how):
        """The summary of one that must succeed."""
        result = self(*args, **how)
        assert result.code == 0, result
        summary = json.loads(result.out)
        if self.ch and self.ch.strangers and summary["outcome"] == "nothing to do":
            summary["outcome"] = self._outcome_for_strangers(summary["id"])
        return summary

    def _outcome_for_strangers(self, identity):
        """Who finished it for the dead does not matter, and that it was finished is told once."""
        with self.ch.strangers.resting(LOCKED):
            is_theirs = identity in self.ch.strangers.finished
            self.ch.strangers.finished.discard(identity)
        return "finished" if is_theirs else "nothing to do"


def make_table(ch, name="t", engine="MergeTree ORDER BY tuple()"):
    """Rows (append, n): which append wrote them, and a number."""
    ch.sql(f"CREATE TABLE {name} (append UInt32, n UInt64) ENGINE = {engine}")
    if "MergeTree" in engine:
        ch.sql(f"SYSTEM STOP MERGES {ch.name}.{name}")
    if ch.strangers:
        ch.strangers.begin(name, engine)


def rows_of(append, count, width=0):
    """A server looks at a stream once a megabyte has come: wide rows are seen while it goes on."""
    return "".join(f'{{"append":{append},"n":{n}}}'.ljust(width) + "\n" for n in range(count)).encode()


def slow_select(append, blocks, seconds_per_row=0.001):
    """A block takes BLOCK rows' time."""
    return (f"SELECT toUInt32({append}), number FROM numbers({blocks * BLOCK})"
            f" WHERE NOT ignore(sleepEachRow({seconds_per_row}))")


def appends_by_block(ch, name="t"):
    """Which append wrote each part, in the order of their blocks; every part must be one append's."""
    parts = ch.rows(f"SELECT _part AS part, groupUniqArray(append) AS appends FROM {name} WHERE append < {STRANGERS}"
                    " GROUP BY _part")
    order = {part["name"]: part["min_block_number"] for part in ch.rows(
        f"SELECT name, min_block_number FROM system.parts WHERE database = '{ch.name}' AND table = '{name}'")}
    assert all(len(part["appends"]) == 1 for part in parts)
    parts.sort(key=lambda part: order[part["part"]])
    return [part["appends"][0] for part in parts]


def runs_of(sequence):
    return sum(1 for at, item in enumerate(sequence) if at == 0 or sequence[at - 1] != item)


def counts(ch, name="t"):
    """{append: rows}; every row must be there once. Those that strangers wrote are left out."""
    if ch.strangers and ch.strangers.table == name:
        with ch.strangers.resting(PLAIN):
            if ch.strangers.copies:
                return counts_without(ch.strangers.copies, ch, name)
    found = ch.rows(f"SELECT append, count() AS c, uniqExact(n) AS u FROM {name} WHERE append < {STRANGERS}"
                    " GROUP BY append")
    assert all(row["c"] == row["u"] for row in found), found
    return {row["append"]: row["c"] for row in found}


def counts_without(copies, ch, name):
    """Strangers wrote some of the very same rows: each is there once more than they did."""
    found = collections.Counter({(row["append"], row["n"]): row["c"] for row in ch.rows(
        f"SELECT append, n, count() AS c FROM {name} WHERE append < {STRANGERS} GROUP BY append, n")})
    found.subtract(copies)
    assert set(found.values()) <= {0, 1}, {row: count for row, count in found.items() if count not in (0, 1)}
    return dict(collections.Counter(append for (append, _), count in found.items() if count))


def visible(text):
    """How many rows of an append that failed are there, by its own words."""
    return int(re.search(r"(\d+) of its rows are visible", text).group(1))


def is_told(ch, told, rows):
    """A direct append cannot tell its rows from those that strangers write meanwhile: it tells the most there can be."""
    return told >= rows if ch.strangers else told == rows


class Stream:
    """A stream of rows over a bare connection, which its owner may leave open or cut."""

    def __init__(self, ch, **parameters):
        words = urllib.parse.urlencode({"database": ch.name, **SMALL_BLOCKS, **parameters,
                                        "query": "INSERT INTO t FORMAT JSONEachRow"})
        self.socket = socket.create_connection(("127.0.0.1", ch.server.http_port))
        self.socket.sendall(f"POST /?{words} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())

    def send(self, body):
        self.socket.sendall(b"%x\r\n%s\r\n" % (len(body), body))
        return self

    def cut(self):
        self.socket.close()


class Feed:
    """A named pipe as the file of an append; rows are written by a thread of their own."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = str(path)
        self._pieces, self._news = [], threading.Condition()
        self._over = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with open(self.path, "wb", buffering=0) as pipe:
            while True:
                with self._news:
                    self._news.wait_for(lambda: self._pieces or self._over)
                    if not self._pieces:
                        return
                    piece = self._pieces.pop(0)
                try:
                    pipe.write(piece)
                except BrokenPipeError:
                    return

    def write(self, piece):
        with self._news:
            self._pieces.append(piece)
            self._news.notify()

    def end(self):
        with self._news:
            self._over = True
            self._news.notify()


class held_id:
    """A statement of somebody that has the query id until this ends."""

    def __init__(self, ch, query_id):
        self.ch, self.query_id = ch, query_id

    def __enter__(self):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        eventually(self._running)

    def _running(self):
        return self.ch.value(f"SELECT count() FROM system.processes WHERE query_id = '{self.query_id}'")

    def _run(self):
        try:
            self.ch.sql("SELECT sleepEachRow(1) FROM numbers(600) FORMAT Null", query_id=self.query_id,
                        max_block_size=1, timeout=600)
        except Exception:  # it is killed below
            pass

    def __exit__(self, *_):
        # Told once: SYNC repeats it until the id is free, and would hit whoever waits for the id.
        self.ch.sql(f"KILL QUERY WHERE query_id = '{self.query_id}' ASYNC")
        self.thread.join()


class Watcher:
    """Sees which statements ran at the same time, as the server says."""

    def __init__(self, ch, wanted):
        self.ch = ch
        self.wanted = wanted
        self.most = {name: 0 for name in wanted}  # {name: most at once}
        self.together = set()  # names that ran at the same moment
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        while not self._over.is_set():
            queries = [row["query"] for row in self.ch.rows("SELECT query FROM system.processes")]
            found = {name: sum(1 for query in queries if matches(query))
                     for name, matches in self.wanted.items()}
            for name, count in found.items():
                self.most[name] = max(self.most[name], count)
            self.together.add(frozenset(name for name, count in found.items() if count))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def in_parallel(calls):
    """Runs them all at once and gives their values."""
    values, errors = [None] * len(calls), []

    def run(at, call):
        try:
            values[at] = call()
        except BaseException as error:  # raised below, in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(at, call)) for at, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return values


@contextlib.contextmanager
def trigger(database, when, condition, statement):
    """A trigger of holdfast.appends, which runs the statement in the append's own session; strangers have none."""
    database.sql(f"""
        CREATE FUNCTION public.of_test() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {statement}; RETURN NEW; END $$;
        CREATE TRIGGER of_test {when} ON holdfast.appends FOR EACH ROW
        WHEN (({condition}) AND NEW.id NOT LIKE 'stranger%')
        EXECUTE FUNCTION public.of_test()""")
    try:
        yield
    finally:
        database.sql("DROP FUNCTION public.of_test CASCADE")


def sleeping(database):
    return database.sql("SELECT pid FROM pg_stat_activity WHERE query LIKE '%holdfast.appends%' AND"
                        " wait_event = 'PgSleep'")


def end_sleepers(database):
    for (pid,) in sleeping(database):
        database.server.terminate(pid)
    eventually(lambda: not sleeping(database))


@contextlib.contextmanager
def settled_by_others(ch):
    """No stranger takes the table's lock in here; behind it each of them writes, before anybody can repeat."""
    strangers = ch.strangers if ch else None
    with strangers.resting(LOCKED) if strangers else contextlib.nullcontext():
        yield
    if strangers:
        strangers.all_write()


def kill_before(appender, database, state, rows=100):
    """Append x, killed while it writes down that it is in this state."""
    when = "BEFORE INSERT" if state == "attaching" else "BEFORE UPDATE"
    with settled_by_others(appender.ch), \
            trigger(database, when, f"NEW.state = '{state}'", "PERFORM pg_sleep(60)"):
        worker = appender.start("--id", "x", "t", "--select", f"SELECT toUInt32(1), number FROM numbers({rows})")
        eventually(lambda: sleeping(database), what=f"the append writes down that it is {state}")
        worker.kill9()
        end_sleepers(database)


def kill_while_it_attaches(appender, ch, key=None, **settings):
    """Append x, killed when it has written down what it attaches and waits for an orphan; another was there before."""
    key = key or appender.done("t", input=rows_of(0, 1))["key"]
    with settled_by_others(ch), held_id(ch, f"holdfast-{key}"):
        worker = appender.start("--id", "x", "--orphans", "wait", "t", "--select",
                                "SELECT toUInt32(1), number FROM numbers(100)", **settings)
        worker.await_line("orphan", "err")
        worker.kill9()


@contextlib.contextmanager
def balanced(*servers, port=0, seen=None):
    """Every connection goes to the next server; seen gets the sizes of what the client sends."""
    turns = itertools.cycle(servers)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            server = next(turns)
            with socket.create_connection((server.host, server.http_port)) as there:
                back = threading.Thread(target=pump, args=(there, self.request), daemon=True)
                back.start()
                pump(self.request, there, seen)
                back.join()

    def pump(source, sink, sizes=None):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if sizes is not None:
                    sizes.append(len(data))
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    with serving(Handler, port) as chosen:
        yield chosen
