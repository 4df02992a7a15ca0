"""holdfast retention: old ledgers go, nobody waits for it, and coverage never claims what is gone."""

import contextlib
import json
import signal

import pytest

from awaiting import Background, eventually
from cli import EXIT_CONFIG, EXIT_DATA, EXIT_NOT_ACQUIRED, EXIT_USAGE
from ingesting import on_servers
from ledgers import chain, ledger


def partitions(world):
    """First ledgers of the partitions that have any rows or may have some, by table."""
    rows = world.kind.database.sql(
        "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass",
        f"{world.network.schema}.transactions")
    return sorted(int(row[0].rpartition("_")[2]) for row in rows)


# --- what is kept -------------------------------------------------------------------------------------


def test_the_last_ledgers_are_kept_by_number(world):
    world.ingest(1, 3500)
    done = world.json("retention", "--keep", "1200-ledgers")
    assert (done["floor"], done["oldest_before"], done["oldest"], done["latest"]) == (2301, 1, 2301, 3500)
    assert world.network.coverage() == [(2301, 3500)]
    assert (world.network.oldest, world.network.latest, world.floor) == (2301, 3500, 2301)
    if world.local:
        assert world.network.sequences() == list(range(2301, 3501))
        assert done["rows_deleted"] == 2300 * 3
    else:
        assert done["partitions_dropped"] == 2
        assert partitions(world)[0] == 2000  # what it straddles stays as data
        assert world.network.sequences() == list(range(2000, 3501))
    world.assert_coverage_is_true()


def test_age_counts_from_the_latest_ledger_and_not_from_the_clock(world):
    world.ingest(1, 2500)  # five seconds each, years ago
    assert world.json("retention", "--keep", "10m")["floor"] == 2500 - 120
    assert world.network.coverage() == [(2380, 2500)]


def test_a_latest_ledger_of_the_far_future_makes_no_other_old(world):
    world.ingest_these([*chain(1, 59), ledger(60, closed_at="2199-01-01T00:00:00Z")])
    before = world.state()
    done = world("retention", "--keep", "30d")
    assert done.code == EXIT_DATA and "2199" in done.err and "ledger 60" in done.err, done
    assert world.state() == before
    assert world.json("retention", "--keep", "20-ledgers")["floor"] == 41


def test_age_is_exact_to_the_millisecond(world):
    world.ingest_these([ledger(n, closed_at=f"2026-01-15T12:00:00.{n:03d}500Z") for n in range(1, 101)])
    assert world.json("retention", "--keep", "10ms")["floor"] == 90


def test_the_latest_ledger_and_its_partition_always_stay(world):
    world.ingest(1, 2000)
    assert world.json("retention", "--keep", "1ms")["floor"] == 2000
    assert world.json("retention", "--keep", "1-ledgers")["floor"] == 2000
    assert world.network.coverage() == [(2000, 2000)]
    world.ingest(2001, 2100)
    assert world.network.coverage() == [(2000, 2100)]


def test_a_fork_is_still_seen_where_only_the_latest_ledger_is_left(world):
    world.ingest(1, 50)
    assert world("retention", "--keep", "1-ledgers").code == 0
    world.ingest(51, 52, chain="other", code=EXIT_DATA)


def test_the_floor_never_falls(world):
    world.ingest(1, 500)
    assert world.json("retention", "--keep", "100-ledgers")["floor"] == 401
    done = world.json("retention", "--keep", "300-ledgers")
    assert (done["floor"], done["floor_before"], done["oldest"]) == (401, 401, 401)
    assert world.floor == 401


def test_more_is_kept_than_there_is(world):
    world.ingest(1, 50)
    before = world.network.coverage(), world.network.sequences(), world.network.cursors()
    assert world("retention", "--keep", "1000-ledgers").code == 0
    assert world("retention", "--keep", "30d").code == 0
    assert (world.network.coverage(), world.network.sequences(), world.network.cursors()) == before


def test_what_has_gone_is_no_gap(world):
    world.ingest(1, 500)
    assert world("retention", "--keep", "100-ledgers").code == 0
    (status,) = world.json("ingest", "status")["networks"]
    assert (status["floor"], status["wanted_from"], status["gaps"]) == (401, 1, 0)


def test_what_is_left_of_the_last_partition_is_no_disagreement(world):
    world.ingest(1, 500)
    assert world("retention", "--keep", "100-ledgers").code == 0
    done = world("gaps", "--verify")
    assert done.code == 0 and done.out == "", done


def test_holes_in_coverage_stay_holes(world):
    world.ingest(1, 100)
    world.network.sql("update @ingest_coverage set hi = 40")
    world.network.sql("insert into @ingest_coverage (lo, hi) values (61, 100)")
    world.network.sql("update @ingest_store set value = '61' where key = 'oldestLedgerCursor'")
    assert world("retention", "--keep", "80-ledgers").code == 0
    assert world.network.coverage() == [(21, 40), (61, 100)]
    assert world.network.oldest == 61  # where the last run begins


def test_other_networks_are_left_alone(world):
    world.ingest(1, 1500)
    world.ingest(1, 1500, network="pubnet")
    assert world("retention", "--keep", "10-ledgers").code == 0
    pubnet = type(world.network)(world.kind, "pubnet")
    assert pubnet.coverage() == [(1, 1500)] and len(pubnet.sequences()) == 1500


# --- at most once per interval ------------------------------------------------------------------------


def test_it_runs_at_most_once_per_interval_over_all_processes(world):
    world.ingest(1, 100)
    assert world.json("retention", "--keep", "50-ledgers", "--every", "1h")["ran"] is True
    again = world.json("retention", "--keep", "10-ledgers", "--every", "1h")
    assert again["ran"] is False and again["floor"] is None
    assert world.floor == 51
    assert world.json("retention", "--keep", "10-ledgers")["floor"] == 91  # asked for without a limit


def test_an_interval_that_has_passed_or_a_clock_set_back_does_not_hinder(world):
    world.ingest(1, 100)
    assert world("retention", "--keep", "50-ledgers").code == 0
    for ran in (world.own_row("retentionRan") - 3_600_000, world.own_row("retentionRan") + 3_600_000):
        world.network.sql("update @ingest_store set value = %s where key = 'holdfast.retentionRan'", str(ran))
        assert world.json("retention", "--keep", "50-ledgers", "--every", "1h")["ran"] is True


def test_two_at_once_are_refused_with_the_holder(world):
    world.ingest(1, 100)
    holder = world.command.hold("holdfast:retention:ingest_testnet")
    done = world("retention", "--keep", "10-ledgers")
    assert done.code == EXIT_NOT_ACQUIRED and "holdfast:retention:ingest_testnet" in done.err
    assert world.floor is None
    holder.end()


def test_an_ingester_keeps_what_it_is_told_to(world):
    world.ingest(1, 2500)
    live = world.follow([], "--keep", "1200-ledgers")
    eventually(lambda: world.floor == 1301)
    world.add(ledger(2501))
    eventually(lambda: world.network.latest == 2501)
    assert world.network.coverage() == [(1301, 2501)]
    live.signal(signal.SIGTERM)
    assert live.wait() == 0
    world.assert_coverage_is_true()


# --- nobody waits -------------------------------------------------------------------------------------


@on_servers
@pytest.mark.parametrize("what", ["transactions where to_id < 100", "transactions_0"])
def test_a_reader_keeps_its_partition_and_live_goes_on(world, what):
    """The drop gives up after short attempts; each ledger is committed meanwhile."""
    world.ingest(1, 2500)
    live = world.follow()
    with world.open_reader(f"select count(*) from ingest_testnet.{what}"):
        retention = world.start("retention", "--keep", "100-ledgers")
        eventually(lambda: world.floor == 2401)
        for n in range(2501, 2521):
            world.add(ledger(n))
            eventually(lambda: world.network.latest == n, what=f"ledger {n} is committed")
        result = retention.wait_all(20)
        assert result.code == EXIT_NOT_ACQUIRED and "transactions_0" in result.err, result
        assert world.network.sequences()[0] == 1  # still there, and not claimed
        assert world.network.coverage()[0][0] == 2401
        world.assert_coverage_is_true()
    assert world.json("retention", "--keep", "100-ledgers")["partitions_left"] == 0
    assert partitions(world)[0] == 2000
    live.signal(signal.SIGTERM)
    assert live.wait() == 0


@on_servers
def test_readers_that_come_while_a_drop_tries_are_answered(world):
    world.ingest(1, 2500)
    with world.open_reader("select count(*) from ingest_testnet.transactions"):
        retention = Background(lambda: world("retention", "--keep", "100-ledgers"))
        while retention.running:
            world.kind.database.sql(
                "set statement_timeout = '2s'; select hash from ingest_testnet.transactions"
                " where to_id > 2400::bigint << 32 limit 1")
        assert retention.result().code == EXIT_NOT_ACQUIRED


def test_live_goes_on_while_rows_are_deleted(world):
    world.ingest(1, 3000, transactions=5)
    live = world.follow()
    retention = Background(lambda: world.json("retention", "--keep", "10-ledgers"))
    last = 3000
    while retention.running:
        last += 1
        world.add(ledger(last))
        eventually(lambda: world.network.latest == last)
    done = retention.result()
    assert done["floor"] >= 2991 and world.network.coverage() == [(done["floor"], last)]
    live.signal(signal.SIGTERM)
    assert live.wait() == 0


# --- crashes ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def retention_held_up(world, partition):
    """It has claimed all but a hundred of 2500 ledgers, and cannot drop what somebody reads."""
    world.ingest(1, 2500)
    with world.open_reader(f"select count(*) from ingest_testnet.{partition}"):
        retention = world.start("retention", "--keep", "100-ledgers")
        eventually(lambda: world.floor == 2401)
        yield retention


@on_servers
def test_killed_between_the_claim_and_the_drop_the_next_run_goes_on(world):
    with retention_held_up(world, "transactions_0") as retention:
        world.kind.kill9(retention)
        assert world.network.coverage() == [(2401, 2500)] and world.network.oldest == 2401
        assert partitions(world)[0] == 0
    world.ingest(2501, 2600)  # whatever retention left behind
    done = world.json("retention", "--keep", "100-ledgers", "--every", "1h")
    assert done["ran"] and done["partitions_dropped"] == 2  # a run that did not end does not count
    assert partitions(world)[0] == 2000


@on_servers
def test_killed_between_the_two_tables_of_a_partition_the_next_run_goes_on(world):
    with retention_held_up(world, "ledgers_0") as retention:
        assert retention.wait(20) == EXIT_NOT_ACQUIRED
    assert world("retention", "--keep", "100-ledgers").code == 0
    assert world.network.sequences()[0] == 2000
    assert partitions(world)[0] == 2000


@on_servers
def test_a_session_that_is_ended_in_the_middle_leaves_nothing_half_done(world):
    with retention_held_up(world, "transactions_0") as retention:
        for pid in world.kind.database.sessions("holdfast retention%"):
            world.kind.database.server.terminate(pid)
        assert retention.wait(20) != 0
    world.assert_coverage_is_true()
    assert world("retention", "--keep", "100-ledgers").code == 0
    assert world.network.sequences()[0] == 2000


def test_killed_while_it_deletes_coverage_stays_true_and_the_next_run_ends_it(world):
    world.ingest(1, 3000, transactions=5)
    for floor in (1001, 2001, 2901):
        retention = world.start("retention", "--keep", f"{3001 - floor}-ledgers")
        eventually(lambda: world.floor == floor)
        world.kind.kill9(retention)
        world.assert_coverage_is_true()
    assert world("retention", "--keep", "100-ledgers").code == 0
    first = 2901 if world.local else 2000
    assert world.network.sequences() == list(range(first, 3001))
    assert min(row[0] for row in world.network.sql("select ledger_number from @transactions")) == first


# --- refusals -----------------------------------------------------------------------------------------


def test_a_network_that_is_not_there_is_a_mistake_and_nothing_is_made(world):
    done = world("retention", "--keep", "30d", network="tesnet")
    assert done.code == EXIT_CONFIG and "tesnet" in done.err and "--network" in done.err
    assert not type(world.network)(world.kind, "tesnet").exists()


@pytest.mark.parametrize("keep", ["", "0", "-1d", "0-ledgers", "-5-ledgers", "x-ledgers", "30 days", "ledgers",
                                  "99999999999-ledgers", "1-ledgers-ledgers", "1000", "1.5"])
def test_what_to_keep_must_be_said_well(world, keep):
    done = world("retention", "--keep", keep)
    assert done.code == EXIT_USAGE and "--keep" in done.err and "1000-ledgers" in done.err


def test_what_to_keep_must_be_said(world):
    done = world("retention")
    assert done.code == EXIT_USAGE and "--keep is missing" in done.err


def test_a_store_without_coverage_is_to_be_adopted_first(world):
    world.ingest(1, 10)
    world.network.sql("drop table @ingest_coverage")
    done = world("retention", "--keep", "5-ledgers")
    assert done.code == EXIT_CONFIG and "holdfast ingest adopt --network testnet" in done.err


@on_servers
def test_tables_that_are_not_partitioned_are_left_to_who_made_them(world):
    world.ingest(1, 10)
    world.network.sql("drop table @transactions")
    world.network.sql("create table @transactions (to_id bigint primary key, ledger_number int)")
    done = world("retention", "--keep", "5-ledgers")
    assert done.code == EXIT_CONFIG and "holdfast retention reconcile" in done.err
    assert world.network.coverage() == [(1, 10)]


@on_servers
def test_tables_that_are_partitioned_otherwise_are_left_to_who_made_them(world):
    """By time, as others do it."""
    world.ingest(1, 10)
    world.network.sql("drop table @transactions")
    world.network.sql("create table @transactions (to_id bigint, ledger_number int, closed_at timestamptz)"
                      " partition by range (closed_at)")
    world.network.sql("create table @day partition of @transactions for values from ('2023-11-14') to ('2023-11-15')")
    before = world.network.coverage(), world.network.cursors(), world.floor
    done = world("retention", "--keep", "5-ledgers")
    assert done.code == EXIT_CONFIG and "not partitioned by ledger" in done.err
    assert (world.network.coverage(), world.network.cursors(), world.floor) == before


@on_servers
def test_who_may_not_drop_the_partitions_gives_up_no_claim(world):
    world.ingest(1, 2500)
    before = world.state()
    for table in ("transactions_0", "ledgers_0"):
        world.network.sql(f"alter table @{table} owner to postgres")
    world.kind.database.sql("alter schema ingest_testnet owner to postgres")
    world.kind.database.sql("grant usage, create on schema ingest_testnet to app")
    done = world("retention", "--keep", "1000-ledgers")
    assert done.code == EXIT_CONFIG and "may not drop" in done.err and "0-999" in done.err
    assert world.state()[0] == before[0] and world.floor is None and world.network.oldest == 1
    world.kind.database.sql("alter schema ingest_testnet owner to app")
    assert world("retention", "--keep", "1000-ledgers").code == 0
    assert world.network.coverage() == [(1501, 2500)]


def test_garbage_in_the_floor_is_named_and_nothing_is_changed(world):
    world.ingest(1, 10)
    world.network.sql("insert into @ingest_store (key, value) values ('holdfast.retentionFloor', 'x')")
    before = world.state()
    done = world("retention", "--keep", "5-ledgers")
    assert done.code == EXIT_DATA and "holdfast.retentionFloor" in done.err
    assert world.state() == before


# --- reconcile ----------------------------------------------------------------------------------------


def drop_below(world, ledger_number, tables=("ledgers", "transactions")):
    """As something else does that knows nothing of coverage."""
    for table in tables:
        column = "sequence" if table == "ledgers" else "ledger_number"
        world.network.sql(f"delete from @{table} where {column} < %s", ledger_number)


def test_reconcile_raises_the_oldest_to_where_the_data_begins(world):
    world.ingest(1, 100)
    drop_below(world, 41)
    done = world.json("retention", "reconcile")
    assert done == {"network": "testnet", "data_from": 41, "oldest_before": 1, "oldest": 41, "uncovered": 40}
    assert world.network.coverage() == [(41, 100)] and world.network.oldest == 41
    assert world.floor == 41  # no gap, and nothing for a backfill
    world.ingest(101, 110)


def test_reconcile_sees_transactions_that_were_dropped_alone(world):
    """A policy on transactions does not know the table of ledgers."""
    made = [ledger(n, transactions=0 if n in (38, 39, 40, 60) else 3) for n in range(1, 101)]
    world.ingest_these(made)
    drop_below(world, 41, ["transactions"])
    assert world.json("retention", "reconcile")["oldest"] == 38  # empty ledgers have lost nothing
    drop_below(world, 61, ["transactions"])
    assert world.json("retention", "reconcile")["oldest"] == 60
    world.assert_coverage_is_true()


def test_reconcile_does_not_take_half_a_ledger_for_whole(world):
    world.ingest(1, 100, transactions=4)
    drop_below(world, 50)
    world.network.sql("delete from @transactions where ledger_number = 50 and application_order < 3")
    assert world.json("retention", "reconcile")["oldest"] == 51
    world.assert_coverage_is_true()


def test_reconcile_lowers_a_cursor_that_claims_too_little(world):
    world.ingest(1, 100)
    world.network.sql("update @ingest_store set value = '70' where key = 'oldestLedgerCursor'")
    done = world.json("retention", "reconcile")
    assert (done["oldest_before"], done["oldest"], done["uncovered"]) == (70, 1, 0)
    assert world.floor is None


def test_reconcile_changes_nothing_where_all_is_well(world):
    world.ingest(1, 2500)
    assert world("retention", "--keep", "100-ledgers").code == 0  # leaves uncovered data below the floor
    before = world.state()
    assert world("retention", "reconcile").code == 0
    assert world.state() == before


def test_reconcile_refuses_where_no_data_is_left(world):
    world.ingest(1, 10)
    drop_below(world, 11)
    before = world.state()
    done = world("retention", "reconcile")
    assert done.code == EXIT_CONFIG and "holdfast ingest reset" in done.err
    assert world.state() == before


def test_reconcile_refuses_a_network_that_is_not_there(world):
    assert world("retention", "reconcile", network="tesnet").code == EXIT_CONFIG
    assert not type(world.network)(world.kind, "tesnet").exists()


@pytest.fixture
def deployed(world):
    """Made by another ingester: cursors and transactions from 100 to 199, neither ledgers nor coverage."""
    def sql(statement):
        world.kind.database.sql(statement.replace("@", "ingest_testnet."), user="app")

    sql("create schema ingest_testnet")
    sql("create table @ingest_store (key varchar(255) primary key, value varchar(255) not null)")
    sql("create table @transactions (to_id bigint primary key, ledger_number integer not null)")
    sql("insert into @transactions select n::bigint << 32, n from generate_series(100, 199) n")
    sql("insert into @ingest_store values ('latestLedgerCursor', '199'), ('oldestLedgerCursor', '1')")
    return world


@on_servers
def test_reconcile_works_beside_another_ingester(deployed):
    assert deployed.json("retention", "reconcile")["oldest"] == 100
    deployed.network.sql("insert into @transactions values (50::bigint << 32, 50)")
    assert deployed.json("retention", "reconcile")["oldest"] == 50
    assert deployed.network.cursors() == {"latestLedgerCursor": 199, "oldestLedgerCursor": 50}


SET_MIN = ("update ingest_testnet.ingest_store set value = least(value::bigint, %s)::text"
           " where key = 'oldestLedgerCursor'")


def waits(world, count=1):
    return world.kind.database.value(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and wait_event_type = 'Lock'") == count


@on_servers
def test_reconcile_sees_the_data_of_a_set_min_that_commits_before_it(deployed):
    """It derives the oldest after it has the row, not before."""
    with deployed.open_reader("insert into ingest_testnet.transactions values (50::bigint << 32, 50)") as other:
        with other.cursor() as cursor:
            cursor.execute(SET_MIN, [50])
        reconcile = deployed.start("retention", "reconcile", "--json")
        eventually(lambda: waits(deployed))
        other.commit()
    result = reconcile.wait_all()
    assert result.code == 0 and json.loads(result.out)["oldest"] == 50
    assert deployed.network.oldest == 50


@on_servers
def test_a_set_min_during_reconcile_is_not_lost(deployed):
    """Held up when it has the row and is about to look at the data."""
    deployed.network.sql("update @ingest_store set value = '150' where key = 'oldestLedgerCursor'")
    with deployed.open_reader("lock table ingest_testnet.transactions in access exclusive mode") as other:
        reconcile = deployed.start("retention", "reconcile", "--json")
        eventually(lambda: waits(deployed))
        set_min = Background(deployed.kind.database.sql, SET_MIN, 50)
        eventually(lambda: waits(deployed, 2))
        other.rollback()
    result = reconcile.wait_all()
    set_min.result()
    assert result.code == 0 and json.loads(result.out)["oldest"] == 100
    assert deployed.network.oldest == 50
