"""A large file is streamed in two, and is one append all the same."""

import os
import signal

import pytest

from appending import counts, make_table
from appending_beside import beside_others
from awaiting import eventually

ROWS = 2_000_000  # 19 MB
BLOCKS = {"max_insert_block_size": 100_000, "min_insert_block_size_rows": 100_000, "min_insert_block_size_bytes": 0}


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.tsv"
    path.write_text("".join(f"1\t{n}\n" for n in range(ROWS)))
    return path


def make_slow_table(ch, more=""):
    """It takes its time for every block: two streams that are at work at once are seen, however busy the machine."""
    ch.sql(f"CREATE TABLE t (append UInt32, n UInt64{more}, slow UInt8 MATERIALIZED sleep(0.3))"
           " ENGINE = MergeTree ORDER BY tuple()")
    if ch.strangers:
        ch.strangers.begin("t", "MergeTree")


def streams(ch):
    return ch.rows("SELECT query_id FROM system.processes WHERE query LIKE 'INSERT INTO%'"
                   " AND query_id LIKE 'holdfast\\\\_staging%' AND query_id NOT LIKE '%stranger%'")


@beside_others
def test_its_rows_stand_in_the_order_of_the_file(appender, ch, rows_file):
    make_slow_table(ch)
    worker = appender.start("--format", "TSV", "t", rows_file, **BLOCKS)
    eventually(lambda: len(streams(ch)) == 2, 30, "two streams at once")
    assert worker.wait(60) == 0
    assert counts(ch) == {1: ROWS} and ch.staging_tables() == []
    parts = ch.rows("SELECT _part AS part, min(n) AS low, max(n) AS high, groupArray(n) = arraySort(groupArray(n)) AS in_order"
                    " FROM t WHERE append = 1 GROUP BY _part SETTINGS max_threads = 1")
    order = {part["name"]: part["min_block_number"] for part in ch.rows(
        f"SELECT name, min_block_number FROM system.parts WHERE database = '{ch.name}' AND table = 't'")}
    parts.sort(key=lambda part: order[part["part"]])
    assert all(part["in_order"] for part in parts), parts  # what was merged while it was staged
    assert all(int(a["high"]) < int(b["low"]) for a, b in zip(parts, parts[1:])), parts


def test_many_partitions_are_joined_too(appender15, ch, rows_file):
    make_table(ch, engine="MergeTree PARTITION BY n % 3 ORDER BY tuple()")
    summary = appender15.done("--format", "TSV", "t", rows_file)
    assert (summary["rows"], summary["partitions"]) == (ROWS, 3)
    assert summary["bytes"] == os.path.getsize(rows_file)
    assert counts(ch) == {1: ROWS}


@pytest.mark.parametrize("line", [7, ROWS - 7])
def test_a_row_that_does_not_parse_is_named_by_its_line(appender15, ch, rows_file, tmp_path, line):
    make_table(ch)
    lines = rows_file.read_text().splitlines(keepends=True)
    lines[line - 1] = "1\tno number\n"
    (tmp_path / "bad.tsv").write_text("".join(lines))
    refused = appender15("--format", "TSV", "t", tmp_path / "bad.tsv")
    assert refused.code == 65 and f"bad.tsv, line {line}:" in refused.err, refused
    assert counts(ch) == {} and ch.staging_tables() == []


def test_what_looks_like_a_row_s_end_inside_of_a_text_is_none(appender15, ch, tmp_path):
    ch.sql("CREATE TABLE t (append UInt32, n UInt64, text String) ENGINE = MergeTree ORDER BY tuple()")
    text = "x}\n{" * 1000  # not escaped: ClickHouse takes it
    (tmp_path / "rows.json").write_text("".join(f'{{"append":1,"n":{n},"text":"{text}"}}\n' for n in range(5000)))
    assert appender15.done("t", tmp_path / "rows.json")["rows"] == 5000
    assert ch.sql("SELECT uniqExact(text), any(length(text)) FROM t") == "1\t4000\n"
    assert counts(ch) == {1: 5000} and ch.staging_tables() == []


def test_parts_are_as_large_as_the_server_is_set_to_make_them(appender15, ch, rows_file):
    """However few rows it is given to parse at a time."""
    make_table(ch)
    assert appender15.done("--direct", "--format", "TSV", "t", rows_file)["rows"] == ROWS
    sizes = ch.rows(f"SELECT rows FROM system.parts WHERE database = '{ch.name}' AND table = 't' ORDER BY rows DESC")
    assert [int(part["rows"]) for part in sizes] == [1 << 20, ROWS - (1 << 20)]


def test_csv_goes_in_two_with_its_header_on_both(appender15, ch, tmp_path):
    make_slow_table(ch, ", text String")
    text = '\n1,2,""x""\n' * 400  # lines that look like rows, in quotes
    (tmp_path / "rows.csv").write_text(
        "append,n,text\n" + "".join(f'1,{n},"{text}"\n' for n in range(5000)))
    worker = appender15.start("--format", "CSVWithNames", "t", tmp_path / "rows.csv")
    eventually(lambda: len(streams(ch)) == 2, 30, "two streams at once")
    assert worker.wait(60) == 0
    assert ch.sql("SELECT uniqExact(text), any(length(text)), uniqExact(n) FROM t") == "1\t3600\t5000\n"
    assert counts(ch) == {1: 5000} and ch.staging_tables() == []


@beside_others
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_one_that_ends_while_both_stream_leaves_nothing(appender, ch, rows_file, end):
    make_slow_table(ch)
    words = ["--id", "one", "--format", "TSV", "t", rows_file]
    worker = appender.start(*words, **BLOCKS)
    eventually(lambda: len(streams(ch)) == 2, 30, "two streams at once")
    worker.process.send_signal(end)
    assert worker.wait(60) != 0
    assert counts(ch) == {}
    assert appender.done(*words)["rows"] == ROWS
    assert counts(ch) == {1: ROWS} and ch.staging_tables() == []
