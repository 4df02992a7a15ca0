"""Told to stop at odd moments: it does, soon, and says so by its exit code."""

import contextlib
import os
import signal
import socket
import threading

import pytest

from appending import SMALL_BLOCKS, Feed, counts, held_id, make_table, rows_of, slow_select
from appending_beside import beside_plain
from awaiting import eventually
from chdb import DDL

@contextlib.contextmanager
def frozen(server):
    """A server that hangs: its sockets stay open, and nothing answers."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


@contextlib.contextmanager
def mute_server():
    """Takes connections and says nothing; gives its port and an event of the first one."""
    asked = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        def accept():
            with contextlib.suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    kept[-1].recv(1)
                    asked.set()

        kept = []
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], asked
    for connection in kept:
        connection.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_says_nothing_is_not_waited_for(appender15, number):
    with mute_server() as (port, asked):
        worker = appender15.holdfast.start("append", "--to", f"clickhouse+http://127.0.0.1:{port}/d", "t")
        assert asked.wait(20)
        worker.signal(number)
        assert worker.wait(10) == 128 + number


@beside_plain
def test_waiting_for_the_table_it_stops_and_what_is_staged_stays_for_a_repeat(appender15, ch, tmp_path):
    make_table(ch)
    feed = Feed(tmp_path / "rows")
    holder = appender15.start("--direct", "t", feed.path)
    feed.write(rows_of(1, 1000, 10000))
    eventually(lambda: ch.value("SELECT count() FROM system.processes WHERE query_id LIKE 'holdfast-%'"))
    worker = appender15.start("--id", "x", "t", "--select", "SELECT toUInt32(2), number FROM numbers(10)")
    worker.await_line("waiting", "err")
    worker.signal(signal.SIGINT)
    result = worker.wait_all(10)
    assert result.code == 128 + signal.SIGINT and "repeat with --id x" in result.err, result
    feed.end()
    assert holder.wait(30) == 0
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "resumed"
    assert counts(ch) == {1: 1000, 2: 10}


@beside_plain
def test_waiting_for_an_orphan_it_stops(appender15, ch):
    make_table(ch)
    key = appender15.done("t", input=rows_of(0, 1))["key"]
    with held_id(ch, f"holdfast-{key}"):
        worker = appender15.start("--direct", "--orphans", "wait", "t", "--select", slow_select(1, 1))
        worker.await_line("orphan", "err")
        worker.signal(signal.SIGTERM)
        assert worker.wait(10) == 128 + signal.SIGTERM
    assert counts(ch) == {0: 1}


@beside_plain
def test_told_twice_it_ends_at_once(appender15, ch):
    """The server is mute when it should hear that the statement is over."""
    make_table(ch)
    worker = appender15.start("--id", "x", "t", "--select", slow_select(1, 1000), **SMALL_BLOCKS)
    eventually(lambda: ch.value("SELECT count() FROM system.processes WHERE query_id LIKE 'holdfast_staging%'"))
    with frozen(ch.server):
        worker.signal(signal.SIGINT)
        worker.await_line("told again", "err")

        def tell_again():  # what follows at once is taken for the same wish
            worker.signal(signal.SIGINT)
            return worker.process.poll() is not None

        eventually(tell_again)
        assert worker.wait() == 128 + signal.SIGINT
    assert counts(ch) == {}
    assert appender15.done("--id", "x", "t", input=rows_of(1, 10))["outcome"] == "appended"
    assert counts(ch) == {1: 10} and ch.staging_tables() == []


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_a_query_in_chdb_is_ended_too(local_chdb, tmp_path, mode):
    local_chdb.done("t", "--create", DDL, input=rows_of(0, 1))
    pipe = tmp_path / "numbers"
    os.mkfifo(pipe)
    worker = local_chdb.start(mode, "t", "--select", (
        f"SELECT toUInt32(1), n FROM file('{pipe}', 'TSV', 'n UInt64') WHERE NOT ignore(sleepEachRow(0.1))"
        " SETTINGS max_block_size = 1, input_format_parallel_parsing = 0,"
        " function_sleep_max_microseconds_per_block = 0"))
    with open(pipe, "wb") as numbers:  # once the query reads it
        numbers.write(b"".join(b"%d\n" % n for n in range(3000)))
    worker.signal(signal.SIGINT)
    assert worker.wait(20) == 128 + signal.SIGINT
    assert local_chdb.counts()[0] == 1
    assert local_chdb.done("t", input=rows_of(2, 5))["rows"] == 5
    assert "holdfast_stag" not in local_chdb.read("SHOW TABLES")
