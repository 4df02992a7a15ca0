"""
A collector in a process of its own, and its snapshots.

    with Viewer(url, registry=path) as viewer:
        seen = viewer.until(lambda s: s.lock("nightly"))
"""

import json
import os
import subprocess
import time

import hf


class ViewFailure(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status} {message}")
        self.status, self.message = status, message


class Seen:
    """One snapshot; fields as in view/snapshot.h."""

    def __init__(self, fields):
        self.fields = fields

    def __getattr__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self):
        return json.dumps(self.fields, indent=1)[:8000]

    def lock(self, label):
        found = [lock for lock in self.locks if label in (lock["label"], lock["key"])]
        return found[0] if found else None

    def holders(self, label):
        return [view for view in self._views(label) if not view["waiting"]]

    def waiters(self, label):
        return [view for view in self._views(label) if view["waiting"]]

    def _views(self, label):
        lock = self.lock(label)
        return lock["views"] if lock else []

    def party(self, view):
        return self.parties[view["party"]]

    def edges_named(self, name=lambda party: party["pid"] or party["id"]):
        """(waiter, holder, label) of each edge."""
        return sorted((name(self.parties[waiter]), name(self.parties[holder]), self.locks[lock]["label"])
                      for waiter, holder, lock in self.edges)

    def events_of(self, label):
        return [event for event in self.events if event["label"] == label]

    def meter(self, lock):
        return next(meter for meter in self.meters if meter["lock"] == lock)

    def network(self, name):
        return next((network for network in self.networks if network["name"] == name), None)

    def attention_to(self, topic):
        return [item for item in self.attention if item["topic"] == topic]


class Viewer:
    def __init__(self, url, *flags, refresh=50, env=None, **options):
        program = hf.built("tests/integration/view_driver")
        words = [f"{name}={value}" for name, value in {"refresh": refresh, **options}.items()]
        self.process = subprocess.Popen([program, url, *words, *flags], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, errors="replace",
                                        env={**os.environ, **(env or {})})
        self.number = 0
        self._answer()

    def _answer(self):
        status, _, rest = self.process.stdout.readline().rstrip("\n").partition(" ")
        if status != "ok":
            raise ViewFailure(status, rest)
        return json.loads(rest)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def next(self, wait_ms=30000):
        """The first snapshot that has not been returned yet."""
        seen = Seen(self.ask("next", self.number, wait_ms))
        self.number = seen.number
        return seen

    def fresh(self):
        """One that was begun after this call."""
        self.number = Seen(self.ask("next", 0, 0)).number + 1
        return self.next()

    def until(self, predicate, timeout=30):
        deadline = time.monotonic() + timeout
        while True:
            seen = self.next(wait_ms=timeout * 1000)
            if predicate(seen):
                return seen
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {timeout} s: {seen}")

    def terminate(self, key, party, by="tester", space=0, token=0):
        self.ask("terminate", key, space, party, token, by)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.close()
