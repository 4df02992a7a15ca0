"""What a store does with a registry: derivations, order and lifetimes, the same on every store."""

import contextlib
import threading

import pytest

import hf
import hf_registry
import hf_tx
from hf import ANY_ORDER, FOREVER, TRANSACTION, Derivation, Status, Store
from stores import new_tx_kind

LOCKS = [
    "name: cleanup, key: { fixed: 42424242 }, order: 30, lifetime: session",
    "name: pair, key: { pair: [7, 8] }, order: 20",
    "name: booking, key: { pattern: 'booking:{tenant}', as: fnv1a32-js }, order: 10",
    "name: classed, key: { class: 7, pattern: 'job:{id}', as: hashtext }, order: 5",
    "name: transfer, key: { pattern: 'Transfer:{from}:{to}' }, lifetime: transaction",
    "name: minted, key: { pattern: 'table:{name}', as: minted }",
    "name: wide, key: { pattern: 'x:{rest}' }",
    "name: narrow, key: { pattern: 'x:1{rest}', as: fnv1a64 }",
]


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    path = hf_registry.write(tmp_path_factory.mktemp("registry"), LOCKS)
    with hf_registry.registry(path) as read:
        yield read


@pytest.fixture
def store(kind, registry):
    with kind.open(registry=registry) as opened:
        yield opened


# --- keys ---------------------------------------------------------------------------------------------


def test_a_name_locks_its_number(store):
    with store.acquire("cleanup") as lock:
        assert lock.key == 42424242


def test_a_label_is_derived_as_its_pattern_says(store):
    with store.acquire("booking:7") as lock:
        assert lock.key == hf.derive("booking:7", Derivation.FNV1A32_JS)


def test_a_label_that_the_registry_does_not_know_is_derived_as_ever(store):
    with store.acquire("elsewhere") as lock:
        assert lock.key == hf.derive("elsewhere")


@pytest.mark.parametrize("derivation, label, key", [
    ("with-advisory-lock", "foobar", (519446421, 0)),
    ("distributedlock-ascii", "foobar", (-843088340, 1017118719)),
    ("crc32", "foobar", -1628037227),
    ("java-hashcode", "foobar", -1268878963),
    ("distributedlock-hash", "wallet-backend-ingest-testnet", 4315959299063927819),
])
def test_labels_exclude_the_programs_of_other_libraries(kind, tmp_path, derivation, label, key):
    path = hf_registry.write(tmp_path, [f"name: theirs, key: {{ pattern: '{label}', as: {derivation} }}",
                                        "name: open, key: { pattern: 'Open:{x}', as: with-advisory-lock }"])
    with hf_registry.registry(path) as read, kind.open(registry=read) as store, kind.open() as stranger:
        with store.acquire("theirs"):
            assert stranger.refusal(key).status is Status.NOT_ACQUIRED
        store.acquire("Open:1").end()


def test_a_strict_registry_refuses_what_it_does_not_have(kind, tmp_path):
    path = hf_registry.write(tmp_path, LOCKS)
    path.write_text("strict: true\n" + path.read_text())
    with hf_registry.registry(path) as strict, kind.open(registry=strict) as store:
        for target in ("elsewhere", 42424243, (7, 9)):
            error = store.refusal(target)
            assert error.status is Status.CONFIG and "strict" in error.message
        store.acquire("booking:7").end()
        store.acquire(42424242).end()


def test_a_program_without_the_registry_that_derives_alike_is_excluded(kind, store):
    with kind.peer() as stranger, store.acquire("booking:7"):
        assert stranger.refusal(hf.derive("booking:7", Derivation.FNV1A32_JS)).status is Status.NOT_ACQUIRED


def test_a_label_with_a_class_excludes_the_same_two_numbers(store):
    pair = (7, hf.derive("job:1", Derivation.HASHTEXT))
    with store.acquire("job:1"):
        assert store.refusal(pair).status is Status.NOT_ACQUIRED


def test_another_derivation_than_the_registrys_is_refused(store):
    error = store.refusal(("booking:7", Derivation.FNV1A64))
    assert error.status is Status.CONFIG
    assert "fnv1a64" in error.message and "fnv1a32-js" in error.message and "booking" in error.message


def test_a_label_that_two_locks_claim_is_refused_with_both_names(store):
    error = store.refusal("x:12")
    assert error.status is Status.CONFIG
    assert "wide" in error.message and "narrow" in error.message


def test_the_name_of_a_pattern_is_no_label(store):
    error = store.refusal("booking")
    assert error.status is Status.INVALID
    assert "tenant" in error.hint


def test_a_minted_key_is_not_computed(kind, store):
    assert store.refusal("table:events").status is (Status.INVALID if kind.records else Status.NO_SCHEMA)


def test_name_and_number_of_one_lock_in_one_set_are_one_key(store):
    with store.acquire(["cleanup", 42424242]) as lock:
        assert lock.key == 42424242


# --- order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait_ms", [0, FOREVER])
def test_a_lock_of_a_smaller_order_is_refused_while_another_is_held(store, wait_ms):
    with store.acquire("cleanup"):
        error = store.refusal("booking:7", wait_ms)
    assert error.status is Status.ORDER
    assert "'booking:7' (order 10)" in error.message and "'cleanup' (order 30)" in error.message
    assert error.hint


def test_a_lock_of_a_greater_order_may_follow_whatever_its_key(store):
    with store.acquire("booking:7"), store.acquire((7, 8)), store.acquire("cleanup"):
        pass


def test_the_order_holds_for_numbers_and_classes_too(store):
    with store.acquire(42424242):
        assert store.refusal((7, 8)).status is Status.ORDER
        assert store.refusal("job:1").status is Status.ORDER


def test_a_lock_without_an_order_comes_after_all_that_have_one(store):
    with store.acquire("cleanup"), store.acquire("elsewhere"):
        pass
    with store.acquire("elsewhere"):
        error = store.refusal("cleanup")
    assert error.status is Status.ORDER
    assert "no order" in error.message


def test_within_one_order_the_keys_decide_and_only_about_waits(store):
    labels = sorted(["booking:1", "booking:2"], key=lambda label: hf.derive(label, Derivation.FNV1A32_JS))
    with store.acquire(labels[1]):
        assert store.refusal(labels[0], FOREVER).status is Status.ORDER
        store.acquire(labels[0], 0).free()


def test_any_order_makes_it_a_warning_that_names_both(store):
    with store.acquire("cleanup"):
        store.acquire("booking:7", flags=ANY_ORDER).free()
    assert any("'booking:7'" in text and "'cleanup'" in text for _, text in store.logged)


def test_the_order_is_each_threads_own(store):
    taken = []
    with store.acquire("cleanup"):
        thread = threading.Thread(target=lambda: taken.append(store.acquire("booking:7")))
        thread.start()
        thread.join()
    assert len(taken) == 1
    taken[0].free()


def test_a_release_ends_a_locks_part_in_the_order(store):
    store.acquire("cleanup").end()
    store.acquire("booking:7").free()


def test_a_set_is_taken_in_the_order_of_the_registry(kind, registry, store):
    """Who takes the parts one by one, in that order, never meets a set that goes the other way."""
    with kind.open(registry=registry) as other, contextlib.ExitStack() as held:
        held.enter_context(other.acquire("booking:7"))
        taken = []
        waits = threading.Event()
        thread = threading.Thread(target=lambda: taken.append(
            store.acquire(["cleanup", "booking:7"], FOREVER, on_wait=lambda _: waits.set())))
        thread.start()
        assert waits.wait(20)
        held.enter_context(other.acquire("cleanup", 20000))
        held.close()
        thread.join(20)
        assert len(taken) == 1
        taken[0].free()


# --- lifetimes ----------------------------------------------------------------------------------------


def test_a_lent_connection_takes_a_transaction_lock_where_the_registry_says_so(db, conn, registry):
    with Store.borrow(conn, registry=registry) as lent:
        conn.sql("begin")
        lent.acquire("Transfer:a:b").free()
        assert len(db.advisory_locks()) == 1
        conn.sql("commit")
    assert db.advisory_locks() == []


def test_a_session_lock_on_a_lent_connection_stays_refused(conn, registry):
    with Store.borrow(conn, registry=registry) as lent:
        conn.sql("begin")
        assert lent.refusal("cleanup").status is Status.INVALID
        conn.sql("rollback")


def test_a_session_lock_taken_for_one_transaction_is_warned_of(conn, registry):
    with Store.borrow(conn, registry=registry) as lent:
        conn.sql("begin")
        lent.acquire("cleanup", lifetime=TRANSACTION).free()
        conn.sql("rollback")
        assert any("cleanup" in text and "session" in text for _, text in lent.logged)


def test_the_order_holds_on_a_lent_connection_as_long_as_the_handle_lives(conn, registry):
    with Store.borrow(conn, registry=registry) as lent:
        conn.sql("begin")
        first = lent.acquire("cleanup", lifetime=TRANSACTION)
        assert lent.refusal("booking:7", lifetime=TRANSACTION).status is Status.ORDER
        first.free()
        lent.acquire("booking:7", lifetime=TRANSACTION).free()
        conn.sql("rollback")


# --- transactions -------------------------------------------------------------------------------------


@pytest.fixture
def tx_store(tx_kind, registry):
    with tx_kind.open(registry=registry) as opened:
        yield opened


@pytest.fixture(params=["local", "pg15", "pg18"])
def own_store(request, tmp_path, registry):
    """Without a pooler: session locks and transactions of one thread."""
    with new_tx_kind(request, tmp_path, request.param) as kind, kind.open(registry=registry) as opened:
        yield opened


def test_a_transactions_labels_are_derived_as_the_registry_says(tx_store):
    call = hf_tx.Call(tx_store, ["cleanup", "booking:7"], lambda tx: tx.query("select 1"))
    assert [(one.label, one.key) for one in call.stats] == [
        ("booking:7", hf.derive("booking:7", Derivation.FNV1A32_JS)), ("cleanup", 42424242)]


def test_a_transactions_labels_keep_the_order_with_what_the_thread_holds(own_store):
    with own_store.acquire("cleanup"):
        error = hf_tx.refusal(own_store, "booking:7", lambda tx: tx.query("select 1"))
        assert error.status is Status.ORDER
        assert "'booking:7'" in error.message and "'cleanup'" in error.message
        hf_tx.transact(own_store, "Transfer:a:b", lambda tx: tx.query("select 1"))


def test_a_lock_inside_a_transaction_keeps_the_order_with_its_labels(own_store):
    def body(tx):
        tx.query("select 1")
        return own_store.refusal("booking:7").status

    assert hf_tx.transact(own_store, "cleanup", body) is Status.ORDER
    own_store.acquire("booking:7").free()


def test_a_label_that_joins_late_keeps_the_order_too(own_store):
    def body(tx):
        tx.serialize("cleanup")
        tx.query("select 1")
        return own_store.refusal((7, 8)).status

    assert hf_tx.transact(own_store, "booking:7", body) is Status.ORDER
    with own_store.acquire((7, 8)):
        pass


def test_the_conventions_of_the_registry_say_which_labels_are_too_generic(tx_kind, tmp_path):
    path = hf_registry.write(tmp_path, LOCKS, "label: 'Operation:resource', generic: [stuff]")
    with hf_registry.registry(path) as read, tx_kind.open(registry=read) as store:
        for label in ["stuff", "free-form", "cleanup", "Transfer:a:b"]:
            hf_tx.transact(store, label, lambda tx: tx.query("select 1"))
        warned = [text for _, text in store.logged if "generic" in text]
    assert len(warned) == 2
    assert "'stuff'" in warned[0] and "'free-form'" in warned[1]
