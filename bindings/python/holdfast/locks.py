"""Locks that are asked for, and locks that are held."""

from __future__ import annotations

import ctypes
import enum
import itertools
import logging
import os
import warnings
import weakref
from concurrent.futures import CancelledError, Future
from ctypes import byref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple, Type, TypeVar

from . import _lib, errors, keys
from ._handle import Handle, abandon
from ._lib import CError, check, lib
from ._threads import Callback, Cancel, owner
from .transactions import Stats, Transaction, Tx, TxOptions

if TYPE_CHECKING:
    from .store import Store

Result = TypeVar("Result")
Told = Callable[[errors.Error], Any]
Asked = Callable[["Lock", str], Any]  # who asks
Ended = Callable[[Optional["Lock"], Optional[errors.Error]], Any]

log = logging.getLogger("holdfast")

# ---- callbacks of the library --------------------------------------------------------------------

_told: Dict[int, "Request"] = {}  # by the number that the library hands back
_numbers = itertools.count(1)


def _tell(name: str, number: Optional[int], why: CError) -> None:
    request = _told.get(number or 0)
    callback: Optional[Told] = getattr(request, name, None)
    if callback:
        try:
            with Callback():
                callback(_lib.raised(why.code, why))
        except Exception:
            log.exception("a callback %s failed", name)


# The locks that can be asked for, by the same number. An ask may come before its acquire returns.
_made: Dict[int, "Future[weakref.ref[Lock]]"] = {}


def _ask(number: int, who: CError) -> None:
    request, made = _told.get(number), _made.get(number)
    try:
        lock = made and made.result()()
    except CancelledError:
        return  # there is no lock after all
    if lock and request and request.on_yield:
        try:
            with Callback():
                request.on_yield(lock, _lib.text(who.message))
        except Exception:
            log.exception("a callback on_yield failed")


def _forget(number: int) -> None:
    _told.pop(number, None)
    made = _made.pop(number, None)
    if made:
        made.cancel()


# Calls that go on, by the same number: the store, the owner, the handle and who is told.
_started: Dict[int, Tuple["Store", int, Cancel, Ended]] = {}


def _end(pointer: Optional[int], status: int, number: int, why: CError) -> None:
    store, owner, _, done = _started.pop(number)
    lock: Optional[Lock] = None
    failure: Optional[errors.Error] = None
    try:
        with Callback():
            if pointer:
                lock = Lock(store, pointer, owner, number)
            else:
                _forget(number)
                failure = _lib.raised(status, why)
            done(lock, failure)
    except Exception:
        log.exception("the end of an acquire could not be told")
    finally:
        store._handle.__exit__()


# One function for all: it must live as long as the library may call it.
_on_lost = _lib.LostFn(lambda lock, why, number: _tell("on_lost", number, why[0]))
_on_yield = _lib.YieldFn(lambda lock, who, number: _ask(number, who[0]))
_on_wait = _lib.WaitFn(lambda why, number: _tell("on_wait", number, why[0]))
_on_end = _lib.StartedFn(lambda lock, status, why, number: _end(lock, status, number, why[0]))


# ---- a lock that is asked for --------------------------------------------------------------------


class Request:
    """What hf_lock_acquire is given, checked; many may be made of one."""

    def __init__(
        self,
        targets: keys.Targets,
        *,
        table: Optional[str] = None,
        shared: bool = False,
        reentrant: bool = False,
        any_order: bool = False,
        private: bool = False,
        need_token: bool = False,
        slots: int = 0,
        lease: Optional[float] = None,
        ask: bool = False,
        on_lost: Optional[Told] = None,
        on_wait: Optional[Told] = None,
        on_yield: Optional[Callable[[Any, str], Any]] = None,
        traceparent: Optional[str] = None,
    ) -> None:
        for callback in (on_lost, on_wait, on_yield):
            if callback is not None and not callable(callback):
                raise errors.InvalidError("on_lost, on_wait and on_yield are functions")
        wanted = keys.target_list(targets)
        self.table = None if table is None else keys.as_bytes(table, "a table's name")
        self.targets = keys.c_targets(wanted)
        self.shared = bool(shared)
        self.flags = (
            bool(reentrant)
            | bool(any_order) << 1
            | bool(private) << 2
            | bool(need_token) << 3
            | bool(ask) << 4
        )
        self.slots = keys.integer(slots, "slots", 32)
        if self.slots < 0:
            raise errors.InvalidError("slots is not below 0")
        self.lease_ms = None if lease is None else keys.milliseconds(lease, "lease")
        if self.lease_ms is not None and not 0 < self.lease_ms < 1 << 31:
            raise errors.InvalidError("lease is a number of seconds")
        self.on_lost = on_lost
        self.on_wait = on_wait
        self.on_yield = on_yield
        self.traceparent = keys.as_text(traceparent, "traceparent")

    def acquire(self, store: Store, wait_ms: int, owner: int, cancel: Optional[Cancel]) -> Lock:
        number, spec = 0, self._spec(wait_ms, owner, cancel)
        if self.on_lost or self.on_wait or self.on_yield:
            number = spec.arg = next(_numbers)
            self._tell_by(number)
        pointer, error = ctypes.c_void_p(), CError()
        try:
            with store._handle as on:
                if self.table is None:
                    status = lib().hf_lock_acquire(on, byref(spec), byref(pointer), byref(error))
                else:
                    with c_table_name(self.table) as name:
                        status = lib().hf_table_lock(
                            on, byref(name), byref(spec), byref(pointer), byref(error)
                        )
                check(status, error)
                assert pointer.value
                return Lock(store, pointer.value, owner, number)
        except BaseException:
            _forget(number)
            raise

    def start(self, store: Store, wait_ms: int, owner: int, cancel: Cancel, done: Ended) -> None:
        """The same, but returns at once: done is called later, in a thread of the library."""
        number, spec, error = next(_numbers), self._spec(wait_ms, owner, cancel), CError()
        spec.arg = number
        on = store._handle.__enter__()  # until the library has told of the end
        self._tell_by(number)
        _started[number] = store, owner, cancel, done
        try:
            if self.table is None:
                status = lib().hf_lock_start(on, byref(spec), _on_end, byref(error))
            else:
                with c_table_name(self.table) as name:
                    status = lib().hf_table_lock_start(
                        on, byref(name), byref(spec), _on_end, byref(error)
                    )
            check(status, error)
        except BaseException:
            del _started[number]
            _forget(number)
            store._handle.__exit__()
            raise

    def _tell_by(self, number: int) -> None:
        _told[number] = self
        if self.on_yield:
            _made[number] = Future()

    def _spec(self, wait_ms: int, owner: int, cancel: Optional[Cancel]) -> _lib.LockSpec:
        spec = _lib.LockSpec(
            size=ctypes.sizeof(_lib.LockSpec),
            targets=self.targets,
            target_count=len(self.targets),
            mode=self.shared,
            wait_ms=wait_ms,
            flags=self.flags,
            slots=self.slots,
            cancel=cancel and cancel.pointer,
            owner=owner,
            traceparent=self.traceparent,
        )
        if self.lease_ms is not None:
            spec.lifetime, spec.lease_ms = _lib.LEASE, self.lease_ms
        if self.on_lost:
            spec.on_lost = _on_lost
        if self.on_wait:
            spec.on_wait = _on_wait
        if self.on_yield:
            spec.on_yield = _on_yield
        return spec


class c_table_name:
    """The parts of a table's name, for as long as the block runs."""

    def __init__(self, text: bytes) -> None:
        self.name, self.memory, error = _lib.TableName(), ctypes.c_void_p(), CError()
        status = lib().hf_table_name_parse(
            text, byref(self.name), byref(self.memory), byref(error)
        )
        check(status, error)

    def __enter__(self) -> _lib.TableName:
        return self.name

    def __exit__(self, *_: object) -> None:
        _lib.libc_free()(self.memory)


# ---- a lock that is held -------------------------------------------------------------------------


class State(enum.IntEnum):
    HELD = 0
    LOST = 1
    RELEASED = 2


class Lock:
    """
    Held from the moment it exists; released by release() or at the end of its `with` block. Any
    thread may use and release it.
    """

    def __init__(self, store: Store, pointer: int, owner: int, number: int) -> None:
        self._store = store
        self._owner = owner
        self._number = number
        self._transacts = 0  # the owner of the transaction on its session
        self._last = State.RELEASED
        self._handle = Handle("lock", pointer, self._free_with(number), store._handle)
        token, error = ctypes.c_int64(), CError()
        status = lib().hf_lock_token(pointer, byref(token), byref(error))
        self._token = token.value
        self._no_token = _lib.raised(status, error) if status else None
        self.key: int = lib().hf_lock_key(pointer)
        """The key that is locked; of a set, the smallest."""
        self.slot: int = lib().hf_lock_slot(pointer)
        """1 … slots, or 0."""
        self.traceparent: str = _lib.text(lib().hf_lock_traceparent(pointer))
        """The span of the hold, for what is done under the lock; "": it is not traced."""
        made = _made.get(number)
        if made:
            made.set_result(weakref.ref(self))

    @staticmethod
    def _free_with(number: int) -> Callable[[int], None]:
        def free(pointer: int) -> None:
            lib().hf_lock_free(pointer)
            _forget(number)

        return free

    @property
    def token(self) -> int:
        """The fencing token, greater than every earlier one. NoSchemaError: there are none."""
        if self._no_token:
            raise self._no_token
        return self._token

    @property
    def state(self) -> State:
        """A lock whose loss was told by its release stays LOST."""
        try:
            with self._handle as pointer:
                return State(lib().hf_lock_get_state(pointer))
        except errors.InvalidError:
            return self._last

    @property
    def lost(self) -> bool:
        return self.state is State.LOST

    def note(self, event: str, detail: Optional[str] = None) -> None:
        """Adds an event to the lock's history."""
        raw = keys.as_bytes(event, "an event"), keys.as_text(detail, "a detail")
        with self._handle as pointer:
            lib().hf_lock_note(pointer, *raw)

    def release(self) -> None:
        """LostError: it was lost before. A second release is an InvalidError."""
        self._release(owner())

    def _release(self, who: int) -> None:
        error = CError()
        with self._handle as pointer:
            if self._transacts == who:
                raise errors.OrderError(
                    "the lock cannot be released by a transaction on its own session",
                    "release it when transact has returned",
                )
            status = lib().hf_lock_release(pointer, byref(error))
            if status == errors.Status.LOST:
                self._last = State.LOST
        if status != errors.Status.ORDER:
            self._handle.close()
        check(status, error)

    def transact(self, fn: Callable[[Tx], Result], **options: Any) -> Result:
        """
        As Store.transact, on the session that holds the lock, which must be private: what it writes
        is written under the lock or not at all. There are no labels.
        """
        return Transaction(self._store, None, TxOptions(**options), owner(), on=self).run(fn)

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._handle.closing:
            return  # released in the block
        try:
            self.release()
        except errors.Error:
            if error is None:
                raise  # else the block's own failure is the one to tell

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle and not handle.closing and handle.pid == os.getpid():
            abandon(handle)
            warnings.warn(f"a lock was never released: key {self.key}", ResourceWarning, 2)


__all__ = ["Lock", "Request", "State", "Stats"]
