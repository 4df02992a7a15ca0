"""Through PgBouncer: what a pooled server connection cannot keep is refused, and nothing leaks."""

import contextlib
import os
import signal

import psycopg2
import pytest

import hf
import servers
from awaiting import Background, stays
from hf import FOREVER, State, Status

SETTINGS_WE_TOUCH = [
    "statement_timeout", "lock_timeout", "idle_session_timeout",
    "idle_in_transaction_session_timeout", "client_connection_check_interval",
    "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout",
    "synchronous_commit", "search_path", "default_transaction_isolation",
    "default_transaction_read_only",
]


@pytest.fixture
def lone_pooler(pg15):
    """One server connection per database, so that every client meets what the last one left."""
    with servers.PgBouncer(pg15, "transaction", pool_size=1) as pooler:
        yield pooler.start()


def settings_through(pooler, database):
    with contextlib.closing(psycopg2.connect(pooler.url(database.name))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("select name, setting from pg_settings where name = any(%s)",
                           (SETTINGS_WE_TOUCH,))
            return dict(cursor.fetchall())


def refusal_through(pooler, database):
    """The error of a lock through a pooler, at the opening or at the lock."""
    try:
        store = hf.Store(pooler.url(database.name))
    except hf.HfError as raised:
        error = raised
    else:
        with store:
            error = store.refusal("job")
    assert error.status is Status.CONFIG
    assert "pool" in error.message
    return error


def test_session_lock_in_transaction_mode_is_refused_with_a_hint(db15, transaction_pooler):
    error = refusal_through(transaction_pooler, db15)
    assert "session" in error.hint
    assert db15.advisory_locks() == []


def test_session_mode_must_be_stated(db15, session_pooler):
    refusal_through(session_pooler, db15)
    with hf.Store(session_pooler.url(db15.name), session_pool=True) as store:
        assert store.acquire("job").state is State.HELD


def test_direct_connection_is_not_taken_for_a_pooler(db):
    with hf.Store(db.url()) as store:
        store.acquire("job")
    with servers.Proxy(db.server.port) as proxy, hf.Store(db.url(port=proxy.port)) as store:
        store.acquire("job")


def test_transaction_lock_works_in_transaction_mode(db15, transaction_pooler):
    with hf.PGconn(transaction_pooler.url(db15.name)) as conn, hf.Store.borrow(conn) as store:
        conn.sql("begin")
        lock = store.acquire("job", lifetime=hf.TRANSACTION)
        assert db15.holders(lock.key)
        with hf.PGconn(transaction_pooler.url(db15.name)) as second, hf.Store.borrow(second) as rival:
            second.sql("begin")
            assert rival.refusal("job", lifetime=hf.TRANSACTION).status is Status.NOT_ACQUIRED
            waiter = Background(rival.acquire, "job", FOREVER, lifetime=hf.TRANSACTION)
            stays(lambda: waiter.running, 0.3)
            conn.sql("commit")
            assert waiter.result().state is State.HELD
            second.sql("commit")
    assert db15.advisory_locks() == []


def test_transaction_lock_leaves_no_setting_on_the_pooled_connection(db15, lone_pooler):
    before = settings_through(lone_pooler, db15)
    with contextlib.closing(db15.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(7)")
        for end in ("commit", "rollback"):
            with hf.PGconn(lone_pooler.url(db15.name)) as conn, hf.Store.borrow(conn) as store:
                conn.sql("begin")
                store.acquire(8, lifetime=hf.TRANSACTION)
                assert store.refusal(7, 100, lifetime=hf.TRANSACTION).status is Status.NOT_ACQUIRED
                conn.sql(end)
            assert settings_through(lone_pooler, db15) == before


def test_refused_store_leaves_no_setting_on_the_pooled_connection(db15, lone_pooler):
    before = settings_through(lone_pooler, db15)
    with contextlib.suppress(hf.HfError):
        with hf.Store(lone_pooler.url(db15.name)) as store:
            store.refusal("job")
    assert settings_through(lone_pooler, db15) == before
    assert db15.advisory_locks() == []


def test_session_lock_on_a_borrowed_pooled_connection_is_refused(db15, transaction_pooler):
    with hf.PGconn(transaction_pooler.url(db15.name)) as conn, hf.Store.borrow(conn) as store:
        assert store.refusal("job").status is Status.INVALID
        conn.sql("begin")
        assert store.refusal("job").status is Status.INVALID
        conn.sql("rollback")
    assert db15.advisory_locks() == []


def test_schema_can_be_used_through_a_session_pooler(db15, session_pooler):
    with hf.Store(session_pooler.url(db15.name), session_pool=True) as store:
        store.init()
        first = store.acquire("a").token
        assert store.acquire("b").token > first


def test_store_opens_though_the_pooler_hands_out_a_connection_that_is_being_ended(db15, lone_pooler):
    """As after a failover: the server has been told to end it, and the pooler does not know yet."""
    with contextlib.closing(psycopg2.connect(lone_pooler.url(db15.name))) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("select pg_backend_pid()")
        backend, = cursor.fetchone()
    os.kill(backend, signal.SIGSTOP)
    try:
        db15.sql("select pg_terminate_backend(%s)", backend)
        opening = Background(hf.Store, lone_pooler.url(db15.name))
        stays(lambda: opening.running, 0.3)
    finally:
        os.kill(backend, signal.SIGCONT)
    opening.result().close()
