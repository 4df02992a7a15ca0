"""
Money: 16 workers move it between 10 accounts under the labels of both. It neither grows nor
vanishes, and PostgreSQL finds no conflict that the labels rule out.
"""

import contextlib
import subprocess
import threading

import psycopg2
import pytest

import servers
from awaiting import Background
from hf_tx import Isolation

WORKERS, ACCOUNTS, START = 16, 10, 200
TOTAL = ACCOUNTS * START
CONFLICT = " 40001 "
SETTINGS = """
log_line_prefix = '%m [%p] %e '
deadlock_timeout = 10ms
"""


@pytest.fixture(scope="module")
def bank(template15):
    with servers.Postgres.copy_of(template15, "bank", SETTINGS) as server:
        yield server.start()


@pytest.fixture(scope="module")
def bank_pooler(bank):
    with servers.PgBouncer(bank, "transaction", pool_size=20) as pooler:
        yield pooler.start()


@pytest.fixture
def accounts(bank):
    database = bank.create_database()
    database.sql("create table accounts (id int primary key, balance bigint not null)", user="app")
    database.sql("insert into accounts select i, %s from generate_series(0, %s) i", START, ACCOUNTS - 1,
                 user="app")
    yield database
    database.drop()


def audit(database, stop):
    """Every snapshot must show all the money, and no debt; returns how many did."""
    seen = 0
    with contextlib.closing(database.connect()) as connection, connection.cursor() as cursor:
        while not stop.is_set():
            cursor.execute("select sum(balance), min(balance) from accounts")
            total, least = cursor.fetchone()
            assert total == TOTAL
            assert least >= 0
            seen += 1
            stop.wait(0.02)
    return seen


def run_workers(compiled, url, isolation, transfers, labels=2):
    """Committed, refused, attempts."""
    arguments = [url, int(isolation), WORKERS, transfers, ACCOUNTS, labels]
    done = subprocess.run([compiled("tx_money.c"), *map(str, arguments)], stdout=subprocess.PIPE,
                          text=True, timeout=280)
    assert done.returncode == 0
    return map(int, done.stdout.split())


def move_money(compiled, database, url, isolation, transfers):
    stop = threading.Event()
    auditor = Background(audit, database, stop)
    try:
        committed, refused, attempts = run_workers(compiled, url, isolation, transfers)
    finally:
        stop.set()
    assert auditor.result() > 2
    assert committed + refused == transfers
    assert committed > transfers / 4
    assert refused > transfers / 100
    assert database.sql("select sum(balance), min(balance) >= 0 from accounts") == [(TOTAL, True)]
    return attempts


RUNS = [(Isolation.REPEATABLE_READ, 20_000), (Isolation.READ_COMMITTED, 5_000),
        (Isolation.SERIALIZABLE, 3_000)]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["direct", "pgbouncer"])
@pytest.mark.parametrize("isolation, transfers", RUNS, ids=[run[0].name.lower() for run in RUNS])
def test_money_is_conserved_and_labels_rule_conflicts_out(bank, bank_pooler, accounts, compiled, way,
                                                          isolation, transfers):
    url = accounts.url() if way == "direct" else bank_pooler.url(accounts.name)
    mark = bank.log_size()
    attempts = move_money(compiled, accounts, url, isolation, transfers)
    conflicts = [line for line in bank.log(mark).splitlines() if CONFLICT in line]
    if isolation == Isolation.SERIALIZABLE:
        assert [line for line in conflicts if "concurrent update" in line] == []
        assert attempts == transfers + len([line for line in conflicts if "ERROR:" in line])
    else:
        assert conflicts == []
        assert attempts == transfers


def test_textbook_pattern_shows_in_the_log(bank, accounts):
    """The conflict that the test above must not find, made on purpose, so that it could find it."""
    mark = bank.log_size()
    with contextlib.closing(accounts.connect(autocommit=False)) as one, one.cursor() as cursor:
        cursor.execute("set transaction isolation level serializable")
        cursor.execute("select pg_advisory_xact_lock(hashtext('Transfer:1'))")
        accounts.sql("update accounts set balance = balance where id = 1")
        with pytest.raises(psycopg2.errors.SerializationFailure):
            cursor.execute("update accounts set balance = balance - 1 where id = 1")
    lines = [line for line in bank.log(mark).splitlines() if CONFLICT in line]
    assert any("concurrent update" in line for line in lines)


def test_money_is_not_conserved_without_labels(accounts, compiled):
    """The same program, so that the test above is known to see an update that was lost."""
    def lost():
        run_workers(compiled, accounts.url(), Isolation.READ_COMMITTED, 1_000, labels=0)
        return accounts.value("select sum(balance) from accounts") != TOTAL

    assert any(lost() for _ in range(3)), "losses cancel each other out once in a while, not thrice"
