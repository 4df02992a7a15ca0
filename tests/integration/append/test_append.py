"""Staged appends: contiguous, all or nothing, exactly once, on a real server."""

import contextlib
import json
import os
import pty
import re
import subprocess

import pytest

import cli
from appending import (BLOCK, SMALL_BLOCKS, Stream, Watcher, appends_by_block, counts, end_sleepers, held_id, in_parallel,
                       is_told, kill_before, kill_while_it_attaches, make_table, rows_of, runs_of, sleeping, slow_select,
                       trigger)
from appending_beside import beside_others, beside_plain, beside_strangers
from awaiting import eventually

WORKERS, EACH, BLOCKS = 4, 5, 40


def numbered(worker, turn):
    return worker * EACH + turn


# --- the command ----------------------------------------------------------------------------------------


@beside_strangers
def test_rows_arrive_and_the_summary_says_so(appender, ch):
    make_table(ch)
    summary = appender.done("t", input=rows_of(1, 3000))
    assert summary["table"] == f"{ch.name}.t" and summary["outcome"] == "appended"
    assert (summary["mode"], summary["rows"], summary["parts"], summary["partitions"]) == ("staged", 3000, 1, 1)
    assert summary["bytes"] == len(rows_of(1, 3000)) and summary["id"]
    assert counts(ch) == {1: 3000}
    assert ch.staging_tables() == []


@pytest.mark.parametrize("name", ["JSONEachRow", "CSVWithNames", "TSV", "Native"])
@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_every_format_passes_through(appender15, ch, name, mode):
    make_table(ch)
    rows = "SELECT toUInt32(7) AS append, number AS n FROM numbers(1000)"
    request = ch.server.sql_bytes(f"{rows} FORMAT {name}")
    assert appender15.done(mode, "--format", name, "t", input=request)["rows"] == 1000
    assert counts(ch) == {7: 1000}


def test_files_follow_each_other_with_one_header_and_whole_lines(appender15, ch, tmp_path):
    make_table(ch)
    (tmp_path / "a.csv").write_bytes(b"append,n\n1,1\n1,2")  # its last line has no end
    (tmp_path / "b.csv").write_bytes(b"append,n\r\n1,3\n")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert appender15.done("--format", "CSVWithNames", "t", *files)["rows"] == 3
    assert counts(ch) == {1: 3}
    (tmp_path / "c.csv").write_bytes(b"n,append\n4,1\n")
    refused = appender15("--format", "CSVWithNames", "t", *files, tmp_path / "c.csv")
    assert refused.code == 65 and "c.csv: its columns are not those of" in refused.err
    assert counts(ch) == {1: 3} and ch.staging_tables() == []


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_columns_go_by_the_names_of_the_header(appender15, ch, mode):
    """Servers before 19 take the columns in the table's order, whatever the header says."""
    ch.sql("CREATE TABLE t (a UInt32, b UInt32, c UInt32 DEFAULT 7) ENGINE = MergeTree ORDER BY tuple()")
    assert appender15.done(mode, "--format", "CSVWithNames", "t", input=b'"b", a\r\n1,2\r\n')["rows"] == 1
    assert ch.sql("SELECT a, b, c FROM t") == "2\t1\t7\n"
    refused = appender15(mode, "--format", "CSVWithNames", "t", input=b"a,other\n1,2\n")
    assert refused.code != 0 and "other" in refused.err, refused
    assert ch.sql("SELECT count() FROM t") == "1\n" and ch.staging_tables() == []


def test_the_header_has_the_delimiter_of_the_server(appender15, ch):
    make_table(ch)
    assert appender15.done("--format", "CSVWithNames", "t", input=b"n;append\n1;2\n",
                           format_csv_delimiter=";")["rows"] == 1
    assert counts(ch) == {2: 1}


def test_a_header_that_does_not_come_is_not_awaited_for_ever(appender15, ch, tmp_path):
    make_table(ch)
    os.mkfifo(tmp_path / "rows.csv")
    worker = appender15.start("--format", "CSVWithNames", "t", tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", "wb", buffering=0) as writer:  # once it is read
        writer.write(b"appe")
        worker.process.terminate()
        assert worker.wait(30) == 143
    assert counts(ch) == {} and ch.staging_tables() == []


def test_select_concat_and_create(appender15, ch):
    ddl = "CREATE TABLE t (append UInt32, n UInt64) ENGINE = MergeTree ORDER BY tuple()"
    summary = appender15.done("t", "--create", ddl, "--select", "SELECT toUInt32(1), number FROM numbers(100)")
    assert summary["rows"] == 100
    for number in (2, 3, 4):
        make_table(ch, f"source{number}")
        ch.sql(f"INSERT INTO source{number} SELECT {number}, number FROM numbers(50)")
    ch.sql(f"SYSTEM STOP MERGES {ch.name}.t")
    assert appender15.done("t", "--concat", "source3", "source2", "source4")["rows"] == 150
    assert appends_by_block(ch) == [1, 3, 2, 4]
    assert appender15("t", "--create", ddl, "--select", "SELECT toUInt32(5), number FROM numbers(1)").code == 0


def test_no_rows_are_no_failure(appender15, ch):
    make_table(ch)
    assert appender15.done("t", input=b"")["rows"] == 0
    assert ch.staging_tables() == []


@beside_strangers
def test_rows_of_many_partitions_arrive_together(appender15, ch):
    make_table(ch, engine="MergeTree PARTITION BY n % 5 ORDER BY tuple()")
    summary = appender15.done("t", input=rows_of(1, 1000), **SMALL_BLOCKS)
    assert (summary["rows"], summary["partitions"]) == (1000, 5)
    assert counts(ch) == {1: 1000}


def test_partitions_may_have_long_ids(appender15, ch):
    ch.sql("CREATE TABLE wide (a UInt64, b UInt64, c UInt64, d UInt64) ENGINE = MergeTree PARTITION BY (a, b, c, d)"
           " ORDER BY tuple()")
    most = 2**64 - 1
    rows = "".join(f"{most}\t{most}\t{most}\t{last}\n" for last in (most, most - 1)).encode()
    summary = appender15.done("--format", "TSV", "wide", input=rows)
    assert (summary["rows"], summary["partitions"]) == (2, 2)
    assert ch.value("SELECT count() FROM wide") == 2


def test_engines_of_the_family_are_staged_and_others_direct(appender15, ch):
    make_table(ch, "replacing", "ReplacingMergeTree ORDER BY n")
    make_table(ch, "log", "TinyLog")
    assert appender15.done("replacing", input=rows_of(1, 10))["mode"] == "staged"
    summary = appender15.done("log", input=rows_of(1, 10))
    assert (summary["mode"], summary["rows"], summary["id"]) == ("direct", 10, None)
    refused = appender15("--staged", "log", input=rows_of(1, 10))
    assert refused.code == 78 and "TinyLog" in refused.err


# --- views that a table feeds -------------------------------------------------------------------------------


def feed_view(ch):
    make_table(ch)
    ch.sql("CREATE TABLE totals (append UInt32, c UInt64) ENGINE = SummingMergeTree ORDER BY append")
    ch.sql("CREATE MATERIALIZED VIEW of_t TO totals AS SELECT append, count() AS c FROM t GROUP BY append")


def test_a_table_that_feeds_views_is_appended_to_directly_so_that_they_see_the_rows(appender15, ch):
    feed_view(ch)
    result = appender15("t", input=rows_of(1, 100))
    assert result.code == 0 and json.loads(result.out)["mode"] == "direct", result
    assert f"{ch.name}.t feeds of_t" in result.err
    assert ch.value("SELECT sum(c) FROM totals") == 100
    assert "feeds" not in appender15("--direct", "t", input=rows_of(2, 10)).err


def test_staged_rows_pass_a_view_by_only_where_that_is_asked_for(appender15, ch):
    feed_view(ch)
    refused = appender15("--id", "x", "t", input=rows_of(1, 100))
    assert refused.code == 64 and "--staged" in refused.err, refused
    assert counts(ch) == {}
    result = appender15("--id", "x", "--staged", "t", input=rows_of(1, 100))
    assert result.code == 0 and "of_t" in result.err, result
    assert counts(ch) == {1: 100}
    assert ch.value("SELECT count() FROM totals") == 0


# --- contiguity -----------------------------------------------------------------------------------------


def append_all(appender, mode):
    """4 workers × 5 appends of 40 blocks."""
    def work(worker):
        for turn in range(EACH):
            summary = appender.done(mode, "t", "--select", slow_select(numbered(worker, turn), BLOCKS, 0.0005),
                                    **SMALL_BLOCKS)
            assert is_told(appender.ch, summary["rows"], BLOCKS * BLOCK)

    in_parallel([lambda worker=worker: work(worker) for worker in range(WORKERS)])


@beside_others
@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_appends_of_many_blocks_are_contiguous(appender15, ch, mode):
    make_table(ch)
    append_all(appender15, mode)
    order = appends_by_block(ch)
    # Merges go on in staging tables, so that a staged append has fewer parts in the end.
    assert len(order) == WORKERS * EACH * BLOCKS if mode == "--direct" else len(order) > 2 * WORKERS * EACH
    assert runs_of(order) == WORKERS * EACH
    assert counts(ch) == {number: BLOCKS * BLOCK for number in range(WORKERS * EACH)}


def test_control_without_holdfast_the_same_appends_interleave(ch):
    make_table(ch)

    def work(worker):
        for turn in range(EACH):
            ch.sql(f"INSERT INTO t {slow_select(numbered(worker, turn), BLOCKS, 0.0005)}", **SMALL_BLOCKS)

    in_parallel([lambda worker=worker: work(worker) for worker in range(WORKERS)])
    order = appends_by_block(ch)
    assert len(order) == WORKERS * EACH * BLOCKS
    assert runs_of(order) > WORKERS * EACH


# --- who runs beside whom ----------------------------------------------------------------------------------


def inserts_into(name):
    return lambda query: query.startswith("INSERT") and f"`{name}`" in query


def overlap(ch, calls):
    """How many of each ran at once, as the server saw it."""
    wanted = {
        "staging": lambda query: query.startswith("INSERT") and "holdfast_staging_" in query,
        "attach": lambda query: query.startswith("ALTER") and "`t`" in query,
        "t": inserts_into("t"),
        "u": inserts_into("u"),
    }
    with Watcher(ch, wanted) as watcher:
        in_parallel(calls)
    return watcher


def test_staged_appends_overlap_while_streaming_and_never_while_attaching(appender15, ch):
    make_table(ch)
    seen = overlap(ch, [lambda n=n: appender15.done("t", "--select", slow_select(n, 100), **SMALL_BLOCKS)
                        for n in range(4)])
    assert seen.most["staging"] > 1
    assert seen.most["attach"] <= 1


def test_direct_appends_to_one_table_never_overlap(appender15, ch):
    make_table(ch)
    seen = overlap(ch, [lambda n=n: appender15.done("--direct", "t", "--select", slow_select(n, 40), **SMALL_BLOCKS)
                        for n in range(4)])
    assert seen.most["t"] == 1


def test_direct_appends_to_two_tables_do(appender15, ch):
    make_table(ch)
    make_table(ch, "u")
    seen = overlap(ch, [lambda name=name: appender15.done("--direct", name, "--select", slow_select(1, 200),
                                                          **SMALL_BLOCKS) for name in ("t", "u")])
    assert any({"t", "u"} <= names for names in seen.together)


def test_control_without_the_lock_inserts_into_one_table_overlap(ch):
    make_table(ch)
    seen = overlap(ch, [lambda n=n: ch.sql(f"INSERT INTO `t` {slow_select(n, 40)}", **SMALL_BLOCKS)
                        for n in range(4)])
    assert seen.most["t"] > 1


# --- exactly once ---------------------------------------------------------------------------------------


@beside_strangers
def test_a_repeat_under_the_same_id_does_nothing(appender, ch):
    make_table(ch)
    first = appender.done("--id", "job-1", "t", input=rows_of(1, 100))
    again = appender.done("--id", "job-1", "t", input=rows_of(1, 100))
    assert (first["outcome"], again["outcome"], again["rows"]) == ("appended", "nothing to do", 100)
    assert counts(ch) == {1: 100}


def test_an_id_belongs_to_one_table(appender15, ch):
    make_table(ch)
    make_table(ch, "u")
    appender15.done("--id", "job-1", "t", input=rows_of(1, 10))
    refused = appender15("--id", "job-1", "u", input=rows_of(1, 10))
    assert refused.code == 64 and f"is one to {ch.name}.t" in refused.err


@beside_strangers
def test_what_was_staged_for_one_table_is_not_attached_to_another(appender15, store15, ch):
    make_table(ch)
    make_table(ch, "u")
    kill_before(appender15, store15, "attaching")
    refused = appender15("--id", "x", "u", input=rows_of(2, 10))
    assert refused.code == 64 and f"append x has staged rows for another table than {ch.name}.u" in refused.err, refused
    assert counts(ch, "u") == {}
    assert repeat(appender15, "x", input=b"") == "resumed"
    assert counts(ch) == {1: 100}


@beside_strangers
def test_two_runs_of_one_id_at_once_append_once(appender15, ch):
    make_table(ch)
    outcomes = in_parallel([lambda: appender15.done("--id", "same", "t", input=rows_of(1, 100))["outcome"]] * 4)
    assert sorted(outcomes) == ["appended"] + ["nothing to do"] * 3
    assert counts(ch) == {1: 100}


def repeat(appender, identity, *how, **settings):
    summary = appender.done("--id", identity, "t", *how, **settings)
    assert appender.ch.staging_tables() == []
    return summary["outcome"]


def merge_with_a_stranger(ch):
    ch.sql("INSERT INTO t SELECT 9, number FROM numbers(7)")
    ch.sql(f"SYSTEM START MERGES {ch.name}.t")
    ch.sql("OPTIMIZE TABLE t FINAL")


@beside_strangers
def test_killed_while_rows_come_in_nothing_is_seen_and_a_repeat_appends(appender, ch):
    make_table(ch)
    select = ["--select", slow_select(1, 300)]
    worker = appender.start("--id", "x", "t", *select, **SMALL_BLOCKS)
    eventually(lambda: ch.value("SELECT count() FROM system.parts WHERE database = currentDatabase()"
                                " AND table LIKE 'holdfast_staging%'") > 5)
    worker.kill9()
    assert counts(ch) == {}
    assert repeat(appender, "x", "--select", slow_select(1, 30), **SMALL_BLOCKS) == "appended"
    assert counts(ch) == {1: 300}


@beside_strangers
def test_killed_after_staging_a_repeat_goes_on_from_there(appender, store, ch):
    make_table(ch)
    kill_before(appender, store, "attaching")
    assert counts(ch) == {}
    assert [name.startswith("holdfast_staged_") for name in ch.staging_tables()] == [True]
    # The rows are staged: what is given now is not read.
    assert repeat(appender, "x", input=b"") == "resumed"
    assert counts(ch) == {1: 100}


@beside_strangers
def test_killed_between_attaching_and_its_record_a_repeat_finds_the_rows(appender, store, ch):
    make_table(ch, engine="MergeTree PARTITION BY n % 3 ORDER BY tuple()")
    kill_before(appender, store, "done", rows=99)
    assert counts(ch) == {1: 99}
    assert repeat(appender, "x", input=b"") == "finished"
    assert counts(ch) == {1: 99}


@beside_strangers
def test_killed_before_attaching_but_after_its_record_a_repeat_attaches(appender, store, ch):
    make_table(ch)
    kill_while_it_attaches(appender, ch)
    if not ch.strangers:  # one with the lock has finished it
        assert counts(ch) == {0: 1}
        assert store.value("SELECT state FROM holdfast.appends WHERE id = 'x'") == "attaching"
    assert repeat(appender, "x", input=b"") == "finished"
    assert counts(ch) == {0: 1, 1: 100}


@beside_others
def test_the_next_append_finishes_for_one_that_died_while_it_attached(appender, store, ch):
    make_table(ch)
    kill_while_it_attaches(appender, ch)
    result = appender("--id", "y", "t", input=rows_of(2, 10))
    assert result.code == 0 and (ch.strangers or "finished append x" in result.err), result
    assert appends_by_block(ch) == [0, 1, 2]
    assert repeat(appender, "x", input=b"") == ("finished" if ch.strangers else "nothing to do")
    assert counts(ch) == {0: 1, 1: 100, 2: 10}


@beside_strangers
def test_merges_and_other_writers_do_not_deceive_a_repeat(appender, store, ch):
    """Between the crash and the repeat the parts are merged with those of a stranger."""
    make_table(ch)
    kill_before(appender, store, "done")
    merge_with_a_stranger(ch)
    assert repeat(appender, "x", input=b"") == "finished"
    assert counts(ch) == {1: 100, 9: 7}


def test_control_a_plain_insert_that_is_killed_leaves_a_part_of_its_rows(ch):
    make_table(ch)
    Stream(ch).send(rows_of(1, 100)).cut()
    eventually(lambda: counts(ch) == {1: 100}, what="rows of a cut stream become visible")


@beside_plain
def test_where_nobody_can_tell_it_says_so_and_others_go_on(appender15, store15, ch):
    """The parts were merged, and the rows do not add up: as if the server had forgotten too much."""
    make_table(ch)
    kill_before(appender15, store15, "done")
    store15.sql("UPDATE holdfast.appends SET plan = 'all 0 0 33:7\n' WHERE id = 'x'")
    merge_with_a_stranger(ch)
    other = appender15("t", input=rows_of(2, 10))
    assert other.code == 0 and "append x had died while it attached: nobody can tell" in other.err, other
    again = appender15("--id", "x", "t", input=b"")
    assert again.code == 76 and "holdfast_staged_" in again.err, again
    assert counts(ch) == {1: 100, 2: 10, 9: 7}


# --- sweeping -------------------------------------------------------------------------------------------


@beside_plain
def test_staging_tables_of_the_dead_are_swept_and_those_of_the_living_are_not(appender15, store15, ch):
    make_table(ch)
    dead = appender15.start("t", "--select", slow_select(1, 500), **SMALL_BLOCKS)
    eventually(lambda: len(ch.staging_tables()) == 1)
    dead.kill9()
    living = appender15.start("t", "--select", slow_select(2, 100), **SMALL_BLOCKS)
    eventually(lambda: len(set(ch.staging_tables())) == 1 and living.err and "dropped" in "".join(living.err))
    appender15.done("t", input=rows_of(3, 10))
    assert len(ch.staging_tables()) == 1
    assert living.wait(60) == 0
    assert ch.staging_tables() == []
    assert counts(ch) == {2: 1000, 3: 10}


@beside_strangers
def test_what_a_dead_append_staged_is_kept_for_a_repeat_and_not_for_ever(appender15, store15, ch):
    make_table(ch)
    kill_before(appender15, store15, "attaching")
    appender15.done("t", input=rows_of(2, 10))
    assert len(ch.staging_tables()) == 1
    result = appender15("--keep", "0", "t", input=rows_of(3, 10))
    assert result.code == 0 and "which append x had left complete" in result.err
    assert ch.staging_tables() == []
    assert counts(ch) == {2: 10, 3: 10}


# --- the lock is lost -------------------------------------------------------------------------------------


@beside_strangers
def test_a_lock_lost_while_rows_come_in_ends_it_and_nothing_is_seen(appender, store, ch):
    make_table(ch)
    worker = appender.start("t", "--select", slow_select(1, 1000), **SMALL_BLOCKS)
    eventually(lambda: len(ch.staging_tables()) == 1)
    for pid in store.sessions("holdfast append%"):
        store.server.terminate(pid)
    result = worker.wait_all(20)
    assert result.code == 79, result
    assert counts(ch) == {} and ch.staging_tables() == []


@beside_plain
def test_a_lock_lost_while_it_attaches_is_told_and_a_repeat_attaches_the_rest(appender, store, ch):
    make_table(ch, engine="MergeTree PARTITION BY n % 3 ORDER BY tuple()")
    key = appender.done("t", input=rows_of(0, 1))["key"]
    with held_id(ch, f"holdfast-{key}"):
        worker = appender.start("--id", "x", "--orphans", "wait", "t", "--select",
                                "SELECT toUInt32(1), number FROM numbers(99)")
        worker.await_line("orphan", "err")
        for pid in store.sessions("holdfast append%"):
            store.server.terminate(pid)
        result = worker.wait_all(20)
    assert result.code == 79 and "0 of 3 partitions are attached" in result.err, result
    assert "repeat with --id x" in result.err
    assert counts(ch) == {0: 1}
    assert repeat(appender, "x", input=b"") == "finished"
    assert counts(ch) == {0: 1, 1: 99}


@beside_plain
def test_a_lock_lost_behind_the_last_partition_is_told_with_what_is_there(appender15, store15, ch):
    make_table(ch)
    with trigger(store15, "BEFORE UPDATE", "NEW.state = 'done'", "PERFORM pg_sleep(60)"):
        worker = appender15.start("--id", "x", "t", "--select", "SELECT toUInt32(1), number FROM numbers(100)")
        eventually(lambda: sleeping(store15))
        end_sleepers(store15)
        result = worker.wait_all(20)
    assert result.code == 79 and "all of its rows are in the table" in result.err, result
    assert counts(ch) == {1: 100}
    assert repeat(appender15, "x", input=b"") == "finished"


def test_the_summary_is_one_line_of_json_and_json_errors_are_json(appender15, ch):
    make_table(ch)
    result = appender15("--json", "t", input=rows_of(1, 10))
    assert json.loads(result.out)["rows"] == 10
    failed = appender15("--json", "t", input=b"nonsense\n")
    assert json.loads(failed.err.splitlines()[-1])["error"]["status"] == "HF_BAD_DATA"


def test_a_terminal_gets_a_bar_and_a_pipe_does_not(appender15, ch, tmp_path):
    make_table(ch)
    (tmp_path / "rows").write_bytes(rows_of(1, 400000))
    terminal, end = pty.openpty()
    words = [cli.program(), *appender15.words("t", str(tmp_path / "rows"))]
    with subprocess.Popen(words, env=appender15.holdfast.environment({}), stdout=subprocess.PIPE, stderr=end) as process:
        os.close(end)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := os.read(terminal, 65536):
                shown += piece
        assert process.wait() == 0
    os.close(terminal)
    assert re.search(rb"t \[#* *\] [\d.]+ MB, \d+ rows, [\d.]+ MB/s", shown), shown
    quiet = appender15("t", str(tmp_path / "rows"))
    assert "MB/s" not in quiet.err
