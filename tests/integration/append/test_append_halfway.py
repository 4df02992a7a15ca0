"""The server is killed in the middle of an ATTACH: some parts of a partition are there when it is started again."""

import os
import shutil

import pytest

import clickhouse
from appending import BLOCK, SMALL_BLOCKS, counts, held_id, make_table, rows_of
from awaiting import eventually

NEVER_MERGED = "MergeTree ORDER BY n SETTINGS max_bytes_to_merge_at_max_space_in_pool = 1, old_parts_lifetime = 1"
PARTS = 4


@pytest.fixture(scope="module")
def clickhouse_server():
    """Not the one that all tests share: it is killed."""
    with clickhouse.ClickHouse("own") as server:
        yield server.start()


def folder(ch, table):
    return ch.server.data / "data" / "data" / ch.name / table


def copy_parts(ch, staged, first_block, count):
    """As ATTACH does: files are linked, and the folders renamed one after the other."""
    owner = os.stat(folder(ch, "t"))
    for number in range(count):
        [source] = folder(ch, staged).glob(f"*_{number + 1}_{number + 1}_0")
        partition = source.name.rsplit("_", 3)[0]
        block = first_block + number
        target = folder(ch, "t") / f"{partition}_{block}_{block}_0"
        shutil.copytree(source, target, copy_function=os.link)
        os.chown(target, owner.st_uid, owner.st_gid)


def attach_halfway(appender15, ch, engine, count):
    """Append x, of which the server has attached `count` parts when it is killed."""
    make_table(ch, engine=engine)
    key = appender15.done("t", input=rows_of(0, 1))["key"]
    eventually(lambda: ch.value("SELECT now() > max(modification_time) FROM system.parts WHERE"
                                " database = currentDatabase() AND table = 't'"), what="its part is of a second before")
    with held_id(ch, f"holdfast-{key}"):
        worker = appender15.start("--id", "x", "--orphans", "wait", "t", "--select",
                                  f"SELECT toUInt32(1), number FROM numbers({PARTS * BLOCK})", max_threads=1,
                                  **SMALL_BLOCKS)
        worker.await_line("orphan", "err")
        worker.kill9()
    [staged] = ch.staging_tables()
    ch.server.kill()
    copy_parts(ch, staged, 2, count)
    ch.server.start()
    assert counts(ch) == {0: 1, **({1: count * BLOCK} if count else {})}


@pytest.mark.parametrize("stranger", [False, True])
@pytest.mark.parametrize("count", [0, 1, PARTS - 1, PARTS])
def test_the_parts_that_are_missing_are_attached_and_no_others(appender15, ch, count, stranger):
    attach_halfway(appender15, ch, NEVER_MERGED, count)
    if stranger:
        ch.sql(f"INSERT INTO t SELECT 2, number FROM numbers({BLOCK})")
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert counts(ch) == {0: 1, 1: PARTS * BLOCK, **({2: BLOCK} if stranger else {})}
    assert ch.staging_tables() == []


@pytest.mark.parametrize("attempt", range(3))
def test_a_server_that_is_killed_as_soon_as_it_is_up_is_not_taken_for_the_one_before(appender15, ch, attempt):
    """Its log is lost with what it has not written yet, and its start is hardly later."""
    ch.server.kill()
    ch.server.start()
    attach_halfway(appender15, ch, NEVER_MERGED, 1)
    assert appender15("--id", "x", "t", input=b"").code in (0, 76)
    assert counts(ch) in ({0: 1, 1: PARTS * BLOCK}, {0: 1, 1: BLOCK})


def test_the_next_append_does_that_as_well(appender15, ch):
    attach_halfway(appender15, ch, NEVER_MERGED, 2)
    result = appender15("--direct", "t", input=rows_of(2, 10))
    assert result.code == 0 and "finished append x" in result.err, result
    assert counts(ch) == {0: 1, 1: PARTS * BLOCK, 2: 10} and ch.staging_tables() == []


def test_where_they_were_merged_at_once_people_say_so_and_the_others_are_attached(appender15, ch):
    attach_halfway(appender15, ch, NEVER_MERGED, 2)
    ch.sql("OPTIMIZE TABLE t FINAL")
    eventually(lambda: not ch.value("SELECT count() FROM system.parts WHERE database = currentDatabase() AND"
                                    " table = 't' AND NOT active"), 60)
    assert appender15("--id", "x", "t", input=b"").code == 76
    assert counts(ch) == {0: 1, 1: 2 * BLOCK}
    ch.sql("ALTER TABLE t DELETE WHERE append = 1")  # they have looked, and make room
    eventually(lambda: counts(ch) == {0: 1})
    result = appender15.holdfast("append", "resolve", "--missing", "--to", ch.url(), "x")
    assert result.code == 0, result
    assert counts(ch) == {0: 1, 1: PARTS * BLOCK} and ch.staging_tables() == []


def test_what_was_dropped_before_the_server_was_started_again_is_not_attached_again(appender15, ch):
    """It gives the numbers of blocks again: the stranger's part looks like one that was there before."""
    attach_halfway(appender15, ch, NEVER_MERGED, PARTS)
    ch.sql("TRUNCATE TABLE t")
    ch.server.kill()
    ch.server.start()
    ch.sql("INSERT INTO t SELECT 2, number FROM numbers(10)")
    result = appender15("--id", "x", "t", input=b"")
    assert result.code == 76 and "dropped" in result.err, result
    assert counts(ch) == {2: 10}
