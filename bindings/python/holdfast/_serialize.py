"""A transaction lock on the caller's own transaction, by plain SQL."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import errors, keys

IDLE, IN_ERROR = 0, 3  # of libpq's PGTransactionStatusType, in psycopg 2 and 3
HERE = "begin a transaction first: the lock is held until it ends"
BEFORE = (
    "a statement takes its snapshot before it waits: run the work in Store.transact, which locks the"
    " label first, or hold Store.lock around the whole transaction, COMMIT included"
)

# The level is looked at by the statement that locks: a transaction of the wrong one locks nothing.
SQL = (
    "SELECT level, CASE WHEN level IN ('read committed', 'read uncommitted')"
    " THEN pg_catalog.pg_advisory_xact_lock{shared}({key})::text END"
    " FROM (SELECT pg_catalog.current_setting('transaction_isolation') AS level) AS here"
)


def key_of(label: keys.Target, derivation: str) -> Tuple[List[int], str]:
    """The arguments of the lock function, and the type of each."""
    if isinstance(label, (str, bytes)):
        label = keys.Label(label, derivation)
    elif derivation != "sha256":
        raise errors.InvalidError("only a label in text has a derivation")
    keys.c_target(label)  # refuses what cannot be locked
    if isinstance(label, keys.Label) and label.key is None:
        if not label.text:
            raise errors.InvalidError("a label is not empty")
        number = keys.key(label.text, label.derivation)
        if not keys.is_pair(label.derivation):
            return [number], "bigint"
        halves = keys.split(number)
        return [half - (1 << 32) if half >> 31 else half for half in halves], "int4"
    if isinstance(label, tuple):
        return list(label), "int4"
    return [label.key if isinstance(label, keys.Label) else label], "bigint"  # type: ignore


def statement(numbers: List[int], kind: str, shared: bool, mark: Callable[[int], str]) -> str:
    marks = [f"CAST({mark(at)} AS {kind})" for at in range(len(numbers))]
    return SQL.format(shared="_shared" if shared else "", key=", ".join(marks))


def judge(level: str, label: keys.Target) -> None:
    if level not in ("read committed", "read uncommitted"):
        raise errors.ConfigError(
            f"{label!r} was not locked: the transaction is {level.upper()}, so its snapshot is older"
            " than the lock and does not see what the last holder commits",
            BEFORE,
        )


def require_block(is_open: bool, why: str = "there is no open transaction") -> None:
    if not is_open:
        raise errors.NoTransactionError(f"the label was not locked, or not for long: {why}", HERE)


def require_status(connection: Any) -> None:
    """Of psycopg: before the statement, which opens a transaction unless it is autocommit."""
    status = int(connection.info.transaction_status)
    require_block(status != IDLE or not connection.autocommit, "the connection is in autocommit")
    require_block(status != IN_ERROR, "the transaction has failed")


def family(what: Any) -> str:
    for one in type(what).__mro__:
        root = one.__module__.split(".")[0]
        if root in ("psycopg2", "psycopg", "asyncpg", "sqlalchemy"):
            return root
    raise errors.InvalidError(
        f"no transaction can be found in {type(what).__name__}",
        "give a connection or cursor of psycopg 2 or 3, a connection of asyncpg, or a Connection or"
        " Session of SQLAlchemy",
    )


def named(numbers: List[int]) -> Dict[str, int]:
    return {f"key{at}": number for at, number in enumerate(numbers)}


def refuse_async(what: Any, is_async: bool) -> None:
    if "Async" in type(what).__name__ or family(what) == "asyncpg":
        if not is_async:
            raise errors.InvalidError(
                f"{type(what).__name__} is for asyncio", "await holdfast.aio.serialize"
            )
    elif is_async:
        raise errors.InvalidError(
            f"{type(what).__name__} is not for asyncio", "call holdfast.serialize"
        )


def serialize(
    transaction: Any, label: keys.Target, *, derivation: str = "sha256", shared: bool = False
) -> None:
    """
    Locks the label until the caller's transaction ends, and waits for it as the transaction's
    lock_timeout says. transaction is a connection or cursor of psycopg 2 or 3, or a Connection or
    Session of SQLAlchemy. Who locks the same label by another key is not excluded: derivation is
    how others do it, such as "hashtext". A registry is not looked at.

    NoTransactionError: the connection is in autocommit. ConfigError: the transaction is REPEATABLE
    READ or SERIALIZABLE, where this lock would come too late.
    """
    kind = family(transaction)
    refuse_async(transaction, False)
    numbers, integer = key_of(label, derivation)
    if kind == "sqlalchemy":
        connection = _sqlalchemy(transaction)
        driver = connection.connection.driver_connection
        if hasattr(driver, "autocommit") and hasattr(driver, "info"):
            require_status(driver)
        text = _text(statement(numbers, integer, shared, ":key{}".format))
        level = connection.execute(text, named(numbers)).fetchone()[0]
    else:
        driver = getattr(transaction, "connection", transaction)
        require_status(driver)
        with driver.cursor(**_plain_rows(kind)) as cursor:
            cursor.execute(statement(numbers, integer, shared, lambda at: "%s"), numbers)
            level = cursor.fetchone()[0]
    judge(level, label)
    require_block(_is_open(driver))


def _sqlalchemy(transaction: Any) -> Any:
    """Its Connection. A Session begins a transaction by itself."""
    connection = transaction if hasattr(transaction, "engine") else transaction.connection()
    require_block(connection.in_transaction())
    return connection


def _text(sql: str) -> Any:
    return importlib.import_module("sqlalchemy").text(sql)


def _plain_rows(kind: str) -> Dict[str, Any]:
    """Tuples, whatever rows the connection makes by itself."""
    if kind == "psycopg2":
        return {"cursor_factory": importlib.import_module("psycopg2.extensions").cursor}
    return {"row_factory": importlib.import_module("psycopg.rows").tuple_row}


def _is_open(driver: Any) -> bool:
    if hasattr(driver, "is_in_transaction"):
        return bool(driver.is_in_transaction())
    return int(driver.info.transaction_status) != IDLE


async def serialize_async(
    transaction: Any, label: keys.Target, *, derivation: str = "sha256", shared: bool = False
) -> None:
    """As holdfast.serialize, for asyncpg and the asynchronous sides of psycopg 3 and SQLAlchemy."""
    kind = family(transaction)
    refuse_async(transaction, True)
    numbers, integer = key_of(label, derivation)
    driver: Optional[Any] = None
    if kind == "asyncpg":
        driver = transaction
        require_block(driver.is_in_transaction())
        sql = statement(numbers, integer, shared, lambda at: f"${at + 1}")
        level = (await driver.fetchrow(sql, *numbers))[0]
    elif kind == "sqlalchemy":
        is_session = hasattr(transaction, "sync_session")
        connection = await transaction.connection() if is_session else transaction
        require_block(connection.in_transaction())
        text = _text(statement(numbers, integer, shared, ":key{}".format))
        level = (await connection.execute(text, named(numbers))).fetchone()[0]
        driver = (await connection.get_raw_connection()).driver_connection
    else:
        driver = getattr(transaction, "connection", transaction)
        require_status(driver)
        async with driver.cursor(**_plain_rows(kind)) as cursor:
            await cursor.execute(statement(numbers, integer, shared, lambda at: "%s"), numbers)
            level = (await cursor.fetchone())[0]
    judge(level, label)
    require_block(_is_open(driver))
