"""A deploy without a lost ledger: `ingest --standby --ask` takes over from the ingester that is running."""

import signal
import threading

import pytest

from awaiting import eventually, stays
from cli import EXIT_USAGE
from ledgers import chain, ledger, write


@pytest.fixture(name="running")
def started(ingest, network, source):
    write(source, chain(1, 3))
    with ingest.start(source, "--follow") as running:
        eventually(lambda: network.latest == 3, 20, "the first ledgers")
        yield running


def test_the_old_one_yields_and_exits_and_the_new_one_goes_on(running, ingest, network, source):
    with ingest.start(source, "--follow", "--standby", "--ask") as new:
        assert running.wait(20) == 0
        assert "is wanted by holdfast ingest" in "".join(running.err) and "yielded" in "".join(running.err)
        write(source, [ledger(4)], "a")
        eventually(lambda: network.latest == 4, 20, "the new one has taken over")
        new.signal(signal.SIGTERM)
        assert new.wait() == 0
    network.assert_holds(chain(1, 4))


def test_the_new_one_goes_before_an_older_standby(running, ingest, network, source):
    with ingest.start(source, "--follow", "--standby") as standby:
        standby.await_line(str(running.pid), "err")
        with ingest.start(source, "--follow", "--standby", "--ask") as new:
            assert running.wait(20) == 0
            write(source, [ledger(4)], "a")
            eventually(lambda: network.latest == 4, 20, "somebody has taken over")
            standby.signal(signal.SIGTERM)  # whoever stands by has written nothing
            assert standby.wait() == 0
            write(source, [ledger(5)], "a")
            eventually(lambda: network.latest == 5, 20, "the new one goes on")
            assert new.process.poll() is None
    network.assert_holds(chain(1, 5))


def test_ledgers_that_come_meanwhile_are_there_once_and_in_order(running, ingest, network, source):
    """Three deploys while ledgers come all the time."""
    stop = threading.Event()
    count = 3

    def close_ledgers():
        nonlocal count
        while not stop.wait(0.02):
            count += 1
            write(source, [ledger(count)], "a")

    closing = threading.Thread(target=close_ledgers)
    closing.start()
    old = running
    try:
        for _ in range(3):
            new = ingest.start(source, "--follow", "--standby", "--ask")
            assert old.wait(30) == 0, old.describe()
            before = network.latest
            eventually(lambda: network.latest > before, 20, "the new one goes on")  # pylint: disable=cell-var-from-loop
            old = new
    finally:
        stop.set()
        closing.join()
    eventually(lambda: network.latest == count, 20, "all that came")
    old.signal(signal.SIGTERM)
    assert old.wait() == 0
    network.assert_holds(chain(1, count))


def test_one_that_refuses_goes_on(ingest, network, source):
    write(source, chain(1, 3))
    with ingest.start(source, "--follow", "--no-yield") as running:
        eventually(lambda: network.latest == 3, 20, "the first ledgers")
        with ingest.start(source, "--follow", "--standby", "--ask") as new:
            new.await_line(str(running.pid), "err")
            stays(lambda: running.process.poll() is None, 3)
            write(source, [ledger(4)], "a")
            eventually(lambda: network.latest == 4, 20, "it goes on")
            running.signal(signal.SIGTERM)
            assert running.wait() == 0
            write(source, [ledger(5)], "a")
            eventually(lambda: network.latest == 5, 20, "now the other one")
    network.assert_holds(chain(1, 5))


def test_ask_without_standby_is_told(ingest, source):
    write(source, chain(1, 3))
    assert ingest(source, "--ask").code == EXIT_USAGE
