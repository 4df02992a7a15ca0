"""Direct appends: orphans of dead holders, lost locks, truthful counts."""

import signal
import socket
import urllib.parse

import pytest

from appending import (BLOCK, SMALL_BLOCKS, WIDE, Feed, Stream, appends_by_block, counts, is_told, make_table, rows_of,
                       runs_of, slow_select, visible)
from appending_beside import PLAIN, beside, beside_others
from awaiting import eventually
from cli import EXIT_LOST

def running(ch, query_id="holdfast-%"):
    return ch.rows(f"SELECT query_id FROM system.processes WHERE query_id LIKE '{query_id}'")


# --- orphans --------------------------------------------------------------------------------------------


@beside(PLAIN)
@pytest.mark.parametrize("how, fate", [("kill", "killed"), ("wait", "awaited")])
def test_an_orphan_is_ended_or_awaited_and_rows_do_not_interleave(appender, store, ch, how, fate):
    make_table(ch)
    dead = appender.start("--direct", "t", "--select", slow_select(1, 200), **SMALL_BLOCKS)
    eventually(lambda: len(appends_by_block(ch)) > 5)
    dead.kill9()
    assert running(ch), "the server goes on with a dead client's INSERT"
    summary = appender.done("--direct", "--orphans", how, "t", "--select", slow_select(2, 40), **SMALL_BLOCKS)
    assert summary["orphan"] == fate and is_told(ch, summary["rows"], 40 * BLOCK)
    assert summary["lock_wait_ms"] < 1000
    assert runs_of(appends_by_block(ch)) == 2
    found = counts(ch)
    assert found[2] == 40 * BLOCK
    assert (found[1] == 200 * BLOCK) == (how == "wait")
    eventually(lambda: history(store, summary["key"]) == [(f"orphan_{fate}", f"holdfast-{summary['key']}"),
                                                          ("appended", str(summary["rows"]))])


def history(store, key):
    return store.sql("SELECT event, detail FROM holdfast.events WHERE key = %s AND detail IS NOT NULL ORDER BY id", key)


@beside(PLAIN)
def test_a_staged_append_too_comes_after_the_orphan(appender15, ch):
    make_table(ch)
    dead = appender15.start("--direct", "t", "--select", slow_select(1, 200), **SMALL_BLOCKS)
    eventually(lambda: len(appends_by_block(ch)) > 5)
    dead.kill9()
    summary = appender15.done("t", "--select", "SELECT toUInt32(2), number FROM numbers(400)", **SMALL_BLOCKS)
    assert summary["orphan"] == "killed"
    assert runs_of(appends_by_block(ch)) == 2


def test_control_without_the_one_query_id_the_orphan_interleaves(ch):
    make_table(ch)
    orphan = urllib.parse.urlencode({"database": ch.name, **SMALL_BLOCKS})
    with socket.create_connection(("127.0.0.1", ch.server.http_port)) as client:
        body = f"INSERT INTO t {slow_select(1, 200)}".encode()
        client.sendall(f"POST /?{orphan} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        eventually(lambda: len(appends_by_block(ch)) > 5)
    ch.sql(f"INSERT INTO t {slow_select(2, 40)}", **SMALL_BLOCKS)
    assert runs_of(appends_by_block(ch)) > 2
    eventually(lambda: counts(ch)[1] == 200 * BLOCK, 20)


@beside(PLAIN)
def test_a_stream_that_nobody_can_kill_is_awaited(appender15, ch):
    """Its client is gone without a word: the server still waits for the rest."""
    make_table(ch)
    key = appender15.done("t", input=rows_of(0, 1))["key"]
    orphan = Stream(ch, query_id=f"holdfast-{key}").send(rows_of(1, 50 * BLOCK, WIDE))
    eventually(lambda: len(appends_by_block(ch)) > 5)
    worker = appender15.start("--direct", "t", "--select", slow_select(2, 10), **SMALL_BLOCKS)
    worker.await_line("an orphan writes", "err")
    assert 2 not in counts(ch)
    orphan.cut()
    result = worker.wait_all(30)
    assert result.code == 0 and "awaited" in result.err, result
    assert runs_of(appends_by_block(ch)) == 3


def test_an_orphan_that_stays_is_no_reason_to_wait_for_ever(appender15, ch):
    make_table(ch)
    key = appender15.done("t", input=rows_of(0, 1))["key"]
    orphan = Stream(ch, query_id=f"holdfast-{key}").send(rows_of(1, 50 * BLOCK, WIDE))
    eventually(lambda: len(appends_by_block(ch)) > 5)
    result = appender15("--direct", "--orphans", "wait", "-w", "300ms", "t", input=rows_of(2, 10))
    assert result.code == 75 and f"KILL QUERY WHERE query_id = 'holdfast-{key}'" in result.err
    orphan.cut()
    eventually(lambda: not running(ch))


# --- the lock is lost -------------------------------------------------------------------------------------


def end_sessions(store):
    for pid in store.sessions("holdfast append%"):
        store.server.terminate(pid)


@beside_others
def test_a_stream_whose_lock_is_lost_is_aborted_and_counted(appender, store, ch, tmp_path):
    make_table(ch)
    feed = Feed(tmp_path / "rows")
    worker = appender.start("--direct", "t", feed.path, **SMALL_BLOCKS)
    feed.write(rows_of(1, 30 * BLOCK + 3, WIDE))
    eventually(lambda: counts(ch).get(1, 0) >= 10 * BLOCK)
    end_sessions(store)
    result = worker.wait_all(20)
    assert result.code == EXIT_LOST, result
    assert is_told(ch, visible(result.err), counts(ch)[1]) and counts(ch)[1] < 30 * BLOCK + 3
    assert not running(ch) or ch.strangers


@beside_others
def test_a_select_whose_lock_is_lost_is_killed_and_counted(appender, store, ch):
    make_table(ch)
    worker = appender.start("--direct", "t", "--select", slow_select(1, 1000), **SMALL_BLOCKS)
    eventually(lambda: len(appends_by_block(ch)) > 5)
    end_sessions(store)
    result = worker.wait_all(20)
    assert result.code == EXIT_LOST, result
    assert is_told(ch, visible(result.err), counts(ch)[1])
    assert not running(ch) or ch.strangers


def test_rows_of_a_writer_without_a_lock_are_not_taken_for_its_own(appender15, store15, ch):
    """Nothing tells them apart: the count is the most that can be there."""
    make_table(ch)
    worker = appender15.start("--direct", "t", "--select", slow_select(1, 1000), **SMALL_BLOCKS)
    eventually(lambda: len(appends_by_block(ch)) > 5)
    ch.sql("INSERT INTO t SELECT 9, number FROM numbers(7)")
    end_sessions(store15)
    result = worker.wait_all(20)
    found = counts(ch)
    assert f"at most {found[1] + 7} of its rows are visible" in result.err, result


def test_rows_that_a_merge_has_collapsed_are_counted_as_they_were_written(appender15, store15, ch):
    ch.sql("CREATE TABLE t (append UInt32, n UInt64) ENGINE = ReplacingMergeTree ORDER BY append")
    worker = appender15.start("--direct", "t", "--select", slow_select(1, 1000), **SMALL_BLOCKS)
    eventually(lambda: len(ch.rows(f"SELECT 1 FROM system.parts WHERE database = '{ch.name}'")) > 5)
    ch.sql("OPTIMIZE TABLE t FINAL")
    end_sessions(store15)
    result = worker.wait_all(20)
    assert result.code == EXIT_LOST and visible(result.err) > ch.value("SELECT count() FROM t"), result


def test_control_a_stream_that_is_merely_cut_is_taken_for_whole(ch):
    make_table(ch)
    Stream(ch).send(rows_of(1, 20 * BLOCK + 3)).cut()
    eventually(lambda: counts(ch).get(1) == 20 * BLOCK + 3)


@beside_others
def test_told_to_stop_a_stream_ends_with_what_is_visible(appender15, ch, tmp_path):
    make_table(ch)
    feed = Feed(tmp_path / "rows")
    worker = appender15.start("--direct", "t", feed.path, **SMALL_BLOCKS)
    feed.write(rows_of(1, 30 * BLOCK + 3, WIDE))
    eventually(lambda: counts(ch).get(1, 0) >= 10 * BLOCK)
    worker.signal(signal.SIGTERM)
    result = worker.wait_all(20)
    assert result.code == 128 + signal.SIGTERM
    assert is_told(ch, visible(result.err), counts(ch)[1]) and counts(ch)[1] < 30 * BLOCK + 3


@beside_others
def test_told_to_stop_a_staged_append_leaves_nothing(appender15, store15, ch, tmp_path):
    make_table(ch)
    feed = Feed(tmp_path / "rows")
    worker = appender15.start("t", feed.path, **SMALL_BLOCKS)
    feed.write(rows_of(1, 30 * BLOCK, WIDE))
    eventually(ch.staging_tables)
    worker.signal(signal.SIGINT)
    assert worker.wait(20) == 128 + signal.SIGINT
    assert counts(ch) == {} and ch.staging_tables() == []
    eventually(lambda: not store15.advisory_locks())


# --- tables that are nobody else's ---------------------------------------------------------------------------


def test_a_slow_stream_into_a_temporary_table_is_looked_after_like_others(appender15, ch, tmp_path):
    make_table(ch, "t_mine")
    feed = Feed(tmp_path / "rows")
    worker = appender15.start("t_mine", feed.path)
    feed.write(rows_of(1, 10))
    eventually(lambda: ch.value("SELECT count() FROM system.query_log WHERE type = 2 AND query LIKE"
                                " 'SELECT count() FROM system.processes WHERE query_id = \\'holdfast-mine-%'"))
    feed.write(rows_of(2, 10))
    feed.end()
    result = worker.wait_all()
    assert result.code == 0, result
    assert counts(ch, "t_mine") == {1: 10, 2: 10}


def test_told_to_stop_a_query_into_a_temporary_table_is_killed(appender15, ch):
    make_table(ch, "t_mine")
    worker = appender15.start("t_mine", "--select", slow_select(1, 3000), **SMALL_BLOCKS)
    eventually(lambda: len(appends_by_block(ch, "t_mine")) > 2)
    worker.signal(signal.SIGINT)
    result = worker.wait_all(10)
    assert result.code == 128 + signal.SIGINT and visible(result.err) == counts(ch, "t_mine")[1], result


def test_a_temporary_table_takes_no_lock_and_needs_no_store(appender15, store15, ch):
    make_table(ch, "t_mine")
    worker = appender15.start("t_mine", "--select", slow_select(1, 100), **SMALL_BLOCKS)
    eventually(lambda: len(appends_by_block(ch, "t_mine")) > 2)
    assert store15.advisory_locks() == []
    assert worker.wait(30) == 0
    nowhere = appender15.holdfast.at("postgresql://127.0.0.1:1/none")
    result = nowhere(*appender15.words("t_mine"), input=rows_of(2, 10))
    assert result.code == 0, result
