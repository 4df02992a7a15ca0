"""
Adopting a deployment of stellar/wallet-backend that runs: before, meanwhile, afterwards, and after leaving it.

The tables and statements are written from what its migrations and its ingester do. It keeps its tables in the
schema public, partitions them by time (here they are plain tables: that needs an extension), and has no table
of ledgers.
"""

import contextlib
import json

import pytest

from cli import EXIT_CONFIG, EXIT_NOT_ACQUIRED
from ingesting import LOCK_KEY, on_servers
from ingesting_beside import THEIRS
from ledgers import chain

LATEST, OLDEST = "latest_ingest_ledger", "oldest_ingest_ledger"


class WalletBackend:
    """Its ingester: a session with the lock, and the writes on another one, as its pool does it."""

    def __init__(self, database):
        self.database = database
        self.session = None
        self.sql("create table ingest_store (key varchar(255) not null, value varchar(255) not null, primary key (key))")
        self.sql("create table transactions (to_id bigint not null, hash bytea not null, fee_charged bigint not null,"
                 " result_code text not null, ledger_number integer not null, is_fee_bump boolean not null default false,"
                 " ingested_at timestamptz not null default now(), ledger_created_at timestamptz not null,"
                 " primary key (to_id, ledger_created_at))")
        self.sql("create index on transactions (hash)")
        self.sql("create table operations (id bigint not null, operation_type text not null, ledger_number integer"
                 " not null, ledger_created_at timestamptz not null, primary key (id, ledger_created_at))")

    def sql(self, statement, *values):
        return self.database.sql(statement, *values, user="app")

    def start(self):
        """Whether it got the lock."""
        self.session = self.database.connect()
        with self.session.cursor() as cursor:
            cursor.execute("select pg_try_advisory_lock(%s)", (LOCK_KEY,))
            return cursor.fetchone()[0]

    def stop(self):
        if self.session:
            self.session.close()
            self.session = None

    def begin_at(self, ledger):
        for name in (LATEST, OLDEST):
            self.sql("insert into ingest_store (key, value) values (%s, %s) on conflict (key)"
                     " do update set value = excluded.value", name, str(ledger))

    def _put(self, cursor, first, last, empty):
        cursor.execute(
            "insert into transactions (to_id, hash, fee_charged, result_code, ledger_number, ledger_created_at)"
            " select (n::bigint << 32) | (t << 12), sha256(('tx' || n || t)::bytea), 100, 'TransactionResultCodeTxSuccess',"
            " n, timestamptz 'epoch' + n * interval '5 s' from generate_series(%s, %s) n, generate_series(1, 2) t"
            " where n <> all (%s)", (first, last, list(empty)))
        cursor.execute(
            "insert into operations select (n::bigint << 32) | 4097, 'PAYMENT', n, timestamptz 'epoch' + n * interval '5 s'"
            " from generate_series(%s, %s) n where n <> all (%s)", (first, last, list(empty)))

    def ingest(self, first, last, empty=()):
        """Live: one transaction for each ledger, its cursor from the ledger before or from itself."""
        with contextlib.closing(self.database.connect(autocommit=False)) as connection:
            for ledger in range(first, last + 1):
                with connection, connection.cursor() as cursor:
                    self._put(cursor, ledger, ledger, empty)
                    cursor.execute("update ingest_store set value = %s where key = %s and value in (%s, %s)",
                                   (str(ledger), LATEST, str(ledger - 1), str(ledger)))
                    assert cursor.rowcount == 1, f"its cursor does not move to {ledger}"

    def backfill(self, first, last):
        with contextlib.closing(self.database.connect(autocommit=False)) as connection:
            with connection, connection.cursor() as cursor:
                self._put(cursor, first, last, ())
                cursor.execute("update ingest_store set value = least(value::bigint, %s)::text where key = %s",
                               (str(first), OLDEST))

    def gaps(self, first, last):
        return self.sql(
            "select gap_start, gap_end from (select ledger_number + 1 as gap_start, coalesce(lead(ledger_number) over"
            " (order by ledger_number), %s + 1) - 1 as gap_end from (select distinct ledger_number from transactions"
            " where ledger_number between %s and %s) t) gaps where gap_start <= gap_end order by gap_start",
            last, first, last)

    def reconcile(self):
        """Its job after chunks were dropped: oldest goes up to what is left."""
        self.sql("update ingest_store set value = (select min(ledger_number)::text from transactions)"
                 " where key = %s and value::bigint < (select min(ledger_number) from transactions)", OLDEST)

    def cursors(self):
        rows = dict(self.sql("select key, value from ingest_store"))
        return int(rows[LATEST]), int(rows[OLDEST])

    def everything(self):
        """All tables, columns, indexes and rows: to see that something stayed as it was."""
        columns = self.sql("select table_name, column_name, data_type, column_default from information_schema.columns"
                           " where table_schema = 'public' order by 1, 2")
        indexes = self.sql("select indexdef from pg_indexes where schemaname = 'public' order by 1")
        tables = sorted({row[0] for row in columns})
        rows = {table: sorted(row[0] for row in self.sql(f"select t::text from {table} t")
                              if not row[0].startswith(f"({THEIRS},")) for table in tables}
        return columns, indexes, rows


@pytest.fixture
def backend(world):
    """It ingested ledgers 31 to 100, of which 60 is empty, and lost 70 to 79."""
    made = WalletBackend(world.kind.database)
    world.network.schema = "public"
    assert made.start()
    made.begin_at(31)
    made.ingest(31, 100, empty=(60,))
    for table in ("transactions", "operations"):
        made.sql(f"delete from {table} where ledger_number between 70 and 79")
    yield made
    made.stop()


def adopt(world, *options, code=0):
    done = world("ingest", "adopt", "--schema", "public", *options)
    assert done.code == code, done
    return done


def gaps(world):
    return [(one["from"], one["to"]) for one in json.loads(world("gaps", "--schema", "public", "--json").out)["gaps"]]


@on_servers
def test_before_it_is_adopted_its_cursors_are_known_and_nothing_is_claimed(world, backend):
    before = backend.everything()
    done = world("gaps", "--schema", "public")
    assert done.code == EXIT_CONFIG and "ingest adopt" in done.err
    (status,) = world.json("ingest", "status", "--schema", "public")["networks"]
    assert (status["latest"], status["oldest"]) == (100, 31)
    refused = world("ingest", "--schema", "public", "--source", world.source(chain(101, 110)))
    assert refused.code == EXIT_NOT_ACQUIRED
    assert backend.everything() == before


@on_servers
def test_a_dry_run_tells_the_same_and_changes_nothing_while_it_runs(world, backend):
    before = backend.everything()
    would = world.json("ingest", "adopt", "--schema", "public", "--dry-run")
    assert backend.everything() == before
    done = world.json("ingest", "adopt", "--schema", "public")
    assert (would.pop("dry_run"), done.pop("dry_run")) == (True, False)
    assert would == done
    assert done["lacking"] == [{"from": 60, "to": 60}, {"from": 70, "to": 79}]
    assert done["covered"] == [{"from": 31, "to": 59}, {"from": 61, "to": 69}, {"from": 80, "to": 100}]


@on_servers
def test_a_dry_run_needs_no_right_to_write(world, backend):
    world.kind.database.sql("create role looker login")
    try:
        world.kind.database.sql("grant select on all tables in schema public to looker")
        looker = world.command.at(world.kind.database.url(user="looker"))
        done = looker("ingest", "adopt", "--network", "testnet", "--schema", "public", "--dry-run")
        assert done.code == 0 and "would be" in done.out and "nothing was changed" in done.err, done
    finally:
        world.kind.database.sql("drop owned by looker")
        world.kind.database.sql("drop role looker")


@on_servers
def test_adopted_while_it_runs_it_keeps_its_cursors_and_goes_on(world, backend):
    rows = backend.everything()[2]
    done = adopt(world)
    assert "the data says 80; it stays" in done.out and "cannot write here" in done.err
    assert backend.cursors() == (100, 31)
    after = backend.everything()[2]
    assert {table: after[table] for table in ("transactions", "operations")} == {
        table: rows[table] for table in ("transactions", "operations")}
    assert set(rows["ingest_store"]) <= set(after["ingest_store"])
    assert gaps(world) == [(60, 60), (70, 79)]
    assert backend.gaps(31, 100) == [(60, 60), (70, 79)]

    backend.ingest(101, 110)
    backend.backfill(70, 79)
    backend.backfill(21, 30)
    assert backend.cursors() == (110, 21)
    adopt(world)
    assert gaps(world) == [(60, 60)]
    assert backend.cursors() == (110, 21)

    backend.sql("delete from transactions where ledger_number < 41")
    backend.reconcile()
    assert backend.cursors() == (110, 41)
    adopt(world)
    assert backend.cursors() == (110, 41)
    assert gaps(world) == [(60, 60)]


@on_servers
def test_its_tables_are_never_written_to(world, backend):
    adopt(world)
    backend.stop()
    before = backend.everything()
    refused = world("ingest", "--schema", "public", "--source", world.source(chain(101, 110)))
    assert refused.code == EXIT_CONFIG and "another shape" in refused.err
    refused = world("retention", "--schema", "public", "--keep", "10-ledgers")
    assert refused.code == EXIT_CONFIG
    for ledger in (50, 0):
        refused = world("ingest", "reset", "--schema", "public", "--to", ledger, "--confirm", "testnet")
        assert refused.code == EXIT_CONFIG and "another shape" in refused.err
    assert backend.everything() == before
    assert backend.start(), "its lock is free for it"
    backend.ingest(101, 105)


@on_servers
def test_after_leaving_all_is_as_before_and_it_has_noticed_nothing(world, backend):
    before = backend.everything()
    adopt(world)
    adopt(world, "--leave")
    assert backend.everything() == before
    assert "no coverage" in adopt(world, "--leave", code=EXIT_CONFIG).err
    backend.ingest(101, 105)
    assert backend.cursors() == (105, 31)
    adopt(world)
    assert gaps(world) == [(60, 60), (70, 79)]


def test_one_of_our_own_can_be_left_and_adopted_again(world):
    world.ingest(1, 20)
    cursors, sequences = world.network.cursors(), world.network.sequences()
    done = world("ingest", "adopt", "--leave")
    assert done.code == 0, done
    assert (world.network.cursors(), world.network.sequences()) == (cursors, sequences)
    world.ingest(21, 22, code=EXIT_CONFIG)
    assert world("ingest", "adopt").code == 0
    world.ingest(21, 22)
    world.network.assert_holds(chain(1, 22))


def test_leaving_and_looking_exclude_each_other(world):
    assert world("ingest", "adopt", "--leave", "--dry-run").code == 64
