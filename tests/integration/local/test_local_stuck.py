"""A process that is stopped in the middle of a record keeps the records, but nobody beyond their limit."""

import contextlib
import sqlite3
import time

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import FOREVER, LEASE, PRIVATE, SHARED, Cancel, HfError, Status
from hf_start import Started

HOWS = {"plain": {}, "shared": {"mode": SHARED}, "private": {"flags": PRIVATE}, "slots": {"slots": 2},
        "lease": {"lifetime": LEASE}}
each = pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
SHORT = 3.0  # seconds: a limit of less than one, a second for the store, and a busy machine; a record may take 5


@pytest.fixture
def folder(tmp_path):
    with hf.Store(f"local:{tmp_path}") as store:
        store.acquire("made").end()
    return tmp_path


@pytest.fixture
def store(folder):
    with hf.Store(f"local:{folder}") as opened:
        yield opened


@pytest.fixture
def cancel():
    with Cancel() as handle:
        yield handle


@contextlib.contextmanager
def stuck(folder):
    """As if somebody were stopped who writes a record: the write lock is taken, and stays so."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db", isolation_level=None)) as writer:
        writer.execute("begin immediate")
        yield
        writer.execute("rollback")


@contextlib.contextmanager
def within(seconds):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def failure_of(call):
    with pytest.raises(HfError) as raised:
        call.result()
    return raised.value.status


@each
def test_a_short_wait_ends_in_time_and_leaves_nothing(folder, store, how):
    with stuck(folder), within(SHORT):
        assert store.refusal("job", 50, **how).status is Status.UNREACHABLE
    store.acquire("job").end()


@each
@pytest.mark.parametrize("wait_ms", [0, FOREVER], ids=["try", "wait"])
def test_a_cancel_ends_it(cancel, folder, store, how, wait_ms):
    with stuck(folder):
        call = Background(store.acquire, "job", wait_ms, cancel=cancel, **how)
        stays(lambda: call.running, 0.3)
        with within(SHORT):
            cancel.trigger()
            assert failure_of(call) is Status.INTERRUPTED
    store.acquire("job").end()


@each
def test_an_interrupt_ends_it(folder, store, how):
    with stuck(folder):
        call = Background(store.acquire, "job", FOREVER, **how)
        stays(lambda: call.running, 0.3)
        with within(SHORT):
            store.interrupt()
            assert failure_of(call) is Status.INTERRUPTED


def test_a_wait_is_not_kept_by_another_thread_that_waits_for_the_records(folder, store):
    with stuck(folder):
        other = Background(store.acquire, "other", FOREVER)
        stays(lambda: other.running, 0.3)
        with within(SHORT):
            assert store.refusal("job", 50).status is Status.UNREACHABLE
    other.result().end()


def test_a_wait_behind_a_holder_ends_in_time(folder, store):
    """Its own record, which is there by then, is left behind no longer than that."""
    with hf.Store(f"local:{folder}") as holder, holder.acquire("job"):
        waiter = Background(store.acquire, "job", 1500)
        eventually(lambda: any(view.waiting for view in store.locks()))
        with stuck(folder), within(1.5 + SHORT):
            assert failure_of(waiter) is Status.NOT_ACQUIRED


def test_a_set_that_waits_gives_back_what_it_has_in_time(folder, store):
    with hf.Store(f"local:{folder}") as holder, holder.acquire("b"):
        waiter = Background(store.acquire, ["a", "b"], 1000)
        eventually(lambda: any(view.waiting for view in store.locks()))
        with stuck(folder), within(1 + SHORT):
            assert failure_of(waiter) in (Status.NOT_ACQUIRED, Status.UNREACHABLE)
        holder.acquire("a").end()


def test_a_release_does_not_wait_for_the_record(folder, store):
    lock = store.acquire("job")
    with hf.Store(f"local:{folder}") as other:
        with stuck(folder):
            with within(SHORT):
                lock.release()
        other.acquire("job").end()
    lock.free()


@pytest.mark.parametrize("lifetime", [hf.SESSION, LEASE], ids=["lock", "lease"])
def test_closing_does_not_wait_for_long(folder, lifetime):
    store = hf.Store(f"local:{folder}")
    store.acquire("job", lifetime=lifetime).end()
    with stuck(folder), within(4.4):  # 1.5 s, and as long once more if a record is being written
        store.close()


def test_acquires_that_were_started_do_not_keep_each_other_waiting(folder, store):
    """One thread serves them all."""
    with stuck(folder), within(SHORT):
        for call in [Started(store, f"job {number}", 50) for number in range(8)]:
            assert failure_of(call) is Status.UNREACHABLE
