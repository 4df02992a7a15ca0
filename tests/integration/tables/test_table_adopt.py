"""holdfast table adopt: an existing table_context_refs, whole, damaged, large, on both stores."""

import contextlib
import json
import random
import sqlite3

import pytest

import hf
import hf_table
from awaiting import Background, eventually
from hf import HfError, Level, Status
from hf_table import Damaged, adopt, find, refs, register, tables

ROWS = [("app.a", "c1"), ("app.a", "c2"), ("app.b", "c1"), ("main/app.a", "c1"), ("plain", "c9")]


class Legacy:
    """The relation somewhere: legacy.sql(…), with @ for its name, and how to adopt it."""

    def __init__(self, kind, tmp_path):
        self.kind = kind
        self.file = tmp_path / "app.db"
        self.options = {"file": self.file} if kind.local else {}
        if kind.database:
            kind.database.sql("grant all on schema public to app")

    def sql(self, statement, *values):
        statement = statement.replace("@", "table_context_refs")
        if self.kind.local:
            with contextlib.closing(sqlite3.connect(self.file)) as connection, connection:
                return [tuple(row) for row in connection.execute(statement.replace("%s", "?"), values)]
        return self.kind.database.sql(statement, *values, user="app")

    def fill(self, rows, id_column=None):
        extra = f", advisory_id {id_column}" if id_column else ""
        self.sql(f"create table @ (table_name text, context_id text{extra})")
        values = [tuple(row) for row in rows]
        if self.kind.local:
            with contextlib.closing(sqlite3.connect(self.file)) as connection, connection:
                marks = ", ".join("?" * len(values[0]))
                connection.executemany(f"insert into table_context_refs values ({marks})", values)
        else:
            with contextlib.closing(self.kind.database.connect()) as connection, connection.cursor() as cursor:
                names, contexts, *ids = zip(*values)
                cursor.execute("insert into table_context_refs select * from unnest(%s::text[], %s::text[]"
                               + (", %s::bigint[])" if ids else ")"), [list(names), list(contexts), *map(list, ids)])
                connection.commit()

    def rows(self):
        return sorted(self.sql("select table_name, context_id, advisory_id from @"))

    def dump(self):
        """All that an adoption could change."""
        if self.kind.local:
            with contextlib.closing(sqlite3.connect(self.file)) as connection:
                return list(connection.iterdump())
        return (self.sql("select t::text from @ t order by 1"),
                self.sql("select attname, attnotnull from pg_attribute where attrelid = '@'::regclass order by 1"))

    def is_not_null(self):
        if self.kind.local:
            return self.sql("select \"notnull\" from pragma_table_info('@') where name = 'advisory_id'") == [(1,)]
        return self.sql("select attnotnull from pg_attribute where attrelid = '@'::regclass"
                        " and attname = 'advisory_id'") == [(True,)]

    def refuses_null(self):
        try:
            self.sql("insert into @ (table_name, context_id) values ('x', 'y')")
        except Exception as error:
            return "null" in str(error).lower()
        return False


@pytest.fixture
def legacy(recorded, tmp_path):
    return Legacy(recorded, tmp_path)


@contextlib.contextmanager
def local_and_file(tmp_path):
    with hf.Store(f"local:{tmp_path / 'state'}") as store:
        with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as app:
            yield store, app


def damage(store, legacy, **options):
    """The faults as {(table name, context, id): problem}; nothing may have changed."""
    before, registered = legacy.dump(), tables(store, retired_too=True)
    with pytest.raises(Damaged) as caught:
        adopt(store, **legacy.options, **options)
    assert legacy.dump() == before
    assert tables(store, retired_too=True) == registered
    assert "nothing was changed" in caught.value.message
    assert caught.value.hint
    return {fault[1:]: fault[0] for fault in caught.value.faults}


# --- whole ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id_column", [None, "bigint"])
def test_all_rows_of_one_name_get_one_id(store, legacy, id_column):
    legacy.fill([(*row, None) for row in ROWS] if id_column else ROWS, id_column)
    done = adopt(store, **legacy.options)
    assert (done.rows, done.tables, done.minted, done.rows_given, done.references) == (5, 4, 4, 5, 5)
    for name, _, number in legacy.rows():
        assert number == find(store, name) > 0
    assert len({number for _, _, number in legacy.rows()}) == 4
    assert refs(store, "app.a") == ["c1", "c2"]
    assert not done.not_null and not legacy.is_not_null() and not legacy.refuses_null()
    legacy.sql("delete from @ where table_name = 'x'")
    assert adopt(store, **legacy.options, constrain=True).not_null
    assert legacy.is_not_null() and legacy.refuses_null() == legacy.kind.local  # PostgreSQL's rows get an id


def test_ids_that_are_there_are_kept(store, legacy):
    legacy.fill([("app.a", "c1", 71), ("app.a", "c2", None), ("app.b", "c1", None), ("app.b", "c2", 72)], "bigint")
    done = adopt(store, **legacy.options)
    assert (done.minted, done.rows_given) == (0, 2)
    assert legacy.rows() == [("app.a", "c1", 71), ("app.a", "c2", 71), ("app.b", "c1", 72), ("app.b", "c2", 72)]
    assert register(store, "app.a") == (71, False)


def test_it_can_be_repeated(store, legacy):
    legacy.fill(ROWS)
    adopt(store, **legacy.options)
    before = legacy.dump()
    done = adopt(store, **legacy.options)
    assert (done.minted, done.rows_given, done.references) == (0, 0, 0)
    assert legacy.dump() == before
    number, _ = register(store, "app.new")
    legacy.sql("insert into @ values ('app.new', 'c1', %s)", number)
    assert adopt(store, **legacy.options).references == (1 if legacy.kind.local else 0)
    assert refs(store, "app.new") == ["c1"]


def test_a_table_that_is_registered_keeps_its_id(store, legacy):
    number, _ = register(store, "app.a")
    legacy.fill(ROWS)
    assert adopt(store, **legacy.options).minted == 3
    assert find(store, "app.a") == number
    assert ("app.a", "c1", number) in legacy.rows()


def test_names_without_a_database_get_the_one_that_is_given(store, legacy):
    legacy.fill([("events", "c1"), ("app.events", "c2"), ("east/events", "c3")])
    adopt(store, **legacy.options, database="app", cluster="west")
    assert [name for name, *_ in tables(store)] == ["east/app.events", "west/app.events"]
    assert refs(store, "west/app.events") == ["c1", "c2"]
    first, second = [number for name, _, number in legacy.rows() if name != "east/events"]
    assert first == second


def test_names_are_told_apart_by_their_bytes(store, legacy):
    legacy.fill([("app.A", "c"), ("app.a", "c"), ("app.ä", "c"), ("app.a\u0308", "c")])
    assert adopt(store, **legacy.options).tables == 4


def test_a_case_blind_column_does_not_merge_names(tmp_path):
    with local_and_file(tmp_path) as (store, app):
        app.executescript("create table table_context_refs (table_name text collate nocase, context_id text);"
                          "insert into table_context_refs values ('app.T', 'c'), ('app.t', 'c')")
        assert adopt(store, file=tmp_path / "a.db").tables == 2
        assert len(set(app.execute("select advisory_id from table_context_refs"))) == 2


def test_rows_that_are_there_twice_are_one_reference(store, legacy):
    legacy.fill([("app.a", "c1")] * 3 + [("app.a", None), ("app.a", "")])
    done = adopt(store, **legacy.options)
    assert (done.rows, done.rows_given, done.references) == (5, 5, 1)
    assert refs(store, "app.a") == ["c1"]


def test_an_empty_table_gets_its_column(store, legacy):
    legacy.sql("create table @ (table_name text, context_id text)")
    done = adopt(store, **legacy.options, constrain=True)
    assert (done.rows, done.tables) == (0, 0)
    assert legacy.is_not_null()


def test_a_dry_run_changes_nothing(store, legacy):
    legacy.fill(ROWS)
    before = legacy.dump()
    done = adopt(store, **legacy.options, dry_run=True)
    assert (done.rows, done.tables, done.minted, done.rows_given) == (5, 4, 4, 0)
    assert legacy.dump() == before
    assert tables(store) == []


# --- damaged ----------------------------------------------------------------------------------------


def test_a_name_with_two_ids_is_refused_and_its_rows_are_listed(store, legacy):
    legacy.fill([("app.a", "c1", 71), ("app.a", "c2", 72), ("app.a", "c3", None), ("app.b", "c1", 73)], "bigint")
    found = damage(store, legacy)
    assert set(found) == {("app.a", "c1", "71"), ("app.a", "c2", "72"), ("app.a", "c3", None)}
    assert set(found.values()) == {"different ids for one name"}
    legacy.sql("update @ set advisory_id = 71 where table_name = 'app.a'")
    assert adopt(store, **legacy.options).minted == 0


def test_spellings_of_one_table_with_two_ids_are_refused(store, legacy):
    legacy.fill([("t", "c1", 71), ("default.t", "c2", 72)], "bigint")
    assert len(damage(store, legacy)) == 2


@pytest.mark.parametrize("rows, problem", [
    ([(None, "c1", None)], "no table name"),
    ([("app.a", "c1", -5)], "not positive"),
    ([("app.a", "c1", 0)], "not positive"),
    ([("app.a", "c1", 71), ("app.b", "c1", 71)], "is also that of"),
    ([("a'b", "c1", None)], "a quote"),
    ([("a.b.c", "c1", None)], "a dot"),
    ([("x" * 300, "c1", None)], "300 bytes"),
    ([("", "c1", None)], "is empty")])
def test_damaged_rows_are_refused_and_listed(store, legacy, rows, problem):
    legacy.fill([*rows, ("app.fine", "c1", None)], "bigint")
    found = damage(store, legacy)
    assert len(found) == len(rows)
    assert all(problem in text for text in found.values())
    assert damage(store, legacy, dry_run=True) == found


def test_a_context_that_no_reference_can_have_is_refused_and_listed(store, legacy):
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyzäöü", k=3000))
    legacy.fill([("app.a", "c1"), ("app.a", long), ("app.b", "x" * 1000)])
    found = damage(store, legacy)
    assert {row[0] for row in found} == {"app.a"} and set(found.values()) == {"a context id has more than 1000 bytes"}


def test_an_examination_says_whether_adopted_relations_are_followed(store, legacy):
    legacy.fill(ROWS)
    assert "adopted" not in store.examine()
    adopt(store, **legacy.options)
    if legacy.kind.local:
        assert "adopted" not in store.examine()
        return
    assert store.examine()["adopted"] == (Level.OK, "1 followed", "")
    legacy.sql("alter table @ disable trigger user")
    level, text, remedy = store.examine()["adopted"]
    assert level is Level.PROBLEM and "table_context_refs is not followed any more" in text and "adopt" in remedy


def test_a_context_that_was_adopted_can_be_given_up_whatever_is_in_it(store, legacy):
    legacy.fill([("app.a", "c\n\x1b[1m"), ("app.a", "c2")])
    adopt(store, **legacy.options)
    if not legacy.kind.local:
        with pytest.raises(HfError) as caught:
            hf_table.unref(store, "app.a", "c2")
        assert caught.value.status is Status.INVALID and "leave" in caught.value.hint
        legacy.kind.database.sql("drop trigger holdfast_follow on table_context_refs", user="app")
        legacy.kind.database.sql("update holdfast.table_context_refs set followed = null")
    assert hf_table.unref(store, "app.a", "c\n\x1b[1m") is False
    assert refs(store, "app.a") == ["c2"]
    with pytest.raises(HfError):
        hf_table.ref(store, "app.a", "c\n3")


def test_ids_of_other_tables_are_refused(store, legacy):
    taken, _ = register(store, "app.taken")
    gone, _ = register(store, "app.gone")
    hf_table.drop(store, "app.gone")
    legacy.fill([("app.a", "c1", taken), ("app.b", "c1", gone)], "bigint")
    found = damage(store, legacy)
    assert "registered for 'app.taken'" in found["app.a", "c1", str(taken)]
    assert "retired" in found["app.b", "c1", str(gone)]


def test_a_table_gets_the_id_that_its_rows_have(store, other, legacy):
    """The other program locks by it. Who holds the table by the id that it had comes first."""
    number, _ = register(store, "app.moved")
    gone, _ = register(store, "app.back")
    hf_table.drop(store, "app.back")
    hf_table.ref(store, "app.moved", "ours")
    legacy.fill([("app.moved", "c1", 71), ("app.back", "c1", gone)], "bigint")
    assert adopt(store, **legacy.options, dry_run=True).moved == 1
    held = hf_table.lock(other, "app.moved")
    with pytest.raises(HfError) as caught:
        adopt(store, **legacy.options)
    assert caught.value.status is Status.NOT_ACQUIRED and find(store, "app.moved") == number
    adopting = Background(adopt, store, **legacy.options, wait_ms=-1)
    held.end()
    assert adopting.result().moved == 1
    assert (find(store, "app.moved"), find(store, "app.back")) == (71, gone)
    assert refs(store, "app.moved") == ["c1", "ours"]
    assert hf_table.lock(store, "app.moved").key == 71


def faults_of_file(tmp_path, rows):
    """Of a table without types, as SQLite lets be."""
    with local_and_file(tmp_path) as (store, app):
        app.executescript("create table table_context_refs (table_name, context_id, advisory_id);"
                          f"insert into table_context_refs values {rows}")
        with pytest.raises(Damaged) as caught:
            adopt(store, file=tmp_path / "a.db")
        return caught.value.faults


@pytest.mark.parametrize("value", ["'abc'", "1.5", "x'01'"])
def test_ids_of_sqlite_that_are_no_whole_numbers_are_refused(tmp_path, value):
    assert len(faults_of_file(tmp_path, f"('app.a', 'c', {value}), ('app.a', 'd', 5)")) == 2


@pytest.mark.parametrize("name", ["x'6100'", "x'ff'", "7", "cast(x'6100ff' as text)", "cast(x'ff' as text)"])
def test_names_of_sqlite_that_are_no_text_are_refused(tmp_path, name):
    assert [fault[2:] for fault in faults_of_file(tmp_path, f"({name}, 'c', 5)")] == [("c", "5")]


# --- large ------------------------------------------------------------------------------------------


def test_100_000_rows_over_5_000_names_first_damaged_then_repaired(store, legacy):
    pick = random.Random(6)
    names = [f"app.table_{number}" for number in range(5000)]
    kept = {name: 10_000 + place for place, name in enumerate(names) if place % 3 == 0}
    rows = [(name := names[i % 5000], f"context {i // 5000}", kept.get(name) if pick.random() < 0.5 else None)
            for i in range(100_000)]
    bad = {"null": [(None, f"c{i}", None) for i in range(5)], "negative": [("app.minus", "c", -1)],
           "two": [("app.two", "c1", 501), ("app.two", "c2", 502)],
           "shared": [("app.left", "c", 503), ("app.right", "c", 503)]}
    legacy.fill(rows + sum(bad.values(), []) + [rows[0], rows[0]], "bigint")
    found = damage(store, legacy)
    assert sorted(found, key=str) == sorted(
        ((name, context, None if number is None else str(number)) for name, context, number in sum(bad.values(), [])),
        key=str)
    legacy.sql("delete from @ where table_name is null")
    legacy.sql("update @ set advisory_id = null where table_name in ('app.minus', 'app.two', 'app.left', 'app.right')")
    done = adopt(store, **legacy.options)
    assert (done.rows, done.tables) == (100_000 + 5 + 2, 5004)
    assert done.references == 100_000 + 5
    ids = {}
    for name, _, number in legacy.rows():
        ids.setdefault(name, set()).add(number)
    assert all(len(numbers) == 1 for numbers in ids.values())
    assert len(set().union(*ids.values())) == 5004
    settled = {name for name, _, number in rows if number}
    assert all(ids[name] == {kept[name]} for name in settled)
    assert done.minted == 5004 - len(settled)


# --- the relation -----------------------------------------------------------------------------------


def test_sqlite_keeps_indexes_triggers_views_and_odd_definitions(tmp_path):
    definition = """
        create table "Table_Context_Refs" ( -- advisory_id, in a comment
            table_name text check (table_name <> ','),
            context_id text default '),(', /* advisory_id */
            advisory_id_old int default (1 - 2 / 3), advisory_id2 int, advisory_id$ int, advisory_idé int,
            "other_thing" text, "odd""name" text,
            [Advisory_Id] bigint /* note */ unique -- the id
            , extra numeric(10, 2), constraint advisory_id_known check ("Advisory_Id" > 0)
        );"""
    with local_and_file(tmp_path) as (store, app):
        app.executescript(definition + """
            create index by_context on table_context_refs (context_id);
            create view contexts as select context_id, advisory_id from table_context_refs;
            create trigger guard before delete on table_context_refs begin select raise(abort, 'kept'); end;
            insert into table_context_refs (table_name, context_id, extra) values ('app.a', 'c', 1)""")
        assert adopt(store, file=tmp_path / "a.db", constrain=True).not_null
        assert app.execute("select advisory_id from contexts").fetchall() == [(find(store, "app.a"),)]
        assert app.execute("pragma integrity_check").fetchall() == [("ok",)]
        with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
            app.execute("insert into table_context_refs (table_name, context_id) values ('x', 'y')")
        with pytest.raises(sqlite3.IntegrityError, match="kept"):
            app.execute("delete from table_context_refs")
        kept = app.execute("select name from sqlite_schema where type <> 'table' and sql is not null order by 1")
        assert kept.fetchall() == [("by_context",), ("contexts",), ("guard",)]


def test_the_mode_of_somebody_elses_file_stays(tmp_path):
    with local_and_file(tmp_path) as (store, app):
        app.executescript("create table table_context_refs (table_name, context_id)")
        adopt(store, file=tmp_path / "a.db")
        assert app.execute("pragma journal_mode").fetchall() == [("delete",)]


def test_a_crash_between_the_two_files_is_made_good_by_repeating(tmp_path):
    """The ids are in the registry, and the references as they were: it goes on with those ids."""
    with hf.Store(f"local:{tmp_path / 'state'}") as store:
        with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as app:
            app.executescript("create table table_context_refs (table_name text, context_id text);"
                              "insert into table_context_refs values ('app.a', 'c1'), ('app.b', 'c1')")
        before = (tmp_path / "a.db").read_bytes()
        adopt(store, file=tmp_path / "a.db")
        first = tables(store)
        (tmp_path / "a.db").write_bytes(before)
        done = adopt(store, file=tmp_path / "a.db")
        assert (done.minted, done.rows_given, done.references) == (0, 2, 0)
        assert tables(store) == first


def test_postgres_refers_to_the_registry_and_widens_the_column(db):
    with hf.Store(db.url()) as store:
        store.init()
        db.sql("create schema legacy authorization app")
        db.sql("create table legacy.refs (table_name varchar(80), context_id uuid, advisory_id int)", user="app")
        db.sql("insert into legacy.refs values ('app.a', gen_random_uuid(), 71), ('app.b', gen_random_uuid(), null)",
               user="app")
        done = adopt(store, schema="legacy", relation="refs", constrain=True)
        assert done.not_null and done.foreign_key
        assert find(store, "app.a") == 71
        with pytest.raises(Exception, match="foreign key"):
            db.sql("insert into legacy.refs values ('app.c', gen_random_uuid(), 4711)")
        assert adopt(store, schema="legacy", relation="refs", constrain=True).foreign_key
        keys = "select count(*) from pg_constraint where contype = 'f' and conrelid = 'legacy.refs'::regclass"
        assert db.value(keys) == 1
        done = adopt(store, schema="legacy", relation="refs")
        assert done.not_null and not done.foreign_key and db.value(keys) == 0


def test_what_another_program_writes_later_is_followed_and_never_refused(db):
    """Also what makes no sense: it is told with a warning, and the registry stays as it was."""
    with hf.Store(db.url()) as store:
        store.init()
        db.sql("grant all on schema public to app")
        db.sql("create table table_context_refs (table_name text, context_id text)", user="app")
        adopt(store, database="app", cluster="main")
        with contextlib.closing(db.connect()) as connection, connection.cursor() as cursor:
            def insert(*rows):
                connection.notices.clear()
                for row in rows:
                    cursor.execute("insert into table_context_refs values (%s, %s, %s)", row)
                return "".join(connection.notices)

            assert insert(("a", "c1", 71), ("b", "c1", None), ("o'brien", "c1", 72), ("c", "c1", -5)) == ""
            assert [name for name, *_ in tables(store)] == ["main/app.a", "main/app.b"]
            assert find(store, "main/app.a") == 71 and refs(store, "main/app.a") == ["c1"]
            cursor.execute("select advisory_id from table_context_refs where table_name = 'b'")
            assert cursor.fetchone() == (find(store, "main/app.b"),)
            assert "two ids for 'app.a', 71 and 73" in insert(("a", "c2", 73))
            assert "the id 71 of 'app.d' in public.table_context_refs is, or was" in insert(("d", "c1", 71))
            assert find(store, "main/app.a") == 71 and find(store, "main/app.d") == 0
            cursor.execute("update table_context_refs set advisory_id = 74 where (table_name, context_id) = ('a', 'c1')")
            assert find(store, "main/app.a") == 74 and refs(store, "main/app.a") == ["c1"]
            cursor.execute("delete from table_context_refs where table_name = 'a'")
            assert find(store, "main/app.a") == 74 and refs(store, "main/app.a") == []
            assert insert(("a", "c3", 71)) == "" and find(store, "main/app.a") == 71


def test_types_that_run_code_of_their_own_are_not_followed(db):
    """The triggers have the rights of the schema's owner."""
    with hf.Store(db.url()) as store:
        store.init()
        db.sql("grant all on schema public to app")
        db.sql("create domain name_of_table as text", user="app")
        db.sql("create table table_context_refs (table_name name_of_table, context_id text)", user="app")
        with pytest.raises(HfError, match="not of built-in types"):
            adopt(store)


def test_postgres_adopts_what_others_insert_into_meanwhile(db):
    """Writers that are under way are waited for, and their rows are adopted as well."""
    with hf.Store(db.url()) as store:
        store.init()
        db.sql("grant all on schema public to app")
        db.sql("create table table_context_refs (table_name text, context_id text)", user="app")
        with contextlib.closing(db.connect(autocommit=False)) as writer, writer.cursor() as cursor:
            cursor.execute("insert into table_context_refs values ('app.late', 'c1')")
            adopting = Background(adopt, store)
            eventually(lambda: db.value("select count(*) from pg_locks where mode = 'AccessExclusiveLock'"
                                        " and not granted and relation = 'table_context_refs'::regclass"))
            writer.commit()
        assert adopting.result().tables == 1
        assert find(store, "app.late")


def test_registering_and_adopting_at_once_agree(recorded, legacy):
    legacy.fill([(f"app.t{i % 100}", f"c{i}") for i in range(2000)])
    found = {}

    def work():
        with recorded.open() as one:
            for i in range(100):
                found[i] = register(one, f"app.t{i}")[0]

    with recorded.open() as store:
        working = Background(work)
        adopt(store, **legacy.options)
        working.result()
    assert all(number == found[int(name.removeprefix("app.t"))] for name, _, number in legacy.rows())


@pytest.mark.parametrize("columns", ["table_name text", "context_id text", "table_name text, context_id text,"
                                     " advisory_id text"])
def test_postgres_refuses_a_table_of_another_shape(db, columns):
    with hf.Store(db.url()) as store:
        store.init()
        db.sql("grant all on schema public to app")
        db.sql(f"create table table_context_refs ({columns})", user="app")
        with pytest.raises(HfError) as caught:
            adopt(store)
        assert caught.value.status is Status.CONFIG
        assert caught.value.hint


def test_what_is_not_there_is_said(recorded, store, tmp_path):
    if recorded.local:
        cases = [({"file": tmp_path / "none.db"}, Status.CONFIG), ({}, Status.INVALID),
                 ({"file": tmp_path / "state" / "holdfast.db"}, Status.INVALID), ({"file": __file__}, Status.CONFIG)]
        register(store, "a")
    else:
        cases = [({}, Status.CONFIG), ({"relation": "nope"}, Status.CONFIG), ({"file": "x.db"}, Status.INVALID),
                 ({"schema": "holdfast"}, Status.CONFIG), ({"database": "a.b"}, Status.INVALID)]
    for options, status in cases:
        with pytest.raises(HfError) as caught:
            adopt(store, **options)
        assert caught.value.status is status, options


def test_a_table_of_somebody_else_is_refused_with_whom_to_ask(db):
    with hf.Store(db.url()) as store:
        store.init()
        db.sql("create table public.table_context_refs (table_name text, context_id text)")
        with pytest.raises(HfError) as caught:
            adopt(store, schema="public")
        assert caught.value.status is Status.CONFIG
        assert "owner" in caught.value.hint


def test_adopting_needs_the_schema(db):
    with hf.Store(db.url()) as store:
        db.sql("grant all on schema public to app")
        db.sql("create table table_context_refs (table_name text, context_id text)", user="app")
        with pytest.raises(HfError) as caught:
            adopt(store)
        assert caught.value.status is Status.NO_SCHEMA
        assert "holdfast init" in caught.value.hint


# --- the command ------------------------------------------------------------------------------------


def test_the_command_adopts_and_lists_what_is_damaged(holdfast, recorded, store, legacy):
    table = holdfast.at(recorded.url)
    options = ["--file", legacy.file] if recorded.local else []
    legacy.fill([("app.a", "c1", 71), ("app.a", "c2", 72), ("app.b", "c1", None)], "bigint")
    refused = table("table", "adopt", *options)
    assert refused.code == 65
    assert "app.a" in refused.out and "72" in refused.out
    assert "nothing was changed" in refused.err
    faults = json.loads(table("table", "adopt", "--json", *options).out)["faults"]
    assert [(one["context_id"], one["advisory_id"]) for one in faults] == [("c1", "71"), ("c2", "72")]
    legacy.sql("update @ set advisory_id = 71 where context_id = 'c2'")
    assert "1 got a new id" in table("table", "adopt", *options).err
    again = json.loads(table("table", "adopt", "--json", *options).out)
    assert (again["tables"], again["minted"], again["moved"], again["faults"]) == (2, 0, 0, [])
    assert find(store, "app.a") == 71


def test_the_command_shows_contexts_without_obeying_them(holdfast, recorded, store, legacy):
    legacy.fill([("app.a", "c\n\x1b[1m")])
    adopt(store, **legacy.options)
    result = holdfast.at(recorded.url)("table", "show", "app.a")
    assert result.code == 0 and "reference  c\\n\\x1b[1m\n" in result.out, result


def test_postgres_says_why_ids_that_must_differ_are_in_the_way(db):
    db.sql("grant all on schema public to app")
    db.sql("create table table_context_refs (table_name text, context_id text, advisory_id bigint unique)", user="app")
    db.sql("insert into table_context_refs values ('app.a', 'c1'), ('app.a', 'c2')", user="app")
    with hf.Store(db.url()) as store:
        store.init()
        with pytest.raises(HfError) as caught:
            adopt(store)
    assert "table_context_refs_advisory_id_key" in caught.value.message
    assert "all rows of a name get the same id" in caught.value.hint
