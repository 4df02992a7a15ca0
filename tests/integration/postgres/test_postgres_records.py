"""Records on PostgreSQL are second to the locks: whatever becomes of a table, what is held stays held."""

import contextlib
import json
import time

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import FOREVER, HfError, State, Status
from losses import Losses

EAGER = {"ping_interval_ms": 200, "ping_deadline_ms": 2000}
TABLES = ["events", "holders", "sessions", "waiters", "labels"]
A_FLUSH = 1.0  # seconds until events are written
AN_HOUR = 3600 * 1000


@contextlib.contextmanager
def table_locked(db, table, mode="access exclusive"):
    """As by VACUUM FULL, CREATE INDEX or a migration that takes its time."""
    with contextlib.closing(db.connect(user="postgres", autocommit=False)) as connection:
        with connection.cursor() as cursor:
            cursor.execute(f"lock table holdfast.{table} in {mode} mode")
        yield


def waiting_for(db, table):
    return db.sql("select pid from pg_locks where not granted and relation = %s::regclass", f"holdfast.{table}")


def refused_or_ended(store, what, wait_ms=0, **how):
    """The error of an acquire that may fail, or None."""
    try:
        store.acquire(what, wait_ms, **how).end()
    except HfError as error:
        return error
    return None


# --- tables that are locked -------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_locked_table_costs_no_held_lock(recorded_db, table):
    lost = Losses()
    with hf.Store(recorded_db.url(), **EAGER) as store:
        store.acquire(["a", "b", "brief"]).end()  # their labels are known from here on
        early = store.acquire("a", on_lost=lost)
        with table_locked(recorded_db, table):
            late = store.acquire("b", flags=hf.ANY_ORDER, on_lost=lost)
            store.acquire("brief", flags=hf.ANY_ORDER).end()
            stays(lambda: early.state is late.state is State.HELD, A_FLUSH + 2 * 2.0)
        stays(lambda: early.state is late.state is State.HELD, 0.5)
        assert lost.errors == []
        assert recorded_db.holders(early.key) and recorded_db.holders(late.key)
        late.end()
        early.end()


def test_all_that_a_store_records_goes_over_one_session(recorded_db):
    sessions = []
    with hf.Store(recorded_db.url(), **EAGER) as store:
        for number in range(1, 4):
            store.acquire("known").end()
            eventually(lambda: recorded_db.value(
                "select count(*) from holdfast.events where event = 'released'") == number)
            sessions.append(len(recorded_db.sessions()))
    assert sessions[2] <= sessions[0]


@pytest.mark.parametrize("table", ["events", "holders"])
def test_records_go_on_once_the_table_is_free_again(recorded_db, table):
    with hf.Store(recorded_db.url(), **EAGER) as store:
        store.acquire("known").end()
        with table_locked(recorded_db, table):
            store.acquire("known").end()
            if table == "events":
                eventually(lambda: waiting_for(recorded_db, table), what="events are to be written")
                eventually(lambda: not waiting_for(recorded_db, table), what="they are given up for now")
            else:
                eventually(lambda: recorded_db.value("select count(*) from holdfast.events where event = 'released'")
                           == 2, what="events are written")
        lock = store.acquire("known")
        key, token = lock.key, lock.token
        eventually(lambda: recorded_db.value(
            "select count(*) from holdfast.holders where key = %s", key) == 1)
        lock.end()
        eventually(lambda: any(token & 0xFFFFFFFFFF == row[0] & 0xFFFFFFFFFF for row in recorded_db.sql(
            "select token from holdfast.events where key = %s and event = 'released'", key)))


@pytest.mark.parametrize("deadline_ms", [6000, 2000])
@pytest.mark.parametrize("wait_ms", [0, 1000])
def test_new_label_that_cannot_be_noted_costs_no_held_lock(recorded_db, wait_ms, deadline_ms):
    """Noting a label waits for the table for half the deadline at most: the session is shared."""
    lost = Losses()
    with hf.Store(recorded_db.url(), ping_interval_ms=200, ping_deadline_ms=deadline_ms) as store:
        held = store.acquire("held", on_lost=lost)
        with table_locked(recorded_db, "labels"):
            attempt = Background(refused_or_ended, store, "new", wait_ms, flags=hf.ANY_ORDER)
            stays(lambda: held.state is State.HELD, 3)
            attempt.result()
            assert held.state is State.HELD
            held_on = recorded_db.holders(held.key)
        assert lost.errors == []
        store.acquire("new", flags=hf.ANY_ORDER).end()
        assert recorded_db.holders(held.key) == held_on != []
        held.end()


def test_one_session_that_cannot_be_recorded_switches_no_tokens_off(recorded_db):
    with hf.Store(recorded_db.url(), records=hf.RECORDS_REQUIRED, **EAGER) as store:
        first = store.acquire("a").token
        with table_locked(recorded_db, "sessions", "share"):
            failure = refused_or_ended(store, "b", flags=hf.PRIVATE | hf.ANY_ORDER)
            assert failure is None or failure.message
        assert store.has_records
        second = store.acquire("c", flags=hf.ANY_ORDER)
        assert second.token > first
        third = store.acquire("d", flags=hf.NEED_TOKEN | hf.ANY_ORDER)
        assert third.token > second.token
        assert store.acquire("e", flags=hf.PRIVATE | hf.ANY_ORDER).token > third.token


# --- a frozen server ----------------------------------------------------------------------------------


@pytest.mark.parametrize("records", [False, True])
def test_frozen_server_is_told_in_time_on_every_session(own_pg, own_db, records):
    """Also while something is to be written within the deadline: who writes may not keep the news back."""
    shared_lost, private_lost = Losses(), Losses()
    bound = 1.5 + 6.0 + 4.0  # ping and deadline, and less than another deadline
    with hf.Store(own_db.url(), ping_interval_ms=1500, ping_deadline_ms=6000) as store:
        if records:
            store.init()
        shared = store.acquire(1, on_lost=shared_lost)
        private = store.acquire(2, flags=hf.PRIVATE, on_lost=private_lost)
        assert own_db.holders(1) != own_db.holders(2)
        with own_pg.frozen():  # events are to be written before the first ping is due
            told_by = time.monotonic() + bound
            for lost in (shared_lost, private_lost):
                assert lost.first.wait(told_by - time.monotonic())
            assert shared.state is private.state is State.LOST
        shared_lost.assert_once()
        private_lost.assert_once()


# --- tokens -------------------------------------------------------------------------------------------


def make_wait_session(store, other, key):
    """The store is left with a session for waits, opened as things are now."""
    with other.acquire(key):
        assert store.refusal(key, 100).status is Status.NOT_ACQUIRED


def test_needed_token_is_given_by_sessions_older_than_the_schema(db):
    with hf.Store(db.url()) as other, hf.Store(db.url()) as store:
        make_wait_session(store, other, 7)
        store.init()
        held = other.acquire(7)
        waiter = Background(store.acquire, 7, FOREVER, flags=hf.NEED_TOKEN)
        eventually(lambda: db.waiters(7))
        held.end()
        with waiter.result() as lock:
            assert lock.token > 0


def test_needed_token_is_never_missing_from_a_joined_lock(db):
    """The first holder's session began before the schema; the second joins it with a token or not at all."""
    with hf.Store(db.url()) as other, hf.Store(db.url()) as store:
        held = other.acquire(7)
        waiter = Background(store.acquire, 7, FOREVER, mode=hf.SHARED)
        eventually(lambda: db.waiters(7))
        held.end()
        first = waiter.result()
        store.init()
        try:
            with store.acquire(7, mode=hf.SHARED, flags=hf.NEED_TOKEN) as second:
                assert second.token > 0
        except HfError as error:
            assert error.status is Status.NO_SCHEMA
            assert error.hint
        assert first.state is State.HELD
        assert db.holders(7)
        first.end()
        assert db.holders(7) == []


@pytest.mark.parametrize("how", [{}, {"flags": hf.PRIVATE}, {"slots": 2}], ids=["plain", "private", "slots"])
def test_needed_token_is_there_or_the_acquire_fails_when_another_installs_the_schema(db, how):
    flags = how.get("flags", 0) | hf.NEED_TOKEN
    with hf.Store(db.url()) as store, hf.Store(db.url()) as other:
        make_wait_session(store, other, 7)
        other.init()
        try:
            with store.acquire(8, **{**how, "flags": flags}) as lock:
                assert lock.token > 0
        except HfError as error:
            assert error.status is Status.NO_SCHEMA
            assert error.hint
            assert db.advisory_locks() == []


# --- schedules ----------------------------------------------------------------------------------------


def test_claimed_run_survives_a_crash_of_the_server(own_pg):
    """A claim that was only in the server's memory would let the job run twice in a period."""
    own_pg.extra_settings = "fsync = on\nwal_writer_delay = 10s\n"
    own_pg.restart()
    db = own_pg.create_database()
    with hf.Store(db.url(), connect_timeout_ms=2000) as store:
        store.init()
        for job in ("nightly", "weekly", "monthly"):
            assert store.claim(job, AN_HOUR)[0]
            own_pg.kill9()
            own_pg.start()
            with hf.Store(db.url()) as fresh:
                due, left = fresh.claim(job, AN_HOUR)
            assert not due
            assert AN_HOUR - 60000 < left <= AN_HOUR
            eventually(lambda: answers(store), what="the store has found its server again")


def answers(store):
    try:
        return store.claim("other", 1) is not None
    except HfError:
        return False


# --- behind a pooler ------------------------------------------------------------------------------------


def test_lock_behind_a_session_pooler_is_shown_with_its_token_and_age(db15, session_pooler, holdfast):
    """A pooler makes up a backend pid of its own; records name the server's."""
    with hf.Store(session_pooler.url(db15.name), session_pool=True, application="billing") as store:
        store.init()
        lock = store.acquire("invoices")
        backend, = db15.holders(lock.key)

        def recorded():
            return [v for v in store.locks() if v.key == lock.key and v.ours and v.token]

        view, = eventually(recorded, what="the lock is on record")
        assert (view.label, view.backend_pid, view.token) == ("invoices", backend, lock.token)
        assert view.application == "billing"
        assert not view.age_is_bound and 0 <= view.age_ms < 30000
        assert view.session_known
        shown = holdfast.at(db15.url())("locks", "--json")
        row, = [row for row in json.loads(shown.out)["locks"] if row["key"] == lock.key]
        assert (row["label"], row["token"]) == ("invoices", lock.token)
        assert row["age_is_bound"] is False
        lock.end()


def add_old_event(db):
    db.sql("insert into holdfast.events (at, event, space, key, shared, token, application, host, pid)"
           " values (now() - interval '40 days', 'acquired', 0, 1, false, 1, 'old', 'here', 1)")


def old_events(db):
    return db.value("select count(*) from holdfast.events where application = 'old'")


def test_short_lives_clean_up_once_an_hour_in_all(db):
    with hf.Store(db.url()) as store:
        store.init()
    add_old_event(db)
    for gone in (True, False, True):
        with hf.Store(db.url()) as store:
            store.acquire("job").end()
        assert old_events(db) == (0 if gone else 1)
        if gone:
            add_old_event(db)
        else:
            db.sql("update holdfast.schedules set last_start = last_start - interval '61 minutes'")
