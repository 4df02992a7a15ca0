"""holdfast ingest from Stellar RPC, end to end."""

import signal

import pytest

from awaiting import eventually
from cli import EXIT_CONFIG, EXIT_DATA
from stellar_rpc import Body, Cut, Error, Http


pytestmark = pytest.mark.parametrize("kind", ["local", "pg15"], indirect=True)


@pytest.fixture
def rpc(rpc):
    rpc.close_ledgers(20, transactions=3)
    return rpc


@pytest.fixture
def start(kind, holdfast, rpc):
    def begin(*options, url=None, name="testnet"):
        return holdfast.at(kind.url).start("ingest", "--network", name, "--source",
                                           url or rpc.url_with(poll="20ms"), *options)
    return begin


def assert_holds(network, rpc, first, last):
    rows = network.sql("select sequence, hash, transaction_count from @ledgers order by sequence")
    assert [(row[0], row[1]) for row in rows] == [
        (sequence, rpc.ledger(sequence).hash) for sequence in range(first, last + 1)]
    (count,) = network.sql("select count(*) from @transactions")[0]
    assert count == sum(row[2] for row in rows)


def test_a_first_run_begins_at_the_tip_and_follows_it(start, rpc, network):
    tip = rpc.latest
    with start() as running:
        eventually(lambda: network.latest == tip, 20, "the tip")
        for _ in range(3):
            rpc.close_ledgers(1)
            eventually(lambda: network.latest == rpc.latest, 20, "the next ledger")
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    assert_holds(network, rpc, tip, rpc.latest)
    assert network.coverage() == [(tip, rpc.latest)]


def test_errors_of_the_server_are_waited_out(start, rpc, network):
    rpc.fault("getLedgers", Http(503), Error(-32603), Cut())
    with start("--start-ledger", "5") as running:
        running.await_line("trying again", "err")
        eventually(lambda: network.latest == rpc.latest, 40, "everything")
    assert_holds(network, rpc, 5, rpc.latest)


def test_a_pause_that_the_server_asks_for_is_the_one_that_is_told(start, rpc, network):
    rpc.fault("getLedgers", Http(429, retry_after=3))
    with start("--start-ledger", "5") as running:
        running.await_line("trying again in 3 s", "err")


def test_a_server_of_another_network_is_refused(start, network):
    with start(name="pubnet") as running:
        done = running.wait_all()
        assert done.code == EXIT_CONFIG and "Test SDF Network" in done.err


def test_what_the_server_has_forgotten_is_a_permanent_gap(start, rpc, network):
    rpc.forget_before(10)
    with start("--start-ledger", "5") as running:
        done = running.wait_all()
        assert done.code == EXIT_CONFIG and "10" in done.err


def test_a_reset_of_the_network_stops_it_with_both_hashes(start, rpc, network):
    with start() as running:
        eventually(lambda: network.latest == rpc.latest, 20, "the tip")
        running.signal(signal.SIGTERM)
        running.wait()
    before = rpc.ledger(rpc.latest).hash
    height = rpc.latest
    rpc.reset()
    rpc.close_ledgers(height + 3)
    with start() as running:
        done = running.wait_all()
        assert done.code == EXIT_DATA and before in done.err and rpc.ledger(height).hash in done.err


def test_a_reset_is_told_at_the_first_look_long_before_the_new_chain_is_as_long(start, rpc, network):
    with start("--start-ledger", "2") as running:
        eventually(lambda: network.latest == rpc.latest, 20, "the tip")
        running.signal(signal.SIGTERM)
        running.wait()
    before = rpc.ledger(7).hash
    rpc.reset(ledgers=6)
    with start() as running:
        done = running.wait_all()
        assert done.code == EXIT_DATA and before in done.err and rpc.ledger(7).hash in done.err


def test_a_reset_while_it_runs_is_told_long_before_the_new_chain_is_as_long(start, rpc, network):
    with start("--start-ledger", "2") as running:
        eventually(lambda: network.latest == rpc.latest, 20, "the tip")
        before = rpc.ledger(7).hash
        rpc.reset(ledgers=6)
        done = running.wait_all()
        assert done.code == EXIT_DATA and before in done.err and rpc.ledger(7).hash in done.err


@pytest.mark.parametrize("running_then", [False, True])
def test_a_reset_is_told_by_the_time_where_the_old_ledgers_are_not_kept(start, rpc, network, running_then):
    with start() as running:
        eventually(lambda: network.latest == rpc.latest, 20, "the tip, and nothing before it")
        if not running_then:
            running.signal(signal.SIGTERM)
            running.wait()
        rpc.reset(ledgers=6, later=1000)
        with running if running_then else start() as told:
            done = told.wait_all()
            assert done.code == EXIT_DATA and "reset" in done.err and "ledger 7" in done.err


@pytest.mark.parametrize("first", ["2", "21"])
def test_a_server_that_lags_is_waited_for_with_a_note(start, rpc, network, first):
    with start("--start-ledger", first) as running:
        eventually(lambda: network.latest == rpc.latest, 20, "the tip")
        rpc.latest_of = {"getHealth": 8, "getLedgers": 8, "getTransactions": 8}
        running.await_line("lags behind", "err")
        rpc.latest_of = {}
        rpc.close_ledgers(1)
        eventually(lambda: network.latest == rpc.latest, 20, "the next ledger")
    rpc.latest_of = {"getHealth": 8, "getLedgers": 8, "getTransactions": 8}
    with start() as running:
        running.await_line("lags behind", "err")
        rpc.latest_of = {}
        rpc.close_ledgers(1)
        eventually(lambda: network.latest == rpc.latest, 20, "the next ledger")
    assert_holds(network, rpc, int(first), rpc.latest)


def test_an_answer_that_is_no_ledger_and_too_large_is_not_a_bad_ledger(start, rpc, network):
    rpc.close_ledgers(1)
    with start("--on-bad", "quarantine") as running:
        eventually(lambda: network.latest == rpc.latest, 20, "the tip")
        rpc.fault("getHealth", Body(b" " * (2 << 20)))
        running.await_line("trying again", "err")
        rpc.close_ledgers(2)
        eventually(lambda: network.latest == rpc.latest, 20, "the next ledgers")
    assert network.quarantined() == []


@pytest.mark.parametrize("status", [400, 401, 404])
def test_no_http_status_ends_it_once_the_server_has_answered(start, rpc, network, status):
    """A gateway may say so while what is behind it is away; at the start it is a wrong URL."""
    with start() as running:
        eventually(lambda: network.latest == rpc.latest, 20, "the tip")
        rpc.fault("getHealth", Http(status))
        running.await_line(f"HTTP {status}; trying again", "err")
        rpc.close_ledgers(1)
        eventually(lambda: network.latest == rpc.latest, 20, "the next ledger")
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    rpc.fault("getNetwork", Http(status))
    with start() as running:
        assert running.wait() == EXIT_CONFIG, running.describe()


def test_what_lies_before_the_tip_is_backfilled(start, rpc, network):
    tip = rpc.latest
    with start() as running:
        eventually(lambda: network.latest == tip, 20, "the tip")
        rpc.fault("getTransactions", Http(429, retry_after=0), Cut())
        with start("--backfill", f"5-{tip}") as backfill:
            assert backfill.wait(40) == 0, backfill.describe()
        rpc.close_ledgers(2)
        eventually(lambda: network.latest == rpc.latest, 20, "live goes on")
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    assert_holds(network, rpc, 5, rpc.latest)
    assert network.oldest == 5
