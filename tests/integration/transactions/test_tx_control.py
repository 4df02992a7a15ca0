"""What a callback cannot do: change the outcome, leave its session to the next, or wait for itself."""

import ctypes
import subprocess
import threading
import time

import pytest

import hf
import hf_tx
import sanitizers
from awaiting import Background, eventually
from hf import Status
from hf_tx import Call, failure, transact
from stores import recorded_database

LABEL = "Control:1"


def is_in(error, *words):
    return all(word in error.message.decode() + error.hint.decode() for word in words)


@pytest.fixture(params=["bare", "recorded"])
def database(request, pg):
    """Each PostgreSQL, without the schema and with it."""
    made = recorded_database(pg) if request.param == "recorded" else pg.create_database()
    made.sql("create table done (what text)", user="app")
    yield made
    made.drop()


@pytest.fixture
def store(database):
    with hf.Store(database.url(), max_transactions=1) as opened:
        yield opened


@pytest.fixture
def own_two_phase(db15):
    """A database whose prepared transactions go with the test."""
    db15.sql("create table done (what text)", user="app")
    yield db15
    for gid, in db15.sql("select gid from pg_prepared_xacts where database = current_database()"):
        db15.sql(f"rollback prepared '{gid}'")


@pytest.fixture(params=[None, LABEL], ids=["unlabelled", "labelled"])
def label(request):
    return request.param


def done(database):
    return [row[0] for row in database.sql("select what from done order by what")]


# --- the outcome ---------------------------------------------------------------------------------

ENDING = ["rollback", "commit", "end", "abort", "begin", "start transaction", "commit and chain",
          "prepare transaction 'x'", "  ;/* a /* b */ c */ -- d\n rollback work"]


@pytest.mark.parametrize("command", ENDING)
def test_a_statement_that_ends_the_transaction_is_refused_and_nothing_is_done(store, database, label, command):
    def body(tx):
        tx.query("insert into done values ('row')")
        tx.query(command)

    call = Call(store, label, body)
    assert call.status == Status.INVALID and call.attempts == 1
    assert is_in(call.error, "begin or end the transaction")
    assert done(database) == []


def test_the_same_in_the_queue(store, database, label):
    def body(tx):
        tx.queue("insert into done values ('row')")
        tx.queue("rollback")
        tx.queue("insert into done values ('other')")

    assert Call(store, label, body).status == Status.INVALID
    assert done(database) == []


def test_a_callback_that_swallows_the_refusal_does_not_commit(store, database, label):
    def body(tx):
        tx.query("insert into done values ('row')")
        with pytest.raises(hf.HfError):
            tx.query("commit")

    assert Call(store, label, body).status == Status.INVALID
    assert done(database) == []


@pytest.mark.parametrize("returned", [None, failure(Status.BAD_DATA, "no")], ids=["ok", "failure"])
@pytest.mark.parametrize("command, rows", [
    ("commit", ["row"]), ("rollback", []), ("commit; begin", ["row"]), ("rollback and chain", []),
    ("commit; begin; insert into done values ('other')", ["row"]),
])
def test_a_transaction_ended_on_the_lent_connection_is_told(store, database, label, command, rows, returned):
    def body(tx):
        tx.query("insert into done values ('row')")
        tx.connection().sql(command)
        if returned:
            raise returned

    call = Call(store, label, body)
    assert call.status == Status.INVALID and call.attempts == 1
    assert is_in(call.error, "ended the transaction itself")
    assert done(database) == rows


LATER = ["select 1 / 0", "terminate", "do $$ begin raise exception 'x' using errcode = '40001'; end $$"]


@pytest.mark.parametrize("how", ["lent", "query", "queue"])
@pytest.mark.parametrize("later", LATER, ids=["error", "terminated", "conflict"])
@pytest.mark.parametrize("command", ["commit", "commit and chain", "commit; begin", "prepare transaction 'left'"])
def test_what_a_callback_committed_itself_is_told_whatever_comes_then(own_two_phase, command, later, how):
    """To try it again would do it twice."""
    database = own_two_phase
    with hf.Store(database.url(), max_transactions=1) as store:
        def body(tx):
            tx.query("insert into done values ('row')")
            conn = tx.connection()
            pid = conn.value("select pg_backend_pid()")
            conn.sql(command)
            if later == "terminate":
                database.sql(f"select pg_terminate_backend({pid}, 20000)")
            if how == "lent":
                conn.sql(later if later != "terminate" else "select 1")
            elif how == "query":
                tx.query(later if later != "terminate" else "select 1")
            else:
                tx.queue(later if later != "terminate" else "select 1")

        def forgiving(tx):
            try:
                body(tx)
            except hf.SqlError as error:
                raise failure(Status.DATABASE, str(error), error.sqlstate) from error

        call = Call(store, LABEL, forgiving)
    assert call.status == Status.INVALID and call.attempts == 1, call.error.message
    assert is_in(call.error, "ended the transaction itself")
    assert len(done(database)) == (0 if command.startswith("prepare") else 1)


def test_a_statement_after_it_was_ended_is_refused(store, database, label):
    def body(tx):
        tx.connection().sql("commit")
        tx.query("insert into done values ('outside')")

    assert Call(store, label, body).status == Status.INVALID
    assert done(database) == []


def test_the_lent_connection_commits_with_the_transaction(store, database, label):
    transact(store, label, lambda tx: tx.connection().sql("insert into done values ('row')"))
    assert done(database) == ["row"]


def test_a_failure_on_the_lent_connection_that_is_swallowed_does_not_commit(store, database, label):
    def body(tx):
        tx.query("insert into done values ('row')")
        with pytest.raises(hf.SqlError):
            tx.connection().sql("select 1 / 0")

    assert Call(store, label, body).status == Status.DATABASE
    assert done(database) == []


@pytest.mark.parametrize("command", ["copy done from stdin", "copy done to stdout", "COPY (select 1) TO stdout"])
def test_copy_is_refused_at_once(store, database, label, command):
    call = Call(store, label, lambda tx: tx.query(command))
    assert call.status == Status.INVALID and is_in(call.error, "COPY", "hf_tx_connection")
    transact(store, label, lambda tx: tx.query("insert into done values ('next')"))
    assert done(database) == ["next"]


def test_a_copy_left_open_on_the_lent_connection_is_told(store, database, label):
    def body(tx):
        libpq = hf.libpq()
        libpq.PQclear(libpq.PQexec(tx.connection().pointer, b"copy done from stdin"))

    call = Call(store, label, body)
    assert call.status == Status.INVALID and is_in(call.error, "unfinished")
    transact(store, label, lambda tx: tx.query("insert into done values ('next')"))
    assert done(database) == ["next"]


def test_a_failed_statement_is_forgiven_by_a_return_to_its_savepoint(store, database, label):
    def body(tx):
        tx.query("savepoint before")
        with pytest.raises(hf.HfError):
            tx.query("select 1 / 0")
        tx.query("rollback to savepoint before")
        tx.query("insert into done values ('row')")

    assert Call(store, label, body).status == Status.OK
    assert done(database) == ["row"]


# --- the session ---------------------------------------------------------------------------------

ALTERING = [
    ("set work_mem = '123kB'", "show work_mem", "123kB"),
    ("select set_config('work_mem', '123kB', false)", "show work_mem", "123kB"),
    ("do $$ begin perform set_config('work_mem', '123kB', false); end $$", "show work_mem", "123kB"),
    ("set search_path to pg_catalog", "show search_path", "pg_catalog"),
    ("create temp table mine (a int)", "select count(*) from pg_class where relname = 'mine'", "1"),
    ("select 1 as a into temporary mine", "select count(*) from pg_class where relname = 'mine'", "1"),
    ("update pg_settings set setting = '123' where name = 'work_mem'", "show work_mem", "123kB"),
    ("select U&\"set\\005fconfig\"('work_mem', '123kB', false)", "show work_mem", "123kB"),
    ("listen loud", "select count(*) from pg_listening_channels()", "1"),
    ("prepare mine as select 1", "select count(*) from pg_prepared_statements where name = 'mine'", "1"),
    ("declare mine cursor with hold for select 1", "select count(*) from pg_cursors where name = 'mine'", "1"),
    ("select pg_advisory_lock(4711)",
     "select count(*) from pg_locks where locktype = 'advisory' and objid = 4711", "1"),
]


@pytest.mark.parametrize("lent", [False, True], ids=["query", "lent"])
@pytest.mark.parametrize("rolled_back", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("command, question, left", ALTERING, ids=[case[0][:24] for case in ALTERING])
def test_what_a_callback_leaves_in_the_session_is_gone(db, command, question, left, rolled_back, lent):
    def body(tx):
        if lent:
            tx.connection().sql(command)
        else:
            tx.query(command)
        if rolled_back:
            raise failure(Status.BAD_DATA, "no")

    with hf.Store(db.url(), max_transactions=1) as store:
        assert Call(store, LABEL, body).status == (Status.BAD_DATA if rolled_back else Status.OK)
        assert transact(store, LABEL, lambda tx: tx.value(question)) != left


def test_what_holds_for_the_transaction_only_costs_no_reset(store, label):
    def body(tx):
        tx.query("set local work_mem = '123kB'")
        tx.query("select pg_advisory_xact_lock(4711)")
        return tx.value("select pg_backend_pid()")

    pid = transact(store, label, body)
    assert transact(store, label, lambda tx: tx.value("select pg_backend_pid()")) == pid
    assert transact(store, label, lambda tx: tx.value("show work_mem")) != "123kB"


def test_deallocate_all_leaves_the_store_in_order(store):
    transact(store, LABEL, lambda tx: tx.query("deallocate all"))
    assert transact(store, LABEL, lambda tx: tx.value("select 1")) == "1"


def test_a_session_that_was_altered_serves_on(store, label):
    pid = transact(store, label, lambda tx: tx.value("select pg_backend_pid()"))
    transact(store, label, lambda tx: tx.query("set work_mem = '123kB'"))
    transact(store, label, lambda tx: tx.connection().sql("select 1"))
    assert transact(store, label, lambda tx: tx.value("select pg_backend_pid()")) == pid


# --- the caller's wishes -------------------------------------------------------------------------


def test_a_role_of_the_callback_s_own_commits(database, store, label):
    role = f"narrow_{database.name}"
    database.sql(f"create role {role}")
    database.sql(f"grant {role} to app")
    database.sql(f"grant insert on done to {role}")

    def body(tx):
        tx.query(f"set local role {role}")
        tx.query("insert into done values (current_user)")

    try:
        assert Call(store, label, body).status == Status.OK
        assert done(database) == [role]
    finally:
        database.sql(f"drop owned by {role}")
        database.sql(f"drop role {role}")


def test_a_transaction_may_make_itself_read_only(store, label):
    def body(tx):
        tx.query("set transaction read only")
        return tx.value("show transaction_read_only")

    assert transact(store, label, body) == "on"


TIMEOUTS = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]


@pytest.mark.parametrize("name", TIMEOUTS)
def test_the_timeouts_of_the_database_hold_for_the_caller_s_statements(database, label, name):
    database.sql(f"alter database {database.name} set {name} = '4321ms'")
    with hf.Store(database.url()) as opened:
        assert transact(opened, label, lambda tx: tx.value(f"show {name}")) == "4321ms"
        transact(opened, label, lambda tx: tx.query("set work_mem = '123kB'"))
        assert transact(opened, label, lambda tx: tx.value(f"show {name}")) == "4321ms"


def test_a_statement_timeout_does_not_end_the_wait_for_a_label(database):
    database.sql(f"alter database {database.name} set statement_timeout = '200ms'")
    entered, leave = threading.Event(), threading.Event()

    def stay(tx):
        tx.query("select 1")
        entered.set()
        assert leave.wait(20)

    with hf.Store(database.url()) as one, hf.Store(database.url()) as other:
        first = Background(Call, one, LABEL, stay)
        assert entered.wait(20)
        second = Background(Call, other, LABEL, lambda tx: tx.query("select 1"))
        waiting = ("select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                   " and datname = current_database()"
                   " and clock_timestamp() - query_start > interval '400 ms'")
        eventually(lambda: database.sql(waiting)[0][0] == 1)
        leave.set()
        assert first.result().status == Status.OK and second.result().status == Status.OK


def test_a_write_where_only_reads_may_be_is_told_by_its_state(store, label):
    call = Call(store, label, lambda tx: tx.query("create table written (n int)"), read_only=True)
    assert (call.status, call.error.sqlstate) == (Status.CONFIG, b"25006")


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1 << 30) + 1, (1 << 32) + 10, 0xFFFFFFFF])
def test_a_value_that_is_too_large_is_refused(store, label, size):
    def body(tx):
        value = hf_tx.Value(data=ctypes.addressof(buffer), size=size, binary=True)
        error = hf.CError()
        status = hf_tx.lib().hf_tx_query(tx.pointer, b"select length($1::bytea)", 1, hf_tx.byref(value), False,
                                         None, hf_tx.byref(error))
        hf.check(status, error)

    buffer = ctypes.create_string_buffer(16)
    call = Call(store, label, body)
    assert call.status == Status.INVALID and is_in(call.error, "1 GiB")


def test_a_value_of_a_megabyte_is_none_that_is_too_large(store, label):
    sizes = []
    Call(store, label, lambda tx: sizes.extend(tx.query("select length($1::text)", "x" * (1 << 20))))
    assert sizes == [["1048576"]]


def test_more_values_than_the_protocol_has_room_for_are_refused(store, label):
    call = Call(store, label, lambda tx: tx.query("select 1", *["1"] * 65536))
    assert call.status == Status.INVALID and call.attempts == 1
    assert is_in(call.error, "65535")


# --- waits for itself ----------------------------------------------------------------------------


@pytest.fixture
def wide(database):
    with hf.Store(database.url(), max_transactions=8) as opened:
        yield opened


LOW, HIGH = sorted(["Order:a", "Order:b"], key=hf.derive)


def test_a_label_before_a_lock_of_the_thread_is_refused(wide):
    with wide.acquire(HIGH):
        call = Call(wide, LOW, lambda tx: tx.query("select 1"))
        assert call.status == Status.ORDER and call.attempts == 0
        assert Call(wide, HIGH, lambda tx: tx.query("select 1")).status == Status.ORDER
    assert Call(wide, LOW, lambda tx: tx.query("select 1")).status == Status.OK


def test_a_label_after_a_lock_of_the_thread_is_granted(wide):
    with wide.acquire(LOW):
        assert Call(wide, HIGH, lambda tx: tx.query("select 1")).status == Status.OK


@pytest.mark.parametrize("inner, status", [(LOW, Status.ORDER), (HIGH, Status.ORDER)])
def test_a_transaction_within_another_keeps_the_order(wide, inner, status):
    call = Call(wide, HIGH, lambda tx: Call(wide, inner, lambda inside: inside.query("select 1")).status)
    assert call.result() == status


def test_a_transaction_within_another_may_go_on_in_the_order(wide):
    call = Call(wide, LOW, lambda tx: Call(wide, HIGH, lambda inside: inside.query("select 1")).status)
    assert call.result() == Status.OK


def test_a_lock_on_a_label_of_the_own_transaction_is_refused(wide):
    def body(_):
        with pytest.raises(hf.HfError) as refused:
            wide.acquire(LABEL, wait_ms=20_000)
        return refused.value.status

    assert transact(wide, LABEL, body) == Status.ORDER


def test_a_transaction_within_another_does_not_wait_for_its_connection(store):
    def body(tx):
        tx.query("select 1")
        return Call(store, None, lambda inside: inside.query("select 1")).status

    assert transact(store, None, body) == Status.ORDER


# --- a callback that does not return -------------------------------------------------------------


@pytest.mark.parametrize("how", ["throw", pytest.param("cancel", marks=sanitizers.with_cancelled_threads)])
def test_a_callback_that_is_left_takes_its_transaction_along(kind, compiled, how):
    command = [compiled("tx_left.cpp"), how, kind.url, LABEL]
    assert subprocess.run(command, timeout=40).returncode == 0


# --- reasons that pass ---------------------------------------------------------------------------


@pytest.mark.parametrize("sqlstate, attempts", [("40000", 3), ("40003", 3), ("08006", 3), ("40002", 1)])
def test_a_rollback_that_the_server_raises_is_tried_again(store, label, sqlstate, attempts):
    raise_it = f"do $$ begin raise exception 'no' using errcode = '{sqlstate}'; end $$"
    assert Call(store, label, lambda tx: tx.query(raise_it), max_attempts=3).attempts == attempts


def test_a_transaction_waits_for_a_server_that_restarts(own_pg):
    database = own_pg.create_database()
    with hf.Store(database.url()) as store:
        own_pg.stop()
        call = Background(Call, store, LABEL, lambda tx: tx.value("select 1"), deadline_ms=30_000, max_attempts=1000)
        refused = Call(store, LABEL, lambda tx: tx.value("select 1"), max_attempts=8)
        assert refused.status == Status.UNREACHABLE
        own_pg.start()
        assert call.result().result() == "1"


def test_labels_count_among_the_keys_of_the_store(database):
    labels = [f"Many:{i}" for i in range(5)]
    with hf.Store(database.url(), max_keys=4) as store:
        for _ in range(3):  # what is over does not count
            assert Call(store, labels[:4], lambda tx: tx.query("select 1")).status == Status.OK
        refused = Call(store, labels, lambda tx: tx.query("select 1"))
        assert refused.status == Status.QUOTA and refused.attempts == 0
        inside = Call(store, labels[:4], lambda tx: store.refusal("one more").status)
        assert inside.result() == Status.QUOTA


# --- the deadline --------------------------------------------------------------------------------


def slow(tx):
    tx.query("insert into done values ('row')")
    tx.queue("select pg_sleep(60)")


def deferred(tx):
    tx.query("insert into late values (1)")


def idle(tx):
    tx.query("insert into done values ('row')")
    time.sleep(0.7)


@pytest.mark.parametrize("body", [slow, deferred, idle])
def test_nothing_is_committed_behind_the_deadline(store, database, label, body):
    database.sql("create table late (a int)", user="app")
    database.sql("create function wait() returns trigger language plpgsql as "
                 "$$ begin perform pg_sleep(60); return null; end $$", user="app")
    database.sql("create constraint trigger late after insert on late deferrable initially deferred "
                 "for each row execute function wait()", user="app")
    call = Call(store, label, body, deadline_ms=500)
    assert call.status == Status.EXHAUSTED and call.attempts == 1, call.error.message
    assert done(database) == [] and database.sql("select count(*) from late")[0][0] == 0


@pytest.mark.parametrize("muted", ["set local client_min_messages = error", "url", None])
def test_a_commit_that_did_not_wait_for_its_standby_is_in_doubt(own_pg, muted):
    database = own_pg.create_database()
    database.sql("create table done (what text)", user="app")
    url = database.url() + ("&options=-c%20client_min_messages%3Derror" if muted == "url" else "")
    with hf.Store(url) as store:
        transact(store, LABEL, lambda tx: tx.value("select 1"))  # connected
        own_pg.await_standbys("nobody")

        def body(tx):
            if muted not in (None, "url"):
                tx.query(muted)
            tx.query("insert into done values ('row')")

        call = Background(Call, store, LABEL, body)
        cancel = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'"
        eventually(lambda: own_pg.sql(cancel))
        assert call.result().status == Status.IN_DOUBT
        own_pg.await_standbys("")


def test_a_commit_whose_backend_was_ended_before_its_standby_had_it_is_in_doubt(own_pg):
    """Without the schema its id tells that it committed, but not that the standby has it."""
    database = own_pg.create_database()
    database.sql("create table done (what text)", user="app")
    with hf.Store(database.url()) as store:
        transact(store, LABEL, lambda tx: tx.value("select 1"))  # connected
        own_pg.await_standbys("nobody")
        call = Background(Call, store, LABEL, lambda tx: tx.query("insert into done values ('row')"),
                          deadline_ms=1000)
        end = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'"
        eventually(lambda: own_pg.sql(end))
        assert call.result(60).status == Status.IN_DOUBT
        own_pg.await_standbys("")
