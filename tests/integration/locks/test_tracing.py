"""Spans of waits, holds and transactions: their parents, times and status, and the hold that a wait links to."""

import contextlib
import enum
import re
import sqlite3
import threading
import time

import pytest

import hf
import hf_start
import hf_tx
import servers
from awaiting import Background, eventually, stays
from hf import Status
from stores import StoreKind

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
LEASE = {"lifetime": hf.LEASE, "lease_ms": 30000}


class Kind(enum.IntEnum):
    WAIT = 0
    HOLD = 1
    TRANSACTION = 2


def trace_of(traceparent):
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", traceparent), traceparent
    return traceparent[3:35]


def kinds(store):
    return [Kind(span.kind) for span in store.spans]


@pytest.fixture(name="traced")
def opened(recorded):
    with recorded.open(on_span=True) as store:
        yield store


# --- holds --------------------------------------------------------------------------------------------


def test_hold_is_a_child_of_the_callers_span_and_lasts_from_acquire_to_release(traced):
    before = time.time_ns()
    lock = traced.acquire("job", traceparent=PARENT)
    acquired = time.time_ns()
    own, token, key = lock.traceparent, lock.token, lock.key
    assert not traced.spans
    lock.end()
    [span] = traced.spans
    assert (span.kind, span.status, span.label, span.key, span.token) == (Kind.HOLD, Status.OK, "job", key, token)
    assert (span.traceparent, span.parent, span.link) == (own, PARENT, "")
    assert trace_of(own) == TRACE and own != PARENT and own.endswith("-01")
    assert before <= span.start_ns <= acquired <= span.end_ns <= time.time_ns()


def test_lock_without_a_parent_begins_a_trace_of_its_own(traced):
    first, second = (traced.acquire(label) for label in ("a", "b"))
    assert trace_of(first.traceparent) != trace_of(second.traceparent)
    first.end()
    assert traced.spans[0].parent == "" and traced.spans[0].traceparent.endswith("-01")


def test_nobody_is_told_and_nothing_is_recorded_without_callback_and_parent(recorded):
    with recorded.open() as store, store.acquire("job") as lock:
        assert lock.traceparent == ""
        eventually(lambda: [view.token for view in store.locks()] == [lock.token])
        assert [view.traceparent for view in store.locks()] == [""]


def test_parent_alone_gives_the_hold_its_span_on_record(recorded):
    with recorded.open() as store, store.acquire("job", traceparent=PARENT) as lock:
        assert trace_of(lock.traceparent) == TRACE
        eventually(lambda: [view.traceparent for view in store.locks()] == [lock.traceparent])
        if not recorded.local:
            assert recorded.database.sql("select label, traceparent from holdfast.locks") == [("job", lock.traceparent)]


def test_loss_ends_the_hold_though_it_is_told_with_the_release(recorded, traced):
    lost = threading.Event()
    lock = traced.acquire("job", traceparent=PARENT, on_lost=lambda *_: lost.set())
    recorded.lose(lock.key)
    assert lost.wait(20)
    at = time.time_ns()
    assert not traced.spans
    with pytest.raises(hf.HfError) as raised:
        lock.end()
    assert raised.value.status is Status.LOST
    [span] = traced.spans
    assert (span.kind, span.status) == (Kind.HOLD, Status.LOST)
    assert span.start_ns <= span.end_ns <= at


def test_store_that_is_closed_tells_of_what_it_releases(recorded):
    store = recorded.open(on_span=True)
    store.acquire("job", traceparent=PARENT)
    store.close()
    assert kinds(store) == [Kind.HOLD]


# --- waits --------------------------------------------------------------------------------------------


def test_acquire_that_did_not_wait_has_no_span(traced):
    traced.acquire("job").end()
    assert kinds(traced) == [Kind.HOLD]


def test_wait_links_to_the_hold_of_another_process(recorded, traced):
    with recorded.peer() as peer:
        held = peer.acquire("job", traceparent=OTHER)
        of_holder = eventually(lambda: [view.traceparent for view in traced.locks() if view.traceparent])[0]
        assert trace_of(of_holder) == trace_of(OTHER)
        waiting = Background(traced.acquire, "job", wait_ms=hf.FOREVER, traceparent=PARENT)
        eventually(lambda: any(view.waiting for view in traced.locks()))
        peer.release(held)
        lock = waiting.result()
    lock.end()
    wait, hold = traced.spans
    assert (wait.kind, wait.status, wait.label, wait.token) == (Kind.WAIT, Status.OK, "job", 0)
    assert (wait.parent, wait.link) == (PARENT, of_holder)
    assert trace_of(wait.traceparent) == TRACE and wait.traceparent != hold.traceparent
    assert wait.start_ns < wait.end_ns == hold.start_ns <= hold.end_ns


def test_wait_links_to_the_hold_of_another_thread_with_records_or_without(kind):
    with kind.open(on_span=True) as store:
        first = store.acquire("job", traceparent=OTHER)
        own = first.traceparent
        waiting = Background(store.acquire, "job", wait_ms=hf.FOREVER, traceparent=PARENT)
        stays(lambda: waiting.running, 0.1)
        first.end()
        waiting.result().end()
        [wait] = [span for span in store.spans if span.kind == Kind.WAIT]
        assert (wait.parent, wait.link) == (PARENT, own)


def test_wait_for_a_stranger_has_no_link(kind):
    """Without records nobody tells whose span it is."""
    with kind.open(on_span=True) as store, kind.open() as other:
        held = other.acquire("job")
        waiting = Background(store.acquire, "job", wait_ms=hf.FOREVER)
        stays(lambda: waiting.running, 0.1)
        held.end()
        waiting.result().end()
        assert [(span.kind, span.link) for span in store.spans] == [(Kind.WAIT, ""), (Kind.HOLD, "")]


def test_key_that_was_handed_over_is_on_record_with_the_new_hold(recorded, traced):
    first = traced.acquire("job", traceparent=OTHER)
    waiting = Background(traced.acquire, "job", wait_ms=hf.FOREVER, traceparent=PARENT)
    stays(lambda: waiting.running, 0.1)
    first.end()
    with waiting.result() as second:
        eventually(lambda: [view.traceparent for view in traced.locks()] == [second.traceparent])


@pytest.mark.parametrize("wait_ms, how", [(0, {}), (50, {}), (50, {"slots": 1})])
def test_refusal_is_a_span_that_links_to_the_holder(recorded, traced, wait_ms, how):
    with recorded.open() as other:
        held = other.acquire("job", traceparent=OTHER, **how)
        eventually(lambda: any(view.traceparent for view in traced.locks()))
        assert traced.refusal("job", wait_ms, traceparent=PARENT, **how).status is Status.NOT_ACQUIRED
        [span] = traced.spans
        assert (span.kind, span.status) == (Kind.WAIT, Status.NOT_ACQUIRED)
        assert (span.parent, span.link) == (PARENT, held.traceparent)
        assert span.end_ns - span.start_ns >= wait_ms * 1_000_000


def test_holder_that_records_itself_after_the_wait_began_is_found_all_the_same(pg18):
    database = pg18.create_database()
    hf.install(database.url())
    with hf.Store(database.url(), on_span=True) as store, hf.Store(database.url()) as other, \
            contextlib.closing(database.connect()) as blocker:
        blocker.autocommit = False
        blocker.cursor().execute("lock table holdfast.holders in share mode")
        held = other.acquire("job", traceparent=OTHER)
        waiting = Background(store.acquire, "job", wait_ms=hf.FOREVER)
        eventually(lambda: database.value("select count(*) from pg_locks where locktype = 'advisory' and not granted"))
        own = held.traceparent
        blocker.rollback()
        [[recorded_at]] = eventually(lambda: database.sql("select clock_timestamp() from holdfast.holders"
                                                          " where traceparent is not null"))
        eventually(lambda: database.value("select count(*) from pg_stat_activity where query_start > %s and state = 'idle'"
                                          " and query like '%%IS NOT NULL, h.traceparent%%'", recorded_at),
                   what="it has looked again")
        held.end()
        waiting.result().end()
        assert store.spans[0].link == own
    database.drop()


def test_wait_that_is_cancelled_says_so(traced):
    with hf.Cancel() as cancel, traced.acquire("job"):
        waiting = Background(traced.refusal, "job", wait_ms=hf.FOREVER, cancel=cancel)
        stays(lambda: waiting.running, 0.05)
        cancel.trigger()
        assert waiting.result().status is Status.INTERRUPTED
    assert (traced.spans[0].kind, traced.spans[0].status) == (Kind.WAIT, Status.INTERRUPTED)


def test_started_acquire_tells_of_its_wait_before_its_end_in_the_same_thread(recorded):
    order = []
    with recorded.open(on_span=True) as store:
        held = store.acquire("job")
        store.spans = type("Told", (list,), {"append": lambda _, span: order.append((span.kind, threading.get_native_id()))})()
        started = hf_start.Started(store, "job", wait_ms=hf.FOREVER, traceparent=PARENT,
                                   done=lambda one: order.append(("done", one.told_in)))
        stays(lambda: started.running, 0.05)
        held.end()
        lock = started.result()
        assert trace_of(lock.traceparent) == TRACE
        assert [what for what, _ in order] == [Kind.HOLD, Kind.WAIT, "done"]
        assert order[1][1] == order[2][1] != order[0][1]
        lock.end()


# --- what is given ------------------------------------------------------------------------------------

SPAN = "b7ad6b7169203331"
INVALID = ["", "00", PARENT[:-1], PARENT + "0", PARENT + "-", PARENT.upper(), " " + PARENT, PARENT.replace("-", "_"),
           f"ff-{TRACE}-{SPAN}-01", f"0-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
           f"00-{TRACE[:-1]}g-{SPAN}-01", f"00-{TRACE}-{SPAN}-0x", f"01-{TRACE}-{SPAN}-01.more"]


@pytest.mark.parametrize("given", INVALID)
def test_traceparent_that_is_not_valid_is_ignored(tmp_path, given):
    with hf.Store(f"local:{tmp_path}") as store:
        with store.acquire("job", traceparent=given) as lock:
            assert lock.traceparent == ""
        with hf_start.Started(store, "job", traceparent=given).result() as lock:
            assert lock.traceparent == ""


@pytest.mark.parametrize("given, flags", [(f"cc-{TRACE}-{SPAN}-01-what the future will be", "01"),
                                          (f"01-{TRACE}-{SPAN}-ff", "03"), (f"00-{TRACE}-{SPAN}-03", "03")])
def test_later_versions_are_understood_and_written_in_ours(tmp_path, given, flags):
    with hf.Store(f"local:{tmp_path}", on_span=True) as store:
        store.acquire("job", traceparent=given).end()
        hf_start.Started(store, "job", traceparent=given).result().end()
    for span in store.spans:
        assert span.parent == f"00-{TRACE}-{SPAN}-{flags}"
        assert trace_of(span.traceparent) == TRACE and span.traceparent.endswith(flags)


def test_what_is_not_sampled_is_passed_on_and_not_told(recorded, traced):
    with traced.acquire("job", traceparent=PARENT[:-1] + "0") as lock:
        assert trace_of(lock.traceparent) == TRACE and lock.traceparent.endswith("-00")
        eventually(lambda: [view.traceparent for view in traced.locks()] == [lock.traceparent])
        assert traced.refusal("job", traceparent=PARENT[:-1] + "0").status is Status.NOT_ACQUIRED
    assert not traced.spans


def test_older_programs_pass_smaller_structs(tmp_path):
    with hf.Store(f"local:{tmp_path}") as store:
        spec = store.spec("job", traceparent=PARENT)
        spec.size = hf.LockSpec.traceparent.offset
        pointer, error = hf.c_void_p(), hf.CError()
        hf.check(hf.lib().hf_lock_acquire(store.pointer, hf.byref(spec), hf.byref(pointer), hf.byref(error)), error)
        with hf.Lock(store, pointer) as lock:
            assert lock.traceparent == ""


# --- leases, slots and sets ---------------------------------------------------------------------------


@pytest.fixture(params=servers.OTHERS or ["local", "pg15", "pg18", "pgbouncer-transaction"])
def leased(request, tmp_path):
    if request.param == "local":
        yield StoreKind("local", f"local:{tmp_path / 'state'}")
        return
    pooled = request.param == "pgbouncer-transaction"
    database = request.getfixturevalue("pg15" if pooled else request.param).create_database()
    hf.install(database.url())
    url = request.getfixturevalue("transaction_pooler").url(database.name) if pooled else database.url()
    yield StoreKind(request.param, url, database)
    database.drop()


def test_wait_for_a_lease_links_to_its_hold(leased):
    with leased.open(on_span=True) as store, leased.peer() as peer:
        held = peer.acquire("job", traceparent=OTHER, **LEASE)
        [of_holder] = [view.traceparent for view in store.locks()]
        assert trace_of(of_holder) == trace_of(OTHER)
        waiting = Background(store.acquire, "job", wait_ms=hf.FOREVER, traceparent=PARENT, **LEASE)
        stays(lambda: waiting.running, 0.1)
        peer.release(held)
        waiting.result().end()
        wait, hold = store.spans
        assert (wait.kind, wait.parent, wait.link) == (Kind.WAIT, PARENT, of_holder)
        assert (hold.kind, hold.parent, hold.token > 0) == (Kind.HOLD, PARENT, True)


def test_leases_of_one_process_have_spans_of_their_own(leased):
    with leased.open(on_span=True) as store:
        first, second = (store.acquire(label, traceparent=PARENT, **LEASE) for label in ("a", "b"))
        plain = store.acquire(["c", "d"], **LEASE)
        shown = {view.label: view.traceparent for view in store.locks()}
        assert shown == {"a": first.traceparent, "b": second.traceparent, "c": plain.traceparent, "d": plain.traceparent}


def test_wait_for_a_slot_and_for_a_set_links_to_a_holder(recorded, traced):
    with recorded.open() as other:
        slot = other.acquire("pool", slots=1, traceparent=OTHER)
        one = other.acquire("b", traceparent=OTHER)
        expected = {slot.traceparent, one.traceparent}
        eventually(lambda: {view.traceparent for view in traced.locks()} == expected)
        waits = [Background(traced.acquire, "pool", wait_ms=hf.FOREVER, slots=1, owner=1),
                 Background(traced.acquire, ["a", "b"], wait_ms=hf.FOREVER, owner=2)]
        stays(lambda: all(wait.running for wait in waits), 0.2)
        slot.end()
        one.end()
        for wait in waits:
            wait.result().end()
    assert {span.link for span in traced.spans if span.kind == Kind.WAIT} == expected
    assert {span.slot for span in traced.spans if span.kind == Kind.HOLD} == {0, 1}


# --- transactions -------------------------------------------------------------------------------------


def test_transaction_is_a_span_with_its_first_label(recorded, traced):
    seen = []
    hf_tx.transact(traced, "Transfer:a", lambda tx: seen.append(hf_tx.lib().hf_tx_traceparent(tx.pointer).decode()),
                   traceparent=PARENT.encode())
    [span] = [span for span in traced.spans if span.kind == Kind.TRANSACTION]
    assert (span.status, span.label, span.parent, span.traceparent) == (Status.OK, "Transfer:a", PARENT, seen[0])
    # On a local store the label is a lock around the transaction, and a child of it.
    assert all(child.parent == seen[0] for child in traced.spans if child is not span)


def test_transaction_that_is_refused_a_label_links_to_its_holder(recorded, traced):
    with recorded.open() as other, other.acquire("Transfer:a", traceparent=OTHER) as held:
        eventually(lambda: any(view.traceparent for view in traced.locks()))
        with pytest.raises(hf.HfError) as raised:
            hf_tx.transact(traced, "Transfer:a", lambda tx: tx.query("select 1"), deadline_ms=300)
        [span] = [span for span in traced.spans if span.kind == Kind.TRANSACTION]
        assert (span.status, span.link) == (raised.value.status, held.traceparent)


def test_transaction_on_a_traced_lock_is_a_child_of_its_hold(recorded, traced):
    lock = traced.acquire("job", flags=hf.PRIVATE, traceparent=PARENT)
    hf_tx.OnLock(lock, lambda tx: tx.query("select 1")).result()
    lock.end()
    tx, hold = traced.spans
    assert (tx.kind, tx.parent, hold.traceparent) == (Kind.TRANSACTION, hold.traceparent, tx.parent)


def test_transaction_without_label_and_parent_is_not_told(traced):
    hf_tx.transact(traced, None, lambda tx: tx.query("select 1"))
    assert not traced.spans


# --- older stores -------------------------------------------------------------------------------------


def test_upgrade_keeps_what_is_held_and_who_may_take_leases(pg18):
    database = pg18.create_database()
    guest = f"guest_{database.name}"
    for number in range(1, 7):
        database.sql((servers.ROOT / f"src/lib/postgres/schema_{number:03}.sql").read_text())
    database.sql(f"create role {guest} login; select holdfast.grant_use('{guest}')")
    database.sql("insert into holdfast.tenures (id, until, lease_ms, application, host, pid)"
                 " values (gen_random_uuid(), now() + interval '1 hour', 60000, 'old', 'host', 7)")
    database.sql("insert into holdfast.leases (term, key, space, shared, slot, tenure, nth)"
                 " select 5, %s, 0, false, 0, id, 1 from holdfast.tenures", hf.derive("old"))
    with hf.Store(database.url(user="postgres")) as store, hf.Store(database.url(user=guest), on_span=True) as before:
        assert not before.has_records
        before.acquire("plain", traceparent=PARENT).end()
        refused = before.refusal("old")
        assert refused.status is Status.NOT_ACQUIRED and "old on host (pid 7)" in refused.message
        assert kinds(before) == [Kind.HOLD, Kind.WAIT]
        assert store.init() == (6, hf.SCHEMA_VERSION)
    with hf.Store(database.url(user=guest), on_span=True) as store:
        assert store.refusal("old", **LEASE).status is Status.NOT_ACQUIRED
        assert [(span.kind, span.link) for span in store.spans] == [(Kind.WAIT, "")]
        with store.acquire("new", traceparent=PARENT, **LEASE) as lock:
            assert {view.label: view.traceparent for view in store.locks()} == {"old": "", "new": lock.traceparent}
    database.sql(f"drop owned by {guest} cascade; drop role {guest}")
    database.drop()


def test_local_store_of_the_version_before_is_upgraded_with_what_is_in_it(tmp_path):
    with hf.Store(f"local:{tmp_path}") as store:
        token = store.acquire("job").token
    with contextlib.closing(sqlite3.connect(tmp_path / "holdfast.db")) as database:
        database.execute("alter table holders drop column traceparent")
        database.execute("pragma user_version = 2")
        database.commit()
    with hf.Store(f"local:{tmp_path}") as store:
        assert [view.label for view in store.past()] == ["job"]
        with store.acquire("job", traceparent=PARENT) as lock, store.acquire("leased", **LEASE):
            assert lock.token > token
            assert lock.traceparent in [view.traceparent for view in store.locks()]
