"""
Where workers run, and what can be done to them there. A world has a url for its workers, faults by name
(each takes seconds and gives back when it is mended), and a state to read at the end.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import psycopg2

import hf
import servers
from awaiting import eventually

HERE = pathlib.Path(__file__).resolve().parent

# Short, so that a run sees many losses; a loss is told within both together.
PING_MS, DEADLINE_MS = 1000, 3000


class Crew:
    """The workers. One that was killed is replaced by another with the next name."""

    def __init__(self, folder, log, seed, options, size):
        self._folder, self._log, self._seed, self._options = folder, log, seed, options
        self._born = 0
        self.workers = {}
        for _ in range(size):
            self.add()

    def add(self):
        self._born += 1
        name = f"w{self._born}"
        paths = os.pathsep.join([str(HERE), str(hf.HARNESS)])
        self.workers[name] = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), str(self._folder), name, str(self._seed),
             json.dumps(self._options)], stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths})

    def kill(self, chance):
        name, process = chance.choice(sorted(self.workers.items()))
        self._log.add("killed", worker=name)  # before it is: it may hold a lock up to this moment
        process.kill()
        process.wait()
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

    def dismiss(self, timeout=90):
        """Lets all end what they are about. Those that do not are a violation: they stay unanswered."""
        for process in self.workers.values():
            process.stdin.close()
        for process in self.workers.values():
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()


def pause(seconds):
    threading.Event().wait(seconds)


class World:
    """faults: a method for each, called with the crew and a source of chance; it returns when it is mended."""

    faults = ("kill", "stop")
    kind = "holdfast"

    def kill(self, crew, chance):
        crew.kill(chance)

    def stop(self, crew, chance):
        with crew.one_stopped(chance):
            pause(chance.uniform(0.5, 8))

    def options(self):
        return {"kind": self.kind, "url": self.url}

    def state(self):
        return {}


class Local(World):
    bound = 6.0  # the lock files are looked at every ping

    def __init__(self, folder):
        self._folder = pathlib.Path(folder) / "store"
        self.url = f"local:{self._folder}"
        self.faults = (*World.faults, "clean")

    def options(self):
        return {**super().options(), "ping_interval_ms": PING_MS, "ping_deadline_ms": DEADLINE_MS}

    def clean(self, crew, chance):
        """Somebody tidies up: every lock that is held is lost, and must be told."""
        for path in (self._folder / "locks").glob("*"):
            with contextlib.suppress(OSError):
                path.unlink()

    @contextlib.contextmanager
    def running(self):
        yield self


class OnPostgres(World):
    bound = (PING_MS + DEADLINE_MS) / 1000
    faults = (*World.faults, "terminate", "cancel", "crash", "freeze", "cut", "blackhole", "delay", "refuse", "exhaust",
              "promote")

    def __init__(self, home):
        self._home = home
        self._guard = threading.Lock()

    def options(self):
        return {**super().options(), "ping_interval_ms": PING_MS, "ping_deadline_ms": DEADLINE_MS,
                "connect_timeout_ms": 3000}

    @contextlib.contextmanager
    def running(self):
        with contextlib.ExitStack() as stack:
            template = stack.enter_context(servers.Postgres.template(self._home, "chaos"))
            self._server = stack.enter_context(servers.Postgres.copy_of(template, "chaos")).start()
            self._database = self._server.create_database()
            self._proxy, self._other_proxy = (stack.enter_context(servers.Proxy(self._server.port)) for _ in range(2))
            self._stack = stack
            self.url = (f"postgresql://app@127.0.0.1:{self._proxy.port},127.0.0.1:{self._other_proxy.port}"
                        f"/{self._database.name}")
            self.prepare()
            self._follow()
            yield self

    def prepare(self):
        hf.install(self._database.url())
        self._database.sql("CREATE TABLE rows (id uuid)", user="app")
        self._database.sql("CREATE TABLE writes (seq bigserial, label text, token bigint)", user="app")

    def _follow(self):
        """A synchronous standby, so that what was reported outlives the primary."""
        self._standby = self._stack.enter_context(self._server.make_standby())
        self._other_proxy.target("127.0.0.1", self._standby.port)
        self._server.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self._server.sql("SELECT pg_reload_conf()")
        eventually(lambda: self._server.value("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"))

    def _one_session(self, chance):
        sessions = sorted(self._server.sql(
            "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", self._database.name))
        return chance.choice(sessions)[0] if sessions else None

    def terminate(self, crew, chance):
        self._server.sql("SELECT pg_terminate_backend(%s)", self._one_session(chance))

    def cancel(self, crew, chance):
        self._server.sql("SELECT pg_cancel_backend(%s)", self._one_session(chance))

    def crash(self, crew, chance):
        self._server.stop(signal.SIGQUIT)
        pause(chance.uniform(0, 2))
        self._server.start()

    def freeze(self, crew, chance):
        with self._server.frozen():
            pause(chance.uniform(0.5, 8))

    def cut(self, crew, chance):
        self._proxy.cut()

    def blackhole(self, crew, chance):
        self._proxy.blackhole()
        pause(chance.uniform(0.5, 8))
        self._proxy.heal()

    def delay(self, crew, chance):
        self._proxy.delay = chance.uniform(0.01, 0.3)
        pause(3)
        self._proxy.delay = 0.0

    def refuse(self, crew, chance):
        self._proxy.refuse()
        self._proxy.cut()
        pause(chance.uniform(0.5, 4))
        self._proxy.heal()

    def exhaust(self, crew, chance):
        """A stranger fills the lock table, until the server has no room for one more."""
        with contextlib.closing(self._server.connect(self._database.name)) as connection:
            with connection.cursor() as cursor, contextlib.suppress(psycopg2.Error):
                cursor.execute("SELECT pg_advisory_lock(-n) FROM generate_series(1, 1000000) AS n")
            pause(chance.uniform(0.5, 3))

    def promote(self, crew, chance):
        """
        The old primary and the sessions on it live on, cut off from all, while others find the new one. Then
        it is gone for good, and the new one gets a standby.
        """
        old, old_proxy = self._server, self._proxy
        old_proxy.blackhole()
        self._standby.promote()
        self._server, self._database.server = self._standby, self._standby
        self._proxy, self._other_proxy = self._other_proxy, old_proxy
        self._server.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        self._server.sql("SELECT pg_reload_conf()")
        pause(chance.uniform(0, 10))
        old.kill9()
        old_proxy.refuse()
        old_proxy.cut()
        self._follow()
        old_proxy.heal()

    def state(self):
        rows = self._database.sql("SELECT id::text, count(*) FROM rows GROUP BY 1")
        writes = self._database.sql("SELECT label, token FROM writes ORDER BY seq")
        return {"rows": dict(rows), "writes": writes}


class Textbook(OnPostgres):
    kind = "textbook"

    def prepare(self):
        pass

    def state(self):
        return {}


class Flock(World):
    kind = "flock"
    bound = 0.0
    faults = (*World.faults, "clean")

    def __init__(self, folder):
        self._folder = pathlib.Path(folder) / "flock"
        self._folder.mkdir()
        self.url = str(self._folder)

    def clean(self, crew, chance):
        for path in self._folder.glob("*"):
            path.unlink()

    @contextlib.contextmanager
    def running(self):
        yield self
