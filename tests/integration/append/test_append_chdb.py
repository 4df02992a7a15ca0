"""Appends to chdb, ClickHouse in the process itself: one process per folder, so they queue."""

import json
import signal

import pytest

import hf
from appending import Feed, rows_of
from awaiting import eventually
from chdb import DDL, LIBRARY, Chdb


@pytest.fixture
def chdb(recorded, holdfast, tmp_path):
    return Chdb(holdfast.at(recorded.url), tmp_path / "chdb")


def test_rows_are_appended_and_read_back_by_another_program(chdb):
    staged = chdb.done("t", "--create", DDL, input=rows_of(1, 3000))
    assert (staged["mode"], staged["rows"]) == ("staged", 3000)
    direct = chdb.done("--direct", "t", input=rows_of(2, 500))
    assert (direct["mode"], direct["rows"]) == ("direct", 500)
    assert chdb.done("t", "--select", "SELECT toUInt32(3), number FROM numbers(7)")["rows"] == 7
    assert chdb.counts() == {1: 3000, 2: 500, 3: 7}
    assert "holdfast_stag" not in chdb.read("SHOW TABLES")


def test_the_history_of_the_table_says_how_many_rows_came(chdb):
    chdb.done("t", "--create", DDL, input=rows_of(1, 300))
    chdb.done("--direct", "t", input=rows_of(2, 20))
    shown = chdb.holdfast("top", "--once", "--tab", "events", "--json")
    events = json.loads(shown.out)["events"]
    assert [event["detail"] for event in events if event["event"] == "appended"] == ["20", "300"]


def test_a_repeat_under_the_same_id_does_nothing(chdb):
    chdb.done("--id", "x", "t", "--create", DDL, input=rows_of(1, 100))
    assert chdb.done("--id", "x", "t", input=rows_of(1, 100))["outcome"] == "nothing to do"
    assert chdb.counts() == {1: 100}


def test_the_local_store_has_chdb_beside_it(holdfast, tmp_path):
    result = holdfast.at(f"local:{tmp_path / 'store'}")(
        "append", "t", "--create", DDL, input=rows_of(1, 10), env={"HOLDFAST_CHDB": str(LIBRARY)})
    assert result.code == 0, result
    assert Chdb(holdfast, tmp_path / "store" / "chdb").counts() == {1: 10}


def test_a_second_process_queues_for_the_folder_and_not_for_ever(local_chdb, tmp_path):
    local_chdb.done("t", "--create", DDL, input=b"")
    feed = Feed(tmp_path / "rows")
    first = local_chdb.start("t", feed.path)
    first.await_line("append", "err")
    feed.write(rows_of(1, 10))
    late = local_chdb("-w", "200ms", "t", input=rows_of(9, 10))
    assert late.code == 75 and f"chdb:{tmp_path}/chdb" in late.err, late
    second = local_chdb.start("t", "--select", "SELECT toUInt32(2), number FROM numbers(5)")
    second.await_line("waiting", "err")
    feed.end()
    assert first.wait(20) == 0
    assert second.wait(20) == 0
    assert local_chdb.counts() == {1: 10, 2: 5}


def test_another_path_to_the_same_folder_is_the_same_folder(local_chdb, tmp_path):
    local_chdb.done("t", "--create", DDL, input=b"")
    (tmp_path / "alias").symlink_to(tmp_path / "chdb")
    feed = Feed(tmp_path / "rows")
    first = local_chdb.start("t", feed.path)
    first.await_line("append", "err")
    other = local_chdb.holdfast("append", "--to", f"chdb:{tmp_path}/alias", "-w", "200ms", "t", input=b"",
                                env=local_chdb.env)
    assert other.code == 75
    feed.end()
    assert first.wait(20) == 0


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_rows_that_do_not_parse_are_named_and_nothing_stays(local_chdb, mode):
    local_chdb.done("t", "--create", DDL, input=b"")
    result = local_chdb(mode, "t", input=rows_of(1, 20) + b"oops\n")
    assert result.code == 65 and "standard input, line 21: " in result.err, result
    assert local_chdb.counts() == {}
    assert "holdfast_stag" not in local_chdb.read("SHOW TABLES")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_ended_in_the_middle_nothing_is_seen_and_a_repeat_appends(local_chdb, tmp_path, how):
    local_chdb.done("t", "--create", DDL, input=b"")
    feed = Feed(tmp_path / "rows")
    worker = local_chdb.start("--id", "x", "t", feed.path)
    feed.write(rows_of(1, 100000))
    eventually(lambda: any(local_chdb.folder.glob(".holdfast/rows-*/pipe")))
    worker.signal(how)
    assert worker.wait(20) == (-how if how == signal.SIGKILL else 128 + how)
    assert local_chdb.counts() == {}
    assert local_chdb.done("--id", "x", "t", input=rows_of(1, 100))["outcome"] == "appended"
    assert local_chdb.counts() == {1: 100}
    assert "holdfast_stag" not in local_chdb.read("SHOW TABLES")
    assert not any(local_chdb.folder.glob(".holdfast/rows-*"))


def test_without_the_library_it_says_how_to_get_it(holdfast, tmp_path):
    result = holdfast.at(f"local:{tmp_path / 'store'}")(
        "append", "t", input=b"", env={"HOLDFAST_CHDB": str(tmp_path / "none.so")})
    assert result.code == 78 and "HOLDFAST_CHDB" in result.err and "install libchdb.so" in result.err


def test_what_is_no_chdb_is_said_to_be_none(holdfast, tmp_path):
    result = holdfast.at(f"local:{tmp_path / 'store'}")(
        "append", "t", input=b"", env={"HOLDFAST_CHDB": hf.lib()._name})
    assert result.code == 78 and "chdb_connect" in result.err
