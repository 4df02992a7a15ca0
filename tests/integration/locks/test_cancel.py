"""A handle ends one call: its wait, its statement or its connecting, and leaves nothing held."""

import contextlib
import threading

import pytest

import hf
import hf_tx
from awaiting import Background, eventually, stays
from hf import FOREVER, PRIVATE, SHARED, Cancel, HfError, Status

HOWS = {"plain": {}, "shared": {"mode": SHARED}, "private": {"flags": PRIVATE}, "slots": {"slots": 1}}
MANY = 100


@pytest.fixture
def cancel():
    """Named first by a test, so that it outlives the store and its calls."""
    with Cancel() as handle:
        yield handle


another = cancel


def assert_interrupted(call):
    with pytest.raises(HfError) as raised:
        call.result()
    assert raised.value.status is Status.INTERRUPTED


# --- locks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("seconds", [0.1, 1.5], ids=["short", "long"])
def test_it_ends_a_wait_and_no_other(cancel, another, store, peer, how, seconds):
    held = peer.acquire("job", **({"slots": 1} if "slots" in how else {}))
    waiter = Background(store.acquire, "job", FOREVER, cancel=cancel, **how)
    other = Background(store.acquire, "job", FOREVER, cancel=another, **how)
    stays(lambda: waiter.running and other.running, seconds)
    cancel.trigger()
    assert_interrupted(waiter)
    stays(lambda: other.running, 0.2)
    peer.release(held)
    other.result().end()


def test_it_ends_the_wait_for_a_set_and_frees_what_it_had(cancel, store, peer, other):
    peer.acquire("b")
    waiter = Background(store.acquire, ["a", "b", "c"], FOREVER, cancel=cancel)
    stays(lambda: waiter.running, 0.3)
    cancel.trigger()
    assert_interrupted(waiter)
    for label in ("a", "c"):
        eventually(lambda: other.acquire(label, 2000)).end()


def test_a_call_that_begins_with_a_triggered_handle_does_nothing(cancel, store):
    cancel.trigger()
    assert cancel.is_triggered
    assert store.refusal("job", FOREVER, cancel=cancel).status is Status.INTERRUPTED
    assert store.refusal("job", 0, cancel=cancel).status is Status.INTERRUPTED
    store.acquire("job").end()


def test_a_lock_that_is_held_outlives_the_handle(cancel, store, peer):
    lock = store.acquire("job", FOREVER, cancel=cancel)
    cancel.trigger()
    assert peer.refusal("job").status is Status.NOT_ACQUIRED
    lock.end()


def test_one_handle_ends_calls_on_several_stores(cancel, store, other, peer):
    peer.acquire("job")
    waiters = [Background(one.acquire, "job", FOREVER, cancel=cancel) for one in (store, other, store)]
    stays(lambda: all(waiter.running for waiter in waiters), 0.2)
    cancel.trigger()
    for waiter in waiters:
        assert_interrupted(waiter)


def test_nothing_is_held_after_many(store, peer):
    """At any moment of a wait, also when the lock comes at the same time."""
    for number in range(MANY):
        with Cancel() as cancel:
            held = number % 2 and peer.acquire("job", 5000)
            timer = threading.Timer(number / 1000, cancel.trigger)
            timer.start()
            try:
                store.acquire("job", 5000, cancel=cancel).end()
            except HfError as failed:
                assert failed.status is Status.INTERRUPTED, failed
            timer.join()
            if held:
                peer.release(held)
    peer.acquire("job", 5000)


def test_a_caller_of_an_older_header_has_no_handle(store):
    spec = store.spec("job")
    spec.size = hf.LockSpec.cancel.offset
    spec.cancel = 1  # what is behind it there is anything
    pointer, error = hf.c_void_p(), hf.CError()
    hf.check(hf.lib().hf_lock_acquire(store.pointer, hf.byref(spec), hf.byref(pointer), hf.byref(error)), error)
    hf.Lock(store, pointer).end()


# --- transactions ------------------------------------------------------------------------------------


def test_it_ends_the_wait_for_a_label(cancel, tx_kind):
    with tx_kind.open() as holder, tx_kind.open() as store:
        entered, leave = threading.Event(), threading.Event()

        def stay(tx):
            tx.query("select 1")
            entered.set()
            assert leave.wait(20)

        inside = Background(hf_tx.Call, holder, "job", stay)
        assert entered.wait(20)
        waiter = Background(hf_tx.Call, store, "job", lambda tx: tx.query("select 1"), cancel=cancel)
        stays(lambda: waiter.running, 0.3)
        cancel.trigger()
        assert waiter.result().status is Status.INTERRUPTED
        leave.set()
        assert inside.result().status is Status.OK
        assert hf_tx.Call(store, "job", lambda tx: tx.query("select 1")).status is Status.OK


FOR_EVER = {True: "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
            False: "select pg_sleep(600)"}


def test_it_ends_a_statement_and_rolls_back(cancel, tx_kind):
    with tx_kind.open() as store:
        hf_tx.transact(store, None, lambda tx: tx.query("create table cancelled (n int)"))
        running = threading.Event()

        def body(tx):
            tx.query("insert into cancelled values (1)")
            running.set()
            tx.query(FOR_EVER[tx_kind.local])

        call = Background(hf_tx.Call, store, "job", body, cancel=cancel)
        assert running.wait(20)
        stays(lambda: call.running, 0.2)
        cancel.trigger()
        assert call.result().status is Status.INTERRUPTED
        assert call.result().attempts == 1
        rows = hf_tx.transact(store, "job", lambda tx: tx.query("select n from cancelled"))
        assert list(rows) == []


def test_what_was_not_committed_yet_is_rolled_back(cancel, tx_kind):
    with tx_kind.open() as store:
        hf_tx.transact(store, None, lambda tx: tx.query("create table cancelled (n int)"))

        def body(tx):
            tx.query("insert into cancelled values (1)")
            cancel.trigger()

        assert hf_tx.Call(store, "job", body, cancel=cancel).status is Status.INTERRUPTED
        assert list(hf_tx.transact(store, None, lambda tx: tx.query("select n from cancelled"))) == []


def test_it_ends_the_pause_between_attempts(cancel, tx_kind):
    timer = threading.Timer(0.1, cancel.trigger)
    with tx_kind.open() as store:
        def body(tx):
            timer.start()
            tx.query("insert into counter values (1, 1)")

        call = hf_tx.Call(store, None, body, cancel=cancel, retry_unique=True, backoff_min_ms=60000,
                          backoff_max_ms=600000)
        timer.join()  # before the handle is freed
        assert call.status is Status.INTERRUPTED


# --- servers that say nothing ------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"flags": PRIVATE}, {"slots": 2}], ids=["plain", "private", "slots"])
def test_it_ends_a_call_on_a_silent_server(cancel, own_pg, own_db, how):
    with hf.Store(own_db.url()) as store:
        with own_pg.frozen():
            call = Background(store.acquire, 7, FOREVER, cancel=cancel, **how)
            stays(lambda: call.running, 0.5)
            cancel.trigger()
            assert_interrupted(call)
        eventually(lambda: not own_db.advisory_locks())


def test_it_ends_connecting_for_a_transaction(cancel, own_pg, own_db):
    with hf.Store(own_db.url()) as store, own_pg.frozen():
        call = Background(hf_tx.Call, store, "job", lambda tx: tx.query("select 1"), cancel=cancel)
        stays(lambda: call.running, 0.5)
        cancel.trigger()
        assert call.result().status is Status.INTERRUPTED


def test_it_ends_a_wait_on_a_borrowed_connection(cancel, db):
    with contextlib.closing(db.connect()) as holder, hf.PGconn(db.url()) as conn:
        with holder.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(%s)", [hf.derive("job")])
        conn.sql("begin")
        with hf.Store.borrow(conn) as store:
            waiter = Background(store.acquire, "job", FOREVER, lifetime=hf.TRANSACTION, cancel=cancel)
            eventually(lambda: db.waiters(hf.derive("job")))
            cancel.trigger()
            assert_interrupted(waiter)
            conn.sql("select 1")
            conn.sql("commit")
