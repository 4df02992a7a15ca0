"""Losing a lock: told soon, told once, and nothing pretends to hold afterwards."""

import contextlib
import os
import select
import signal
import threading

import pytest

import hf
import servers
from awaiting import Background, eventually, stays
from hf import FOREVER, HfError, State, Status
from hf_tx import OnLock
from losses import Losses

QUICK = {"ping_interval_ms": 200, "ping_deadline_ms": 1500}
QUICK_BOUND = 1.7 + 2.0  # seconds: ping and deadline, and room for a busy machine
AT_ONCE = {"ping_interval_ms": 600000}  # what is told in a test's life is not told by a ping


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def assert_lost(lock):
    assert lock.state is State.LOST
    with pytest.raises(HfError) as raised:
        lock.release()
    assert raised.value.status is Status.LOST
    with pytest.raises(HfError) as raised:
        lock.release()
    assert raised.value.status is Status.INVALID


def test_terminated_backend_is_reported_at_once_and_once(db):
    lost = Losses()
    with hf.Store(db.url(), **AT_ONCE) as store:
        lock = store.acquire("job", on_lost=lost)
        pid, = db.holders(lock.key)
        db.server.terminate(pid)
        assert lost.first.wait(20)
        lost.assert_once()
        assert "'job'" in lost.errors[0].message
        assert_lost(lock)


def test_loss_is_seen_without_a_callback(db):
    with hf.Store(db.url(), **AT_ONCE) as store:
        lock = store.acquire("job")
        db.server.terminate(db.holders(lock.key)[0])
        eventually(lambda: lock.state is State.LOST)
        assert_lost(lock)


def test_every_lock_on_a_lost_session_is_reported_once(db):
    with hf.Store(db.url(), **AT_ONCE) as store:
        all_lost = {key: Losses() for key in (1, 2, 3)}
        locks = [store.acquire(key, on_lost=lost) for key, lost in all_lost.items()]
        assert len({db.holders(key)[0] for key in all_lost}) == 1
        db.server.terminate(db.holders(1)[0])
        for lost in all_lost.values():
            assert lost.first.wait(20)
        for lost in all_lost.values():
            lost.assert_once()
        for lock in locks:
            assert_lost(lock)


def test_lost_set_is_one_loss(db):
    lost = Losses()
    with hf.Store(db.url(), **AT_ONCE) as store:
        lock = store.acquire([1, 2, 3], on_lost=lost)
        db.server.terminate(db.holders(1)[0])
        assert lost.first.wait(20)
        lost.assert_once()
        assert_lost(lock)


def test_lost_slot_is_reported(db):
    lost = Losses()
    with hf.Store(db.url(), **AT_ONCE) as store:
        lock = store.acquire("pool", slots=2, on_lost=lost)
        for pid in {row[0] for row in db.advisory_locks()}:
            db.server.terminate(pid)
        assert lost.first.wait(20)
        lost.assert_once()
        assert_lost(lock)


def test_released_lock_is_never_lost(db):
    lost = Losses()
    with hf.Store(db.url()) as store:
        lock = store.acquire("job", on_lost=lost)
        pid, = db.holders(lock.key)
        lock.release()
        db.server.terminate(pid)
        eventually(lambda: pid not in db.sessions())
        stays(lambda: lost.errors == [], 0.3)
        assert lock.state is State.RELEASED


def test_frozen_backend_is_a_loss_within_ping_and_deadline(db):
    lost = Losses()
    with hf.Store(db.url(), **QUICK) as store:
        lock = store.acquire("job", on_lost=lost)
        with stopped(db.holders(lock.key)[0]):
            assert lost.first.wait(QUICK_BOUND)
            lost.assert_once()
            assert_lost(lock)


def test_frozen_server_is_a_loss_and_the_store_recovers(own_pg, own_db):
    lost = Losses()
    with hf.Store(own_db.url(), connect_timeout_ms=2000, **QUICK) as store:
        lock = store.acquire("job", on_lost=lost)
        with own_pg.frozen():
            assert lost.first.wait(QUICK_BOUND)
            assert store.refusal("other").status in (Status.UNREACHABLE, Status.LOST)
        lost.assert_once()
        assert_lost(lock)
        store.acquire("job", 10000)


@contextlib.contextmanager
def through_proxy(db, **options):
    with servers.Proxy(db.server.port) as proxy, hf.Store(db.url(port=proxy.port), **options) as store:
        yield proxy, store


def test_silent_network_is_a_loss_within_ping_and_deadline(db):
    lost = Losses()
    with through_proxy(db, connect_timeout_ms=2000, **QUICK) as (proxy, store):
        lock = store.acquire("job", on_lost=lost)
        proxy.blackhole()
        assert lost.first.wait(QUICK_BOUND)
        lost.assert_once()
        assert_lost(lock)
        proxy.cut()


def test_slow_network_is_no_loss(db):
    lost = Losses()
    with through_proxy(db, **QUICK) as (proxy, store):
        lock = store.acquire("job", on_lost=lost)
        proxy.delay = 0.1
        stays(lambda: lock.state is State.HELD, 2)
        assert lost.errors == []
        lock.end()


def test_cut_connection_is_reported_at_once(db):
    lost = Losses()
    with through_proxy(db, **AT_ONCE) as (proxy, store):
        lock = store.acquire("job", on_lost=lost)
        proxy.cut()
        assert lost.first.wait(20)
        lost.assert_once()
        assert_lost(lock)


@pytest.mark.parametrize("crash", ["kill9", "kill9_postmaster", "stop"])
def test_end_of_the_server_is_a_loss_and_its_return_is_used(own_pg, own_db, crash):
    lost = Losses()
    with hf.Store(own_db.url(), connect_timeout_ms=2000, **AT_ONCE) as store:
        lock = store.acquire("job", on_lost=lost)
        getattr(own_pg, crash)()
        assert lost.first.wait(20)
        lost.assert_once()
        assert_lost(lock)
        assert store.refusal("job").status is Status.UNREACHABLE
        own_pg.start()
        store.acquire("job", 10000).end()


def test_store_is_usable_again_after_a_loss(db):
    with hf.Store(db.url(), **AT_ONCE) as store:
        lock = store.acquire("job")
        key = lock.key
        db.server.terminate(db.holders(key)[0])
        eventually(lambda: lock.state is State.LOST)
        again = store.acquire("job")
        assert again.state is State.HELD
        assert db.holders(key)
        assert_lost(lock)
        assert again.state is State.HELD and db.holders(key), "the old handle frees nothing of the new"


def test_idle_session_that_was_ended_is_replaced_unnoticed(db):
    with hf.Store(db.url()) as store:
        store.acquire("job").end()
        for pid in db.sessions():
            db.server.terminate(pid)
        eventually(lambda: not db.sessions())
        store.acquire("job").end()


def test_private_lock_shares_no_fate(db):
    shared_lost, private_lost = Losses(), Losses()
    with hf.Store(db.url(), **AT_ONCE) as store:
        shared = store.acquire(1, on_lost=shared_lost)
        private = store.acquire(2, flags=hf.PRIVATE, on_lost=private_lost)
        assert db.holders(1) != db.holders(2)
        db.server.terminate(db.holders(1)[0])
        assert shared_lost.first.wait(20)
        assert private.state is State.HELD
        assert db.holders(2)
        private.end()
        assert_lost(shared)
        assert private_lost.errors == []


def test_lost_private_lock_leaves_the_others(db):
    private_lost = Losses()
    with hf.Store(db.url(), **AT_ONCE) as store:
        shared = store.acquire(1)
        private = store.acquire(2, flags=hf.PRIVATE, on_lost=private_lost)
        db.server.terminate(db.holders(2)[0])
        assert private_lost.first.wait(20)
        assert_lost(private)
        assert shared.state is State.HELD
        shared.end()


def test_loss_is_told_however_many_sessions_there_are(own_pg):
    own_pg.extra_settings = "max_connections = 300\n"
    own_pg.restart()
    db, lost = own_pg.create_database(), Losses()
    with hf.Store(db.url(), max_keys=1000, **AT_ONCE) as store:
        oldest = store.acquire(1, flags=hf.PRIVATE, on_lost=lost)
        for key in range(2, 262):
            store.acquire(key, flags=hf.PRIVATE)
        own_pg.terminate(db.holders(1)[0])
        assert lost.first.wait(20)
        assert_lost(oldest)


def test_lock_got_by_waiting_is_watched_too(db):
    lost = Losses()
    with hf.Store(db.url(), **AT_ONCE) as store, contextlib.closing(db.connect()) as stranger:
        with stranger.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(7)")
            waiter = Background(store.acquire, 7, FOREVER, on_lost=lost)
            eventually(lambda: db.waiters(7))
            cursor.execute("select pg_advisory_unlock(7)")
        lock = waiter.result()
        db.server.terminate(db.holders(7)[0])
        assert lost.first.wait(20)
        lost.assert_once()
        assert_lost(lock)


def test_callback_that_takes_its_time_stops_no_watching(db):
    entered, leave = threading.Event(), threading.Event()

    def on_lost(*_):
        entered.set()
        assert leave.wait(20)

    with hf.Store(db.url(), **AT_ONCE) as store:
        slow, other = [store.acquire(key, flags=hf.PRIVATE, on_lost=on_lost) for key in (1, 2)]
        db.server.terminate(db.holders(1)[0])
        assert entered.wait(20)
        db.server.terminate(db.holders(2)[0])
        eventually(lambda: other.state is State.LOST)
        leave.set()
        assert_lost(slow)
        assert_lost(other)


def test_lock_may_be_freed_inside_its_callback(db):
    done = threading.Event()
    with hf.Store(db.url(), **AT_ONCE) as store:
        def on_lost(lock, _):
            hf.lib().hf_lock_free(lock.pointer)
            done.set()

        lock = store.acquire("job", on_lost=on_lost)
        store.forget(lock)
        db.server.terminate(db.holders(lock.key)[0])
        assert done.wait(20)
        store.acquire("job").end()


def test_lock_may_be_released_and_taken_again_inside_its_callback(db):
    outcome, done = [], threading.Event()
    with hf.Store(db.url(), **AT_ONCE) as store:
        def on_lost(lock, _):
            try:
                lock.release()
            except HfError as error:
                outcome.append(error.status)
            done.set()

        lock = store.acquire("job", on_lost=on_lost)
        db.server.terminate(db.holders(lock.key)[0])
        assert done.wait(20)
        assert outcome == [Status.LOST]


def test_waiter_in_the_process_gets_a_real_lock_after_the_holder_lost_it(db):
    with hf.Store(db.url()) as store:
        lock = store.acquire("job")
        waiter = Background(store.acquire, "job", FOREVER)
        stays(lambda: waiter.running, 0.3)
        db.server.terminate(db.holders(lock.key)[0])
        granted = waiter.result(10)
        assert granted.state is State.HELD
        assert db.holders(granted.key)
        assert_lost(lock)


def test_release_tells_of_a_loss_also_when_a_thread_waits_for_the_key(db):
    with hf.Store(db.url(), ping_interval_ms=600000, ping_deadline_ms=1500) as store:
        lock = store.acquire("job")
        waiter = Background(store.acquire, "job", FOREVER)
        stays(lambda: waiter.running, 0.3)
        with stopped(db.holders(lock.key)[0]):
            with pytest.raises(HfError) as raised:
                lock.release()
            assert raised.value.status is Status.LOST
        waiter.result().end()


def test_callback_form_reports_the_loss(db):
    with hf.Store(db.url(), **AT_ONCE) as store:
        def body(lock):
            db.server.terminate(db.holders(lock.key)[0])
            eventually(lambda: lock.state is State.LOST)

        with pytest.raises(HfError) as raised:
            store.locked("job", body)
        assert raised.value.status is Status.LOST


# --- event loops ------------------------------------------------------------------------------------


def readable(fd, timeout):
    return bool(select.select([fd], [], [], timeout)[0])


def test_event_loop_is_told_by_a_descriptor_and_runs_the_callback_itself(db):
    threads = []
    with hf.Store(db.url(), dispatch=True, **AT_ONCE) as store:
        lock = store.acquire("job", on_lost=lambda *_: threads.append(threading.current_thread()))
        assert not readable(store.fd, 0.2)
        assert store.dispatch() == 0
        db.server.terminate(db.holders(lock.key)[0])
        assert readable(store.fd, 20)
        assert threads == []
        assert lock.state is State.LOST
        assert store.dispatch() == 1
        assert threads == [threading.current_thread()]
        assert not readable(store.fd, 0.2)
        assert store.dispatch() == 0


def test_dispatch_runs_nothing_for_a_lock_that_was_freed_before(db):
    calls = []
    with hf.Store(db.url(), dispatch=True, **AT_ONCE) as store:
        lock = store.acquire("job", on_lost=lambda *_: calls.append(1))
        db.server.terminate(db.holders(lock.key)[0])
        assert readable(store.fd, 20)
        lock.free()
        assert store.dispatch() == 0
        assert calls == []


def test_without_dispatch_the_callback_runs_by_itself(db):
    threads, done = [], threading.Event()
    with hf.Store(db.url(), **AT_ONCE) as store:
        def on_lost(*_):
            threads.append(threading.current_thread())
            done.set()

        lock = store.acquire("job", on_lost=on_lost)
        db.server.terminate(db.holders(lock.key)[0])
        assert done.wait(20)
        assert threads != [threading.current_thread()]


# --- unlock that finds nothing ------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["job", ["a", "b"]], ids=["one", "set"])
def test_unlock_that_finds_nothing_is_a_loss(db, what):
    """Something in between ran a statement on our session, as a misconfigured pooler does."""
    with through_proxy(db, ping_interval_ms=60000) as (proxy, store):
        lock = store.acquire(what)
        assert db.holders(lock.key)
        proxy.inject("select pg_advisory_unlock_all()")
        assert not db.holders(lock.key)
        with pytest.raises(HfError) as raised:
            lock.release()
        assert raised.value.status is Status.LOST


def test_lock_taken_away_through_a_session_pooler_is_a_loss(db15, session_pooler):
    """The pooler's admin kills the server connection under the client."""
    lost = Losses()
    with hf.Store(session_pooler.url(db15.name), session_pool=True, **AT_ONCE) as store:
        lock = store.acquire("job", on_lost=lost)
        db15.server.terminate(db15.holders(lock.key)[0])
        assert lost.first.wait(20)
        assert_lost(lock)


# --- a session that is busy ---------------------------------------------------------------------------


def busy_with(lock, sql):
    """A transaction on the lock's own session, in a thread."""
    return Background(OnLock, lock, lambda tx: tx.value(sql))


def test_loss_is_told_in_time_while_a_transaction_keeps_the_session_busy(own_pg, own_db):
    lost = Losses()
    with hf.Store(own_db.url(), **QUICK) as store:
        lock = store.acquire("job", flags=hf.PRIVATE, on_lost=lost)
        busy = busy_with(lock, "select pg_sleep(5)")
        eventually(lambda: own_db.value("select count(*) from pg_stat_activity where query like '%pg_sleep(5)%'"
                                        " and pid <> pg_backend_pid()"))
        with own_pg.frozen():
            assert lost.first.wait(QUICK_BOUND)
            lost.assert_once()
        busy.result()
        assert_lost(lock)


def test_session_that_is_only_busy_is_not_lost(db):
    lost = Losses()
    with hf.Store(db.url(), **QUICK) as store:
        lock = store.acquire("job", flags=hf.PRIVATE, on_lost=lost)
        assert busy_with(lock, "select pg_sleep(4)").result().status is Status.OK
        assert lock.state is State.HELD and lost.errors == []
        lock.end()
