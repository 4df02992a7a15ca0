"""`holdfast locks` and the list behind it: ours and strangers', held and waited for."""

import contextlib
import json
import os
import signal
import socket

import pytest

import hf
from awaiting import Background, eventually, stays
from hf import FOREVER, SHARED


@pytest.fixture
def recorded_db(db):
    with hf.Store(db.url()) as store:
        store.init()
    return db


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
        eventually(lambda: one(locks(holdfast, recorded_db), key=lock.key)["token"], 5)
        # The record follows the grant at once, but nobody waits for it.
        eventually(lambda: one(locks(holdfast, recorded_db), key=lock.key)["token"], 3)
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
            row = one(locks(holdfast, recorded_db, "--waiting"), key=lock.key)
            assert row["state"] == "waiting"
            assert row["label"] == "nightly"
            assert row["blocked_by"] == [backend]
        lock.end()
        waiter.result()
        assert locks(holdfast, recorded_db, "--waiting") == []


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
        eventually(lambda: str(lock.token) in holdfast.at(recorded.url)("locks").out, 5)
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
    assert one(rows, state="held")["application"] == "holdfast run"


def test_killed_holder_is_not_shown(holdfast, recorded):
    command = holdfast.at(recorded.url)
    holder = command.hold("nightly")
    holder.signal(signal.SIGKILL)
    holder.wait()
    eventually(lambda: json.loads(command("locks", "--json").out)["locks"] == [], 5)


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
