"""Calls for an event loop, in threads and without, and the lines in which transactions wait."""

from __future__ import annotations

import asyncio
import collections
import functools
from typing import Any, Callable, Deque, Dict, Hashable, Optional, TypeVar

from . import _threads, errors
from ._handle import abandon
from ._threads import Cancel
from .locks import Ended, Lock, State, Told

Result = TypeVar("Result")


async def run(
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
    return await ended(done, cancel, undo)


async def started(
    start: Callable[[Ended], None], cancel: Cancel, undo: Callable[[Lock], Any]
) -> Lock:
    """An acquire that has no thread. It is cancelled as a call in a thread is."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Lock] = loop.create_future()

    def settle(lock: Optional[Lock], failure: Optional[errors.Error]) -> None:
        if lock:
            done.set_result(lock)
        elif failure:
            done.set_exception(failure)

    def tell(lock: Optional[Lock], failure: Optional[errors.Error]) -> None:
        try:
            loop.call_soon_threadsafe(settle, lock, failure)
        except RuntimeError:  # the loop is closed, so nobody hears of it
            if lock:
                abandon(lock._handle)

    start(tell)
    return await ended(done, cancel, undo)


async def ended(
    done: asyncio.Future[Result],
    cancel: Optional[Cancel],
    undo: Optional[Callable[[Result], Any]],
) -> Result:
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if cancel:
            cancel.trigger()
        await settled(done)
        if done.exception() is None and undo:
            undone = asyncio.ensure_future(run(functools.partial(undo, done.result())))
            await settled(undone)
            undone.cancelled() or undone.exception()  # a lock that was lost is not held either
        raise


async def settled(future: asyncio.Future[Any]) -> None:
    """However often the task is cancelled meanwhile: it is told once."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            pass


class Lines:
    """For each thing, the tasks of the loop that want it; as many as it has room for go on to C."""

    def __init__(self) -> None:
        self._lines: Dict[Hashable, Deque[asyncio.Future[bool]]] = {}

    async def enter(
        self, thing: Hashable, seconds: Optional[float], room: int = 1
    ) -> Optional[Turn]:
        """None: the time was over before it was this task's turn. room: the same for all."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        line = self._lines.setdefault(thing, collections.deque())
        line.append(turn)
        entered = Turn(self, thing, turn, room)
        if len(line) <= room:
            turn.set_result(True)
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

    def leave(self, thing: Hashable, turn: asyncio.Future[bool], room: int) -> None:
        line = self._lines[thing]
        line.remove(turn)
        if not line:
            del self._lines[thing]
        elif len(line) >= room and not line[room - 1].done():
            line[room - 1].set_result(True)

    def end(self) -> None:
        """The store closes."""
        for line in self._lines.values():
            for turn in line:
                if not turn.done():  # the others are in the library, and are told there
                    turn.set_exception(
                        errors.InterruptedError("the wait was interrupted: the store is closed")
                    )


class Turn:
    def __init__(
        self, lines: Lines, thing: Hashable, turn: asyncio.Future[bool], room: int
    ) -> None:
        self._lines, self._thing, self._turn, self._room = lines, thing, turn, room

    def leave(self) -> None:
        self._lines.leave(self._thing, self._turn, self._room)


# ---- callbacks -----------------------------------------------------------------------------------


def in_loop(loop: asyncio.AbstractEventLoop, callback: Told) -> Told:
    def tell(why: errors.Error) -> None:
        try:
            loop.call_soon_threadsafe(callback, why)
        except RuntimeError:  # the loop is closed
            pass

    return tell


def asked_in_loop(
    loop: asyncio.AbstractEventLoop,
    made: asyncio.Future[Any],
    callback: Callable[[Any, str], Any],
) -> Callable[[Any, str], None]:
    """made gives a reference to the lock as soon as the task that acquired it has it."""

    def tell(_: Any, who: str) -> None:
        def ask(made: asyncio.Future[Any]) -> None:
            lock = made.result()()
            if lock and lock.state is State.HELD:
                callback(lock, who)

        try:
            loop.call_soon_threadsafe(made.add_done_callback, ask)
        except RuntimeError:  # the loop is closed
            pass

    return tell


def first_of(lost: asyncio.Future[Any], also: Optional[Told]) -> Told:
    def tell(why: errors.Error) -> None:
        if not lost.done():
            lost.set_result(why)
        if also:
            also(why)

    return tell
