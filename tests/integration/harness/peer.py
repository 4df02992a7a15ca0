"""
Another process with a store of its own, driven over its standard input and output.

    with Peer(url) as peer:
        held = peer.acquire("nightly", wait_ms=1000)
        peer.release(held)
        peer.kill9()

Calls may be begun and awaited apart: `pending = peer.begin("acquire", "nightly", wait_ms=-1)`.
Calls that give thread="a" run one after another in one thread there.
"""

import ctypes
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading

import hf
import hf_tx
from awaiting import eventually


class PeerFailure(Exception):
    pass


class Pending:
    def __init__(self, convert):
        self._answered = threading.Event()
        self._answer = None
        self._convert = convert

    def settle(self, answer):
        self._answer = answer
        self._answered.set()

    @property
    def running(self):
        return not self._answered.is_set()

    def result(self, timeout=20):
        if not self._answered.wait(timeout):
            raise AssertionError(f"the peer has not answered within {timeout} s")
        return self._convert(self._answer)


class Peer:
    def __init__(self, url, **options):
        self.process = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__).resolve()), json.dumps([url, options])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "HOLDFAST_BUILD": str(hf.BUILD)})
        self._waiting = {}
        self._number = 0
        self._guard = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()
        self.begin("ping").result()

    @property
    def pid(self):
        return self.process.pid

    def _listen(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            with self._guard:
                pending = self._waiting.pop(answer["id"])
            pending.settle(answer)
        with self._guard:
            lost, self._waiting = list(self._waiting.values()), {}
        for pending in lost:
            pending.settle({"gone": True})

    def begin(self, verb, *args, **kwargs):
        def convert(answer):
            if "gone" in answer:
                raise PeerFailure(f"the peer ended during {verb}")
            if "failure" in answer:
                raise PeerFailure(answer["failure"])
            if "status" in answer:
                error = hf.CError(code=answer["status"], message=answer["message"].encode(),
                                  hint=answer["hint"].encode(), sqlstate=answer["sqlstate"].encode())
                raise hf.HfError(answer["status"], error)
            return answer["value"]

        pending = Pending(convert)
        with self._guard:
            self._number += 1
            number = self._number
            self._waiting[number] = pending
        self.process.stdin.write(json.dumps([number, verb, args, kwargs]) + "\n")
        self.process.stdin.flush()
        return pending

    def acquire(self, what, wait_ms=0, timeout=20, **how):
        """The number of the lock there, for release, state, token and slot."""
        return self.begin("acquire", what, wait_ms, **how).result(timeout)

    def refusal(self, what, wait_ms=0, **how):
        try:
            self.acquire(what, wait_ms, **how)
        except hf.HfError as error:
            return error
        raise AssertionError(f"the peer acquired {what!r}, against expectation")

    def release(self, lock):
        return self.begin("release", lock).result()

    def state(self, lock):
        return hf.State(self.begin("state", lock).result())

    def token(self, lock):
        return self.begin("token", lock).result()

    def slot(self, lock):
        return self.begin("slot", lock).result()

    def kill9(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self):
        """Returns when every thread of it has stopped."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.pid}/task")
        eventually(lambda: all(stat.read_text().rpartition(")")[2].split()[0] == "T"
                               for stat in tasks.glob("*/stat")))

    def cont(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            self.cont()
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill9()
                raise
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# --- the other side -----------------------------------------------------------------------------------


def thing(what):
    """JSON knows no tuples: {"pair": [1, 2]}, {"label": …, "as": …}, {"label": …, "key": …}."""
    if isinstance(what, list):
        return [thing(one) for one in what]
    if isinstance(what, dict) and "pair" in what:
        return tuple(what["pair"])
    if isinstance(what, dict) and "key" in what:
        return hf.named_key(what["label"], what["key"])
    if isinstance(what, dict):
        return (what["label"], hf.Derivation[what["as"]])
    return what


class Served:
    def __init__(self, url, options):
        self.store = hf.Store(url, **options)
        self.locks = {}
        self.next = 0
        self.guard = threading.Lock()

    def ping(self):
        return "pong"

    def acquire(self, what, wait_ms=0, **how):
        lock = self.store.acquire(thing(what), wait_ms, **how)
        with self.guard:
            self.next += 1
            self.locks[self.next] = lock
            return self.next

    def release(self, number):
        with self.guard:
            lock = self.locks.pop(number)
        lock.end()

    def state(self, number):
        return int(self.locks[number].state)

    def token(self, number):
        return self.locks[number].token

    def slot(self, number):
        return self.locks[number].slot

    def write_and_wait(self, number, statement, path):
        """A transaction on the lock, which commits when there is a file at that path. What it makes shows that it is open."""
        def body(tx):
            tx.query(statement)
            pathlib.Path(f"{path}.open").touch()
            eventually(pathlib.Path(path).exists, 60)

        hf_tx.OnLock(self.locks[number], body).result()

    def hammer(self, what, rounds, wait_ms, path):
        """Adds one to the number in a file, under the lock and without any other protection."""
        for _ in range(rounds):
            lock = self.store.acquire(thing(what), wait_ms)
            value = int(pathlib.Path(path).read_text())
            pathlib.Path(path).write_text(str(value + 1))
            lock.end()
        return rounds


def serve(url, options):
    served, out_guard = Served(url, options), threading.Lock()

    def handle(number, verb, args, kwargs):
        try:
            answer = {"id": number, "value": getattr(served, verb)(*args, **kwargs)}
        except hf.HfError as error:
            answer = {"id": number, "status": int(error.status), "message": error.message,
                      "hint": error.hint, "sqlstate": error.sqlstate}
        except Exception as error:  # shown where the call was made
            answer = {"id": number, "failure": f"{type(error).__name__}: {error}"}
        with out_guard:
            print(json.dumps(answer), flush=True)

    workers = {}

    def worker(name):
        calls = queue.SimpleQueue()

        def work():
            while True:
                handle(*calls.get())

        threading.Thread(target=work, daemon=True, name=name).start()
        return calls

    # Calls that may wait run in a thread of their own, or in the one that they name: the order rule
    # and reentrancy are a thread's.
    for line in sys.stdin:
        number, verb, args, kwargs = json.loads(line)
        name = kwargs.pop("thread", None)
        if name is not None:
            if name not in workers:
                workers[name] = worker(name)
            workers[name].put((number, verb, args, kwargs))
        elif verb in ("acquire", "hammer"):
            threading.Thread(target=handle, args=(number, verb, args, kwargs), daemon=True).start()
        else:
            handle(number, verb, args, kwargs)
    # Daemon threads may still wait in the library; the kernel cleans up after us. exit() writes the profile.
    (ctypes.CDLL(None).exit if "LLVM_PROFILE_FILE" in os.environ else os._exit)(0)


if __name__ == "__main__":
    serve(*json.loads(sys.argv[1]))
