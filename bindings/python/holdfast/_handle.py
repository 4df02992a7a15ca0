"""Pointers of the library: freed once, not under a call, not in a child of fork."""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
from types import TracebackType
from typing import Callable, Dict, Optional, Set, Type

from . import _lib, errors
from ._threads import in_callback, take_no_signals

_stores: Dict[int, "Handle"] = {}  # that are open, by their pointer
_AT_EXIT = 2.0  # seconds for calls of daemon threads to return


class Handle:
    """
    `with handle as pointer:` around every call. close() frees the pointer as soon as no call uses
    it any more. A handle that has a parent (the store) shares its guard.
    """

    def __init__(
        self,
        what: str,
        pointer: int,
        free: Callable[[int], None],
        parent: Optional[Handle] = None,
        stop: Optional[Callable[[], None]] = None,
    ) -> None:
        self.what = what
        self.pid = os.getpid()
        self.children: Set[Handle] = set()
        self.guard: threading.Condition = (
            parent.guard if parent else threading.Condition(threading.Lock())
        )
        self.stop = stop
        self._pointer = pointer
        self._free = free
        self._parent = parent
        self._uses = 0
        self._closing = False
        self.freed = False
        if parent:
            with parent.guard:
                parent.children.add(self)

    def __enter__(self) -> int:
        if self.pid != os.getpid():
            raise errors.ForkedError(
                f"this {self.what} was opened by process {self.pid}, before a fork",
                "open a store in the child if it needs locks",
            )
        with self.guard:
            if self._closing:
                raise errors.InvalidError(f"the {self.what} is closed")
            self._uses += 1
        return self._pointer

    def __exit__(
        self,
        kind: Optional[Type[BaseException]] = None,
        error: Optional[BaseException] = None,
        trace: Optional[TracebackType] = None,
    ) -> None:
        with self.guard:
            self._uses -= 1
            last = self._closing and not self._uses
            if last and not self._parent:
                self.guard.notify_all()  # a store is freed by close()
        if last and self._parent:
            self._free_now()

    @property
    def closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Frees it, now or when the last call returns. In a child of fork it is the parent's."""
        if self.pid != os.getpid():
            return
        with self.guard:
            now = not self._closing and not self._uses
            self._closing = True
        if now:
            self._free_now()

    def _free_now(self) -> None:
        self._free(self._pointer)
        with self.guard:
            self.freed = True
            if self._parent:
                self._parent.children.discard(self)
            self.guard.notify_all()

    # ---- stores ----------------------------------------------------------------------------------

    def publish(self) -> None:
        """A store: from now on the children of fork and the end of the process know of it."""
        _stores[self._pointer] = self

    def close_all(self, timeout: Optional[float] = None) -> bool:
        """A store: ends its waits, and frees it after all that came from it. False: out of time."""
        if self.pid != os.getpid():
            return True
        if in_callback():
            raise errors.InvalidError(
                "a store cannot be closed in a callback of its own, for whose end it would wait"
            )
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.guard:
            first, self._closing = not self._closing, True
            children = sorted(self.children, key=lambda child: child.stop is None)
        if first:
            _lib.lib().hf_store_interrupt(self._pointer)
            for child in children:  # transactions come first: they may be on the session of a lock
                if child.stop:
                    child.stop()
                child.close()
        with self.guard:
            while self._uses or self.children:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self.guard.wait(left)
            if not first:
                return True
            _stores.pop(self._pointer, None)
        self._free_now()
        return True


# ---- the ends of processes and of objects --------------------------------------------------------


def _drop_in_child() -> None:
    """A descriptor that the child kept would keep the locks of a parent that dies."""
    for pointer in list(_stores):
        _lib.lib().hf_store_close(pointer)
    _stores.clear()
    global _abandoned, _reaper
    _abandoned, _reaper = queue.SimpleQueue(), None


def _close_at_exit() -> None:
    for handle in list(_stores.values()):
        handle.close_all(_AT_EXIT)


os.register_at_fork(after_in_child=_drop_in_child)
atexit.register(_close_at_exit)

# What was collected while it was open: a collector may run anywhere, so another thread frees it.
_abandoned: "queue.SimpleQueue[Handle]" = queue.SimpleQueue()
_reaper: Optional[threading.Thread] = None


def _reap(abandoned: "queue.SimpleQueue[Handle]") -> None:
    take_no_signals()
    while True:
        handle = abandoned.get()
        if handle._parent:
            handle.close()
        else:
            handle.close_all()
        del handle


def start_reaper() -> None:
    global _reaper
    if _reaper is None:
        _reaper = threading.Thread(
            target=_reap, args=(_abandoned,), name="holdfast-reaper", daemon=True
        )
        _reaper.start()


def abandon(handle: Handle) -> None:
    _abandoned.put(handle)  # never blocks, not even when it interrupts itself
