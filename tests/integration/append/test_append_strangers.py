"""Between a crash and its repeat others write to the table: by Holdfast, under its lock, or without a word to anybody."""

import os
import signal

import pytest

import clickhouse
import hf
import hf_table
from appending import SMALL_BLOCKS, Appender, Feed, counts, kill_before, kill_while_it_attaches, make_table, rows_of
from awaiting import eventually

ROWS = 100  # as many as append x has, of the same size


def forget_log(ch):
    """As a server is that keeps no log of queries, or has lost it."""
    ch.sql("SYSTEM FLUSH LOGS")
    ch.sql("TRUNCATE TABLE IF EXISTS system.query_log")


def keep_log(_):
    pass


def appended_directly(appender, _):
    result = appender("--direct", "t", input=rows_of(2, ROWS))
    assert result.code == 0, result


def written_under_the_lock(appender, store):
    with hf.Store(store.url()) as opened, hf_table.lock(opened, f"{appender.ch.name}.t", wait_ms=10000):
        appender.ch.sql(f"INSERT INTO t SELECT 2, number FROM numbers({ROWS})")


def written_without_it(appender, _):
    appender.ch.sql(f"INSERT INTO t SELECT 2, number FROM numbers({ROWS})")


WRITERS = [appended_directly, written_under_the_lock, written_without_it]
LOGS = [keep_log, forget_log]


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("write", WRITERS)
def test_rows_of_others_are_not_taken_for_those_of_an_append_that_never_attached(appender15, store15, ch, write, log):
    make_table(ch)
    kill_while_it_attaches(appender15, ch)
    log(ch)
    write(appender15, store15)
    summary = appender15.done("--id", "x", "t", input=b"")
    assert summary["outcome"] == ("nothing to do" if write is appended_directly else "finished")
    assert counts(ch) == {0: 1, 1: ROWS, 2: ROWS} and ch.staging_tables() == []


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("write", WRITERS)
def test_an_append_that_had_attached_finds_its_rows_beside_those_of_others(appender15, store15, ch, write, log):
    make_table(ch)
    kill_before(appender15, store15, "done")
    log(ch)
    write(appender15, store15)
    appender15.done("--id", "x", "t", input=b"")
    assert counts(ch) == {1: ROWS, 2: ROWS} and ch.staging_tables() == []


@pytest.mark.parametrize("settings", [{}, {"log_queries": 0}])
def test_the_very_same_rows_of_a_stranger_are_not_taken_for_the_append_s(appender15, ch, settings):
    """The log of queries tells: nothing else could. Where the server logs none, it logs ours."""
    make_table(ch)
    kill_while_it_attaches(appender15, ch, **settings)
    ch.sql(f"INSERT INTO t SELECT 1, number FROM numbers({ROWS})")
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert ch.value("SELECT count() FROM t WHERE append = 1") == 2 * ROWS


# --- the store went back --------------------------------------------------------------------------------------


def go_back(store):
    """As a standby that lagged is when it is promoted: it never heard of the append."""
    store.sql("DELETE FROM holdfast.appends")


@pytest.mark.parametrize("write", [None, *WRITERS])
def test_what_a_store_that_went_back_has_forgotten_is_not_attached_twice(appender15, store15, ch, write):
    make_table(ch)
    kill_before(appender15, store15, "done")
    go_back(store15)
    if write:
        write(appender15, store15)
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert counts(ch) == {1: ROWS, **({2: ROWS} if write else {})} and ch.staging_tables() == []
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "nothing to do"


@pytest.mark.parametrize("write", [None, *WRITERS])
def test_what_was_never_attached_is_attached_though_the_store_went_back(appender15, store15, ch, write):
    make_table(ch)
    kill_while_it_attaches(appender15, ch)
    go_back(store15)
    if write:
        write(appender15, store15)
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert counts(ch) == {0: 1, 1: ROWS, **({2: ROWS} if write else {})} and ch.staging_tables() == []


def test_without_a_log_a_store_that_went_back_leaves_people_to_tell(appender15, store15, ch):
    """Rows that are there can be told; that they are not there cannot, since nobody knows which table it was."""
    make_table(ch)
    kill_while_it_attaches(appender15, ch)
    go_back(store15)
    forget_log(ch)
    result = appender15("--id", "x", "t", input=b"")
    assert result.code == 76 and "append resolve" in result.err, result
    assert counts(ch) == {0: 1}
    resolved = appender15.holdfast("append", "resolve", "--missing", "--to", ch.url(), "x")
    assert resolved.code == 0, resolved
    assert counts(ch) == {0: 1, 1: ROWS} and ch.staging_tables() == []


@pytest.mark.parametrize("own_pg", ["15"], indirect=True)
def test_a_standby_that_lagged_and_was_promoted_is_such_a_store(own_pg, own_db, holdfast, ch):
    hf.install(own_db.url())
    make_table(ch)
    with own_pg.make_standby() as standby:
        hosts = f"127.0.0.1:{own_pg.port},127.0.0.1:{standby.port}"
        appender = Appender(holdfast.at(f"postgresql://app@{hosts}/{own_db.name}"), ch)
        appender.done("t", input=rows_of(0, 1))
        standby.stop_following(own_pg)
        kill_before(appender, own_db, "done")
        own_pg.kill9()
        standby.promote()
        ch.sql(f"INSERT INTO t SELECT 2, number FROM numbers({ROWS})")
        assert appender.done("--id", "x", "t", input=b"")["outcome"] == "finished"
        assert counts(ch) == {0: 1, 1: ROWS, 2: ROWS} and ch.staging_tables() == []


@pytest.mark.parametrize("stranger", [False, True])
@pytest.mark.parametrize("own_pg", ["15"], indirect=True)
def test_a_store_that_does_not_wait_for_its_disk_forgets_no_append_in_a_crash(own_pg, own_db, holdfast, ch, stranger):
    """synchronous_commit is off for the role, and the WAL writer is stopped; a remembered append is not done again."""
    hf.install(own_db.url())
    own_pg.sql(f"alter role app in database {own_db.name} set synchronous_commit = off")
    make_table(ch)
    appender = Appender(holdfast.at(own_db.url()), ch)
    os.kill(own_pg.value("select pid from pg_stat_activity where backend_type = 'walwriter'"), signal.SIGSTOP)
    key = appender.done("--id", "x", "t", input=rows_of(1, ROWS))["key"]
    own_pg.kill9()
    own_pg.start()
    if stranger:
        ch.sql(f"INSERT INTO t SELECT 2, number FROM numbers({ROWS})")
        assert appender.done("t", input=rows_of(3, 1))["key"] == key  # the table's lock is still the same one
    assert appender.done("--id", "x", "t", input=rows_of(1, ROWS))["outcome"] == "nothing to do"
    assert counts(ch) == {1: ROWS, **({2: ROWS, 3: 1} if stranger else {})}


# --- the parts are changed --------------------------------------------------------------------------------


SHORT = "MergeTree ORDER BY tuple() SETTINGS old_parts_lifetime = 1"


def await_forgotten(ch):
    """The server shows what it has replaced for a while."""
    eventually(lambda: not ch.value("SELECT count() FROM system.parts WHERE database = currentDatabase() AND"
                                    " table = 't' AND NOT active"), 60, "the parts that were replaced are gone")


def mutate(ch):
    ch.sql(f"SYSTEM START MERGES {ch.name}.t")
    ch.sql("ALTER TABLE t DELETE WHERE n = 3")
    eventually(lambda: ch.value("SELECT count() FROM t") == ROWS - 1)


def merge(ch):
    ch.sql("INSERT INTO t SELECT 9, number FROM numbers(7)")
    ch.sql(f"SYSTEM START MERGES {ch.name}.t")
    ch.sql("OPTIMIZE TABLE t FINAL")


def alter(ch):
    ch.sql("ALTER TABLE t MODIFY COLUMN n UInt32")  # this server rewrites parts in place


def drop(ch):
    ch.sql(f"SYSTEM START MERGES {ch.name}.t")
    ch.sql("ALTER TABLE t DROP PARTITION ID 'all'")


@pytest.mark.parametrize("change", [mutate, merge, alter, drop])
def test_changed_parts_are_told_by_the_log_or_doubted_but_never_attached_twice(appender15, store15, ch, change):
    make_table(ch, engine=SHORT)
    kill_before(appender15, store15, "done")
    change(ch)
    await_forgotten(ch)
    before = counts(ch)
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert counts(ch) == before and ch.staging_tables() == []


@pytest.mark.parametrize("change", [mutate, merge, alter])
def test_without_a_log_changed_parts_are_doubted(appender15, store15, ch, change):
    make_table(ch, engine=SHORT)
    kill_before(appender15, store15, "done")
    change(ch)
    await_forgotten(ch)
    forget_log(ch)
    before = counts(ch)
    result = appender15("--id", "x", "t", input=b"")
    assert result.code == 76 and "append resolve" in result.err, result
    assert counts(ch) == before and len(ch.staging_tables()) == 1
    appender15.done("t", input=rows_of(5, 10))  # it is in nobody's way
    assert counts(ch) == {**before, 5: 10}


def truncate(ch):
    ch.sql(f"SYSTEM START MERGES {ch.name}.t")
    ch.sql("TRUNCATE TABLE t")


def detach(ch):
    ch.sql(f"SYSTEM START MERGES {ch.name}.t")
    ch.sql("ALTER TABLE t DETACH PARTITION ID 'all'")


@pytest.mark.parametrize("change", [drop, truncate, detach])
@pytest.mark.parametrize("stranger", [False, True])
def test_without_a_log_what_somebody_has_dropped_is_not_attached_again(appender15, store15, ch, change, stranger):
    """That it is not there does not prove that it was never there."""
    make_table(ch, engine=SHORT)
    appender15.done("t", input=rows_of(0, 1))
    kill_before(appender15, store15, "done")
    forget_log(ch)
    change(ch)
    await_forgotten(ch)
    if stranger:
        ch.sql(f"INSERT INTO t SELECT 2, number FROM numbers({ROWS})")
    before = counts(ch)
    result = appender15("--id", "x", "t", input=b"")
    assert result.code == 76 and "dropped" in result.err and "append resolve" in result.err, result
    assert counts(ch) == before and len(ch.staging_tables()) == 1
    resolved = appender15.holdfast("append", "resolve", "--attached", "--to", ch.url(), "x")
    assert resolved.code == 0, resolved
    assert counts(ch) == before and ch.staging_tables() == []


@pytest.mark.parametrize("change", [merge, mutate])
def test_without_a_log_parts_that_the_server_still_shows_prove_that_nothing_was_attached(appender15, ch, change):
    make_table(ch)
    kill_while_it_attaches(appender15, ch)
    forget_log(ch)
    ch.sql(f"INSERT INTO t SELECT 2, number FROM numbers({ROWS - 1})")
    change(ch)
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert counts(ch)[1] == ROWS


# --- another table, another server ------------------------------------------------------------------------


def test_a_table_that_was_made_anew_does_not_get_the_rows_of_the_old_one(appender15, store15, ch):
    make_table(ch)
    old = ch.value("SELECT toUnixTimestamp(metadata_modification_time) FROM system.tables WHERE name = 't'"
                   " AND database = currentDatabase()")
    kill_while_it_attaches(appender15, ch)
    ch.sql("DROP TABLE t")
    eventually(lambda: ch.value("SELECT toUnixTimestamp(now())") > old)
    make_table(ch)
    result = appender15("t", input=rows_of(2, 10))
    assert result.code == 0 and "altered or made anew" in result.err, result
    again = appender15("--id", "x", "t", input=b"")
    assert again.code == 76, again
    assert counts(ch) == {2: 10}


@pytest.fixture
def other_server():
    with clickhouse.ClickHouse("other") as server:
        yield server.start()


def test_servers_that_share_a_store_and_a_name_do_not_settle_each_other_s_appends(
        holdfast, appender15, store15, ch, other_server):
    other_server.sql(f"CREATE DATABASE {ch.name}")
    there = clickhouse.ClickHouseDatabase(other_server, ch.name)
    elsewhere = Appender(holdfast.at(store15.url()), there)
    for database in (ch, there):
        make_table(database)
    kill_while_it_attaches(appender15, ch)
    there.sql(f"INSERT INTO t SELECT 1, number FROM numbers({ROWS})")
    elsewhere.done("--id", "y", "t", input=rows_of(2, 10))
    elsewhere.done("--direct", "t", input=rows_of(3, 10))
    for where, identity in ((elsewhere, "x"), (appender15, "y")):
        refused = where("--id", identity, "t", input=b"")
        assert refused.code == 64 and "and this is" in refused.err, refused
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert counts(ch) == {0: 1, 1: ROWS}
    assert counts(there) == {1: ROWS, 2: 10, 3: 10}


# --- the server refuses the parts -------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, SMALL_BLOCKS])  # of one part, and of several
def test_an_append_whose_table_was_altered_meanwhile_is_in_nobodys_way(appender15, store15, ch, tmp_path, settings):
    make_table(ch)
    feed = Feed(tmp_path / "rows")
    worker = appender15.start("--id", "x", "t", feed.path, **settings)
    feed.write(rows_of(1, 50))
    eventually(ch.staging_tables)
    ch.sql("ALTER TABLE t ADD COLUMN more UInt8")
    feed.end()
    result = worker.wait_all(60)
    assert result.code == 125 and "0 of 1 partitions are attached" in result.err and "forget" in result.err, result
    assert store15.sql("SELECT state FROM holdfast.appends") == []
    appender15.done("--id", "y", "t", input=rows_of(2, 10))
    appender15.done("--direct", "t", input=rows_of(3, 10))
    assert counts(ch) == {2: 10, 3: 10}


def test_one_that_died_and_is_refused_now_is_in_nobodys_way_either(appender15, store15, ch):
    make_table(ch)
    kill_while_it_attaches(appender15, ch)
    [staged] = ch.staging_tables()
    ch.sql(f"ALTER TABLE {staged} ADD COLUMN more UInt8")
    result = appender15("--direct", "t", input=rows_of(2, 10))
    assert result.code == 0 and "append x, which had died while it attached, cannot be finished" in result.err, result
    assert store15.sql("SELECT id FROM holdfast.appends WHERE state = 'attaching'") == []
    assert counts(ch) == {0: 1, 2: 10} and len(ch.staging_tables()) == 1


# --- other stores -----------------------------------------------------------------------------------------


def test_the_staging_table_of_a_living_append_by_way_of_another_store_is_not_swept(holdfast, appender15, ch, tmp_path):
    """Only its own store knows that it is alive."""
    make_table(ch)
    elsewhere = Appender(holdfast.at(f"local:{tmp_path / 'store'}"), ch)
    feed = Feed(tmp_path / "rows")
    living = elsewhere.start("--id", "same", "t", feed.path)
    feed.write(rows_of(1, 10))
    eventually(ch.staging_tables)
    assert appender15.done("--keep", "0", "t", input=rows_of(2, 10))["rows"] == 10
    assert appender15.done("--id", "same", "t", input=rows_of(3, 10))["outcome"] == "appended"
    assert len(ch.staging_tables()) == 1
    feed.end()
    assert living.wait(60) == 0
    assert counts(ch) == {1: 10, 2: 10, 3: 10} and ch.staging_tables() == []


@pytest.mark.parametrize("host, warned", [("127.0.0.1", False), ("0.0.0.0", True)])
def test_a_local_store_with_a_server_elsewhere_is_warned_of(holdfast, ch, tmp_path, host, warned):
    make_table(ch)
    url = f"clickhouse+http://default@{host}:{ch.server.http_port}/{ch.name}"
    result = holdfast.at(f"local:{tmp_path / 'store'}")("append", "--to", url, "t", input=rows_of(1, 10))
    assert result.code == 0 and ("appends of other hosts" in result.err) == warned, result
