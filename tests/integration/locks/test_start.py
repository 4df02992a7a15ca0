"""hf_lock_start: as hf_lock_acquire, but its caller goes on, and its waits cost no thread each."""

import os
import select
import threading

import pytest

import hf
import hf_start
from awaiting import eventually, stays
from hf import ANY_ORDER, FOREVER, LEASE, PRIVATE, REENTRANT, SHARED, Cancel, HfError, Status
from hf_start import Started, StartedFn

HOWS = {
    "plain": {},
    "shared": {"mode": SHARED},
    "private": {"flags": PRIVATE},
    "slots": {"slots": 1},
    "derivation": {"derivation": hf.Derivation.HASHTEXT},
}
MANY = 200


def as_held(how):
    return {name: value for name, value in how.items() if name in ("slots", "derivation")}


def threads():
    return len(os.listdir("/proc/self/task"))


def stay_waiting(waiters, seconds):
    stays(lambda: all(waiter.running or waiter.result() is None for waiter in waiters), seconds)


def assert_status(started, status):
    with pytest.raises(HfError) as raised:
        started.result()
    assert raised.value.status is status, raised.value
    return raised.value


# --- the same outcomes -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("seconds", [0.1, 1.5], ids=["short", "long"])
def test_it_waits_and_is_granted(store, peer, how, seconds):
    held = peer.acquire("job", **as_held(how))
    waiter = Started(store, "job", FOREVER, **how)
    stays(lambda: waiter.running, seconds)
    peer.release(held)
    lock = waiter.result()
    assert peer.refusal("job", **as_held(how)).status is Status.NOT_ACQUIRED
    lock.end()
    peer.acquire("job", 5000, **as_held(how))


def test_what_is_free_is_had_at_once_and_what_is_not_is_refused(store, peer):
    Started(store, "free").result().end()
    peer.acquire("job")
    assert "pid" in assert_status(Started(store, "job"), Status.NOT_ACQUIRED).message
    assert_status(Started(store, "job", 300), Status.NOT_ACQUIRED)


def test_a_set_is_had_as_a_whole_or_not_at_all(store, peer, other):
    held = peer.acquire("b")
    waiter = Started(store, ["a", "b", "c"], FOREVER)
    refused = Started(store, ["x", "b"], 0)
    assert_status(refused, Status.NOT_ACQUIRED)
    other.acquire("x").end()
    peer.release(held)
    lock = waiter.result()
    for label in "abc":
        assert other.refusal(label).status is Status.NOT_ACQUIRED
    lock.end()


def test_a_lease_is_waited_for_without_a_thread(recorded):
    with recorded.open() as store, recorded.open() as other:
        held = other.acquire("job", lifetime=LEASE, lease_ms=5000)
        store.acquire("warm", lifetime=LEASE, lease_ms=5000).end()
        Started(store, "warm").result().end()
        before = threads()
        waiters = [Started(store, "job", FOREVER, owner=1, lifetime=LEASE, lease_ms=5000) for _ in range(20)]
        stay_waiting(waiters, 0.5)
        assert threads() <= before + 2
        held.end()
        for waiter in waiters:
            waiter.result().end()


def test_its_owner_is_who_starts_it_or_the_task_that_is_named(store):
    small, great = sorted(("a", "b"), key=hf.derive)
    with Started(store, great, 0, owner=7).result(), Started(store, "job").result():
        assert_status(Started(store, small, 1000, owner=7), Status.ORDER)
        Started(store, small, 1000, owner=7, flags=ANY_ORDER).result().end()
        Started(store, great, 1000, owner=7, flags=REENTRANT).result().end()
        Started(store, "job", 1000, flags=REENTRANT).result().end()
        store.acquire("job", 1000, flags=REENTRANT).end()


def test_a_deadlock_of_two_tasks_is_found(store):
    first, second = Started(store, "a", owner=1).result(), Started(store, "b", owner=2).result()
    waits = Started(store, "b", FOREVER, owner=1, flags=ANY_ORDER)
    stays(lambda: waits.running, 0.1)
    assert_status(Started(store, "a", FOREVER, owner=2, flags=ANY_ORDER), Status.DEADLOCK)
    second.end()
    waits.result().end()
    first.end()


def test_those_of_one_process_are_granted_in_the_order_in_which_they_were_started(store):
    held, granted = store.acquire("job"), []
    waiters = [Started(store, "job", FOREVER, done=granted.append) for _ in range(20)]
    stays(lambda: not granted, 0.1)
    held.end()
    for waiter in waiters:
        waiter.result().end()
    assert granted == waiters


def test_on_wait_is_told_before_the_end(store, peer):
    held, told = peer.acquire("job"), []
    waiter = Started(store, "job", FOREVER, on_wait=lambda why: told.append(why),
                     done=lambda _: told.append("done"))
    eventually(lambda: told)
    assert waiter.running and "pid" in told[0].message
    peer.release(held)
    waiter.result().end()
    assert told[1:] == ["done"]


def test_a_loss_is_told_after_the_end(kind):
    told = []
    with kind.open(dispatch=True) as store:
        started = Started(store, "job", on_lost=lambda lock, why: told.append(why.status),
                          done=lambda _: told.append("done"))
        eventually(lambda: select.select([store.fd], [], [], 0)[0])
        kind.lose(hf.derive("job"))
        stays(lambda: not told, 1.5)
        eventually(lambda: store.dispatch() and len(told) > 1 or len(told) > 1)
        assert told == ["done", Status.LOST]
        started.result().free()


# --- where it is told --------------------------------------------------------------------------------


def test_an_event_loop_is_told_in_its_own_thread(kind, peer):
    held = peer.acquire("job")
    with kind.open(dispatch=True) as store:
        waiter = Started(store, "job", FOREVER)
        stays(lambda: waiter.running and not select.select([store.fd], [], [], 0)[0], 0.2)
        peer.release(held)
        assert select.select([store.fd], [], [], 20)[0]
        assert waiter.running
        assert store.dispatch() == 1
        assert waiter.told_in == threading.get_native_id()
        waiter.result().end()


def test_a_callback_may_start_another_and_release(store):
    ended = []

    def next_one(started):
        lock = started._outcome
        lock.release()
        lock.free()
        ended.append(started)
        if len(ended) < 50:
            Started(store, "job", FOREVER, done=next_one)

    Started(store, "job", FOREVER, done=next_one)
    eventually(lambda: len(ended) == 50)


# --- the end -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
def test_a_handle_ends_it_and_no_other(store, peer, how):
    held = peer.acquire("job", **as_held(how))
    with Cancel() as cancel, Cancel() as another:
        waiter = Started(store, "job", FOREVER, cancel=cancel, **how)
        other = Started(store, "job", FOREVER, cancel=another, **how)
        stays(lambda: waiter.running and other.running, 0.2)
        cancel.trigger()
        assert_status(waiter, Status.INTERRUPTED)
        stays(lambda: other.running, 0.2)
        peer.release(held)
        other.result().end()


def test_nothing_is_held_after_many_that_are_cancelled(store, peer):
    """At any moment, also when the lock comes at the same time."""
    for number in range(100):
        with Cancel() as cancel:
            held = number % 2 and peer.acquire("job", 5000)
            waiter = Started(store, "job", 5000, cancel=cancel)
            if number % 3:
                waiter.finished.wait(number / 2000)
            cancel.trigger()
            try:
                waiter.result().end()
            except HfError as failed:
                assert failed.status is Status.INTERRUPTED, failed
            if held:
                peer.release(held)
    peer.acquire("job", 5000)


@pytest.mark.parametrize("dispatch", [False, True])
def test_closing_the_store_ends_what_waits_and_keeps_nothing(kind, peer, dispatch):
    held = peer.acquire("job")
    with kind.open(dispatch=dispatch) as store:
        waiters = [Started(store, "job", FOREVER) for _ in range(3)]
        untold = Started(store, "free") if dispatch else None
        stay_waiting(waiters, 0.3)
    for waiter in [*waiters, *([untold] if untold else [])]:
        assert_status(waiter, Status.INTERRUPTED)
    peer.release(held)
    for label in ("job", "free"):
        peer.release(peer.acquire(label, 5000))


def test_what_cannot_be_started_is_refused_at_once(store):
    start, spec, nobody, error = hf_start.lib().hf_lock_start, store.spec("job"), StartedFn(), hf.CError()
    assert start(None, hf.byref(spec), nobody, hf.byref(error)) == Status.INVALID
    assert start(store.pointer, None, nobody, hf.byref(error)) == Status.INVALID
    assert start(store.pointer, hf.byref(spec), nobody, hf.byref(error)) == Status.INVALID
    for what, how in (([], {}), ("job", {"mode": 7}), ("job", {"flags": 1 << 20}), (b"x" * 70_000, {})):
        assert_status(Started(store, what, **how), Status.INVALID)


# --- how many threads --------------------------------------------------------------------------------


def test_waits_cost_no_thread_each(kind):
    """On a local store the kernel wakes a thread, so that there each key that is waited for has one."""
    labels = [f"job-{number}" for number in range(MANY)]
    with kind.open() as holder, kind.open() as store:
        held = [holder.acquire(label) for label in labels]
        store.acquire("warm").end()
        before = threads()
        waiters = [Started(store, label, FOREVER, owner=number + 1) for number, label in enumerate(labels)]
        stay_waiting(waiters, 1.5)
        more = threads() - before
        assert more <= (MANY + 3 if kind.local else 8)
        if kind.database:
            assert len(kind.database.sessions()) <= 12
        for lock in held:
            lock.end()
        for waiter in waiters:
            waiter.result().end()


def test_those_who_wait_for_one_key_share_what_waits(kind):
    with kind.open() as holder, kind.open() as store:
        held = holder.acquire("job")
        store.acquire("warm").end()
        before = threads()
        waiters = [Started(store, "job", FOREVER, owner=1) for _ in range(MANY)]
        stay_waiting(waiters, 0.5)
        assert threads() - before <= 6
        held.end()
        for waiter in waiters:
            waiter.result().end()
