import asyncio
import gc
import inspect
import os
import random
import signal

import pytest

import holdfast
import holdfast.aio
from conftest import handles, memory, on_server, session_locks, threads
from holdfast import State


def in_loop(test):
    """Runs the coroutine of a test with an open store of asyncio; its other arguments are fixtures."""
    async def with_store(url, fixtures):
        async with holdfast.aio.Store(url, ping_interval=0.2) as store:
            await asyncio.wait_for(test(store, **fixtures), 50)

    def run(url, **fixtures):
        asyncio.run(with_store(url, fixtures))

    _, *parameters = inspect.signature(test).parameters.values()
    url = inspect.Parameter("url", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([url, *parameters])
    run.__name__ = test.__name__
    return run


async def waiting(store, label, **how):
    """A task that waits for the lock, in the library."""
    waits = asyncio.Event()

    async def wait():
        return await store.lock(label, on_wait=lambda why: waits.set(), **how)

    task = asyncio.create_task(wait())
    await asyncio.wait([task, asyncio.create_task(waits.wait())], return_when=asyncio.FIRST_COMPLETED)
    assert not task.done(), task
    return task


# --- locks ------------------------------------------------------------------------------------------------


@session_locks
@in_loop
async def test_exclusion_against_the_command_both_ways(store, command, label):
    async with store.lock(label, wait=0) as lock:
        assert lock.state is State.HELD and not lock.lost
        assert not command.can_lock(label)
    assert lock.state is State.RELEASED and command.can_lock(label)
    with command.hold(label):
        with pytest.raises(holdfast.NotAcquiredError):
            await store.lock(label, wait=0)
        with pytest.raises(holdfast.NotAcquiredError):
            await store.lock(label, wait=0.05)


@session_locks
@in_loop
async def test_100_tasks_wait_for_one_label_without_threads_and_in_order(store, other, label):
    order, inside, before = [], [], threads()
    held = other.lock(label)
    first = await waiting(store, label)

    async def work(number):
        async with store.lock(label, wait=60 if number % 2 else None):
            inside.append(number)
            assert len(inside) == 1
            order.append(number)
            await asyncio.sleep(0)
            inside.remove(number)

    tasks = [asyncio.create_task(work(number)) for number in range(100)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert threads() <= before + 8  # the library's own
    held.release()
    await (await first).release()
    await asyncio.gather(*tasks)
    assert order == list(range(100))


@session_locks
@in_loop
async def test_200_waits_for_200_locks_cost_no_thread_each(store, other, label):
    """In a local store the kernel wakes a thread when a process dies: there each key has one."""
    labels = [f"{label}:{number}" for number in range(200)]
    held = [other.lock(one, wait=0) for one in labels]
    await (await store.lock(label)).release()
    before = threads()
    tasks = [await waiting(store, one) for one in labels]
    assert threads() <= before + (200 if store.is_local else 0) + 4
    for lock in held:
        lock.release()
    for task in tasks:
        await (await task).release()


@session_locks
@in_loop
async def test_100_tasks_with_labels_of_their_own_do_not_wait_for_each_other(store, label):
    held = await asyncio.gather(*(store.lock(f"{label}:{number}", any_order=True) for number in range(100)))
    await asyncio.gather(*(lock.release() for lock in held))


@session_locks
@in_loop
async def test_the_time_of_a_wait_counts_in_the_line_too(store, other, label):
    with other.lock(label):
        first = await waiting(store, label)
        with pytest.raises(holdfast.NotAcquiredError, match=label):
            await store.lock(label, wait=0.05)
        assert not first.done()
    await (await first).release()


@session_locks
@in_loop
async def test_a_task_that_holds_a_lock_is_told_at_once_that_it_waits_against_the_order(store, other, label):
    low, high = sorted((f"{label}:a", f"{label}:b"), key=holdfast.key)
    with other.lock(low):
        first = await waiting(store, low)
        async with store.lock(high):
            with pytest.raises(holdfast.OrderError):
                await store.lock(low)
            with pytest.raises(holdfast.OrderError):
                await asyncio.wait_for(store.lock(low), 20)
    await (await first).release()


@session_locks
@in_loop
async def test_the_owner_of_a_lock_is_the_task(store, label):
    async def again():
        return await store.lock(label, wait=0, reentrant=True)

    async with store.lock(label):
        await (await again()).release()
        with pytest.raises(holdfast.NotAcquiredError):
            await asyncio.create_task(again())


@session_locks
@in_loop
async def test_tokens_grow(store, label):
    if not store.has_records:
        pytest.skip("the store has no records")
    tokens = []

    async def work():
        async with store.lock(label) as lock:
            tokens.append(lock.token)

    await asyncio.gather(*(work() for _ in range(20)))
    assert len(tokens) == 20 and tokens == sorted(set(tokens))


@session_locks
@in_loop
async def test_a_loss_is_told_to_the_loop(store, world, label):
    told = []
    lock = await store.lock(label, private=True, on_lost=told.append)
    world.lose(lock)
    assert isinstance(await lock.wait_lost(), holdfast.LostError)
    assert lock.lost and len(told) == 1
    with pytest.raises(holdfast.LostError):
        await lock.release()
    async with store.lock(label) as lock:
        heard = asyncio.create_task(lock.wait_lost())
        await asyncio.sleep(0)
    assert await heard is None


@session_locks
@in_loop
async def test_a_decorated_coroutine_runs_under_its_lock(store, other, label):
    @store.locked(label, wait=0)
    async def job(value):
        with pytest.raises(holdfast.NotAcquiredError):
            other.lock(label, wait=0)
        return value

    assert await job(5) == 5
    other.lock(label, wait=0).release()


# --- cancelling -----------------------------------------------------------------------------------------------


@session_locks
@in_loop
async def test_a_cancelled_wait_holds_nothing_and_lets_the_next_one_wait(store, other, label):
    held = other.lock(label)
    first = await waiting(store, label)
    waits = asyncio.Event()

    async def wait(**how):
        return await store.lock(label, **how)

    second = asyncio.create_task(wait(on_wait=lambda why: waits.set()))
    third = asyncio.create_task(wait())
    await asyncio.sleep(0)
    third.cancel()
    first.cancel()
    for task in (first, third):
        with pytest.raises(asyncio.CancelledError):
            await task
    await waits.wait()
    held.release()
    await (await second).release()
    other.lock(label, wait=20).release()


@session_locks
@in_loop
async def test_nothing_is_held_after_1000_cancelled_waits(store, other, label):
    """Some are cancelled before they begin, some in the line, some in the library, some with the lock."""
    chance = random.Random(1)
    ends = {"cancelled": 0, "held": 0}

    async def work():
        async with store.lock(label):
            ends["held"] += 1
            await asyncio.sleep(0)

    for _ in range(40):
        tasks = [asyncio.create_task(work()) for _ in range(25)]
        while not all(task.done() for task in tasks):
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            if chance.random() < 0.3:
                await asyncio.sleep(0.0005)
            left = [task for task in tasks if not task.done()]
            if left:
                chance.choice(left[:3]).cancel()
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            assert end is None or isinstance(end, asyncio.CancelledError), end
            ends["cancelled"] += end is not None
        other.lock(label, wait=20).release()  # what was given up is given back when its answer comes
    assert ends["cancelled"] > 300, ends
    assert not store._held and not store._lines._lines


@session_locks
@in_loop
async def test_a_timeout_of_asyncio_ends_a_wait(store, other, label):
    with other.lock(label):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(store.lock(label), 0.05)
    other.lock(label, wait=20).release()


@session_locks
@in_loop
async def test_a_release_is_made_though_its_task_is_cancelled(store, other, label):
    entered = asyncio.Event()

    async def work():
        async with store.lock(label):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    other.lock(label, wait=0).release()


def test_ctrl_c_ends_a_loop_that_waits(url, store, label):
    async def main():
        async with holdfast.aio.Store(url) as waits:
            await waits.lock(label, on_wait=lambda why: os.kill(os.getpid(), signal.SIGINT))

    if os.environ.get("HOLDFAST_TEST_POOLED"):
        pytest.skip("no session locks")
    with store.lock(label), pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    store.lock(label, wait=20).release()


# --- transactions -----------------------------------------------------------------------------------------------


async def number(store, table):
    async def read(tx):
        return await tx.query(f"select n from {table}")

    return int((await store.transact(read))[0][0])


def incrementing(table):
    async def increment(tx):
        (n,), = await tx.query(f"select n from {table}")
        await tx.queue(f"update {table} set n = $1", int(n) + 1)

    return increment


@in_loop
async def test_100_tasks_lose_no_update(store, table, label):
    before = threads()
    tasks = [asyncio.create_task(store.transact(incrementing(table), label)) for _ in range(100)]
    while not all(task.done() for task in tasks):
        assert threads() <= before + 12
        await asyncio.sleep(0.002)
    await asyncio.gather(*tasks)
    assert await number(store, table) == 100


@in_loop
async def test_100_transactions_with_labels_of_their_own_take_a_thread_for_each_connection(store, label):
    """There are 16 connections, and 10 threads at most are the library's own."""
    before, most = threads(), 0

    async def work(tx):
        nonlocal most
        await tx.query("select 1")
        most = max(most, threads())

    tasks = [asyncio.create_task(store.transact(work, f"{label}:{number}")) for number in range(100)]
    cancelled = tasks[50:60]
    await asyncio.sleep(0)
    for task in cancelled:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(end, asyncio.CancelledError) for end in ends) <= 10
    assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ends), ends
    assert most <= before + 26, (before, most)


@on_server
@in_loop
async def test_each_is_applied_once_while_sessions_are_terminated(store, world, table, label):
    ends = []

    async def work(end):
        for _ in range(6):
            try:
                await store.transact(incrementing(table), f"{label}:{end}", max_attempts=100)
                ends.append("committed")
            except holdfast.InDoubtError:
                ends.append("in doubt")

    async def terminate():
        while True:
            await asyncio.get_running_loop().run_in_executor(
                None, world.sql, "select pg_terminate_backend(pid) from pg_stat_activity where usename <> 'postgres'"
                " and datname = current_database() and pid <> pg_backend_pid()")
            await asyncio.sleep(0.05)

    terminator = asyncio.create_task(terminate())
    await asyncio.gather(*(work(end) for end in range(3)))
    terminator.cancel()
    await asyncio.wait([terminator])
    committed = ends.count("committed")
    assert len(ends) == 18
    assert committed <= await number(store, table) <= committed + ends.count("in doubt")
    assert committed == 18 or not store.has_records


@in_loop
async def test_a_failure_and_a_cancel_roll_back(store, table, label):
    entered = asyncio.Event()

    async def fail(tx):
        await tx.query(f"update {table} set n = 7")
        raise KeyError("mine")

    async def hang(tx):
        await tx.query(f"update {table} set n = 7")
        entered.set()
        await asyncio.Event().wait()

    with pytest.raises(KeyError):
        await store.transact(fail, label)
    task = asyncio.create_task(store.transact(hang, label))
    await entered.wait()
    follower = asyncio.create_task(store.transact(incrementing(table), label))
    await asyncio.sleep(0)
    with pytest.raises((holdfast.NotAcquiredError, holdfast.ExhaustedError)):
        await store.transact(incrementing(table), label, deadline=0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await follower
    assert await number(store, table) == 1
    with pytest.raises(holdfast.InvalidError, match="coroutine"):
        await store.transact(lambda tx: None)
    assert not store._held and not store._lines._lines


@on_server
@in_loop
async def test_a_cancelled_statement_ends_in_the_server(store, world, table):
    async def slow(tx):
        await tx.query("select pg_sleep(50)")

    def sleeping():
        return world.sql("select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()")

    task = asyncio.create_task(store.transact(slow))
    while not sleeping():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while sleeping():
        await asyncio.sleep(0.01)


@in_loop
async def test_tasks_in_one_transaction_take_turns_or_are_refused(store, table):
    async def both(tx):
        return await asyncio.gather(*(tx.query("select 1") for _ in range(8)), return_exceptions=True)

    ends = await store.transact(both)
    assert [("1",)] in ends
    assert all(end == [("1",)] or isinstance(end, holdfast.InvalidError) for end in ends), ends


@session_locks
@in_loop
async def test_a_private_lock_has_transactions_of_its_own(store, table, label):
    async with store.lock(label, private=True) as lock:
        await lock.transact(incrementing(table))

        async def release(tx):
            await lock.release()

        with pytest.raises(holdfast.OrderError):
            await lock.transact(release)
        assert lock.state is State.HELD
    assert await number(store, table) == 1


# --- the rest -------------------------------------------------------------------------------------------------


@session_locks
@in_loop
async def test_tables_cursors_and_lists(store, label):
    if not store.has_records:
        pytest.skip("the store has no records")
    table = "shop." + label.replace(":", "_")
    async with store.table_lock(table) as lock:
        assert lock.key == await store.find_table(table)
        assert [view.waiting for view in await store.locks() if view.key == lock.key] == [False]
    network = store.network("n" + label[-12:])
    await network.set("latest", 5)
    await network.advance("latest", 6)
    assert await network.cursors() == {"latest": 6} and await network.gaps() == []
    with pytest.raises(holdfast.CursorError):
        await network.swap("latest", 1, 2)
    assert (await store.claim(label, 60))[0] and await store.examine() and await store.tables()


def test_a_store_is_used_open_and_in_its_loop(url, label):
    async def opened():
        store = await holdfast.aio.Store(url).open()
        return store

    async def use(store):
        with pytest.raises(holdfast.InvalidError, match="another event loop"):
            await store.transact(lambda tx: None)
        with pytest.raises(holdfast.InvalidError, match="not open"):
            await holdfast.aio.Store(url).lock(label)

    store = asyncio.run(opened())
    asyncio.run(use(store))
    asyncio.run(store.close())


@session_locks
@in_loop
async def test_closing_the_store_ends_waits(store, world, other, label):
    with other.lock(label):
        closed = await holdfast.aio.Store(world.url).open()
        tasks = [await waiting(closed, label) for _ in range(4)]
        await closed.close()
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(end, holdfast.InterruptedError), end
        with pytest.raises(holdfast.InvalidError, match="closed"):
            await closed.lock(label)


@session_locks
@in_loop
async def test_nothing_grows_over_1000_locks_and_their_cancels(store, label):
    async def rounds(count):
        for _ in range(count):
            async with store.lock(label):
                task = asyncio.create_task(awaited())
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])

    async def awaited():
        await store.lock(label)

    def figures():
        gc.collect()
        return handles(), threads(), memory()

    await rounds(300)
    before = figures()
    await rounds(1000)
    after = figures()
    assert after[0] < before[0] + 8 and after[1] < before[1] + 8 and after[2] < before[2] + 2048, (before, after)
    assert not store._held and not store._lines._lines and not store._opened._handle.children
