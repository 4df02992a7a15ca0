"""
The same for asyncio. A lock is waited for without a thread: the library tells the loop of the end.
Other calls run in a thread of a pool that grows as it must, so the loop never waits. Transactions
with the same labels stand in line in the loop, and only the first of them waits in a thread; those
of tasks that hold a lock already have threads of their own, where the library sees who waits for
whom.

Cancelling a task ends its call: nothing is kept that it was about to get, and a transaction is
rolled back, unless its COMMIT is under way: then that is waited for.
"""

from __future__ import annotations

import asyncio
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
from ._loop import Lines, Turn, asked_in_loop, first_of, in_loop, run, started
from ._serialize import serialize_async as serialize
from ._threads import Cancel
from .locks import Request, State, Told
from .store import Finding, LockView, Table
from .transactions import Isolation, Parameter, Rows, Stats, Transaction, TxOptions, query_step

MAX_TRANSACTIONS = 16  # the library's own default

Result = TypeVar("Result")
Asked = Callable[["Lock", str], Any]  # who asks


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
        self.traceparent = lock.traceparent

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
            await run(lambda: self._lock._release(who))
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

    @property
    def traceparent(self) -> str:
        return self._plain.traceparent

    async def query(self, sql: str, *parameters: Parameter, binary: bool = False) -> Rows:
        return await run(query_step(self._tx, sql, parameters, binary), self._tx.cancel)

    async def queue(self, sql: str, *parameters: Parameter) -> None:
        self._plain.queue(sql, *parameters)  # it is only remembered

    async def serialize(self, label: keys.Target) -> None:
        await run(lambda: self._plain.serialize(label), self._tx.cancel)


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
        self._lines = Lines()
        self._room = int(options.get("max_transactions") or MAX_TRANSACTIONS)
        self._held: Dict[int, int] = {}
        self._owners: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    async def open(self) -> Store:
        if self._opened:
            raise errors.InvalidError("the store is open")
        self._loop = asyncio.get_running_loop()
        opened = await run(
            lambda: store.Store(self._url, **self._options), None, store.Store.close
        )
        self._opened = opened
        return self

    async def close(self) -> None:
        """Ends waits and transactions of other tasks (InterruptedError), releases what is held."""
        if self._opened:
            self._lines.end()
            await run(self._opened.close)

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
        """Those that hold something wait in the library, which must see it: see the top."""
        now = self._held.get(owner, 0) + by
        if now:
            self._held[owner] = now
        else:
            self._held.pop(owner, None)

    # ---- locks -----------------------------------------------------------------------------------

    # fmt: off
    def lock(
        self, what: keys.Targets, *, wait: Optional[float] = None,
        shared: bool = False, reentrant: bool = False, any_order: bool = False,
        private: bool = False, need_token: bool = False, slots: int = 0,
        lease: Optional[float] = None, ask: bool = False,
        on_lost: Optional[Told] = None, on_wait: Optional[Told] = None,
        on_yield: Optional[Asked] = None, traceparent: Optional[str] = None,
    ) -> Acquiring:
        """
        `async with store.lock("nightly", wait=0) as lock:`, with the arguments of
        holdfast.Store.lock. on_wait, on_lost and on_yield are called in the loop.
        """
        request = Request(
            what,
            shared=shared, reentrant=reentrant, any_order=any_order, private=private,
            need_token=need_token, slots=slots, lease=lease, ask=ask,
            on_lost=on_lost, on_wait=on_wait, on_yield=on_yield, traceparent=traceparent,
        )
        return self._asking(request, wait)

    def table_lock(
        self, table: str, *, wait: Optional[float] = None,
        shared: bool = False, reentrant: bool = False, any_order: bool = False,
        private: bool = False, need_token: bool = False, slots: int = 0, ask: bool = False,
        on_lost: Optional[Told] = None, on_wait: Optional[Told] = None,
        on_yield: Optional[Asked] = None, traceparent: Optional[str] = None,
    ) -> Acquiring:
        """`async with store.table_lock("shop.events"):` around each insert into a shared table."""
        request = Request(
            [], table=table,
            shared=shared, reentrant=reentrant, any_order=any_order, private=private,
            need_token=need_token, slots=slots, ask=ask,
            on_lost=on_lost, on_wait=on_wait, on_yield=on_yield, traceparent=traceparent,
        )
        return self._asking(request, wait)
    # fmt: on

    def _asking(self, request: Request, wait: Optional[float]) -> Acquiring:
        """The owner is who asks: asyncio.wait_for awaits it in a task of its own."""
        who, wait_ms = self._owner(), keys.milliseconds(wait)
        return Acquiring(lambda: self._acquire(request, wait_ms, who))

    async def _acquire(self, request: Request, wait_ms: int, who: int) -> Lock:
        on, loop = self._store, asyncio.get_running_loop()
        lost: asyncio.Future[Any] = loop.create_future()
        request.on_lost = in_loop(loop, first_of(lost, request.on_lost))
        if request.on_wait:
            request.on_wait = in_loop(loop, request.on_wait)
        made: asyncio.Future[weakref.ref[Lock]] = loop.create_future()
        if request.on_yield:
            request.on_yield = asked_in_loop(loop, made, request.on_yield)
        cancel = Cancel()
        held = await started(
            lambda done: request.start(on, wait_ms, who, cancel, done), cancel, locks.Lock.release
        )
        self._count(who, 1)
        lock = Lock(self, held, lost)
        made.set_result(weakref.ref(lock))
        return lock

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

    # fmt: off
    async def transact(
        self, fn: Callable[[Tx], Awaitable[Result]], labels: Optional[keys.Targets] = None, *,
        isolation: Isolation = Isolation.SERIALIZABLE, read_only: bool = False,
        retry_unique: bool = False, deadline: Optional[float] = None, max_attempts: int = 0,
        backoff_min: float = 0, backoff_max: float = 0, expect_operation: bool = False,
        database: Optional[str] = None, on_stats: Optional[Callable[[Stats], Any]] = None,
        traceparent: Optional[str] = None,
    ) -> Result:
        """
        Runs the coroutine fn(tx) as one transaction, as holdfast.Store.transact does. A task that
        is cancelled during COMMIT is told when that is done: the transaction may be committed.
        """
        options = TxOptions(
            isolation=isolation, read_only=read_only, retry_unique=retry_unique, deadline=deadline,
            max_attempts=max_attempts, backoff_min=backoff_min, backoff_max=backoff_max,
            expect_operation=expect_operation, database=database, on_stats=on_stats,
            traceparent=traceparent,
        )
        return await self._transact(fn, labels, options, None)
    # fmt: on

    async def _transact(
        self,
        fn: Callable[[Tx], Awaitable[Result]],
        labels: Optional[keys.Targets],
        options: TxOptions,
        on: Optional[locks.Lock],
    ) -> Result:
        who = self._owner()
        transaction = Transaction(self._store, labels, options, who, on)
        turns: List[Turn] = []
        try:
            left = options.deadline_ms
            alone = not self._held.get(who)
            # Those with the same labels exclude each other anyway, from the first to the last
            # statement, so each begins when the one before it has ended.
            if labels and alone:
                left = await self._enter(("transaction", tuple(transaction.labels)), 1, left, turns)
            # Beyond the connections for transactions, each would keep a thread waiting for one.
            if on is None and alone:
                left = await self._enter("connections", self._room, left, turns)
            return await self._attempt(transaction, fn, who, left)
        finally:
            for turn in reversed(turns):
                turn.leave()

    async def _enter(self, thing: Hashable, room: int, left: int, turns: List[Turn]) -> int:
        """What is left of the milliseconds. Out of turn, the library says who is in the way."""
        since = asyncio.get_running_loop().time()
        turn = await self._lines.enter(thing, left / 1000 if left else None, room)
        if turn:
            turns.append(turn)
        waited = round((asyncio.get_running_loop().time() - since) * 1000)
        return left and (max(1, left - waited) if turn else 1)

    async def _attempt(
        self, transaction: Transaction, fn: Callable[[Tx], Awaitable[Result]], who: int, left: int
    ) -> Result:
        self._count(who, 1)
        try:
            await run(lambda: transaction.begin(left), transaction.cancel)
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
                if await run(functools.partial(transaction.end, failed), transaction.cancel):
                    return cast(Result, result)
        finally:
            try:
                await run(transaction.free)
            finally:
                self._count(who, -1)

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
        return await run(functools.partial(self._store.locks, since))

    async def claim(self, label: str, period: float) -> Tuple[bool, float]:
        return await run(functools.partial(self._store.claim, label, period))

    async def init(self) -> Tuple[int, int]:
        return await run(self._store.init)

    async def examine(self) -> List[Finding]:
        return await run(self._store.examine)

    async def register_table(self, table: str) -> int:
        return await run(functools.partial(self._store.register_table, table))

    async def find_table(self, table: str) -> Optional[int]:
        return await run(functools.partial(self._store.find_table, table))

    async def ref_table(self, table: str, context: str) -> int:
        return await run(functools.partial(self._store.ref_table, table, context))

    async def unref_table(
        self, table: str, context: str, *, wait: Optional[float] = None
    ) -> bool:
        """The library cannot end this wait early: a task that is cancelled waits for it."""
        return await run(functools.partial(self._store.unref_table, table, context, wait=wait))

    async def drop_table(
        self, table: str, *, references_too: bool = False, wait: Optional[float] = None
    ) -> None:
        """As unref_table: a task that is cancelled waits for its end."""
        drop = functools.partial(self._store.drop_table, table)
        await run(functools.partial(drop, references_too=references_too, wait=wait))

    async def table_references(self, table: str) -> List[str]:
        return await run(functools.partial(self._store.table_references, table))

    async def tables(self, *, retired_too: bool = False) -> List[Table]:
        return await run(functools.partial(self._store.tables, retired_too=retired_too))

    def network(self, name: str, **options: Any) -> Network:
        return Network(self._store.network(name, **options))


class Network:
    """As holdfast.Network."""

    def __init__(self, network: ledgers.Network) -> None:
        self._network = network

    async def get(self, cursor: str) -> Optional[int]:
        return await run(functools.partial(self._network.get, cursor))

    async def set(self, cursor: str, value: int) -> None:
        await run(functools.partial(self._network.set, cursor, value))

    async def set_min(self, cursor: str, value: int) -> None:
        await run(functools.partial(self._network.set_min, cursor, value))

    async def advance(self, cursor: str, value: int) -> None:
        await run(functools.partial(self._network.advance, cursor, value))

    async def swap(self, cursor: str, old: int, new: int) -> None:
        await run(functools.partial(self._network.swap, cursor, old, new))

    async def cursors(self) -> Dict[str, int]:
        return await run(self._network.cursors)

    async def gaps(self, first: int = 0, last: int = 0) -> List[Tuple[int, int]]:
        return await run(functools.partial(self._network.gaps, first, last))


__all__ = ["Acquiring", "Lock", "Network", "Store", "Tx", "serialize"]
