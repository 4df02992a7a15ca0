"""contrib/roles.sql: each role can do what its commands need, and is refused all else."""

import contextlib
import json
import subprocess

import psycopg2
import psycopg2.errors
import pytest

import hf
from appending import Appender, make_table, rows_of
from awaiting import Background, eventually
from ledgers import chain, write
from serve import Serve

SCRIPT = hf.ROOT / "contrib/roles.sql"
ROLES = ("locker", "transactor", "ingester", "appender", "viewer")

# All that a role may do to the tables and sequences of the schema, without what it has from another one.
LOCKER = {"sessions": "SIUD", "holders": "SIUD", "waiters": "SIUD", "schedules": "SIUD", "labels": "SIU",
          "events": "SI", "table_registry": "S", "locks": "S", "waits": "S", "held_leases": "S"}
TRANSACTOR = {**LOCKER, "commits": "SI"}
TABLES = {
    "locker": LOCKER,
    "transactor": TRANSACTOR,
    "ingester": TRANSACTOR,
    "appender": {**TRANSACTOR, "table_registry": "SIU", "table_context_refs": "SID", "appends": "SIUD",
                 "machines": "SU"},
    "viewer": {**dict.fromkeys(["labels", "sessions", "holders", "waiters", "events", "schedules", "table_registry",
                                "table_context_refs", "appends", "locks", "waits", "held_leases"], "S"), "contention": "SIU"},
}
# And the functions among those that act with the rights of the schema's owner.
LEASING = {"lift_token", "find_table", "take_leases", "take_traced_leases", "renew_tenure", "release_leases",
           "sweep_leases", "end_tenures"}
FENCING = {"fence", "check_lease", "check_leases"}
FUNCTIONS = {
    "locker": LEASING,
    "transactor": LEASING | FENCING,
    "ingester": LEASING | FENCING,
    "appender": LEASING | FENCING | {"register_table", "mint_id"},
    "viewer": set(),
}
FOR_ALL = {"known_epoch", "current_epoch", "housekeep", "evict", "lease_checkers",
           "end_one_lease"}  # harmless: they tell, do what is due, or look at rights themselves
LETTERS = {"SELECT": "S", "INSERT": "I", "UPDATE": "U", "DELETE": "D", "TRUNCATE": "T", "REFERENCES": "R",
           "TRIGGER": "G", "MAINTAIN": "M"}


def psql(db, *options):
    done = subprocess.run(["psql", "-X", "-q", *options, "-f", SCRIPT, db.url(user="postgres")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done


class Users:
    """One user for each role, who logs in and has nothing else."""

    def __init__(self, db):
        self.db = db
        for role in ROLES:
            db.sql(f"create role {self.name(role)} login in role holdfast_{role}")

    def name(self, role):
        return f"{role}_{self.db.name}"

    def url(self, role):
        return self.db.url(user=self.name(role))

    def sql(self, role, statement, *args):
        return self.db.sql(statement, *args, user=self.name(role))

    def refuses(self, role, *statements):
        for statement in statements:
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                self.sql(role, statement)

    def drop(self):
        for role in ROLES:
            self.db.sql(f"drop owned by {self.name(role)}, holdfast_{role} cascade")
            self.db.sql(f"drop role {self.name(role)}")


@pytest.fixture
def users(recorded_db):
    psql(recorded_db)
    made = Users(recorded_db)
    yield made
    made.drop()


@pytest.fixture
def run(holdfast, users):
    """run("locker", "key", "a"): a command as that role, which must succeed."""
    def run_as(role, *words, code=0, **how):
        done = holdfast.at(users.url(role))(*words, **how)
        assert done.code == code, done
        return done

    return run_as


# --- no more ----------------------------------------------------------------------------------------


def test_each_role_has_exactly_these_rights(users, recorded_db):
    version = recorded_db.value("select current_setting('server_version_num')::int")
    for role in ROLES:
        found = {}
        for table, right in recorded_db.sql(
                "select c.relname, p.word from pg_class c, unnest(%s) p (word)"
                " where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')"
                " and has_table_privilege(%s, c.oid, p.word) order by 1",
                [word for word in LETTERS if version >= 170000 or word != "MAINTAIN"], users.name(role)):
            found[table] = found.get(table, "") + LETTERS[right]
        assert {table: set(rights) for table, rights in found.items()} == {
            table: set(rights) for table, rights in TABLES[role].items()}, role
        functions = {row[0] for row in recorded_db.sql(
            "select proname from pg_proc where pronamespace = 'holdfast'::regnamespace and prosecdef"
            " and has_function_privilege(%s, oid, 'EXECUTE')", users.name(role))}
        assert functions == FUNCTIONS[role] | FOR_ALL, role
        assert not recorded_db.value("select has_schema_privilege(%s, 'holdfast', 'CREATE')"
                                     " or has_database_privilege(%s, current_database(), 'CREATE')"
                                     " or has_function_privilege(%s, 'holdfast.grant_use(regrole)', 'EXECUTE')",
                                     *[users.name(role)] * 3), role


def test_nobody_else_can_use_the_schema(users, recorded_db):
    name = f"nobody_{recorded_db.name}"
    recorded_db.sql(f"create role {name} login")
    for statement in ("select * from holdfast.labels", "select holdfast.fence('a', 1)", "select holdfast.housekeep()"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            recorded_db.sql(statement, user=name)
    recorded_db.sql(f"drop role {name}")


def test_history_markers_and_fences_cannot_be_undone_by_roles(users, run):
    run("locker", "run", "job", "--", "true")
    for role in ROLES:
        users.refuses(role, "delete from holdfast.events", "update holdfast.events set detail = 'x'",
                      "delete from holdfast.commits", "update holdfast.commits set at = now()",
                      "delete from holdfast.fences", "update holdfast.fences set token = 0",
                      "select setval('holdfast.token', 1)", "delete from holdfast.boot",
                      "truncate holdfast.labels", "delete from holdfast.labels", "drop schema holdfast cascade",
                      "create table holdfast.mine (n int)", f"select holdfast.grant_use('{users.name(role)}')",
                      "select holdfast.follow_id('pg_class', '', 'a', 'b', 1)")


def test_housekeeping_is_done_for_those_who_may_not_delete(users, recorded_db):
    recorded_db.sql("insert into holdfast.events (at, event, key, space, shared, token, application, host, pid)"
                    " select now() - a, 'acquired', 1, 0, false, 1, 'a', 'h', 1"
                    " from unnest(array['31 days', '29 days']::interval[]) a")
    users.sql("locker", "select holdfast.housekeep()")
    assert recorded_db.value("select count(*) from holdfast.events") == 1
    recorded_db.sql("update holdfast.events set at = now() - interval '31 days'")
    users.sql("locker", "select holdfast.housekeep()")  # was done a moment ago
    assert recorded_db.value("select count(*) from holdfast.events") == 1


def test_who_could_use_an_older_schema_still_can(db):
    """grant_use of version 3 did not name functions, which were everybody's."""
    name = f"guest_{db.name}"
    for version in (1, 2, 3):
        db.sql((hf.ROOT / f"src/lib/postgres/schema_00{version}.sql").read_text())
    db.sql(f"create role {name} login")
    db.sql(f"select holdfast.grant_use('{name}')")
    hf.install(db.url(user="postgres"))
    with hf.Store(db.url(user=name)) as store:
        assert store.has_records and store.acquire("job", flags=hf.NEED_TOKEN).token > 0
    db.sql("select holdfast.fence('a', 1)", user=name)
    assert db.value("select holdfast.register_table('a.b')", user=name) > 0
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        db.sql(f"select holdfast.grant_use('{name}')", user=name)
    db.sql(f"drop owned by {name} cascade; drop role {name}")


def test_the_script_can_be_run_again(users, recorded_db):
    psql(recorded_db)


# --- enough -----------------------------------------------------------------------------------------


def test_locker(users, run, recorded_db):
    for words in (["job"], ["--shared", "job"], ["--slots", "2", "job"], ["--every", "1h", "job"]):
        run("locker", "run", *words, "--", "true")
    with hf.Store(users.url("locker"), application="first") as store:
        assert store.has_records
        lock = store.acquire("job", flags=hf.NEED_TOKEN)
        assert lock.token > 0
        with hf.Store(users.url("locker")) as other:
            assert "first" in other.refusal("job").message
            waiting = Background(other.acquire, "job", wait_ms=-1)
            eventually(lambda: recorded_db.value("select count(*) from holdfast.waiters"))
            listed = json.loads(run("locker", "locks", "--json").out)
            assert "job" in json.dumps(listed)
            lock.free()
            waiting.result().free()
        traced = store.acquire("leased", lifetime=hf.LEASE, traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
        assert traced.traceparent in [view.traceparent for view in store.locks()]
    run("locker", "key", "job")
    run("locker", "doctor", code=0)
    users.refuses("locker", "select holdfast.fence('a', 1)", "insert into holdfast.commits values (gen_random_uuid())",
                  "select * from holdfast.appends", "select holdfast.register_table('a.b')",
                  "insert into holdfast.table_registry values (1, '', 'a', 'b')")


def test_usage_of_the_schema_is_enough_to_lock_by_sql(recorded_db):
    name = f"caller_{recorded_db.name}"
    recorded_db.sql(f"create role {name} login; grant usage on schema holdfast to {name}")
    with contextlib.closing(recorded_db.connect(name)) as connection, connection.cursor() as cursor:
        cursor.execute("begin; select holdfast.key('a'), holdfast.serialize('a'); commit")
        cursor.execute("select holdfast.try_lock('a'); select holdfast.unlock('a')")
        for statement in ("select * from holdfast.locks", "select * from holdfast.waits",
                          "select * from holdfast.seen_locks", "select holdfast.who_blocks('a')", "select holdfast.note_label('a')",
                          "select holdfast.table_id('', 'a', 'b')", "select holdfast.register_table('', 'a', 'b')"):
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                cursor.execute(statement)
    recorded_db.sql(f"drop owned by {name}; drop role {name}")


@pytest.mark.parametrize("role", ROLES)
def test_sql_functions(users, recorded_db, role):
    recorded_db.sql("select holdfast.register_table('', 'shop', 'events')")
    with contextlib.closing(recorded_db.connect()) as holder, holder.cursor() as cursor:
        cursor.execute("select holdfast.try_lock('job')")
        assert users.sql(role, "select holdfast.try_lock('job')") == [(False,)]
        assert users.sql(role, "select pid from holdfast.who_blocks('job')") == [(holder.info.backend_pid,)]
        assert users.sql(role, "select pid from holdfast.locks") == [(holder.info.backend_pid,)]
        assert users.sql(role, "select * from holdfast.waits") == []
    users.refuses(role, "select * from holdfast.seen_locks")
    if role == "viewer":
        users.refuses(role, "select holdfast.note_label('job')", "select holdfast.table_id('', 'shop', 'events')")
    else:
        users.sql(role, "select holdfast.note_label('job')")
        assert users.sql(role, "select holdfast.table_id('', 'shop', 'events')")[0][0] > 0
    if role == "appender":
        users.sql(role, "select holdfast.register_table('', 'shop', 'orders')")
    else:
        users.refuses(role, "select holdfast.register_table('', 'shop', 'orders')")


def test_transactor(users, run, recorded_db):
    recorded_db.sql("create table public.money (n int); insert into public.money values (0)")
    recorded_db.sql(f"grant select, update on public.money to {users.name('transactor')}")
    run("transactor", "tx", "money", "-c", "update money set n = n + 1")
    assert recorded_db.value("select n from public.money") == 1
    assert recorded_db.value("select count(*) from holdfast.commits") == 1
    users.sql("transactor", "select holdfast.fence('a', 5)")
    with pytest.raises(psycopg2.Error, match="fenced"):
        users.sql("transactor", "select holdfast.fence('a', 4)")
    users.refuses("transactor", "delete from money", "select * from holdfast.appends",
                  "select holdfast.register_table('a.b')")


def test_ingester(users, run, recorded_db, tmp_path):
    psql(recorded_db, "-v", "network=testnet", "-v", f"ingester={users.name('ingester')}")
    source = write(tmp_path / "ledgers.ndjson", chain(1, 30))
    run("ingester", "ingest", "--network", "testnet", "--source", source, "--partition-ledgers", 10)
    assert "30" in run("ingester", "ingest", "status", "--network", "testnet").out
    run("ingester", "gaps", "--network", "testnet", "--verify")
    run("ingester", "cursor", "list", "--network", "testnet")
    run("ingester", "retention", "--network", "testnet", "--keep", "15-ledgers")
    run("ingester", "ingest", "reset", "--network", "testnet", "--to", 25, "--confirm", "testnet")
    # Another network is somebody else's, and there is no room for one without its schema.
    recorded_db.sql("create schema ingest_pubnet")
    users.refuses("ingester", "create schema ingest_mine", "create table ingest_pubnet.ledgers (n int)",
                  "insert into holdfast.appends values ('a', 'b', 'done', '', '', 0)")
    assert run("ingester", "ingest", "--network", "pubnet", "--source", source, code=78)
    assert run("ingester", "ingest", "--network", "mine", "--source", source, code=78)
    users.refuses("locker", "select * from ingest_testnet.ledgers")
    assert json.loads(run("viewer", "ingest", "status", "--json").out)["networks"][0]["latest"] == 25
    users.refuses("viewer", "delete from ingest_testnet.ledgers")


def test_appender(users, run, recorded_db, holdfast, ch):
    make_table(ch)
    append = Appender(holdfast.at(users.url("appender")), ch)
    assert append.done("--id", "one", "t", input=rows_of(1, 20))["rows"] == 20
    assert append.done("--direct", "t", input=rows_of(2, 20))["rows"] == 20
    run("appender", "append", "list")
    run("appender", "table", "register", "app.orders")
    run("appender", "table", "ref", "app.orders", "me")
    run("appender", "table", "list")
    run("appender", "table", "unref", "app.orders", "me")
    run("appender", "table", "register", "app.orders")
    run("appender", "table", "drop", "app.orders")
    users.refuses("appender", "delete from holdfast.table_registry", "create schema ingest_mine",
                  "select holdfast.follow_refs()")
    refused = Appender(holdfast.at(users.url("transactor")), ch)("t", input=rows_of(3, 1))
    assert refused.code == 78 and ch.value("SELECT count() FROM t") == 40, refused


def test_viewer(users, run, recorded_db, holdfast):
    with hf.Store(users.url("locker"), application="keeper") as store:
        lock = store.acquire("night shift")
        eventually(lambda: recorded_db.value("select count(*) from holdfast.holders"))
        (seen,) = json.loads(run("viewer", "locks", "--json").out)["locks"]
        assert (seen["label"], seen["token"]) == ("night shift", lock.token)
        assert "night shift" in run("viewer", "top", "--once").out
        server = Serve(holdfast.at(users.url("viewer")))
        assert "night shift" in server.get("/").text and "keeper" in server.get("/").text
        lock.free()
    eventually(lambda: recorded_db.value("select count(*) from holdfast.events where event = 'released'"))
    eventually(lambda: "released" in server.get("/api/v1/events").text)
    run("viewer", "doctor")
    users.sql("viewer", "insert into holdfast.contention values (now(), 'a', 1, 1, 1, 1)")
    for table in ("holders", "sessions", "waiters", "labels", "events", "schedules", "commits", "appends"):
        users.refuses("viewer", f"delete from holdfast.{table}")
    users.refuses("viewer", "select holdfast.fence('a', 1)", "select nextval('holdfast.token')")
    with contextlib.closing(recorded_db.connect(users.name("locker"))) as stranger:
        users.refuses("viewer", f"select pg_terminate_backend({stranger.info.backend_pid})")


def test_a_viewer_that_locks_gets_a_plain_lock_and_no_token(users):
    """Advisory locks are everybody's who may connect; what can be refused are records."""
    with hf.Store(users.url("viewer")) as store:
        assert not store.has_records
        assert store.refusal("job", flags=hf.NEED_TOKEN).status is hf.Status.NO_SCHEMA
        assert store.acquire("job").state is hf.State.HELD
