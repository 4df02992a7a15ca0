"""Serialised transactions: labels first, then the snapshot; the library says when to run again."""

from __future__ import annotations

import ctypes
import datetime
import decimal
import enum
import logging
import threading
import uuid
from ctypes import byref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Tuple, TypeVar, Union

from . import _lib, errors, keys
from ._handle import Handle
from ._lib import CError, check, lib
from ._threads import Callback, Cancel, interruptible
from .errors import Status

if TYPE_CHECKING:
    from .locks import Lock
    from .store import Store

Result = TypeVar("Result")
Parameter = Union[
    None, str, bytes, bool, int, float, decimal.Decimal, uuid.UUID, datetime.date, datetime.time
]
_AS_TEXT = (int, float, decimal.Decimal, uuid.UUID, datetime.date, datetime.time)

log = logging.getLogger("holdfast")


class Isolation(enum.IntEnum):
    SERIALIZABLE = 0
    REPEATABLE_READ = 1
    READ_COMMITTED = 2


@dataclass(frozen=True)
class Stats:
    """What became of one transaction, for one of its labels (None: it had none)."""

    label: Optional[str]
    key: int
    attempts: int
    wait_ms: int
    hold_ms: int
    outcome: Status


class Rows(List[Tuple[Any, ...]]):
    """
    The rows of a statement as tuples, with the names of their columns. Values are text as the
    server writes it, or None; bytes if the query asked for binary ones.
    """

    columns: Tuple[str, ...] = ()
    affected: int = 0


def c_values(parameters: Tuple[Parameter, ...]) -> Any:
    values = (_lib.Value * len(parameters))()
    for value, given in zip(values, parameters):
        if isinstance(given, (bytes, bytearray, memoryview)):
            value.data, value.size, value.binary = bytes(given), len(given), True
        elif isinstance(given, bool):
            value.data = b"1" if given else b"0"  # as text both PostgreSQL and SQLite take it
        elif isinstance(given, str):
            value.data = keys.as_bytes(given, "a parameter")
        elif isinstance(given, _AS_TEXT):
            value.data = str(given).encode()
        elif given is not None:
            raise errors.InvalidError(f"a parameter cannot be {type(given).__name__}: make it text")
    return values


def _read(rows: int, binary: bool) -> Rows:
    width, size = lib().hf_rows_columns(rows), ctypes.c_size_t()

    def value(row: int, column: int) -> Any:
        at = lib().hf_rows_value(rows, row, column, byref(size))
        if at is None:
            return None
        raw = ctypes.string_at(at, size.value)
        return raw if binary else raw.decode(errors="surrogateescape")

    result = Rows(
        tuple(value(row, column) for column in range(width))
        for row in range(lib().hf_rows_count(rows))
    )
    result.columns = tuple(_lib.text(lib().hf_rows_column(rows, at)) for at in range(width))
    result.affected = lib().hf_rows_affected(rows)
    return result


class TxOptions:
    """hf_tx_options, checked."""

    def __init__(
        self,
        *,
        isolation: Isolation = Isolation.SERIALIZABLE,
        read_only: bool = False,
        retry_unique: bool = False,
        deadline: Optional[float] = None,
        max_attempts: int = 0,
        backoff_min: float = 0,
        backoff_max: float = 0,
        expect_operation: bool = False,
        database: Optional[str] = None,
        on_stats: Optional[Callable[[Stats], Any]] = None,
        traceparent: Optional[str] = None,
    ) -> None:
        try:
            self.isolation = Isolation(isolation)
        except ValueError:
            raise errors.InvalidError(f"unknown isolation level: {isolation!r}") from None
        self.read_only = bool(read_only)
        self.retry_unique = bool(retry_unique)
        self.deadline_ms = max(0, keys.milliseconds(deadline, "deadline"))
        if deadline is not None and self.deadline_ms == 0:
            self.deadline_ms = 1  # 0 would be none
        self.max_attempts = keys.integer(max_attempts, "max_attempts", 32)
        if self.max_attempts < 0:
            raise errors.InvalidError("max_attempts is not below 0")
        self.backoff = [
            keys.integer(max(0, keys.milliseconds(one, "a backoff")), "a backoff", 32)
            for one in (backoff_min, backoff_max)
        ]
        self.expect_operation = bool(expect_operation)
        self.database = keys.as_text(database, "database")
        self.on_stats = on_stats
        self.traceparent = keys.as_text(traceparent, "traceparent")
        if on_stats is not None and not callable(on_stats):
            raise errors.InvalidError("on_stats is a function")


def _reporter(tell: Callable[[Stats], Any]) -> Any:
    def report(stats: Any, _: Any) -> None:
        one = stats[0]
        label = one.label and ctypes.string_at(one.label, one.label_size).decode(errors="replace")
        times = (one.attempts, one.wait_ms, one.hold_ms)
        try:
            with Callback():
                tell(Stats(label, one.key, *times, Status(one.outcome)))
        except Exception:
            log.exception("the callback on_stats failed")

    return _lib.StatsFn(report)


class Transaction:
    """hf_tx_begin and hf_tx_end around each attempt. Every step may be in any thread."""

    def __init__(
        self,
        store: Store,
        labels: Optional[keys.Targets],
        options: TxOptions,
        owner: int,
        on: Optional[Lock] = None,
    ) -> None:
        self.store = store
        self.options = options
        self.owner = owner
        self.on = on
        self.cancel = Cancel()
        self.labels = [] if labels is None else keys.target_list(labels)
        self._targets = keys.c_targets(self.labels)
        self._report = options.on_stats and _reporter(options.on_stats)
        self._database = options.database  # what the options point to must last
        self._handle: Optional[Handle] = None
        self._busy = threading.Lock()

    def begin(self, deadline_ms: Optional[int] = None) -> None:
        given = self.options
        raw = _lib.TxOptions(
            size=ctypes.sizeof(_lib.TxOptions),
            labels=self._targets if self.labels else None,
            label_count=len(self.labels),
            isolation=given.isolation,
            read_only=given.read_only,
            retry_unique=given.retry_unique,
            deadline_ms=given.deadline_ms if deadline_ms is None else deadline_ms,
            max_attempts=given.max_attempts,
            backoff_min_ms=given.backoff[0],
            backoff_max_ms=given.backoff[1],
            expect_operation=given.expect_operation,
            database=self._database,
            cancel=self.cancel.pointer,
            owner=self.owner,
            traceparent=given.traceparent,
        )
        if self._report:
            raw.on_stats = self._report
        pointer, error = ctypes.c_void_p(), CError()
        begin = lib().hf_tx_begin_on if self.on else lib().hf_tx_begin
        on: Handle = self.store._handle
        with on as store:
            if self.on:
                with self.on._handle as lock:
                    status = begin(lock, byref(raw), byref(pointer), byref(error))
            else:
                status = begin(store, byref(raw), byref(pointer), byref(error))
            check(status, error)
            assert pointer.value
            # The handle keeps this object, and so what the options point to, until it is freed.
            self._handle = Handle(
                "transaction", pointer.value, self._free, on, self.cancel.trigger
            )
            if self.on:
                self.on._transacts = self.owner

    def _free(self, pointer: int) -> None:
        lib().hf_tx_free(pointer)
        if self.on:
            self.on._transacts = 0

    def call(self, function: Callable[[int], Result]) -> Result:
        """One at a time: two threads or tasks in one transaction are a mistake of theirs."""
        if not self._handle:
            raise errors.InvalidError("the transaction has not begun")
        if not self._busy.acquire(blocking=False):
            raise errors.InvalidError(
                "another thread or task is in a call of this transaction",
                "a transaction runs one statement at a time",
            )
        try:
            with self._handle as pointer:
                return function(pointer)
        finally:
            self._busy.release()

    def end(self, failed: Optional[Exception] = None) -> bool:
        """True: committed. False: the next attempt is open. Else it raises what came of it."""
        error = CError()
        result = Status.OK
        if isinstance(failed, errors.Error) and failed.status and failed.code < Status.ROLLED_BACK:
            # It may be of the transaction: then the library decides about another attempt.
            result, error.code = failed.status, failed.status
            error.message = failed.message.encode()[:1023]
            error.hint = failed.hint.encode()[:511]
            error.sqlstate = failed.sqlstate.encode()[:5]
            error.position = failed.position
        elif failed:
            result = Status.ROLLED_BACK
        status = self.call(lambda pointer: int(lib().hf_tx_end(pointer, result, byref(error))))
        if status == Status.AGAIN:
            return False
        self.free()
        if failed and status == result:
            raise failed
        if status:
            raise _lib.raised(status, error) from failed
        return True

    def free(self) -> None:
        """Rolls back what has not ended."""
        if self._handle:
            self._handle.close()

    def run(self, fn: Callable[[Tx], Result]) -> Result:
        if not callable(fn):
            raise errors.InvalidError("a transaction needs a function, which is called with it")
        try:
            interruptible(self.begin, self.cancel)
            while True:
                failed, result = None, None
                try:
                    result = fn(Tx(self))
                except Exception as error:  # anything else, such as Ctrl-C, is not tried again
                    failed = error
                if interruptible(lambda: self.end(failed), self.cancel):
                    return result  # type: ignore[return-value]
        finally:
            self.free()


class Tx:
    """One attempt of a transaction, for the function that does its work."""

    def __init__(self, transaction: Transaction) -> None:
        self._tx = transaction

    @property
    def attempt(self) -> int:
        """1, 2, …"""
        return self._tx.call(lambda pointer: int(lib().hf_tx_attempt(pointer)))

    @property
    def traceparent(self) -> str:
        """The span of the transaction; "": it is not traced."""
        return self._tx.call(lambda pointer: _lib.text(lib().hf_tx_traceparent(pointer)))

    def query(self, sql: str, *parameters: Parameter, binary: bool = False) -> Rows:
        """Runs one statement with parameters $1… and gives its rows."""
        step = query_step(self._tx, sql, parameters, binary)
        return interruptible(step, self._tx.cancel)

    def queue(self, sql: str, *parameters: Parameter) -> None:
        """
        Queues a statement whose rows are not needed: it travels with the next query or with COMMIT,
        and a failure is raised there.
        """
        raw, values, error = keys.as_bytes(sql, "a statement"), c_values(parameters), CError()

        def step(pointer: int) -> int:
            status: int = lib().hf_tx_queue(pointer, raw, len(values), values, byref(error))
            return status

        check(self._tx.call(step), error)

    def serialize(self, label: keys.Target) -> None:
        """Locks one more label; only before the first statement, whose snapshot would be older."""
        target, error = keys.c_target(label), CError()
        status = self._tx.call(
            lambda pointer: int(lib().hf_tx_serialize(pointer, byref(target), byref(error)))
        )
        check(status, error)


def query_step(
    tx: Transaction, sql: str, parameters: Tuple[Parameter, ...], binary: bool
) -> Callable[[], Rows]:
    raw, values = keys.as_bytes(sql, "a statement"), c_values(parameters)

    def step(pointer: int) -> Rows:
        rows, error = ctypes.c_void_p(), CError()
        status = lib().hf_tx_query(
            pointer, raw, len(values), values, binary, byref(rows), byref(error)
        )
        try:
            check(status, error)
            return _read(rows.value, binary) if rows.value else Rows()
        finally:
            lib().hf_rows_free(rows)

    return lambda: tx.call(step)
