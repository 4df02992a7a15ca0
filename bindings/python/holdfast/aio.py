"""
The same for asyncio. A call runs in a thread of a pool that grows as it must, so the loop never
waits. Waits cost less than a thread each: tasks that wait for the same thing stand in line in the
loop, and only the first of them waits in the library. Tasks that hold a lock already wait in threads
of their own, where the library sees who waits for whom.

Cancelling a task ends its call: nothing is kept that it was about to get, and a transaction is
rolled back, unless its COMMIT is under way: then that is waited for.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import inspect
import os
import weakref
from types import TracebackType
from typing import (
    Any,
    Awaitable,
    Callable,
    Coroutine,
    Deque,
    Dict,
    Generator,
    Hashable,
    List,
    Optional,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
)

from . import _threads, errors, keys, ledgers, locks, store, transactions
from ._threads import Cancel
from .locks import Request, State, Told
from ._serialize import serialize_async as serialize
from .store import Finding, LockView, Table
from .transactions import Parameter, Rows, Transaction, TxOptions, query_step

Result = TypeVar("Result")


async def _run(
    call: Callable[[], Result],
    cancel: Optional[Cancel] = None,
    undo: Optional[Callable[[Result], Any]] = None,
) -> Result:
    """
    The call, in a thread. When the task is cancelled the call is ended by its handle, or waited for
    if it has none; what it has brought is undone.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def job() -> None:
        try:
            settle: Callable[[], None] = functools.partial(done.set_result, call())
        except BaseException as error:
            settle = functools.partial(done.set_exception, error)
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the loop is closed, so nobody hears of it
            pass

    _threads.pool.submit(job)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if cancel:
            cancel.trigger()
        await _settled(done)
        if done.exception() is None and undo:
            undone = asyncio.ensure_future(_run(functools.partial(undo, done.result())))
            await _settled(undone)
            undone.cancelled() or undone.exception()  # a lock that was lost is not held either
        raise


async def _settled(future: asyncio.Future[Any]) -> None:
    """However often the task is cancelled meanwhile: it is told once."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            pass


class _Lines:
    """For each thing, the tasks of the loop that wait for it; the first of them does so in C."""

    def __init__(self) -> None:
        self._lines: Dict[Hashable, Deque[asyncio.Future[bool]]] = {}

    async def enter(self, thing: Hashable, seconds: Optional[float]) -> Optional[_Turn]:
        """None: the time was over before it was this task's turn."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        line = self._lines.setdefault(thing, collections.deque())
        line.append(turn)
        entered = _Turn(self, thing, turn)
        if line[0] is turn:
            return entered
        late = None if seconds is None else loop.call_later(seconds, self._expire, turn)
        try:
            if await turn:
                return entered
        except BaseException:
            entered.leave()
            raise
        finally:
            if late:
                late.cancel()
        entered.leave()
        return None

    @staticmethod
    def _expire(turn: asyncio.Future[bool]) -> None:
        if not turn.done():
            turn.set_result(False)

    def leave(self, thing: Hashable, turn: asyncio.Future[bool]) -> None:
        line = self._lines[thing]
        was_first = line[0] is turn
        line.remove(turn)
        if not line:
            del self._lines[thing]
        elif was_first and not line[0].done():
            line[0].set_result(True)

    def end(self) -> None:
        """The store closes."""
        for line in self._lines.values():
            for turn in list(line)[1:]:  # the first is in the library, and is told there
                if not turn.done():
                    turn.set_exception(
                        errors.InterruptedError("the wait was interrupted: the store is closed")
                    )


class _Turn:
    def __init__(self, lines: _Lines, thing: Hashable, turn: asyncio.Future[bool]) -> None:
        self._lines, self._thing, self._turn = lines, thing, turn

    def leave(self) -> None:
        self._lines.leave(self._thing, self._turn)


# ---- locks ---------------------------------------------------------------------------------------


class Lock:
    """Held from the moment it exists, until release() or the end of its `async with` block."""

    def __init__(self, on: Store, lock: locks.Lock, lost: asyncio.Future[Any]) -> None:
        self._on = on
        self._lock = lock
        self._lost = lost
        self._counted = True
        self.key = lock.key
        self.slot = lock.slot

    @property
    def token(self) -> int:
        """The fencing token, greater than every earlier one. NoSchemaError: there are none."""
        return self._lock.token

    @property
    def state(self) -> State:
        return self._lock.state

    @property
    def lost(self) -> bool:
        return self._lock.lost

    async def wait_lost(self) -> Optional[errors.Error]:
        """The LostError, as soon as there is one; None when the lock was released instead."""
        why: Optional[errors.Error] = await asyncio.shield(self._lost)
        return why

    def note(self, event: str, detail: Optional[str] = None) -> None:
        """Adds an event to the lock's history."""
        self._lock.note(event, detail)

    async def release(self) -> None:
        """LostError: it was lost before. A second release is an InvalidError."""
        who = self._on._owner()
        try:
            await _run(lambda: self._lock._release(who))
        finally:
            if self._lock._handle.closing:
                self._ended()

    def _ended(self) -> None:
        if self._counted:
            self._counted = False
            self._on._count(self._lock._owner, -1)
        if not self._lost.done():
            self._lost.set_result(None)

    async def transact(self, fn: Callable[[Tx], Awaitable[Result]], **options: Any) -> Result:
        """As Store.transact, on the session that holds the lock, which must be private."""
        return await self._on._transact(fn, None, TxOptions(**options), self._lock)

    async def __aenter__(self) -> Lock:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._lock._handle.closing:
            self._ended()
            return
        try:
            await self.release()
        except errors.Error:
            if error is None:
                raise


class Acquiring:
    """What Store.lock returns: await it for the Lock, or use it in `async with`."""

    def __init__(self, acquire: Callable[[], Coroutine[Any, Any, Lock]]) -> None:
        self._acquire: Optional[Callable[[], Coroutine[Any, Any, Lock]]] = acquire
        self._held: Optional[Lock] = None

    def __await__(self) -> Generator[Any, None, Lock]:
        acquire, self._acquire = self._acquire, None
        if not acquire:
            raise errors.InvalidError("this lock was acquired before: ask the store again")
        return acquire().__await__()

    async def __aenter__(self) -> Lock:
        self._held = await self
        return self._held

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._held:
            await self._held.__aexit__(kind, error, trace)


class Tx:
    """One attempt of a transaction, for the coroutine that does its work."""

    def __init__(self, transaction: Transaction) -> None:
        self._tx = transaction
        self._plain = transactions.Tx(transaction)

    @property
    def attempt(self) -> int:
        return self._plain.attempt

    async def query(self, sql: str, *parameters: Parameter, binary: bool = False) -> Rows:
        return await _run(query_step(self._tx, sql, parameters, binary), self._tx.cancel)

    async def queue(self, sql: str, *parameters: Parameter) -> None:
        self._plain.queue(sql, *parameters)  # it is only remembered

    async def serialize(self, label: keys.Target) -> None:
        await _run(lambda: self._plain.serialize(label), self._tx.cancel)


# ---- the store -----------------------------------------------------------------------------------


class Store:
    """
    `async with Store(url) as store:`, or `store = await Store(url).open()`. It belongs to the loop
    that opened it; the options are those of holdfast.Store. What holdfast.Store says of threads is
    said of tasks here: the one that asks for a lock is its owner, and any may release it.
    """

    def __init__(self, url: Optional[str] = None, **options: Any) -> None:
        self._url = url
        self._options = options
        self._opened: Optional[store.Store] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._lines = _Lines()
        self._held: Dict[int, int] = {}
        self._owners: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    async def open(self) -> Store:
        if self._opened:
            raise errors.InvalidError("the store is open")
        self._loop = asyncio.get_running_loop()
        opened = await _run(
            lambda: store.Store(self._url, **self._options), None, store.Store.close
        )
        self._opened = opened
        return self

    async def close(self) -> None:
        """Ends waits and transactions of other tasks (InterruptedError), releases what is held."""
        if self._opened:
            self._lines.end()
            await _run(self._opened.close)

    async def __aenter__(self) -> Store:
        return await self.open()

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    @property
    def _store(self) -> store.Store:
        if not self._opened:
            raise errors.InvalidError("the store is not open", "async with Store(url) as store")
        if asyncio.get_running_loop() is not self._loop and self._opened._handle.pid == os.getpid():
            raise errors.InvalidError("the store belongs to another event loop", "open one here")
        return self._opened

    def _owner(self) -> int:
        task = asyncio.current_task()
        if task not in self._owners:
            number = _threads.next_owner()
            if task is None:
                return number
            self._owners[task] = number
        return self._owners[task]

    def _count(self, owner: int, by: int) -> None:
        """Tasks that hold something wait in the library, which must see it: see the top."""
        now = self._held.get(owner, 0) + by
        if now:
            self._held[owner] = now
        else:
            self._held.pop(owner, None)

    # ---- locks -----------------------------------------------------------------------------------

    def lock(self, what: keys.Targets, *, wait: Optional[float] = None, **how: Any) -> Acquiring:
        """
        `async with store.lock("nightly", wait=0) as lock:`, with the arguments of
        holdfast.Store.lock. on_wait and on_lost are called in the loop.
        """
        return self._asking(Request(what, **how), wait)

    def table_lock(self, table: str, *, wait: Optional[float] = None, **how: Any) -> Acquiring:
        """`async with store.table_lock("shop.events"):` around each insert into a shared table."""
        return self._asking(Request([], table=table, **how), wait)

    def _asking(self, request: Request, wait: Optional[float]) -> Acquiring:
        """The owner is who asks: asyncio.wait_for awaits it in a task of its own."""
        who, wait_ms = self._owner(), keys.milliseconds(wait)
        return Acquiring(lambda: self._acquire(request, wait_ms, who))

    async def _acquire(self, request: Request, wait_ms: int, who: int) -> Lock:
        on, loop = self._store, asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1000
        lost: asyncio.Future[Any] = loop.create_future()
        request.on_lost = _in_loop(loop, _first(lost, request.on_lost))
        if request.on_wait:
            request.on_wait = _in_loop(loop, request.on_wait)
        turn: Optional[_Turn] = None
        if wait_ms and not self._held.get(who):
            turn = await self._lines.enter(
                request.thing, None if wait_ms < 0 else wait_ms / 1000
            )
        try:
            if wait_ms > 0:  # out of turn, a last try says who has it
                wait_ms = max(0, round((until - loop.time()) * 1000)) if turn else 0
            cancel = Cancel()
            held = await _run(
                lambda: request.acquire(on, wait_ms, who, cancel), cancel, locks.Lock.release
            )
        finally:
            if turn:
                turn.leave()
        self._count(who, 1)
        return Lock(self, held, lost)

    def locked(
        self,
        what: Union[keys.Targets, Callable[..., keys.Targets]],
        *,
        wait: Optional[float] = None,
        **how: Any,
    ) -> Callable[[Callable[..., Awaitable[Result]]], Callable[..., Awaitable[Result]]]:
        """A decorator of coroutines: see holdfast.Store.locked."""

        def decorate(
            function: Callable[..., Awaitable[Result]]
        ) -> Callable[..., Awaitable[Result]]:
            @functools.wraps(function)
            async def run(*args: Any, **given: Any) -> Result:
                wanted = what(*args, **given) if callable(what) else what
                async with self.lock(wanted, wait=wait, **how):
                    return await function(*args, **given)

            return run

        return decorate

    # ---- transactions ----------------------------------------------------------------------------

    async def transact(
        self,
        fn: Callable[[Tx], Awaitable[Result]],
        labels: Optional[keys.Targets] = None,
        **options: Any,
    ) -> Result:
        """
        Runs the coroutine fn(tx) as one transaction, as holdfast.Store.transact does. A task that
        is cancelled during COMMIT is told when that is done: the transaction may be committed.
        """
        return await self._transact(fn, labels, TxOptions(**options), None)

    async def _transact(
        self,
        fn: Callable[[Tx], Awaitable[Result]],
        labels: Optional[keys.Targets],
        options: TxOptions,
        on: Optional[locks.Lock],
    ) -> Result:
        loop, who = asyncio.get_running_loop(), self._owner()
        transaction = Transaction(self._store, labels, options, who, on)
        left = options.deadline_ms
        turn: Optional[_Turn] = None
        if labels and not self._held.get(who):
            # Those with the same labels exclude each other anyway, from the first to the last
            # statement, so each begins when the one before it has ended.
            since = loop.time()
            turn = await self._lines.enter(
                ("transaction", tuple(transaction.labels)), left / 1000 if left else None
            )
            if left:  # out of turn, the library says who has the label
                left = max(1, left - round((loop.time() - since) * 1000)) if turn else 1
        self._count(who, 1)
        try:
            await _run(lambda: transaction.begin(left), transaction.cancel)
            while True:
                failed: Optional[Exception] = None
                result: Optional[Result] = None
                try:
                    work = fn(Tx(transaction))
                    if not inspect.isawaitable(work):
                        raise errors.InvalidError("a transaction needs a coroutine function")
                    result = await work
                except Exception as error:  # cancelled is not among them
                    failed = error
                if await _run(functools.partial(transaction.end, failed), transaction.cancel):
                    return cast(Result, result)
        finally:
            try:
                await _run(transaction.free)
            finally:
                self._count(who, -1)
                if turn:
                    turn.leave()

    def transaction(
        self,
        labels: Union[None, keys.Targets, Callable[..., keys.Targets]] = None,
        **options: Any,
    ) -> Callable[[Callable[..., Awaitable[Result]]], Callable[..., Awaitable[Result]]]:
        """A decorator of coroutines: see holdfast.Store.transaction."""

        def decorate(
            function: Callable[..., Awaitable[Result]]
        ) -> Callable[..., Awaitable[Result]]:
            @functools.wraps(function)
            async def run(*args: Any, **given: Any) -> Result:
                wanted = labels(*args, **given) if callable(labels) else labels
                return await self.transact(
                    lambda tx: function(tx, *args, **given), wanted, **options
                )

            return run

        return decorate

    # ---- the rest, as in holdfast.Store ----------------------------------------------------------

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def is_local(self) -> bool:
        return self._store.is_local

    @property
    def has_records(self) -> bool:
        return self._store.has_records

    def label(self, name: str, **values: Any) -> str:
        return self._store.label(name, **values)

    async def locks(self, since: Optional[float] = None) -> List[LockView]:
        return await _run(functools.partial(self._store.locks, since))

    async def claim(self, label: str, period: float) -> Tuple[bool, float]:
        return await _run(functools.partial(self._store.claim, label, period))

    async def init(self) -> Tuple[int, int]:
        return await _run(self._store.init)

    async def examine(self) -> List[Finding]:
        return await _run(self._store.examine)

    async def register_table(self, table: str) -> int:
        return await _run(functools.partial(self._store.register_table, table))

    async def find_table(self, table: str) -> Optional[int]:
        return await _run(functools.partial(self._store.find_table, table))

    async def ref_table(self, table: str, context: str) -> int:
        return await _run(functools.partial(self._store.ref_table, table, context))

    async def unref_table(
        self, table: str, context: str, *, wait: Optional[float] = None
    ) -> bool:
        """The library cannot end this wait early: a task that is cancelled waits for it."""
        return await _run(functools.partial(self._store.unref_table, table, context, wait=wait))

    async def drop_table(
        self, table: str, *, references_too: bool = False, wait: Optional[float] = None
    ) -> None:
        """As unref_table: a task that is cancelled waits for its end."""
        drop = functools.partial(self._store.drop_table, table)
        await _run(functools.partial(drop, references_too=references_too, wait=wait))

    async def table_references(self, table: str) -> List[str]:
        return await _run(functools.partial(self._store.table_references, table))

    async def tables(self, *, retired_too: bool = False) -> List[Table]:
        return await _run(functools.partial(self._store.tables, retired_too=retired_too))

    def network(self, name: str, **options: Any) -> Network:
        return Network(self._store.network(name, **options))


class Network:
    """As holdfast.Network."""

    def __init__(self, network: ledgers.Network) -> None:
        self._network = network

    async def get(self, cursor: str) -> Optional[int]:
        return await _run(functools.partial(self._network.get, cursor))

    async def set(self, cursor: str, value: int) -> None:
        await _run(functools.partial(self._network.set, cursor, value))

    async def set_min(self, cursor: str, value: int) -> None:
        await _run(functools.partial(self._network.set_min, cursor, value))

    async def advance(self, cursor: str, value: int) -> None:
        await _run(functools.partial(self._network.advance, cursor, value))

    async def swap(self, cursor: str, old: int, new: int) -> None:
        await _run(functools.partial(self._network.swap, cursor, old, new))

    async def cursors(self) -> Dict[str, int]:
        return await _run(self._network.cursors)

    async def gaps(self, first: int = 0, last: int = 0) -> List[Tuple[int, int]]:
        return await _run(functools.partial(self._network.gaps, first, last))


def _in_loop(loop: asyncio.AbstractEventLoop, callback: Told) -> Told:
    def tell(why: errors.Error) -> None:
        try:
            loop.call_soon_threadsafe(callback, why)
        except RuntimeError:  # the loop is closed
            pass

    return tell


def _first(lost: asyncio.Future[Any], also: Optional[Told]) -> Told:
    def tell(why: errors.Error) -> None:
        if not lost.done():
            lost.set_result(why)
        if also:
            also(why)

    return tell


__all__ = ["Acquiring", "Lock", "Network", "Store", "Tx", "serialize"]
