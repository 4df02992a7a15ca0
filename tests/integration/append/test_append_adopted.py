"""A deployment that was there first: its own schema, ids and statements, beside ours, before it is adopted, while it
is, after that, and after it was left. It is kolodkin/aaiclick, whose workers append to ClickHouse under advisory locks:
one id for each table, minted by whoever comes first, and kept with the references of its tasks."""

import contextlib
import itertools
import json
import threading
import time

import pytest

import hf
import hf_table
from appending import Feed, counts, make_table, rows_of
from awaiting import Background, eventually

SCHEMA = """
    CREATE TABLE table_context_refs (table_name varchar NOT NULL, context_id bigint NOT NULL,
        advisory_id bigint NOT NULL, PRIMARY KEY (table_name, context_id));
    CREATE TABLE table_pin_refs (table_name varchar NOT NULL, task_id bigint NOT NULL,
        PRIMARY KEY (table_name, task_id));
    CREATE TABLE table_run_refs (table_name varchar NOT NULL, run_id varchar NOT NULL,
        PRIMARY KEY (table_name, run_id));
    CREATE TABLE table_registry (table_name varchar PRIMARY KEY, job_id bigint, task_id bigint, run_id bigint,
        created_at timestamp NOT NULL, schema_doc text);
    CREATE INDEX ix_table_registry_job_id ON table_registry (job_id)"""

LOCK_ONLY = -1  # the context of a table that no task refers to
minted = itertools.count((int(time.time() * 1000) << 22) + (700 << 12))


class Worker:
    """One of its processes. It finds out a table's id once, and remembers it for good."""

    def __init__(self, database):
        self.database = database
        self.known = {}

    @contextlib.contextmanager
    def transaction(self):
        with contextlib.closing(self.database.connect(user="project", autocommit=False)) as connection:
            with connection.cursor() as cursor:
                yield cursor
            connection.commit()

    def _look_up(self, cursor, table):
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [table])
        cursor.execute("SELECT advisory_id FROM table_context_refs WHERE table_name = %s LIMIT 1", [table])
        found = cursor.fetchone()
        return found[0] if found else None

    def _refer(self, cursor, table, context, number):
        cursor.execute("INSERT INTO table_context_refs (table_name, context_id, advisory_id) VALUES (%s, %s, %s)"
                       " ON CONFLICT (table_name, context_id) DO NOTHING", [table, context, number])

    def id_of(self, table):
        if table not in self.known:
            with self.transaction() as cursor:
                number = self._look_up(cursor, table)
                if number is None:
                    number = next(minted)
                    self._refer(cursor, table, LOCK_ONLY, number)
            self.known[table] = number
        return self.known[table]

    def incref(self, table, task, run):
        with self.transaction() as cursor:
            number = self._look_up(cursor, table) or next(minted)
            self._refer(cursor, table, task, number)
            cursor.execute("INSERT INTO table_run_refs (table_name, run_id) VALUES (%s, %s)"
                           " ON CONFLICT (table_name, run_id) DO NOTHING", [table, run])

    def forget(self, *tables):
        """What its background worker does with tables that it has dropped."""
        with self.transaction() as cursor:
            for relation in ("table_context_refs", "table_pin_refs", "table_run_refs", "table_registry"):
                cursor.execute(f"DELETE FROM {relation} WHERE table_name = ANY(%s)", [list(tables)])

    @contextlib.contextmanager
    def insert_lock(self, table, number=None):
        """Around each INSERT into ClickHouse, on a connection of its own."""
        number = number or self.id_of(table)
        with contextlib.closing(self.database.connect(user="project")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [number])
            yield
            cursor.execute("SELECT pg_advisory_unlock(%s)", [number])

    def may_insert(self, table):
        number = self.id_of(table)
        with contextlib.closing(self.database.connect(user="project")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
            return cursor.fetchone()[0]


@pytest.fixture
def deployment(store15, ch):
    """As its first migration leaves it, owned by a role that knows nothing of the schema holdfast."""
    store15.sql("DO $$ BEGIN CREATE ROLE project LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
    store15.sql("CREATE SCHEMA project AUTHORIZATION project")
    store15.sql("ALTER ROLE project IN DATABASE " + store15.name + " SET search_path = project")
    for statement in SCHEMA.split(";"):
        store15.sql(statement, user="project")
    for table in ("p_prices", "p_later", "p_again"):
        make_table(ch, table)
    yield store15
    store15.sql("DROP OWNED BY project")


@pytest.fixture
def table(holdfast, deployment, ch):
    """`holdfast table …` on its relation."""
    def run(verb, *words):
        words = [*words, "--from", "project.table_context_refs"]
        if verb == "adopt":
            words += ["--database", ch.name]
        return holdfast.at(deployment.url(user="postgres"))("table", verb, *words)
    return run


def project_tables(database):
    """Columns, constraints and rights of what it has: what adoption must not change."""
    return (database.sql("SELECT attrelid::regclass::text, attname, atttypid, attnotnull FROM pg_attribute"
                         " WHERE attrelid = 'project.table_context_refs'::regclass AND attnum > 0 ORDER BY 2"),
            database.sql("SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
                         " WHERE conrelid = 'project.table_context_refs'::regclass ORDER BY 1"),
            database.sql("SELECT relacl::text FROM pg_class WHERE oid = 'project.table_context_refs'::regclass"))


def assert_excluded(appender, worker, table, tmp_path, number=itertools.count()):
    """Either waits for the other."""
    before = sum(counts(appender.ch, table).values())
    with worker.insert_lock(table):
        refused = appender("-w", "200ms", table, input=rows_of(1000 + next(number), 10))
        assert refused.code == 75, refused
    feed = Feed(tmp_path / f"rows{next(number)}")
    ours = appender.start("--direct", table, feed.path)
    feed.write(rows_of(1000 + next(number), 1))
    key = worker.id_of(table)
    eventually(lambda: worker.database.holders(key), 20, "the append has the table")
    assert not worker.may_insert(table)
    feed.end()
    assert ours.wait(20) == 0
    assert sum(counts(appender.ch, table).values()) == before + 1
    assert worker.may_insert(table)


def test_both_sides_exclude_each_other_for_as_long_as_it_is_adopted(deployment, table, appender15, ch, tmp_path):
    one, two = Worker(deployment), Worker(deployment)
    with one.insert_lock("p_prices"):
        ch.sql("INSERT INTO p_prices SELECT 1, number FROM numbers(10)")
    two.incref("p_prices", 4711, "run-1")
    assert two.id_of("p_prices") == one.id_of("p_prices")
    before = project_tables(deployment)

    looked = table("adopt", "--dry-run")
    assert looked.code == 0 and "2 rows name 1 tables, 0 of which would get a new id" in looked.err, looked
    assert deployment.value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'holdfast%%'") == 0
    assert deployment.value("SELECT count(*) FROM holdfast.table_registry") == 0

    assert table("adopt").code == 0
    assert project_tables(deployment) == before
    assert_excluded(appender15, one, "p_prices", tmp_path)

    # Tables that come later: first theirs, then one that we had first.
    assert_excluded(appender15, Worker(deployment), "p_later", tmp_path)
    ours = appender15.done("p_again", input=rows_of(1, 1))["key"]
    theirs = Worker(deployment)
    assert theirs.id_of("p_again") != ours
    assert appender15.done("p_again", input=rows_of(2, 1))["key"] == theirs.id_of("p_again")
    assert_excluded(appender15, theirs, "p_again", tmp_path)

    # Dropped and made again.
    for how in ("sentinel", "task"):
        old = Worker(deployment).id_of("p_later")
        one.forget("p_later")
        again = Worker(deployment)
        if how == "task":
            again.incref("p_later", 4712, "run-2")
        assert again.id_of("p_later") != old
        assert_excluded(appender15, again, "p_later", tmp_path)

    assert table("adopt").code == 0  # it can be repeated
    assert_excluded(appender15, again, "p_later", tmp_path)
    assert table("leave").code == 0
    assert project_tables(deployment) == before
    assert deployment.value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'holdfast%%'") == 0
    for name in ("p_prices", "p_later", "p_again"):
        assert_excluded(appender15, Worker(deployment), name, tmp_path)
    Worker(deployment).id_of("p_after")
    one.forget("p_after", "p_prices")
    assert table("leave").code == 78


def test_a_table_made_again_waits_for_who_holds_it(deployment, table, appender15, ch, tmp_path):
    """Our append has the table by the id that it had when its row is deleted and a new one is minted."""
    worker = Worker(deployment)
    old = worker.id_of("p_again")
    assert table("adopt").code == 0
    feed = Feed(tmp_path / "rows")
    ours = appender15.start("--direct", "p_again", feed.path)
    feed.write(rows_of(1, 1))
    eventually(lambda: deployment.holders(old), 20, "the append has the table")
    worker.forget("p_again")
    again = Worker(deployment)
    registering = Background(again.id_of, "p_again")
    eventually(lambda: deployment.waiters(old), 20, "its program waits")
    assert again.known == {}
    feed.end()
    assert ours.wait(20) == 0
    assert registering.result() != old
    assert appender15.done("p_again", input=rows_of(2, 1))["key"] == registering.result()


def test_who_comes_first_does_not_matter(deployment, table, ch):
    """Processes of both sides meet at tables that nobody has registered yet, while it is adopted again and again."""
    assert table("adopt").code == 0
    inside, overlaps, stop = {}, [], threading.Event()

    @contextlib.contextmanager
    def alone(name, who):
        if inside.setdefault(name, who) != who:
            overlaps.append((name, who, inside[name]))
        deployment.sql("SELECT 1")  # time in which somebody else could come in
        yield
        inside.pop(name, None)

    def theirs():
        for number in range(40):
            with Worker(deployment).insert_lock(f"p_race{number}"), alone(number, "theirs"):
                pass

    def ours():
        with hf.Store(deployment.url()) as store:
            for number in range(40):
                lock = hf_table.lock(store, f"{ch.name}.p_race{number}", wait_ms=-1)
                with alone(number, "ours"):
                    pass
                lock.end()

    def adopting():
        while not stop.is_set():
            assert table("adopt").code == 0

    again = Background(adopting)
    both = [Background(side) for side in (theirs, ours, theirs, ours)]
    for side in both:
        side.result(60)
    stop.set()
    again.result(60)
    assert overlaps == []
    assert deployment.sql("""SELECT c.table_name FROM project.table_context_refs c LEFT JOIN holdfast.table_registry r
        ON r.table_name = c.table_name AND r.dropped_at IS NULL
        WHERE r.advisory_id IS DISTINCT FROM c.advisory_id""") == []


def test_its_temporary_tables_leave_nothing_behind(deployment, table, ch):
    worker = Worker(deployment)
    assert table("adopt").code == 0
    names = [f"t_{number}" for number in range(50)]
    for name in names:
        worker.incref(name, 4711, "run")
    assert deployment.value("SELECT count(*) FROM holdfast.table_registry") == 50
    worker.forget(*names)
    assert deployment.value("SELECT count(*) FROM holdfast.table_registry") == 0
    worker.incref("p_kept", 4711, "run")
    deployment.sql("TRUNCATE table_context_refs", user="project")
    assert deployment.value("SELECT count(*) FROM holdfast.table_context_refs") == 0
    assert Worker(deployment).id_of("p_kept") == deployment.value(
        "SELECT holdfast.find_table(%s)", f"{ch.name}.p_kept")


def test_a_program_can_register_and_look_up_in_sql(deployment, table, ch):
    """A foreign key is for those that do: they ask for an id before they refer to it."""
    deployment.sql("SELECT holdfast.grant_use('project')")
    name = f"{ch.name}.p_new"
    assert deployment.value("SELECT holdfast.find_table(%s)", name, user="project") is None
    number = deployment.value("SELECT holdfast.register_table(%s)", name, user="project")
    assert deployment.value("SELECT holdfast.register_table(%s, 71)", name, user="project") == number > 2**60
    assert deployment.value("SELECT holdfast.find_table(%s)", name, user="project") == number
    assert deployment.value("SELECT holdfast.register_table('p_given', 71)", user="project") == 71
    assert deployment.value("SELECT holdfast.register_table('main/app.p_other')", user="project") > number
    for bad in ("a.b.c", "o'brien", "", "/a.b", " a", "x" * 201):
        with pytest.raises(Exception, match="is no name of a shared table"):
            deployment.sql("SELECT holdfast.register_table(%s)", bad, user="project")
    with pytest.raises(Exception, match="that of another table"):
        deployment.sql("SELECT holdfast.register_table('p_more', 71)", user="project")
    assert table("adopt", "--constrain").code == 0
    with pytest.raises(Exception, match="foreign key"):
        deployment.sql("INSERT INTO table_context_refs VALUES ('p_mine', 1, 4711)", user="project")
    deployment.sql("INSERT INTO table_context_refs VALUES ('p_new', 1, %s)", number, user="project")
    assert table("leave").code == 0
    deployment.sql("INSERT INTO table_context_refs VALUES ('p_mine', 1, 4711)", user="project")


def test_a_relation_that_is_not_followed_any_more_is_told(deployment, table, holdfast, ch):
    """Its program has made it anew, or somebody has taken the triggers away."""
    def doctor():
        found = json.loads(holdfast.at(deployment.url())("doctor", "--json").out)["findings"]
        return [(one["level"], one["text"]) for one in found if one["topic"] == "adopted"]

    worker = Worker(deployment)
    worker.id_of("p_prices")
    assert doctor() == []
    assert table("adopt").code == 0
    assert doctor() == [("ok", "1 followed")]
    deployment.sql("ALTER TABLE table_context_refs DISABLE TRIGGER USER", user="project")
    worker.forget("p_prices")
    again = Worker(deployment).id_of("p_prices")
    [(level, text)] = doctor()
    assert level == "problem" and "table_context_refs is not followed any more" in text
    deployment.sql("ALTER TABLE table_context_refs ENABLE TRIGGER USER", user="project")
    assert "0 got a new id, 1 the id of their rows" in table("adopt").err
    assert deployment.value("SELECT holdfast.find_table(%s)", f"{ch.name}.p_prices") == again

    deployment.sql("DROP TABLE table_context_refs", user="project")
    deployment.sql(SCHEMA.split(";")[0], user="project")
    assert [level for level, _ in doctor()] == ["warning"]
    anew = Worker(deployment).id_of("p_prices")
    assert table("adopt").code == 0 and doctor() == [("ok", "1 followed")]
    assert deployment.value("SELECT holdfast.find_table(%s)", f"{ch.name}.p_prices") == anew
