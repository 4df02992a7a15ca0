"""Stores: where locks, transactions, shared tables and networks are."""

from __future__ import annotations

import ctypes
import enum
import functools
import logging
import os
import warnings
from ctypes import byref
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, TypeVar, Union

from . import _lib, errors, keys
from ._handle import Handle, abandon, start_reaper
from ._lib import CError, check, lib
from ._threads import Callback, Cancel, in_main_thread, interruptible, owner
from .ledgers import Network
from .locks import Asked, Lock, Request, Told, c_table_name
from .tracing import Span, reporter
from .transactions import Isolation, Stats, Transaction, Tx, TxOptions

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

log = logging.getLogger("holdfast")

# ---- what the library says -----------------------------------------------------------------------

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)


def _log(arg: Any, level: int, message: bytes) -> None:
    with Callback():
        log.log(_LEVELS[level], "%s", _lib.text(message))


_on_log = _lib.LogFn(_log)


class Records(enum.IntEnum):
    AUTO = 0
    OFF = 1
    REQUIRED = 2


class Level(enum.IntEnum):
    OK = 0
    WARNING = 1
    PROBLEM = 2


@dataclass(frozen=True)
class Finding:
    """One topic of Store.examine."""

    level: Level
    topic: str
    text: str
    remedy: str


@dataclass(frozen=True)
class LockView:
    """One advisory lock that is held or waited for; see hf_lock_view for each field."""

    key: int
    pair: bool
    shared: bool
    waiting: bool
    ours: bool
    lifetime: Optional[str]
    label: str
    name: str
    pattern: str
    known_as: str
    application: str
    host: str
    pid: int
    backend_pid: int
    age_ms: int
    age_is_bound: bool
    token: int
    slot: int
    blocked_by: str
    idle_ms: Optional[int]
    seen_ms: int
    times: int
    left_ms: Optional[int]
    traceparent: str


@dataclass(frozen=True)
class Table:
    """A shared table, and the id by which it is locked."""

    name: str
    id: int
    created_ms: int
    dropped_ms: int
    references: int


def _view(raw: Any) -> LockView:
    fields: Dict[str, Any] = {}
    texts = ("label", "name", "pattern", "known_as", "application", "host", "blocked_by")
    same = ("key", "waiting", "ours", "pid", "backend_pid", "age_ms", "age_is_bound", "token")
    fields.update((name, _lib.text(getattr(raw, name))) for name in (*texts, "traceparent"))
    fields.update((name, getattr(raw, name)) for name in same)
    return LockView(
        pair=raw.space == keys.PAIR,
        shared=raw.mode == 1,
        lifetime=("session", "transaction", "lease")[raw.lifetime] if raw.session_known else None,
        idle_ms=None if raw.idle_hidden or raw.idle_ms < 0 else raw.idle_ms,
        slot=raw.slot,
        seen_ms=raw.seen_ms,
        times=raw.times,
        left_ms=raw.left_ms or None,
        **fields,
    )


def _table_name(raw: _lib.TableName) -> str:
    cluster = _lib.text(raw.cluster)
    return (cluster and cluster + "/") + f"{_lib.text(raw.database)}.{_lib.text(raw.table)}"


# ---- the store -----------------------------------------------------------------------------------


class Store:
    """
    url is postgresql://…, a libpq conninfo string or local:/path/to/folder. Without one the store
    is found as the holdfast command finds it (HOLDFAST_URL, HOLDFAST_URL_FILE, DATABASE_URL, PG…, a local folder),
    and so is the registry; environment=True does the same for what is not given beside a url. All
    threads may use one store. What the library has to say goes to the logger "holdfast".

    on_span is called with a Span for each wait, hold and transaction that has ended, in the thread
    that ends it; it must only hand the span on.

    A child of fork() cannot use it (ForkedError), and does not keep it open either.
    """

    _handle: Handle

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        application: Optional[str] = None,
        registry: Union[None, str, "os.PathLike[str]"] = None,
        environment: Optional[bool] = None,
        records: Records = Records.AUTO,
        session_pool: bool = False,
        ping_interval: float = 0,
        ping_deadline: float = 0,
        kill_time: float = 0,
        connect_timeout: float = 0,
        max_waits: int = 0,
        max_keys: int = 0,
        max_transactions: int = 0,
        machine: int = 0,
        patience: Optional[float] = 60,
        on_span: Optional[Callable[[Span], Any]] = None,
    ) -> None:
        raw = _lib.StoreOptions(size=ctypes.sizeof(_lib.StoreOptions))
        raw.url = keys.as_text(url, "url")
        raw.application = keys.as_text(application, "application")
        try:
            raw.records = Records(records)
        except ValueError:
            raise errors.InvalidError(f"records is one of Records: {records!r}") from None
        raw.session_pool = bool(session_pool)
        raw.environment = url is None if environment is None else bool(environment)
        for name, seconds in (
            ("ping_interval_ms", ping_interval),
            ("ping_deadline_ms", ping_deadline),
            ("kill_ms", kill_time),
            ("connect_timeout_ms", connect_timeout),
        ):
            given = max(0, keys.milliseconds(seconds, name[:-3]))
            setattr(raw, name, keys.integer(given, name[:-3], 32))
        for name, number in (
            ("max_waits", max_waits),
            ("max_keys", max_keys),
            ("max_transactions", max_transactions),
            ("machine", machine),
        ):
            setattr(raw, name, keys.integer(number, name, 32))
        raw.patience_ms = keys.milliseconds(patience, "patience") or 1
        raw.log = _on_log
        if on_span is not None and not callable(on_span):
            raise errors.InvalidError("on_span is a function")
        tells = reporter(on_span) if on_span else None
        if tells:
            raw.on_span = tells
        read, pointer, error = ctypes.c_void_p(), ctypes.c_void_p(), CError()
        if registry is not None:
            path = keys.as_bytes(os.fspath(registry), "registry")
            check(lib().hf_registry_read(path, byref(read), byref(error)), error)
            raw.registry = read
        status = lib().hf_store_open(byref(raw), byref(pointer), byref(error))
        if status:
            lib().hf_registry_free(read)
            check(status, error)

        def close(pointer: int, _kept: Any = tells) -> None:  # it may be called until then
            lib().hf_store_close(pointer)
            lib().hf_registry_free(read)

        assert pointer.value
        self._handle = Handle("store", pointer.value, close)
        self._handle.publish()
        self.name: str = _lib.text(lib().hf_store_name(pointer))
        """Where it is, never with a password."""
        self.is_local: bool = lib().hf_store_is_local(pointer)
        start_reaper()

    # ---- its end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """
        Ends waits and transactions of other threads (InterruptedError), releases what is held, and
        waits for calls to return. Closing twice does nothing.
        """
        self._handle.close_all()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle and not handle.closing and handle.pid == os.getpid():
            abandon(handle)
            warnings.warn(f"a store was never closed: {self.name}", ResourceWarning, 2)

    # ---- locks -----------------------------------------------------------------------------------

    # fmt: off
    def lock(
        self, what: keys.Targets, *, wait: Optional[float] = None,
        shared: bool = False, reentrant: bool = False, any_order: bool = False,
        private: bool = False, need_token: bool = False, slots: int = 0,
        lease: Optional[float] = None, ask: bool = False,
        on_lost: Optional[Told] = None, on_wait: Optional[Told] = None,
        on_yield: Optional[Asked] = None, traceparent: Optional[str] = None,
    ) -> Lock:
        """
        Acquires a lock: `with store.lock("nightly", wait=0) as lock:`. NotAcquiredError names who
        has it. what is a label, a Label, a number, a pair of numbers, or a list of these, which is
        acquired all or none. wait is in seconds; None: for ever.

        shared: beside others who share it. reentrant: this thread gets again what it holds.
        any_order: see OrderError. private: on a session of its own. need_token: NoSchemaError
        rather than a lock without a token. slots: how many may hold it at once. lease: not a
        lock of a session but a lease of so many seconds, renewed until it is released; it goes
        through any pooler. on_wait is called with an Error that names the holder, before the call
        waits; on_lost with one that says why, in another thread, when the lock is lost.

        ask: before all who wait, and its holder is asked to yield. on_yield is called with the lock
        and who asks for it, in another thread; release the lock there or later, and it goes to the
        one that asked, or go on. Without on_yield asks are not heard. Neither goes with a list or
        with slots, nor ask with wait=0.

        traceparent: the caller's span, the parent of those of this lock; what is not valid is
        ignored.
        """
        request = Request(
            what,
            shared=shared, reentrant=reentrant, any_order=any_order, private=private,
            need_token=need_token, slots=slots, lease=lease, ask=ask,
            on_lost=on_lost, on_wait=on_wait, on_yield=on_yield, traceparent=traceparent,
        )
        return self._lock(request, wait)

    def table_lock(
        self, table: str, *, wait: Optional[float] = None,
        shared: bool = False, reentrant: bool = False, any_order: bool = False,
        private: bool = False, need_token: bool = False, slots: int = 0, ask: bool = False,
        on_lost: Optional[Told] = None, on_wait: Optional[Told] = None,
        on_yield: Optional[Asked] = None, traceparent: Optional[str] = None,
    ) -> Lock:
        """
        Acquires the lock of a shared table, "database.table" or "cluster/database.table", and
        registers it if it is not.
        """
        request = Request(
            [], table=table,
            shared=shared, reentrant=reentrant, any_order=any_order, private=private,
            need_token=need_token, slots=slots, ask=ask,
            on_lost=on_lost, on_wait=on_wait, on_yield=on_yield, traceparent=traceparent,
        )
        return self._lock(request, wait)
    # fmt: on

    def _lock(self, request: Request, wait: Optional[float]) -> Lock:
        wait_ms, who = keys.milliseconds(wait), owner()
        if wait_ms == 0 or not in_main_thread():
            return request.acquire(self, wait_ms, who, None)
        cancel = Cancel()
        return interruptible(
            lambda: request.acquire(self, wait_ms, who, cancel), cancel, Lock.release
        )

    def locked(
        self,
        what: Union[keys.Targets, Callable[..., keys.Targets]],
        *,
        wait: Optional[float] = None,
        **how: Any,
    ) -> Callable[[Function], Function]:
        """
        A decorator: the function runs under the lock. what may be a function of its arguments:
        `@store.locked(lambda account: f"Invoice:{account}")`.
        """

        def decorate(function: Function) -> Function:
            @functools.wraps(function)
            def run(*args: Any, **given: Any) -> Any:
                with self.lock(what(*args, **given) if callable(what) else what, wait=wait, **how):
                    return function(*args, **given)

            return run  # type: ignore[return-value]

        return decorate

    def locks(self, since: Optional[float] = None) -> List[LockView]:
        """
        Every advisory lock that is held or waited for now; with since, what was recorded in so many
        seconds, one view for each key.
        """
        pointer, error = ctypes.c_void_p(), CError()
        with self._handle as store:
            if since is None:
                status = lib().hf_lock_list_read(store, byref(pointer), byref(error))
            else:
                status = lib().hf_lock_list_read_past(
                    store, keys.milliseconds(since, "since"), byref(pointer), byref(error)
                )
        check(status, error)
        try:
            count = lib().hf_lock_list_count(pointer)
            return [_view(lib().hf_lock_list_at(pointer, at)[0]) for at in range(count)]
        finally:
            lib().hf_lock_list_free(pointer)

    def label(self, name: str, **values: Any) -> str:
        """The label of the registry's lock, its placeholders filled: label("booking", tenant=7)."""
        filled = [keys.as_bytes(f"{key}={value}", "a value") for key, value in values.items()]
        raw, result, error = keys.as_bytes(name, "a name"), ctypes.c_void_p(), CError()
        with self._handle as store:
            registry = lib().hf_store_registry(store)
            entry = lib().hf_registry_find(registry, raw) if registry else None
            if not entry:
                raise errors.InvalidError(
                    f"no lock is called {name}" if registry else "the store has no registry"
                )
            given = (ctypes.c_char_p * len(filled))(*filled)
            status = lib().hf_registry_fill(
                entry, given, len(filled), byref(result), byref(error)
            )
            check(status, error)
        try:
            return ctypes.string_at(result.value or 0).decode()
        finally:
            _lib.libc_free()(result)

    # ---- transactions ----------------------------------------------------------------------------

    # fmt: off
    def transact(
        self, fn: Callable[[Tx], Result], labels: Optional[keys.Targets] = None, *,
        isolation: Isolation = Isolation.SERIALIZABLE, read_only: bool = False,
        retry_unique: bool = False, deadline: Optional[float] = None, max_attempts: int = 0,
        backoff_min: float = 0, backoff_max: float = 0, expect_operation: bool = False,
        database: Optional[str] = None, on_stats: Optional[Callable[[Stats], Any]] = None,
        traceparent: Optional[str] = None,
    ) -> Result:
        """
        Runs fn(tx) as one transaction and returns what it returns. The labels are locked before the
        transaction has its snapshot. fn may run several times, so it must do nothing outside of tx;
        what it raises rolls back and is raised, unless the cause was a conflict or a broken
        connection. InDoubtError: it may have been committed. ExhaustedError: it was not.

        isolation (an Isolation), read_only, retry_unique (also after a unique violation), deadline
        in seconds for all attempts together, max_attempts, backoff_min and backoff_max in seconds,
        database (local store: the file's name), expect_operation, on_stats (called with a Stats).
        """
        options = TxOptions(
            isolation=isolation, read_only=read_only, retry_unique=retry_unique, deadline=deadline,
            max_attempts=max_attempts, backoff_min=backoff_min, backoff_max=backoff_max,
            expect_operation=expect_operation, database=database, on_stats=on_stats,
            traceparent=traceparent,
        )
        return Transaction(self, labels, options, owner()).run(fn)
    # fmt: on

    def transaction(
        self,
        labels: Union[None, keys.Targets, Callable[..., keys.Targets]] = None,
        **options: Any,
    ) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
        """
        A decorator: the function runs as transact() runs it, with tx before its other arguments.
        labels may be a function of those.
        """

        def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
            @functools.wraps(function)
            def run(*args: Any, **given: Any) -> Result:
                wanted = labels(*args, **given) if callable(labels) else labels
                return self.transact(lambda tx: function(tx, *args, **given), wanted, **options)

            return run

        return decorate

    # ---- shared tables ---------------------------------------------------------------------------

    def _table(self, name: str) -> c_table_name:
        return c_table_name(keys.as_bytes(name, "a table's name"))

    def register_table(self, table: str) -> int:
        """Its id, minted if it has none."""
        number, error = ctypes.c_int64(), CError()
        with self._handle as store, self._table(table) as name:
            status = lib().hf_table_register(
                store, byref(name), byref(number), None, byref(error)
            )
            check(status, error)
        return number.value

    def find_table(self, table: str) -> Optional[int]:
        number, error = ctypes.c_int64(), CError()
        with self._handle as store, self._table(table) as name:
            check(lib().hf_table_find(store, byref(name), byref(number), byref(error)), error)
        return number.value or None

    def ref_table(self, table: str, context: str) -> int:
        """Says that the context owns the table, too; registers the table if it is not."""
        raw, number, error = keys.as_bytes(context, "a context"), ctypes.c_int64(), CError()
        with self._handle as store, self._table(table) as name:
            status = lib().hf_table_ref(store, byref(name), raw, byref(number), byref(error))
            check(status, error)
        return number.value

    def unref_table(self, table: str, context: str, *, wait: Optional[float] = None) -> bool:
        """True: it was the last reference, and the table's id is retired."""
        raw, retired, error = keys.as_bytes(context, "a context"), ctypes.c_bool(), CError()
        patience = keys.milliseconds(wait)
        with self._handle as store, self._table(table) as name:
            status = lib().hf_table_unref(
                store, byref(name), raw, patience, byref(retired), byref(error)
            )
            check(status, error)
        return retired.value

    def drop_table(
        self, table: str, *, references_too: bool = False, wait: Optional[float] = None
    ) -> None:
        """Retires its id."""
        patience, error = keys.milliseconds(wait), CError()
        with self._handle as store, self._table(table) as name:
            status = lib().hf_table_drop(
                store, byref(name), bool(references_too), patience, byref(error)
            )
            check(status, error)

    def table_references(self, table: str) -> List[str]:
        found: List[str] = []
        error = CError()
        add = _lib.ContextFn(lambda _, context: found.append(_lib.text(context)))
        with self._handle as store, self._table(table) as name:
            check(lib().hf_table_refs(store, byref(name), add, None, byref(error)), error)
        return found

    def tables(self, *, retired_too: bool = False) -> List[Table]:
        pointer, error = ctypes.c_void_p(), CError()
        with self._handle as store:
            status = lib().hf_table_list_read(
                store, None, bool(retired_too), byref(pointer), byref(error)
            )
            check(status, error)
        try:
            rows = [
                lib().hf_table_list_at(pointer, at)[0]
                for at in range(lib().hf_table_list_count(pointer))
            ]
            return [
                Table(_table_name(one.name), one.id, one.created_ms, one.dropped_ms, one.references)
                for one in rows
            ]
        finally:
            lib().hf_table_list_free(pointer)

    # ---- the rest --------------------------------------------------------------------------------

    def network(self, name: str, **options: Any) -> Network:
        """The cursors and gaps of a network that is ingested: see Network."""
        return Network(self._handle, name, **options)

    def claim(self, label: str, period: float) -> Tuple[bool, float]:
        """
        Claims a run of a periodic job, under its lock: (True, 0) if the period has passed since the
        last start, which is recorded; else (False, seconds that are left).
        """
        raw, period_ms = keys.as_bytes(label, "a label"), keys.milliseconds(period, "period")
        due, left, error = ctypes.c_bool(), ctypes.c_int64(), CError()
        with self._handle as store:
            status = lib().hf_schedule_claim(
                store, raw, period_ms, byref(due), byref(left), byref(error)
            )
            check(status, error)
        return due.value, 0.0 if due.value else left.value / 1000

    @property
    def has_records(self) -> bool:
        """Are there tokens, holders and events?"""
        with self._handle as store:
            return bool(lib().hf_store_has_records(store))

    def init(self) -> Tuple[int, int]:
        """Installs or upgrades the schema: its versions before (0: none) and after."""
        before, after, error = ctypes.c_int(), ctypes.c_int(), CError()
        with self._handle as store:
            check(lib().hf_store_init(store, byref(before), byref(after), byref(error)), error)
        return before.value, after.value

    def examine(self) -> List[Finding]:
        """What `holdfast doctor` prints."""
        found: List[Finding] = []
        error = CError()

        def add(_: Any, level: int, *texts: bytes) -> None:
            found.append(Finding(Level(level), *map(_lib.text, texts)))

        with self._handle as store:
            check(lib().hf_store_examine(store, _lib.FindingFn(add), None, byref(error)), error)
        return found
