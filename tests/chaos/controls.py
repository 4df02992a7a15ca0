"""
What a worker takes locks with: Holdfast, or a control, so that a reader sees what the harness finds.

A store has take(), write(), transact(), interrupt() and close(); what take() gives has a token (None: it
has none), a slot and release(), which says how that went.
"""

import contextlib
import fcntl
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
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

    can_transact = True

    def __init__(self, url, tx_url=None, **options):
        """tx_url: where transactions go, if not to the same place: through a pooler."""
        self.can_write = url.startswith("postgresql:")  # only there is a fence
        self.interrupted = False
        self._stores = []
        try:
            for each in dict.fromkeys([url, tx_url or url]):
                self._stores.append(hf.Store(each, **options))
        except hf.HfError as error:
            self.close()
            raise Refused(error.status.name) from None
        self._store, self._tx_store = self._stores[0], self._stores[-1]

    def take(self, labels, wait, mode, slots, private, told, ask=False, lease=0, asked=None):
        how = {"mode": hf.SHARED if mode == "shared" else hf.EXCLUSIVE, "slots": slots,
               "flags": (hf.PRIVATE if private else 0) | (hf.ASK if ask else 0)}
        if lease:
            how.update(lifetime=hf.LEASE, lease_ms=lease)
        if asked:
            how["on_yield"] = lambda _, who: asked()
        try:
            return HeldLock(self._store.acquire(labels if len(labels) > 1 else labels[0], wait,
                                                on_lost=lambda _, why: told(why.message), **how))
        except hf.HfError as error:
            raise Refused(error.status.name) from None

    def write(self, label, token):
        """Into a register that is fenced; what it took is in the store. STALE: the fence refused it."""
        def body(tx):
            tx.query("SELECT holdfast.fence($1, $2)", label, token)
            tx.query("INSERT INTO writes (label, token) VALUES ($1, $2)", label, token)

        call = hf_tx.Call(self._tx_store, None, body, deadline_ms=5000)
        return "STALE" if "older than" in call.error.message.decode() else call.status.name

    def transact(self, label, name, deadline_ms):
        call = hf_tx.Call(self._tx_store, f"tx {label}",
                          lambda tx: tx.query("INSERT INTO rows (id) VALUES ($1)", name), deadline_ms=deadline_ms)
        return call.status.name

    def interrupt(self):
        self._store.interrupt()
        self.interrupted = True

    def close(self):
        for store in self._stores:
            store.close()


# --- controls: one exclusive lock each, as it is usually written ------------------------------------------


class Control:
    can_write = can_transact = is_holdfast = interrupted = False
    slot = token = None

    @staticmethod
    def _refuse_all_but_a_plain_lock(labels, mode, slots, private):
        """Which every one of them has."""
        if slots or private or len(labels) > 1 or mode != "exclusive":
            raise Refused("INVALID")

    def take(self, labels, wait, mode, slots, private, told):
        self._refuse_all_but_a_plain_lock(labels, mode, slots, private)
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


class Lease(Control):
    """A file that says until when it is somebody's, by the wall clock."""

    SECONDS = 10  # nobody holds one for so long

    def __init__(self, url, **_):
        self._folder = pathlib.Path(url)

    def try_lock(self, label):
        self._path = self._folder / label.replace(" ", "-")
        with contextlib.suppress(OSError):
            if float(os.readlink(self._path)) > time.time():
                return False
            self._path.unlink()  # its time is over
        try:
            self._path.symlink_to(str(time.time() + self.SECONDS))  # one system call: whole, and exclusive
            return True
        except FileExistsError:
            return False

    def release(self):
        with contextlib.suppress(OSError):
            self._path.unlink()
        return "OK"


class Etcd(Control):
    """etcdctl lock NAME COMMAND: the command runs while it believes to hold the lock."""

    TTL = 5

    def __init__(self, url, **_):
        self._url = url

    def take(self, labels, wait, mode, slots, private, told):
        self._refuse_all_but_a_plain_lock(labels, mode, slots, private)
        self._folder = tempfile.mkdtemp(prefix="hf-etcd-")
        fifo = f"{self._folder}/until"
        os.mkfifo(fifo)
        self._end = os.open(fifo, os.O_RDWR)  # etcdctl gives its command no standard input
        self._process = subprocess.Popen(
            ["etcdctl", "--endpoints", self._url, "lock", "--ttl", str(self.TTL), labels[0].replace(" ", "-"), "--",
             "sh", "-c", 'echo $ETCD_LOCK_REV; read over <"$0"', fifo],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "ETCDCTL_API": "3"})
        ready, _, _ = select.select([self._process.stdout], [], [], wait / 1000 + 1)
        revision = os.read(self._process.stdout.fileno(), 100) if ready else b""
        if not revision:
            self._process.terminate()  # it then revokes its lease
            self.release()
            raise Refused("NOT_ACQUIRED")
        self.token = int(revision)
        return self

    def release(self):
        os.write(self._end, b"\n")
        try:
            code = self._process.wait(2 * self.TTL)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._process.stdout.close()
        os.close(self._end)
        shutil.rmtree(self._folder)
        return "OK" if code == 0 else "LOST"


KINDS = {"holdfast": Holdfast, "textbook": Textbook, "flock": Flock, "lease": Lease, "etcd": Etcd}


def open_store(kind, url, **options):
    return KINDS[kind](url, **options)
