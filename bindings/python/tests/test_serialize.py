"""A transaction lock on transactions of psycopg 2 and 3, asyncpg and SQLAlchemy."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import psycopg.rows
import pytest
import sqlalchemy
import sqlalchemy.ext.asyncio
import sqlalchemy.orm

import holdfast
import holdfast.aio
from conftest import ADMIN, eventually, on_server

pytestmark = on_server
URL = ADMIN  # the lock is seen by whoever is on the database, pooler or not


@pytest.fixture
def is_held(world):
    def look(label, derivation="sha256"):
        classid, objid = holdfast.split(holdfast.key(label, derivation))
        return bool(world.sql("select 1 from pg_locks where locktype = 'advisory' and granted and mode = 'ExclusiveLock'"
                              " and classid = %s and objid = %s", classid, objid))
    return look


@pytest.fixture
def engine():
    made = sqlalchemy.create_engine("postgresql+psycopg2://", creator=lambda: psycopg2.connect(URL))
    yield made
    made.dispose()


@pytest.fixture(params=["psycopg2", "psycopg2 cursor", "psycopg", "psycopg cursor", "sqlalchemy", "session"])
def transaction(request, engine):
    """Something in a transaction, and what ends it."""
    kind = request.param
    if kind == "sqlalchemy":
        with engine.begin() as connection:
            yield connection, connection.get_transaction().rollback
        return
    if kind == "session":
        with sqlalchemy.orm.Session(engine) as session:
            yield session, session.rollback
        return
    connection = (psycopg2 if kind.startswith("psycopg2") else psycopg).connect(URL)
    yield connection.cursor() if kind.endswith("cursor") else connection, connection.rollback
    connection.close()


def test_the_label_is_locked_until_the_transaction_ends(transaction, is_held, label):
    on, end = transaction
    holdfast.serialize(on, label)
    holdfast.serialize(on, label + "2", derivation="hashtext")
    assert is_held(label) and is_held(label + "2", "hashtext")
    end()
    assert not is_held(label)


def test_it_excludes_a_transaction_of_the_store(transaction, store, label):
    on, end = transaction
    holdfast.serialize(on, label)
    with pytest.raises((holdfast.NotAcquiredError, holdfast.ExhaustedError)):
        store.transact(lambda tx: tx.query("select 1"), label, deadline=0.1)
    end()
    store.transact(lambda tx: tx.query("select 1"), label, deadline=20)


def test_others_wait_for_it(transaction, world, label):
    on, end = transaction
    holdfast.serialize(on, label)

    def other():
        connection = psycopg2.connect(URL)
        try:
            holdfast.serialize(connection, label)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        waiter = thread.submit(other)
        eventually(lambda: world.sql("select 1 from pg_locks where locktype = 'advisory' and not granted"))
        end()
        waiter.result(20)


@pytest.mark.parametrize("what", ["number", "pair", "two int4", "least", "shared"])
def test_what_may_be_locked(transaction, world, label, what):
    target, options = {"number": (holdfast.key(label), {}), "pair": ((-5, 7), {}), "least": (-(1 << 63), {}),
                       "two int4": (holdfast.Label(label, "with-advisory-lock"), {}),
                       "shared": (label, {"shared": True})}[what]
    on, end = transaction
    holdfast.serialize(on, target, **options)
    spaces = world.sql("select objsubid, mode from pg_locks where locktype = 'advisory' and granted"
                       " and database = (select oid from pg_database where datname = current_database())")
    assert spaces == [(2 if what in ("pair", "two int4") else 1, "ShareLock" if what == "shared" else "ExclusiveLock")]
    end()


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [psycopg2, psycopg], ids=lambda library: library.__name__)
def test_autocommit_is_refused_and_a_transaction_in_it_is_not(library, is_held, label):
    connection = library.connect(URL)
    connection.autocommit = True
    try:
        with pytest.raises(holdfast.NoTransactionError, match="autocommit") as refused:
            holdfast.serialize(connection, label)
        assert refused.value.hint and not is_held(label)
        connection.cursor().execute("begin")
        holdfast.serialize(connection, label)
        assert is_held(label)
        with pytest.raises(Exception):
            connection.cursor().execute("select no_such_column")
        with pytest.raises(holdfast.NoTransactionError, match="failed"):
            holdfast.serialize(connection, label)
    finally:
        connection.close()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("library", [psycopg2, psycopg], ids=lambda library: library.__name__)
def test_a_snapshot_that_is_older_than_the_lock_is_refused(library, level, is_held, label):
    connection = library.connect(URL)
    try:
        connection.cursor().execute(f"set transaction isolation level {level}")
        with pytest.raises(holdfast.ConfigError, match="snapshot") as refused:
            holdfast.serialize(connection, label)
        assert "Store.transact" in refused.value.hint and not is_held(label)
    finally:
        connection.close()


def test_rows_of_another_shape_do_no_harm(is_held, label):
    for connection in (psycopg2.connect(URL, cursor_factory=psycopg2.extras.RealDictCursor),
                       psycopg.connect(URL, row_factory=psycopg.rows.dict_row)):
        holdfast.serialize(connection, label)
        assert is_held(label)
        connection.close()


def test_sqlalchemy_without_a_transaction_or_in_autocommit_is_refused(engine, is_held, label):
    with engine.connect() as connection, pytest.raises(holdfast.NoTransactionError):
        holdfast.serialize(connection, label)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection, connection.begin():
        with pytest.raises(holdfast.NoTransactionError):
            holdfast.serialize(connection, label)
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection, connection.begin():
        with pytest.raises(holdfast.ConfigError):
            holdfast.serialize(connection, label)
    assert not is_held(label)


@pytest.mark.parametrize("bad", [None, "", 1.5, "\ud800", object(), (1, 2, 3)], ids=ascii)
def test_what_cannot_be_locked_is_refused(transaction, bad):
    with pytest.raises(holdfast.InvalidError):
        holdfast.serialize(transaction[0], bad)
    with pytest.raises(holdfast.InvalidError):
        holdfast.serialize(bad, "x")
    with pytest.raises(holdfast.InvalidError):
        holdfast.serialize(transaction[0], "x", derivation="no such")


# --- asyncio --------------------------------------------------------------------------------------------------


def test_asyncpg(is_held, label):
    async def main():
        connection = await asyncpg.connect(URL)
        try:
            with pytest.raises(holdfast.NoTransactionError):
                await holdfast.aio.serialize(connection, label)
            for level in ("repeatable_read", "serializable"):
                async with connection.transaction(isolation=level):
                    with pytest.raises(holdfast.ConfigError):
                        await holdfast.aio.serialize(connection, label)
            assert not is_held(label)
            async with connection.transaction():
                await holdfast.aio.serialize(connection, label)
                await holdfast.aio.serialize(connection, -(1 << 63))
                assert is_held(label)
            assert not is_held(label)
            with pytest.raises(holdfast.InvalidError, match="asyncio"):
                holdfast.serialize(connection, label)
        finally:
            await connection.close()

    asyncio.run(main())


def test_psycopg_for_asyncio(is_held, label):
    async def main():
        async with await psycopg.AsyncConnection.connect(URL, row_factory=psycopg.rows.dict_row) as connection:
            await holdfast.aio.serialize(connection, label)
            await holdfast.aio.serialize(connection.cursor(), label + "2")
            assert is_held(label) and is_held(label + "2")
            await connection.rollback()
            await connection.set_autocommit(True)
            with pytest.raises(holdfast.NoTransactionError):
                await holdfast.aio.serialize(connection, label)
            assert not is_held(label)
        with psycopg.connect(URL) as plain, pytest.raises(holdfast.InvalidError, match="asyncio"):
            await holdfast.aio.serialize(plain, label)

    asyncio.run(main())


def test_sqlalchemy_for_asyncio(is_held, label):
    parts = psycopg2.extensions.parse_dsn(URL)
    url = sqlalchemy.engine.URL.create(
        "postgresql+asyncpg", parts.get("user"), database=parts["dbname"],
        query={"host": parts["host"], "port": parts["port"]})

    async def main():
        engine = sqlalchemy.ext.asyncio.create_async_engine(url)
        try:
            async with engine.begin() as connection:
                await holdfast.aio.serialize(connection, label)
                assert is_held(label)
            assert not is_held(label)
            async with sqlalchemy.ext.asyncio.AsyncSession(engine) as session:
                await holdfast.aio.serialize(session, label)
                assert is_held(label)
            async with engine.connect() as connection:
                with pytest.raises(holdfast.NoTransactionError):
                    await holdfast.aio.serialize(connection, label)
                await connection.execution_options(isolation_level="SERIALIZABLE")
                async with connection.begin():
                    with pytest.raises(holdfast.ConfigError):
                        await holdfast.aio.serialize(connection, label)
            async with engine.connect() as connection:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                async with connection.begin():
                    with pytest.raises(holdfast.NoTransactionError):
                        await holdfast.aio.serialize(connection, label)
            assert not is_held(label)
        finally:
            await engine.dispose()

    asyncio.run(main())
