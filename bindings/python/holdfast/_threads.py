"""Threads for calls that wait, who asks for a lock, and calls that another thread can end."""

from __future__ import annotations

import collections
import ctypes
import itertools
import os
import queue
import signal
import threading
from typing import Any, Callable, Deque, List, Optional, TypeVar

from . import _lib

Result = TypeVar("Result")
IDLE = 10.0  # seconds after which a thread without work ends


def take_no_signals() -> None:
    """A signal that another thread takes does not wake the main thread, which runs its handler."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


class Worker(threading.Thread):
    def __init__(self, pool: Pool) -> None:
        super().__init__(name="holdfast", daemon=True)
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.pool = pool

    def run(self) -> None:
        take_no_signals()
        while True:
            try:
                job = self.jobs.get(timeout=IDLE)
            except queue.Empty:
                if self.pool.retire(self):
                    return
                continue
            job()
            del job  # what it refers to should not stay until the next one comes
            self.pool.idle.append(self)


class Pool:
    """
    Grows as long as all of its threads are busy: if there were a most, waits could fill it, and the
    release that they wait for would find no thread. Operations on a deque are atomic.
    """

    def __init__(self) -> None:
        self.idle: Deque[Worker] = collections.deque()

    def submit(self, job: Callable[[], None]) -> None:
        try:
            worker = self.idle.pop()
        except IndexError:
            worker = Worker(self)
            worker.start()
        worker.jobs.put(job)

    def retire(self, worker: Worker) -> bool:
        """False: somebody has just picked it."""
        try:
            self.idle.remove(worker)
        except ValueError:
            return False
        return True


pool = Pool()
os.register_at_fork(after_in_child=pool.idle.clear)

# ---- who asks ------------------------------------------------------------------------------------

_numbers = itertools.count(1)
_thread = threading.local()


def next_owner() -> int:
    return next(_numbers)


def owner() -> int:
    """
    The number of this thread. The library would take the thread that calls it for the owner, which
    may be one of the pool.
    """
    number: Optional[int] = getattr(_thread, "owner", None)
    if number is None:
        number = _thread.owner = next_owner()
    return number


class Callback:
    """Around every function that the library calls: a store cannot be closed in one."""

    def __enter__(self) -> None:
        _thread.callbacks = in_callback() + 1

    def __exit__(self, *_: object) -> None:
        _thread.callbacks = in_callback() - 1


def in_callback() -> int:
    return getattr(_thread, "callbacks", 0)


# ---- calls that can be ended ---------------------------------------------------------------------


class Cancel:
    """An hf_cancel, freed when nobody refers to it: calls that use it do."""

    def __init__(self) -> None:
        pointer, error = ctypes.c_void_p(), _lib.CError()
        lib = _lib.lib()
        self._free = lib.hf_cancel_free
        _lib.check(lib.hf_cancel_create(ctypes.byref(pointer), ctypes.byref(error)), error)
        self.pointer = pointer.value

    def trigger(self) -> None:
        _lib.lib().hf_cancel_trigger(self.pointer)

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self._free(self.pointer)


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def interruptible(
    call: Callable[[], Result], cancel: Cancel, undo: Optional[Callable[[Result], Any]] = None
) -> Result:
    """
    Makes the call. In the main thread Python runs signal handlers only between its own
    instructions, so the call goes to another thread, and Ctrl-C ends it like any wait of Python's.
    """
    if not in_main_thread():
        return call()
    done = threading.Lock()
    results: List[Result] = []
    failures: List[BaseException] = []

    def job() -> None:
        try:
            results.append(call())
        except BaseException as error:
            failures.append(error)
        finally:
            done.release()

    done.acquire()
    pool.submit(job)
    try:
        done.acquire()
    except BaseException:  # from a signal handler
        cancel.trigger()
        while not results and not failures:
            try:
                done.acquire(timeout=0.05)
            except BaseException:  # one more of them: the first is raised
                pass
        if results and undo:
            undo(results[0])
        raise
    if failures:
        try:
            raise failures[0]
        finally:
            del failures[:]  # a traceback refers to this frame
    return results[0]
