"""What the collector sees, on every kind of store."""

import signal

import pytest

import hf
import hf_registry
import servers
from awaiting import eventually, stays
from strangers import begin, run, sessions
from viewing import Viewer

# Indexes into a meter's lists, in the order of view/snapshot.h.
ACQUIRED, CONFLICT, TIMEOUT, DEADLOCK = range(4)
LOST_SERVER = 0
EXIT_OK, EXIT_FAILED = 0, 1


@pytest.fixture
def viewer(recorded):
    with Viewer(recorded.url) as opened:
        yield opened


# --- locks, parties, edges ---------------------------------------------------------------------------


def test_holder_and_waiters_appear_by_name_with_edges(recorded, viewer):
    with recorded.peer(application="alpha") as holder, recorded.peer(application="beta") as waiter:
        holder.acquire("nightly")
        pending = waiter.begin("acquire", "nightly", wait_ms=-1)
        seen = viewer.until(lambda s: s.waiters("nightly"))
        assert [v["application"] for v in seen.holders("nightly")] == ["alpha"]
        assert [v["application"] for v in seen.waiters("nightly")] == ["beta"]
        assert seen.edges_named() == [(waiter.pid, holder.pid, "nightly")]
        root = seen.party(seen.holders("nightly")[0])
        assert root["root"] and root["kept"] == 1 and root["blocking"] == 1
        assert (seen.held, seen.waiting) == (1, 1)
        assert pending.running


def test_a_wait_that_is_over_is_gone(recorded, viewer):
    with recorded.peer() as holder, recorded.peer() as waiter:
        lock = holder.acquire("nightly")
        pending = waiter.begin("acquire", "nightly", wait_ms=-1)
        viewer.until(lambda s: s.edges)
        holder.release(lock)
        pending.result()
        seen = viewer.until(lambda s: not s.edges and [v["pid"] for v in s.holders("nightly")] == [waiter.pid])
        assert not any(party["root"] for party in seen.parties)


def test_chain_of_processes_has_one_root_that_keeps_them_all(recorded, viewer):
    """a waits for b, who waits for c, who waits for nobody; each holds on one session and waits on another."""
    with recorded.peer() as a, recorded.peer() as b, recorded.peer() as c:
        c.acquire("first")
        b.acquire("second", thread="b")
        waits = [b.begin("acquire", "first", wait_ms=-1, thread="b", flags=hf.ANY_ORDER)]
        viewer.until(lambda s: s.waiters("first"))
        waits.append(a.begin("acquire", "second", wait_ms=-1))
        seen = viewer.until(lambda s: len(s.edges) == 2)
        assert seen.edges_named() == sorted([(a.pid, b.pid, "second"), (b.pid, c.pid, "first")])
        roots = [party for party in seen.parties if party["root"]]
        assert [(party["pid"], party["kept"], party["blocking"]) for party in roots] == [(c.pid, 2, 1)]
        assert not any(party["in_cycle"] for party in seen.parties)
        for pending in waits:
            assert pending.running


def test_locks_of_strangers_are_seen_without_a_name(db):
    hf.install(db.url())
    with sessions(db, 2) as (holder, waiter), Viewer(db.url()) as viewer:
        run(holder, "select pg_advisory_lock(-7), pg_advisory_lock(1, -2)")
        begin(waiter, "select pg_advisory_lock(-7)")
        seen = viewer.until(lambda s: s.edges)
        assert seen.lock(-7)["label"] == "" and seen.lock(-7)["space"] == 0
        assert {lock["space"] for lock in seen.locks} == {0, 1}
        assert seen.edges_named(lambda party: party["id"]) == [
            (waiter.info.backend_pid, holder.info.backend_pid, "")]
        assert seen.unregistered == 0, "there is no registry"


def test_reader_behind_a_waiting_writer_waits_for_the_writer(db):
    """The holder reads too and is not in its way; the writer is, which PostgreSQL's list of holders does not say."""
    with sessions(db, 3) as (reader, writer, late), Viewer(db.url()) as viewer:
        run(reader, "select pg_advisory_lock_shared(5)")
        begin(writer, "select pg_advisory_lock(5)")
        eventually(lambda: len(db.waiters(5)) == 1)
        begin(late, "select pg_advisory_lock_shared(5)")
        seen = viewer.until(lambda s: len(s.edges) == 2)
        pids = [connection.info.backend_pid for connection in (reader, writer, late)]
        assert seen.edges_named(lambda party: party["id"]) == sorted(
            [(pids[1], pids[0], ""), (pids[2], pids[1], "")])


def test_deadlock_of_strangers_is_a_cycle(db):
    hf.install(db.url())
    with sessions(db, 3, user="postgres") as (one, two, behind), Viewer(db.url()) as viewer:
        for connection in (one, two):
            run(connection, "set deadlock_timeout = '1h'")
        run(one, "select pg_advisory_lock(1)")
        run(two, "select pg_advisory_lock(2)")
        begin(one, "select pg_advisory_lock(2)")
        begin(two, "select pg_advisory_lock(1)")
        eventually(lambda: db.waiters(1) and db.waiters(2))
        begin(behind, "select pg_advisory_lock(2)")
        seen = viewer.until(lambda s: len(s.edges) >= 3)
        cycle = {party["id"] for party in seen.parties if party["in_cycle"]}
        assert cycle == {one.info.backend_pid, two.info.backend_pid}
        assert not any(party["root"] for party in seen.parties)
        assert seen.attention[0]["topic"] == "deadlock" and seen.attention[0]["urgency"] == 2
        db.server.terminate(two.info.backend_pid)
        viewer.until(lambda s: not any(party["in_cycle"] for party in s.parties))


def test_prepared_transaction_holds_and_is_nobody(template15):
    with servers.Postgres.copy_of(template15, "prepared", "max_prepared_transactions = 2\n") as server:
        db = server.start().create_database()
        with sessions(db, 2, user="postgres") as (one, waiter), Viewer(db.url()) as viewer:
            run(one, "begin; select pg_advisory_xact_lock(8); prepare transaction 'left'")
            begin(waiter, "select pg_advisory_lock(8)")
            seen = viewer.until(lambda s: s.waiters(8))
            assert seen.holders(8)[0]["party"] is None and seen.edges == []
            run(one, "commit prepared 'left'")


def test_names_come_from_the_registry(recorded, tmp_path):
    path = hf_registry.write(tmp_path, ["name: jobs, key: { pattern: 'job:{id}' }",
                                        "name: fixed-one, key: { fixed: 5000 }"])
    with hf_registry.registry(path) as registry, recorded.open(registry=registry) as store:
        locks = [store.acquire("job:7"), store.acquire(5000), store.acquire("stranger")]
        with Viewer(recorded.url, registry=path) as viewer:
            seen = viewer.until(lambda s: s.held == 3)
            assert {(lock["label"], lock["name"]) for lock in seen.locks} == {
                ("job:7", "jobs"), ("fixed-one", "fixed-one"), ("stranger", "")}
            assert seen.unregistered == 1
            assert [meter["lock"] for meter in seen.meters] == ["jobs", "fixed-one", "_other"]
            assert [meter["held"] for meter in seen.meters] == [[1, 0], [1, 0], [1, 0]]
            assert seen.attention_to("unregistered")
        for lock in locks:
            lock.end()


# --- events and what is counted ------------------------------------------------------------------------


def test_each_event_is_seen_once_with_its_label(recorded, viewer):
    with recorded.peer() as peer:
        for i in range(5):
            peer.release(peer.acquire(f"job-{i}"))
        seen = viewer.until(lambda s: len([e for e in s.events if e["event"] == "released"]) == 5)
        assert sorted(e["label"] for e in seen.events if e["event"] == "acquired") == [f"job-{i}" for i in range(5)]
        ids = [(event["at_ms"], event["id"]) for event in seen.events]
        assert ids == sorted(set(ids), reverse=True)
        assert viewer.fresh().events == seen.events


ADD_EVENT = ("insert into holdfast.events (at, event, key, space, shared, token, application, host, pid)"
             " values (now(), %s, 1, 0, false, 0, 'a', 'h', 1)")


def test_event_that_is_committed_late_is_neither_lost_nor_counted_twice(db):
    hf.install(db.url())
    with Viewer(db.url()) as viewer, sessions(db, 2) as (slow, quick):
        run(quick, ADD_EVENT, "acquired")
        viewer.until(lambda s: len(s.events) == 1)
        slow.autocommit = False
        run(slow, ADD_EVENT, "conflict")
        run(quick, ADD_EVENT, "timeout")
        seen = viewer.until(lambda s: len(s.events) == 2)
        assert [event["event"] for event in seen.events] == ["timeout", "acquired"]
        viewer.fresh()
        slow.commit()
        seen = viewer.until(lambda s: len(s.events) == 3)
        assert [event["event"] for event in seen.events] == ["timeout", "conflict", "acquired"]
        seen = viewer.fresh()
        assert len(seen.events) == 3
        assert seen.meter("_other")["outcomes"] == [1, 1, 1, 0]


def test_events_are_in_the_order_of_what_happened_though_some_are_written_late(db):
    hf.install(db.url())
    with Viewer(db.url()) as viewer:
        for event, age in [("acquired", 2), ("released", 1), ("conflict", 3)]:
            db.sql(ADD_EVENT.replace("now()", f"now() - interval '{age} minutes'"), event)
        seen = viewer.until(lambda s: len(s.events) == 3)
        assert [event["event"] for event in seen.events] == ["released", "acquired", "conflict"]


def test_counters_start_at_zero_and_events_before_are_shown(recorded):
    with recorded.open() as store:
        store.acquire("early").end()
    with Viewer(recorded.url) as viewer, recorded.peer() as peer:
        seen = viewer.next()
        assert [e["event"] for e in seen.events_of("early")] == ["released", "acquired"]
        assert seen.meter("_other")["outcomes"] == [0, 0, 0, 0]
        peer.release(peer.acquire("late"))
        seen = viewer.until(lambda s: s.meter("_other")["outcomes"][ACQUIRED])
        assert seen.meter("_other")["outcomes"] == [1, 0, 0, 0]


def test_history_that_begins_anew_is_followed(db):
    """The schema was dropped and installed again: ids start at 1."""
    hf.install(db.url())
    with Viewer(db.url()) as viewer, sessions(db, 1) as (writer,):
        for _ in range(3):
            run(writer, ADD_EVENT, "acquired")
        viewer.until(lambda s: len(s.events) == 3)
        run(writer, "truncate holdfast.events restart identity")
        viewer.until(lambda s: not s.events)
        run(writer, ADD_EVENT, "lost")
        seen = viewer.until(lambda s: len(s.events) == 1)
        assert seen.losses_24h == 1


def test_losses_and_exits_are_counted_by_reason(db, tmp_path, holdfast):
    path = hf_registry.write(tmp_path, ["name: job, key: { pattern: 'job:{id}' }, histogram: true"])
    command = holdfast.at(db.url())
    assert command("init").code == 0
    with Viewer(db.url(), registry=path) as viewer:
        assert command("run", "job:1", "--", "true").code == 0
        assert command("run", "job:2", "--", "false").code == 1
        with command.start("run", "job:3", "--", "sleep", "60") as running:
            seen = viewer.until(lambda s: s.holders("job:3"))
            db.server.terminate(seen.holders("job:3")[0]["backend_pid"])
            running.wait()
        seen = viewer.until(lambda s: sum(s.meter("job")["exits"]) == 3)
        assert seen.meter("job")["exits"][EXIT_OK] == 1 and seen.meter("job")["exits"][EXIT_FAILED] == 1
        assert seen.meter("job")["losses"][LOST_SERVER] == 1 and seen.losses_24h == 1
        assert seen.meter("job")["outcomes"] == [3, 0, 0, 0]
        assert sum(seen.meter("job")["wait"]) == 3 and sum(seen.meter("job")["hold"]) >= 2
        assert seen.meter("_other")["outcomes"] == [0, 0, 0, 0]
        assert seen.attention_to("loss")


def test_deadlock_that_was_resolved_stays_in_the_history_and_in_the_counters(recorded, viewer):
    with recorded.peer() as one, recorded.peer() as two:
        one.acquire("first", thread="t")
        two.acquire("second", thread="t")
        waits = [one.begin("acquire", "second", wait_ms=-1, thread="t", flags=hf.ANY_ORDER)]
        viewer.until(lambda s: s.waiters("second"))
        waits.append(two.begin("acquire", "first", wait_ms=-1, thread="t", flags=hf.ANY_ORDER))
        seen = viewer.until(lambda s: [e for e in s.events if e["event"] == "deadlock"], timeout=60)
        event, = [event for event in seen.events if event["event"] == "deadlock"]
        assert event["label"] in ("first", "second") and "deadlock" in event["detail"]
        assert seen.meter("_other")["outcomes"][DEADLOCK] == 1


def test_losses_of_the_last_day_are_known_at_the_start(db):
    hf.install(db.url())
    db.sql("insert into holdfast.events (at, event, key, space, shared, token, application, host, pid)"
           " select now() - h * interval '1 hour', 'lost', 1, 0, false, 0, 'a', 'h', 1 from unnest(array[2, 23, 25]) h")
    with Viewer(db.url()) as viewer:
        assert viewer.next().losses_24h == 2


def test_losses_are_unknown_and_not_none_where_no_history_is_kept(db):
    with Viewer(db.url()) as viewer:
        seen = viewer.next()
        assert (seen.losses_24h, seen.losses_unknown) == (0, True)
        hf.install(db.url())
        viewer.until(lambda s: not s.losses_unknown)


def test_after_a_restart_losses_are_unknown_until_one_is_known(own_pg, own_db):
    hf.install(own_db.url())
    with Viewer(own_db.url()) as viewer:
        with hf.Store(own_db.url()) as store:
            store.acquire("job").end()
        assert not viewer.until(lambda s: s.events).losses_unknown
        own_pg.restart()
        viewer.until(lambda s: s.losses_unknown)
        with sessions(own_db, 1) as (writer,):
            run(writer, ADD_EVENT, "lost")
        viewer.until(lambda s: s.losses_24h == 1 and not s.losses_unknown)


# --- when the store is away ----------------------------------------------------------------------------


def test_restart_of_the_server_shows_as_a_problem_that_passes(own_pg, own_db):
    with Viewer(own_db.url()) as viewer:
        with sessions(own_db, 1) as (holder,):
            run(holder, "select pg_advisory_lock(3)")
            viewer.until(lambda s: s.lock(3))
            own_pg.stop(signal.SIGQUIT)
            seen = viewer.until(lambda s: s.problem)
            assert seen.lock(3), "the last good data stays"
            assert seen.problem_since_ms > 0 and seen.attention[0]["topic"] == "store"
            again = viewer.until(lambda s: s.problem)
            assert again.problem_since_ms == seen.problem_since_ms and again.taken_ms == seen.taken_ms
            own_pg.start()
            seen = viewer.until(lambda s: not s.problem, timeout=60)
            assert not seen.lock(3) and seen.taken_ms > again.taken_ms


def test_a_server_that_hung_for_a_moment_is_looked_at_again_soon(own_pg, own_db):
    with Viewer(own_db.url()) as viewer:
        viewer.next()
        with own_pg.frozen():
            stays(lambda: True, 3)
        viewer.until(lambda s: s.took_ms > 1500, timeout=60)
        viewer.until(lambda s: s.took_ms < 1500, timeout=10)


def test_server_that_hangs_is_told_of(own_pg, own_db):
    with Viewer(own_db.url()) as viewer:
        viewer.next()
        with own_pg.frozen():
            seen = viewer.until(lambda s: s.problem, timeout=60)
            assert seen.attention[0]["topic"] == "store"
        viewer.until(lambda s: not s.problem, timeout=60)
