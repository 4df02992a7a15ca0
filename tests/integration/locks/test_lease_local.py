"""Leases on the local store: rows that end, with the same promises as on a server."""

import contextlib
import os
import pathlib
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

import hf
import hf_tx
from awaiting import Background, eventually, stays
from hf import HfError, State, Status
from stores import StoreKind
# What needs no server holds here as it does there.
from test_lease import (  # noqa: F401
    test_lease_excludes_another_one_and_its_holder_is_named,
    test_lease_excludes_threads_of_its_own_store,
    test_pairs_are_leased_too,
    test_set_is_taken_as_a_whole_or_not_at_all,
    test_shared_leases_share_and_keep_an_exclusive_one_out,
    test_slots_are_leased_one_by_one,
    test_wait_for_a_lease_can_be_cancelled,
)

LEASE = {"lifetime": hf.LEASE, "lease_ms": 30000}
SHORT = {"lifetime": hf.LEASE, "lease_ms": 1500}


@pytest.fixture
def leased(tmp_path):
    return StoreKind("local", f"local:{tmp_path / 'state'}")


@pytest.fixture(name="store")
def opened(leased):
    with leased.open() as store:
        yield store


@pytest.fixture(name="other")
def opened_other(leased):
    with leased.open() as store:
        yield store


def folder_of(leased):
    return pathlib.Path(leased.url.removeprefix("local:"))


def rows(leased, statement, *values):
    with contextlib.closing(sqlite3.connect(folder_of(leased) / "holdfast.db", timeout=20)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def expire(leased):
    """As if the time of all leases had passed."""
    rows(leased, "update leases set until_ms = 1")


def work_of(leased):
    with contextlib.closing(sqlite3.connect(folder_of(leased) / "data.db")) as connection:
        return connection.execute("select n from work order by n").fetchall()


def write(lock, number):
    return hf_tx.OnLock(lock, lambda tx: tx.query(f"insert into work values ({number})")).result()


@pytest.fixture(name="table")
def made_table(store):
    hf_tx.transact(store, [], lambda tx: tx.query("create table work (n int)"))


# --- exclusion ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [hf.EXCLUSIVE, hf.SHARED])
def test_lease_and_session_lock_of_one_label_never_both_succeed(store, other, mode):
    lock = store.acquire("job", mode=mode, **LEASE)
    error = other.refusal("job")
    assert error.status is Status.NOT_ACQUIRED and "pid" in error.message
    assert other.refusal("job", wait_ms=300).status is Status.NOT_ACQUIRED
    assert other.refusal("job", flags=hf.PRIVATE).status is Status.NOT_ACQUIRED
    assert other.refusal(["job", "other"]).status is Status.NOT_ACQUIRED
    lock.end()
    for how in ({}, {"flags": hf.PRIVATE}):
        lock = other.acquire("job", mode=mode, **how)
        assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
        lock.end()
    if mode == hf.SHARED:
        with store.acquire("job", mode=mode, **LEASE), other.acquire("job", mode=mode):
            assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED


def test_store_without_records_sees_leases_and_takes_none(leased, store):
    with leased.open(records=hf.RECORDS_OFF) as bare:
        with store.acquire("job", **LEASE):
            assert bare.refusal("job").status is Status.NOT_ACQUIRED
            assert bare.refusal("job", wait_ms=300).status is Status.NOT_ACQUIRED
            assert bare.refusal(["a", "job"]).status is Status.NOT_ACQUIRED
        bare.acquire("job").end()
        assert bare.refusal("job", **LEASE).status is Status.NO_SCHEMA


def test_session_lock_waits_for_a_lease_and_a_lease_for_a_session_lock(store, other):
    lock = store.acquire("job", **LEASE)
    waiting = Background(other.acquire, "job", wait_ms=hf.FOREVER)
    stays(lambda: waiting.running, 1.2)
    lock.end()
    lock = waiting.result()
    waiting = Background(store.acquire, "job", wait_ms=hf.FOREVER, **LEASE)
    stays(lambda: waiting.running, 0.3)
    lock.end()
    waiting.result().end()


def test_session_locks_that_wait_for_a_lease_keep_their_order(leased, store):
    lock, got = store.acquire("job", **LEASE), []

    def wait(name):
        with leased.open() as mine, mine.acquire("job", wait_ms=hf.FOREVER):
            got.append(name)

    waiting = []
    for name in "abc":
        waiting.append(Background(wait, name))
        eventually(lambda: len(rows(leased, "select 1 from waiters")) == len(waiting))
    stays(lambda: not got, 1.2)
    lock.end()
    for one in waiting:
        one.result()
    assert got == list("abc")


def test_many_threads_with_leases_session_locks_and_labels_exclude_each_other(leased):
    inside, most, rounds = [], [], 12

    def enter():
        inside.append(None)
        most.append(len(inside))
        time.sleep(0.002)
        inside.pop()

    def work(how):
        with leased.open() as mine:
            for _ in range(rounds):
                if how is None:
                    hf_tx.transact(mine, "job", lambda tx: (tx.query("select 1"), enter()))
                    continue
                lock = mine.acquire("job", wait_ms=hf.FOREVER, **how)
                enter()
                lock.end()

    workers = [Background(work, how) for how in ({}, {}, LEASE, LEASE, SHORT, None)]
    for worker in workers:
        worker.result(60)
    assert len(most) == 6 * rounds and set(most) == {1}


# --- time ---------------------------------------------------------------------------------------------


def test_lease_is_renewed_as_long_as_it_is_held(leased, store, other):
    lost = threading.Event()
    lock = store.acquire("job", on_lost=lambda *_: lost.set(), lifetime=hf.LEASE, lease_ms=1000)
    (first,), = rows(leased, "select until_ms from leases")
    eventually(lambda: rows(leased, "select until_ms from leases")[0][0] > first + 2000)
    assert lock.state is State.HELD and not lost.is_set()
    assert other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
    lock.end()
    assert rows(leased, "select * from leases") == []


def test_lease_of_a_process_that_is_gone_ends_with_its_time(leased, other):
    with leased.peer() as peer:
        peer.acquire("job", **SHORT)
        assert other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
        began = time.monotonic()
        peer.kill9()
        other.acquire("job", wait_ms=20000, **LEASE).end()
        assert 0.4 < time.monotonic() - began < 5


@pytest.mark.parametrize("how", [LEASE, {}], ids=["lease", "session"])
def test_stopped_holder_is_told_when_it_goes_on(leased, other, how):
    with leased.peer() as peer:
        held = peer.acquire("job", **SHORT)
        peer.stop()
        lock = other.acquire("job", wait_ms=20000, **how)
        peer.cont()
        assert peer.state(held) is State.LOST
        with pytest.raises(HfError) as lost:
            peer.release(held)
        assert lost.value.status is Status.LOST
        assert lock.state is State.HELD
        lock.end()


def test_loss_is_told_once_when_the_lease_has_been_ended(leased, store):
    told = []
    lock = store.acquire("job", on_lost=lambda _, why: told.append(why), **SHORT)
    expire(leased)
    eventually(lambda: told)
    assert lock.state is State.LOST and told[0].status is Status.LOST and "job" in told[0].message
    with pytest.raises(HfError) as raised:
        lock.release()
    assert raised.value.status is Status.LOST
    assert len(told) == 1
    store.acquire("job", **SHORT).end()


def test_loss_is_told_before_another_may_have_the_lease_while_the_records_are_locked(leased, store):
    """Somebody keeps the file: no renewal gets through."""
    told = threading.Event()
    lock = store.acquire("job", on_lost=lambda *_: told.set(), lifetime=hf.LEASE, lease_ms=3000)
    with contextlib.closing(sqlite3.connect(folder_of(leased) / "holdfast.db", isolation_level=None)) as keeper:
        keeper.execute("begin immediate")
        until_ms, = keeper.execute("select until_ms from leases").fetchone()
        assert told.wait(20)
        assert time.clock_gettime(time.CLOCK_BOOTTIME) * 1000 < until_ms
        keeper.execute("rollback")
    assert lock.state is State.LOST


def test_a_thousand_leases_are_renewed_together(leased, store):
    labels = [f"job {number}" for number in range(1000)]
    locks = [store.acquire(labels[i:i + 50], **SHORT) for i in range(0, 1000, 50)]
    (first,), = rows(leased, "select min(until_ms) from leases")
    eventually(lambda: rows(leased, "select min(until_ms) from leases")[0][0] > first + 500)
    assert {lock.state for lock in locks} == {State.HELD}
    for lock in locks:
        lock.end()
    assert rows(leased, "select count(*) from leases") == [(0,)]


def test_lease_that_nobody_holds_is_not_renewed(leased, store, other):
    """As a release that failed leaves it."""
    kept = store.acquire("kept", **SHORT)
    rows(leased, "insert into leases select 4711, store, 1500, until_ms from leases")
    rows(leased, "insert into holders select space, 42, 4711, shared, slot, lifetime, token, since_ms, pid, 0, started,"
                 " pid_space, host, application, null from holders limit 1")
    other.acquire(42, wait_ms=20000, **LEASE).end()
    assert kept.state is State.HELD


def test_lease_is_judged_by_one_clock_in_every_time_namespace(leased, store, holdfast):
    ahead = ["unshare", "--time", "--boottime", "100000", "--fork"]
    tried = subprocess.run([*ahead, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"needs a time namespace, and we may not make one here: {tried.stderr.strip()}")
    with store.acquire("job", **LEASE) as lock:
        for how in ((), ("--lease", "30s")):
            done = subprocess.run([*ahead, hf.built("src/holdfast"), "run", "-n", "--url", leased.url, *how, "job", "--", "true"],
                                  capture_output=True, text=True)
            assert done.returncode == 75, done.stderr
        assert lock.state is State.HELD


def test_asker_that_is_stopped_keeps_nobody_from_a_lease(leased, store, other):
    lock = store.acquire("job", **LEASE)
    with leased.peer() as peer:
        asking = peer.begin("acquire", "job", hf.FOREVER, flags=hf.ASK, **LEASE)
        eventually(lambda: any(view.waiting for view in store.locks()))
        peer.stop()
        lock.end()
        other.acquire("job", wait_ms=20000, **LEASE).end()
        peer.cont()
        peer.release(asking.result())


# --- what is written under a lease ----------------------------------------------------------------------


def test_transaction_on_a_lease_commits_under_its_term_or_not_at_all(leased, store, other, table):
    lock = store.acquire("job", **LEASE)
    write(lock, 1)
    expire(leased)
    second = other.acquire("job", **LEASE)
    with pytest.raises(HfError) as raised:
        write(lock, 2)
    assert raised.value.status is Status.LOST
    assert lock.state is State.LOST
    write(second, 3)
    assert work_of(leased) == [(1,), (3,)]


@pytest.mark.parametrize("mode", [hf.EXCLUSIVE, hf.SHARED])
def test_lease_cannot_be_taken_while_a_transaction_under_it_is_open(leased, store, other, table, mode):
    lock = store.acquire("job", mode=mode, **LEASE)
    seen = []

    def inside(tx):
        tx.query("insert into work values (1)")
        expire(leased)
        for how in (LEASE, {}, {"wait_ms": 200}, {"wait_ms": 200, **LEASE}):
            seen.append(other.refusal("job", **how).status)

    hf_tx.OnLock(lock, inside).result()
    assert seen == [Status.NOT_ACQUIRED] * 4
    other.acquire("job", wait_ms=5000, **LEASE).end()
    assert work_of(leased) == [(1,)]


def test_stopped_in_its_transaction_it_keeps_the_lease_until_that_ends(leased, other, table, tmp_path):
    with leased.peer() as peer:
        held = peer.acquire("job", **SHORT)
        written = peer.begin("write_and_wait", held, "insert into work values (1)", str(tmp_path / "go"))
        eventually((tmp_path / "go.open").exists)
        peer.stop()
        waiting = Background(other.acquire, "job", wait_ms=hf.FOREVER, **LEASE)
        stays(lambda: waiting.running, 2.5)
        (tmp_path / "go").touch()
        peer.cont()
        written.result()
        lock = waiting.result()
        write(lock, 2)
        lock.end()
    assert work_of(leased) == [(1,), (2,)]


def test_child_of_a_transaction_under_a_lease_keeps_nothing(leased, store, other, table):
    lock = store.acquire("job", **LEASE)
    children = []

    def inside(tx):
        tx.query("insert into work values (1)")
        children.append(os.fork())
        if children[0] == 0:
            signal.pause()
            os._exit(0)

    hf_tx.OnLock(lock, inside).result()
    try:
        lock.end()
        other.acquire("job", **LEASE).end()
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)


def test_reading_under_a_lease_needs_it_and_locks_nothing(leased, store, other, table):
    lock = store.acquire("job", **LEASE)

    def inside(tx):
        tx.query("select 1")
        expire(leased)
        other.acquire("job", **LEASE).end()

    hf_tx.OnLock(lock, inside, read_only=True).result()
    with pytest.raises(HfError) as raised:
        hf_tx.OnLock(lock, lambda tx: tx.query("select 1"), read_only=True).result()
    assert raised.value.status is Status.LOST


# --- seen from outside ----------------------------------------------------------------------------------


def test_list_shows_leases_with_what_is_left_of_them(leased, store, other):
    with store.acquire("job", **LEASE):
        waiting = Background(other.acquire, "job", wait_ms=hf.FOREVER, **LEASE)
        eventually(lambda: [view.waiting for view in store.locks()] == [False, True])
        held = store.locks()[0]
        assert held.lifetime == hf.LEASE and 0 < held.left_ms <= 30000
    waiting.result().end()
    eventually(lambda: store.locks() == [])


def test_folder_of_an_older_version_is_upgraded(leased):
    with leased.open() as store:
        store.acquire("job").end()
    rows(leased, "drop table leases")
    rows(leased, "alter table holders drop column traceparent")
    rows(leased, "pragma user_version = 1")
    with leased.open() as store, store.acquire("job", **LEASE) as lock:
        assert lock.token > 0


def test_records_that_are_removed_end_the_lease(leased, store):
    lock = store.acquire("job", **SHORT)
    for path in folder_of(leased).glob("holdfast.db*"):
        path.unlink()
    eventually(lambda: lock.state is State.LOST)


# --- deadlocks ----------------------------------------------------------------------------------------


def test_leases_of_two_who_wait_for_each_other_are_a_deadlock(leased):
    have_one = threading.Barrier(2)

    def cross(first, second):
        with leased.open() as mine:
            with mine.acquire(first, **LEASE):
                have_one.wait(20)
                try:
                    mine.acquire(second, flags=hf.ANY_ORDER, wait_ms=30000, **LEASE).end()
                    return Status.OK
                except HfError as error:
                    return error.status

    both = [Background(cross, "a", "b"), Background(cross, "b", "a")]
    assert {one.result(60) for one in both} == {Status.OK, Status.DEADLOCK}
