"""Transaction locks on a connection that the caller lends."""

import contextlib

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import FOREVER, SHARED, TRANSACTION, HfError, PGconn, State, Status, Store


@pytest.fixture
def lent(conn):
    with Store.borrow(conn) as store:
        yield store


@contextlib.contextmanager
def held_by_stranger(db, key):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(%s)", (key,))
        yield lambda: cursor.execute("select pg_advisory_unlock(%s)", (key,))


def test_transaction_lock_outside_a_transaction_is_refused(db, conn, lent):
    error = lent.refusal("job", lifetime=TRANSACTION)
    assert error.status is Status.NO_TRANSACTION
    assert "BEGIN" in error.hint.upper()
    assert conn.transaction == PGconn.IDLE
    assert db.advisory_locks() == []


def test_transaction_lock_in_a_failed_transaction_is_refused(conn, lent):
    conn.sql("begin")
    with pytest.raises(hf.SqlError):
        conn.sql("select 1/0")
    error = lent.refusal("job", lifetime=TRANSACTION)
    assert error.status is Status.NO_TRANSACTION
    conn.sql("rollback")


def test_transaction_lock_on_an_owned_store_is_refused(db):
    with Store(db.url()) as store:
        assert store.refusal("job", lifetime=TRANSACTION).status in (Status.NO_TRANSACTION, Status.INVALID)


def test_session_lock_on_a_lent_connection_is_refused(db, conn, lent):
    """Nobody watches it, and its owner may free all its locks with one statement."""
    error = lent.refusal("job")
    assert error.status is Status.INVALID
    assert error.hint
    assert db.advisory_locks() == []


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_transaction_end_frees_the_lock(db, conn, lent, end):
    conn.sql("begin")
    lock = lent.acquire("job", lifetime=TRANSACTION)
    assert db.holders(lock.key) == [conn.backend_pid]
    with Store(db.url()) as rival:
        assert rival.refusal("job").status is Status.NOT_ACQUIRED
        conn.sql(end)
        assert db.holders(lock.key) == []
        rival.acquire("job").end()


def test_releasing_a_transaction_lock_keeps_it_until_the_end(db, conn, lent):
    conn.sql("begin")
    lock = lent.acquire("job", lifetime=TRANSACTION)
    lock.release()
    assert lock.state is State.RELEASED
    assert db.holders(lock.key) == [conn.backend_pid]
    conn.sql("commit")
    assert db.holders(lock.key) == []


def test_closing_the_store_leaves_the_connection_and_its_transaction(db, conn):
    conn.sql("begin")
    with Store.borrow(conn) as store:
        key = store.acquire("job", lifetime=TRANSACTION).key
    assert conn.transaction == PGconn.IN_TRANSACTION
    assert db.holders(key) == [conn.backend_pid]
    conn.sql("commit")


def test_borrowing_changes_no_setting(conn):
    query = "select name, setting from pg_settings order by 1"
    before = conn.sql(query)
    with Store.borrow(conn) as store:
        conn.sql("begin")
        store.acquire("job", 1000, lifetime=TRANSACTION)
        conn.sql("commit")
    assert conn.sql(query) == before


def test_timed_wait_that_fails_leaves_the_transaction_usable(db, conn, lent):
    conn.sql("create temp table t (a int)")
    conn.sql("begin")
    conn.sql("set local lock_timeout = '12345ms'")
    conn.sql("set local statement_timeout = '54321ms'")
    conn.sql("insert into t values (1)")
    with held_by_stranger(db, 7):
        for wait_ms in (0, 150, 1500):
            error = lent.refusal(7, wait_ms, lifetime=TRANSACTION)
            assert error.status is Status.NOT_ACQUIRED
            assert conn.transaction == PGconn.IN_TRANSACTION
            assert conn.value("show lock_timeout") == "12345ms"
            assert conn.value("show statement_timeout") == "54321ms"
    conn.sql("commit")
    assert conn.value("select count(*) from t") == "1"
    assert conn.value("show lock_timeout") == "0"


def test_timed_wait_that_succeeds_restores_the_timeouts(db, conn, lent):
    conn.sql("begin")
    conn.sql("set local lock_timeout = '12345ms'")
    conn.sql("set local statement_timeout = '54321ms'")
    with held_by_stranger(db, 7) as unlock:
        waiter = Background(lent.acquire, 7, 20000, lifetime=TRANSACTION)
        eventually(lambda: db.waiters(7))
        unlock()
        waiter.result()
    assert conn.value("show lock_timeout") == "12345ms"
    assert conn.value("show statement_timeout") == "54321ms"
    conn.sql("commit")


def test_callers_own_timeout_does_not_cut_a_longer_wait_short(db, conn, lent):
    conn.sql("begin")
    conn.sql("set local statement_timeout = '200ms'")
    conn.sql("set local lock_timeout = '100ms'")
    with held_by_stranger(db, 7) as unlock:
        waiter = Background(lent.acquire, 7, FOREVER, lifetime=TRANSACTION)
        stays(lambda: waiter.running, 0.6)
        unlock()
        waiter.result()
    conn.sql("commit")


def test_failed_wait_keeps_the_locks_taken_before(db, conn, lent):
    conn.sql("begin")
    first = lent.acquire(1, lifetime=TRANSACTION)
    with held_by_stranger(db, 7):
        assert lent.refusal(7, 150, lifetime=TRANSACTION).status is Status.NOT_ACQUIRED
    assert db.holders(1) == [conn.backend_pid]
    assert first.state is State.HELD
    conn.sql("commit")


def test_failed_set_leaves_none_of_its_keys(db, conn, lent):
    conn.sql("begin")
    with held_by_stranger(db, 7):
        for wait_ms in (0, 150):
            assert lent.refusal([5, 7, 9], wait_ms, lifetime=TRANSACTION).status is Status.NOT_ACQUIRED
            assert db.holders(5) == [] and db.holders(9) == []
    assert conn.transaction == PGconn.IN_TRANSACTION
    conn.sql("commit")


def test_set_of_transaction_locks(db, conn, lent):
    conn.sql("begin")
    lock = lent.acquire(["a", "b", 7, (1, 2)], lifetime=TRANSACTION)
    assert len(db.advisory_locks()) == 4
    assert lock.state is State.HELD
    conn.sql("commit")
    assert db.advisory_locks() == []


def test_shared_transaction_locks_share(db, conn, lent):
    conn.sql("begin")
    lent.acquire("job", lifetime=TRANSACTION, mode=SHARED)
    with PGconn(db.url()) as second, Store.borrow(second) as rival:
        second.sql("begin")
        rival.acquire("job", lifetime=TRANSACTION, mode=SHARED)
        assert len(db.advisory_locks()) == 2
        second.sql("commit")
    conn.sql("commit")


@pytest.mark.parametrize("level, expected", [("read committed", False), ("repeatable read", True),
                                             ("serializable", True)])
def test_snapshot_older_than_the_lock_is_flagged(db, conn, lent, level, expected):
    conn.sql(f"begin isolation level {level}")
    with held_by_stranger(db, 7) as unlock:
        waiter = Background(lent.acquire, 7, 20000, lifetime=TRANSACTION)
        eventually(lambda: db.waiters(7))
        unlock()
        assert waiter.result().stale is expected
    conn.sql("commit")


@pytest.mark.parametrize("wait_ms", [0, 20000])
@pytest.mark.parametrize("level, expected", [("read committed", False), ("repeatable read", True),
                                             ("serializable", True)])
def test_a_lock_that_was_free_at_once_is_flagged_too(db, conn, lent, level, expected, wait_ms):
    """Its last holder has committed and let go after the snapshot, and before we asked."""
    db.sql("create table t as select 1 as a")
    db.sql("alter table t owner to app")
    conn.sql(f"begin isolation level {level}")
    conn.sql("select 1 from t")
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(7)")
        cursor.execute("update t set a = 2")
        cursor.execute("select pg_advisory_unlock(7)")
    assert lent.acquire(7, wait_ms, lifetime=TRANSACTION).stale is expected
    assert conn.value("select a from t") == ("1" if expected else "2")
    conn.sql("commit")


def test_flag_tells_the_truth(db, conn, lent):
    """What the last holder committed is indeed invisible to a flagged lock."""
    db.sql("create table t as select 1 as a")
    db.sql("alter table t owner to app")
    conn.sql("begin isolation level repeatable read")
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(7)")
        waiter = Background(lent.acquire, 7, 20000, lifetime=TRANSACTION)
        eventually(lambda: db.waiters(7))
        cursor.execute("update t set a = 2")
        cursor.execute("select pg_advisory_unlock(7)")
    assert waiter.result().stale
    assert conn.value("select a from t") == "1"
    conn.sql("commit")


def test_deadlock_that_postgresql_finds_is_reported(db, conn, lent):
    conn.sql("begin")
    lent.acquire(1, lifetime=TRANSACTION)
    with PGconn(db.url()) as second, Store.borrow(second) as rival:
        second.sql("begin")
        rival.acquire(2, lifetime=TRANSACTION)
        first = Background(lent.acquire, 2, FOREVER, lifetime=TRANSACTION, flags=hf.ANY_ORDER)
        other = Background(rival.acquire, 1, FOREVER, lifetime=TRANSACTION, flags=hf.ANY_ORDER)
        done = eventually(lambda: [b for b in (first, other) if not b.running], 15)
        with pytest.raises(HfError) as raised:
            done[0].result()
        assert raised.value.status is Status.DEADLOCK
        (conn if done[0] is first else second).sql("rollback")
        (other if done[0] is first else first).result()
        for one in (conn, second):
            if one.transaction == PGconn.IN_TRANSACTION:
                one.sql("rollback")


def test_dead_borrowed_connection_is_reported(db, conn, lent):
    conn.sql("begin")
    lent.acquire("job", lifetime=TRANSACTION)
    db.server.terminate(conn.backend_pid)
    error = lent.refusal("other", lifetime=TRANSACTION)
    assert error.status in (Status.UNREACHABLE, Status.LOST)
