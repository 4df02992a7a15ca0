"""Transactions on the session that holds a lock: written under it, or not at all."""

import pytest

import hf
import hf_tx
from hf import HfError, PRIVATE, Status
from hf_tx import BegunOnLock, OnLock
from stores import new_tx_kind


@pytest.fixture(params=["local", "pg15", "pg18"])
def tx_kind(request, tmp_path):
    with new_tx_kind(request, tmp_path, request.param) as made:
        yield made


def add_one(tx):
    return tx.value("update counter set n = n + 1 where id = 1 returning n")


@pytest.mark.parametrize("form", [OnLock, BegunOnLock])
def test_it_commits_and_the_lock_stays_held(tx_kind, store, form):
    with store.acquire("job", flags=PRIVATE) as lock, tx_kind.open() as other:
        for n in (1, 2, 3):
            assert form(lock, add_one).result() == str(n)
        assert lock.state == hf.State.HELD
        assert other.refusal("job").status is Status.NOT_ACQUIRED


def test_a_callback_that_fails_leaves_nothing_behind(store):
    with store.acquire("job", flags=PRIVATE) as lock:
        def fail(tx):
            add_one(tx)
            raise hf_tx.failure(Status.BAD_DATA, "no")

        assert OnLock(lock, fail).status is Status.BAD_DATA
        assert OnLock(lock, add_one).result() == "1"


def test_it_runs_on_the_session_that_holds_the_lock(tx_kind, store):
    if tx_kind.local:
        return
    with store.acquire("job", flags=PRIVATE) as lock:
        pid = int(OnLock(lock, lambda tx: tx.value("select pg_backend_pid()")).result())
        assert tx_kind.database.holders(lock.key) == [pid]


def test_the_callers_settings_hold(tx_kind, store):
    if tx_kind.local:
        return
    with store.acquire("job", flags=PRIVATE) as lock:
        for _ in range(2):
            shown = OnLock(lock, lambda tx: tx.query("select current_setting('search_path'),"
                                                     " current_setting('synchronous_commit')")[0]).result()
            assert shown == ['"$user", public', "on"]


def test_a_lost_session_commits_nothing(tx_kind, store):
    """Between the last statement and COMMIT, when the lock is already somebody else's."""
    if tx_kind.local:
        return
    with store.acquire("job", flags=PRIVATE) as lock:
        def cut(tx):
            add_one(tx)
            pid = tx.value("select pg_backend_pid()")
            tx_kind.database.sql("select pg_terminate_backend(%s, 5000)", int(pid))

        assert OnLock(lock, cut).status is Status.LOST
        assert OnLock(lock, add_one).status is Status.LOST
        with pytest.raises(HfError) as lost:
            lock.release()
        assert lost.value.status is Status.LOST
    assert tx_kind.database.sql("select n from counter")[0][0] == 0


def test_a_lock_on_a_shared_session_is_refused(store):
    with store.acquire("job") as lock:
        assert OnLock(lock, add_one).status is Status.INVALID


def test_labels_are_refused(store):
    with store.acquire("job", flags=PRIVATE) as lock:
        assert OnLock(lock, add_one, labels="Other:label").status is Status.INVALID
        call = OnLock(lock, lambda tx: tx.serialize("Other:label"))
        assert call.status is Status.INVALID


def test_a_released_lock_has_no_session(store):
    with store.acquire("job", flags=PRIVATE) as lock:
        lock.release()
        assert OnLock(lock, add_one).status is Status.INVALID


def test_the_local_store_has_a_file_for_each_database(tmp_path):
    with hf.Store(f"local:{tmp_path}") as store:
        hf_tx.transact(store, None, lambda tx: tx.query("create table t (x int)"), database=b"one")
        error = hf_tx.refusal(store, None, lambda tx: tx.query("select * from t"), database=b"two")
        assert "no such table" in error.message
        assert (tmp_path / "one.db").exists() and (tmp_path / "two.db").exists()
        for name in (b"", b"../x", b"a/b", b"holdfast", b"-x", b"x" * 64):
            assert hf_tx.refusal(store, None, lambda tx: tx.query("select 1"), database=name).status is \
                Status.INVALID, name


@pytest.mark.parametrize("lent", [False, True], ids=["query", "lent"])
def test_what_a_callback_leaves_in_the_session_is_gone_and_the_lock_stays(tx_kind, store, lent):
    if tx_kind.local:
        return

    def alter(tx):
        if lent:
            tx.connection().sql("set work_mem = '123kB'")
        else:
            tx.query("set work_mem = '123kB'")

    with store.acquire("job", flags=PRIVATE) as lock, tx_kind.open() as other:
        OnLock(lock, alter).result()
        assert OnLock(lock, lambda tx: tx.value("show work_mem")).result() != "123kB"
        assert OnLock(lock, add_one).result() == "1"
        assert lock.state == hf.State.HELD
        assert other.refusal("job").status is Status.NOT_ACQUIRED


def test_a_callback_cannot_use_the_lock_whose_session_it_is_on(tx_kind, store):
    with store.acquire("job", flags=PRIVATE) as lock:
        def body(_):
            with pytest.raises(HfError) as released:
                lock.release()
            return released.value.status, OnLock(lock, add_one).status

        if not tx_kind.local:
            assert OnLock(lock, body).result() == (Status.ORDER, Status.ORDER)
            assert lock.state == hf.State.HELD
        lock.release()


def test_an_owner_cannot_begin_twice_on_its_lock(tx_kind, store):
    """In whatever threads: it would wait for itself."""
    with store.acquire("job", flags=PRIVATE) as lock:
        def body(_):
            return BegunOnLock(lock, add_one, owner=7).status

        if not tx_kind.local:
            assert BegunOnLock(lock, body, owner=7).result() is Status.ORDER
            assert lock.state == hf.State.HELD
