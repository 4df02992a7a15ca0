"""What the collector asks of a store, what it makes of its tables, and how it ends a holder."""

import contextlib
import itertools
import re
import signal

import pytest

import hf
import hf_table
import servers
from awaiting import eventually
from strangers import begin, run, sessions
from viewing import Viewer, ViewFailure

MANY = 10000


# --- what a refresh costs --------------------------------------------------------------------------------


def refreshes_in(log, pid):
    """The statements of each whole refresh of that process, from a log with log_statement = all."""
    entries = re.split(r"\n(?=\d{4}-\d\d-\d\d )", log)
    ours = [entry.split(": ", 2)[2] for entry in entries
            if f"(pid {pid}) LOG:  execute" in entry or f"(pid {pid}) LOG:  statement" in entry]
    groups = []
    for statement in ours:
        if statement.startswith("BEGIN"):
            groups.append([])
        if groups:
            groups[-1].append(statement)
    return [group for group in groups if group[-1] == "COMMIT"]


def test_sixteen_viewers_cost_the_store_what_one_does(template15):
    with servers.Postgres.copy_of(template15, "counted", "log_statement = 'all'\n") as server:
        db = server.start().create_database()
        with hf.Store(db.url()) as store:
            store.init()
            store.acquire("a")
            with Viewer(db.url()) as viewer:
                seen = {}
                for lookers in (1, 16):
                    viewer.fresh()
                    mark = server.log_size()
                    first = viewer.fresh().number
                    viewer.ask("look", lookers, 5)
                    last = viewer.next(0).number
                    seen[lookers] = refreshes_in(server.log(mark), viewer.process.pid)
                    assert last - first - 1 <= len(seen[lookers]) <= last - first + 3, "a transaction each"
                    for statements in seen[lookers]:
                        assert sum("pg_catalog.pg_locks" in statement for statement in statements) == 1
                assert {tuple(statements) for statements in itertools.chain(*seen.values())} == {
                    tuple(seen[1][0])}, "always the same statements"
                assert len(seen[1][0]) <= 8


def test_ten_thousand_locks_are_read_right(template15):
    with servers.Postgres.copy_of(template15, "many", "max_locks_per_transaction = 512\n") as server:
        db = server.start().create_database()
        with sessions(db, 3) as (holder, one, two), Viewer(db.url()) as viewer:
            run(holder, f"select count(pg_advisory_lock(g)) from generate_series(1, {MANY}) g")
            begin(one, "select pg_advisory_lock(77)")
            eventually(lambda: db.waiters(77))
            begin(two, "select pg_advisory_lock(77)")
            seen = viewer.until(lambda s: s.waiting == 2, timeout=60)
            assert seen.held == MANY and {lock["key"] for lock in seen.locks} == set(range(1, MANY + 1))
            assert seen.locks[0]["key"] == 77, "what is waited for stands first"
            assert len(seen.parties) == 3 and len(seen.edges) == 2
            assert seen.party(seen.holders(77)[0])["kept"] == 2


# --- without the schema, and with a part of it ------------------------------------------------------------------


def test_without_the_schema_locks_are_seen_until_somebody_installs_it(db):
    with Viewer(db.url()) as viewer, sessions(db, 1) as (holder,):
        run(holder, "select pg_advisory_lock(9)")
        seen = viewer.until(lambda s: s.lock(9))
        assert not seen.has_records and not seen.events and not seen.problem
        assert any("holdfast init" in item["text"] for item in seen.attention_to("store"))
        with hf.Store(db.url()) as store:
            store.init()
            store.acquire("after").end()
        seen = viewer.until(lambda s: s.has_records and s.events_of("after"))
        assert not seen.attention_to("store")


def test_text_of_sessions_is_shown_only_on_demand(db):
    with sessions(db, 1, user="postgres") as (holder,):
        run(holder, "select pg_advisory_lock(9) /* secret */")
        with Viewer(db.url(user="postgres")) as viewer:
            assert [party["query"] for party in viewer.next().parties] == [""]
        with Viewer(db.url(user="postgres"), "queries") as viewer:
            assert "secret" in viewer.next().parties[0]["query"]


# --- networks and tables --------------------------------------------------------------------------------------------


def test_networks_show_coverage_gaps_lag_and_who_ingests(world):
    world.ingest(10, 19)
    world.ingest(10, 29)
    with Viewer(world.kind.url) as viewer:
        seen = viewer.next().network("testnet")
        assert seen["coverage"] == [[10, 29]] and seen["gaps"] == [] and seen["ingester"] == ""
        world.network.sql("update @ingest_coverage set hi = 14")
        world.network.sql("insert into @ingest_coverage (lo, hi) values (21, 29)")
        snapshot = viewer.until(lambda s: s.network("testnet")["gaps"] == [[15, 20]])
        assert (snapshot.gaps, snapshot.missing_ledgers) == (1, 6)
        assert "15 to 20" in snapshot.attention_to("gap")[0]["text"]


def test_ingester_is_named(world):
    world.ingest(10, 12)
    with Viewer(world.kind.url) as viewer:
        live = world.follow()
        viewer.until(lambda s: f"pid {live.pid}" in s.network("testnet")["ingester"])
        live.signal(signal.SIGTERM)
        viewer.until(lambda s: not s.network("testnet")["ingester"])


def test_a_network_that_cannot_be_read_hides_nothing_else(recorded_db):
    recorded_db.sql("create schema ingest_broken; create table ingest_broken.ingest_store (other int);"
                  "create schema ingest_odd; create table ingest_odd.ingest_store (key text, value text);"
                  "insert into ingest_odd.ingest_store values ('latestLedgerCursor', 'many');"
                  "create schema ingest_closed; create table ingest_closed.ingest_store (key text, value text);"
                  "grant usage on schema ingest_broken, ingest_odd to app;"
                  "grant select on ingest_broken.ingest_store, ingest_odd.ingest_store to app")
    with sessions(recorded_db, 1) as (holder,), Viewer(recorded_db.url()) as viewer:
        run(holder, "select pg_advisory_lock(4)")
        seen = viewer.until(lambda s: s.lock(4))
        assert not seen.problem
        assert [network["name"] for network in seen.networks] == ["broken", "closed", "odd"]
        assert all(network["problem"] for network in seen.networks)
        assert len(seen.attention_to("ingest")) == 3


def test_a_network_in_another_schema_is_called_after_both(world):
    world.ingest(10, 19, "--schema", "wallet")
    world.ingest(10, 29)
    with Viewer(world.kind.url) as viewer:
        seen = viewer.next()
        assert {one["name"]: one["coverage"] for one in seen.networks} == {
            "testnet": [[10, 29]], "testnet@wallet": [[10, 19]]}
        assert not seen.attention_to("ingest")


def test_tables_show_their_appends_and_their_lock(recorded):
    with recorded.open() as store, Viewer(recorded.url) as viewer:
        number = hf_table.register(store, "db.events")[0]
        hf_table.ref(store, "db.events", "ctx")
        lock = hf_table.lock(store, "db.events")
        seen = viewer.until(lambda s: s.tables and s.tables[0]["lock"] is not None and s.tables[0]["references"]
                            and s.locks[s.tables[0]["lock"]]["label"])  # which is on record a little later
        table = seen.tables[0]
        assert (table["text"], table["id"], table["references"]) == ("db.events", number, 1)
        assert seen.locks[table["lock"]]["label"] == "db.events"
        assert seen.table_meters == {"db.events": 0}
        lock.note("appended", "250")
        lock.end()
        seen = viewer.until(lambda s: s.table_meters["db.events"])
        assert seen.table_meters == {"db.events": 250}


def test_doubtful_appends_ask_for_attention(recorded_db):
    with hf.Store(recorded_db.url()) as store:
        hf_table.register(store, "db.events")
    add = ("insert into holdfast.appends (id, table_name, state, staging, plan, row_count, at)"
           " values (%s, 'db.events', %s, '', '', %s, now() + %s * interval '1 second')")
    recorded_db.sql(add, "one", "done", 10, 0)
    with Viewer(recorded_db.url()) as viewer:
        seen = viewer.until(lambda s: s.tables[0]["appends"])
        assert (seen.tables[0]["appended_rows"], seen.tables[0]["state"]) == (10, "done")
        recorded_db.sql(add, "two", "doubtful", 5, 1)
        seen = viewer.until(lambda s: s.tables[0]["state"] == "doubtful")
        assert (seen.tables[0]["appends"], seen.tables[0]["appended_rows"]) == (1, 10)
        assert seen.attention_to("append")


# --- contention -------------------------------------------------------------------------------------------------------


def test_contention_is_noted_by_the_minute(recorded, viewer_of):
    with recorded.peer() as holder, recorded.peer() as waiter, viewer_of(recorded.url) as viewer:
        holder.acquire("hot")
        waiter.begin("acquire", "hot", wait_ms=-1)
        seen = viewer.until(lambda s: s.hour.get("hot", [[0, 0, 0, 0]])[-1][2] == 1)
        samples, held, waiters, longest = seen.hour["hot"][-1]
        assert samples >= held >= 1 and waiters == 1 and longest >= 0
        assert len(seen.hour["hot"]) == 60 and len(seen.day["hot"]) == 144


def test_contention_of_the_last_day_is_found_in_the_store(recorded_db):
    recorded_db.sql("insert into holdfast.contention (at, lock, samples, held, waiters, longest_wait_ms)"
                  " select to_timestamp(floor(extract(epoch from now()) / 600) * 600) - n * interval '10 minutes',"
                  " '_other', 300, 200 + n, n, 1000 from unnest(array[1, 143, 144]) n")
    with Viewer(recorded_db.url()) as viewer:
        row = viewer.next().day["_other"]
        assert row[-2] == [300, 201, 1, 1000] and row[0] == [300, 343, 143, 1000]
        assert sum(cell[2] for cell in row) == 144


def test_contention_is_written_down_and_the_next_collector_goes_on_with_it(recorded, viewer_of):
    with recorded.peer() as holder, recorded.peer() as waiter:
        holder.acquire("hot")
        waiter.begin("acquire", "hot", wait_ms=-1)
        with viewer_of(recorded.url, "history") as viewer:
            first = viewer.until(lambda s: total(s)[2] == 1 and total(s)[1] > 2)
    with viewer_of(recorded.url, "history") as viewer:  # whoever held and waited is gone
        found = total(viewer.next())
        assert found[1] >= total(first)[1] and found[2] == 1
        assert found[3] >= total(first)[3]


def test_contention_is_not_written_by_who_was_not_told_to(recorded_db):
    with sessions(recorded_db, 1) as (holder,), Viewer(recorded_db.url()) as viewer:
        run(holder, "select pg_advisory_lock(6)")
        viewer.until(lambda s: s.lock(6) and total(s, "key 6")[1] > 0)
    assert recorded_db.sql("select count(*) from holdfast.contention") == [(0,)]


def total(seen, lock="hot"):
    """[samples, held, waiters, longest wait] of the last twenty minutes: a test may cross a column's end."""
    cells = seen.day.get(lock, [[0, 0, 0, 0]])[-2:]
    return [sum(cell[i] for cell in cells) for i in (0, 1)] + [max(cell[i] for cell in cells) for i in (2, 3)]


@pytest.fixture
def viewer_of():
    return Viewer


# --- ending a holder ----------------------------------------------------------------------------------------------------


def test_terminate_ends_the_holder_and_is_on_record(recorded, holdfast):
    command = holdfast.at(recorded.url)
    with command.start("run", "nightly", "--", "sleep", "60") as running, Viewer(recorded.url) as viewer:
        seen = viewer.until(lambda s: s.holders("nightly") and s.holders("nightly")[0]["token"])
        holder, party = seen.holders("nightly")[0], seen.party(seen.holders("nightly")[0])
        viewer.terminate(seen.lock("nightly")["key"], party["id"], by="ops", token=holder["token"])
        assert running.wait() != 0
        seen = viewer.until(lambda s: not s.lock("nightly") and
                            any(e["event"] == "terminated" for e in s.events_of("nightly")))
        event = next(e for e in seen.events_of("nightly") if e["event"] == "terminated")
        assert event["detail"] == "ops" and event["pid"] == viewer.process.pid


def test_terminate_spares_whoever_is_not_the_holder_any_more(recorded, viewer_of):
    with recorded.peer() as first, recorded.peer() as second, viewer_of(recorded.url) as viewer:
        first.acquire("another")
        lock = first.acquire("nightly", flags=hf.ANY_ORDER)
        seen = viewer.until(lambda s: s.holders("nightly") and s.holders("nightly")[0]["token"])
        key, holder = seen.lock("nightly")["key"], seen.holders("nightly")[0]
        party = seen.party(holder)["id"]
        first.release(lock)
        with pytest.raises(ViewFailure) as refused:
            viewer.terminate(key, party)
        assert refused.value.status == "HF_NOT_ACQUIRED"

        held = second.acquire("nightly")
        with pytest.raises(ViewFailure, match="HF_NOT_ACQUIRED"):
            viewer.terminate(key, party)
        second.release(held)

        again = first.acquire("nightly", flags=hf.ANY_ORDER)  # the same session, by another grant
        viewer.until(lambda s: s.holders("nightly") and s.holders("nightly")[0]["token"] not in (0, holder["token"]))
        with pytest.raises(ViewFailure, match="HF_NOT_ACQUIRED"):
            viewer.terminate(key, party, token=holder["token"])
        assert first.state(again) == hf.State.HELD
        assert not [e for e in viewer.fresh().events if e["event"] == "terminated"]


def test_terminate_ends_a_lease_by_its_term_and_never_under_an_open_transaction(recorded_db):
    with hf.Store(recorded_db.url()) as store, Viewer(recorded_db.url()) as viewer:
        lock = store.acquire("nightly", lifetime=hf.LEASE, lease_ms=30000)
        viewer.until(lambda s: s.holders("nightly"))
        for wrong in ({"token": lock.token + 1}, {}):
            with pytest.raises(ViewFailure):
                viewer.terminate(lock.key, 0, **wrong)
        with contextlib.closing(recorded_db.connect()) as connection, connection.cursor() as cursor:
            connection.autocommit = False
            cursor.execute("select holdfast.check_lease('nightly', %s)", (lock.token,))
            with pytest.raises(ViewFailure, match="HF_NOT_ACQUIRED"):
                viewer.terminate(lock.key, 0, token=lock.token)
        assert viewer.fresh().holders("nightly")
        viewer.terminate(lock.key, 0, by="ops", token=lock.token)
        seen = viewer.until(lambda s: not s.lock("nightly") and
                            any(e["event"] == "terminated" for e in s.events_of("nightly")))
        event = next(e for e in seen.events_of("nightly") if e["event"] == "terminated")
        assert event["detail"] == "ops" and event["pid"] == viewer.process.pid


def test_terminate_without_the_right_names_the_grant(recorded_db):
    with sessions(recorded_db, 1, user="postgres") as (holder,), Viewer(recorded_db.url()) as viewer:
        run(holder, "select pg_advisory_lock(6)")
        viewer.until(lambda s: s.lock(6))
        with pytest.raises(ViewFailure) as refused:
            viewer.terminate(6, holder.info.backend_pid)
        assert refused.value.status == "HF_CONFIG"
        assert run(holder, "select 1") == [(1,)]


def test_terminate_works_without_the_schema(db):
    with sessions(db, 1) as (holder,), Viewer(db.url()) as viewer:
        run(holder, "select pg_advisory_lock(6)")
        viewer.until(lambda s: s.lock(6))
        with contextlib.suppress(ViewFailure):
            viewer.terminate(7, holder.info.backend_pid)
        assert viewer.fresh().lock(6), "it holds another key"
        viewer.terminate(6, holder.info.backend_pid)
        viewer.until(lambda s: not s.lock(6))
