"""`holdfast locks` and the list behind it: ours and strangers', held and waited for."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import zlib

import pytest

import cli
import hf
import hf_registry
import servers
from awaiting import Background, eventually, stays
from hf import FOREVER, SHARED


def locks(holdfast, database, *options):
    done = holdfast.at(database.url())("locks", "--json", *options)
    assert done.code == 0, done
    return json.loads(done.out)["locks"]


def one(rows, **wanted):
    found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    assert len(found) == 1, (wanted, rows)
    return found[0]


def test_our_lock_is_shown_with_all_that_is_known(holdfast, recorded_db):
    with hf.Store(recorded_db.url(), application="night shift") as store:
        lock = store.acquire("nightly")
        # A lock is recorded once it has been held for a moment.
        eventually(lambda: one(locks(holdfast, recorded_db), key=lock.key)["token"])
        row = one(locks(holdfast, recorded_db), key=lock.key)
        backend, = recorded_db.holders(lock.key)
        assert row["label"] == "nightly"
        assert row["mode"] == "exclusive" and row["state"] == "held"
        assert row["application"] == "night shift"
        assert row["host"] == socket.gethostname()
        assert row["pid"] == os.getpid()
        assert row["backend_pid"] == backend
        assert row["token"] == lock.token
        assert row["recorded"] is True
        assert row["lifetime"] == "session"
        assert 0 <= row["age_ms"] < 60000 and row["age_is_bound"] is False
        lock.end()
        assert not [row for row in locks(holdfast, recorded_db) if row["label"] == "nightly"]


def test_strangers_lock_is_shown_with_a_bound_on_its_age(holdfast, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("set application_name = 'psql by hand'")
        cursor.execute("select pg_advisory_lock(-42), pg_advisory_lock_shared(1, -2)")
        rows = locks(holdfast, db)
        row = one(rows, key=-42)
        assert row["application"] == "psql by hand"
        assert row["backend_pid"] == stranger.info.backend_pid
        assert row["recorded"] is False and row["label"] is None and row["token"] is None
        assert row["age_ms"] is None or row["age_is_bound"] is True
        pair = one(rows, pair=[1, -2])
        assert pair["mode"] == "shared"


def test_waiter_is_shown_with_whom_it_waits_for(holdfast, recorded_db):
    with hf.Store(recorded_db.url()) as store, hf.Store(recorded_db.url()) as other:
        lock = store.acquire("nightly")
        backend, = recorded_db.holders(lock.key)
        waiter = Background(other.acquire, "nightly", FOREVER)
        for seconds in (0.3, 3):  # queued, and then in its long wait
            stays(lambda: waiter.running, seconds)
            row = one(eventually(lambda: locks(holdfast, recorded_db, "--waiting")), key=lock.key)
            assert row["state"] == "waiting"
            assert row["label"] == "nightly"
            assert row["blocked_by"] == [backend]
        lock.end()
        waiter.result()
        eventually(lambda: locks(holdfast, recorded_db, "--waiting") == [])


def test_strangers_that_wait_are_shown(holdfast, db):
    with contextlib.closing(db.connect()) as first, contextlib.closing(db.connect()) as second:
        with first.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(7)")
        with second.cursor() as cursor:
            waiting = Background(cursor.execute, "select pg_advisory_lock(7)")
            eventually(lambda: db.waiters(7))
            row = one(locks(holdfast, db, "--waiting"), key=7)
            assert row["backend_pid"] == second.info.backend_pid
            assert row["blocked_by"] == [first.info.backend_pid]
            first.close()
            waiting.result()


def test_only_locks_of_this_database_are_shown(holdfast, pg, db):
    with contextlib.closing(pg.connect("postgres")) as elsewhere, elsewhere.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(7)")
        assert locks(holdfast, db) == []


def test_label_pattern_selects(holdfast, recorded_db):
    with hf.Store(recorded_db.url()) as store:
        store.acquire(["report:daily", "report:weekly", "backup"])
        shown = {row["label"] for row in locks(holdfast, recorded_db, "--label", "report:*")}
        assert shown == {"report:daily", "report:weekly"}


@pytest.mark.parametrize("label", ["Zürich", "emoji:🔒", "quote'd", 'dou"ble', "back\\slash", "a, b"])
def test_labels_with_odd_characters_survive(holdfast, recorded, label):
    with recorded.open() as store:
        lock = store.acquire(label)
        done = holdfast.at(recorded.url)("locks", "--json")
        assert one(json.loads(done.out)["locks"], key=lock.key)["label"] == label
        assert holdfast.at(recorded.url)("locks").code == 0


def test_table_for_people(holdfast, recorded):
    with recorded.open(application="night shift") as store:
        lock = store.acquire("nightly")
        # A lock is recorded once it has been held for a moment.
        eventually(lambda: str(lock.token) in holdfast.at(recorded.url)("locks").out)
        done = holdfast.at(recorded.url)("locks")
        assert done.code == 0
        row, = [line for line in done.out.splitlines() if "nightly" in line]
        for text in (str(lock.key), "exclusive", "held", "night shift", str(os.getpid()), str(lock.token)):
            assert text in row


def test_no_locks_is_said_and_no_failure(holdfast, recorded):
    done = holdfast.at(recorded.url)("locks")
    assert done.code == 0
    assert "no advisory locks" in done.err


def test_shared_slots_and_sets_are_shown(holdfast, recorded):
    with recorded.open() as store, recorded.open() as other:
        store.acquire("shared", mode=SHARED)
        other.acquire("shared", mode=SHARED)
        store.acquire(["a", "b"])
        slot = store.acquire("pool", slots=3)
        rows = json.loads(holdfast.at(recorded.url)("locks", "--json").out)["locks"]
        assert [row["mode"] for row in rows if row["label"] == "shared"] == ["shared", "shared"]
        assert {"a", "b"} <= {row["label"] for row in rows}
        assert [row["slot"] for row in rows if row["label"] == "pool" and row["slot"]] == [slot.slot]


def test_local_locks_name_holder_and_waiter(holdfast, tmp_path):
    url = f"local:{tmp_path / 'state'}"
    command = holdfast.at(url)
    holder = command.hold("nightly")
    waiter = command.start("run", "nightly", "--", "true")
    waiter.await_line("waiting", "err")

    def both():
        rows = json.loads(command("locks", "--json").out)["locks"]
        return len([row for row in rows if row["label"] == "nightly"]) == 2 and rows

    rows = eventually(both)
    assert one(rows, state="held")["pid"] == holder.pid
    assert one(rows, state="waiting")["pid"] == waiter.pid
    assert one(rows, state="waiting")["blocked_by"] == [holder.pid]
    assert one(rows, state="held")["application"] == "sh (holdfast run)"


def test_killed_holder_is_not_shown(holdfast, recorded):
    command = holdfast.at(recorded.url)
    holder = command.hold("nightly")
    holder.kill9()
    eventually(lambda: json.loads(command("locks", "--json").out)["locks"] == [])


def test_watch_goes_on_until_interrupted(holdfast, recorded):
    command = holdfast.at(recorded.url)
    watch = command.start("locks", "--watch=100ms", "--json")
    first = json.loads(watch.await_line("{"))
    assert first["locks"] == []
    with recorded.open() as store:
        store.acquire("nightly")
        watch.await_line("nightly")
    watch.signal(signal.SIGINT)
    assert watch.wait() == 0


def test_watch_sees_the_lock_go(holdfast, recorded):
    command = holdfast.at(recorded.url)
    with recorded.open() as store:
        lock = store.acquire("nightly")
        watch = command.start("locks", "--watch=100ms", "--json")
        watch.await_line("nightly")
        lock.end()
        watch.await_line('"locks":[]')
    watch.signal(signal.SIGTERM)
    assert watch.wait() == 0


def test_list_shows_rights_of_others_without_failing(holdfast, recorded_db):
    """A role that may not look into the schema still sees every lock, without labels."""
    recorded_db.sql("do $$ begin create role visitor login; exception when duplicate_object then end $$")
    recorded_db.sql("revoke all on schema holdfast from public")
    with hf.Store(recorded_db.url()) as store:
        lock = store.acquire("nightly")
        done = holdfast.at(recorded_db.url(user="visitor"))("locks", "--json")
        assert done.code == 0, done
        assert one(json.loads(done.out)["locks"], key=lock.key)


# --- names from the registry ---------------------------------------------------------------------------

LOCKS = [
    "name: idempotency-cleanup, key: { fixed: 42424242 }",
    "name: two-numbers, key: { pair: [7, -8] }",
    "name: nightly, key: { pattern: 'Report:nightly' }",
    "name: booking-create, key: { pattern: 'Booking:{tenant}:{date}', as: fnv1a32-js }",
    "name: rebuild, key: { pattern: 'Rebuild:{region}', as: hashtextextended }, placeholders: { region: [eu, us] }",
    "name: shard, key: { class: -3, pattern: 'Shard:{n}', as: hashtext }, placeholders: { n: '[0-9]' }",
]


@pytest.fixture
def registry(tmp_path):
    return hf_registry.write(tmp_path, LOCKS)


def named(rows):
    return {(row["name"], row["label"]) for row in rows}


def test_strangers_locks_get_the_registrys_names(holdfast, db, registry):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(42424242), pg_advisory_lock(7, -8), pg_advisory_lock(4711),"
                       " pg_advisory_lock(hashtextextended('Rebuild:us', 0)),"
                       " pg_advisory_lock(-3, hashtext('Shard:4')), pg_advisory_lock(%s)",
                       [hf.derive("Report:nightly")])
        rows = locks(holdfast, db, "--registry", registry)
        assert named(rows) == {
            ("idempotency-cleanup", None), ("two-numbers", None), (None, None), ("rebuild", "Rebuild:us"),
            ("shard", "Shard:4"), ("nightly", "Report:nightly")}
        assert one(rows, key=4711)["registered"] is False
        assert one(rows, name="rebuild")["registered"] is True
        assert one(rows, name="rebuild")["pattern"] == "Rebuild:{region}"
        assert one(rows, name="idempotency-cleanup")["pattern"] is None


def test_recorded_label_is_named_only_if_the_key_is_the_patterns(holdfast, recorded, registry):
    command = holdfast.at(recorded.url)
    with recorded.open() as store:
        store.acquire(("Booking:7:2026-01-15", hf.Derivation.FNV1A32_JS))
        store.acquire("Booking:8:2026-01-15")  # by sha256: another key than the registry says
        store.acquire((-3, hf.derive("Shard:5", hf.Derivation.HASHTEXT)))
        store.acquire("Elsewhere:1")
        rows = json.loads(command("locks", "--json", "--registry", registry).out)["locks"]
        assert named(rows) == {("booking-create", "Booking:7:2026-01-15"), (None, "Booking:8:2026-01-15"),
                               ("shard", "Shard:5"), (None, "Elsewhere:1")}


def test_registry_that_lies_above_the_working_folder_is_used(holdfast, recorded, registry, tmp_path):
    (tmp_path / "deep").mkdir()
    with recorded.open() as store:
        store.acquire(42424242)
        done = holdfast.at(recorded.url)("locks", cwd=tmp_path / "deep")
        row, = [line for line in done.out.splitlines() if "42424242" in line]
        assert row.startswith("idempotency-cleanup ")
        switched_off = holdfast.at(recorded.url)("locks", cwd=tmp_path / "deep",
                                                 env={"HOLDFAST_REGISTRY": ""})
        assert switched_off.out.startswith("LABEL ")
        assert "idempotency" not in switched_off.out


def test_unregistered_key_is_marked_in_the_table(holdfast, recorded, registry):
    with recorded.open() as store:
        store.acquire(4711)
        done = holdfast.at(recorded.url)("locks", "--registry", registry)
        assert done.out.startswith("NAME ")
        row, = [line for line in done.out.splitlines() if "4711" in line]
        assert row.startswith("(unregistered) ")


def test_without_a_registry_nothing_is_said_of_names(holdfast, recorded):
    with recorded.open() as store:
        store.acquire(4711)
        row, = json.loads(holdfast.at(recorded.url)("locks", "--json").out)["locks"]
        assert not {"name", "registered", "pattern", "idle_ms", "end_statement"} & set(row)


def test_names_select_as_labels_do(holdfast, recorded, registry):
    with recorded.open() as store:
        store.acquire([42424242, 4711])
        command = holdfast.at(recorded.url)
        done = command("locks", "--json", "--registry", registry, "--label", "idem*")
        assert [row["key"] for row in json.loads(done.out)["locks"]] == [42424242]
        done = command("locks", "--json", "--registry", registry, "--label", "47*")
        assert [row["key"] for row in json.loads(done.out)["locks"]] == [4711]


def test_holder_of_a_slot_is_named_as_its_semaphore(holdfast, recorded, registry):
    with recorded.open() as store:
        slot = store.acquire("Report:nightly", slots=2)
        done = holdfast.at(recorded.url)("locks", "--json", "--registry", registry)
        row, = json.loads(done.out)["locks"]
        assert (row["name"], row["slot"], row["key"]) == ("nightly", slot.slot, slot.key)


def test_faulty_registry_is_refused_before_anything_is_shown(holdfast, recorded, tmp_path):
    (tmp_path / "locks.yaml").write_text("version: 1\nlocks:\n  - { name: a, key: { fixed: x } }\n")
    done = holdfast.at(recorded.url)("locks", "--registry", tmp_path / "locks.yaml")
    assert done.code == 78 and done.out == ""
    assert "locks.yaml:3:" in done.err


def on_terminal(command, columns, *args):
    """What the command shows on a terminal of this width, line by line."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    started = subprocess.Popen([cli.program(), *map(str, args)], stdin=its, stdout=its,
                               stderr=subprocess.DEVNULL, env=command.environment({"LANG": "C.UTF-8"}))
    os.close(its)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal's output is an error
        while data := os.read(ours, 65536):
            shown += data
    os.close(ours)
    started.wait(20)
    return shown.decode().splitlines()


@pytest.mark.parametrize("options", [[], ["--leaks", "0"]])
def test_names_are_whole_and_lines_unbroken_on_a_narrow_terminal(holdfast, recorded, registry, options):
    with recorded.open(application="a worker with a long name") as store:
        store.acquire([42424242, "Elsewhere:with:a:very:long:label:indeed"])
        command = holdfast.at(recorded.url)
        lines = on_terminal(command, 80, "locks", "--registry", registry, *options)
        assert max(map(len, lines)) <= 80
        assert {line.split()[0] for line in lines} == {"NAME", "idempotency-cleanup", "(unregistered)"}
        wide = on_terminal(command, 300, "locks", "--registry", registry, *options)
        assert "Elsewhere:with:a:very:long:label:indeed" in "".join(wide)
        assert "HOST" in wide[0] and "APPLICATION" in wide[0]


def test_labels_that_differ_at_their_ends_are_told_apart_on_a_narrow_terminal(holdfast, recorded):
    with recorded.open(application="worker") as store:
        store.acquire(["ingest:stellar-mainnet:partition-2026-01", "ingest:stellar-mainnet:partition-2026-02"])
        head, *lines = on_terminal(holdfast.at(recorded.url), 80, "locks")
        assert max(map(len, lines)) <= 80
        assert sorted(line.split()[0][-3:] for line in lines) == ["-01", "-02"]
        assert all("…" in line for line in lines)


def test_label_that_would_turn_the_line_around_is_escaped(holdfast, recorded):
    with recorded.open() as store:
        store.acquire("safe\u202edne")
        done = holdfast.at(recorded.url)("locks")
        assert "safe\\u202edne" in done.out and "\u202e" not in done.out


def test_numbers_of_64_bits_come_as_text_too(holdfast, recorded):
    with recorded.open() as store:
        lock = store.acquire("nightly")
        command = holdfast.at(recorded.url)
        row = eventually(lambda: next((row for row in json.loads(command("locks", "--json").out)["locks"]
                                       if row["token"]), None))
        assert (row["key_text"], row["token_text"]) == (str(lock.key), str(lock.token))
        row, = json.loads(command("top", "--once", "--json").out)["locks"]
        assert row["key_text"] == str(lock.key)
        keys = json.loads(command("key", "--json", "nightly").out)["keys"]
        assert keys[0]["key_text"] == str(lock.key)


# --- leaks ---------------------------------------------------------------------------------------------


def leaks(holdfast, url, time, *options):
    done = holdfast.at(url)("locks", "--json", "--leaks", time, *options)
    rows = json.loads(done.out)["locks"]
    assert done.code == (1 if rows else 0), done
    return rows


def test_idle_sessions_lock_is_a_leak_and_the_statement_ends_it(holdfast, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(7)")
        row, = leaks(holdfast, db.url(), "0")
        assert row["key"] == 7
        assert row["lifetime"] == "session" and row["recorded"] is False
        assert row["idle_ms"] >= 0
        assert row["end_statement"] == f"SELECT pg_terminate_backend({stranger.info.backend_pid});"
        db.sql(row["end_statement"])
        eventually(lambda: not db.holders(7))
    assert leaks(holdfast, db.url(), "0") == []


def test_leak_must_have_been_idle_for_as_long(holdfast, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(7)")
        done = holdfast.at(db.url())("locks", "--leaks", "1h")
        assert (done.code, done.out) == (0, "")
        assert "no idle session has held a session lock for 1 h" in done.err
        eventually(lambda: leaks(holdfast, db.url(), "300ms"))


def test_transaction_in_progress_is_no_leak(holdfast, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("begin; select pg_advisory_xact_lock(7); select pg_advisory_lock(8)")
        assert leaks(holdfast, db.url(), "0") == []
        cursor.execute("commit")
        assert [row["key"] for row in leaks(holdfast, db.url(), "0")] == [8]


def test_statement_in_progress_is_no_leak(holdfast, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        pid = stranger.info.backend_pid
        running = Background(cursor.execute, "select pg_advisory_lock(7), pg_sleep(600)")
        eventually(lambda: db.holders(7))
        assert leaks(holdfast, db.url(), "0") == []
        db.sql("select pg_cancel_backend(%s)", pid)
        with pytest.raises(Exception, match="canceling"):
            running.result()
        # It survives the error, as session locks do, and the session is idle now.
        assert [row["key"] for row in eventually(lambda: leaks(holdfast, db.url(), "0"))] == [7]


def test_our_lock_is_listed_by_its_exact_age(holdfast, recorded, registry):
    with recorded.open(application="night shift") as store:
        lock = store.acquire(42424242)
        row, = eventually(lambda: leaks(holdfast, recorded.url, "100ms", "--registry", registry))
        assert row["name"] == "idempotency-cleanup"
        assert row["recorded"] is True and row["age_is_bound"] is False
        assert row["age_ms"] >= 100
        if recorded.local:
            assert row["end_statement"] == f"kill {os.getpid()}"
        else:
            backend, = recorded.database.holders(lock.key)
            assert row["end_statement"] == f"SELECT pg_terminate_backend({backend});"
        assert leaks(holdfast, recorded.url, "1h") == []
        done = holdfast.at(recorded.url)("locks", "--leaks", "0", "--registry", registry)
        assert done.code == 1
        assert "idempotency-cleanup" in done.out and row["end_statement"] in done.out
        assert "loses every lock that it holds" in done.err
        lock.end()


def test_waiter_is_no_leak(holdfast, recorded):
    with recorded.open() as store, recorded.open() as other:
        lock = store.acquire("nightly")
        waiter = Background(other.acquire, "nightly", FOREVER)
        eventually(lambda: json.loads(holdfast.at(recorded.url)("locks", "--json", "--waiting").out)["locks"])
        assert [row["state"] for row in leaks(holdfast, recorded.url, "0")] == ["held"]
        lock.end()
        waiter.result().end()


def test_what_a_role_may_not_see_is_said(holdfast, pg, db):
    pg.sql("create role onlooker login")
    try:
        with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(7)")
            done = holdfast.at(db.url(user="onlooker"))("locks", "--leaks", "0")
            assert (done.code, done.out) == (0, "")
            assert "1 held lock is left out" in done.err and "pg_read_all_stats" in done.err
            pg.sql("grant pg_read_all_stats to onlooker")
            done = holdfast.at(db.url(user="onlooker"))("locks", "--leaks", "0")
            assert done.code == 1 and "left out" not in done.err
    finally:
        pg.sql("drop role onlooker")


@pytest.mark.parametrize("other", [["--watch"], ["--waiting"]])
def test_leaks_goes_with_neither_watch_nor_waiting(holdfast, other):
    done = holdfast("locks", "--leaks", "1m", *other)
    assert done.code == 64
    assert "--leaks" in done.err


@pytest.mark.parametrize("records", [False, True])
def test_prepared_transactions_lock_is_shown_and_no_leak(holdfast, template15, records):
    with servers.Postgres.copy_of(template15, "prepared", "max_prepared_transactions = 2\n") as server:
        database = server.start().create_database()
        if records:
            hf.install(database.url())
        with contextlib.closing(database.connect()) as stranger, stranger.cursor() as cursor:
            cursor.execute("begin; select pg_advisory_xact_lock(7); prepare transaction 'left behind'")
        with contextlib.closing(database.connect()) as second, second.cursor() as cursor:
            waiting = Background(cursor.execute, "select pg_advisory_lock(7)")
            eventually(lambda: database.waiters(7))
            rows = locks(holdfast, database)
            held = one(rows, key=7, state="held")
            assert held["application"] == "a prepared transaction"
            assert (held["lifetime"], held["backend_pid"]) == ("transaction", None)
            assert one(rows, key=7, state="waiting")["blocked_by"] == [0]
            assert leaks(holdfast, database.url(), "0") == []
            with contextlib.closing(database.connect()) as third, third.cursor() as other:
                other.execute("rollback prepared 'left behind'")
            waiting.result()


def crc(text):
    return zlib.crc32(text.encode())


def well_known(database):
    """The calls by which each program takes its lock, as its source has it."""
    return {
        "Prisma Migrate": "pg_advisory_lock(72707369)",
        "goose": "pg_advisory_lock(4097083626)",
        "node-pg-migrate": "pg_advisory_lock(7241865325823964)",
        "tern": "pg_advisory_lock(9628173550095224)",
        "Kysely migrations": "pg_advisory_lock(3853314791062309107)",
        "Rails migrations": f"pg_advisory_lock({2053462845 * crc(database)})",
        "sqlx migrations": f"pg_advisory_lock({0x3D32AD9E * crc(database)})",
        "golang-migrate": f"pg_advisory_lock({crc(chr(0).join(['public', 'schema_migrations', database])) * 1486364155 % 2**32})",
        # Java's hash of "public"."flyway_schema_history", with the quotes
        "Flyway": f"pg_advisory_lock({0x466C79776179 + 2125624436})",
        # of databasechangeloglock and of public
        "Liquibase (sessionlock)": "pg_advisory_lock(-1497367772, -977423767)",
        "pg_partman run_maintenance": "pg_advisory_lock(hashtext('pg_partman run_maintenance'))",
        "pg_partman partition_data_proc": "pg_advisory_lock(hashtext('pg_partman partition_data_proc'), hashtext('t'))",
    }


def test_locks_of_well_known_programs_are_named_and_marked_as_a_guess(holdfast, db, tmp_path):
    database = db.sql("select current_database()")[0][0]
    calls = well_known(database)
    registry = hf_registry.write(tmp_path, ["name: mine, key: { fixed: 72707369 }"])
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(4711), " + ", ".join(calls.values()))
        rows = json.loads(holdfast.at(db.url())("locks", "--json").out)["locks"]
        assert sorted(row["known_as"] for row in rows if row["known_as"]) == sorted(calls)
        assert [row["key"] for row in rows if not row["known_as"]] == [4711]
        assert "(Prisma Migrate?)" in holdfast.at(db.url())("locks").out
        assert "(Flyway?)" in holdfast.at(db.url())("top", "--once").out
        named = json.loads(holdfast.at(db.url())("locks", "--json", "--registry", registry).out)["locks"]
        row, = [row for row in named if row["key"] == 72707369]
        assert (row["name"], row["known_as"]) == ("mine", None)
