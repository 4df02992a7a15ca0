"""
What a worker takes locks with: Holdfast, or a control, so that a reader sees what the harness finds.

A store has take(), write(), transact(), interrupt() and close(); what take() gives has a token (None: it
has none), a slot and release(), which says how that went.
"""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import time

import psycopg2

import hf
import hf_tx


class Refused(Exception):
    def __init__(self, status):
        super().__init__(status)
        self.status = status


# --- Holdfast ---------------------------------------------------------------------------------------------


class HeldLock:
    def __init__(self, lock):
        self._lock = lock
        self.token = lock.token if lock.state is hf.State.HELD else None
        self.slot = lock.slot

    def release(self):
        try:
            self._lock.end()
            return "OK"
        except hf.HfError as error:
            return error.status.name


class Holdfast:
    is_holdfast = True

    def __init__(self, url, **options):
        self.can_write = url.startswith("postgresql:")
        self.interrupted = False
        try:
            self._store = hf.Store(url, **options)
        except hf.HfError as error:
            raise Refused(error.status.name) from None

    def take(self, labels, wait, mode, slots, private, told):
        how = {"mode": hf.SHARED if mode == "shared" else hf.EXCLUSIVE, "slots": slots,
               "flags": hf.PRIVATE if private else 0}
        try:
            return HeldLock(self._store.acquire(labels if len(labels) > 1 else labels[0], wait,
                                                on_lost=lambda _, why: told(why.message), **how))
        except hf.HfError as error:
            raise Refused(error.status.name) from None

    def write(self, label, token):
        """Into a register that is fenced; whatever becomes of it is in the store."""
        def body(tx):
            tx.query("SELECT holdfast.fence($1, $2)", label, token)
            tx.query("INSERT INTO writes (label, token) VALUES ($1, $2)", label, token)

        hf_tx.Call(self._store, None, body, deadline_ms=5000)

    def transact(self, label, name, deadline_ms):
        call = hf_tx.Call(self._store, f"tx {label}",
                          lambda tx: tx.query("INSERT INTO rows (id) VALUES ($1)", name), deadline_ms=deadline_ms)
        return call.status.name

    def interrupt(self):
        self._store.interrupt()
        self.interrupted = True

    def close(self):
        self._store.close()


# --- controls: one exclusive lock each, as it is usually written ------------------------------------------


class Control:
    can_write = is_holdfast = interrupted = False
    slot = token = None

    def take(self, labels, wait, mode, slots, private, told):
        """Only what every one of them can; the rest is refused."""
        if slots or private or len(labels) > 1 or mode != "exclusive":
            raise Refused("INVALID")
        until = time.monotonic() + wait / 1000
        while not self.try_lock(labels[0]):
            if time.monotonic() >= until:
                raise Refused("NOT_ACQUIRED")
            time.sleep(0.02)
        return self

    def close(self):
        pass


class Textbook(Control):
    """pg_try_advisory_lock on a connection that is opened again when it breaks."""

    def __init__(self, url, **_):
        self._url = url
        self._connect()

    def _connect(self):
        try:
            self._connection = psycopg2.connect(self._url)
        except psycopg2.Error:
            raise Refused("UNREACHABLE") from None
        self._connection.autocommit = True

    def _ask(self, sql, label):
        with self._connection.cursor() as cursor:
            cursor.execute(sql, (label,))
            return cursor.fetchone()[0]

    def try_lock(self, label):
        self._label = label
        try:
            return self._ask("SELECT pg_try_advisory_lock(hashtext(%s))", label)
        except psycopg2.Error:
            self._connect()
            return False

    def release(self):
        try:
            self._ask("SELECT pg_advisory_unlock(hashtext(%s))", self._label)  # nobody looks at the answer
        except psycopg2.Error:
            with contextlib.suppress(Refused):
                self._connect()
        return "OK"

    def close(self):
        self._connection.close()


class Flock(Control):
    def __init__(self, url, **_):
        self._folder = pathlib.Path(url)

    def try_lock(self, label):
        self._fd = os.open(self._folder / label.replace(" ", "-"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            os.close(self._fd)
            return False

    def release(self):
        os.close(self._fd)
        return "OK"


class Etcd(Control):
    """etcdctl lock NAME COMMAND: the command runs while it believes to hold the lock."""

    def __init__(self, url, **_):
        self._url = url

    def take(self, labels, wait, mode, slots, private, told):
        if slots or private or len(labels) > 1 or mode != "exclusive":
            raise Refused("INVALID")
        self._process = subprocess.Popen(
            ["etcdctl", "--endpoints", self._url, "lock", "--ttl", "5", labels[0].replace(" ", "-"),
             "sh", "-c", "echo held; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "ETCDCTL_API": "3"})
        if self._process.stdout.readline() != "held\n":
            self._process.wait()
            raise Refused("NOT_ACQUIRED")
        return self

    def release(self):
        self._process.stdin.close()
        return "OK" if self._process.wait() == 0 else "LOST"


KINDS = {"holdfast": Holdfast, "textbook": Textbook, "flock": Flock, "etcd": Etcd}


def open_store(kind, url, **options):
    return KINDS[kind](url, **options)
