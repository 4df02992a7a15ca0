"""
Ingest and append under the same faults, with strangers that write to the same tables beside them: some that honour
the lock and some that do not. Every ledger and every row is there once, or was told as doubtful.
"""

import contextlib
import json
import signal
import subprocess
import sys
import threading

import psycopg2

import cli
import clickhouse
import hf
import servers
import stellar_rpc
from awaiting import eventually
from cluster_worlds import Clustered
from history import Log
from ingesting import LOCK_KEY
from postgres_worlds import OnPostgres
from worlds import HERE, outcome, pause

REPAIRS = 40  # before it is given up
CLOSE_SECONDS = 0.1  # from one ledger to the next
TABLES = "ingest_testnet"
STRANGERS = 4_000_000_000  # appends from this number on are a stranger's


class Repeating:
    """Does something again and again beside the rest, until it is closed."""

    def __init__(self, body, seconds):
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(body, seconds), daemon=True)
        self._thread.start()

    def _run(self, body, seconds):
        while not self._over.wait(seconds):
            body()

    def close(self):
        self._over.set()
        self._thread.join()


# --- ingest -----------------------------------------------------------------------------------------------


class Ingesting:
    """
    Over a world of PostgreSQL: workers are `holdfast ingest --standby`, one of which ingests. An operation is a ledger,
    from when it is closed until it is seen in the store.
    """

    more_faults = ("source", "rival", "writer", "meddler")

    def prepare(self):
        hf.install(self._database.url())
        self._rpc = self._stack.enter_context(stellar_rpc.StellarRpc())
        self._log = Log(self.folder, "source")
        self._close_one()
        self._first, self._reached = self._rpc.latest, self._rpc.latest - 1
        self._watch = Repeating(self._look, 0.05)
        self._closing = Repeating(self._close_one, CLOSE_SECONDS)
        self._stack.callback(self._watch.close)
        self._stack.callback(self._closing.close)

    def worker(self, folder, name, seed, number):
        return [cli.program(), "ingest", "--url", self.options(number)["url"], "--network", "testnet", "--standby",
                "--start-ledger", str(self._first), "--source", self._rpc.url, "--partition-ledgers", "1000"]

    def is_at_work(self, folder, names):
        return self._reached >= self._first

    def dismiss(self, process):
        process.send_signal(signal.SIGTERM)

    def may_end(self, code):
        """
        69: no store when it began; 75: another has the lock; 1, 65, 78: somebody who has it not has written; 125: a
        statement failed, on a full disk or because somebody cancelled it.
        """
        return code in (1, 65, 69, 75, 78, 125)

    def _close_one(self):
        sequence = self._rpc.latest + 1 if self._rpc.latest else stellar_rpc.GENESIS
        self._log.add("ask", n=sequence, op="ledger", labels=["testnet"], wait=-1)
        self._rpc.close_ledgers(1)

    def _primary(self):
        return self._database

    def _look(self):
        with contextlib.suppress(psycopg2.Error, AssertionError, IndexError):
            latest = int(self._primary().value(
                f"SELECT value FROM {TABLES}.ingest_store WHERE key = 'latestLedgerCursor'"))
            while self._reached < min(latest, self._rpc.latest):  # strangers may set the cursor to anything
                self._reached += 1
                self._log.add("done", n=self._reached, status="OK")

    # --- faults

    def source(self, crew, chance):
        self._rpc.fault("getLedgers", *chance.sample(
            [stellar_rpc.Http(429), stellar_rpc.Http(503), stellar_rpc.Cut(), stellar_rpc.Drop()], 3))
        pause(2)

    def _row_of(self, cursor, ledger):
        """As the ingester writes it, but for the bodies."""
        closed = stellar_rpc.close_time(ledger.sequence)
        cursor.execute(f"INSERT INTO {TABLES}.ledgers VALUES (%s, %s, %s, to_timestamp(%s), %s)", (
            ledger.sequence, ledger.hash, ledger.previous_hash, closed, len(ledger.transactions)))
        for each in ledger.transactions:
            cursor.execute(f"INSERT INTO {TABLES}.transactions VALUES (%s, %s, %s, %s, %s, %s, to_timestamp(%s), %s)", (
                stellar_rpc.toid(ledger.sequence, each.order), ledger.sequence, each.order, each.hash,
                "FAILED" if each.failed else "SUCCESS", each.fee, closed, "{}"))

    @contextlib.contextmanager
    def _stranger(self):
        """A session that has nothing to do with Holdfast; what breaks it is no matter."""
        with contextlib.suppress(psycopg2.Error, AssertionError):
            with contextlib.closing(self._primary().connect(autocommit=False)) as connection:
                with connection.cursor() as cursor:
                    yield connection, cursor

    def _latest(self, cursor):
        cursor.execute(f"SELECT value::bigint FROM {TABLES}.ingest_store WHERE key = 'latestLedgerCursor'")
        return cursor.fetchone()[0]

    def rival(self, crew, chance):
        """Another program that honours the lock: it ends the ingester's session, and ingests some by itself."""
        with self._stranger() as (connection, cursor):
            self._end_holder(cursor)
            cursor.execute("SET lock_timeout = '3s'")  # a standby may be faster
            cursor.execute("SELECT pg_advisory_lock(%s)", (LOCK_KEY,))
            for _ in range(chance.randrange(1, 5)):
                sequence = self._latest(cursor) + 1
                if sequence <= self._rpc.latest:
                    self._row_of(cursor, self._rpc.ledger(sequence))
                    cursor.execute(f"UPDATE {TABLES}.ingest_coverage SET hi = %s WHERE hi = %s", (sequence, sequence - 1))
                    cursor.execute(f"UPDATE {TABLES}.ingest_store SET value = %s WHERE key = 'latestLedgerCursor'",
                                   (str(sequence),))
                    connection.commit()
            pause(chance.uniform(0, 2))

    def _end_holder(self, cursor):
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
                       " AND (classid::bigint << 32 | objid::bigint) = %s AND granted", (LOCK_KEY,))

    def writer(self, crew, chance):
        """
        One that does not: rows of a ledger that is to come, and no word about it in cursor or coverage. Whoever comes
        to it stops, and says what to do.
        """
        with self._stranger() as (connection, cursor):
            self._rpc.guard.acquire()  # no other ledger is closed meanwhile
            try:
                sequence = self._rpc.latest + 1
                self._close_one()
                self._row_of(cursor, self._rpc.ledger(sequence))
                connection.commit()
            finally:
                self._rpc.guard.release()
        pause(2)
        repair = [cli.program(), "gaps", "--url", self.url, "--network", "testnet", "--repair"]
        got = outcome(repair)
        for _ in range(REPAIRS):  # while ingesters come, stop and come again, one of them may have the lock
            if got == "exit 0":
                break
            pause(0.5)
            got = outcome(repair)
        crew.seen("repair", "exit 0", got)

    def meddler(self, crew, chance):
        """One that does not, and moves the cursor: nobody may go on from there. Then it is put right."""
        move = (f"UPDATE {TABLES}.ingest_store SET value = (SELECT max(hi) + %s FROM {TABLES}.ingest_coverage)"
                " WHERE key = 'latestLedgerCursor'")
        for by in (chance.choice([-3, -1, 2]), 0):
            with self._stranger() as (connection, cursor):
                cursor.execute(move, (by,))
                connection.commit()
            pause(2)

    def settle(self, crew):
        """No more ledgers; what is late is unanswered."""
        self._closing.close()
        with contextlib.suppress(AssertionError):
            eventually(lambda: crew.tend() or self._reached >= self._rpc.latest, 60, "all ledgers are there")

    def state(self):
        self._watch.close()
        database, latest = self._primary(), self._rpc.latest
        rows = database.sql(f"SELECT l.sequence, l.hash, l.transaction_count, (SELECT count(DISTINCT t.to_id) FROM"
                            f" {TABLES}.transactions t WHERE t.ledger_number = l.sequence) FROM {TABLES}.ledgers l"
                            " ORDER BY 1")
        return {"ledgers": {
            "want": [[n, self._rpc.ledger(n).hash, len(self._rpc.ledger(n).transactions)]
                     for n in range(self._first, latest + 1)],
            "rows": rows,
            "coverage": database.sql(f"SELECT lo, hi FROM {TABLES}.ingest_coverage ORDER BY lo"),
            "latest": int(database.value(f"SELECT value FROM {TABLES}.ingest_store WHERE key = 'latestLedgerCursor'"))}}


class IngestOnPostgres(Ingesting, OnPostgres):
    faults = (*Ingesting.more_faults, *(name for name in OnPostgres.faults if name not in ("init", "exhaust")))


class IngestOnCluster(Ingesting, Clustered):
    faults = (*Ingesting.more_faults, *Clustered.faults)

    def __init__(self, synchronous, folder):
        super().__init__(synchronous)
        self.folder = folder

    def _primary(self):
        return self._cluster.at(self._cluster.leader() or self._cluster.nodes[0], self._database)


# --- append -----------------------------------------------------------------------------------------------


class Appending(OnPostgres):
    """Workers append to one table of ClickHouse, each under an id that it repeats until it is told what became of it."""

    faults = ("kill_append", "server_kill", "server_cut", "server_reset", "server_blackhole",
              "kill", "stop", "clock", "terminate", "cancel", "crash", "cut", "half_open", "orphan", "blackhole", "promote")

    def prepare(self):
        hf.install(self._database.url())
        self._clickhouse = self._stack.enter_context(clickhouse.ClickHouse()).start()
        self._line = self._stack.enter_context(servers.Proxy(self._clickhouse.http_port))
        # No merges, for the parts tell which rows came together.
        self._clickhouse.sql("CREATE TABLE t (append UInt32, n UInt64) ENGINE = MergeTree ORDER BY tuple() SETTINGS"
                             " max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1")
        self._strangers = {}  # by append: was it acknowledged?
        self._stranger = Repeating(self._write_without_lock, 2)
        self._stack.callback(self._stranger.close)

    def worker(self, folder, name, seed, number):
        options = {"url": self.url, "to": self._clickhouse.url(port=self._line.port), "first": number * 100_000}
        return [sys.executable, str(HERE / "appender.py"), str(folder), name, str(seed), json.dumps(options)]

    def _write_without_lock(self):
        append = STRANGERS + len(self._strangers)
        self._strangers[append] = False
        with contextlib.suppress(OSError, clickhouse.ClickHouseError):
            self._clickhouse.sql(f"INSERT INTO t SELECT {append}, number FROM numbers(10)", timeout=20)
            self._strangers[append] = True

    def kill_append(self, crew, chance):
        """Only the command: its worker repeats it."""
        pids = sorted(pid for process in crew.workers.values() for pid in servers.processes_of(process.pid))
        if pids:
            subprocess.run(["kill", "-9", str(chance.choice(pids))], stderr=subprocess.DEVNULL, check=False)

    def server_kill(self, crew, chance):
        self._clickhouse.kill()
        pause(chance.uniform(0, 1))
        self._clickhouse.start()

    def server_cut(self, crew, chance):
        self._line.cut()

    def server_reset(self, crew, chance):
        self._line.reset()

    def server_blackhole(self, crew, chance):
        self._line.blackhole()
        pause(chance.uniform(0.5, 4))
        self._line.heal()

    def state(self):
        self._stranger.close()
        rows = self._clickhouse.rows("SELECT append, count() AS rows, uniqExact(n) AS kinds FROM t GROUP BY append")
        parts = self._clickhouse.rows(
            "SELECT append, min_block_number AS block FROM (SELECT _part AS name, any(append) AS append FROM t GROUP BY _part)"
            " ANY INNER JOIN (SELECT name, min_block_number FROM system.parts WHERE table = 't' AND active) USING name"
            " ORDER BY block")
        return {"appends": {str(row["append"]): [row["rows"], row["kinds"]] for row in rows},
                "order": [part["append"] for part in parts if part["append"] < STRANGERS],
                "strangers": {str(append): done for append, done in self._strangers.items()}}
