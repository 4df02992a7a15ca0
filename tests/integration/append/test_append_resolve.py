"""What did not come to its end is listed, and ended by people: append list, resolve and forget."""

import contextlib
import json
import sqlite3

import pytest

from appending import Appender, Feed, counts, held_id, kill_before, kill_while_it_attaches, make_table, rows_of
from appending_beside import beside_plain
from awaiting import eventually


def listed(appender, *words):
    result = appender.holdfast("append", "list", *words, "--json")
    assert result.code == 0, result
    return json.loads(result.out)["appends"]


def resolve(appender, *words):
    return appender.holdfast("append", "resolve", "--to", appender.ch.url(), *words)


def forget(appender, *words):
    return appender.holdfast("append", "forget", "--to", appender.ch.url(), *words)


def make_doubtful(appender, store, ch, attached):
    """The server no longer shows what the parts were made of, and its log is gone."""
    make_table(ch, engine="MergeTree ORDER BY tuple() SETTINGS old_parts_lifetime = 1")
    if attached:
        kill_before(appender, store, "done")
    else:
        kill_while_it_attaches(appender, ch)
    ch.sql("INSERT INTO t SELECT 9, number FROM numbers(7)")
    ch.sql(f"SYSTEM START MERGES {ch.name}.t")
    ch.sql("OPTIMIZE TABLE t FINAL")
    eventually(lambda: not ch.value("SELECT count() FROM system.parts WHERE database = currentDatabase() AND"
                                    " table = 't' AND NOT active"), 60)
    ch.sql("SYSTEM FLUSH LOGS")
    ch.sql("TRUNCATE TABLE IF EXISTS system.query_log")
    assert appender("--id", "x", "t", input=b"").code == 76
    return counts(ch)


@pytest.mark.parametrize("attached", [True, False])
def test_people_say_what_nothing_proves(appender15, store15, ch, attached):
    before = make_doubtful(appender15, store15, ch, attached)
    [row] = listed(appender15)
    assert (row["id"], row["table"], row["state"], row["rows"]) == ("x", f"{ch.name}.t", "doubtful", 100)
    assert "nobody can tell in partition all" in row["reason"] and [row["staging"]] == ch.staging_tables()
    still = resolve(appender15, "x")
    assert still.code == 76 and "--attached or --missing" in still.err, still
    assert counts(ch) == before
    done = resolve(appender15, "--attached" if attached else "--missing", "x")
    assert done.code == 0, done
    assert counts(ch) == {**before, 1: 100} and ch.staging_tables() == []
    assert listed(appender15) == [] and [row["state"] for row in listed(appender15, "--all")][-1] == "done"
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "nothing to do"


@beside_plain
def test_what_can_be_proven_is_finished_without_a_word_from_people(appender15, ch):
    make_table(ch)
    kill_while_it_attaches(appender15, ch)
    assert [row["state"] for row in listed(appender15)] == ["attaching"]
    assert resolve(appender15, "x").code == 0
    assert counts(ch) == {0: 1, 1: 100} and ch.staging_tables() == []


@beside_plain
@pytest.mark.parametrize("words", [True, False])
def test_a_forgotten_append_can_be_done_anew(appender15, store15, ch, words):
    make_table(ch)
    if words:
        kill_while_it_attaches(appender15, ch)
    else:
        kill_before(appender15, store15, "attaching")  # it has staged its rows, and the store knows nothing
        assert listed(appender15) == []
    assert forget(appender15, "x").code == 0
    assert listed(appender15) == [] and ch.staging_tables() == []
    assert appender15.done("--id", "x", "t", input=rows_of(5, 10))["outcome"] == "appended"
    assert counts(ch)[5] == 10 and 1 not in counts(ch)


@beside_plain
def test_without_a_target_what_is_staged_stays(appender15, ch):
    make_table(ch)
    kill_while_it_attaches(appender15, ch)
    assert appender15.holdfast("append", "forget", "x").code == 0
    assert listed(appender15) == [] and len(ch.staging_tables()) == 1
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"  # what is staged says that it had begun
    assert counts(ch) == {0: 1, 1: 100} and ch.staging_tables() == []


@beside_plain
def test_one_that_runs_is_left_alone(appender15, ch):
    make_table(ch)
    key = appender15.done("t", input=rows_of(0, 1))["key"]
    with held_id(ch, f"holdfast-{key}"):
        worker = appender15.start("--id", "x", "--orphans", "wait", "t", "--select",
                                  "SELECT toUInt32(1), number FROM numbers(100)")
        worker.await_line("orphan", "err")
        for how in (resolve, forget):
            refused = how(appender15, "--wait", "0", "x")
            assert refused.code == 75, refused
    assert worker.wait(60) == 0
    assert counts(ch) == {0: 1, 1: 100}


def test_one_that_has_not_begun_to_attach_is_running_too(appender15, ch, tmp_path):
    make_table(ch)
    feed = Feed(tmp_path / "rows")
    worker = appender15.start("--id", "x", "t", feed.path)
    eventually(lambda: ch.staging_tables())
    for how in (resolve, forget):
        refused = how(appender15, "x")
        assert refused.code == 75 and "append x runs already" in refused.err, refused
        assert f"pid {worker.process.pid}" in refused.err, refused
    refused = appender15.holdfast("append", "resolve", "x")
    assert refused.code == 75, refused
    feed.write(rows_of(1, 10))
    feed.end()
    assert worker.wait(60) == 0
    assert resolve(appender15, "x").code == 0 and counts(ch) == {1: 10}


def test_unknown_ids_and_contradictions_are_refused(appender15, ch):
    make_table(ch)
    appender15.done("--id", "known", "t", input=b"")
    for words in (["--to", ch.url()], []):
        for how in ("resolve", "forget"):
            refused = appender15.holdfast("append", how, *words, "nosuch")
            assert refused.code == 64 and "knows no append nosuch" in refused.err, refused
    assert "--to is missing" in appender15.holdfast("append", "resolve", "known").err
    assert resolve(appender15, "--attached", "--missing", "x").code == 64
    assert resolve(appender15).code == 64


def test_tables_may_be_named_like_commands(appender15, ch):
    make_table(ch, "list")
    assert appender15.done(f"{ch.name}.list", input=rows_of(1, 10))["rows"] == 10
    assert counts(ch, "list") == {1: 10}


def test_a_local_store_of_an_earlier_version_knows_its_appends(holdfast, ch, tmp_path):
    make_table(ch)
    appender = Appender(holdfast.at(f"local:{tmp_path / 'store'}"), ch)
    appender.done("--id", "x", "t", input=rows_of(1, 10))
    with contextlib.closing(sqlite3.connect(tmp_path / "store" / "appends.db")) as file, file:
        file.executescript("""
            DROP INDEX appends_attaching_to; ALTER TABLE appends DROP COLUMN server;
            ALTER TABLE appends DROP COLUMN reason;
            CREATE UNIQUE INDEX appends_attaching ON appends (table_name) WHERE state = 'attaching'""")
    assert appender.done("--id", "x", "t", input=rows_of(1, 10))["outcome"] == "nothing to do"
    assert [row["id"] for row in listed(appender, "--all")] == ["x"]
    assert forget(appender, "x").code == 0
    assert appender.done("--id", "x", "t", input=rows_of(2, 10))["outcome"] == "appended"
    assert counts(ch) == {1: 10, 2: 10}
