"""holdfast ingest adopt: coverage for tables that another ingester has filled."""

import pytest

from awaiting import eventually
from cli import EXIT_CONFIG, EXIT_NOT_ACQUIRED
from ingesting import on_servers
from ingesting_beside import THEIRS
from ledgers import chain, ledger

def forget_coverage(world):
    """As a deployment is that never had any."""
    world.network.sql("drop table @ingest_coverage")
    world.network.sql("delete from @ingest_store where key like 'holdfast.%%'" if not world.local else
                      "delete from @ingest_store where key like 'holdfast.%'")


def set_cursor(world, name, value):
    world.network.sql("update @ingest_store set value = %s where key = %s", str(value), f"{name}LedgerCursor")


def test_a_start_without_coverage_is_refused_and_adopting_lets_it_go_on(world):
    world.ingest(1, 100)
    forget_coverage(world)
    assert "holdfast ingest adopt --network testnet" in world.ingest(101, 110, code=EXIT_CONFIG).err
    done = world.json("ingest", "adopt")
    assert (done["latest"], done["oldest"], done["covered"], done["lacking"]) == (
        100, 1, [{"from": 1, "to": 100}], [])
    world.ingest(101, 110)
    world.network.assert_holds(chain(1, 110))
    assert world.network.coverage() == [(1, 110)]


def test_what_the_cursors_claim_and_the_data_lacks_is_said_and_not_claimed_any_more(world):
    world.ingest(11, 90)
    world.network.sql("delete from @ledgers where sequence between 40 and 49")
    world.network.sql("delete from @transactions where ledger_number between 40 and 49")
    forget_coverage(world)
    set_cursor(world, "oldest", 1)
    set_cursor(world, "latest", 100)
    done = world.json("ingest", "adopt")
    assert (done["claimed_oldest"], done["claimed_latest"]) == (1, 100)
    assert done["lacking"] == [{"from": 1, "to": 10}, {"from": 40, "to": 49}, {"from": 91, "to": 100}]
    assert world.network.coverage() == [(11, 39), (50, 90)]
    assert world.network.cursors() == {"latestLedgerCursor": 90, "oldestLedgerCursor": 50}
    (status,) = world.json("ingest", "status")["networks"]
    assert (status["gaps"], status["missing"]) == (2, 20)  # what was claimed is still wanted
    world.ingest(91, 110)


def test_people_are_told_the_same(world):
    world.ingest(1, 20)
    world.network.sql("delete from @ledgers where sequence = 5")
    forget_coverage(world)
    set_cursor(world, "latest", 25)
    done = world("ingest", "adopt")
    assert done.code == 0
    assert "the cursor claimed 25; it is at 20 now" in done.out
    assert "6 claimed ledgers in 2 ranges" in done.out and "5-5" in done.out and "21-25" in done.out


def test_a_ledger_that_lacks_transactions_does_not_count(world):
    world.ingest(1, 20, transactions=3)
    world.network.sql("delete from @transactions where ledger_number = 7 and application_order = 2")
    forget_coverage(world)
    done = world.json("ingest", "adopt")
    assert done["incomplete"] == 1 and done["lacking"] == [{"from": 7, "to": 7}]
    world.assert_coverage_is_true()


def test_ledgers_without_transactions_count_where_there_is_a_table_of_ledgers(world):
    world.ingest(1, 20, transactions=0)
    forget_coverage(world)
    assert world.json("ingest", "adopt")["covered"] == [{"from": 1, "to": 20}]


def test_it_may_be_repeated_and_then_changes_nothing(world):
    world.ingest(1, 50)
    world.network.sql("delete from @ledgers where sequence = 20")
    forget_coverage(world)
    world.json("ingest", "adopt")
    before = world.state()
    again = world.json("ingest", "adopt")
    assert world.state() == before
    assert (again["claimed_latest"], again["claimed_oldest"]) == (50, 21)


def test_what_retention_does_not_keep_stays_uncovered(world):
    world.ingest(1, 500)
    assert world("retention", "--keep", "100-ledgers").code == 0
    world.network.sql("delete from @ingest_coverage")
    assert world.json("ingest", "adopt")["covered"] == [{"from": 401, "to": 500}]


def test_data_without_cursors_gets_them(world):
    world.ingest(1, 30)
    world.network.sql("drop table @ingest_coverage")
    world.network.sql("delete from @ingest_store")
    done = world.json("ingest", "adopt")
    assert (done["claimed_latest"], done["claimed_oldest"], done["lacking"]) == (None, None, [])
    assert world.network.cursors() == {"latestLedgerCursor": 30, "oldestLedgerCursor": 1}
    world.ingest(31, 40)


def test_cursors_of_other_names_are_meant_where_they_are_named(world):
    names = ["--latest-cursor", "head", "--oldest-cursor", "tail"]
    world.ingest(1, 30, *names)
    forget_coverage(world)
    assert world.json("ingest", "adopt", *names)["claimed_latest"] == 30
    assert world.network.cursors() == {"head": 30, "tail": 1}


# --- a deployment with types and tables of its own ------------------------------------------------------


@pytest.fixture
def deployed(world):
    def sql(statement):
        world.kind.database.sql(statement.replace("@", "wallet."), user="app")

    world.network.schema = "wallet"
    sql("create schema wallet")
    sql("create table @ingest_store (key varchar(255) primary key, value varchar(255) not null)")
    sql("create table @transactions (to_id bigint primary key, ledger_number integer not null,"
        " envelope_xdr text not null, ledger_created_at timestamptz not null)")
    sql("insert into @transactions select n::bigint << 32, n, 'AAAA', now()"
        " from generate_series(1, 95) n where n not between 40 and 49")
    sql("insert into @ingest_store values ('latestLedgerCursor', '100'), ('oldestLedgerCursor', '1'),"
        " ('protocolVersion', '22'), ('note', 'not a number')")
    return world


def column_types(world, table):
    return world.kind.database.sql(
        "select column_name, data_type, character_maximum_length from information_schema.columns"
        " where table_schema = 'wallet' and table_name = %s order by 1", table)


@on_servers
def test_types_and_rows_of_others_stay_as_they_are(deployed):
    before = column_types(deployed, "ingest_store"), column_types(deployed, "transactions")
    rows = deployed.network.sql("select * from @transactions order by to_id")
    done = deployed.json("ingest", "adopt", "--schema", "wallet")
    assert done["evidence"] == "transactions"
    assert done["lacking"] == [{"from": 40, "to": 49}, {"from": 96, "to": 100}]
    assert deployed.network.coverage() == [(1, 39), (50, 95)]
    assert (column_types(deployed, "ingest_store"), column_types(deployed, "transactions")) == before
    assert deployed.network.sql("select * from @transactions order by to_id") == rows
    store = dict(deployed.network.sql("select key, value from @ingest_store where key <> %s", THEIRS))
    assert store == {"latestLedgerCursor": "100", "oldestLedgerCursor": "1", "protocolVersion": "22",
                     "note": "not a number", "holdfast.wantedFrom": "1", "holdfast.network": "testnet"}


@on_servers
def test_tables_that_the_ingester_cannot_write_to_are_named(deployed):
    done = deployed("ingest", "adopt", "--schema", "wallet")
    assert done.code == 0, done
    assert "cannot write here" in done.err and "transactions" in done.err
    again = deployed.json("ingest", "adopt", "--schema", "wallet")
    assert (again["latest"], again["oldest"]) == (95, 50)


# --- refusals -------------------------------------------------------------------------------------------


def test_it_is_refused_while_somebody_ingests(world):
    world.ingest(1, 30)
    live = world.follow()
    world.add(ledger(31))
    eventually(lambda: world.network.latest == 31)
    forget_coverage(world)
    before = sorted(world.network.cursors().items())
    done = world("ingest", "adopt")
    assert done.code == EXIT_NOT_ACQUIRED
    assert "testnet" in done.err and "holdfast ingest" in done.err and "stop the ingester" in done.err
    assert sorted(world.network.cursors().items()) == before
    live.end()
    eventually(lambda: world("ingest", "adopt").code == 0)


def test_cursors_without_any_data_are_not_adopted(world):
    world.ingest(1, 30)
    for table in ("ledgers", "transactions", "ingest_coverage"):
        world.network.sql(f"delete from @{table}")
    before = world.state()
    done = world("ingest", "adopt")
    assert done.code == EXIT_CONFIG and "up to 30" in done.err and "ingest reset" in done.err
    assert world.state() == before
    assert world("ingest", "reset", "--to", 0, "--confirm", "testnet").code == 0
    world.ingest(1, 5)


def test_where_nothing_is_there_nothing_is_made(world):
    done = world("ingest", "adopt", network="tesnet")
    assert done.code == EXIT_CONFIG and "nothing to adopt" in done.err and "--schema" in done.err
    assert not type(world.network)(world.kind, "tesnet").exists()


def test_a_cursor_that_is_no_number_is_named(world):
    world.ingest(1, 30)
    forget_coverage(world)
    set_cursor(world, "latest", "thirty")
    done = world("ingest", "adopt")
    assert done.code == 65 and "latestLedgerCursor" in done.err and "thirty" in done.err
