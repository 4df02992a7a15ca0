"""A worker is killed at any point of a staged append: the rows seen are none or all, and a repeat appends them once."""

import os
import random
import subprocess
import sys

import pytest

from appending import counts, held_id, make_table, rows_of
from appending_beside import beside_plain, beside_strangers
from awaiting import eventually

KILLS = 10  # of either source; three beside strangers, who leave a part in every partition with each write
PARTITIONS, ROWS, BLOCK = 12, 600, 300
BLOCKS = {"max_block_size": BLOCK, "max_insert_block_size": BLOCK, "min_insert_block_size_rows": BLOCK,
          "min_insert_block_size_bytes": 0}
PARTITIONED = f"MergeTree PARTITION BY n % {PARTITIONS} ORDER BY tuple()"


def kill_after(worker, seconds):
    """False: it had ended by itself."""
    try:
        worker.process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        worker.kill9()
        return True


def source_of(kind, number, folder):
    if kind == "select":
        return ["--select", f"SELECT toUInt32({number}), number FROM numbers({ROWS})"
                            " WHERE NOT ignore(sleepEachRow(0.0001))"]
    path = folder / "rows"
    path.write_bytes(rows_of(number, ROWS))
    return [str(path)]


@beside_strangers
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["stream", "select"])
def test_killed_anywhere_none_or_all_is_seen_and_a_repeat_appends_once(appender, ch, tmp_path, kind):
    """After a kill the server may still be at work on what it was sent; what it leaves is never a part."""
    make_table(ch, engine=PARTITIONED)
    seed = int(os.environ.get("SEED", random.randrange(10**9)))
    print(f"seed {seed}: SEED={seed} repeats it")
    dice = random.Random(seed)
    seconds = appender.done("t", *source_of(kind, 0, tmp_path), **BLOCKS)["seconds"]
    expected, outcomes, killed, number = {0: ROWS}, set(), 0, 0
    kills = 3 if ch.strangers else KILLS
    while killed < kills:
        number += 1
        assert number < 10 * KILLS, "hardly any append is killed before it ends"
        source = source_of(kind, number, tmp_path)
        worker = appender.start("--id", f"k{number}", "t", *source, **BLOCKS)
        killed += kill_after(worker, dice.uniform(0, 1.1 * seconds))
        none, all_of_it = dict(expected), {**expected, number: ROWS}
        eventually(lambda: counts(ch) in (none, all_of_it),  # noqa: B023 (called before the next turn)
                   what=f"none or all of the rows of append {number} is seen (seed {seed})")
        expected = all_of_it
        outcomes.add(appender.done("--id", f"k{number}", "t", *source, **BLOCKS)["outcome"])
        assert counts(ch) == expected, f"seed {seed}, append {number}"
        assert ch.staging_tables() == []
    assert "appended" in outcomes, f"seed {seed}"


ONE_BY_ONE = """
import sys, urllib.parse, urllib.request
port, database = sys.argv[1:3]
for partition in sys.argv[3:]:
    words = urllib.parse.urlencode({"database": database, "query": f"ALTER TABLE t ATTACH PARTITION ID '{partition}' FROM s"})
    urllib.request.urlopen(f"http://127.0.0.1:{port}/?{words}", data=b"").read()
    print(partition, flush=True)
"""


def test_control_a_worker_that_attaches_one_partition_after_the_other_leaves_a_part_when_it_is_killed(ch):
    make_table(ch, engine=PARTITIONED)
    make_table(ch, "s", engine=PARTITIONED)
    ch.sql(f"INSERT INTO s SELECT 1, number FROM numbers({ROWS})")
    partitions = [str(number) for number in range(PARTITIONS)]
    with subprocess.Popen([sys.executable, "-c", ONE_BY_ONE, str(ch.server.http_port), ch.name, *partitions],
                          stdout=subprocess.PIPE) as worker:
        worker.stdout.readline()
        worker.kill()
    eventually(lambda: not ch.rows("SELECT query FROM system.processes WHERE query LIKE 'ALTER%'"))
    assert 0 < counts(ch)[1] < ROWS


def test_all_partitions_are_attached_by_one_statement(appender15, ch):
    make_table(ch, engine=PARTITIONED)
    appender15.done("t", input=rows_of(1, ROWS))
    assert attached_by(ch, statements=1)


def attached_by(ch, statements):
    """As the server has written down, a moment later."""
    query = ("SELECT count() AS c FROM system.query_log WHERE type = 2 AND query LIKE 'ALTER%ATTACH PARTITION%'"
             f" AND query LIKE '%`{ch.name}`.`t`%'")
    eventually(lambda: ch.rows("SELECT 1 FROM system.tables WHERE database = 'system' AND name = 'query_log'"))
    eventually(lambda: ch.value(query) >= statements, what=f"{statements} statements are in the log")
    return ch.value(query) == statements


def test_a_server_that_takes_short_statements_only_gets_one_for_each_partition(appender15, ch):
    make_table(ch, engine=PARTITIONED)
    appender15.done("t", input=rows_of(1, ROWS), max_query_size=1000)
    assert counts(ch) == {1: ROWS}
    assert attached_by(ch, statements=PARTITIONS)


@pytest.mark.timeout(300)
def test_thousands_of_partitions_take_more_than_one_statement_and_all_arrive(appender15, ch):
    make_table(ch, engine="MergeTree PARTITION BY n ORDER BY tuple()")
    summary = appender15.done("t", input=rows_of(1, 3000), timeout=240)
    assert (summary["rows"], summary["partitions"]) == (3000, 3000)
    assert counts(ch) == {1: 3000}
    assert attached_by(ch, statements=2)


# --- what is staged may change until it is attached --------------------------------------------------------


@beside_plain
@pytest.mark.parametrize("engine", ["MergeTree ORDER BY tuple()", "ReplacingMergeTree ORDER BY n",
                                    "MergeTree PARTITION BY n % 3 ORDER BY tuple()"])
def test_what_the_server_merged_before_a_repeat_is_attached_once(appender15, store15, ch, engine):
    """As one does that was started again: it knows nothing of merges that were stopped."""
    make_table(ch, engine=engine + " SETTINGS max_bytes_to_merge_at_max_space_in_pool = 1")  # none before it is asked to
    key = appender15.done("t", input=rows_of(0, 1))["key"]
    with held_id(ch, f"holdfast-{key}"):
        worker = appender15.start("--id", "x", "--orphans", "wait", "t", "--select",
                                  "SELECT toUInt32(1), number FROM numbers(3000)", **BLOCKS)
        worker.await_line("orphan", "err")
        worker.kill9()
    [staged] = ch.staging_tables()
    assert ch.value(f"SELECT count() FROM system.parts WHERE table = '{staged}' AND active") > 1
    ch.sql(f"SYSTEM START MERGES {ch.name}.{staged}")
    ch.sql(f"OPTIMIZE TABLE {staged} FINAL")
    outcomes = [appender15.done("--id", "x", "t", input=b"")["outcome"] for _ in range(2)]
    assert outcomes == ["finished", "nothing to do"]
    assert counts(ch) == {0: 1, 1: 3000}
    assert ch.staging_tables() == []
