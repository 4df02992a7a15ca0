"""Threads of one process share sessions and pass keys on: none gets what is not its, none is forgotten."""

import contextlib
import subprocess
import time

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import EXCLUSIVE, FOREVER, PRIVATE, REENTRANT, SHARED, HfError, State, Status
from peer import Peer
from strangers import run
from wire import WireProxy


def outcome(call, *args, **kwargs):
    """Status of an acquire; what it got is given back."""
    try:
        call(*args, **kwargs).end()
    except HfError as error:
        return error.status
    return Status.OK


# --- passing on ---------------------------------------------------------------------------------------


def test_key_is_not_left_behind_when_its_next_holder_must_ask_for_itself(db):
    """A key may be passed on inside the process only to somebody who can take it at once."""
    with hf.Store(db.url()) as store, contextlib.closing(db.connect()) as stranger:
        first = store.acquire(7, mode=SHARED)
        outside = Background(run, stranger, "select pg_advisory_lock(7)")
        eventually(lambda: len(db.waiters(7)) == 1)
        private = Background(outcome, store.acquire, 7, 3000, mode=SHARED, flags=PRIVATE)
        eventually(lambda: len(db.waiters(7)) == 2)
        queued = Background(outcome, store.acquire, 7, 1000, mode=SHARED)
        stays(lambda: queued.running and private.running, 0.3)
        first.end()
        assert queued.result() in (Status.OK, Status.NOT_ACQUIRED)
        assert private.result() in (Status.OK, Status.NOT_ACQUIRED)
        outside.result()
        assert db.holders(7) == [stranger.info.backend_pid]


def test_private_holder_and_joined_holders_end_in_any_order(db):
    with hf.Store(db.url()) as store:
        for order in range(6):
            locks = [store.acquire(7, mode=SHARED), store.acquire(7, mode=SHARED, flags=PRIVATE),
                     store.acquire(7, mode=SHARED)]
            assert len(set(db.holders(7))) == 2
            for place in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))[order]:
                assert locks[place].state is State.HELD
                assert db.holders(7)
                locks[place].end()
            eventually(lambda: not db.holders(7))
            store.acquire(7).end()


# --- reentrancy ---------------------------------------------------------------------------------------


def test_lock_of_a_thread_that_has_ended_is_nobody_elses(store):
    """The system gives a new thread the handle of one that has ended."""
    for mode in (EXCLUSIVE, SHARED):
        lock = Background(store.acquire, "job", mode=mode, flags=REENTRANT).result()
        for _ in range(50):
            error = Background(store.refusal, "job", flags=REENTRANT).result()
            assert error.status is Status.NOT_ACQUIRED
        assert lock.state is State.HELD
        lock.end()


def test_order_rule_does_not_count_the_locks_of_a_thread_that_has_ended(store):
    lock = Background(store.acquire, 2).result()
    for _ in range(20):
        assert Background(outcome, store.acquire, 1, 1000).result() is Status.OK
    lock.end()


def test_held_key_is_entered_again_against_the_order(store):
    """It waits for nobody, so it is part of no deadlock."""
    small = store.acquire(1, flags=REENTRANT)
    great = store.acquire(2, flags=REENTRANT)
    again = store.acquire(1, FOREVER, flags=REENTRANT)
    both = store.acquire([1, 2], FOREVER, flags=REENTRANT)
    more = store.acquire([1, 3], FOREVER, flags=REENTRANT)
    for lock in (more, both, again, great, small):
        lock.end()


def test_set_that_is_held_in_part_still_keeps_the_order(store):
    small, great = store.acquire(1), store.acquire(3)
    assert store.refusal([1, 2], FOREVER, flags=REENTRANT).status is Status.ORDER
    great.end()
    small.end()


@pytest.mark.parametrize("flags", [REENTRANT, PRIVATE, REENTRANT | PRIVATE])
def test_slots_are_neither_reentrant_nor_private(store, flags):
    error = store.refusal("pool", slots=2, flags=flags)
    assert error.status is Status.INVALID
    assert "slots" in error.message


def test_quota_met_inside_a_semaphore_is_explained(kind):
    with kind.open(max_keys=4) as store:
        error = store.refusal("pool", slots=3)
        assert error.status is Status.QUOTA
        assert error.code == Status.QUOTA
        assert "quota" in error.message and error.hint
        store.acquire("plain").end()


# --- waits that neither spin nor starve -----------------------------------------------------------------


def test_slot_waiter_does_not_spin_after_its_listening_session_is_gone(db):
    with Peer(db.url()) as peer, WireProxy(db.server.port) as proxy, \
            hf.Store(db.url(port=proxy.port), application="waiter") as store:
        held = peer.acquire("pool", slots=1)
        waiter = Background(store.acquire, "pool", FOREVER, slots=1)

        def listening():
            return db.sql("select pid from pg_stat_activity where datname = current_database()"
                          " and application_name like 'waiter%%' and query like '%%LISTEN%%'")

        for _ in range(2):
            pid = eventually(listening)[0][0]
            db.server.terminate(pid)
            eventually(lambda: pid not in db.sessions("waiter%"))
            began = time.monotonic()
            with proxy.counting() as trips:
                stays(lambda: waiter.running, 2)
                assert trips() / (time.monotonic() - began) < 100
        peer.release(held)
        waiter.result().end()


@contextlib.contextmanager
def retaking(program, url, label, first_ms, keep_ms):
    """Another process keeps a label, gives it up and takes it again at once."""
    holder = subprocess.Popen([program, url, label, str(first_ms), str(keep_ms)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        yield
        assert holder.poll() is None
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("keep_ms", [450, 600])
def test_waiter_gets_a_key_that_its_holder_takes_again_at_once(db15, compiled, keep_ms):
    """It sleeps until a release, comes too late for that one, and must be there for one soon."""
    listens_after = 1.7
    soon = 6  # seconds; after two missed releases it queues for longer than they are apart
    for _ in range(2):
        with hf.Store(db15.url()) as store:
            with retaking(compiled("retake.c"), db15.url(), "job", int(listens_after * 1000), keep_ms):
                waiter = Background(store.acquire, "job", FOREVER)
                waiter.result(listens_after + soon).end()


def test_try_is_not_kept_by_a_set_that_waits(db):
    """A set that waits for its greater key does not hold up who only asks for its smaller one."""
    with hf.Store(db.url()) as store:
        great = store.acquire(2)
        waiter = Background(store.acquire, [1, 2], 8000)
        stays(lambda: waiter.running, 0.5)
        attempt = Background(outcome, store.acquire, 1, 0)
        assert attempt.result(3) in (Status.OK, Status.NOT_ACQUIRED)
        assert waiter.running
        great.end()
        waiter.result().end()


def test_set_does_not_sit_on_a_key_while_it_waits_for_a_smaller_one(db):
    """Passed on to the set by its own process, that key would be a deadlock with who goes in order."""
    with hf.Store(db.url()) as store, Peer(db.url()) as peer:
        small = peer.begin("acquire", 1, thread="a").result()
        great = store.acquire(2)
        waiter = Background(store.acquire, [1, 2], FOREVER)
        stays(lambda: waiter.running, 0.5)
        great.end()
        both = peer.begin("acquire", 2, 8000, thread="a").result(9)
        peer.release(both)
        peer.release(small)
        waiter.result().end()


# --- everything at once -----------------------------------------------------------------------------


END_ONE = ("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database()"
           " and application_name like 'contend%%' order by random() limit 1")


@pytest.mark.slow
@pytest.mark.parametrize("ending", [False, True], ids=["in-peace", "sessions-end"])
@pytest.mark.parametrize("records", [False, True], ids=["plain", "records"])
def test_exclusion_holds_under_everything_at_once(db, compiled, records, ending):
    if records:
        hf.install(db.url())
    program = subprocess.Popen([compiled("contend.c"), db.url(), "10", "2", "8"], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert program.stdout.readline() == "running\n"
        end_at, moments = time.monotonic() + 9, []
        with contextlib.closing(db.connect(user="postgres")) as connection:
            while ending and time.monotonic() < end_at and program.poll() is None:
                time.sleep(0.2)
                began = time.monotonic_ns()
                run(connection, END_ONE)
                moments.append((began, time.monotonic_ns()))
        assert program.stdout.readline() == "quiet\n"
        eventually(lambda: not db.advisory_locks(), what="nothing of ours is left")
        assert db.advisory_locks(granted=False) == []
        out, err = program.communicate("".join(f"{began} {gone}\n" for began, gone in moments), timeout=20)
        assert program.returncode == 0, f"{out}\n{err}"
    finally:
        program.kill()
        program.wait()
