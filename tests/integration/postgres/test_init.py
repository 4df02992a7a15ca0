"""The schema: installed, upgraded, refused; and who may use it."""

import contextlib
import ctypes

import psycopg2
import pytest

import hf
import servers
from awaiting import Background
from hf import HfError, Status
from schema import make_newer


def init_error(store):
    with pytest.raises(HfError) as raised:
        store.init()
    return raised.value


def test_init_installs_and_says_from_what_to_what(db):
    with hf.Store(db.url()) as store:
        assert not store.has_records
        assert store.init() == (0, hf.SCHEMA_VERSION)
        assert store.has_records
        assert store.acquire("job").token > 0
        assert store.init() == (hf.SCHEMA_VERSION, hf.SCHEMA_VERSION)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_init_works_in_every_encoding(pg, encoding):
    db = pg.create_database(f"encoding '{encoding}' locale 'C' template template0")
    with hf.Store(db.url()) as store:
        assert store.init() == (0, hf.SCHEMA_VERSION)
        assert store.acquire("job").token > 0


def test_store_opened_before_init_goes_on_and_one_opened_after_uses_it(db):
    with hf.Store(db.url()) as before:
        lock = before.acquire("job")
        with hf.Store(db.url()) as after:
            after.init()
            assert after.refusal("job").status is Status.NOT_ACQUIRED
            lock.end()
            assert after.acquire("job").token > 0


def test_init_while_a_lock_is_held_keeps_the_lock(db):
    with hf.Store(db.url()) as store:
        lock = store.acquire("job")
        store.init()
        assert lock.state is hf.State.HELD
        assert db.holders(lock.key)
        lock.end()


def test_several_inits_at_once_all_succeed(db):
    stores = [hf.Store(db.url()) for _ in range(6)]
    try:
        inits = [Background(store.init) for store in stores]
        outcomes = sorted(init.result() for init in inits)
        assert outcomes[0] == (0, hf.SCHEMA_VERSION)
        assert set(outcomes[1:]) == {(hf.SCHEMA_VERSION, hf.SCHEMA_VERSION)}
    finally:
        for store in stores:
            store.close()


def test_failed_init_leaves_nothing_half_done(db):
    db.sql("create schema holdfast authorization app")
    db.sql("create table holdfast.fences (unlike int)")
    with hf.Store(db.url()) as store:
        try:
            store.init()
        except HfError:
            pass
        else:
            pytest.fail("a schema that is not ours was taken for an empty one")
    tables = db.sql("select relname from pg_class where relnamespace = 'holdfast'::regnamespace"
                    " and relkind = 'r'")
    assert tables == [("fences",)]


def test_newer_schema_is_refused(db):
    hf.install(db.url())
    make_newer(db)
    with hf.Store(db.url(), records=hf.RECORDS_OFF) as store:
        error = init_error(store)
        assert error.status is Status.NO_SCHEMA
        assert str(hf.SCHEMA_VERSION + 1) in error.message
        assert error.hint
        store.acquire("plain locks still work").end()
    error = hf.open_error(db.url(), records=hf.RECORDS_REQUIRED)
    assert error.status is Status.NO_SCHEMA


@pytest.fixture
def old_db(db):
    """With the first version of the schema."""
    script = (servers.ROOT / "src/lib/postgres/schema_001.sql").read_text()
    with contextlib.closing(db.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(script)
    return db


def test_who_needs_more_than_an_older_schema_is_told_to_upgrade(old_db):
    error = hf.open_error(old_db.url(), records=hf.RECORDS_REQUIRED)
    assert error.status is Status.NO_SCHEMA
    assert "upgrade" in error.hint


def test_older_schema_has_plain_locks_until_it_is_upgraded(old_db):
    with hf.Store(old_db.url()) as store:
        assert not store.has_records
        assert "holdfast init" in store.refusal("job", flags=hf.NEED_TOKEN).hint
        lock = store.acquire("job")
        assert store.init() == (1, hf.SCHEMA_VERSION)
        assert store.has_records and lock.state is hf.State.HELD
        lock.end()
        assert store.acquire("job").token > 0


@pytest.mark.parametrize("version", range(1, hf.SCHEMA_VERSION))
def test_upgrade_from_every_version_keeps_what_is_there(db, version):
    guest, clerk = f"guest_{db.name}", f"clerk_{db.name}"
    for number in range(1, version + 1):
        db.sql((servers.ROOT / f"src/lib/postgres/schema_{number:03}.sql").read_text())
    db.sql(f"create role {guest} login; create role {clerk} login")
    db.sql(f"select holdfast.grant_use('{guest}')")
    db.sql(f"grant usage on schema holdfast to {clerk}; grant select, insert on holdfast.holders to {clerk}")
    db.sql("select holdfast.note_labels(array[%s], array[0::smallint], array['job'], array['sha256'])",
           hf.derive("job"))
    db.sql("insert into holdfast.table_registry (advisory_id, cluster, database, table_name)"
           " values (77, 'c', 'shop', 'events')")
    db.sql("insert into holdfast.schedules values ('nightly', now()); select holdfast.fence('store', 5)")
    with hf.Store(db.url(user="postgres")) as store:
        assert store.init() == (version, hf.SCHEMA_VERSION)
        lock = store.acquire("job")
        assert lock.token > 5
        assert db.sql("select label, mode from holdfast.locks", user=guest) == [("job", "exclusive")]
        assert len(db.sql("select * from holdfast.who_blocks('job')", user=guest)) == 1
        lock.end()
    assert db.value("select holdfast.table_id('c', 'shop', 'events')", user=guest) == 77
    assert db.value("select holdfast.register_table('c', 'shop', 'events')", user=guest) == 77
    assert db.value("select count(*) from holdfast.schedules where label = 'nightly'") == 1
    for statement in ("select holdfast.fence('store', 4)", "select holdfast.table_id('c', 'shop', null)"):
        with pytest.raises(psycopg2.Error):
            db.sql(statement)
    # Who had a part of it got nothing more.
    assert not db.value("select has_table_privilege(%s, 'holdfast.commits', 'SELECT')"
                        " or has_table_privilege(%s, 'holdfast.locks', 'SELECT')", clerk, clerk) or version < 4
    db.sql(f"drop owned by {guest}, {clerk} cascade; drop role {guest}, {clerk}")


def test_tokens_of_sessions_before_and_after_an_upgrade_increase_in_turn(old_db):
    """A program of the first version adds what the sequence gives to what it was told at its start."""
    with contextlib.closing(old_db.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("select epoch from holdfast.open_session('old', 'host', 1)")
        epoch = cursor.fetchone()[0]

        def old_token():
            cursor.execute("select nextval('holdfast.token')")
            return (epoch << 40) + cursor.fetchone()[0]

        tokens = [old_token()]
        with hf.Store(old_db.url()) as store:
            store.init()
            for _ in range(3):
                lock = store.acquire("job")
                tokens += [lock.token, old_token()]
                lock.end()
    assert all(earlier < later for earlier, later in zip(tokens, tokens[1:])), tokens


def test_required_schema_that_is_missing_is_refused(db):
    error = hf.open_error(db.url(), records=hf.RECORDS_REQUIRED)
    assert error.status is Status.NO_SCHEMA
    assert "holdfast init" in error.hint


def test_role_without_the_right_to_create_is_told_so(db):
    db.sql("do $$ begin create role visitor login; exception when duplicate_object then end $$")
    with hf.Store(db.url(user="visitor")) as store:
        error = init_error(store)
        assert error.status in (Status.CONFIG, Status.DATABASE)
        assert error.sqlstate == "42501"
        assert "permission denied" in error.message
        assert "CREATE" in error.hint and "visitor" in error.hint
        store.acquire("plain locks still work").end()
    assert db.value("select to_regnamespace('holdfast')") is None


def test_a_refusal_needs_no_place_for_its_reason(db):
    db.sql("do $$ begin create role visitor login; exception when duplicate_object then end $$")
    with hf.Store(db.url(user="visitor")) as store:
        version = ctypes.byref(ctypes.c_int())
        assert hf.lib().hf_store_init(store.pointer, version, version, None) == init_error(store).status


def test_role_without_rights_on_the_schema_still_has_plain_locks(db):
    hf.install(db.url())
    db.sql("do $$ begin create role visitor login; exception when duplicate_object then end $$")
    db.sql("revoke all on schema holdfast from public")
    with hf.Store(db.url(user="visitor")) as visitor, hf.Store(db.url()) as store:
        lock = visitor.acquire("job")
        assert store.refusal("job").status is Status.NOT_ACQUIRED
        if not visitor.has_records:
            with pytest.raises(HfError) as raised:
                lock.token
            assert raised.value.status is Status.NO_SCHEMA
        assert visitor.refusal("another", flags=hf.NEED_TOKEN).status is Status.NO_SCHEMA


def test_schema_belongs_to_whoever_installed_it_and_serves_whoever_may_use_it(db):
    """A second role with the rights that init documents gets tokens from the same sequence."""
    db.sql("do $$ begin create role colleague login; exception when duplicate_object then end $$")
    with hf.Store(db.url()) as store:
        store.init()
        first = store.acquire("a").token
        db.sql("grant usage on schema holdfast to colleague")
        db.sql("grant select, insert, update, delete on all tables in schema holdfast to colleague")
        db.sql("grant usage on all sequences in schema holdfast to colleague")
        db.sql("grant execute on all functions in schema holdfast to colleague")
        with hf.Store(db.url(user="colleague")) as other:
            assert other.acquire("b").token > first


def test_schema_that_is_dropped_under_a_store_does_not_cost_the_lock(db):
    with hf.Store(db.url()) as store:
        store.init()
        lock = store.acquire("job")
        db.sql("drop schema holdfast cascade")
        lock.release()
        assert db.advisory_locks() == []


def test_local_store_needs_no_init(tmp_path):
    with hf.Store(f"local:{tmp_path / 'state'}") as store:
        assert store.acquire("job").token > 0
        before, after = store.init()
        assert before == after or before == 0
