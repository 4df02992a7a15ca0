"""A server that does not answer, or restarts: every limit counts from the call, and waits go on."""

import contextlib
import time

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import FOREVER, State, Status
from hf_tx import Call
from strangers import run

COMPANIONS = 1213156420
ROOM = 6.0  # seconds that a call may take beyond its limit on a busy machine; a ping's deadline is 10


def listens(db):
    return any(row[2] == COMPANIONS for row in db.advisory_locks())


@contextlib.contextmanager
def limited(seconds):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds + ROOM


@contextlib.contextmanager
def frozen_wait(own_pg, own_db, store, what, wait_ms, **how):
    """A wait that is in its long part when the server stops answering."""
    with contextlib.closing(own_db.connect()) as stranger:
        run(stranger, "select pg_advisory_lock(7)")
        waiter = Background(store.acquire, what, wait_ms, **how)
        eventually(lambda: listens(own_db))
        with own_pg.frozen():
            yield waiter


def assert_nothing_is_left(db, but=()):
    eventually(lambda: {row[3] for row in db.advisory_locks() if row[4] == 1} == set(but))


@pytest.mark.parametrize("what", [7, [7, 8]], ids=["one", "set"])
def test_short_wait_ends_in_time_on_a_silent_server_and_costs_nothing(own_pg, own_db, what):
    with hf.Store(own_db.url()) as store:
        held = store.acquire(1)
        with own_pg.frozen(), limited(1):
            assert store.refusal(what, 50).status is Status.UNREACHABLE
        assert_nothing_is_left(own_db, but=[1])
        store.acquire(what).end()
        assert held.state is State.HELD
        held.end()


def test_wait_behind_another_thread_ends_in_time_on_a_silent_server(own_pg, own_db):
    with hf.Store(own_db.url()) as store:
        with own_pg.frozen():
            other = Background(store.acquire, 1, FOREVER)
            stays(lambda: other.running, 0.2)
            with limited(1):
                assert store.refusal(7, 50).status is Status.UNREACHABLE
        other.result().end()
        assert_nothing_is_left(own_db)


def test_tries_end_in_time_on_a_silent_server_however_many_threads_make_them(own_pg, own_db):
    def tries(store):
        for _ in range(3):
            with limited(1):
                assert store.refusal(7).status in (Status.UNREACHABLE, Status.NOT_ACQUIRED)

    with hf.Store(own_db.url(), ping_deadline_ms=1000) as store:
        store.acquire(1).end()
        with own_pg.frozen():
            for one in [Background(tries, store) for _ in range(8)]:
                one.result(60)
        assert_nothing_is_left(own_db)


def test_a_try_is_not_refused_because_another_thread_has_no_answer_yet(own_pg, own_db):
    with hf.Store(own_db.url(), ping_deadline_ms=20000) as store:
        store.acquire(1).end()
        with own_pg.frozen():
            first = Background(store.acquire, 7, mode=hf.SHARED)
            stays(lambda: first.running, 0.2)
            second = Background(store.acquire, 7, mode=hf.SHARED)
            stays(lambda: second.running, 0.2)
        first.result().end()
        second.result().end()
        assert_nothing_is_left(own_db)


def test_long_wait_ends_in_time_on_a_silent_server(own_pg, own_db):
    with hf.Store(own_db.url()) as store:
        with frozen_wait(own_pg, own_db, store, 7, 3000) as waiter, limited(3):
            with pytest.raises(hf.HfError):
                waiter.result(30)
        assert_nothing_is_left(own_db)


def test_a_session_that_was_given_up_for_its_silence_says_so(own_pg, own_db):
    with hf.Store(own_db.url(), ping_deadline_ms=500) as store:
        store.acquire(1).end()
        with own_pg.frozen(), pytest.raises(hf.HfError, match="no answer within the deadline"):
            store.locks()


def test_transaction_ends_soon_after_its_deadline_on_a_silent_server(own_pg, own_db):
    with hf.Store(own_db.url()) as store, contextlib.ExitStack() as freezing:
        def body(tx):
            tx.query("select 1")
            freezing.enter_context(own_pg.frozen())
            tx.query("select 2")

        with limited(2.5):
            assert Call(store, "job", body, deadline_ms=1000).status is not Status.OK


@pytest.mark.parametrize("how", [{}, {"flags": hf.PRIVATE}, {"slots": 2}], ids=["plain", "private", "slots"])
def test_interrupt_ends_a_wait_on_a_silent_server(own_pg, own_db, how):
    with hf.Store(own_db.url()) as store:
        with frozen_wait(own_pg, own_db, store, 7, FOREVER, **how) as waiter:
            stays(lambda: waiter.running, 1.5)
            with limited(0):
                store.interrupt()
                with pytest.raises(hf.HfError) as raised:
                    waiter.result(30)
            assert raised.value.status is Status.INTERRUPTED
        assert_nothing_is_left(own_db)


# --- what has a part of what it waits for, or looks at more than one lock --------------------------------


@pytest.fixture
def cancel():
    with hf.Cancel() as handle:
        yield handle


@contextlib.contextmanager
def frozen_beside(own_pg, own_db, call):
    """What waits behind a peer, as call(store, ...) does, when the server stops answering."""
    with hf.Store(own_db.url()) as peer, hf.Store(own_db.url()) as store:
        peer.acquire(8)
        peer.acquire("few", slots=1)
        waiter = Background(call, store)
        eventually(lambda: listens(own_db))
        with own_pg.frozen():
            yield store, waiter


BESIDE = {"set": ([6, 8], {}), "private set": ([6, 8], {"flags": hf.PRIVATE}), "slots": ("few", {"slots": 1})}
beside = pytest.mark.parametrize("what, how", BESIDE.values(), ids=BESIDE)


@beside
def test_a_wait_that_has_something_already_ends_in_time(own_pg, own_db, what, how):
    with frozen_beside(own_pg, own_db, lambda store: store.acquire(what, 3000, **how)) as (_, waiter), limited(2):
        with pytest.raises(hf.HfError):
            waiter.result(30)
    eventually(lambda: {row[3] for row in own_db.advisory_locks()} == set(), what="what it had is given back")


@beside
def test_a_cancel_ends_a_wait_that_has_something_already(cancel, own_pg, own_db, what, how):
    def call(store):
        return store.acquire(what, FOREVER, cancel=cancel, **how)

    with frozen_beside(own_pg, own_db, call) as (_, waiter), limited(0):
        stays(lambda: waiter.running, 1.5)
        cancel.trigger()
        with pytest.raises(hf.HfError) as raised:
            waiter.result(30)
        assert raised.value.status is Status.INTERRUPTED


@beside
def test_an_interrupt_ends_a_wait_that_has_something_already(own_pg, own_db, what, how):
    with frozen_beside(own_pg, own_db, lambda store: store.acquire(what, FOREVER, **how)) as (store, waiter):
        stays(lambda: waiter.running, 1.5)
        with limited(0):
            store.interrupt()
            with pytest.raises(hf.HfError) as raised:
                waiter.result(30)
        assert raised.value.status is Status.INTERRUPTED


def test_a_key_that_the_process_shares_is_joined_in_time_or_not_at_all(own_pg, own_db):
    with hf.Store(own_db.url()) as store:
        held = store.acquire(7, mode=hf.SHARED)
        with own_pg.frozen(), limited(1):
            assert store.refusal(7, 50, mode=hf.SHARED).status is Status.UNREACHABLE
        store.acquire(7, mode=hf.SHARED).end()
        assert held.state is State.HELD
        held.end()
        assert_nothing_is_left(own_db)


def test_an_interrupt_ends_the_wait_of_a_transaction_for_its_label(own_pg, own_db):
    with hf.Store(own_db.url()) as store:
        Call(store, "job", lambda tx: tx.query("select 1"))
        with own_pg.frozen():
            call = Background(Call, store, "job", lambda tx: tx.query("select 1"))
            stays(lambda: call.running, 0.5)
            with limited(0):
                store.interrupt()
                assert call.result(30).status is Status.INTERRUPTED


@pytest.mark.parametrize("what, how", [(7, {}), ([7, 8], {}), (7, {"flags": hf.PRIVATE}), (7, {"slots": 2})],
                         ids=["one", "set", "private", "slots"])
def test_wait_goes_on_over_a_restart(own_pg, own_db, what, how):
    with hf.Store(own_db.url()) as store, contextlib.closing(own_db.connect()) as stranger:
        run(stranger, "select pg_advisory_lock(7)")
        waiter = Background(store.acquire, what, FOREVER, **how)
        eventually(lambda: listens(own_db))
        own_pg.stop()
        stays(lambda: waiter.running, 0.5)
        own_pg.start()
        lock = waiter.result()
        assert lock.state is State.HELD
        lock.end()


def test_wait_that_is_over_before_the_server_is_back_says_so(own_pg, own_db):
    with hf.Store(own_db.url()) as store, contextlib.closing(own_db.connect()) as stranger:
        run(stranger, "select pg_advisory_lock(7)")
        began = time.monotonic()
        waiter = Background(store.acquire, 7, 2500)
        eventually(lambda: listens(own_db))
        own_pg.stop()
        with pytest.raises(hf.HfError) as raised:
            waiter.result()
        assert raised.value.status is Status.UNREACHABLE
        assert 2.4 < waiter.finished_at - began < 2.5 + ROOM


def test_wait_ends_when_the_server_refuses_for_good(own_pg, own_db):
    with hf.Store(own_db.url()) as store, contextlib.closing(own_db.connect(user="postgres")) as stranger:
        run(stranger, "select pg_advisory_lock(7)")
        waiter = Background(store.acquire, 7, FOREVER)
        eventually(lambda: listens(own_db))
        own_pg.sql("alter role app nologin")
        for pid in own_db.sessions():
            own_pg.terminate(pid)
        with pytest.raises(hf.HfError) as raised:
            waiter.result()
        assert raised.value.status is Status.UNREACHABLE
        assert "not permitted to log in" in raised.value.message


def test_closing_waits_once_for_a_silent_server_whatever_it_has_to_say_there(own_pg, own_db):
    """Events, a lease's row and its sessions: 1.5 s together, or 3 s if a record is being written."""
    hf.install(own_db.url())
    store = hf.Store(own_db.url())
    for how in ({}, {"flags": hf.PRIVATE}, {"lifetime": hf.LEASE}):
        store.acquire("job", **how).end()
    with own_pg.frozen():
        began = time.monotonic()
        store.close()
        assert time.monotonic() - began < 4.4
