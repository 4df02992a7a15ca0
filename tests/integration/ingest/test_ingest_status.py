"""holdfast ingest status: how networks stand, from the store alone."""

import contextlib
import json
import pathlib
import signal
import threading

import psycopg2
import pytest

from awaiting import eventually
from cli import EXIT_DATA, EXIT_NOT_ACQUIRED, EXIT_UNREACHABLE, EXIT_USAGE
from ingesting import LOCK_KEY, on_servers
from ledgers import Network, chain
from strangers import run


def shown(world, *options):
    done = world.command("ingest", "status", "--json", *options)
    assert done.code == 0, done
    return json.loads(done.out)["networks"]


def status(world, *options):
    return {one["network"]: one for one in shown(world, *options)}


def test_where_nothing_is_there_it_says_so_and_makes_nothing(world):
    done = world.command("ingest", "status")
    assert done.code == 0 and "no networks yet" in done.out and "holdfast ingest --network" in done.out
    assert status(world) == {}
    done = world("ingest", "status")
    assert done.code == 0 and "nothing is there yet" in done.out
    one = status(world, "--network", "testnet")["testnet"]
    assert one["exists"] is False and one["latest"] is None and one["ingester"] is None
    if world.local:
        assert not list(pathlib.Path(world.kind.url.removeprefix("local:")).glob("ingest_*"))
    else:
        assert not world.kind.database.sql("select from pg_namespace where nspname like 'ingest%'")


def test_it_tells_where_a_network_stands(world):
    world.ingest(11, 300)
    assert world("retention", "--keep", "100-ledgers").code == 0
    one = status(world)["testnet"]
    assert one.pop("lag_ms") > 0
    assert one.pop("last_success_ms") > 0
    one.pop("transactions_estimate")
    assert one == {
        "network": "testnet", "schema": "ingest_testnet", "exists": True,
        "lock": "wallet-backend-ingest-testnet", "key": LOCK_KEY, "key_text": str(LOCK_KEY), "ingester": None,
        "latest": 300, "closed_at": "2023-11-14T22:38:20.000Z",
        "source_tip": 300, "lag_ledgers": 0, "live_ledgers": 290, "backfill_ledgers": None, "oldest": 201, "wanted_from": 11, "floor": 201,
        "ranges": 1, "covered": 100, "gaps": 0, "missing": 0, "quarantined": 0, "disagrees": False}


def test_people_are_told_the_same(world):
    world.ingest(11, 300)
    done = world.command("ingest", "status")
    assert done.code == 0 and done.err == ""
    lines = {line.split(maxsplit=1)[0]: line for line in done.out.splitlines()}
    assert "ingest_testnet" in lines["testnet"] and "none runs" in lines["ingester"]
    assert "300, closed" in lines["latest"] and lines["oldest"].endswith(" 11")
    assert "290 ledgers in 1 range" in lines["covered"] and lines["gaps"].endswith("none")


def test_it_tells_who_ingests_while_it_runs(world):
    live = world.start("ingest", "--source", world.source(chain(1, 20)), "--follow")
    eventually(lambda: world.network.latest == 20)
    one = status(world, "--network", "testnet")["testnet"]
    assert one["latest"] == 20
    assert "holdfast ingest" in one["ingester"]["application"] and one["ingester"]["age_ms"] >= 0
    if world.local:
        assert one["ingester"]["pid"] == live.pid
    else:
        assert [one["ingester"]["backend_pid"]] == world.kind.database.holders(LOCK_KEY)
    assert "holdfast ingest" in world("ingest", "status").out
    live.signal(signal.SIGTERM)
    assert live.wait() == 0
    assert status(world)["testnet"]["ingester"] is None


def test_all_networks_are_listed_unless_some_are_named(world):
    for network in ("testnet", "pubnet", "a-b_1"):
        world.ingest(1, 5, network=network)
    assert list(status(world)) == ["a-b_1", "pubnet", "testnet"]
    assert list(status(world, "--network", "pubnet", "--network", "testnet")) == ["pubnet", "testnet"]


def test_gaps_and_quarantine_are_counted(world):
    made = chain(1, 30)
    made[9] = '{"sequence": 10, "hash": 5}'
    world.ingest_these(made, "--on-bad", "quarantine")
    world.network.sql("insert into @ingest_coverage (lo, hi) values (100, 101)")
    world.network.sql("update @ingest_store set value = '101' where key = 'latestLedgerCursor'")
    one = status(world)["testnet"]
    assert (one["gaps"], one["missing"], one["quarantined"], one["ranges"]) == (2, 70, 1, 3)
    assert "2, 70 ledgers" in world("ingest", "status").out


def test_a_cursor_without_coverage_is_pointed_out(world):
    world.ingest(1, 30)
    world.network.sql("drop table @ingest_coverage")
    one = status(world)["testnet"]
    assert (one["disagrees"], one["gaps"], one["covered"], one["latest"]) == (True, None, None, 30)
    assert "holdfast ingest adopt --network testnet" in world("ingest", "status").out


def test_a_cursor_that_claims_more_than_is_covered_is_pointed_out(world):
    world.ingest(1, 30)
    world.network.sql("update @ingest_store set value = '31' where key = 'latestLedgerCursor'")
    assert status(world)["testnet"]["disagrees"] is True


def test_a_ledger_from_the_future_has_no_negative_age(world):
    made = chain(1, 2)
    made[1]["closed_at"] = "2199-01-01T00:00:00Z"
    world.ingest_these(made)
    assert status(world)["testnet"]["lag_ms"] == 0


def test_garbage_in_a_cursor_is_named(world):
    world.ingest(1, 3)
    world.network.sql("update @ingest_store set value = '3x' where key = 'latestLedgerCursor'")
    done = world("ingest", "status")
    assert done.code == EXIT_DATA and "latestLedgerCursor" in done.err and "3x" in done.err


@on_servers
def test_transactions_are_estimated_and_not_counted(world):
    world.ingest(1, 2500, transactions=4)
    world.kind.database.sql("analyze ingest_testnet.transactions")
    assert status(world)["testnet"]["transactions_estimate"] == 10000


def test_networks_in_schemas_of_any_name_are_shown_without_being_named(world):
    world.ingest(1, 9, "--schema", "Wallet")
    world.ingest(1, 5)
    world.ingest(1, 7, "--schema", "ingest_other", "--latest-cursor", "head", "--oldest-cursor", "tail",
                 network="pubnet")
    assert [(one["network"], one["schema"], one["latest"], one["oldest"], one["disagrees"])
            for one in shown(world)] == [
        ("testnet", "Wallet", 9, 1, False), ("pubnet", "ingest_other", 7, 1, False),
        ("testnet", "ingest_testnet", 5, 1, False)]
    one = status(world, "--network", "testnet", "--schema", "Wallet")["testnet"]
    assert (one["schema"], one["latest"]) == ("Wallet", 9)
    assert world.command("ingest", "status", "--schema", "Wallet").code == EXIT_USAGE


def test_a_schema_that_does_not_say_whose_it_is_is_named_until_an_ingester_starts(world):
    """As one that an earlier version made."""
    world.ingest(1, 9, "--schema", "wallet")
    Network(world.kind, schema="wallet").sql("delete from @ingest_store where key = 'holdfast.network'")
    (one,) = shown(world)
    assert (one["network"], one["schema"]) == (None, "wallet") and "which network" in one["problem"]
    assert "wallet" in world.command("ingest", "status").out
    world.ingest(1, 9, "--schema", "wallet")
    (one,) = shown(world)
    assert (one["network"], one["latest"]) == ("testnet", 9)


def test_a_network_that_cannot_be_read_hides_no_other(world):
    world.ingest(1, 3)
    world.network.sql("update @ingest_store set value = '3x' where key = 'latestLedgerCursor'")
    world.ingest(1, 4, network="zebra")
    done = world.command("ingest", "status", "--json")
    assert done.code == EXIT_DATA
    broken, other = json.loads(done.out)["networks"]
    assert broken["schema"] == "ingest_testnet" and "3x" in broken["problem"]
    assert (other["network"], other["latest"]) == ("zebra", 4)


@on_servers
def test_a_network_that_the_role_may_not_read_is_named(world):
    world.ingest(1, 3, "--schema", "wallet")
    world.ingest(1, 4)
    database = world.kind.database
    database.sql("revoke select on wallet.ingest_coverage from app")
    database.sql("alter table wallet.ingest_coverage owner to postgres")
    one, other = shown(world)
    assert (one["network"], one["latest"], other["network"], other["schema"]) == ("testnet", 4, None, "wallet")
    assert "may not read" in other["problem"]


@on_servers
@pytest.mark.parametrize("table", ["ingest_coverage", "ingest_store", "ledgers"])
def test_a_table_that_somebody_locks_is_told_and_not_waited_for(world, table):
    world.ingest(1, 3)
    world.ingest(1, 4, network="zebra")
    with world.open_reader(f"lock table ingest_testnet.{table} in access exclusive mode") as stranger:
        pid = run(stranger, "select pg_backend_pid()")[0][0]

        def is_told(text):
            return f"ingest_testnet.{table} is locked by" in text and f"backend pid {pid}" in text

        for words in ((), ("--network", "testnet")):
            done = world.command("ingest", "status", "--json", *words)
            assert done.code == EXIT_NOT_ACQUIRED, done
            assert is_told(json.loads(done.out)["networks"][0]["problem"] if not words else done.err), done
            assert words or json.loads(done.out)["networks"][1]["latest"] == 4
        gaps = world("gaps")
        assert table == "ledgers" or (gaps.code == EXIT_NOT_ACQUIRED and is_told(gaps.err)), gaps


@on_servers
def test_who_is_in_line_for_a_table_is_told_as_well(world):
    """PostgreSQL lets nobody pass who comes later."""
    world.ingest(1, 3)
    database = world.kind.database
    with world.open_reader("select key from ingest_testnet.ingest_store"):
        def truncate():
            with contextlib.suppress(psycopg2.Error), contextlib.closing(database.connect("postgres")) as stranger:
                run(stranger, "truncate ingest_testnet.ingest_store")

        waiting = threading.Thread(target=truncate)
        waiting.start()
        [(pid,)] = eventually(lambda: database.sql(
            "select pid from pg_locks where not granted and mode = 'AccessExclusiveLock'"))
        gaps = world("gaps")
        database.server.terminate(pid)
        waiting.join()
    assert gaps.code == EXIT_NOT_ACQUIRED, gaps
    assert "ingest_store is about to be locked by" in gaps.err and f"backend pid {pid}" in gaps.err, gaps


def test_tables_of_others_are_no_networks(world):
    """ingest_store is a name that other programs use too."""
    if world.local:
        folder = pathlib.Path(world.kind.url.removeprefix("local:"))
        world.ingest(1, 2)
        (folder / "notes.db").write_bytes(b"SQLite format 3\0" + bytes(100))
        world("tx", "--sql", "create table ingest_store (key text, value text)")
        assert list(status(world)) == ["testnet"]
    else:
        world.kind.database.sql("create schema other; create table other.ingest_store (key text, value text);"
                                'create schema "ingest_Odd"; create table "ingest_Odd".ingest_store (key text)')
        assert status(world) == {}


def test_a_network_that_is_just_being_made_is_there_and_empty(world):
    """The file or schema comes first, then its tables."""
    world.ingest(1, 2, network="zebra")
    if world.local:
        pathlib.Path(world.kind.url.removeprefix("local:"), "ingest_testnet.db").touch()
    else:
        world.kind.database.sql("create schema ingest_testnet")
    found = status(world)
    assert found["zebra"]["latest"] == 2 and found.get("testnet", {}).get("latest") is None


@on_servers
def test_it_waits_for_nobody_who_writes(world):
    """Not even for one who changes the tables and has not committed."""
    world.ingest(1, 9)
    with world.kind.database.connect("postgres", autocommit=False) as writer, writer.cursor() as cursor:
        cursor.execute("update ingest_testnet.ingest_store set value = '99'")
        cursor.execute("delete from ingest_testnet.ingest_coverage")
        assert status(world)["testnet"]["latest"] == 9
        writer.rollback()
    writer.close()


def test_a_store_that_cannot_be_reached_is_an_error(holdfast):
    done = holdfast("ingest", "status", "--url", "postgresql://127.0.0.1:1/none")
    assert done.code == EXIT_UNREACHABLE
