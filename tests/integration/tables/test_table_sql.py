"""Shared tables for plain SQL: holdfast.table_id() and holdfast.register_table()."""

import psycopg2
import pytest

import hf
import hf_table
from awaiting import Background
from sql_session import sessions

BAD = ["", " a", "a ", "a.b", "a/b", "a'b", 'a"b', "a`b", "a\\b", "a\tb", "a\x7fb", "a\x80b", "a\x9fb", "a\u2028",
       "\u2029a", "ä" * 101, "x" * 201]
FINE = ["a", "a b", "é\u00a0", "ÿ", "\u2027\u202a", "ä" * 100, "x" * 200, "日本", "🔒", "a-b:c,d;e(f)"]


@pytest.fixture
def session(recorded_db):
    with sessions(recorded_db, 1) as (made,):
        yield made


def test_ids_are_those_of_the_library(recorded_db, session):
    with hf.Store(recorded_db.url()) as store:
        minted, _ = hf_table.register(store, "c/shop.events")
        assert session.value("select holdfast.table_id('c', 'shop', 'events')") == minted
        assert session.value("select holdfast.register_table('c', 'shop', 'events')") == minted
        assert session.value("select holdfast.table_id('', 'shop', 'orders')") is None
        made = session.value("select holdfast.register_table('', 'shop', 'orders')")
        assert made > minted >> 22 << 22 and hf_table.find(store, "shop.orders") == made


def test_empty_parts_are_those_of_the_library(session):
    plain = session.value("select holdfast.register_table(null, null, 'events')")
    for parts in (("", "", "events"), (None, "", "events"), ("", "default", "events")):
        assert session.value("select holdfast.table_id(%s, %s, %s)", *parts) == plain
    assert session.value("select holdfast.find_table('events')") == plain
    assert session.value("select holdfast.table_id('c', null, 'events')") is None


def library_takes(parts):
    try:
        return bool(hf_table.text_of(parts))
    except hf.HfError as error:
        assert error.status is hf.Status.INVALID
        return False


@pytest.mark.parametrize("part", range(3))
def test_names_are_judged_as_the_library_judges_them(session, part):
    for text in BAD + FINE:
        parts = ["c", "shop", "events"]
        parts[part] = text
        fine = text in FINE or (text == "" and part < 2)  # no cluster, or the default database
        assert library_takes(tuple(parts)) == fine, text
        for call in ("table_id", "register_table"):
            if fine:
                session(f"select holdfast.{call}(%s, %s, %s)", *parts)
            else:
                session.refused("22023", f"select holdfast.{call}(%s, %s, %s)", *parts)


def test_a_table_needs_a_name(session):
    for call in ("table_id", "register_table"):
        session.refused("22023", f"select holdfast.{call}('c', 'shop', null)")


def test_what_is_no_utf_8_is_no_name_and_no_fault(pg):
    """A trigger on a relation that was adopted must not fail another program's statement for a name."""
    db = pg.create_database("encoding 'SQL_ASCII' locale 'C' template template0")
    hf.install(db.url())
    assert db.value("select (holdfast.table_parts(E'a\\xff', '', 'default')).table_name") is None
    assert db.value("select (holdfast.table_parts(E'a\\xc3\\xa9', '', 'default')).table_name is not null")
    db.drop()


def test_many_at_once_get_one_id(recorded_db):
    with sessions(recorded_db, 12) as many:
        found = [Background(session.value, "select holdfast.register_table('', 'shop', 'events')") for session in many]
        assert len({call.result() for call in found}) == 1
    assert recorded_db.value("select count(*) from holdfast.table_registry") == 1


def test_a_retired_name_gets_another_id(recorded_db, session):
    first = session.value("select holdfast.register_table('', 'shop', 'events')")
    recorded_db.sql("update holdfast.table_registry set dropped_at = now()")
    assert session.value("select holdfast.table_id('', 'shop', 'events')") is None
    assert session.value("select holdfast.register_table('', 'shop', 'events')") > first


def test_under_an_older_snapshot_it_fails_rather_than_mint_twice(recorded_db):
    with sessions(recorded_db, 2) as (early, late):
        early("begin isolation level repeatable read; select 1")
        late("select holdfast.register_table('', 'shop', 'events')")
        with pytest.raises(psycopg2.errors.SerializationFailure):
            early("select holdfast.register_table('', 'shop', 'events')")
