import datetime
import os
import signal
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

import holdfast
from conftest import eventually, on_server, session_locks
from holdfast import Isolation, Status


def increment(tx, table):
    (number,), = tx.query(f"select n from {table} where id = 1")
    tx.queue(f"update {table} set n = $1 where id = 1", int(number) + 1)
    return int(number) + 1


def number(store, table):
    return int(store.transact(lambda tx: tx.query(f"select n from {table} where id = 1"))[0][0])


# --- what is committed ----------------------------------------------------------------------------------


def test_what_the_function_returns_is_returned_and_committed(store, table, label):
    assert store.transact(lambda tx: increment(tx, table), label) == 1
    assert store.transact(lambda tx: increment(tx, table), labels=[label, label + "2"]) == 2
    assert number(store, table) == 2


def test_what_the_function_raises_rolls_back_and_is_raised(store, table, label):
    def work(tx):
        tx.query(f"update {table} set n = 7")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        store.transact(work, label)
    assert number(store, table) == 0


def test_concurrent_increments_lose_nothing(store, other, table, label):
    def work(on):
        for _ in range(5):
            on.transact(lambda tx: increment(tx, table), label)

    with ThreadPoolExecutor(20) as threads:
        for done in [threads.submit(work, on) for on in (store, other) * 10]:
            done.result(50)
    assert number(store, table) == 100


@on_server
def test_each_is_applied_once_while_sessions_are_terminated(store, world, table, label):
    committed, doubtful, over = [], [], threading.Event()

    def work():
        for _ in range(12):
            try:
                store.transact(lambda tx: increment(tx, table), label)
                committed.append(1)
            except holdfast.InDoubtError:
                doubtful.append(1)

    def terminate():
        while not over.wait(0.05):
            world.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename <> 'postgres'"
                      " and datname = current_database() and pid <> pg_backend_pid()")

    with ThreadPoolExecutor(6) as threads:
        terminator = threads.submit(terminate)
        for done in [threads.submit(work) for _ in range(5)]:
            done.result(50)
        over.set()
        terminator.result()
    assert len(committed) <= number(store, table) <= len(committed) + len(doubtful)
    assert len(committed) + len(doubtful) == 60
    assert not doubtful or not store.has_records


@on_server
def test_a_conflict_is_tried_again(store, table, label):
    attempts = []

    def work(tx):
        attempts.append(tx.attempt)
        increment(tx, table)
        if tx.attempt < 3:
            tx.query("do $$ begin raise sqlstate '40001'; end $$")

    store.transact(work, label, backoff_max=0.005)
    assert attempts == [1, 2, 3] and number(store, table) == 1
    with pytest.raises(holdfast.ExhaustedError) as spent:
        store.transact(lambda tx: tx.query("do $$ begin raise sqlstate '40001'; end $$"), label, max_attempts=2)
    assert spent.value.sqlstate == "40001"


def test_a_statement_that_is_wrong_says_so(store, label):
    with pytest.raises(holdfast.DatabaseError) as wrong:
        store.transact(lambda tx: tx.query("select no_such_column"), label)
    assert "no_such_column" in wrong.value.message
    assert store.is_local or wrong.value.sqlstate == "42703"


# --- labels -----------------------------------------------------------------------------------------------


def test_a_label_excludes_other_transactions_and_has_a_deadline(store, other, table, label):
    with ThreadPoolExecutor(1) as thread:
        inside, leave = threading.Event(), threading.Event()

        def hold(tx):
            tx.query("select 1")
            inside.set()
            assert leave.wait(20)

        holder = thread.submit(store.transact, hold, label)
        assert inside.wait(20)
        with pytest.raises((holdfast.NotAcquiredError, holdfast.ExhaustedError)):
            other.transact(lambda tx: tx.query("select 1"), label, deadline=0.1)
        leave.set()
        holder.result(20)


@session_locks
def test_a_label_and_a_lock_exclude_each_other(store, other, command, label):
    with other.lock(label, wait=0):
        with pytest.raises((holdfast.NotAcquiredError, holdfast.ExhaustedError)):
            store.transact(lambda tx: tx.query("select 1"), label, deadline=0.1)

    def work(tx):
        tx.query("select 1")
        assert not command.can_lock(label)

    store.transact(work, label)


def test_a_label_comes_before_the_first_statement(store, label):
    def late(tx):
        tx.serialize(label)
        tx.query("select 1")
        tx.serialize(label + "2")

    with pytest.raises(holdfast.OrderError, match="first statement"):
        store.transact(late)


def test_what_became_of_it_is_reported(store, table, label):
    told = []
    store.transact(lambda tx: increment(tx, table), label, on_stats=told.append)
    assert [(one.label, one.attempts, one.outcome) for one in told] == [(label, 1, Status.OK)]


def test_a_decorated_function_is_a_transaction(store, table, label):
    @store.transaction(lambda by: f"{label}:{by}")
    def add(tx, by):
        tx.query(f"update {table} set n = n + $1", by)
        return by

    assert add(3) == 3 and number(store, table) == 3


# --- rows and values ----------------------------------------------------------------------------------------


def test_rows_are_tuples_of_text_with_names(store, table):
    def work(tx):
        rows = tx.query(f"select id, n, null as none from {table}")
        changed = tx.query(f"update {table} set n = 5")
        return rows, changed.affected

    rows, affected = store.transact(work)
    assert rows == [("1", "0", None)] and rows.columns == ("id", "n", "none") and affected == 1


def test_values_arrive_as_they_were(store):
    text = "ü\n'\"\\"
    values = [text, 7, -1.5, Decimal("1.25"), uuid.UUID(int=5), datetime.date(2026, 1, 15), None]
    marks = ", ".join(f"cast(${at} as text)" for at in range(1, len(values) + 1))
    row, = store.transact(lambda tx: tx.query(f"select {marks}", *values))
    assert row == (text, "7", "-1.5", "1.25", str(uuid.UUID(int=5)), "2026-01-15", None)
    raw = bytes(range(256))
    cast = "cast($1 as blob)" if store.is_local else "$1::bytea"
    (back,), = store.transact(lambda tx: tx.query(f"select {cast}", raw, binary=True))
    assert back == raw
    assert store.transact(lambda tx: tx.query("select 1 where 1 = cast($1 as int)", True)) == [("1",)]


@pytest.mark.parametrize("work", [lambda tx: tx.query("select 1\0"), lambda tx: tx.query(None), lambda tx: tx.query(1),
                                  lambda tx: tx.query("select $1", object()), lambda tx: tx.query("select $1", "a\0b"),
                                  lambda tx: tx.queue("select $1", [1]), lambda tx: tx.serialize(None),
                                  lambda tx: tx.query("select '\ud800'"), lambda tx: tx.query("commit")])
def test_what_cannot_be_a_statement_is_refused(store, work):
    with pytest.raises(holdfast.InvalidError):
        store.transact(work)


@pytest.mark.parametrize("options", [{"isolation": 9}, {"isolation": "serializable"}, {"deadline": -1},
                                     {"max_attempts": -1}, {"max_attempts": "2"}, {"on_stats": 1},
                                     {"backoff_max": -1}, {"database": 5}, {"labels": object()}], ids=str)
def test_options_that_cannot_be_are_refused(store, options):
    with pytest.raises(holdfast.InvalidError):
        store.transact(lambda tx: None, **options)
    with pytest.raises(holdfast.InvalidError):
        store.transact("select 1")


@on_server
def test_the_isolation_is_what_was_asked_for(store, table):
    for level in Isolation:
        shown = store.transact(lambda tx: tx.query("show transaction_isolation"), isolation=level)[0][0]
        assert shown.replace(" ", "_").upper() == level.name
    with pytest.raises(holdfast.ConfigError) as refused:
        store.transact(lambda tx: tx.query(f"delete from {table}"), read_only=True)
    assert refused.value.sqlstate == "25006"


# --- the ends of things -------------------------------------------------------------------------------------


def test_a_transaction_is_over_when_it_is_over(store, label):
    kept = []
    store.transact(kept.append, label)
    for use in (lambda: kept[0].query("select 1"), lambda: kept[0].attempt, lambda: kept[0].queue("select 1")):
        with pytest.raises(holdfast.InvalidError):
            use()


@on_server
def test_two_threads_in_one_transaction_are_refused(store, world):
    def work(tx):
        with ThreadPoolExecutor(1) as thread:
            slow = thread.submit(tx.query, "select pg_sleep(0.5)")
            refused = []

            def is_refused():
                if slow.done():
                    return True
                try:
                    tx.attempt
                except holdfast.InvalidError as error:
                    refused.append(error)
                return refused

            eventually(is_refused)
            slow.result()
            return refused

    assert store.transact(work)


@on_server
def test_ctrl_c_ends_a_statement_and_rolls_back(store, world, table):
    def interrupt():
        eventually(lambda: world.sql("select 1 from pg_stat_activity where wait_event = 'PgSleep'"
                                     " and datname = current_database()"))
        os.kill(os.getpid(), signal.SIGINT)

    def work(tx):
        tx.query(f"update {table} set n = 9")
        thread.start()
        tx.query("select pg_sleep(50)")

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.transact(work)
    thread.join()
    assert number(store, table) == 0


def test_closing_the_store_ends_an_open_transaction(open_store, store, table):
    closed = open_store()

    def work(tx):
        tx.query(f"update {table} set n = 9")
        closed.close()
        tx.query("select 1")

    with pytest.raises(holdfast.InvalidError, match="closed"):
        closed.transact(work)
    assert number(store, table) == 0


@session_locks
def test_what_is_written_on_a_locks_session_is_written_under_the_lock(store, world, table, label):
    with store.lock(label, private=True) as lock:
        lock.transact(lambda tx: increment(tx, table))

        def release(tx):
            increment(tx, table)
            with pytest.raises(holdfast.OrderError):
                lock.release()

        lock.transact(release)
        with pytest.raises(holdfast.InvalidError):
            lock.transact("no function")
    with store.lock(label) as lock, pytest.raises(holdfast.InvalidError):
        lock.transact(lambda tx: None)
    assert number(store, table) == 2


@on_server
@session_locks
def test_nothing_is_written_when_the_lock_was_lost(store, world, table, label):
    lock = store.lock(label, private=True)

    def work(tx):
        increment(tx, table)
        world.lose(lock)

    with pytest.raises(holdfast.LostError):
        lock.transact(work)
    with pytest.raises(holdfast.LostError):
        lock.release()
    assert number(store, table) == 0
