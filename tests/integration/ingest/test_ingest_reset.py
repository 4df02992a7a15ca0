"""holdfast ingest reset: the way on after a fork; all or nothing, and only when it is meant."""

import contextlib
import os
import pty
import subprocess

import pytest

import cli
from awaiting import eventually
from cli import EXIT_CONFIG, EXIT_DATA, EXIT_NOT_ACQUIRED, EXIT_USAGE
from ingesting import on_servers
from ledgers import chain

MEANT = ["--confirm", "testnet"]


def test_what_is_above_the_ledger_goes_and_another_chain_can_go_on(world):
    world.ingest(1, 2500)
    assert "ingest reset" in world.ingest(2501, 2510, chain="fork", code=EXIT_DATA).err
    done = world.json("ingest", "reset", "--to", 1500, *MEANT)
    assert done == {"network": "testnet", "latest_before": 2500, "latest": 1500, "oldest": 1, "uncovered": 1000}
    world.network.assert_holds(chain(1, 1500))
    assert world.network.coverage() == [(1, 1500)]
    assert world.network.cursors() == {"latestLedgerCursor": 1500, "oldestLedgerCursor": 1}
    fork = chain(1501, 2600, chain="fork")
    fork[0]["previous_hash"] = chain(1500, 1500)[0]["hash"]
    world.ingest_these(fork)
    world.network.assert_holds(chain(1, 1500) + fork)


def test_to_zero_leaves_nothing_but_rows_of_others_and_the_next_run_is_a_first_one(world):
    world.ingest(11, 1500)
    assert world("retention", "--keep", "500-ledgers").code == 0
    world.network.sql("insert into @ingest_store (key, value) values ('protocolVersion', '22')")
    done = world.json("ingest", "reset", "--to", 0, *MEANT)
    assert (done["latest"], done["oldest"], done["uncovered"]) == (None, None, 500)
    assert world.state() == ([], [("protocolVersion", "22")], [], [])
    world.ingest(5, 20, chain="anew")
    assert world.network.coverage() == [(5, 20)]


def test_below_all_that_is_covered_it_is_as_to_zero(world):
    world.ingest(100, 200)
    done = world.json("ingest", "reset", "--to", 50, *MEANT)
    assert done["latest"] is None and world.network.cursors() == {}
    world.ingest(10, 20)


def test_below_the_retention_floor_it_is_as_to_zero_and_a_first_run_finds_no_rows_in_its_way(world):
    world.ingest(1, 200)
    assert world("retention", "--keep", "100-ledgers").code == 0
    done = world.json("ingest", "reset", "--to", 50, *MEANT)
    assert done["latest"] is None and world.network.cursors() == {}
    world.ingest(1, 20)
    world.network.assert_holds(chain(1, 20))


def test_in_a_gap_the_latest_is_what_is_there_before_it(world):
    world.ingest(1, 100)
    world.network.sql("delete from @ledgers where sequence between 41 and 60")
    world.network.sql("delete from @transactions where ledger_number between 41 and 60")
    world.network.sql("delete from @ingest_coverage")
    assert world("ingest", "adopt").code == 0
    done = world.json("ingest", "reset", "--to", 50, *MEANT)
    assert (done["latest"], done["oldest"], done["uncovered"]) == (40, 1, 40)
    world.ingest(41, 60)
    world.network.assert_holds(chain(1, 60))


def test_above_the_latest_it_changes_nothing(world):
    world.ingest(1, 100)
    before = world.state()
    assert world.json("ingest", "reset", "--to", 5000, *MEANT)["uncovered"] == 0
    assert world.state() == before


def test_what_was_quarantined_above_it_goes_too(world):
    made = chain(1, 60)
    made[19] = '{"sequence": 20, "hash": 5}'
    made[49] = '{"sequence": 50, "hash": 5}'
    world.ingest_these(made, "--on-bad", "quarantine")
    assert world.network.quarantined() == [20, 50]
    assert world("ingest", "reset", "--to", 30, *MEANT).code == 0
    assert world.network.quarantined() == [20]


def test_other_networks_are_left_alone(world):
    world.ingest(1, 100)
    world.ingest(1, 100, network="pubnet")
    assert world("ingest", "reset", "--to", 0, *MEANT).code == 0
    type(world.network)(world.kind, "pubnet").assert_holds(chain(1, 100))


@pytest.mark.parametrize("schema", ["wallet", "ingest_testnet"])
def test_a_schema_is_not_used_under_the_name_of_another_network(world, schema):
    of_it = ("--schema", schema)
    world.network = type(world.network)(world.kind, schema=schema)
    world.ingest(1, 30, *of_it)
    before = world.state()
    for words in (("ingest", "reset", "--to", 5, "--confirm", "pubnet"), ("ingest", "--source", world.source(chain(1, 40))),
                  ("ingest", "--source", world.source(chain(1, 40)), "--gaps"), ("retention", "--keep", "3-ledgers"),
                  ("ingest", "adopt"), ("ingest", "adopt", "--leave"), ("gaps", "--repair"), ("ingest", "status")):
        done = world(*words, *of_it, network="pubnet")
        assert done.code == EXIT_CONFIG and f"schema {schema} holds network testnet, not pubnet" in done.err, done
    assert world.state() == before
    world.ingest(31, 40, *of_it)


# --- only when it is meant --------------------------------------------------------------------------------


def test_without_a_terminal_the_name_must_be_given(world):
    world.ingest(1, 10)
    before = world.state()
    done = world("ingest", "reset", "--to", 5)
    assert done.code == EXIT_USAGE and "--confirm" in done.err
    done = world("ingest", "reset", "--to", 5, "--confirm", "pubnet")
    assert done.code == EXIT_USAGE and "nothing was changed" in done.err
    assert world.state() == before


@contextlib.contextmanager
def at_a_terminal(world, *words):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [cli.program(), *map(str, world.words(*words))], stdin=theirs, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=world.command.environment(None))
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.communicate()
        os.close(ours)


@pytest.mark.parametrize("typed, code, latest", [
    ("testnet\n", 0, 5), ("pubnet\n", EXIT_USAGE, 10), ("\n", EXIT_USAGE, 10), ("\x04", EXIT_USAGE, 10)])
def test_at_a_terminal_the_name_is_asked_for(world, typed, code, latest):
    world.ingest(1, 10)
    with at_a_terminal(world, "ingest", "reset", "--to", 5) as (process, terminal):
        os.write(terminal, typed.encode())
        out, err = process.communicate(timeout=20)
    assert "Type the network's name" in err and "above 5" in err
    assert process.returncode == code and world.network.latest == latest


def test_where_to_go_back_to_must_be_said(world):
    done = world("ingest", "reset", *MEANT)
    assert done.code == EXIT_USAGE and "--to" in done.err
    for ledger in (-1, "x", 2**31, 2**63):
        assert world("ingest", "reset", "--to", ledger, *MEANT).code == EXIT_USAGE


def test_it_is_refused_while_somebody_ingests(world):
    world.ingest(1, 30)
    before = world.state()
    world.follow()
    done = world("ingest", "reset", "--to", 0, *MEANT)
    assert done.code == EXIT_NOT_ACQUIRED and "holdfast ingest" in done.err and "stop the ingester" in done.err
    assert world.state() == before


def test_a_network_that_is_not_there_is_a_mistake_and_nothing_is_made(world):
    done = world("ingest", "reset", "--to", 0, "--confirm", "tesnet", network="tesnet")
    assert done.code == EXIT_CONFIG and "tesnet" in done.err
    assert not type(world.network)(world.kind, "tesnet").exists()


# --- all or nothing ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def reset_held_up(world):
    """A reset at the last partition that it empties, the pid of its session, and the state before it."""
    world.ingest(1, 3500)
    before = world.state()
    with world.open_reader("select count(*) from ingest_testnet.ledgers_3000"):
        reset = world.start("ingest", "reset", "--to", 500, *MEANT)
        (pid,) = eventually(lambda: [row[0] for row in world.kind.database.sql(
            "select pid from pg_locks where not granted and relation = 'ingest_testnet.ledgers_3000'::regclass")])
        yield reset, pid, before


@on_servers
def test_killed_half_way_it_has_changed_nothing(world):
    with reset_held_up(world) as (reset, _, before):
        reset.kill9()
    eventually(lambda: not world.kind.database.sessions("holdfast ingest reset%"))
    assert world.state() == before
    assert world("ingest", "reset", "--to", 500, *MEANT).code == 0
    world.network.assert_holds(chain(1, 500))


@on_servers
def test_a_lost_session_changes_nothing(world):
    with reset_held_up(world) as (reset, pid, before):
        world.kind.database.server.terminate(pid)
        assert reset.wait() == cli.EXIT_LOST, reset.describe()
    assert world.state() == before
