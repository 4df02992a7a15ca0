"""Yielding: the holder is told who asks, and the lock goes to that one when it is released."""

import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
import holdfast.aio
from conftest import POOLED, eventually, session_locks
from holdfast import State, locks

WAYS = {"session": {}, "private": {"private": True}, "lease": {"lease": 5}}
SOON = 20.0  # seconds


@pytest.fixture(params=WAYS, name="way")
def given_way(request, store):
    """How all of a test lock, where the store can."""
    way = WAYS[request.param]
    if POOLED and "lease" not in way:
        pytest.skip("a pooler in transaction mode has no session locks")
    try:
        store.lock("Test:way", **way).release()
    except holdfast.NoSchemaError:
        pytest.skip("leases need the schema")
    return way


class Asked:
    """Collects what on_yield is told."""

    def __init__(self, then=lambda lock: None):
        self.told, self.heard, self.then = [], threading.Event(), then

    def __call__(self, lock, who):
        self.told.append((lock, who))
        try:
            self.then(lock)
        finally:
            self.heard.set()


@pytest.fixture(name="thread")
def made_threads():
    """Starts a call in a thread."""
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


def waiting(thread, acquire, *args, **how):
    waits = threading.Event()
    wait = thread(acquire, *args, on_wait=lambda why: waits.set(), **how)
    assert waits.wait(SOON) and not wait.done()
    return wait


def nothing_is_kept():
    return not locks._told and not locks._made


# --- threads ----------------------------------------------------------------------------------------------


def test_the_holder_is_told_who_asks_and_the_lock_goes_there(store, open_store, thread, label, way):
    asked = Asked()
    lock = store.lock(label, on_yield=asked, **way)
    before = waiting(thread, open_store().lock, label, **way)
    successor = waiting(thread, open_store(application="successor").lock, label, ask=True, **way)
    assert asked.heard.wait(SOON)
    (told, who), = asked.told
    assert told is lock and label in who and "wanted by" in who
    if store.has_records:
        assert "successor" in who
    assert lock.state is State.HELD and not successor.done()
    lock.release()
    second = successor.result(SOON)
    time.sleep(0.5)
    assert not before.done() and len(asked.told) == 1
    second.release()
    before.result(SOON).release()
    assert nothing_is_kept()


@session_locks
def test_the_callback_may_release_the_lock(store, other, thread, label):
    asked = Asked(lambda lock: lock.release())
    lock = store.lock(label, on_yield=asked)
    thread(other.lock, label, ask=True).result(SOON).release()
    assert asked.heard.wait(SOON) and lock.state is State.RELEASED and nothing_is_kept()


@session_locks
def test_the_lock_of_a_table_is_asked_for(store, other, thread, label, records):
    table = "shop." + label.replace(":", "_")
    lock = store.table_lock(table, on_yield=Asked(lambda lock: lock.release()))
    thread(other.table_lock, table, ask=True).result(SOON).release()
    assert lock.state is State.RELEASED


@session_locks
def test_an_ask_may_come_before_the_lock_is_there(store, other, thread, label, monkeypatch):
    begins, ask, lock = threading.Event(), locks._ask, locks.Lock
    monkeypatch.setattr(locks, "_ask", lambda *args: (begins.set(), ask(*args)))
    monkeypatch.setattr(locks, "Lock", lambda *args: (begins.wait(SOON), lock(*args))[1])
    asked = Asked(lambda lock: lock.release())
    holder = thread(store.lock, label, on_yield=asked)
    eventually(lambda: any(view.key == holdfast.key(label) for view in other.locks()))
    other.lock(label, ask=True, wait=SOON).release()
    assert asked.heard.wait(SOON) and asked.told[0][0] is holder.result(SOON)


@session_locks
def test_a_callback_that_fails_is_logged_and_the_lock_stays(store, other, thread, label, caplog):
    asked = Asked(lambda lock: 1 / 0)
    with store.lock(label, on_yield=asked) as lock:
        with pytest.raises(holdfast.NotAcquiredError):
            thread(other.lock, label, ask=True, wait=4).result(SOON)
        assert asked.heard.is_set() and lock.state is State.HELD
    assert "on_yield failed" in caplog.text


@session_locks
def test_a_lock_that_can_be_asked_for_is_collected_as_any_other(store, other, label):
    with pytest.warns(ResourceWarning):
        store.lock(label, wait=0, on_yield=print)
        gc.collect()
    other.lock(label, wait=SOON).release()
    assert nothing_is_kept()


MISUSES = [
    {"what": ["a", "b"], "ask": True}, {"what": "a", "slots": 2, "ask": True}, {"what": "a", "wait": 0, "ask": True},
    {"what": ["a", "b"], "on_yield": print}, {"what": "a", "slots": 2, "on_yield": print}, {"what": "a", "on_yield": 7},
]


@pytest.mark.parametrize("how", MISUSES, ids=str)
def test_what_cannot_be_asked_for_is_refused(store, how):
    with pytest.raises(holdfast.InvalidError):
        store.lock(**{"wait": 1, **how})
    assert nothing_is_kept()


# --- asyncio ----------------------------------------------------------------------------------------------


def in_loop(url, work):
    async def run():
        async with holdfast.aio.Store(url) as store, holdfast.aio.Store(url, application="successor") as other:
            await asyncio.wait_for(work(store, other), 50)

    asyncio.run(run())
    assert nothing_is_kept()


def test_the_loop_is_told_who_asks_and_the_lock_goes_there(url, thread, open_store, label, way):
    async def work(store, other):
        loop = asyncio.get_running_loop()
        asked = loop.create_future()
        lock = await store.lock(label, on_yield=lambda *told: asked.set_result((asyncio.get_running_loop(), *told)), **way)
        before = waiting(thread, open_store().lock, label, **way)
        successor = asyncio.ensure_future(other.lock(label, ask=True, **way)._acquire())
        told_in, told, who = await asyncio.wait_for(asked, SOON)
        assert told_in is loop and told is lock and label in who and not successor.done()
        await lock.release()
        async with await successor:
            await asyncio.sleep(0.5)
            assert not before.done()
        before.result(SOON).release()

    in_loop(url, work)


@session_locks
def test_a_cancelled_ask_leaves_nothing(url, label):
    async def work(store, other):
        asked = asyncio.Event()
        async with store.lock(label, on_yield=lambda lock, who: asked.set()):
            successor = asyncio.ensure_future(other.lock(label, ask=True)._acquire())
            await asked.wait()
            successor.cancel()
            with pytest.raises(asyncio.CancelledError):
                await successor
        async with store.lock(label, wait=SOON):
            pass

    in_loop(url, work)


@session_locks
def test_what_the_loop_has_not_taken_up_yet_is_told_with_its_lock(url, open_store, thread, label):
    """The loop stands still from before the lock is there until after the ask."""
    successor, told = open_store(), []

    async def work(store, other):
        released = asyncio.Event()

        async def yields(lock):
            await lock.release()
            released.set()

        def on_yield(lock, who):
            told.append(lock)
            asyncio.ensure_future(yields(lock))

        task = asyncio.ensure_future(store.lock(label, on_yield=on_yield)._acquire())
        await asyncio.sleep(0)
        eventually(lambda: any(view.key == holdfast.key(label) for view in successor.locks()))
        asks = thread(successor.lock, label, ask=True, wait=SOON)
        time.sleep(4)
        assert not told
        lock = await task
        await released.wait()
        assert told == [lock]
        asks.result(SOON).release()

    in_loop(url, work)


@session_locks
def test_a_lock_of_the_loop_that_can_be_asked_for_is_collected(url, other, label):
    async def work(store, _):
        with pytest.warns(ResourceWarning):
            await store.lock(label, wait=0, on_yield=print)
            await asyncio.sleep(0)  # the loop itself has it until then
            gc.collect()
        other.lock(label, wait=SOON).release()

    in_loop(url, work)


@pytest.mark.parametrize("how", MISUSES, ids=str)
def test_what_cannot_be_asked_for_is_refused_in_the_loop(url, how):
    async def work(store, other):
        with pytest.raises(holdfast.InvalidError):
            await store.lock(**{"wait": 1, **how})

    in_loop(url, work)
