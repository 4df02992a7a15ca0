"""At the tip the ingester's statements are prepared on its session; it goes on where they are gone."""

import pytest

import servers
from awaiting import eventually
from ingesting import on_servers
from ledgers import ledger

SIZES = [1, 3, 2, 200, 3, 0, 5, 130, 3, 1, 6]  # of ledgers, by transactions


@pytest.fixture
def proxy(world, holdfast):
    """Between the ingester and its server."""
    database = world.kind.database
    with servers.Proxy(database.server.port) as between:
        world.command = holdfast.at(database.url(host="127.0.0.1", port=between.port))
        yield between
        holdfast.end_all()


def commit_one_by_one(world, ledgers):
    for one in ledgers:
        world.add(one)
        eventually(lambda: world.network.latest == one["sequence"], 20, f"ledger {one['sequence']}")


def prepared(proxy):
    """What is prepared, by the session that has the most."""
    return max((rows for rows in proxy.inject("select statement from pg_prepared_statements where name like 'hf_tx%'")),
               key=len)


def ledgers_of(sizes, first=1):
    return [ledger(first + i, transactions=size) for i, size in enumerate(sizes)]


def assert_whole(world, live, ledgers):
    assert live.process.poll() is None, live.describe()
    world.network.assert_holds(ledgers)
    assert world.network.quarantined() == [] and world.network.coverage() == [(1, len(ledgers))]


@on_servers
@pytest.mark.alone
def test_ledgers_of_any_size_need_few_statements_which_are_prepared(world, proxy):
    live, ledgers = world.follow(), ledgers_of(SIZES)
    commit_one_by_one(world, ledgers)
    assert_whole(world, live, ledgers)
    inserts = [statement for statement, in prepared(proxy) if "transactions" in statement]
    assert 1 <= len(inserts) <= 8, inserts  # of 1, 2, 4, … 128 rows


@on_servers
@pytest.mark.alone
def test_statements_that_somebody_dropped_cost_no_ledger(world, proxy):
    """PostgreSQL says that they do not exist, which is not the ledger's fault: it would be quarantined."""
    live, ledgers = world.follow(), ledgers_of(SIZES + SIZES)
    commit_one_by_one(world, ledgers[:len(SIZES)])
    assert prepared(proxy)
    proxy.inject("deallocate all")
    commit_one_by_one(world, ledgers[len(SIZES):])
    assert_whole(world, live, ledgers)
