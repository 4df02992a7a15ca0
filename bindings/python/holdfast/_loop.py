"""Calls in threads for an event loop, and the lines in which its tasks wait."""

from __future__ import annotations

import asyncio
import collections
import functools
from typing import Any, Callable, Deque, Dict, Hashable, Optional, TypeVar

from . import _threads, errors
from ._threads import Cancel
from .locks import Told

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
    """For each thing, the tasks of the loop that wait for it; the first of them does so in C."""

    def __init__(self) -> None:
        self._lines: Dict[Hashable, Deque[asyncio.Future[bool]]] = {}

    async def enter(self, thing: Hashable, seconds: Optional[float]) -> Optional[Turn]:
        """None: the time was over before it was this task's turn."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        line = self._lines.setdefault(thing, collections.deque())
        line.append(turn)
        entered = Turn(self, thing, turn)
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


class Turn:
    def __init__(self, lines: Lines, thing: Hashable, turn: asyncio.Future[bool]) -> None:
        self._lines, self._thing, self._turn = lines, thing, turn

    def leave(self) -> None:
        self._lines.leave(self._thing, self._turn)


# ---- callbacks -----------------------------------------------------------------------------------


def in_loop(loop: asyncio.AbstractEventLoop, callback: Told) -> Told:
    def tell(why: errors.Error) -> None:
        try:
            loop.call_soon_threadsafe(callback, why)
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
