"""`holdfast registry seen`: what the store holds and has recorded, against the registry."""

import contextlib
import json
import pathlib
import sqlite3

import pytest

import hf
import hf_registry
import servers
from awaiting import Background, eventually
from hf import FOREVER

LOCKS = [
    "name: cleanup, key: { fixed: 42424242 }, lifetime: session",
    "name: nightly, key: { pattern: 'Report:nightly' }, lifetime: session",
    "name: booking, key: { pattern: 'Booking:{tenant}' }, lifetime: transaction",
    "name: payout, key: { fixed: 42424243 }, lifetime: transaction",
    "name: forgotten, key: { fixed: 99999999 }",
]


@pytest.fixture
def registry(tmp_path):
    return hf_registry.write(tmp_path, LOCKS)


@pytest.fixture
def seen(holdfast, registry):
    """seen(url, …) gives the JSON, after checking that the exit code says the same."""

    def ask(url, *options):
        done = holdfast.at(url)("registry", "seen", "--json", "--registry", registry, *options)
        assert done.code in (0, 1), done
        answer = json.loads(done.out)
        assert done.code == (1 if answer["unregistered"] else 0), done
        return answer

    return ask


def recorded_times(seen, recorded, key):
    """Events are written a second after the fact."""
    rows = seen(recorded.url)["unregistered"]
    return sum(row["times"] for row in rows if row["key"] == key)


def backdate(recorded, hours):
    """As if everything had been recorded so long ago."""
    if recorded.local:
        path = pathlib.Path(recorded.url.removeprefix("local:")) / "holdfast.db"
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as db, db:
            db.execute("update events set at_ms = at_ms - ? * 3600000", [hours])
            db.execute("update labels set seen_ms = seen_ms - ? * 3600000", [hours])
    else:
        recorded.database.sql("update holdfast.events set at = at - %s * interval '1 hour'", hours)
        recorded.database.sql("update holdfast.labels set seen = seen - %s * interval '1 hour'", hours)


def test_strangers_key_is_unregistered_and_told_with_who_has_it(seen, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(4711), pg_advisory_lock(1, 2), pg_advisory_lock(42424242)")
        answer = seen(db.url())
        assert answer["keys"] == 3
        row, = answer["unknown"]  # it may be a booking
        assert (row["key"], row["application"], row["held"], row["seen_ms"]) == (4711, "test", True, 0)
        pair, = answer["unregistered"]
        assert pair["pair"] == [1, 2]


def test_only_registered_locks_is_a_success(holdfast, seen, recorded, registry):
    with recorded.open() as store:
        store.acquire([42424242, "Report:nightly"])
        assert seen(recorded.url)["unregistered"] == []
        done = holdfast.at(recorded.url)("registry", "seen", "--registry", registry)
        assert done.code == 0
        assert "2 keys seen: 0 unregistered" in done.err


def test_strangers_key_that_may_be_a_label_of_a_pattern_is_unknown(holdfast, seen, db, tmp_path, registry):
    key = hf.derive("Booking:7")
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(%s)", [key])
        answer = seen(db.url())
        assert answer["unregistered"] == []
        assert [(row["key"], row["may_be"]) for row in answer["unknown"]] == [(key, ["booking"])]
        done = holdfast.at(db.url())("registry", "seen", "--registry", registry)
        assert done.code == 0 and "1 unknown" in done.err and "unknown" in done.out
        assert holdfast.at(db.url())("registry", "seen", "--strict", "--registry", registry).code == 1


@pytest.mark.parametrize("key, lock, unknown", [
    (2**40, "key: { pattern: 'Job:{n}', as: fnv1a32 }", False),  # beyond 32 bits
    (-5, "key: { pattern: 'Job:{n}', as: fnv1a32 }", True),
    (2**40, "key: { pattern: 'Job:{n}' }", True),
    (2**40, "key: { pattern: 'Job:{n}' }, placeholders: { n: '[0-9]{5}' }", False),  # has an end
    (2**40, "key: { class: 256, pattern: 'Job:{n}', as: hashtext }", False),  # another space
])
def test_a_key_that_no_pattern_can_have_is_unregistered(holdfast, db, tmp_path, key, lock, unknown):
    path = hf_registry.write(tmp_path, [f"name: job, {lock}"], name="one.yaml")
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(%s)", [key])
        done = holdfast.at(db.url())("registry", "seen", "--json", "--registry", path)
    answer = json.loads(done.out)
    assert (len(answer["unregistered"]), len(answer["unknown"])) == ((0, 1) if unknown else (1, 0))
    assert done.code == (0 if unknown else 1)


def test_a_label_far_back_in_a_finite_pattern_is_known(holdfast, db, tmp_path):
    path = hf_registry.write(tmp_path, ["name: job, key: { pattern: 'Job:{n}' }, placeholders: { n: '[0-9]{6}' }"],
                             name="one.yaml")
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(%s)", [hf.derive("Job:999999")])
        done = holdfast.at(db.url())("registry", "seen", "--json", "--registry", path)
    assert (done.code, json.loads(done.out)["unknown"]) == (0, [])


def test_old_records_lifetime_is_not_told_of_a_new_holder(seen, recorded):
    with recorded.open(application="night shift") as store:
        store.acquire(42424243).end()
    if recorded.local:  # there lifetimes say nothing
        eventually(lambda: seen(recorded.url)["keys"] == 1)
        assert seen(recorded.url)["wrong_lifetimes"] == []
        return
    eventually(lambda: seen(recorded.url)["wrong_lifetimes"])
    backdate(recorded, 2)
    with contextlib.closing(recorded.database.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("begin; select pg_advisory_xact_lock(42424243)")
        row, = seen(recorded.url)["wrong_lifetimes"]
        assert (row["application"], row["held"]) == ("night shift", False)
        assert row["seen_ms"] >= 2 * 3600000
        assert seen(recorded.url, "--since", "1h")["wrong_lifetimes"] == []


def test_recorded_key_is_told_after_its_release(seen, recorded):
    with recorded.open(application="night shift") as store:
        for _ in range(3):
            store.acquire("Elsewhere:1").end()
    eventually(lambda: recorded_times(seen, recorded, hf.derive("Elsewhere:1")) == 3)
    row, = seen(recorded.url)["unregistered"]
    assert row["label"] == "Elsewhere:1"
    assert row["application"] == "night shift"
    assert row["held"] is False and row["seen_ms"] < 60000


def test_since_leaves_out_what_is_older(seen, recorded):
    with recorded.open() as store:
        store.acquire("Elsewhere:1").end()
        store.acquire("Report:nightly").end()
    eventually(lambda: recorded_times(seen, recorded, hf.derive("Elsewhere:1")) == 1)
    backdate(recorded, 2)
    assert seen(recorded.url, "--since", "1h")["keys"] == 0
    answer = seen(recorded.url, "--since", "3h")
    assert answer["since_ms"] == 3 * 3600000
    assert [row["label"] for row in answer["unregistered"]] == ["Elsewhere:1"]
    assert 2 * 3600000 <= answer["unregistered"][0]["seen_ms"] < 3 * 3600000
    assert seen(recorded.url)["since_ms"] is None


def test_what_is_held_counts_however_old_its_record(seen, recorded):
    with recorded.open() as store:
        store.acquire("Elsewhere:1")
        eventually(lambda: recorded_times(seen, recorded, hf.derive("Elsewhere:1")) == 1)
        backdate(recorded, 2)
        row, = seen(recorded.url, "--since", "1h")["unregistered"]
        assert row["held"] is True and row["label"] == "Elsewhere:1"


def test_every_lock_of_a_set_is_seen(seen, recorded):
    with recorded.open() as store:
        store.acquire(["Elsewhere:1", "Elsewhere:2", "Elsewhere:3"]).end()
    assert {row["label"] for row in eventually(lambda: seen(recorded.url)["unregistered"])} == {
        "Elsewhere:1", "Elsewhere:2", "Elsewhere:3"}


def test_unused_entries_are_told_by_what_is_recorded(seen, recorded):
    with recorded.open() as store:
        store.acquire("Report:nightly").end()
        store.acquire("Booking:7").end()
    eventually(lambda: seen(recorded.url)["keys"] == 2)
    assert [entry["name"] for entry in seen(recorded.url)["unused"]] == ["cleanup", "payout", "forgotten"]


def test_fixed_key_without_a_label_is_in_the_history(seen, recorded):
    with recorded.open() as store:
        store.acquire(42424242).end()
    eventually(lambda: seen(recorded.url)["keys"] == 1)
    assert "cleanup" not in [entry["name"] for entry in seen(recorded.url)["unused"]]


def test_without_anything_recorded_no_entry_is_called_unused(holdfast, seen, recorded, registry):
    assert seen(recorded.url)["unused"] is None
    done = holdfast.at(recorded.url)("registry", "seen", "--registry", registry)
    assert (done.code, done.out) == (0, "")
    assert "nothing is recorded yet" in done.err


def test_without_the_schema_only_what_is_held_is_compared(holdfast, seen, db, registry):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(4711)")
        answer = seen(db.url())
        assert answer["records"] is False and answer["unused"] is None
        assert [row["key"] for row in answer["unknown"]] == [4711]
        done = holdfast.at(db.url())("registry", "seen", "--registry", registry)
        assert done.code == 0
        assert "only what is held now" in done.err


def test_session_lock_under_a_label_for_transactions_is_a_wrong_lifetime(seen, recorded):
    with recorded.open() as store:
        store.acquire("Booking:7").end()
        store.acquire("Report:nightly").end()
    eventually(lambda: seen(recorded.url)["keys"] == 2)
    wrong = seen(recorded.url)["wrong_lifetimes"]
    if recorded.local:  # there a transaction holds its labels by session locks
        assert wrong == []
        return
    row, = wrong
    assert (row["name"], row["label"]) == ("booking", "Booking:7")
    assert (row["registered_lifetime"], row["lifetime"]) == ("transaction", "session")


def test_idle_stranger_proves_a_wrong_lifetime_and_one_in_a_transaction_does_not(seen, db):
    registry_key = 42424243
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("begin; select pg_advisory_lock(%s)", [registry_key])
        assert seen(db.url())["wrong_lifetimes"] == []
        cursor.execute("commit")
        row, = seen(db.url())["wrong_lifetimes"]
        assert (row["name"], row["registered_lifetime"], row["lifetime"]) == (
            "payout", "transaction", "session")


def test_prepared_transaction_proves_a_wrong_lifetime(seen, template15):
    with servers.Postgres.copy_of(template15, "prepared", "max_prepared_transactions = 2\n") as server:
        database = server.start().create_database()
        with contextlib.closing(database.connect()) as stranger, stranger.cursor() as cursor:
            cursor.execute("begin; select pg_advisory_xact_lock(42424242); prepare transaction 'x'")
            row, = seen(database.url())["wrong_lifetimes"]
            assert (row["name"], row["registered_lifetime"], row["lifetime"]) == (
                "cleanup", "session", "transaction")
            cursor.execute("rollback prepared 'x'")


def test_slots_of_a_semaphore_are_not_keys_of_their_own(seen, recorded):
    with recorded.open() as store, recorded.open() as other:
        first, second = store.acquire("Report:nightly", slots=3), other.acquire("Report:nightly", slots=3)
        assert seen(recorded.url)["unregistered"] == []
        first.end()
        second.end()
    answer = eventually(lambda: seen(recorded.url)["unused"] and seen(recorded.url))
    assert (answer["keys"], answer["unregistered"]) == (1, [])


def test_waiting_leaves_no_keys_of_its_own(seen, kind):
    with kind.open() as store, kind.open() as other:
        lock = store.acquire("Report:nightly")
        waiter = Background(other.acquire, "Report:nightly", FOREVER)
        if kind.local:
            eventually(lambda: any(view.waiting for view in store.locks()))
        else:  # it sleeps: its companion key is held
            eventually(lambda: any(row[2] == 1213156420 for row in kind.database.advisory_locks()))
        options = ["--session-pool"] if kind.kind == "pgbouncer-session" else []
        answer = seen(kind.url, *options)
        assert (answer["keys"], answer["unregistered"]) == (1, [])
        lock.end()
        waiter.result().end()


def test_table_for_people_has_a_row_for_each_finding(holdfast, recorded, registry):
    with recorded.open(application="night shift") as store:
        store.acquire("Elsewhere:1")
        store.acquire("Booking:7").end()

        def table():
            done = holdfast.at(recorded.url)("registry", "seen", "--registry", registry)
            return done if "unused" in done.out else None

        done = eventually(table)
        assert done.code == 1
        rows = [line.split() for line in done.out.splitlines()]
        assert rows[0][:3] == ["FINDING", "NAME", "LABEL"]
        row, = [line for line in done.out.splitlines() if line.startswith("unregistered")]
        for text in ("Elsewhere:1", str(hf.derive("Elsewhere:1")), "night shift", "now"):
            assert text in row
        assert {row[1] for row in rows if row[0] == "unused"} == {"cleanup", "nightly", "payout", "forgotten"}
        assert len([row for row in rows if row[0] == "wrong"]) == (0 if recorded.local else 1)
        assert "1 unregistered" in done.err


def test_past_list_of_the_library_is_one_view_per_key(recorded):
    with recorded.open(application="night shift") as store:
        for _ in range(2):
            store.acquire("a").end()
        store.acquire((5, -6)).end()
        views = eventually(lambda: len(store.past()) == 2 and store.past())
        eventually(lambda: sum(view.times for view in store.past()) == 3)
        one, pair = store.past()
        assert (one.label, one.times, one.space, one.application) == ("a", 2, hf.BIGINT, "night shift")
        assert (pair.key, pair.space, pair.times) == ((5 << 32) | (2**32 - 6), hf.PAIR, 1)
        assert not any(view.waiting or view.name or view.age_ms != -1 for view in views)


def test_past_needs_records(db15):
    with hf.Store(db15.url()) as store:
        with pytest.raises(hf.HfError) as failure:
            store.past()
        assert failure.value.status == hf.Status.NO_SCHEMA
        assert "holdfast init" in failure.value.hint


def test_reading_the_past_costs_no_lock(recorded):
    with recorded.open() as store:
        lock = store.acquire("a")
        store.past()
        assert lock.state == hf.State.HELD
        lock.end()


def test_a_registry_is_needed(holdfast, recorded, tmp_path):
    done = holdfast.at(recorded.url)("registry", "seen", cwd=tmp_path)
    assert done.code == 78
    assert "no registry" in done.err
