"""Worlds on PostgreSQL: one server and its standby, the same behind PgBouncer, and the textbook's lock as a control."""

import contextlib
import pathlib
import signal
import types

import psycopg2

import cli
import clock
import hf
import servers
from awaiting import eventually
from disk import Disk
from worlds import DEADLINE_MS, PING_MS, STEPS, World, outcome, pause, run_killed

DISK_MB = 400  # the data, its log of up to four segments, and what a standby may still need

# All that is in the schema, in one number.
SCHEMA = """
SELECT md5(string_agg(line, '/' ORDER BY line)) FROM (
    SELECT format('%s %s %s %s', c.relname, c.relkind, c.relpersistence, a.attname) AS line
    FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = to_regnamespace('holdfast')
    UNION ALL
    SELECT format('%s %s %s', p.oid::regprocedure, p.prosecdef, md5(p.prosrc)) FROM pg_proc p
    WHERE p.pronamespace = to_regnamespace('holdfast')) AS found
"""


class ChaosPostgres(servers.Postgres):
    """On a small disk, if we may mount one, and with a clock that can be set."""

    prefix = []

    def __init__(self, home, name, settings=""):
        super().__init__(home, name, settings + "\nmax_wal_size = 64MB\n")
        self.disk = Disk(self.folder, DISK_MB)

    def _spawn(self, command, dies_with_us):
        super()._spawn([*self.prefix, *command], dies_with_us)

    def close(self):
        pid = self.process and self.process.pid
        super().close()
        clock.tidy(pid)
        self.disk.close()
        with contextlib.suppress(OSError):
            self.folder.rmdir()


class OnPostgres(World):
    bound = (PING_MS + DEADLINE_MS) / 1000
    faults = (*World.faults, "terminate", "cancel", "crash", "freeze", "cut", "reset", "half_open", "orphan",
              "blackhole", "delay", "refuse", "exhaust", "promote", "init", "full")

    def __init__(self, home, folder):
        self._home, self.folder = home, folder
        self._clock = clock.Clock(pathlib.Path(folder) / "server-clock")

    def options(self, number):
        return {**super().options(number), "ping_interval_ms": PING_MS, "ping_deadline_ms": DEADLINE_MS,
                "connect_timeout_ms": 3000}

    @contextlib.contextmanager
    def running(self):
        with contextlib.ExitStack() as stack:
            ChaosPostgres.prefix = self._clock.prefix
            template = stack.enter_context(servers.Postgres.template(self._home, "chaos"))
            self._server = stack.enter_context(ChaosPostgres.copy_of(template, "chaos")).start()
            if not self._server.disk:
                self.faults = tuple(name for name in self.faults if name != "full")
                self.left_out = {"full": "we may not mount a small disk here"}
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
        self._schemas = {old: self._schema_after(old, lambda _: None) for old in (True, False)}
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

    def clock(self, crew, chance):
        """That of the server is set as well, to another time."""
        self._clock.set(chance.choice(STEPS))
        super().clock(crew, chance)
        self._clock.set(0)

    def crash(self, crew, chance):
        self._server.stop(signal.SIGQUIT)
        pause(chance.uniform(0, 2))
        self._server.start()

    def full(self, crew, chance):
        """Of the server, whose log then grows. It panics, and does not come back by itself."""
        self._server.disk.fill()
        for _ in range(chance.choice([0, 8])):
            with contextlib.suppress(psycopg2.Error):
                self._server.sql("SELECT pg_logical_emit_message(true, '', 'x'), pg_switch_wal()")
        pause(chance.uniform(1, 4))
        self._server.disk.free()
        eventually(self._is_up, 60, "the server is up again")

    def _is_up(self):
        if self._server.process.poll() is not None:
            self._server.start()
        with contextlib.suppress(psycopg2.Error):
            return self._server.value("SELECT true")
        return False

    def _schema_after(self, old, meanwhile):
        """Of a new database, perhaps with the first schema, after what happens and an init: what there is in it."""
        database = self._server.create_database()
        words = [cli.program(), "init", "--url", database.url()]
        if old:
            database.sql((servers.ROOT / "src/lib/postgres/schema_001.sql").read_text(), user="app")
        meanwhile(words)
        done = outcome(words)
        found = database.value(SCHEMA)
        database.drop()
        return f"{done} {found}" if done != "exit 0" else found

    def init(self, crew, chance):
        """Of a schema, or its upgrade, killed again and again; then it must be as if nothing had been."""
        old = chance.choice([True, False])
        found = self._schema_after(old, lambda words: [run_killed(chance, words, 0.2) for _ in range(5)])
        crew.seen("schema", self._schemas[old], found)

    def freeze(self, crew, chance):
        with self._server.frozen():
            pause(chance.uniform(0.5, 8))

    def cut(self, crew, chance):
        self._proxy.cut()

    def reset(self, crew, chance):
        self._proxy.reset()

    def half_open(self, crew, chance):
        """The server has seen the sessions end, and gives their locks away; nobody tells the workers."""
        self._proxy.leave("client")
        pause(chance.uniform(0.5, 6))
        self._proxy.heal()

    def orphan(self, crew, chance):
        """The workers have seen their sessions end; nobody tells the server, which keeps the locks."""
        self._proxy.leave("server")
        pause(chance.uniform(0.5, 6))
        self._proxy.heal()

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
        self.replaced()
        pause(chance.uniform(0, 10))
        old.kill9()
        old_proxy.refuse()
        old_proxy.cut()
        self._follow()
        old_proxy.heal()

    def replaced(self):
        """The primary is another one from now on."""

    def state(self):
        rows = self._database.sql("SELECT id::text, count(*) FROM rows GROUP BY 1")
        writes = self._database.sql("SELECT label, token FROM writes ORDER BY seq")
        return {"rows": dict(rows), "writes": writes}


class Pooled(OnPostgres):
    """Transactions of half the workers go through PgBouncer in transaction mode; locks of sessions cannot."""

    faults = ("pooler_kill", "pooler_reconnect", "pooler_pause", *OnPostgres.faults)

    def prepare(self):
        super().prepare()
        # It knows one address, which is moved to the new primary.
        self._address = self._stack.enter_context(servers.Proxy(self._proxy.port))
        server = types.SimpleNamespace(folder="127.0.0.1", port=self._address.port)
        self._pooler = self._stack.enter_context(servers.PgBouncer(server, "transaction")).start()

    def options(self, number):
        through = {"tx_url": self._pooler.url(self._database.name)} if number % 2 else {}
        return {**super().options(number), **through}

    def pooler_kill(self, crew, chance):
        self._pooler.kill()
        pause(chance.uniform(0, 2))
        self._pooler.start()

    def pooler_reconnect(self, crew, chance):
        self._pooler.admin("RECONNECT")

    def pooler_pause(self, crew, chance):
        """It waits for the transactions that are under way."""
        self._pooler.admin("PAUSE")
        pause(chance.uniform(0.5, 4))
        self._pooler.admin("RESUME")

    def replaced(self):
        self._address.target("127.0.0.1", self._proxy.port)
        self._address.cut()


class Textbook(OnPostgres):
    kind = "textbook"
    faults = tuple(name for name in OnPostgres.faults if name != "init")

    def prepare(self):
        pass

    def state(self):
        return {}
