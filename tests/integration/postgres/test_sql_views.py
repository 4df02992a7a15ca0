"""holdfast.locks, holdfast.waits and who_blocks(): who holds what, as far as it is on record."""

import contextlib

import pytest

import hf
from awaiting import Background, eventually
from sql_session import sessions

KEY = hf.derive("job")


@pytest.fixture
def look(recorded_db):
    """Rows of a view as dictionaries, by a session of its own."""
    with sessions(recorded_db, 1, user="postgres") as (session,):
        def rows(query, *args):
            return [row[0] for row in session(f"select to_jsonb(v) from ({query}) v", *args)]

        yield rows


def test_a_lock_of_the_library_has_all_that_is_on_record(recorded_db, look):
    with hf.Store(recorded_db.url(), application="keeper") as store:
        lock = store.acquire("job")
        eventually(lambda: recorded_db.value("select count(*) from holdfast.holders"))
        (seen,) = look("select * from holdfast.locks")
        (own,) = [view for view in store.locks() if view.key == KEY]
        assert (seen["key"], seen["space"], seen["label"], seen["derivation"]) == (KEY, "bigint", "job", "sha256")
        assert (seen["mode"], seen["application"], seen["username"]) == ("exclusive", "keeper", "app")
        assert (seen["host"], seen["process"], seen["token"]) == (own.host, own.pid, lock.token)
        assert seen["not_before"] <= seen["since"] and recorded_db.holders(KEY) == [seen["pid"]]
        assert seen["slot"] is None
        (blocker,) = look("select * from holdfast.who_blocks('job')")
        names = ("pid", "application", "username", "client", "since", "mode", "prepared")
        assert blocker == {name: seen[name] for name in names}


def test_a_slot_is_shown_by_its_number(recorded_db, look):
    with hf.Store(recorded_db.url()) as store, store.acquire("job", slots=2):
        eventually(lambda: recorded_db.value("select count(*) from holdfast.holders"))
        assert [row["slot"] for row in look("select * from holdfast.locks where slot is not null")] == [1]


def test_locks_of_sql_show_their_keys_and_names_that_are_on_record(recorded_db, look):
    with sessions(recorded_db, 2) as (first, second):
        first("begin")
        first("select holdfast.serialize('job')")
        second("select holdfast.note_label('night', 'distributedlock-ascii')")
        assert second.value("select holdfast.try_lock('night', 'distributedlock-ascii')")
        table = second.value("select holdfast.register_table('c', 'shop', 'events')")
        assert second.value("select holdfast.try_lock('c/shop.events', 'minted')")
        seen = {row["key"]: row for row in look("select * from holdfast.locks")}
        unnamed, named = seen[KEY], seen[hf.derive("night", hf.Derivation.DISTRIBUTEDLOCK_ASCII)]
        assert (unnamed["pid"], unnamed["application"], unnamed["username"]) == (first.pid, "test", "app")
        assert all(unnamed[name] is None for name in ("label", "since", "token", "host", "process", "table_name"))
        assert (named["space"], named["label"], named["derivation"]) == ("pair", "night", "distributedlock-ascii")
        assert seen[table]["table_name"] == "c/shop.events"
        blockers = look("select * from holdfast.who_blocks('night', 'distributedlock-ascii')")
        assert [row["pid"] for row in blockers] == [second.pid]
        assert first("select * from holdfast.who_blocks('job')") == []  # it is ours
        assert look("select * from holdfast.who_blocks('free')") == []
        first("commit")


def test_a_label_whose_key_is_anothers_is_not_noted(recorded_db):
    recorded_db.sql("select holdfast.note_label('42', 'fixed')")
    recorded_db.sql("select holdfast.note_label('42', 'fixed')")
    with sessions(recorded_db, 1) as (session,):
        assert "'042' and '42'" in session.refused("23505", "select holdfast.note_label('042', 'fixed')")


def test_all_who_share_a_lock_block(recorded_db, look):
    with sessions(recorded_db, 2) as both:
        for session in both:
            session("select pg_advisory_lock_shared(%s)", KEY)
        blockers = look("select * from holdfast.who_blocks('job')")
        assert [(b["pid"], b["mode"]) for b in blockers] == [(session.pid, "shared") for session in both]


def test_waits_name_their_blockers(recorded_db, look):
    with sessions(recorded_db, 2) as (first, second), hf.Store(recorded_db.url(), application="sleeper") as store:
        first("begin; select holdfast.serialize('job')")
        second("begin")
        queued = Background(second, "select holdfast.serialize('job')")
        eventually(lambda: recorded_db.waiters(KEY))
        asleep = Background(store.acquire, "job", wait_ms=-1)  # not in pg_locks for most of the time
        eventually(lambda: recorded_db.value("select count(*) from holdfast.waiters"))
        seen = {row["application"]: row for row in look("select * from holdfast.waits")}
        assert set(seen) == {"test", "sleeper"}
        assert seen["test"]["pid"] == second.pid and seen["sleeper"]["process"] > 0
        assert all(row["blocked_by"] == [first.pid] and row["label"] == "job" and row["since"] for row in seen.values())
        assert [row["pid"] for row in look("select * from holdfast.locks")] == [first.pid]  # none of the library's own
        first("commit")
        queued.result()
        second("commit")
        asleep.result().free()


def test_prepared_transactions_are_named_also_to_those_who_wait_for_them(own_pg):
    own_pg.extra_settings = "max_prepared_transactions = 2"
    own_pg.restart()
    db = own_pg.create_database()
    hf.install(db.url())
    with sessions(db, 1) as (session,):
        session("begin; select holdfast.serialize('job')")
        session("prepare transaction 'left behind'")
    assert db.sql("select pid, prepared from holdfast.locks") == [(None, "left behind")]
    assert db.sql("select pid, prepared from holdfast.who_blocks('job')") == [(None, "left behind")]
    with sessions(db, 1) as (waiter,), contextlib.closing(db.connect()) as connection, connection.cursor() as cursor:
        waiting = Background(waiter, "select pg_advisory_lock(%s)", KEY)
        eventually(lambda: db.waiters(KEY))
        assert db.sql("select pid, blocked_by from holdfast.waits") == [(waiter.pid, [0])]
        cursor.execute("rollback prepared 'left behind'")
        waiting.result()


def test_locks_of_other_databases_are_not_shown(recorded_db, pg, look):
    other = pg.create_database()
    with sessions(other, 1) as (session,):
        session("select pg_advisory_lock(%s)", KEY)
        assert look("select * from holdfast.locks") == [] == look("select * from holdfast.who_blocks('job')")
    other.drop()
