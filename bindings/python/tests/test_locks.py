import copy
import gc
import os
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from conftest import handles, memory, on_server, session_locks, threads
from holdfast import Label, State

pytestmark = session_locks


# --- exclusion ----------------------------------------------------------------------------------------


def test_the_command_is_refused_what_is_held_here_and_gets_what_is_released(store, command, label):
    with store.lock(label, wait=0) as lock:
        assert lock.state is State.HELD
        assert not command.can_lock(label)
    assert lock.state is State.RELEASED
    assert command.can_lock(label)


def test_what_the_command_holds_is_refused_and_its_holder_named(store, command, label):
    with command.hold(label) as holder:
        with pytest.raises(holdfast.NotAcquiredError) as refused:
            store.lock(label, wait=0)
        assert refused.value.status is holdfast.Status.NOT_ACQUIRED
        assert label in refused.value.message and refused.value.hint
        if store.has_records:
            assert str(holder.process.pid) in refused.value.message
    store.lock(label, wait=10).release()


def test_a_wait_ends_with_the_holders_release(store, other, label):
    waits = threading.Event()
    first = store.lock(label)
    with ThreadPoolExecutor(1) as thread:
        second = thread.submit(other.lock, label, on_wait=lambda why: waits.set())
        assert waits.wait(20)
        assert not second.done()
        first.release()
        second.result(20).release()


def test_a_wait_has_an_end(store, other, label):
    with store.lock(label):
        with pytest.raises(holdfast.NotAcquiredError):
            other.lock(label, wait=0.05)


def test_100_threads_hold_one_after_the_other(store, label):
    inside, seen = [], []

    def work():
        with store.lock(label):
            inside.append(1)
            seen.append(len(inside))
            inside.pop()

    with ThreadPoolExecutor(100) as threads:
        for done in [threads.submit(work) for _ in range(100)]:
            done.result(50)
    assert seen == [1] * 100


def test_tokens_grow(store, other, label, records):
    tokens = []
    for on in (store, other) * 5:
        with on.lock(label) as lock:
            tokens.append(lock.token)
    assert tokens == sorted(set(tokens))
    assert lock.token == tokens[-1]


@on_server
def test_without_records_there_is_no_token(open_store, label):
    with open_store(records=holdfast.Records.OFF).lock(label) as lock:
        with pytest.raises(holdfast.NoSchemaError):
            lock.token


# --- kinds of locks -------------------------------------------------------------------------------------


def test_shared_holders_are_beside_each_other_and_keep_others_out(store, other, label):
    with store.lock(label, shared=True), other.lock(label, shared=True, wait=0):
        with pytest.raises(holdfast.NotAcquiredError):
            other.lock(label, wait=0)


def test_a_set_is_held_all_or_none(store, other, label):
    a, b, c = (f"{label}:{name}" for name in "abc")
    with store.lock(b):
        with pytest.raises(holdfast.NotAcquiredError):
            other.lock([a, b, c], wait=0)
        other.lock([a, c], wait=0).release()


def test_slots_let_so_many_in(store, other, label):
    with store.lock(label, slots=2) as one, other.lock(label, slots=2) as two:
        assert {one.slot, two.slot} == {1, 2}
        with pytest.raises(holdfast.NotAcquiredError):
            store.lock(label, slots=2, wait=0)


def test_the_owner_of_a_lock_is_the_thread(store, label):
    with store.lock(label, wait=0):
        store.lock(label, wait=0, reentrant=True).release()
        store.lock(label, wait=1, reentrant=True).release()  # from the pool, in the main thread
        with ThreadPoolExecutor(1) as thread, pytest.raises(holdfast.NotAcquiredError):
            thread.submit(store.lock, label, wait=0, reentrant=True).result()


def test_a_wait_against_the_order_is_refused(store, label):
    first, second = sorted((f"{label}:a", f"{label}:b"), key=holdfast.key)
    with store.lock(second), pytest.raises(holdfast.OrderError):
        store.lock(first)
    with store.lock(second), store.lock(first, any_order=True):
        pass


def test_numbers_pairs_and_other_derivations_are_other_keys(store, label):
    number = holdfast.key(label)
    with store.lock(label, wait=0) as lock:
        assert lock.key == number
        with pytest.raises(holdfast.NotAcquiredError):
            store.lock(number, wait=0)
        store.lock(Label(label, "hashtext"), wait=0).release()
        store.lock((1, 2), wait=0).release()
        with pytest.raises(holdfast.NotAcquiredError):
            store.lock(Label(label, key=number), wait=0)


def test_a_function_runs_under_its_lock(store, other, label):
    @store.locked(label, wait=0)
    def job():
        with pytest.raises(holdfast.NotAcquiredError):
            other.lock(label, wait=0)
        return "done"

    @store.locked(lambda name: f"{label}:{name}", wait=0)
    def named(name):
        with pytest.raises(holdfast.NotAcquiredError):
            other.lock(f"{label}:x", wait=0)
        return name

    assert job() == "done" and named("x") == "x" and job.__name__ == "job"
    other.lock(label, wait=0).release()


def test_the_list_shows_who_holds_what(store, label, records):
    with store.lock(label) as lock:
        view, = (one for one in store.locks() if one.label == label)
        assert (view.key, view.pid, view.waiting, view.ours) == (lock.key, os.getpid(), False, True)


# --- loss -----------------------------------------------------------------------------------------------


def test_a_loss_is_told_once_and_again_by_the_release(store, world, label):
    told, heard = [], threading.Event()
    lock = store.lock(label, private=True, on_lost=lambda why: (told.append(why), heard.set()))
    world.lose(lock)
    assert heard.wait(30)
    assert lock.lost and isinstance(told[0], holdfast.LostError) and label in told[0].message
    with pytest.raises(holdfast.LostError):
        lock.release()
    assert lock.lost and len(told) == 1


def test_a_block_tells_of_the_loss_unless_it_failed_itself(store, world, label):
    heard = threading.Event()

    def lose(lock):
        world.lose(lock)
        assert heard.wait(30)

    with pytest.raises(holdfast.LostError):
        with store.lock(label, private=True, on_lost=lambda why: heard.set()) as lock:
            lose(lock)
    heard.clear()
    with pytest.raises(ZeroDivisionError):
        with store.lock(label, private=True, on_lost=lambda why: heard.set()) as lock:
            lose(lock)
            1 / 0


# --- the ends of things -----------------------------------------------------------------------------------


def test_ctrl_c_ends_a_wait_and_nothing_is_held(store, other, label):
    with store.lock(label):
        with pytest.raises(KeyboardInterrupt):
            other.lock(label, on_wait=lambda why: os.kill(os.getpid(), signal.SIGINT))
    store.lock(label, wait=20).release()


def test_closing_the_store_ends_waits_and_releases(store, open_store, label):
    waits = threading.Event()
    closed = open_store()
    with store.lock(label), ThreadPoolExecutor(1) as thread:
        kept = closed.lock(f"{label}:other", wait=0)
        wait = thread.submit(closed.lock, label, on_wait=lambda why: waits.set())
        assert waits.wait(20)
        closed.close()
        with pytest.raises(holdfast.InterruptedError):
            wait.result(20)
    store.lock(f"{label}:other", wait=0).release()
    for use in (lambda: closed.lock(label), kept.release, closed.locks):
        with pytest.raises(holdfast.InvalidError, match="closed"):
            use()
    closed.close()


def test_a_lock_is_released_once(store, label):
    lock = store.lock(label)
    lock.release()
    with pytest.raises(holdfast.InvalidError):
        lock.release()
    with pytest.raises(holdfast.InvalidError):
        lock.note("done")


def test_many_release_one_lock_at_once_and_one_does(store, label):
    for _ in range(20):
        lock = store.lock(label, wait=0)

        def release():
            try:
                lock.release()
                return True
            except holdfast.InvalidError:
                return False

        with ThreadPoolExecutor(4) as threads:
            assert sum(done.result() for done in [threads.submit(release) for _ in range(4)]) == 1


def test_a_lock_that_nobody_refers_to_is_released(store, other, label):
    with pytest.warns(ResourceWarning):
        store.lock(label, wait=0)
        gc.collect()
    other.lock(label, wait=20).release()


def test_a_child_of_fork_can_neither_use_nor_keep_it(store, other, url, label):
    lock = store.lock(label, wait=0)
    before = handles()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            for use in (lambda: store.lock("x"), lock.release, lambda: store.transact(lambda tx: None)):
                try:
                    use()
                    code |= 1
                except holdfast.ForkedError:
                    pass
            code |= 2 * (handles() >= before)
            store.close()
            with holdfast.Store(url) as own:
                try:
                    own.lock(label, wait=0)
                    code |= 4
                except holdfast.NotAcquiredError:
                    pass
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr, flush=True)
            code |= 8
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lock.state is State.HELD
    with pytest.raises(holdfast.NotAcquiredError):
        other.lock(label, wait=0)
    lock.release()


def test_a_callback_may_release_the_lock_but_not_close_the_store(store, other, world, label):
    ends, done = [], threading.Event()

    def on_lost(why):
        for end in (store.close, lock.release):
            with pytest.raises(holdfast.Error) as refused:
                end()
            ends.append(type(refused.value))
        done.set()

    lock = store.lock(label, private=True, on_lost=on_lost)
    world.lose(lock)
    assert done.wait(30) and ends == [holdfast.InvalidError, holdfast.LostError]

    def on_wait(why):
        with pytest.raises(holdfast.InvalidError):
            store.close()
        held.release()

    held = other.lock(label)
    store.lock(label, on_wait=on_wait).release()


def test_a_callback_that_fails_is_logged_and_does_no_harm(store, other, caplog, label):
    def on_wait(why):
        held.release()
        1 / 0

    held = other.lock(label)
    store.lock(label, on_wait=on_wait).release()
    assert "on_wait failed" in caplog.text


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [None, "", True, 1.5, [], 1 << 63, (1, 2, 3), (1 << 31, 0), ("a", 1), "\ud800",
                                 "x" * 70000, object(), Label("x", "no such"), Label("1", "fixed"), ["a", None]],
                         ids=lambda value: ascii(value)[:20])
def test_a_target_that_cannot_be_is_refused(store, bad):
    with pytest.raises(holdfast.InvalidError):
        store.lock(bad, wait=0)


@pytest.mark.parametrize("options", [{"wait": -1}, {"wait": "1"}, {"wait": float("nan")}, {"wait": True},
                                     {"slots": -1}, {"slots": 5000}, {"slots": "2"}, {"slots": 2, "shared": True},
                                     {"on_lost": 7}], ids=repr)
def test_options_that_cannot_be_are_refused(store, options):
    with pytest.raises(holdfast.InvalidError):
        store.lock("x", **{"wait": 0, **options})


def test_an_error_keeps_what_it_says_over_a_copy(store, label):
    with store.lock(label, wait=0), pytest.raises(holdfast.NotAcquiredError) as refused:
        store.lock(label, wait=0)
    for same in (copy.copy(refused.value), pickle.loads(pickle.dumps(refused.value))):
        assert type(same) is holdfast.NotAcquiredError
        assert vars(same) == vars(refused.value) and str(same) == str(refused.value)


# --- leaks --------------------------------------------------------------------------------------------------


def test_nothing_grows_over_2000_locks(store, label):
    def rounds(count):
        for _ in range(count):
            with store.lock(label, wait=0, on_lost=print, on_yield=print):
                pass
            with pytest.raises(holdfast.InvalidError):
                store.lock("x", slots=5000)

    def figures():
        gc.collect()
        return len(store._handle.children), handles(), threads(), memory()

    rounds(500)
    before = figures()
    rounds(2000)
    after = figures()
    assert after[0] == 0 and after[3] < before[3] + 2048, (before, after)
    assert after[1] < before[1] + 8 and after[2] < before[2] + 8, (before, after)  # the library's own
