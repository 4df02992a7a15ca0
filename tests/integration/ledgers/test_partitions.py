"""The tables of a network on PostgreSQL and their partitions; driven through network_driver."""

import contextlib

import pytest

import hf
from awaiting import Background
from hf_network import Driver, Network, Refused, fill

TABLES = ["ingest_coverage", "ingest_quarantine", "ingest_store", "ledgers", "transactions"]


@pytest.fixture
def driver(db):
    with Driver(db.url()) as one:
        yield one


@pytest.fixture
def network(db):
    with hf.Store(db.url()) as store, Network(store) as opened:
        yield opened


def tables(db):
    return [name for name, in db.sql("select relname from pg_class where relnamespace = 'ingest_testnet'::regnamespace"
                                     " and relkind in ('r', 'p') and not relispartition order by 1")]


def ranges(driver):
    """{(first, last): "ledgers_x,transactions_x"}"""
    found = {}
    for word in driver("partitions"):
        bounds, _, names = word.partition("=")
        first, last = bounds.split("-")
        found[int(first), int(last)] = names
    return found


# --- tables --------------------------------------------------------------------------------------------


def test_installing_makes_every_table_once(recorded):
    with Driver(recorded.url) as driver:
        assert driver("check") == ["no"]
        driver("install")
        assert driver("check") == ["yes"]
        driver("install")


def test_many_install_at_once(db):
    with contextlib.ExitStack() as stack:
        drivers = [stack.enter_context(Driver(db.url())) for _ in range(6)]
        for call in [Background(one, "install") for one in drivers]:
            call.result(60)
    assert tables(db) == TABLES


def test_both_data_tables_are_partitioned_and_hashes_are_indexed(db, driver):
    driver("install")
    assert db.sql("select partrelid::regclass::text, pg_get_partkeydef(partrelid) from pg_partitioned_table order by 1") \
        == [("ingest_testnet.ledgers", "RANGE (sequence)"), ("ingest_testnet.transactions", "RANGE (to_id)")]
    driver("ensure", 1, 1, 1000)
    assert db.value("select count(*) from pg_indexes where tablename = 'transactions_0' and indexdef like '%(hash)'"
                    " and indexdef not like '%UNIQUE%'") == 1


def test_a_deployed_store_is_adopted_as_it_is(db, driver):
    db.sql("create schema ingest_testnet authorization app; create table ingest_testnet.ingest_store"
           " (key varchar(255) primary key, value varchar(255) not null, more int);"
           " insert into ingest_testnet.ingest_store values ('latestLedgerCursor', '5', 1), ('x', 'y', 2);"
           " alter table ingest_testnet.ingest_store owner to app")
    driver("install")
    assert tables(db) == TABLES
    assert db.sql("select * from ingest_testnet.ingest_store order by key") == \
        [("latestLedgerCursor", "5", 1), ("x", "y", 2)]


@pytest.mark.parametrize("made, complaint", [
    ("ingest_store (key int primary key, value text)", "ingest_store has another shape: its column key has another"),
    ("ingest_store (key text primary key)", "ingest_store has another shape: it has no column value"),
    ("ingest_store (key text, value text)", 'ingest_store has no unique key on "key"'),
    ("ingest_store (key text primary key, value text, more int not null)", "its column more has neither NULL nor"),
    ("transactions (to_id bigint primary key, hash text)", "transactions has another shape: it has no column"),
    ("ingest_coverage (lo int primary key, hi bigint)", "its column lo has another type"),
])
def test_tables_of_another_shape_are_refused_by_what_differs(db, driver, made, complaint):
    db.sql(f"create schema ingest_testnet authorization app; create table ingest_testnet.{made}")
    with pytest.raises(Refused, match="HF_CONFIG") as refused:
        driver("install")
    assert complaint in refused.value.message
    assert len(tables(db)) == 1


def test_a_local_table_of_another_shape_is_refused(tmp_path):
    with hf.Store(f"local:{tmp_path}") as store, Network(store) as network:
        network.sql("create table ledgers (sequence integer primary key)")
    with Driver(f"local:{tmp_path}") as driver, pytest.raises(Refused, match="HF_CONFIG.*ledgers has another shape"):
        driver("install")


def test_plain_tables_that_fit_are_taken_without_partitions(db, driver, network):
    db.sql("create schema ingest_testnet authorization app;"
           " create table ingest_testnet.ledgers (sequence bigint primary key, hash text, previous_hash varchar(64),"
           " closed_at timestamp, transaction_count bigint);"
           " create table ingest_testnet.transactions (to_id bigint primary key, ledger_number int,"
           " application_order int, hash text, status text, fee bigint, closed_at timestamptz, body jsonb);"
           " alter table ingest_testnet.ledgers owner to app; alter table ingest_testnet.transactions owner to app")
    driver("install")
    driver("ensure", 1, 5000, 1000)
    assert driver("partitions") == []
    fill(network, [1, 4000])


# --- partitions ----------------------------------------------------------------------------------------


def test_the_local_store_has_none(tmp_path):
    with Driver(f"local:{tmp_path}") as driver:
        driver("install")
        driver("ensure", 1, 5000, 1000)
        assert driver("partitions") == []


def test_partitions_are_aligned_and_of_equal_ledgers(driver, network):
    driver("install")
    driver("ensure", 1500, 3200, 1000)
    assert ranges(driver) == {(1000, 1999): "ledgers_1000,transactions_1000",
                              (2000, 2999): "ledgers_2000,transactions_2000",
                              (3000, 3999): "ledgers_3000,transactions_3000"}
    fill(network, [1000, 1999, 2000, 3999], transactions=2)
    counts = network.sql("select tableoid::regclass::text, count(*) from @transactions group by 1 order by 1")
    assert [(name.split(".")[1], int(count)) for name, count in counts] == \
        [("transactions_1000", 4), ("transactions_2000", 2), ("transactions_3000", 2)]


def test_ensuring_twice_creates_nothing(db, driver):
    driver("install")
    driver("ensure", 1, 2500, 1000)
    before = db.sql("select oid from pg_class order by 1")
    driver("ensure", 500, 2999, 1000)
    assert db.sql("select oid from pg_class order by 1") == before


def test_bounds_of_another_width_are_respected(driver):
    driver("install")
    driver("ensure", 0, 99, 100)
    driver("ensure", 300, 449, 150)
    driver("ensure", 0, 1999, 1000)
    assert list(ranges(driver)) == [(0, 99), (100, 299), (300, 449), (450, 999), (1000, 1999)]


def test_only_what_lacks_a_partition_gets_one(driver):
    """A window within what is there needs nothing, whatever the grid says."""
    driver("install")
    driver("ensure", 0, 99, 100)
    driver("ensure", 10, 90, 1000)
    assert list(ranges(driver)) == [(0, 99)]


def test_half_a_pair_is_completed(db, driver):
    driver("install")
    driver("ensure", 0, 99, 100)
    db.sql("drop table ingest_testnet.transactions_0")
    assert ranges(driver) == {(0, 99): "ledgers_0,"}
    driver("ensure", 0, 99, 100)
    assert ranges(driver) == {(0, 99): "ledgers_0,transactions_0"}


def test_partitions_reach_the_last_ledger(driver, network):
    last = 2**31 - 1
    driver("install")
    driver("ensure", last, last, 131072)
    assert list(ranges(driver)) == [(last - 131071, last)]
    fill(network, [last])
    driver("ensure", 0, last, 2**40)
    assert list(ranges(driver)) == [(0, last - 131072), (last - 131071, last)]


@pytest.mark.parametrize("window", [(5, 4, 10), (-1, 4, 10), (1, 2**31, 10), (1, 5, 0), (1, 2**31 - 1, 10)])
def test_a_window_that_makes_no_sense_is_refused(driver, window):
    driver("install")
    with pytest.raises(Refused, match="HF_INVALID"):
        driver("ensure", *window)
    assert driver("partitions") == []


def test_a_table_in_the_way_is_named(db, driver):
    driver("install")
    db.sql("create table ingest_testnet.ledgers_0 (x int)")
    with pytest.raises(Refused, match="HF_CONFIG.*ingest_testnet.ledgers_0 is in the way"):
        driver("ensure", 0, 99, 100)
    assert driver("partitions") == []


def test_many_who_ensure_at_once_agree(db, driver):
    driver("install")
    with contextlib.ExitStack() as stack:
        drivers = [stack.enter_context(Driver(db.url())) for _ in range(5)]
        for call in [Background(one, "ensure", 0, 1999, 100) for one in drivers]:
            call.result(60)
    assert list(ranges(driver)) == [(first, first + 99) for first in range(0, 2000, 100)]


def test_neither_readers_nor_writers_are_in_the_way(db, driver, network):
    """CREATE TABLE … PARTITION OF would wait for both, and everybody else behind it."""
    driver("install")
    driver("ensure", 0, 99, 100)
    with contextlib.closing(db.connect(autocommit=False)) as reader, \
            contextlib.closing(db.connect(autocommit=False)) as writer:
        reader.cursor().execute("select count(*) from ingest_testnet.transactions, ingest_testnet.ledgers")
        writer.cursor().execute("insert into ingest_testnet.ledgers values (1, 'h', null, now(), 0)")
        writer.cursor().execute("insert into ingest_testnet.transactions values (1, 1, 1, 'h', null, null, now())")
        driver("ensure", 100, 199, 100)
        writer.commit()
    fill(network, [150])


def test_a_dropped_partition_is_gone_and_the_rest_stays(driver, network):
    driver("install")
    driver("ensure", 0, 299, 100)
    fill(network, [50, 150])
    driver("drop", 0)
    assert list(ranges(driver)) == [(100, 199), (200, 299)]
    assert network.sql("select sequence from @ledgers") == [["150"]]


def test_a_drop_that_is_cut_in_the_middle_is_finished_by_the_next(db, driver):
    driver("install")
    driver("ensure", 0, 199, 100)
    db.sql("drop table ingest_testnet.transactions_0")
    driver("drop", 0)
    assert list(ranges(driver)) == [(100, 199)]


def test_a_partition_in_use_is_not_dropped_and_nobody_waits_behind_the_attempt(db, driver):
    driver("install")
    driver("ensure", 0, 99, 100)
    with contextlib.closing(db.connect(autocommit=False)) as reader:
        reader.cursor().execute("select count(*) from ingest_testnet.transactions")
        drop = Background(driver, "drop", 0)
        while drop.running:
            db.sql("set statement_timeout = '10s'; select count(*) from ingest_testnet.transactions")
        with pytest.raises(Refused, match="HF_NOT_ACQUIRED.*transactions_0 is in use"):
            drop.result()
    driver("drop", 0)
    assert driver("partitions") == []


def test_a_parent_that_is_partitioned_by_something_else_is_refused(db, driver):
    db.sql("create schema ingest_testnet authorization app; create table ingest_testnet.ledgers (sequence bigint,"
           " hash text, previous_hash text, closed_at timestamptz, transaction_count int) partition by range (closed_at);"
           " create table ingest_testnet.l1 partition of ingest_testnet.ledgers for values from ('2024-01-01') to"
           " ('2025-01-01'); alter table ingest_testnet.ledgers owner to app")
    with pytest.raises(Refused, match="HF_CONFIG.*not partitioned by ledger"):
        driver("partitions")


def test_partitions_that_others_have_made_are_kept_and_told_apart(db, driver):
    """One without a lower bound, one for all the rest, one elsewhere, and one with a quote in its name."""
    driver("install")
    db.sql("create schema elsewhere; create table ingest_testnet.first partition of ingest_testnet.ledgers"
           " for values from (minvalue) to (100); create table elsewhere.theirs partition of ingest_testnet.ledgers"
           " for values from (100) to (200); create table ingest_testnet.\"a\"\"b\" partition of ingest_testnet.ledgers"
           " for values from (200) to (300); create table ingest_testnet.rest partition of ingest_testnet.ledgers default;"
           " alter table ingest_testnet.\"a\"\"b\" owner to app")
    assert [word.partition("=")[2] for word in driver("partitions")] == ["first,", 'a"b,']
    driver("drop", 200)
    assert db.value("select to_regclass('ingest_testnet.\"a\"\"b\"')") is None
    assert db.value("select to_regclass('elsewhere.theirs')") is not None


@pytest.mark.parametrize("bounds", ["from ('a') to ('b')", "from ('-') to ('2')", "from ('5') to ('b')"])
def test_bounds_that_are_no_numbers_are_refused(db, driver, bounds):
    db.sql("create schema ingest_testnet authorization app; create table ingest_testnet.transactions (to_id text)"
           " partition by range (to_id); create table ingest_testnet.t1 partition of ingest_testnet.transactions"
           f" for values {bounds}; alter table ingest_testnet.transactions owner to app")
    with pytest.raises(Refused, match="HF_CONFIG.*not partitioned by ledger"):
        driver("partitions")


def test_a_parent_that_is_partitioned_by_a_list_is_refused(db, driver):
    db.sql("create schema ingest_testnet authorization app; create table ingest_testnet.ledgers (sequence bigint)"
           " partition by list (sequence); create table ingest_testnet.l1 partition of ingest_testnet.ledgers"
           " for values in (1, 2); alter table ingest_testnet.ledgers owner to app")
    with pytest.raises(Refused, match="HF_CONFIG.*not partitioned by ledger"):
        driver("partitions")
