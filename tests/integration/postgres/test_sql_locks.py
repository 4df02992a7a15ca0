"""holdfast.serialize(), try_lock() and unlock(): locks by label for plain SQL, which protect or are refused."""

import contextlib
import threading

import psycopg2
import pytest

import hf
from awaiting import Background, eventually
from cli import EXIT_NOT_ACQUIRED
from sql_session import Session, sessions

FROZEN = ["repeatable read", "serializable"]
LEVELS = ["read uncommitted", "read committed", *FROZEN]
KEY = hf.derive("job")
# A label that each derivation takes.
LABELS = {**{d.name.lower().replace("_", "-"): "nightly:Zürich 🔒" for d in hf.Derivation},
          "fixed": "42", "minted": "shop.events", "distributedlock-ascii": "night"}


@pytest.fixture
def pair(recorded_db):
    """Two sessions, and a table in which each row must be one more than the rows before it."""
    recorded_db.sql("create table public.numbers (n int); grant all on public.numbers to app")
    with sessions(recorded_db, 2) as two:
        yield two


def add_number(session):
    """Decides by what it reads: two that read the same write the same."""
    session("insert into numbers select coalesce(max(n), 0) + 1 from numbers")


def numbers(db):
    return [row[0] for row in db.sql("select n from public.numbers order by n")]


# --- the snapshot -----------------------------------------------------------------------------------


def test_the_usual_pattern_loses_an_update(pair, recorded_db):
    """What serialize() is for: under REPEATABLE READ the winner's commit is not seen by whoever waited for it."""
    first, second = pair
    for session in pair:
        session("begin isolation level repeatable read")
    first("select pg_advisory_xact_lock(%s)", KEY)
    waiting = Background(second, "select pg_advisory_xact_lock(%s)", KEY)
    eventually(lambda: recorded_db.waiters(KEY))
    add_number(first)
    first("commit")
    waiting.result()
    add_number(second)
    second("commit")
    assert numbers(recorded_db) == [1, 1]


def test_a_lock_that_was_free_at_once_is_no_better(pair, recorded_db):
    first, second = pair
    second("begin isolation level repeatable read")
    second("select 1")
    add_number(first)
    assert second.value("select pg_try_advisory_xact_lock(%s)", KEY)
    add_number(second)
    second("commit")
    assert numbers(recorded_db) == [1, 1]


@pytest.mark.parametrize("call", ["select public.nothing()", "call public.no_work()", "do $$ begin end $$"])
def test_no_function_runs_before_the_snapshot_is_taken(pair, recorded_db, call):
    """If PostgreSQL ever changes that, serialize() could be allowed under the levels that it refuses now."""
    recorded_db.sql("create function public.nothing() returns void language plpgsql as 'begin end';"
                    "create procedure public.no_work() language plpgsql as 'begin end'")
    first, second = pair
    first("begin isolation level repeatable read")
    first(call)
    add_number(second)
    assert first("select * from numbers") == []
    first("rollback")


@pytest.mark.parametrize("level", FROZEN)
@pytest.mark.parametrize("call", [
    "select holdfast.serialize('job')", "select holdfast.try_serialize('job')", "select holdfast.try_lock('job')",
    "call public.work('job')", "do $$ begin perform holdfast.serialize('job'); end $$",
    "do $$ begin perform holdfast.try_lock('job'); end $$"])
def test_refused_where_the_snapshot_is_older(pair, recorded_db, level, call):
    recorded_db.sql("create procedure public.work(label text) language plpgsql as"
                    " $$ begin perform holdfast.serialize(label); end $$")
    first = pair[0]
    first(f"begin isolation level {level}")
    said = first.refused("25001", call)
    assert level.upper() in said and "snapshot" in said and "READ COMMITTED" in said
    assert first.refused("25001", f"begin isolation level {level}; {call}; select 1")  # in one message
    assert recorded_db.advisory_locks() == []


def test_what_the_hint_says_works(pair, recorded_db):
    def add_under_lock(session):
        session("begin isolation level read committed")
        session("select holdfast.serialize('job')")
        assert session.value("select holdfast.try_lock('job')")
        session("commit")
        session("begin isolation level repeatable read")
        add_number(session)
        session("commit")
        session("select holdfast.unlock('job')")

    first, second = pair
    first("begin; select holdfast.serialize('job')")
    waiting = Background(add_under_lock, second)
    eventually(lambda: recorded_db.waiters(KEY))
    add_number(first)
    first("commit")
    waiting.result()
    assert numbers(recorded_db) == [1, 2]
    assert recorded_db.advisory_locks() == []


@pytest.mark.parametrize("how", ["serialize", "try_serialize", "try_lock"])
def test_no_update_is_lost_in_thousands_of_rounds_at_any_level(recorded_db, how):
    """Under the upper levels the functions refuse; a client that then does as the hint says loses nothing."""
    recorded_db.sql("create table public.numbers (n int); grant all on public.numbers to app")
    rounds, refusals, written = 1000, [], []
    taken = threading.Semaphore(rounds)

    def attempt(session, level):
        session(f"begin isolation level {level}")
        got = session.value(f"select holdfast.{how}('job')") is not False
        if got:
            add_number(session)
        session("commit")
        if got and how == "try_lock":
            session("select holdfast.unlock('job')")
        return got

    def attempt_as_told(session, level):
        session("begin isolation level read committed; select holdfast.serialize('job')")
        assert session.value("select holdfast.try_lock('job')")
        session(f"commit; begin isolation level {level}")
        try:
            add_number(session)
            session("commit")
            return True
        except psycopg2.errors.SerializationFailure:  # SERIALIZABLE has conflicts of its own
            session("rollback")
            return False
        finally:
            session("select holdfast.unlock('job')")

    def work(level):
        with contextlib.closing(Session(recorded_db)) as session:
            while taken.acquire(blocking=False):
                done = False
                while not done:
                    try:
                        done = attempt(session, level)
                    except psycopg2.errors.ActiveSqlTransaction:
                        session("rollback")
                        refusals.append(level)
                        done = attempt_as_told(session, level)
                written.append(level)

    workers = [Background(work, level) for level in LEVELS for _ in range(2)]
    for worker in workers:
        worker.result(timeout=120)
    assert numbers(recorded_db) == list(range(1, rounds + 1))
    assert set(written) == set(LEVELS) and set(refusals) == set(FROZEN)


# --- transactions -----------------------------------------------------------------------------------


def test_serialize_holds_until_the_transaction_ends(pair, recorded_db):
    first, second = pair
    for end in ("commit", "rollback"):
        first("begin")
        first("select holdfast.serialize('job')")
        assert recorded_db.holders(KEY) == [first.pid]
        second("begin")
        assert second.value("select holdfast.try_serialize('job')") is False
        second("rollback")
        first(end)
        assert recorded_db.holders(KEY) == []


@pytest.mark.parametrize("call", ["serialize", "try_serialize"])
@pytest.mark.parametrize("level", LEVELS)
def test_alone_it_would_lock_nothing_and_is_refused(pair, recorded_db, call, level):
    first = pair[0]
    first(f"set default_transaction_isolation = '{level}'")
    for statement in (f"select holdfast.{call}('job')", f"  select holdfast.{call}('job') ;\n ;",
                      f"explain analyze select holdfast.{call}('job')", f"select holdfast.{call}('a;b')",
                      f"/* ; */ select holdfast.{call}('job') -- ; x", f"select holdfast.{call}('job'), $x$;$$a$x$",
                      f'select holdfast.{call}(\'job\') as ";a"'):
        assert "BEGIN" in first.refused("25P01", statement)
    if level not in FROZEN:
        first(f"select holdfast.{call}('a;b'); select 1")  # one transaction


@pytest.mark.parametrize("arguments", ["'job', 'nonsense'", "null", "''", "'none', 'minted'", "repeat('x', 70000)"])
def test_who_blocks_says_nobody_only_of_a_lock_that_can_be(pair, arguments):
    with pytest.raises(psycopg2.Error):
        pair[0](f"select * from holdfast.who_blocks({arguments})")


def test_a_function_that_works_under_the_lock_needs_no_block(pair, recorded_db):
    recorded_db.sql("create function public.add() returns void language plpgsql as $$ begin"
                    " perform holdfast.serialize('job');"
                    " insert into numbers select coalesce(max(n), 0) + 1 from numbers; end $$")
    first, second = pair
    first("begin")
    first("select public.add()")
    waiting = Background(second, "select public.add()")
    eventually(lambda: recorded_db.waiters(KEY))
    first("commit")
    waiting.result()
    first("select holdfast.serialize('job'); select public.add()")  # one message, one transaction
    assert numbers(recorded_db) == [1, 2, 3]


def test_it_writes_nothing(pair):
    first = pair[0]
    first("begin read only")
    first("select holdfast.serialize('job')")
    assert first.value("select holdfast.try_lock('other')") is True
    assert first.value("select pg_current_xact_id_if_assigned()") is None
    first("commit")
    first("select holdfast.unlock('other')")


def test_a_timeout_leaves_nothing_held(pair, recorded_db):
    first, second = pair
    first("begin; select holdfast.serialize('job')")
    second("set lock_timeout = '10ms'; begin")
    second.refused("55P03", "select holdfast.serialize('job')")
    first("commit")
    assert recorded_db.advisory_locks() == []


def test_a_standby_is_refused(own_pg):
    db = own_pg.create_database()
    hf.install(db.url())
    with own_pg.make_standby() as standby, contextlib.closing(standby.connect(db.name)) as connection:
        eventually(lambda: standby.value("select to_regprocedure('holdfast.serialize(text, text)') is not null",
                                         database=db.name))
        with connection.cursor() as cursor:
            for call in ("serialize", "try_lock"):
                with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction, match="standby"):
                    cursor.execute(f"begin; select holdfast.{call}('job')")
                cursor.execute("rollback")


# --- sessions ---------------------------------------------------------------------------------------


def test_try_lock_holds_until_unlock_as_often_as_it_was_locked(pair, recorded_db):
    first, second = pair
    assert first.value("select holdfast.try_lock('job')") and first.value("select holdfast.try_lock('job')")
    assert second.value("select holdfast.try_lock('job')") is False
    first("select holdfast.unlock('job')")
    assert second.value("select holdfast.try_lock('job')") is False
    first("select holdfast.unlock('job')")
    assert second.value("select holdfast.try_lock('job')") is True
    second("select holdfast.unlock('job')")


def test_unlock_of_what_is_not_held_fails(pair, recorded_db):
    first, second = pair
    assert first.value("select holdfast.try_lock('job')")
    assert "does not hold" in second.refused("55000", "select holdfast.unlock('job')")
    second("begin")
    assert second.value("select holdfast.try_serialize('another')")
    second.refused("55000", "select holdfast.unlock('another')")  # it is the transaction's
    assert recorded_db.holders(KEY) == [first.pid]
    first("select holdfast.unlock('job')")


@pytest.mark.parametrize("level", FROZEN)
def test_try_lock_alone_is_fine_at_any_level(pair, level):
    """The snapshot ends with the statement."""
    first = pair[0]
    first(f"set default_transaction_isolation = '{level}'")
    assert first.value("select holdfast.try_lock('job')")
    first("select holdfast.unlock('job')")
    assert first.value("select holdfast.try_lock('a;b')")


@pytest.mark.parametrize("label", ["", "a\nb", "\x7f", None])
def test_labels_that_the_library_refuses_are_refused(pair, label):
    first = pair[0]
    for call in ("serialize", "try_serialize", "try_lock", "unlock"):
        first("begin")
        first.refused("22004" if label is None else "22023", f"select holdfast.{call}(%s)", label)


# --- beside the library -----------------------------------------------------------------------------


@pytest.mark.parametrize("derivation", LABELS)
def test_sql_and_the_command_exclude_each_other(recorded_db, holdfast, derivation):
    label = LABELS[derivation]
    run = holdfast.at(recorded_db.url())
    recorded_db.sql("select holdfast.register_table('', 'shop', 'events')")
    with sessions(recorded_db, 1) as (session,):
        def refuses_the_command():
            return run("run", "-n", "--as", derivation, label, "--", "true").code == EXIT_NOT_ACQUIRED

        session("begin")
        session("select holdfast.serialize(%s, %s)", label, derivation)
        assert refuses_the_command()
        session("commit")
        assert session.value("select holdfast.try_lock(%s, %s)", label, derivation)
        assert refuses_the_command()
        session("select holdfast.unlock(%s, %s)", label, derivation)
        holder = run.hold(label, "--as", derivation)
        session("begin")
        assert session.value("select holdfast.try_serialize(%s, %s)", label, derivation) is False
        assert session.value("select holdfast.try_lock(%s, %s)", label, derivation) is False
        assert len(session("select * from holdfast.who_blocks(%s, %s)", label, derivation)) == 1
        waiting = Background(session, "select holdfast.serialize(%s, %s)", label, derivation)
        eventually(lambda: recorded_db.advisory_locks(granted=False))
        holder.end()
        waiting.result()
        session("commit")


def test_a_library_that_waits_gets_what_sql_frees(recorded_db):
    with sessions(recorded_db, 1) as (session,), hf.Store(recorded_db.url()) as store:
        assert session.value("select holdfast.try_lock('job')")
        waiting = Background(store.acquire, "job", wait_ms=-1)
        eventually(lambda: recorded_db.value("select count(*) from holdfast.waiters"))
        session("select holdfast.unlock('job')")
        waiting.result().free()


def test_a_minted_label_follows_its_table_to_another_id(pair, recorded_db):
    """Whoever waits for a table that is dropped and made anew meanwhile gets the lock of the new one."""
    first, second = pair
    old = first.value("select holdfast.register_table(null, 'shop', 'events')")
    first("begin")
    first("select holdfast.serialize('shop.events', 'minted')")
    second("begin")
    waiting = Background(second, "select holdfast.serialize('shop.events', 'minted')")
    eventually(lambda: recorded_db.waiters(old))
    first("update holdfast.table_registry set dropped_at = now()")
    new = first.value("select holdfast.register_table(null, 'shop', 'events')")
    first("commit")
    waiting.result()
    assert new != old and recorded_db.holders(new) == [second.pid]
    second("commit")
    assert "register_table" in second.refused("42704", "begin; select holdfast.serialize('shop.none', 'minted')")
