"""Awaiting what has no event of its own."""

import threading
import time


def eventually(predicate, timeout=20.0, what=None):
    """Polls every 10 ms until predicate() is true and returns its value; fails after timeout."""
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(
                f"not within {timeout} s: {what or getattr(predicate, '__doc__', None) or predicate}"
            )
        time.sleep(0.01)


def stays(predicate, seconds, what=None):
    """Fails as soon as predicate() turns false within the given time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert predicate(), f"did not stay so for {seconds} s: {what or predicate}"
        time.sleep(0.01)


class Background:
    """A call in a thread of its own; result() gives its value or raises what it raised."""

    def __init__(self, call, *args, **kwargs):
        self._value = None
        self._error = None
        self.finished = threading.Event()

        def body():
            try:
                self._value = call(*args, **kwargs)
            except BaseException as error:  # handed to the thread that asks for the result
                self._error = error
            finally:
                self.finished_at = time.monotonic()
                self.finished.set()

        self.finished_at = None
        self.thread = threading.Thread(target=body, daemon=True)
        self.thread.start()

    @property
    def running(self):
        return not self.finished.is_set()

    def result(self, timeout=20):
        assert self.finished.wait(timeout), f"still running after {timeout} s"
        self.thread.join()
        if self._error is not None:
            raise self._error
        return self._value
