"""Keys, the registry, shared tables, networks, schedules, and the library itself."""

import os
import subprocess
import sys

import pytest

import holdfast
from conftest import POOLED, session_locks


# --- keys -------------------------------------------------------------------------------------------------


def test_keys_are_those_of_the_command(label):
    shown = subprocess.run([os.environ["HOLDFAST_COMMAND"], "key", label], capture_output=True, text=True, timeout=20)
    assert str(holdfast.key(label)) in shown.stdout
    assert str(holdfast.key(label, "hashtext")) in shown.stdout


def test_a_key_is_split_as_pg_locks_shows_it():
    for number in (0, 1, -1, 1 << 40, -(1 << 63), (1 << 63) - 1):
        high, low = holdfast.split(number)
        assert 0 <= high < 1 << 32 and 0 <= low < 1 << 32 and holdfast.join(high, low) == number
    with pytest.raises(holdfast.InvalidError):
        holdfast.key("x", "no such derivation")
    with pytest.raises(holdfast.InvalidError):
        holdfast.key(5)


# --- the registry and the environment -------------------------------------------------------------------------


@pytest.fixture
def registry(tmp_path):
    path = tmp_path / "locks.yaml"
    path.write_text("version: 1\nlocks:\n"
                    "  - name: booking\n    key: { pattern: \"Booking:{tenant}:{date}\", as: hashtext }\n"
                    "    purpose: one booking at a time\n    owner: shop\n")
    return path


def test_the_registry_gives_labels_and_their_keys(open_store, registry, label):
    store = open_store(registry=registry)
    booking = store.label("booking", tenant="t7", date="2026-01-15")
    assert booking == "Booking:t7:2026-01-15"
    if not POOLED:
        with store.lock(booking, wait=0) as lock:
            assert lock.key == holdfast.key(booking, "hashtext")
    for name, values in (("booking", {"tenant": 7}), ("no such", {}), (None, {})):
        with pytest.raises(holdfast.InvalidError):
            store.label(name, **values)


def test_without_a_registry_there_are_no_names(store):
    with pytest.raises(holdfast.InvalidError, match="registry"):
        store.label("booking")


def test_without_a_url_the_store_is_found_as_the_command_finds_it(url, registry, monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", url)
    monkeypatch.setenv("HOLDFAST_REGISTRY", str(registry))
    with holdfast.Store() as store:
        assert store.label("booking", tenant="a", date="b") == "Booking:a:b"


@pytest.mark.parametrize("options", [{"url": 5}, {"url": "a\0b"}, {"records": 7}, {"max_waits": "2"}, {"machine": 5000},
                                     {"connect_timeout": -1}, {"registry": "/nowhere/locks.yaml"}], ids=str)
def test_a_store_that_cannot_be_is_refused(tmp_path, options):
    with pytest.raises(holdfast.Error):
        holdfast.Store(**{"url": f"local:{tmp_path}", **options})


def test_a_server_that_is_not_there_is_unreachable():
    with pytest.raises(holdfast.UnreachableError) as gone:
        holdfast.Store("postgresql://nobody@127.0.0.1:1/none", connect_timeout=2)
    assert isinstance(gone.value, ConnectionError)


# --- shared tables --------------------------------------------------------------------------------------------


@session_locks
def test_a_table_has_one_id_by_which_it_is_locked(store, other, label, records):
    table = "shop." + label.replace(":", "_")
    number = store.register_table(table)
    assert other.register_table(table) == other.find_table(table) == number
    with store.table_lock(table) as lock:
        assert lock.key == number
        with pytest.raises(holdfast.NotAcquiredError):
            other.table_lock(table, wait=0)
    assert [(one.id, one.references) for one in store.tables() if one.name == table] == [(number, 0)]
    assert store.ref_table(table, "context") == number
    assert store.table_references(table) == ["context"]
    with pytest.raises(holdfast.InvalidError):
        store.drop_table(table, wait=0)
    assert store.unref_table(table, "context", wait=5) is True
    assert store.find_table(table) is None
    for bad in ("", "a'b", None, "a.b.c.d"):
        with pytest.raises(holdfast.InvalidError):
            store.table_lock(bad, wait=0)


# --- networks, schedules, the schema ----------------------------------------------------------------------------


def test_cursors_move_only_from_where_they_should_be(store, label, records):
    network = store.network("n" + label[-12:])
    assert network.get("latest") is None and network.cursors() == {}
    network.set("latest", 5)
    network.advance("latest", 6)
    for move in (lambda: network.advance("latest", 8), lambda: network.swap("latest", 1, 2),
                 lambda: network.set_min("missing", 1)):
        with pytest.raises(holdfast.CursorError):
            move()
    network.swap("latest", 6, 10)
    network.set_min("latest", 9)
    assert network.cursors() == {"latest": 9}
    assert network.gaps() == []
    for bad in (lambda: network.set("latest", "x"), lambda: network.set(None, 1), lambda: store.network("No!")):
        with pytest.raises(holdfast.InvalidError):
            bad()


def test_a_job_is_due_once_in_its_period(store, label, records):
    assert store.claim(label, 3600) == (True, 0)
    due, left = store.claim(label, 3600)
    assert not due and 3500 < left <= 3600
    with pytest.raises(holdfast.InvalidError):
        store.claim(label, 0)


def test_the_store_can_be_examined(store):
    found = store.examine()
    assert found and all(one.topic and one.text for one in found)
    assert store.name and "secret" not in store.name


# --- the library --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path, says", [("/nowhere/libholdfast.so", "cannot be loaded"), ("libc.so.6", "too old")])
def test_a_library_that_is_missing_or_too_old_is_told_with_the_way_out(path, says):
    code = ("import holdfast\n"
            "try:\n    holdfast.Store('local:/nowhere')\n"
            "except holdfast.LibraryError as error:\n    print(error.message, '|', error.hint)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30,
                          env={**os.environ, "HOLDFAST_LIBRARY": path, "PYTHONPATH": os.path.dirname(
                              os.path.dirname(holdfast.__file__))})
    message, _, hint = done.stdout.partition("|")
    assert says in message and "HOLDFAST_LIBRARY" in hint, done


def test_a_process_that_ends_with_open_locks_ends_well(url, label):
    code = ("import holdfast, sys, threading\n"
            "store = holdfast.Store(sys.argv[1])\n"
            "waits = threading.Event()\n"
            "def hold(tx):\n    tx.query('select 1')\n    waits.set()\n    threading.Event().wait()\n"
            "threading.Thread(target=store.transact, args=(hold, sys.argv[2]), daemon=True).start()\n"
            "assert waits.wait(20)\nprint('done')")
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code, url, label], capture_output=True,
                          text=True, timeout=40, env={**os.environ, "PYTHONPATH": os.path.dirname(
                              os.path.dirname(holdfast.__file__))})
    assert done.returncode == 0 and done.stdout == "done\n" and "Fatal" not in done.stderr, done


def test_a_lease_excludes_as_a_lock_does(store, other, label):
    with pytest.raises(holdfast.InvalidError):
        store.lock(label, lease=0)
    try:
        lease = store.lock(label, lease=5)
    except holdfast.NoSchemaError:
        pytest.skip("leases need the schema")
    with lease:
        assert lease.token > 0
        with pytest.raises(holdfast.NotAcquiredError):
            other.lock(label, lease=5, wait=0)
    other.lock(label, lease=5, wait=0).release()
