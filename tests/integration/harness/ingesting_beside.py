"""Others who write to the tables of a test of `holdfast ingest` while it runs."""

import contextlib
import sqlite3
import threading

from awaiting import eventually

PAUSE = 0.05  # seconds between two writes
THEIRS = "stranger"  # their key in ingest_store, which Network and World leave out

# In one transaction and without any lock: a row of their own, and the rows that an ingester, backfill or retention
# writes, as they are. Rows of ledgers that are there are written again.
WRITES = [
    ["update @ingest_store set value = value where key like '%Cursor'"],
    ["delete from @ingest_store where key = 'stranger'",
     "insert into @ingest_store (key, value) values ('stranger', 'no number')",
     "update @ingest_coverage set hi = hi where lo = (select max(lo) from @ingest_coverage)"],
    ["update @ingest_coverage set lo = lo",
     "update @ingest_store set value = value where key like '%Cursor'"],
    ["insert into @ledgers select * from @ledgers where true order by sequence desc limit 5 on conflict do nothing",
     "update @ingest_store set value = value where key = 'latestLedgerCursor'"],
]


@contextlib.contextmanager
def beside(network):
    """network: a Network of ledgers.py."""
    strangers = Strangers(network).begin()
    yield
    strangers.end()


class Strangers:
    """At work from begin() to end(); what is not there yet, or is held by others for long, they leave."""

    def __init__(self, network):
        self.network = network
        self.written = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self):
        self._thread.start()
        return self

    def end(self):
        """Where there is a network by now they have written to it, or will."""
        eventually(lambda: self.written or not self._is_there(), what="strangers have written")
        self._over.set()
        self._thread.join()

    def _is_there(self):
        try:
            return bool(self.network.sql("select 1 from @ingest_store limit 1"))
        except Exception:
            return False

    @contextlib.contextmanager
    def _connection(self):
        kind = self.network.kind
        if kind.local:
            path = kind.url.removeprefix("local:") + f"/{self.network.schema}.db"
            connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=0.2)
        else:
            connection = kind.database.connect("postgres", autocommit=False)
        with contextlib.closing(connection):
            yield connection

    def _run(self):
        while not self._over.wait(PAUSE):
            with contextlib.suppress(Exception), self._connection() as connection:
                for statements in WRITES:
                    with contextlib.suppress(Exception):  # no table yet, or no longer, or somebody has the rows
                        self._write(connection, statements)

    def _write(self, connection, statements):
        prefix = "" if self.network.kind.local else f'"{self.network.schema}".'
        try:
            cursor = connection.cursor()
            if prefix:
                cursor.execute("set local lock_timeout = '200ms'")
            for statement in statements:
                cursor.execute(statement.replace("@", prefix))
            connection.commit()
            self.written += 1
        finally:
            connection.rollback()
