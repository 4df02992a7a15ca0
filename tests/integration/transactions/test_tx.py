"""The contract of hf_transact: on the local store, PostgreSQL 15 and 18, and PgBouncer."""

import contextlib
import os
import random
import signal
import struct
import threading
import time

import psycopg2
import pytest

import hf
import hf_tx
from awaiting import Background, eventually
from counting import LABEL, counter, increment
from hf import Derivation, Status
from hf_tx import Isolation, failure, refusal, transact
from wire import Message, WireProxy

KEY = hf.derive(LABEL)


@pytest.fixture
def db_store(db):
    """A store without the schema on each PostgreSQL."""
    db.sql("create table counter (id int primary key, n int not null)", user="app")
    db.sql("insert into counter values (1, 0)", user="app")
    with hf.Store(db.url()) as opened:
        yield opened


def ask_for(store, label, deadline_ms):
    call = hf_tx.Call(store, label, lambda tx: tx.query("select 1"), read_only=True, deadline_ms=deadline_ms)
    assert call.status in (Status.OK, Status.NOT_ACQUIRED), call.error.message
    return call.status


def held(store, label=LABEL):
    """Whether somebody has the label, by another transaction that does not wait for long."""
    return ask_for(store, label, 500) == Status.NOT_ACQUIRED


def free(store, label=LABEL):
    """The opposite, with patience: nobody's deadline is to pass because the machine is busy."""
    return ask_for(store, label, 20_000) == Status.OK


class Inside:
    """A transaction that stays in its callback until it is let go."""

    def __init__(self, store, labels=LABEL, outcome=None, **options):
        self.entered = threading.Event()
        self.leave = threading.Event()

        def body(tx):
            tx.query("select n from counter where id = 1")
            self.entered.set()
            assert self.leave.wait(20)
            if outcome is not None:
                raise outcome

        self.call = Background(hf_tx.Call, store, labels, body, **options)
        if not self.entered.wait(20):
            raise AssertionError(self.call.result().error.message)

    def end(self):
        self.leave.set()
        return self.call.result()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


# --- labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [None, failure(Status.BAD_DATA, "overdraft")], ids=["commit", "error"])
def test_label_is_held_in_the_callback_and_free_after(store, other, outcome):
    inside = Inside(store, outcome=outcome)
    assert held(other)
    call = inside.end()
    assert call.status == (outcome.status if outcome else Status.OK)
    assert free(other)


def test_server_shows_no_lock_once_the_transaction_is_over(tx_server, server_store):
    with Inside(server_store):
        assert len(tx_server.database.holders(KEY)) == 1
    assert tx_server.database.advisory_locks() == []


def test_label_is_free_after_a_failed_statement(store, other):
    error = refusal(store, LABEL, lambda tx: tx.query("select broken from nowhere"))
    assert error.status == Status.DATABASE
    assert "nowhere" in error.message
    assert free(other)


def test_label_given_twice_is_taken_once(store, other):
    assert transact(store, [LABEL, LABEL], lambda tx: tx.value("select 1")) == "1"
    assert free(other)


def test_every_label_of_a_set_is_held(store, other):
    labels = ["Count:1", "Count:2", ("Count:3", Derivation.HASHTEXT), 12345]
    with Inside(store, labels):
        for label in labels:
            assert held(other, label)
    for label in labels:
        assert free(other, label)


def test_pair_of_numbers_is_held(tx_server, server_store):
    with Inside(server_store, [(-7, 8), "Count:1"]):
        rows = tx_server.database.advisory_locks()
        assert (2**32 - 7, 8, 2) in [row[2:] for row in rows]
        assert len(rows) == 2


def test_labels_in_opposite_orders_do_not_deadlock(store, other):
    labels = [f"Account:{i}" for i in range(5)]
    finished = []

    def work(which, order):
        for _ in range(30):
            call = hf_tx.Call(which, order, increment)
            assert call.status == Status.OK, call.error.message
            assert call.attempts == 1
        finished.append(True)

    one = Background(work, store, labels)
    two = Background(work, other, labels[::-1])
    one.result(40), two.result(40)
    assert counter(store) == 60


def test_increments_of_many_threads_are_all_counted(store):
    def work():
        for _ in range(25):
            transact(store, LABEL, increment)

    for worker in [Background(work) for _ in range(8)]:
        worker.result(50)
    assert counter(store) == 200


def test_winner_s_commit_is_visible_to_the_one_that_waited(tx_server, server_store):
    """The point of it all: the snapshot is younger than the lock, so nothing is retried."""
    with tx_server.open() as other:
        inside = Inside(server_store)
        waiter = Background(hf_tx.Call, other, LABEL, increment)
        eventually(lambda: tx_server.database.waiters(KEY))
        tx_server.database.sql("update counter set n = 41")
        inside.end()
        call = waiter.result()
        assert (call.status, call.attempts) == (Status.OK, 1)
    assert counter(server_store) == 42


def test_textbook_pattern_loses_where_holdfast_does_not(db, db_store):
    """What the test before would see if the snapshot came first."""
    with contextlib.closing(db.connect(autocommit=False)) as textbook, textbook.cursor() as cursor:
        inside = Inside(db_store, (LABEL, Derivation.HASHTEXT))
        cursor.execute("set transaction isolation level serializable")
        waiting = Background(cursor.execute, "select pg_advisory_xact_lock(hashtext(%s))", (LABEL,))
        eventually(lambda: db.advisory_locks(granted=False))
        db.sql("update counter set n = 41")
        inside.end()
        waiting.result()
        with pytest.raises(psycopg2.errors.SerializationFailure):
            cursor.execute("update counter set n = n + 1")
        textbook.rollback()


def test_hashtext_label_excludes_the_textbook_user(tx_server, server_store):
    database = tx_server.database
    with contextlib.closing(database.connect(autocommit=False)) as textbook:
        with textbook.cursor() as cursor:
            cursor.execute("select pg_advisory_xact_lock(hashtext(%s))", (LABEL,))
            assert held(server_store, (LABEL, Derivation.HASHTEXT))
            textbook.rollback()
            with Inside(server_store, (LABEL, Derivation.HASHTEXT)):
                cursor.execute("select pg_try_advisory_xact_lock(hashtext(%s))", (LABEL,))
                assert cursor.fetchone() == (False,)
                textbook.rollback()


def test_label_excludes_a_session_lock_of_the_same_name(db, db_store):
    with hf.Store(db.url()) as other, other.acquire(LABEL):
        error = refusal(db_store, LABEL, increment, deadline_ms=500)
    assert error.status == Status.NOT_ACQUIRED


def test_label_joins_before_the_first_statement(store, other):
    def body(tx):
        tx.serialize("Count:2")
        tx.serialize(LABEL)
        tx.queue("update counter set n = 7 where id = 1")
        assert free(other, "Count:2"), "nothing was sent yet"
        tx.query("select 1")
        assert held(other, "Count:2")
        assert held(other, LABEL)

    transact(store, LABEL, body)
    assert free(other, "Count:2")
    assert counter(store) == 7


def test_label_after_the_first_statement_is_refused_and_explained(store, other):
    def body(tx):
        tx.query("select n from counter")
        tx.serialize("Count:2")

    error = refusal(store, LABEL, body)
    assert error.status == Status.ORDER
    assert "'Count:2'" in error.message
    assert "snapshot" in error.hint and "first" in error.hint
    assert free(other, "Count:2")


def test_label_that_joined_belongs_to_that_attempt_only(store, other):
    def body(tx):
        if tx.attempt == 1:
            tx.serialize("Count:2")
            tx.query("select 1")
            raise failure(Status.BAD_DATA, "stop")

    refusal(store, LABEL, body)
    assert free(other, "Count:2")
    with Inside(store, LABEL):
        assert free(other, "Count:2")


def test_bad_label_that_tries_to_join_is_refused_and_the_rest_goes_on(store, other):
    def body(tx):
        with pytest.raises(hf.HfError) as refused:
            tx.serialize("")
        assert refused.value.status == Status.INVALID
        increment(tx)
        assert held(other)

    transact(store, LABEL, body)
    assert counter(store) == 1


def test_a_number_of_labels_without_labels_is_refused(store):
    refused = refusal(store, None, increment, label_count=1)
    assert refused.status == Status.INVALID and "label_count" in refused.message
    assert counter(store) == 0


@pytest.mark.parametrize("label", ["lock", "Global", "TEST"])
def test_generic_label_is_warned_about(store, label):
    transact(store, [label, LABEL], lambda tx: tx.query("select 1"))
    warnings = [text for level, text in store.logged if "generic" in text]
    assert len(warnings) == 1
    assert f"'{label}'" in warnings[0]


def test_generic_label_that_joins_is_warned_about(store):
    def body(tx):
        tx.serialize("global")
        tx.query("select 1")

    transact(store, None, body)
    assert len([text for _, text in store.logged if "'global'" in text]) == 1


@pytest.mark.parametrize("label, warned", [("acc1", True), (":acc1", True), ("Transfer:acc1", False)])
def test_label_without_an_operation_is_warned_about_where_one_is_expected(store, label, warned):
    transact(store, label, lambda tx: tx.query("select 1"), expect_operation=True)
    assert bool([text for _, text in store.logged if f"'{label}'" in text]) is warned
    store.logged.clear()
    transact(store, label, lambda tx: tx.query("select 1"))
    assert store.logged == []


def test_good_label_is_not_warned_about(store):
    transact(store, ["Transfer:lock", "test:1"], lambda tx: tx.query("select 1"))
    assert [text for level, text in store.logged if level == 2] == []


# --- the callback ------------------------------------------------------------------------------------


def test_callback_error_is_returned_as_it_is_and_rolls_back(store):
    def body(tx):
        tx.query("update counter set n = 99 where id = 1")
        tx.queue("update counter set n = 100 where id = 1")
        raise failure(Status.BAD_DATA, "overdraft of 5")

    call = hf_tx.Call(store, LABEL, body)
    assert (call.status, call.attempts) == (Status.BAD_DATA, 1)
    assert call.error.message == b"overdraft of 5"
    assert counter(store) == 0


def test_callback_that_says_nothing_still_gets_a_message(store):
    def body(tx):
        raise failure(Status.OK, "")

    class Silent(hf_tx.Call):
        def _run(self, *_):
            return int(Status.BAD_DATA)

    call = Silent(store, LABEL, body)
    assert call.status == Status.BAD_DATA
    assert call.error.code == Status.BAD_DATA
    assert b"work" in call.error.message


def test_error_is_untouched_by_success(store):
    def body(tx):
        increment(tx)
        if tx.attempt == 1 and not store.is_local:
            tx.query("do $$ begin raise exception 'x' using errcode = '40001'; end $$")

    call = hf_tx.Call(store, LABEL, body)
    assert call.status == Status.OK
    assert call.error.code == 77
    assert call.error.message == b"untouched"


def test_callback_without_statements_commits(store):
    assert hf_tx.Call(store, LABEL, lambda tx: None).status == Status.OK


def test_transaction_without_labels_runs(store):
    transact(store, None, increment)
    assert counter(store) == 1


def test_statements_see_what_was_queued_before_them(store):
    def body(tx):
        tx.queue("update counter set n = $1 where id = $2", 5, 1)
        tx.queue("update counter set n = n * 10")
        assert tx.value("select n from counter") == "50"
        tx.queue("insert into counter values ($1, $2)", 2, 3)

    transact(store, LABEL, body)
    assert transact(store, None, lambda tx: tx.query("select * from counter order by id"),
                    read_only=True) == [["1", "50"], ["2", "3"]]


def test_failure_of_a_queued_statement_is_reported_and_rolls_back(store):
    def body(tx):
        increment(tx)
        tx.queue("insert into counter values (1, 1)")

    call = hf_tx.Call(store, LABEL, body)
    assert (call.status, call.attempts) == (Status.DATABASE, 1)
    if not store.is_local:
        assert call.error.sqlstate == b"23505"
    assert counter(store) == 0


def test_swallowed_failure_does_not_commit(store):
    def body(tx):
        tx.query("update counter set n = 99")
        with pytest.raises(hf.HfError):
            tx.query("select broken")
        with pytest.raises(hf.HfError):
            tx.queue("update counter set n = 98")

    call = hf_tx.Call(store, LABEL, body)
    assert call.raised is None
    assert call.status == Status.DATABASE
    assert counter(store) == 0


def test_failure_swallowed_on_the_connection_is_seen_in_the_tag_of_commit(tx_server, server_store):
    def body(tx):
        tx.query("update counter set n = 99")
        with pytest.raises(hf.SqlError):
            tx.connection().sql("select broken")

    call = hf_tx.Call(server_store, LABEL, body)
    assert call.raised is None
    assert call.status == Status.DATABASE
    assert b"ROLLBACK" in call.error.message
    assert counter(server_store) == 0
    assert tx_server.database.advisory_locks() == []


def test_connection_is_inside_the_transaction(tx_server, server_store):
    def body(tx):
        tx.queue("update counter set n = 3")
        conn = tx.connection()
        assert conn.transaction == hf.PGconn.IN_TRANSACTION
        assert conn.value("select n from counter") == "3"
        assert conn.value("show transaction_isolation") == "serializable"
        assert tx_server.database.holders(KEY) == [conn.backend_pid]
        conn.sql("update counter set n = 4")
        tx.queue("update counter set n = n + 10")

    transact(server_store, LABEL, body)
    assert counter(server_store) == 14


def test_local_store_has_no_connection_to_lend(tmp_path):
    def body(tx):
        assert tx.connection() is None

    with hf.Store(f"local:{tmp_path}") as store:
        call = hf_tx.Call(store, LABEL, body)
        assert call.raised is None or isinstance(call.raised, hf.HfError)


def test_conflict_on_the_lent_connection_is_retried(tx_server, server_store):
    def body(tx):
        conn = tx.connection()
        try:
            if tx.attempt == 1:
                conn.sql("do $$ begin raise exception 'x' using errcode = '40001'; end $$")
        except hf.SqlError as error:
            raise failure(Status.DATABASE, "conflict", error.sqlstate)
        conn.sql("update counter set n = n + 1")

    call = hf_tx.Call(server_store, LABEL, body)
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert counter(server_store) == 1


def test_break_of_the_lent_connection_is_retried(tx_server, server_store):
    def body(tx):
        conn = tx.connection()
        conn.sql("update counter set n = n + 1")
        if tx.attempt == 1:
            tx_server.database.server.terminate(conn.backend_pid)
            try:
                eventually(lambda: conn.sql("select 1") is None)
            except hf.SqlError:
                raise failure(Status.DATABASE, "gone")

    call = hf_tx.Call(server_store, LABEL, body)
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert counter(server_store) == 1


# --- rows and values -----------------------------------------------------------------------------------


def test_text_rows(store):
    def body(tx):
        rows = tx.query("select 12 as number, 'ä' as text, null as missing, '' as empty")
        assert rows.columns == ["number", "text", "missing", "empty"]
        assert rows == [["12", "ä", None, ""]]
        assert tx.query("select 1 where 1 = 2") == []

    transact(store, LABEL, body)


def test_binary_rows(store):
    number = "cast($1 as bigint)" if not store.is_local else "$1 + 0"

    def body(tx):
        assert tx.query(f"select {number}, 'ä'", 258, binary=True) == [
            [struct.pack("!q", 258), "ä".encode()]]

    transact(store, LABEL, body)


def test_binary_value_keeps_its_zeros(store):
    kind, length = ("blob", "length") if store.is_local else ("bytea", "length")
    raw = b"a\0b\xff"

    def body(tx):
        tx.query(f"create table pile (content {kind})")
        tx.queue("insert into pile values ($1)", raw)
        assert tx.query(f"select content, {length}(content) from pile", binary=True)[0][0] == raw

    transact(store, LABEL, body)


def test_null_parameter(store):
    def body(tx):
        tx.query("create table maybe (a int, b text)")
        tx.queue("insert into maybe values ($1, $2)", None, None)
        tx.query("insert into maybe values ($1, $2)", 1, "")
        return tx.query("select a, b from maybe where a is null or b = ''")

    assert transact(store, LABEL, body) == [[None, None], ["1", ""]]


def test_affected_rows(store):
    def body(tx):
        tx.queue("insert into counter values (2, 0), (3, 0)")
        assert tx.query("update counter set n = 1 where id > $1", 1).affected == 2
        assert tx.query("update counter set n = 1 where id > $1", 10).affected == 0

    transact(store, LABEL, body)


def test_error_of_a_queued_statement_tells_no_place_in_the_next(tx_server, server_store):
    def body(tx):
        error = hf.CError()
        tx.queue("select nosuch from counter")
        assert hf_tx.lib().hf_tx_query(tx.pointer, b"select 1", 0, None, False, None, error) == Status.DATABASE
        assert (error.sqlstate, error.position) == (b"42703", 0)
        raise failure(Status.DATABASE, "as expected")

    refusal(server_store, LABEL, body)


def test_error_tells_the_place_in_the_statement(tx_server, server_store):
    call = hf_tx.Call(server_store, LABEL, lambda tx: tx.query("select nosuch from counter"))

    def body(tx):
        error = hf.CError()
        status = hf_tx.lib().hf_tx_query(tx.pointer, b"select nosuch from counter", 0, None, False, None,
                                         error)
        assert status == Status.DATABASE
        assert error.position == 8
        raise failure(Status.DATABASE, "as expected")

    refusal(server_store, LABEL, body)
    assert call.error.sqlstate == b"42703"


# --- retries -------------------------------------------------------------------------------------------


def raise_once(sqlstate, times=1):
    def body(tx):
        if tx.attempt <= times:
            tx.query("update counter set n = n + 100")
            tx.query(f"do $$ begin raise exception 'made up' using errcode = '{sqlstate}'; end $$")
        increment(tx)

    return body


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
def test_passing_conflict_is_retried(tx_server, server_store, sqlstate):
    call = hf_tx.Call(server_store, LABEL, raise_once(sqlstate, 3), backoff_max_ms=5)
    assert (call.status, call.attempts) == (Status.OK, 4)
    assert counter(server_store) == 1


def test_conflict_reported_by_commit_is_retried(tx_server, server_store):
    """Two serialisable transactions with different labels that depend on each other."""
    with tx_server.open() as other:
        def rival(tx):
            tx.query("select sum(n) from counter")
            tx.query("insert into counter values (2, 0)")

        def body(tx):
            tx.query("select sum(n) from counter")
            if tx.attempt == 1:
                transact(other, "Count:2", rival)
            tx.queue("insert into counter values (3, 0)")

        call = hf_tx.Call(server_store, LABEL, body)
    assert (call.status, call.attempts) == (Status.OK, 2)


def test_real_deadlock_is_retried(tx_server):
    barrier, one_is_done = threading.Barrier(2), threading.Event()

    def body(first, second, tx):
        if tx.attempt > 1:
            assert one_is_done.wait(20)  # or it could run into the other once more
        tx.query(f"update counter set n = n + 1 where id = {first}")
        if tx.attempt == 1:
            with contextlib.suppress(threading.BrokenBarrierError):
                barrier.wait(20)
        tx.query(f"update counter set n = n + 1 where id = {second}")

    def run(store, label, first, second):
        call = hf_tx.Call(store, label, lambda tx: body(first, second, tx), isolation=Isolation.READ_COMMITTED)
        one_is_done.set()
        return call

    tx_server.database.sql("insert into counter values (2, 0)")
    with tx_server.open() as one, tx_server.open() as two:
        calls = [Background(run, one, "Count:1", 1, 2), Background(run, two, "Count:2", 2, 1)]
        done = [call.result() for call in calls]
    assert [call.status for call in done] == [Status.OK, Status.OK]
    assert sum(call.attempts for call in done) == 3
    assert tx_server.database.sql("select n from counter order by id") == [(2,), (2,)]


def test_unique_violation_is_final_unless_asked(store):
    def body(tx):
        tx.query("insert into counter values ($1, 0)", 1 if tx.attempt < 3 else 2)

    call = hf_tx.Call(store, LABEL, body)
    assert (call.status, call.attempts) == (Status.DATABASE, 1)
    call = hf_tx.Call(store, LABEL, body, retry_unique=True, backoff_max_ms=5)
    assert (call.status, call.attempts) == (Status.OK, 3)


def test_other_failure_is_final(store):
    call = hf_tx.Call(store, LABEL, lambda tx: tx.query("select nosuch"))
    assert (call.status, call.attempts) == (Status.DATABASE, 1)


def test_attempts_are_spent(tx_server, server_store):
    call = hf_tx.Call(server_store, LABEL, raise_once("40001", 99), max_attempts=4, backoff_max_ms=5)
    assert (call.status, call.attempts) == (Status.EXHAUSTED, 4)
    assert b"4 attempts" in call.error.message and b"made up" in call.error.message
    assert call.error.sqlstate == b"40001"
    assert counter(server_store) == 0


def test_a_connection_that_ended_while_idle_costs_no_attempt(db, db_store):
    hf_tx.Call(db_store, LABEL, lambda tx: tx.query("select 1"))
    pids = db.sessions()
    db.sql("select pg_terminate_backend(pid) from unnest(%s::int[]) pid", pids)
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
    call = hf_tx.Call(db_store, LABEL, lambda tx: tx.query("select 1"), max_attempts=1)
    assert (call.status, call.attempts) == (Status.OK, 1)


def test_a_signal_ends_no_statement(server_store):
    """One whose handler lets system calls be interrupted."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    call = Background(hf_tx.Call, server_store, LABEL, lambda tx: tx.query("select pg_sleep(1)"), max_attempts=1)
    while call.running:
        with contextlib.suppress(ProcessLookupError):
            signal.pthread_kill(call.thread.ident, signal.SIGUSR1)
        time.sleep(0.05)
    signal.signal(signal.SIGUSR1, before)
    assert call.result().status is Status.OK


def test_deadline_ends_the_retries(tx_server, server_store):
    call = hf_tx.Call(server_store, LABEL, raise_once("40001", 10**6), max_attempts=10**6,
                      backoff_max_ms=5, deadline_ms=2000)
    assert call.status == Status.EXHAUSTED
    assert call.attempts > 1
    assert b"deadline" in call.error.message
    assert counter(server_store) == 0


def test_deadline_ends_a_statement(tx_server, server_store):
    def body(tx):
        tx.query("update counter set n = 5")
        tx.query("select pg_sleep(30)")

    began = time.monotonic()
    error = refusal(server_store, LABEL, body, deadline_ms=1500)
    assert error.status == Status.EXHAUSTED
    assert "deadline" in error.message
    assert time.monotonic() - began < 20
    assert counter(server_store) == 0
    assert free(server_store)


def test_deadline_ends_the_first_statement(tx_server, server_store):
    error = refusal(server_store, LABEL, lambda tx: tx.query("select pg_sleep(30)"), deadline_ms=1500)
    assert error.status == Status.EXHAUSTED
    assert free(server_store)


def test_frozen_server_does_not_outlast_the_deadline_by_much(own_pg, own_db):
    """The answer never comes, nor does that to a cancel; not a minute is spent on either."""
    def body(tx):
        tx.query("select 1")
        own_pg.freeze()
        tx.query("select 2")

    with hf.Store(own_db.url(host="127.0.0.1"), ping_deadline_ms=1000, connect_timeout_ms=1000) as store:
        began = time.monotonic()
        try:
            error = refusal(store, LABEL, body, deadline_ms=500)
        finally:
            own_pg.thaw()
    assert error.status == Status.EXHAUSTED
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("labels", [LABEL, ["Count:0", LABEL, "Count:2"]], ids=["one", "set"])
def test_busy_label_is_reported_with_its_holder(tx_kind, store, labels):
    with tx_kind.open(application="nightly-report") as holder:
        with Inside(holder):
            error = refusal(store, labels, increment, deadline_ms=500)
    assert error.status == Status.NOT_ACQUIRED
    assert f"'{LABEL}'" in error.message
    if tx_kind.kind != "pgbouncer-transaction":  # there the application is PgBouncer's to tell
        assert "nightly-report" in error.message
    assert counter(store) == 0


def test_deadline_for_a_set_of_busy_labels_is_not_multiplied(tx_server, server_store):
    """lock_timeout counts for each label: the second of two that wait one after the other is late."""
    labels = sorted(["Count:1", "Count:2", "Count:3"], key=hf.derive)
    with tx_server.open() as one, tx_server.open() as two:
        first, second = Inside(one, labels[0]), Inside(two, labels[1])
        call = Background(hf_tx.Call, server_store, labels, increment, deadline_ms=4000)
        eventually(lambda: tx_server.database.waiters(hf.derive(labels[0])))
        threading.Timer(3.0, first.leave.set).start()
        began = time.monotonic()
        assert call.result().status == Status.NOT_ACQUIRED
        assert time.monotonic() - began < 6  # not 3 and 4
        first.end(), second.end()


def test_interrupt_ends_the_wait_for_a_label(tx_kind, store):
    with tx_kind.open() as holder, Inside(holder):
        waiter = Background(hf_tx.Call, store, LABEL, increment)
        if tx_kind.database:
            eventually(lambda: tx_kind.database.waiters(KEY))
        store.interrupt()
        assert waiter.result().status == Status.INTERRUPTED


def test_waiter_whose_session_is_ended_waits_again(tx_server, server_store):
    with tx_server.open() as holder:
        inside = Inside(holder)
        waiter = Background(hf_tx.Call, server_store, LABEL, increment)
        victim = eventually(lambda: tx_server.database.waiters(KEY))[0]
        tx_server.database.server.terminate(victim)
        eventually(lambda: tx_server.database.waiters(KEY) not in ([], [victim]))
        inside.end()
        call = waiter.result()
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert counter(server_store) == 1


def test_session_ended_between_statements_is_retried(tx_server, server_store):
    def body(tx):
        tx.query("update counter set n = n + 1")
        if tx.attempt == 1:
            tx_server.database.server.terminate(int(tx.value("select pg_backend_pid()")))

    call = hf_tx.Call(server_store, LABEL, body)
    assert (call.status, call.attempts) == (Status.OK, 2)
    assert counter(server_store) == 1


def test_more_callers_than_connections_take_turns(tx_server):
    with tx_server.open(max_transactions=2) as store:
        def work(number):
            for _ in range(10):
                transact(store, f"Count:{number}",
                         lambda tx: tx.query("update counter set n = n + 1"),
                         isolation=Isolation.READ_COMMITTED)

        for worker in [Background(work, number) for number in range(8)]:
            worker.result(40)
        assert counter(store) == 80


def test_no_connection_in_time_is_exhausted(tx_server):
    with tx_server.open(max_transactions=1) as store, Inside(store):
        error = refusal(store, "Count:2", increment, deadline_ms=50)
    assert error.status == Status.EXHAUSTED
    assert "max_transactions" in error.hint


# --- statistics ----------------------------------------------------------------------------------------


def test_statistics_are_reported_once_for_each_label(store):
    call = hf_tx.Call(store, ["Count:1", "Count:2", "Count:1"], increment)
    assert sorted(stats.label for stats in call.stats) == ["Count:1", "Count:2"]
    for stats in call.stats:
        assert stats.key == hf.derive(stats.label)
        assert (stats.attempts, stats.outcome) == (1, Status.OK)
        assert 0 <= stats.wait_ms < 10_000 and 0 <= stats.hold_ms < 10_000


def test_statistics_without_labels(store):
    call = hf_tx.Call(store, None, increment)
    assert [(stats.label, stats.outcome) for stats in call.stats] == [(None, Status.OK)]


def test_statistics_of_a_failure_count_attempts_and_waiting(tx_server, server_store):
    call = hf_tx.Call(server_store, LABEL, raise_once("40001", 99), max_attempts=3, backoff_max_ms=5)
    assert [(s.attempts, s.outcome) for s in call.stats] == [(3, Status.EXHAUSTED)]
    with tx_server.open() as holder, Inside(holder):
        call = hf_tx.Call(server_store, LABEL, increment, deadline_ms=3000)
    assert [(s.outcome, s.hold_ms) for s in call.stats] == [(Status.NOT_ACQUIRED, 0)]
    assert call.stats[0].wait_ms >= 2500


# --- round trips ---------------------------------------------------------------------------------------


@pytest.fixture
def counted(tx_server):
    """A store behind a proxy that counts, its connection open and its statements prepared."""
    target = tx_server.database.server.port
    if tx_server.kind == "pgbouncer-transaction":
        target = int(tx_server.url.rpartition(":")[2].partition("/")[0])
    with WireProxy(target) as proxy:
        url = tx_server.database.url(host="127.0.0.1", port=proxy.port)
        with hf.Store(url, **tx_server.options) as store:
            transact(store, LABEL, increment)
            yield store, proxy


@pytest.mark.parametrize("labels", [None, LABEL, ["Count:1", "Count:2"]], ids=["none", "one", "two"])
def test_read_compute_write_costs_two_round_trips(counted, labels):
    store, proxy = counted
    with proxy.counting() as trips:
        transact(store, labels, increment)
        assert trips() == 2


def test_many_queued_statements_ride_with_commit(counted):
    store, proxy = counted

    def body(tx):
        n = int(tx.value("select n from counter"))
        for i in range(50):
            tx.queue("update counter set n = $1", n + i)

    with proxy.counting() as trips:
        transact(store, LABEL, body)
        assert trips() == 2


def test_each_query_costs_one_more(counted):
    store, proxy = counted
    with proxy.counting() as trips:
        transact(store, LABEL, lambda tx: [tx.query("select 1") for _ in range(3)])
        assert trips() == 4


def test_read_only_statement_and_commit_cost_two(counted):
    store, proxy = counted
    with proxy.counting() as trips:
        transact(store, LABEL, lambda tx: tx.query("select 1"), read_only=True)
        assert trips() == 2


# --- cancels -------------------------------------------------------------------------------------------


@pytest.mark.timeout(120)
@pytest.mark.parametrize("labels", [[LABEL], ["Count:1", "Count:2", "Count:3"]], ids=["one", "set"])
def test_cancels_at_random_leave_no_lock_behind(tx_server, labels):
    """
    Cancels rain on every session while several transactions fight for the labels. The sessions
    stay open, so a lock that a cancel left on one would be there for ever.
    """
    database, stop = tx_server.database, threading.Event()
    cancelled, committed = [], []

    def work(store):
        while not stop.is_set():
            call = hf_tx.Call(store, labels, increment, isolation=Isolation.READ_COMMITTED,
                              deadline_ms=20_000)
            if call.status == Status.OK:
                committed.append(1)
            else:
                assert call.error.sqlstate == b"57014", call.error.message
                cancelled.append(1)

    def cancel():
        with contextlib.closing(database.connect(user="postgres")) as connection:
            with connection.cursor() as cursor:
                while not stop.is_set():
                    cursor.execute(
                        "select pg_cancel_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                        " and datname = current_database() and backend_type = 'client backend'"
                        " and (query ~ 'advisory|COMMIT|SET TRANSACTION|BEGIN') and random() < 0.4")
                    stop.wait(random.random() / 500)

    with tx_server.open() as store:
        workers = [Background(work, store) for _ in range(4)]
        canceller = Background(cancel)
        try:
            eventually(lambda: len(cancelled) >= 300 and len(committed) >= 100 or
                       not all(worker.running for worker in workers), 60)
        finally:
            stop.set()
        for one in [*workers, canceller]:
            one.result(30)
        # A session whose tidying up was cancelled, too, is given up: the server may still be ending it.
        eventually(lambda: database.advisory_locks() == [])
        assert counter(store) == len(committed)


def test_connection_that_was_not_made_ready_is_not_used(db, db_store):
    """As when a cancel hits the preparations."""
    with WireProxy(db.server.port) as proxy:
        with hf.Store(db.url(host="127.0.0.1", port=proxy.port)) as store:
            def spoil(_line, message):
                if message.kind == "P" and "pg_advisory_unlock" in message.text and not spoilt:
                    spoilt.append(message)
                    return Message.parse("spoilt by the test")
                return None

            spoilt, proxy.rule = [], spoil
            assert refusal(store, LABEL, increment).sqlstate == "42601"
            assert hf_tx.Call(store, LABEL, increment).status == Status.OK


def test_cancel_of_the_wait_for_a_label_leaves_nothing(db, db_store):
    with hf.Store(db.url()) as holder, Inside(holder):
        for _ in range(20):
            waiter = Background(hf_tx.Call, db_store, LABEL, increment)
            victim = eventually(lambda: db.waiters(KEY))[0]
            assert db.value("select pg_cancel_backend(%s)", victim)
            call = waiter.result()
            assert (call.status, call.error.sqlstate) == (Status.DATABASE, b"57014")
    assert db.advisory_locks() == []
