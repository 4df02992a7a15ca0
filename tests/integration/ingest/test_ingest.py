"""holdfast ingest, live: one writer per network, no ledger lost and none twice, whatever dies."""

import contextlib
import json
import os
import random
import signal

import pytest

import ledgers
from awaiting import eventually, stays
from cli import EXIT_CONFIG, EXIT_DATA, EXIT_NOT_ACQUIRED, EXIT_USAGE
from ingesting import LOCK_KEY
from ledgers import Network, chain, ledger, write
from stores import StoreKind
from strangers import run


# --- the way it should go -----------------------------------------------------------------------------


def test_a_whole_source_is_ingested_with_its_cursors_and_coverage(ingest, network, source):
    write(source, chain(10, 1500))
    done = ingest(source)
    assert done.code == 0, done
    network.assert_holds(chain(10, 1500))
    assert (network.latest, network.oldest, network.coverage()) == (1500, 10, [(10, 1500)])


def test_a_second_run_goes_on_behind_the_latest(ingest, network, source):
    write(source, chain(1, 20))
    assert ingest(source).code == 0
    again = ingest(source)
    assert again.code == 0 and "nothing new" in again.err
    write(source, chain(21, 40), "a")
    assert ingest(source).code == 0
    network.assert_holds(chain(1, 40))
    assert network.coverage() == [(1, 40)]


def test_a_first_run_begins_at_the_start_ledger(ingest, network, source):
    write(source, chain(1, 20))
    assert ingest(source, "--start-ledger", "8").code == 0
    network.assert_holds(chain(8, 20))
    assert (network.oldest, network.latest) == (8, 20)


def test_ledgers_without_transactions_are_covered(ingest, network, source):
    empty = chain(1, 5, transactions=0)
    write(source, empty)
    assert ingest(source).code == 0
    network.assert_holds(empty)
    assert network.coverage() == [(1, 5)]


def test_networks_of_one_store_never_touch(ingest, kind, source, tmp_path):
    other = write(tmp_path / "other.ndjson", chain(100, 110, chain="other"))
    write(source, chain(1, 5))
    assert ingest(source).code == 0
    assert ingest(other, name="futurenet").code == 0
    Network(kind).assert_holds(chain(1, 5))
    Network(kind, "futurenet").assert_holds(chain(100, 110, chain="other"))


def test_cursor_names_and_schema_can_be_chosen(ingest, kind, source):
    write(source, chain(1, 5))
    assert ingest(source, "--schema", "mine", "--latest-cursor", "top", "--oldest-cursor", "bottom").code == 0
    network = Network(kind, schema="mine")
    assert network.cursors() == {"top": 5, "bottom": 1}
    network.assert_holds(chain(1, 5))


def test_a_followed_file_is_committed_as_it_grows(ingest, network, source):
    write(source, chain(1, 3))
    with ingest.start(source, "--follow") as running:
        eventually(lambda: network.latest == 3, 20, "the first ledgers")
        for sequence in range(4, 8):
            write(source, [ledger(sequence)], "a")
            eventually(lambda: network.latest == sequence, 20, f"ledger {sequence}")
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    network.assert_holds(chain(1, 7))


def test_a_command_is_asked_for_what_comes_next(ingest, network, tmp_path, source):
    write(source, chain(1, 9))
    script = tmp_path / "give.py"
    script.write_text("import json, sys\n"
                      "first = int(sys.argv[sys.argv.index('--from') + 1])\n"
                      f"for line in open({str(source)!r}):\n"
                      "    if json.loads(line)['sequence'] >= first: sys.stdout.write(line)\n")
    assert ingest(f"exec:/usr/bin/python3 {script}").code == 0
    network.assert_holds(chain(1, 9))


def test_standard_input_is_a_source(ingest, network, source):
    write(source, chain(1, 9))
    assert ingest("-", input=source.read_bytes()).code == 0
    network.assert_holds(chain(1, 9))


def test_a_named_pipe_is_opened_once_and_read_to_its_end(ingest, network, tmp_path):
    """To look at it first would take the writer's reader away."""
    pipe = tmp_path / "ledgers"
    os.mkfifo(pipe)
    with ingest.start(pipe) as running:
        write(pipe, chain(1, 200))
        assert running.wait(20) == 0
    network.assert_holds(chain(1, 200))


# --- alone on the network -------------------------------------------------------------------------------


@pytest.fixture
def running(ingest, network, source):
    write(source, chain(1, 3))
    with ingest.start(source, "--follow") as started:
        eventually(lambda: network.latest == 3, 20, "the first ledgers")
        yield started


def test_a_second_ingester_is_refused_and_told_who_holds(running, ingest, source):
    refused = ingest(source)
    assert refused.code == EXIT_NOT_ACQUIRED
    for part in ("testnet", str(LOCK_KEY), "holdfast ingest", str(running.pid), os.uname().nodename):
        assert part in refused.err, part


def test_a_refused_ingester_has_changed_nothing(running, ingest, network, source, tmp_path):
    other = write(tmp_path / "more.ndjson", chain(1, 50))
    assert ingest(other).code == EXIT_NOT_ACQUIRED
    assert network.latest == 3


def test_a_standby_takes_over_when_the_ingester_is_killed(running, ingest, network, source):
    with ingest.start(source, "--follow", "--standby") as standby:
        standby.await_line(str(running.pid), "err")
        running.kill9()
        write(source, [ledger(4)], "a")
        eventually(lambda: network.latest == 4, 20, "the standby has taken over")
    network.assert_holds(chain(1, 4))


def test_a_standby_outlives_a_restart_of_the_server(own_pg, own_db, holdfast, source):
    command, network = holdfast.at(own_db.url()), Network(StoreKind("own", own_db.url(), own_db))
    words = ["ingest", "--network", "testnet", "--source", str(write(source, chain(1, 3))), "--follow"]
    with command.start(*words) as first:
        eventually(own_db.advisory_locks)  # or the standby might be the first
        with command.start(*words, "--standby") as standby:
            standby.await_line(str(first.pid), "err")
            own_pg.stop()
            first.kill9()
            stays(lambda: standby.process.poll() is None, 1)
            own_pg.start()
            write(source, [ledger(4)], "a")
            eventually(lambda: network.latest == 4, 30, "the standby has taken over")


@pytest.mark.parametrize("kind", ["pg15", "pg18"], indirect=True)
def test_who_loses_the_lock_while_it_begins_waits_for_its_turn_again(ingest, network, kind, source):
    """As a standby does whose turn comes when a server is about to go."""
    assert ingest(write(source, chain(1, 3))).code == 0
    with contextlib.closing(kind.database.connect("postgres", autocommit=False)) as stranger:
        run(stranger, "lock table ingest_testnet.ingest_coverage")
        with ingest.start(source, "--follow", "--standby") as standby:
            [pid] = eventually(lambda: kind.database.holders(LOCK_KEY))
            eventually(lambda: kind.database.sql("select 1 from pg_locks where not granted and relation ="
                                                 " 'ingest_testnet.ingest_coverage'::regclass"))
            kind.database.sql("select pg_terminate_backend(%s)", pid)
            stranger.rollback()
            standby.await_line("trying again", "err")
            write(source, [ledger(4)], "a")
            eventually(lambda: network.latest == 4 or standby.process.poll() is not None, 20)
            assert standby.process.poll() is None, standby.describe()
    network.assert_holds(chain(1, 4))


def test_another_network_is_not_in_the_way(running, ingest, kind, source):
    assert ingest(source, name="futurenet").code == 0
    assert Network(kind, "futurenet").latest == 3


# --- whatever dies ------------------------------------------------------------------------------------


def test_sigterm_ends_it_with_success_and_nothing_half_done(running, network):
    running.signal(signal.SIGTERM)
    assert running.wait() == 0
    network.assert_holds(chain(1, 3))


def test_kill_9_at_any_moment_loses_nothing_and_repeats_nothing(ingest, network, kind, source):
    whole = chain(1, 400)
    write(source, whole)
    random.seed(7)
    reached = 0
    for _ in range(6):
        with ingest.start(source, "--commit-every", "7") as started:
            target = reached + random.randint(1, 60)
            eventually(lambda: (network.latest or 0) >= target or started.process.poll() is not None, 20,
                       "progress")
            kind.kill9(started)
        reached = network.latest
        assert network.coverage() == [(1, reached)]
    assert ingest(source).code == 0
    network.assert_holds(whole)
    assert network.coverage() == [(1, 400)]


def test_a_lost_session_is_survived_without_loss_or_repeat(ingest, network, kind, source):
    if kind.local:
        return
    whole = chain(1, 300)
    write(source, whole)
    with ingest.start(source, "--commit-every", "3") as started:
        for target in (20, 60):
            eventually(lambda: (network.latest or 0) >= target, 20, "progress")
            for pid in kind.database.holders(LOCK_KEY):
                kind.database.sql("select pg_terminate_backend(%s)", pid)
        assert started.wait(40) == 0, started.describe()
    network.assert_holds(whole)


def test_who_has_lost_the_lock_to_another_gives_way(ingest, network, kind, source):
    """Its session is ended and a stranger is faster: it must not write beside the stranger."""
    if kind.local:
        return
    write(source, chain(1, 3))
    with ingest.start(source, "--follow") as started:
        eventually(lambda: network.latest == 3, 20, "the first ledgers")
        stranger = kind.database.connect()
        with stranger.cursor() as cursor:
            (pid,) = kind.database.holders(LOCK_KEY)
            cursor.execute("select pg_terminate_backend(%s)", (pid,))
            cursor.execute("select pg_advisory_lock(%s)", (LOCK_KEY,))
        write(source, [ledger(4)], "a")
        assert started.wait(30) == EXIT_NOT_ACQUIRED
        stranger.close()
    assert network.latest == 3


def test_a_disk_that_fills_is_waited_out_with_nothing_half_done(ingest, network, kind, source):
    """A file may grow to a megabyte: to SQLite that is a full disk."""
    if not kind.local:
        return
    whole = chain(1, 3000)
    write(source, whole)
    full = ("sh", "-c", 'trap "" XFSZ; ulimit -f 2048; exec "$@"', "sh")
    with ingest.start(source, "--commit-every", "50", prefix=full) as started:
        started.await_line("trying again", "err", timeout=30)
        started.signal(signal.SIGTERM)
        assert started.wait() == 0
    reached = network.latest
    assert 0 < reached < 3000
    network.assert_holds(chain(1, reached))
    assert network.coverage() == [(1, reached)]
    assert ingest(source).code == 0
    network.assert_holds(whole)


# --- ledgers that are not as they should be ---------------------------------------------------------------


@pytest.mark.parametrize("change, latest", [
    (["delete from @ledgers where sequence = 20"], 19),
    (["update @ingest_coverage set hi = 30", "update @ingest_store set value = '30' where key = 'latestLedgerCursor'"], 20),
    (["delete from @ledgers", "delete from @transactions"], None)])
def test_without_the_row_of_the_latest_ledger_it_does_not_start(ingest, network, source, change, latest):
    write(source, chain(1, 20))
    assert ingest(source).code == 0
    for statement in change:
        network.sql(statement)
    before = network.sequences()
    refused = ingest(write(source, chain(1, 40)))
    assert refused.code == EXIT_CONFIG and "the latest of network testnet" in refused.err and "--repair" in refused.err
    assert network.sequences() == before
    if latest:
        assert ingest.command("gaps", "--network", "testnet", "--repair").code == 0
        assert network.latest == latest


def test_a_reset_network_stops_it_with_both_hashes(ingest, network, source, tmp_path):
    write(source, chain(1, 10))
    assert ingest(source).code == 0
    reset = write(tmp_path / "reset.ndjson", chain(1, 20, chain="anew"))
    refused = ingest(reset)
    assert refused.code == EXIT_DATA
    assert ledgers.digest("main", 10) in refused.err and ledgers.digest("anew", 10) in refused.err
    assert "reset" in refused.err
    network.assert_holds(chain(1, 10))


def test_a_broken_chain_stops_it_before_the_break(ingest, network, source):
    write(source, [*chain(1, 4), ledger(5, previous="f" * 64), *chain(6, 8)])
    refused = ingest(source)
    assert refused.code == EXIT_DATA
    assert "f" * 64 in refused.err and ledgers.digest("main", 4) in refused.err
    assert network.latest in (None, 4)


@pytest.mark.parametrize("lines, latest, said", [
    ([*chain(1, 3), *chain(5, 6)], 3, "5"),
    ([*chain(1, 3), *chain(2, 4)], 4, None),
    ([*chain(1, 3), ledger(3), ledger(4)], 4, None),
    ([*chain(1, 3), ledger(2, chain="other")], 3, "fork"),
    ([*chain(1, 3), ledger(2**31)], 3, "2147483647"),
    ([*chain(1, 3), '{"sequence": 4'], 3, "4"),
    ([*chain(1, 3), "[]"], 3, ""),
    ([*chain(1, 3), ledger(4, closed_at="yesterday")], 3, "yesterday"),
    ([*chain(1, 3), ledger(4, hash=None)], 3, "hash"),
    ([*chain(1, 3), b'{"sequence": 4, "hash": "\xff"}'], 3, "UTF-8"),
    ([*chain(1, 3), ledger(4, transactions=[{"hash": "a", "order": 1}, {"hash": "a", "order": 2}])], 3, "a"),
])
def test_what_cannot_be_taken_stops_it_and_what_came_before_stays(ingest, network, source, lines, latest, said):
    write(source, lines)
    done = ingest(source)
    assert done.code == (0 if said is None else EXIT_DATA), done
    if said:
        assert said in done.err
    assert network.latest == latest
    assert network.coverage() == [(1, latest)]
    assert network.sequences() == list(range(1, latest + 1))


def test_bad_ledgers_are_quarantined_when_asked_and_stay_gaps(ingest, network, source):
    write(source, [*chain(1, 3), ledger(4, closed_at="yesterday"), ledger(5), '{"sequence": 6', *chain(7, 9)])
    done = ingest(source, "--on-bad", "quarantine")
    assert done.code == 0, done
    assert network.sequences() == [1, 2, 3, 5, 7, 8, 9]
    assert network.coverage() == [(1, 3), (5, 5), (7, 9)]
    assert network.quarantined() == [4, 6]
    assert (network.latest, network.oldest) == (9, 7)
    gaps = ingest.command("gaps", "--network", "testnet", "--json")
    assert json.loads(gaps.out)["gaps"] == [{"from": 4, "to": 4}, {"from": 6, "to": 6}]


def test_strings_with_escaped_nul_are_kept_as_they_are(ingest, network, source):
    line = json.dumps(ledger(1)).replace("SUCCESS\"", "SUCCESS\", \"x\": \"a\\u0000b\"")
    write(source, [line])
    assert ingest(source).code == 0
    ((body,), _) = network.sql("select cast(body as text) from @transactions order by to_id")
    assert "a\\u0000b" in body


def test_a_table_that_somebody_altered_stops_it_with_nothing_half_done(ingest, network, source):
    write(source, chain(1, 3))
    assert ingest(source).code == 0
    network.sql("alter table @transactions rename column fee to price")
    write(source, chain(4, 6), "a")
    refused = ingest(source)
    assert refused.code in (EXIT_CONFIG, EXIT_DATA)
    assert network.latest == 3 and network.sequences() == [1, 2, 3]


def test_a_cursor_without_its_coverage_is_refused_with_the_way_on(ingest, network, source):
    write(source, chain(1, 5))
    assert ingest(source).code == 0
    network.sql("delete from @ingest_coverage")
    refused = ingest(source)
    assert refused.code == EXIT_CONFIG
    assert "adopt" in refused.err
    network.sql("insert into @ingest_coverage (lo, hi) values (1, 4)")
    assert ingest(source).code == EXIT_CONFIG


@pytest.mark.parametrize("options", [
    ["--network", "testnet"], ["--source", "-"], ["--network", "Test Net", "--source", "-"],
    ["--network", "testnet", "--source", "-", "--on-bad", "ignore"],
    ["--network", "testnet", "--source", "-", "--keep", "some"],
    ["--network", "testnet", "--source", "-", "--workers", "2"],
    ["--network", "testnet", "--source", "-", "--backfill", "1-2", "--follow"],
])
def test_wrong_usage_is_refused(holdfast, options):
    refused = holdfast("ingest", *options)
    assert refused.code == EXIT_USAGE
    assert refused.err.startswith("error: ")


@pytest.mark.parametrize("kind", ["pg15", "pg18"], indirect=True)
def test_retention_that_commits_while_it_starts_is_no_disagreement(ingest, network, kind, source):
    """The ingester has read the cursors, and waits for coverage, when both of them move."""
    write(source, chain(1, 20))
    assert ingest(source).code == 0
    write(source, [ledger(21)], "a")
    with contextlib.closing(kind.database.connect("postgres", autocommit=False)) as stranger:
        run(stranger, "lock table ingest_testnet.ingest_coverage")
        with ingest.start(source) as started:
            eventually(lambda: kind.database.sql("select 1 from pg_locks where not granted and relation ="
                                                 " 'ingest_testnet.ingest_coverage'::regclass"))
            run(stranger, "update ingest_testnet.ingest_coverage set lo = 5")
            run(stranger, "update ingest_testnet.ingest_store set value = '5' where key = 'oldestLedgerCursor'")
            stranger.commit()
            assert started.wait() == 0, started.describe()
    assert (network.oldest, network.coverage()) == (5, [(5, 21)])
