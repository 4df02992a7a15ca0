"""Leases: locks that no session holds, on PostgreSQL direct and through a pooler in transaction mode."""

import contextlib
import json
import os
import re
import signal
import threading
import time

import psycopg2
import pytest

import hf
import hf_registry
import hf_tx
import servers
from awaiting import Background, eventually, stays
from hf import HfError, State, Status
from stores import StoreKind

LEASE = {"lifetime": hf.LEASE, "lease_ms": 30000}
SHORT = {"lifetime": hf.LEASE, "lease_ms": 1500}


@pytest.fixture(params=servers.OTHERS or ["pg15", "pg18", "pgbouncer-transaction"])
def leased(request):
    pooled = request.param == "pgbouncer-transaction"
    database = request.getfixturevalue("pg15" if pooled else request.param).create_database()
    hf.install(database.url())
    url = request.getfixturevalue("transaction_pooler").url(database.name) if pooled else database.url()
    yield StoreKind(request.param, url, database)
    database.drop()


@pytest.fixture(name="store")
def opened(leased):
    with leased.open() as store:
        yield store


@pytest.fixture(name="other")
def opened_other(leased):
    with leased.open() as store:
        yield store


def expire(database):
    """As if the time of all leases had passed, for the server."""
    database.sql("update holdfast.tenures set until = clock_timestamp()")


def test_history_of_leases_is_kept_through_a_pooler_too(leased, store, other):
    lock = store.acquire("job", **LEASE)
    assert other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
    lock.end()
    expected = {(event, hf.derive("job")) for event in ("acquired", "conflict", "released")}
    eventually(lambda: set(leased.database.sql("select event, key from holdfast.events")) == expected)


# --- exclusion ----------------------------------------------------------------------------------------


def test_lease_excludes_another_one_and_its_holder_is_named(store, other):
    lock = store.acquire("job", **LEASE)
    error = other.refusal("job", **LEASE)
    assert error.status is Status.NOT_ACQUIRED and "held by" in error.message and "pid" in error.message
    lock.end()
    with other.acquire("job", **LEASE) as second:
        assert second.token > 0


def test_lease_excludes_threads_of_its_own_store(store):
    lock = store.acquire("job", **LEASE)
    assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
    waiting = Background(store.acquire, "job", wait_ms=hf.FOREVER, **LEASE)
    stays(lambda: waiting.running, 0.1)
    lock.end()
    waiting.result().end()


def test_terms_grow_together_with_tokens_of_session_locks(leased, store):
    with hf.Store(leased.database.url()) as direct:
        tokens = []
        for _ in range(3):
            for at, how in ((store, LEASE), (direct, {})):
                lock = at.acquire("job", **how)
                tokens.append(lock.token)
                lock.end()
    assert tokens == sorted(set(tokens))


def test_shared_leases_share_and_keep_an_exclusive_one_out(store, other):
    first = store.acquire("job", mode=hf.SHARED, **LEASE)
    second = store.acquire("job", mode=hf.SHARED, **LEASE)
    third = other.acquire("job", mode=hf.SHARED, **LEASE)
    assert len({lock.token for lock in (first, second, third)}) == 3
    assert other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
    for lock in (first, second):
        lock.end()
    assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
    third.end()
    store.acquire("job", **LEASE).end()


def test_set_is_taken_as_a_whole_or_not_at_all(store, other):
    held = other.acquire("b", **LEASE)
    assert store.refusal(["a", "b", "c"], **LEASE).status is Status.NOT_ACQUIRED
    other.acquire("a", **LEASE).end()
    waiting = Background(store.acquire, ["a", "b", "c"], wait_ms=hf.FOREVER, **LEASE)
    stays(lambda: waiting.running, 0.1)
    held.end()
    with waiting.result():
        assert [other.refusal(label, **LEASE).status for label in "abc"] == [Status.NOT_ACQUIRED] * 3


def test_pairs_are_leased_too(store, other):
    with store.acquire((1, 2), **LEASE):
        assert other.refusal((1, 2), **LEASE).status is Status.NOT_ACQUIRED
        other.acquire((2, 1), **LEASE).end()


def test_slots_are_leased_one_by_one(store, other):
    first = store.acquire("pool", slots=2, **LEASE)
    second = other.acquire("pool", slots=2, **LEASE)
    assert {first.slot, second.slot} == {1, 2}
    assert store.refusal("pool", slots=2, **LEASE).status is Status.NOT_ACQUIRED
    assert other.refusal("pool", slots=3, **LEASE).status is Status.SLOTS
    waiting = Background(store.acquire, "pool", wait_ms=hf.FOREVER, slots=2, **LEASE)
    second.end()
    with waiting.result() as third:
        assert third.slot == {1: 2, 2: 1}[first.slot]


@pytest.mark.parametrize("mode", [hf.EXCLUSIVE, hf.SHARED])
def test_lease_and_session_lock_of_one_label_never_both_succeed(leased, store, mode):
    with hf.Store(leased.database.url()) as direct:
        lock = store.acquire("job", mode=mode, **LEASE)
        error = direct.refusal("job")
        assert error.status is Status.NOT_ACQUIRED and "pid" in error.message
        assert direct.refusal("job", wait_ms=300).status is Status.NOT_ACQUIRED
        assert direct.refusal("job", flags=hf.PRIVATE).status is Status.NOT_ACQUIRED
        assert direct.refusal(["job", "other"]).status is Status.NOT_ACQUIRED
        lock.end()
        for how in ({}, {"flags": hf.PRIVATE}):
            lock = direct.acquire("job", mode=mode, **how)
            assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
            lock.end()
        if mode == hf.SHARED:
            with store.acquire("job", mode=mode, **LEASE), direct.acquire("job", mode=mode):
                assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED


def test_store_without_records_sees_leases_too(leased, store):
    with hf.Store(leased.database.url(), records=hf.RECORDS_OFF) as direct:
        with store.acquire("job", **LEASE):
            assert direct.refusal("job").status is Status.NOT_ACQUIRED
            assert direct.refusal("job", wait_ms=1000).status is Status.NOT_ACQUIRED
            assert direct.refusal(["a", "job"]).status is Status.NOT_ACQUIRED
        direct.acquire("job").end()


def test_session_lock_waits_for_a_lease_and_a_lease_for_a_session_lock(leased, store):
    with hf.Store(leased.database.url()) as direct:
        lock = store.acquire("job", **LEASE)
        waiting = Background(direct.acquire, "job", wait_ms=hf.FOREVER)
        stays(lambda: waiting.running, 1.2)
        lock.end()
        lock = waiting.result()
        waiting = Background(store.acquire, "job", wait_ms=hf.FOREVER, **LEASE)
        stays(lambda: waiting.running, 0.3)
        lock.end()
        waiting.result().end()


def test_many_threads_with_leases_and_session_locks_exclude_each_other(leased, store):
    inside, most, rounds = [], [], 12

    def work(at, how):
        for _ in range(rounds):
            lock = at.acquire("job", wait_ms=hf.FOREVER, **how)
            inside.append(None)
            most.append(len(inside))
            time.sleep(0.002)
            inside.pop()
            lock.end()

    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(hf.Store(leased.database.url())) for _ in range(2)]
        stores += [stack.enter_context(leased.open())]
        workers = [Background(work, stores[0], {}), Background(work, stores[1], LEASE),
                   Background(work, stores[2], LEASE), Background(work, store, LEASE)]
        for worker in workers:
            worker.result(60)
    assert len(most) == 4 * rounds and set(most) == {1}


def test_transaction_locks_and_leases_exclude_each_other(leased, store):
    lock = store.acquire("job", **LEASE)
    with hf.Store(leased.database.url()) as direct:
        with pytest.raises(HfError) as raised:
            hf_tx.transact(direct, "job", lambda tx: tx.query("select 1"), deadline_ms=600)
        assert raised.value.status is Status.NOT_ACQUIRED and "pid" in raised.value.message
        with pytest.raises(HfError) as raised:
            hf_tx.transact(direct, ["a", "job"], lambda tx: tx.query("select 1"), deadline_ms=600)
        assert raised.value.status is Status.NOT_ACQUIRED
        done = Background(hf_tx.transact, direct, "job", lambda tx: tx.query("select 1"))
        stays(lambda: done.running, 0.3)
        lock.end()
        done.result()

        def inside(tx):
            tx.query("select 1")
            return store.refusal("job", **LEASE).status

        assert hf_tx.transact(direct, "job", inside) is Status.NOT_ACQUIRED
    assert not leased.database.advisory_locks()


def test_locks_of_plain_sql_and_leases_exclude_each_other(leased, store):
    with contextlib.closing(leased.database.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = False

        def value(statement):
            cursor.execute(statement)
            return cursor.fetchone()[0]

        lock = store.acquire("job", **LEASE)
        assert value("select holdfast.try_lock('job')") is False
        connection.rollback()
        cursor.execute("select 1")
        assert value("select holdfast.try_serialize('job')") is False
        lock.end()
        store.acquire("job", **LEASE).end()  # what was tried in vain is not held, in the same transaction
        assert value("select holdfast.try_serialize('job')") is True
        assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
        connection.rollback()
        assert value("select holdfast.try_lock('job')") is True
        connection.commit()
        assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
        value("select holdfast.unlock('job')")
        connection.commit()
        lock = store.acquire("job", **LEASE)
        serialized = Background(lambda: (cursor.execute("select holdfast.serialize('job')"), connection.commit()))
        stays(lambda: serialized.running, 0.2)
        lock.end()
        serialized.result()


def test_borrowed_connection_waits_for_a_lease(leased, store):
    lock = store.acquire("job", **LEASE)
    with hf.PGconn(leased.database.url()) as conn, hf.Store.borrow(conn) as borrowed:
        conn.sql("begin")
        assert borrowed.refusal("job", lifetime=hf.TRANSACTION).status is Status.NOT_ACQUIRED
        assert borrowed.refusal("job", wait_ms=200, lifetime=hf.TRANSACTION).status is Status.NOT_ACQUIRED
        conn.sql("rollback; begin isolation level repeatable read; select 1")
        assert borrowed.refusal("job", lifetime=hf.TRANSACTION).status is Status.INVALID
        conn.sql("rollback; begin")
        waiting = Background(borrowed.acquire, "job", wait_ms=hf.FOREVER, lifetime=hf.TRANSACTION)
        stays(lambda: waiting.running, 0.2)
        lock.end()
        waiting.result()
        assert store.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
        conn.sql("rollback")


# --- time ---------------------------------------------------------------------------------------------


def test_lease_is_renewed_as_long_as_it_is_held(leased, store, other):
    lost = threading.Event()
    lock = store.acquire("job", on_lost=lambda *_: lost.set(), lifetime=hf.LEASE, lease_ms=1000)
    first = leased.database.value("select until from holdfast.tenures")
    eventually(lambda: leased.database.value("select until from holdfast.tenures")
               > first + (leased.database.value("select interval '2 s'")))
    assert lock.state is State.HELD and not lost.is_set()
    assert other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
    lock.end()


def test_lease_of_a_process_that_is_gone_ends_with_its_time(leased, other):
    with leased.peer() as peer:
        peer.acquire("job", **SHORT)
        assert other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
        began = time.monotonic()
        peer.kill9()
        other.acquire("job", wait_ms=20000, **LEASE).end()
        assert 0.4 < time.monotonic() - began < 5


def test_stopped_holder_is_told_when_it_goes_on_and_its_writes_are_refused(leased, other):
    leased.database.sql("create table work (n int); grant all on work to public")
    with leased.peer() as peer:
        held = peer.acquire("job", **SHORT)
        term = peer.token(held)
        leased.database.sql("select holdfast.check_lease('job', %s)", term)
        peer.stop()
        lock = other.acquire("job", wait_ms=20000, **LEASE)
        peer.cont()
        assert peer.state(held) is State.LOST
        with pytest.raises(psycopg2.Error) as raised:
            leased.database.sql("begin; select holdfast.check_lease('job', %s); insert into work values (1)", term)
        assert raised.value.pgcode == "HF002"
        with pytest.raises(HfError) as lost:
            peer.release(held)
        assert lost.value.status is Status.LOST
        assert lock.state is State.HELD
        leased.database.sql("begin; select holdfast.check_lease('job', %s); insert into work values (2); commit",
                            lock.token)
    assert leased.database.sql("select n from work") == [(2,)]


def test_loss_is_told_once_when_the_server_has_ended_the_lease(leased, store):
    told = []
    lock = store.acquire("job", on_lost=lambda _, why: told.append(why), **SHORT)
    expire(leased.database)
    eventually(lambda: told)
    assert lock.state is State.LOST and told[0].status is Status.LOST and "job" in told[0].message
    with pytest.raises(HfError) as raised:
        lock.release()
    assert raised.value.status is Status.LOST
    assert len(told) == 1
    store.acquire("job", **SHORT).end()


def test_a_thousand_leases_are_renewed_by_one_statement(leased, store):
    labels = [f"job {number}" for number in range(1000)]
    locks = [store.acquire(labels[i:i + 50], **SHORT) for i in range(0, 1000, 50)]
    assert leased.database.sql("select count(*) from holdfast.leases") == [(1000,)]
    assert leased.database.sql("select count(*) from holdfast.tenures") == [(1,)]
    first = leased.database.value("select until from holdfast.tenures")
    eventually(lambda: leased.database.value("select until from holdfast.tenures") > first)
    assert {lock.state for lock in locks} == {State.HELD}
    for lock in locks:
        lock.end()
    assert leased.database.sql("select count(*) from holdfast.leases") == [(0,)]


# --- what is written under a lease ----------------------------------------------------------------------


def test_transaction_on_a_lease_commits_under_its_term_or_not_at_all(leased, store, other):
    leased.database.sql("create table work (n int); grant all on work to public")
    lock = store.acquire("job", **LEASE)
    hf_tx.OnLock(lock, lambda tx: tx.query("insert into work values (1)")).result()
    expire(leased.database)
    second = other.acquire("job", **LEASE)
    with pytest.raises(HfError) as raised:
        hf_tx.OnLock(lock, lambda tx: tx.query("insert into work values (2)")).result()
    assert raised.value.status is Status.LOST
    assert lock.state is State.LOST
    hf_tx.OnLock(second, lambda tx: tx.query("insert into work values (3)")).result()
    assert leased.database.sql("select n from work order by n") == [(1,), (3,)]


def test_lease_cannot_be_taken_while_a_transaction_under_it_is_open(leased, store, other):
    leased.database.sql("create table work (n int); grant all on work to public")
    lock = store.acquire("job", **LEASE)
    with contextlib.closing(leased.database.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = False
        cursor.execute("select holdfast.check_lease('job', %s)", (lock.token,))
        expire(leased.database)
        with hf.Store(leased.database.url()) as direct:
            for how in (LEASE, {}):
                assert direct.refusal("job", **how).status is Status.NOT_ACQUIRED
            waiting = Background(other.acquire, "job", wait_ms=hf.FOREVER, **LEASE)
            stays(lambda: waiting.running, 0.3)
            cursor.execute("insert into work values (1)")
            connection.commit()
            waiting.result().end()
    assert leased.database.sql("select n from work") == [(1,)]


@pytest.mark.parametrize("checkers", [1, 2])
def test_refusal_names_the_session_whose_transaction_keeps_an_ended_lease(leased, store, checkers):
    """One locks the row by its own id, several by a list of them."""
    lock = store.acquire("job", **LEASE)
    with contextlib.ExitStack() as stack:
        for _ in range(checkers):
            connection = stack.enter_context(contextlib.closing(leased.database.connect(application_name="ledger writer")))
            connection.autocommit = False
            connection.cursor().execute("select holdfast.check_lease('job', %s)", (lock.token,))
        assert "ledger writer" not in store.refusal("job", **LEASE).message  # the lease lasts: it has a holder
        bystander = stack.enter_context(contextlib.closing(leased.database.connect(application_name="bystander")))
        bystander.autocommit = False
        with store.acquire("other", **LEASE) as other_lock:
            bystander.cursor().execute("select holdfast.check_lease('other', %s)", (other_lock.token,))
        expire(leased.database)
        pids = leased.database.sql("select pid from pg_stat_activity where application_name = 'ledger writer'")
        with hf.Store(leased.database.url()) as direct:
            for how in (LEASE, {}):
                error = direct.refusal("job", **how)
                assert error.status is Status.NOT_ACQUIRED
                assert any(f"ledger writer (backend pid {pid})" in error.message
                           and f"pg_terminate_backend({pid})" in error.hint for pid, in pids), error.message
                assert "lease that is over" in error.message and "bystander" not in error.message


def test_check_does_not_keep_renewals_waiting(leased, store):
    lock = store.acquire("job", **SHORT)
    with contextlib.closing(leased.database.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = False
        cursor.execute("select holdfast.check_lease('job', %s)", (lock.token,))
        first = leased.database.value("select until from holdfast.tenures")
        eventually(lambda: leased.database.value("select until from holdfast.tenures") > first)
    assert lock.state is State.HELD


def test_release_under_an_open_transaction_leaves_the_lease_until_it_ends(leased, store, other):
    lock, kept = store.acquire("job", **SHORT), store.acquire("kept", **SHORT)
    with contextlib.closing(leased.database.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = False
        cursor.execute("select holdfast.check_lease('job', %s)", (lock.token,))
        lock.end()
        assert other.refusal("job", **LEASE).status is Status.NOT_ACQUIRED
        connection.commit()
    other.acquire("job", wait_ms=20000, **LEASE).end()
    assert kept.state is State.HELD


def test_check_knows_the_slot_of_a_label(leased, store):
    with store.acquire("pool", slots=3, **LEASE) as lock:
        leased.database.sql("select holdfast.check_lease('pool', %s)", lock.token)
        for wrong in (("other", lock.token), ("pool", lock.token + 1)):
            with pytest.raises(psycopg2.Error):
                leased.database.sql("select holdfast.check_lease(%s, %s)", *wrong)


# --- faults -------------------------------------------------------------------------------------------


def test_lease_needs_the_schema(pg15, transaction_pooler):
    database = pg15.create_database()
    for url in (database.url(), transaction_pooler.url(database.name)):
        with hf.Store(url) as store:
            error = store.refusal("job", **LEASE)
            assert error.status is Status.NO_SCHEMA and "holdfast init" in error.hint
    database.drop()


def test_session_lock_behind_a_transaction_pooler_names_what_works(leased, store):
    if leased.kind != "pgbouncer-transaction":
        store.acquire("job").end()
        return
    error = store.refusal("job")
    assert error.status is Status.CONFIG and "--lease" in error.hint
    assert not leased.database.advisory_locks()


def test_what_a_lost_answer_left_behind_is_swept(leased, store, other):
    """As if the answer of a take had been lost: the row is there, and the process does not know of it."""
    with store.acquire("kept", **SHORT):
        leased.database.sql(
            "insert into holdfast.leases (term, key, space, shared, slot, tenure, nth)"
            " select term + 1000000, %s, 0, false, 0, tenure, nth - 1 from holdfast.leases", hf.derive("stray"))
        assert other.refusal("stray", **LEASE).status is Status.NOT_ACQUIRED
        store.acquire("stray", **SHORT).end()  # who asks for it does not hold it
    leased.database.sql("delete from holdfast.leases")


def test_wait_for_a_lease_can_be_cancelled(store, other):
    with store.acquire("job", **LEASE), hf.Cancel() as cancel:
        waiting = Background(other.acquire, "job", wait_ms=hf.FOREVER, cancel=cancel, **LEASE)
        stays(lambda: waiting.running, 0.2)
        cancel.trigger()
        with pytest.raises(HfError) as raised:
            waiting.result()
        assert raised.value.status is Status.INTERRUPTED


@contextlib.contextmanager
def taking_is_held_up(database):
    """Gives a function that returns once somebody is about to write a lease, and waits for the end of this block."""
    database.sql("do $$ begin execute format('alter function %s set lock_timeout = 0', 'holdfast.take_leases'::regproc::oid"
                 "::regprocedure); end $$")
    with contextlib.closing(database.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = False
        cursor.execute("lock table holdfast.leases in exclusive mode")
        yield lambda: eventually(lambda: database.sql("select 1 from pg_locks where relation = 'holdfast.leases'::regclass"
                                                      " and not granted and database ="
                                                      " (select oid from pg_database where datname = current_database())"))
        connection.rollback()


def leases_of(database):
    return database.sql("select key from holdfast.leases")


def test_what_is_granted_to_a_take_that_was_cancelled_is_given_back(leased, store, other):
    with hf.Cancel() as cancel:
        with taking_is_held_up(leased.database) as await_take:
            taking = Background(store.acquire, "job", wait_ms=hf.FOREVER, cancel=cancel, **LEASE)
            await_take()
            cancel.trigger()
            with pytest.raises(HfError) as raised:
                taking.result()
            assert raised.value.status is Status.INTERRUPTED
        other.acquire("job", wait_ms=10000, **LEASE).end()
        store.acquire("job", **LEASE).end()
    assert not leases_of(leased.database)


def test_close_gives_back_what_is_granted_to_a_take_that_was_cancelled(leased):
    with hf.Cancel() as cancel:
        store = leased.open()
        with taking_is_held_up(leased.database) as await_take:
            taking = Background(store.acquire, "job", wait_ms=hf.FOREVER, cancel=cancel, **LEASE)
            await_take()
            cancel.trigger()
            with pytest.raises(HfError):
                taking.result()
            closing = Background(store.close)
            stays(lambda: closing.running, 0.1)
        closing.result()
    assert not leases_of(leased.database)


def test_lease_outlives_its_connections(leased, store):
    lock = store.acquire("job", **SHORT)
    leased.database.sql("select pg_terminate_backend(pid) from pg_stat_activity"
                        " where datname = current_database() and pid <> pg_backend_pid()")
    first = leased.database.value("select until from holdfast.tenures")
    eventually(lambda: leased.database.value("select until from holdfast.tenures") > first)
    assert lock.state is State.HELD
    lock.end()
    store.acquire("job", **SHORT).end()


def test_lease_survives_a_restart_of_the_server(own_pg):
    database = own_pg.create_database()
    hf.install(database.url())
    with hf.Store(database.url()) as store, hf.Store(database.url()) as other:
        lock = store.acquire("job", lifetime=hf.LEASE, lease_ms=15000)
        term = lock.token
        own_pg.stop(signal.SIGQUIT)
        own_pg.start()
        database.sql("select holdfast.check_lease('job', %s)", term)
        assert lock.state is State.HELD
        assert other.refusal("job", wait_ms=500, **LEASE).status is Status.NOT_ACQUIRED
        lock.end()
        with other.acquire("job", **LEASE) as second:
            assert second.token > term


# --- ending the lease of a dead holder ------------------------------------------------------------------


def test_lease_of_a_dead_holder_is_ended_by_who_may_end_sessions(leased, other):
    with leased.peer() as peer:
        peer.acquire("job", lifetime=hf.LEASE, lease_ms=86400000)
        peer.acquire("pool", slots=2, lifetime=hf.LEASE, lease_ms=86400000)
        peer.kill9()
    term = leased.database.value("select term from holdfast.leases where key = %s", hf.derive("job"))
    slot_term = leased.database.value("select term from holdfast.leases where slot > 0")
    error = other.refusal("job", **LEASE)
    ends = f"SELECT holdfast.end_lease({hf.derive('job')}, {term})"
    assert error.status is Status.NOT_ACQUIRED and ends in error.hint, error.hint
    assert leased.database.value("select holdfast.end_lease('job', %s)", term - 1) is False
    assert leased.database.value("select holdfast.end_lease('other', %s)", term) is False
    assert leased.database.value(ends, user="app") is True
    assert leased.database.value(ends) is False
    other.acquire("job", **LEASE).end()
    assert leased.database.value("select holdfast.end_lease('pool', %s)", slot_term) is False, "it was of the same process"
    event, = leased.database.sql("select key, space, token, detail from holdfast.events where event = 'terminated'")
    assert event == (hf.derive("job"), 0, term, "SQL, by app")


def test_one_of_two_slots_is_ended_by_its_label_and_term(leased, store, other):
    first, second = store.acquire("pool", slots=2, **LEASE), other.acquire("pool", slots=2, **LEASE)
    assert leased.database.value("select holdfast.end_lease('pool', %s)", second.token) is True
    assert first.state is State.HELD
    store.acquire("pool", slots=2, **LEASE).end()
    first.end()


def test_holder_that_lives_is_told_when_its_lease_is_ended(leased, store):
    told = threading.Event()
    lock = store.acquire("job", on_lost=lambda *_: told.set(), **SHORT)
    assert leased.database.value("select holdfast.end_lease('job', %s)", lock.token) is True
    assert told.wait(10) and lock.state is State.LOST


def test_lease_is_not_ended_under_an_open_transaction(leased, store):
    lock = store.acquire("job", **LEASE)
    with contextlib.closing(leased.database.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = False
        cursor.execute("select holdfast.check_lease('job', %s)", (lock.token,))
        with pytest.raises(psycopg2.Error) as raised:
            leased.database.sql("select holdfast.end_lease('job', %s)", lock.token)
        assert raised.value.pgcode == "55006"
        assert leased.database.sql("select pid from holdfast.lease_checkers(%s, 0::smallint, false)", lock.key) == [
            (connection.info.backend_pid,)]
        connection.rollback()
    hf_tx.OnLock(lock, lambda tx: tx.query("select 1")).result()
    lock.end()


def test_only_who_could_end_the_session_may_end_a_lease(leased, store):
    role = f"stranger_{leased.database.name}"
    leased.database.sql(f"create role {role} login; select holdfast.grant_use('{role}')")
    lock = store.acquire("job", **LEASE)
    with pytest.raises(psycopg2.Error) as raised:
        leased.database.sql("select holdfast.end_lease('job', %s)", lock.token, user=role)
    assert raised.value.pgcode == "42501" and lock.state is State.HELD
    leased.database.sql(f"grant pg_signal_backend to {role}")
    assert leased.database.sql("select holdfast.end_lease('job', %s)", lock.token, user=role) == [(True,)]
    leased.database.sql(f"drop owned by {role}; drop role {role}")


# --- what is shown ------------------------------------------------------------------------------------


def test_list_shows_leases_with_what_is_left_of_them(leased, store, holdfast):
    with store.acquire("job", **LEASE) as lock:
        view, = store.locks()
        assert (view.label, view.lifetime, view.token, view.pid) == ("job", hf.LEASE, lock.token, os.getpid())
        assert 0 < view.left_ms <= LEASE["lease_ms"] and not view.waiting and view.ours
        shown, = json.loads(holdfast.at(leased.url)("locks", "--json").out)["locks"]
        assert shown["lifetime"] == "lease" and 0 < shown["left_ms"] <= LEASE["lease_ms"]
        assert re.search(r"lease, \d+ s left", holdfast.at(leased.url)("locks").out)
        row, = leased.database.sql("select label, mode, pid, token, until > now() from holdfast.locks")
        assert row == ("job", "exclusive", None, lock.token, True)
    assert store.locks() == []


def test_registry_says_that_a_lock_is_a_lease(leased, holdfast, tmp_path):
    registry = tmp_path / "locks.yaml"
    registry.write_text("version: 1\nlocks:\n  - name: nightly\n    key: { pattern: nightly }\n    lifetime: lease\n")
    at = holdfast.at(leased.url)
    holder = at.hold("nightly", env={"HOLDFAST_REGISTRY": str(registry)})
    assert leased.database.value("select lease_ms from holdfast.tenures") == 30000
    holder.end()


REGISTRY = """version: 1
locks:
  - { name: nightly, key: { pattern: nightly }, lifetime: lease, lease: 2s }
  - { name: hourly, key: { pattern: hourly }, lifetime: lease, lease: 1m }
  - { name: numbered, key: { fixed: 77770001 }, lifetime: lease, lease: 3s }
  - { name: plain, key: { pattern: plain }, lifetime: lease }
"""


@pytest.fixture(name="registry")
def written_registry(tmp_path):
    path = tmp_path / "locks.yaml"
    path.write_text(REGISTRY)
    return path


@pytest.mark.parametrize("options, label, length", [
    ([], "nightly", 2000), ([], "numbered", 3000), (["--key", "77770001"], "numbered", 3000),
    (["--lease", "4s"], "nightly", 4000), ([], "plain", 30000)])
def test_registry_says_how_long_a_lease_lasts(recorded_db, holdfast, registry, options, label, length):
    holder = holdfast.at(recorded_db.url()).hold(label, *options, env={"HOLDFAST_REGISTRY": str(registry)})
    assert recorded_db.value("select lease_ms from holdfast.tenures") == length
    holder.end()


def test_registered_length_serves_the_library_and_of_a_set_the_shortest(recorded_db, registry):
    def lengths(*labels, **how):
        with hf_registry.registry(registry) as read, hf.Store(recorded_db.url(), registry=read) as store:
            with store.acquire(list(labels), **how):
                return recorded_db.sql("select t.lease_ms from holdfast.tenures t"
                                       " where exists (select from holdfast.leases l where l.tenure = t.id)")

    assert lengths("nightly") == [(2000,)]
    assert lengths("nightly", lifetime=hf.LEASE) == [(2000,)]
    assert lengths("nightly", lifetime=hf.LEASE, lease_ms=5000) == [(5000,)]
    assert lengths("hourly", "nightly") == [(2000,)]
    assert lengths("hourly", "plain") == [(30000,)]
    assert lengths("hourly", "elsewhere", lifetime=hf.LEASE) == [(30000,)]


def test_command_under_a_registered_lease_is_killed_in_time(holdfast, db, registry):
    """As with --lease: no later than a third of it before its end, whatever -k says."""
    hf.install(db.url())
    env = {"HOLDFAST_REGISTRY": str(registry)}
    with servers.Proxy(db.server.port) as proxy:
        holder = holdfast.at(db.url(port=proxy.port)).start("run", "-k", "1m", "nightly", "--", "sh", "-c",
                                                            "trap '' TERM; echo pid $$; while :; do sleep 0.02; done", env=env)
        pid = int(holder.await_line("pid").split()[1])
        proxy.blackhole()
        after = holdfast.at(db.url())("run", "nightly", "--", "sh", "-c", f"! kill -0 {pid}", env=env)
        assert after.code == 0, after
        proxy.heal()


# --- the command --------------------------------------------------------------------------------------


def test_command_runs_under_a_lease_and_is_ended_with_it(leased, holdfast):
    at = holdfast.at(leased.url)
    holder = at.start("run", "--lease", "2s", "job", "--", "sh", "-c", "echo term $HOLDFAST_TOKEN; exec sleep 600")
    term = int(holder.await_line("term").split()[1])
    leased.database.sql("select holdfast.check_lease('job', %s)", term)
    refused = at("run", "-n", "--lease", "2s", "job", "true")
    assert refused.code == 75 and "holdfast run" in refused.err
    expire(leased.database)
    assert holder.wait() == 79
    assert at("run", "--lease", "2s", "job", "true").code == 0


def test_command_that_ignores_term_is_gone_before_another_has_the_lease(holdfast, db):
    """Whatever -k says: the loss is told a third of the lease before its end."""
    hf.install(db.url())
    with servers.Proxy(db.server.port) as proxy:
        holder = holdfast.at(db.url(port=proxy.port)).start("run", "--lease", "3s", "-k", "1m", "job", "--", "sh", "-c",
                                                            "trap '' TERM; echo pid $$; while :; do sleep 0.02; done")
        pid = int(holder.await_line("pid").split()[1])
        proxy.blackhole()
        after = holdfast.at(db.url())("run", "--lease", "3s", "job", "--", "sh", "-c", f"! kill -0 {pid}")
        assert after.code == 0, after
        proxy.heal()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("options", [["--lease", "30s"], ["--leader", "--lease", "30s"]])
def test_signal_in_the_moment_of_taking_leaves_no_lease(leased, holdfast, number, options):
    with taking_is_held_up(leased.database) as await_take:
        taking = holdfast.at(leased.url).start("run", *options, "job", "--", "echo", "ran")
        await_take()
        taking.signal(number)
    done = taking.wait_all()
    assert (done.code, done.out, done.err) == (-number, "", "")
    assert not leases_of(leased.database)


def test_signal_in_the_moment_of_yielding_leaves_no_lease(leased, holdfast):
    with taking_is_held_up(leased.database) as await_take:
        asking = holdfast.at(leased.url).start("yield", "--lease", "30s", "job")
        await_take()
        asking.signal(signal.SIGTERM)
    assert asking.wait() == -signal.SIGTERM
    assert not leases_of(leased.database)


def test_signal_ends_a_leader_that_waits_for_a_lease(leased, holdfast):
    at = holdfast.at(leased.url)
    holder = at.hold("job", "--lease", "30s")
    waiter = at.start("run", "--leader", "--lease", "30s", "job", "--", "echo", "ran")
    waiter.await_line("waiting", "err")
    waiter.signal(signal.SIGTERM)
    assert waiter.wait() == -signal.SIGTERM
    assert len(leases_of(leased.database)) == 1
    holder.end()


@pytest.mark.parametrize("lease", ["999ms", "25h", "soon"])
def test_length_of_a_lease_out_of_bounds_is_refused(holdfast, lease):
    assert holdfast("run", "--lease", lease, "job", "true").code == 64


def test_length_of_a_lease_is_bounded_by_the_server_too(recorded_db):
    """The bounds are those of the header: who calls the function itself gets no other lease than the library."""
    header = (hf.ROOT / "include" / "holdfast" / "locks.h").read_text()
    least, most = (int(re.search(rf"HF_LEASE_{name}_MS (\d+)", header).group(1)) for name in ("MIN", "MAX"))

    def take(key, ms):
        return recorded_db.sql("select blocked from holdfast.take_leases(gen_random_uuid(), true, %s, 1, array[%s]::bigint[],"
                               " '{0}', '{0}', false, 0, 'test', 'here', 1)", ms, key)

    assert take(1, least) == take(2, most) == [(0,)]
    for ms in (least - 1, most + 1, 0, -1, None):
        with pytest.raises(psycopg2.Error) as raised:
            take(3, ms)
        assert raised.value.pgcode == "22023"
