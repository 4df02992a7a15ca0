"""What holds when the primary of a real cluster changes."""

import contextlib
import signal
import threading

import pytest

import hf
from awaiting import Background, eventually
from hf import Status
from hf_tx import Call
from ledgers import Network, chain, ledger, write
from stores import StoreKind
from wire import MUTE, WireProxy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180), pytest.mark.xdist_group("patroni")]


def test_lock_is_acquired_on_whichever_node_is_the_primary(patroni, patroni_db):
    with hf.Store(patroni.url(patroni_db.name)) as store:
        store.init()
        first = store.acquire("job").token
    new = patroni.switchover()
    with hf.Store(patroni.url(patroni_db.name)) as store:
        lock = store.acquire("job")
        assert lock.token > first
        assert patroni.at(new, patroni_db).holders(lock.key)


def test_live_ingestion_goes_on_after_a_failover(patroni, patroni_db, holdfast, tmp_path):
    source = write(tmp_path / "ledgers.ndjson", chain(1, 3))
    live = holdfast.at(patroni.url(patroni_db.name)).start(
        "ingest", "--network", "testnet", "--source", source, "--follow")

    def latest():
        return Network(StoreKind("patroni", None, patroni.at(patroni.await_leader(), patroni_db))).latest

    eventually(lambda: latest() == 3)
    patroni.leader().kill9()  # for seconds there is a standby only
    write(source, [ledger(4)], "a")
    eventually(lambda: latest() == 4 or live.process.poll() is not None, 60)
    live.signal(signal.SIGTERM)
    assert live.wait() == 0, live.describe()
    assert latest() == 4


# --- transactions -----------------------------------------------------------------------------------


@pytest.fixture
def rows_db(patroni_db):
    """With the schema and an empty table, rows."""
    hf.install(patroni_db.url())
    patroni_db.sql("create table rows (at timestamptz default clock_timestamp())", user="app")
    return patroni_db


def insert(store, **options):
    return Call(store, "rows", lambda tx: tx.query("insert into rows default values"), **options)


def count(patroni, node, database):
    return patroni.at(node, database).value("select count(*) from rows")


def waiting_for_the_standby(database):
    """The pids of backends."""
    return [pid for pid, in database.sql(
        "select pid from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()")]


def told_the_truth(call, rows):
    if call.status is Status.OK:
        return rows == 1
    return call.status is Status.IN_DOUBT or rows == 0


def test_deadline_does_not_report_a_commit_that_no_standby_has(patroni, rows_db):
    """A cancel would end the wait for the standby, and PostgreSQL would say COMMIT."""
    old, new = patroni.leader(), patroni.other(patroni.leader())
    with hf.Store(patroni.url(rows_db.name)) as store:
        old.line.blackhole()
        call = Background(insert, store, deadline_ms=1000)
        eventually(lambda: waiting_for_the_standby(rows_db))
        call.finished.wait(3)  # the deadline passes
        old.kill9()
        old.line.cut()
        patroni.await_leader(new)
        done = call.result(90)
    rows = count(patroni, new, rows_db)
    assert told_the_truth(done, rows), (done.status, done.error.message, rows)


def test_marker_that_no_standby_has_is_not_believed(patroni, rows_db):
    """A backend that ends while it waits for the standby leaves a commit that all can see."""
    old, new = patroni.leader(), patroni.other(patroni.leader())
    with hf.Store(patroni.url(rows_db.name)) as store:
        old.line.blackhole()
        call = Background(insert, store)
        ended = eventually(lambda: waiting_for_the_standby(rows_db))
        old.terminate(ended[0])
        eventually(lambda: not call.running or set(waiting_for_the_standby(rows_db)) - set(ended), 30,
                   "the marker is believed, or what confirms it waits too")
        old.kill9()
        old.line.cut()
        patroni.await_leader(new)
        done = call.result(90)
    rows = count(patroni, new, rows_db)
    assert told_the_truth(done, rows), (done.status, done.error.message, rows)


def test_outcome_is_not_asked_of_a_primary_that_was_replaced(patroni, rows_db):
    """
    The old primary, frozen and replaced, goes on as if nothing had been while the line to the new one
    breaks in COMMIT: the old one knows nothing of it, and would do it once more.
    """
    old, new = patroni.leader(), patroni.other(patroni.leader())
    with contextlib.ExitStack() as stack:
        to_old, to_new = (stack.enter_context(WireProxy(node.port)) for node in (old, new))
        url = f"postgresql://app@127.0.0.1:{to_old.port},127.0.0.1:{to_new.port}/{rows_db.name}"
        store = stack.enter_context(hf.Store(url))
        old.freeze()
        to_old.refuse()
        to_old.cut()
        patroni.await_leader(new)
        eventually(lambda: insert(store).status is Status.OK)
        before, asked = count(patroni, new, rows_db), threading.Semaphore(0)

        def return_of_the_old(line, message):
            if not message.is_commit:
                return None
            to_new.rule = None
            to_new.refuse()
            old.thaw_postgres()
            # Nobody follows it any more.
            old.sql("alter system set synchronous_standby_names = ''")
            old.sql("select pg_reload_conf()")
            to_old.rule = lambda line, message: line.notes.setdefault("seen", asked.release())
            to_old.welcome()
            return MUTE

        to_new.rule = return_of_the_old
        call = Background(insert, store, deadline_ms=60000)
        assert asked.acquire(timeout=30), "the old primary is asked"
        to_new.welcome()
        done = call.result(90)
    rows = count(patroni, new, rows_db) - before
    assert told_the_truth(done, rows) and done.attempts == 1, (done.status, done.error.message, rows)
