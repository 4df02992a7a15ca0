"""Acquires that return at once: hf_lock_start."""

import threading
from ctypes import CFUNCTYPE, POINTER, byref, c_int, c_void_p

import hf
from hf import CError, HfError, Lock, LockSpec, Status, check

StartedFn = CFUNCTYPE(None, c_void_p, c_int, POINTER(CError), c_void_p)

lib = hf.lib_with({
    "hf_lock_start": (c_int, [c_void_p, POINTER(LockSpec), StartedFn, POINTER(CError)]),
})

_going_on = {}  # by the number that the library hands back: a callback must live until it is called


class Started:
    """One acquire: result() gives its Lock, or raises its HfError."""

    def __init__(self, store, what, wait_ms=0, done=None, **how):
        self.store = store
        self.finished = threading.Event()
        self.told_in = None
        self._done = done
        self._outcome = None
        self._callback = StartedFn(self._tell)
        spec, error = store.spec(what, wait_ms, **how), CError()
        _going_on[id(self)] = self
        try:
            check(lib().hf_lock_start(store.pointer, byref(spec), self._callback, byref(error)), error)
        except HfError:
            del _going_on[id(self)]
            raise

    def _tell(self, pointer, status, why, _):
        self.told_in = threading.get_native_id()
        if status == Status.OK:
            self._outcome = Lock(self.store, c_void_p(pointer))
            with self.store._guard:
                self.store._locks.add(self._outcome)
        else:
            self._outcome = HfError(status, why[0])
        if self._done:
            self._done(self)
        del _going_on[id(self)]
        self.finished.set()

    @property
    def running(self):
        return not self.finished.is_set()

    def result(self, timeout=20):
        assert self.finished.wait(timeout), f"still running after {timeout} s"
        if isinstance(self._outcome, HfError):
            raise self._outcome
        return self._outcome
