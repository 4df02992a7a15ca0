"""
Where workers run, and what can be done to them there. A world has a url for its workers, faults by name
(each takes seconds and gives back when it is mended), and a state to read at the end. Here: the workers,
what is common to all worlds, and those that need no server.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import cli
import clock
import hf
import hf_tx
from awaiting import eventually
from disk import Disk

HERE = pathlib.Path(__file__).resolve().parent

# Short, so that a run sees many losses; a loss is told within both together.
PING_MS, DEADLINE_MS = 1000, 3000

STEPS = [-7200, -60, 60, 7200]  # of a clock, in seconds


def pause(seconds):
    threading.Event().wait(seconds)


class Crew:
    """The workers. One that was killed is replaced by another with the next name."""

    def __init__(self, folder, log, seed, world, size):
        self._folder, self._log, self._seed, self._world = folder, log, seed, world
        self._born = 0
        self._clock = clock.Clock(folder / "clock")
        self.workers = {}
        for _ in range(size):
            self.add()

    def add(self):
        self._born += 1
        name = f"w{self._born}"
        paths = os.pathsep.join([str(HERE), str(hf.HARNESS)])
        with open(self._folder / f"{name}.err", "wb") as said:
            self.workers[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self._world.worker(self._folder, name, self._seed, self._born)],
                stdin=subprocess.PIPE, stderr=said,
                env={**os.environ, "PYTHONPATH": paths, **self._clock.environment})

    def await_work(self):
        """Faults that come before would hit nobody."""
        eventually(lambda: self._world.is_at_work(self._folder, self.workers), 120, "all workers are at work")

    def kill(self, chance):
        name, process = chance.choice(sorted(self.workers.items()))
        self._log.add("killed", worker=name)  # before it is: it may hold a lock up to this moment
        process.kill()
        process.wait()
        clock.tidy(process.pid)
        del self.workers[name]
        self.add()

    @contextlib.contextmanager
    def one_stopped(self, chance):
        name, process = chance.choice(sorted(self.workers.items()))
        self._log.add("stopped", worker=name)
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)
            self._log.add("continued", worker=name)

    @contextlib.contextmanager
    def clock_off(self, seconds):
        self._clock.set(seconds)
        try:
            yield
        finally:
            self._clock.set(0)

    def tend(self):
        """Replaces those that have ended by themselves, if they may."""
        for name, process in list(self.workers.items()):
            if process.poll() is not None:
                del self.workers[name]
                self.seen("worker ended", True, self._world.may_end(process.returncode) or f"{name}: {process.returncode}")
                self.add()

    def seen(self, what, want, got):
        self._log.add("seen", what=what, want=want, got=got)

    def dismiss(self, timeout=90):
        """Lets all end what they are about. Those that do not are a violation: they stay unanswered."""
        for process in self.workers.values():
            self._world.dismiss(process)
        for name, process in self.workers.items():
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.seen("worker does not end", True, name)
                process.kill()
                process.wait()
            clock.tidy(process.pid)


def run_killed(chance, words, longest):
    """A command that is killed within so many seconds, unless it is done before."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(chance.uniform(0, longest))
    process.kill()
    process.wait()


def outcome(words):
    """exit 0, or what went wrong."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return f"exit {done.returncode}" + (f": {done.stderr.strip()}" if done.returncode else "")


class World:
    """faults: a method for each, called with the crew and a source of chance; it returns when it is mended."""

    faults = ("kill", "stop", "clock")
    left_out = {}  # by fault: why
    split_faults = ()  # during which two servers may grant locks
    kind = "holdfast"

    def kill(self, crew, chance):
        crew.kill(chance)

    def stop(self, crew, chance):
        with crew.one_stopped(chance):
            pause(chance.uniform(0.5, 8))

    def clock(self, crew, chance):
        """The workers' clocks are set, and after a while set right."""
        with crew.clock_off(chance.choice(STEPS)):
            pause(3)

    def worker(self, folder, name, seed, number):
        """The command of a worker; the number says the how manyth it is."""
        return [sys.executable, str(HERE / "worker.py"), str(folder), name, str(seed), json.dumps(self.options(number))]

    def options(self, number):
        return {"kind": self.kind, "url": self.url}

    def is_at_work(self, folder, names):
        """Each has written down something."""
        return all((folder / f"{name}.log").exists() for name in names)

    def settle(self, crew):
        """Before the workers are dismissed."""

    def dismiss(self, process):
        process.stdin.close()

    def may_end(self, code):
        """Before it is dismissed."""
        return False

    def state(self):
        return {}

    @contextlib.contextmanager
    def running(self):
        yield self


class Local(World):
    bound = 6.0  # the lock files are looked at every ping

    def __init__(self, folder):
        self._folder = pathlib.Path(folder) / "store"
        self._folder.mkdir(mode=0o700)
        self.url = f"local:{self._folder}"
        self._disk = Disk(self._folder, 16)
        self.faults = (*World.faults, "clean", "init", *(["full"] if self._disk else []))
        self.left_out = {} if self._disk else {"full": "we may not mount a small disk here"}

    def options(self, number):
        return {**super().options(number), "ping_interval_ms": PING_MS, "ping_deadline_ms": DEADLINE_MS}

    def clean(self, crew, chance):
        """Somebody tidies up: every lock that is held is lost, and must be told."""
        for path in (self._folder / "locks").glob("*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def init(self, crew, chance):
        """Killed while they make a new store; the next one finds it in order, or makes it."""
        words = [cli.program(), "run", "--url", f"local:{self._folder}-{chance.random()}", "job", "--", "true"]
        for _ in range(5):
            run_killed(chance, words, 0.1)
        crew.seen("local init", "exit 0", outcome(words))

    def full(self, crew, chance):
        self._disk.fill()
        pause(chance.uniform(1, 4))
        self._disk.free()

    @contextlib.contextmanager
    def running(self):
        with hf.Store(self.url) as store:
            hf_tx.transact(store, None, lambda tx: tx.query("CREATE TABLE rows (id text)"))
        try:
            yield self
        finally:
            self._disk.close()

    def state(self):
        with hf.Store(self.url) as store:
            rows = hf_tx.transact(store, None, lambda tx: tx.query("SELECT id, count(*) FROM rows GROUP BY 1"))
        return {"rows": {name: int(count) for name, count in rows}}


class Files(World):
    """Of a control: files in a folder."""

    bound = 0.0
    faults = (*World.faults, "clean")

    def __init__(self, kind, folder):
        self.kind = kind
        self._folder = pathlib.Path(folder) / kind
        self._folder.mkdir()
        self.url = str(self._folder)

    def clean(self, crew, chance):
        for path in self._folder.glob("*"):
            with contextlib.suppress(OSError):
                path.unlink()
