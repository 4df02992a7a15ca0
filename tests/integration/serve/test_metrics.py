"""/metrics of a real `holdfast serve`: each number moves as it should, and Prometheus reads it."""

import contextlib
import pathlib
import re
import sqlite3
import time

import pytest

import hf
import hf_registry
from appending import make_table, rows_of
from awaiting import eventually
from cli import ENDINGS
from ledgers import chain, ledger
from prometheus import Prometheus, assert_promtool_takes, read, read_text
from serve import Serve

LOCKS = ["name: nightly, key: { pattern: 'nightly' }",
         "name: report, key: { pattern: 'report' }, histogram: true",
         "name: tenant-job, key: { pattern: 'job-{tenant}' }",
         "name: by-number, key: { fixed: 5001 }"]


@pytest.fixture
def registry(tmp_path):
    return hf_registry.write(tmp_path, LOCKS)


@pytest.fixture
def server(command, registry):
    started = Serve(command, "--registry", registry)
    yield started
    started.end()


def becomes(server, wanted, name, **labels):
    eventually(lambda: read(server)(name, **labels) == wanted, what=f"{name}{labels} is {wanted}")
    return read(server)


# --- both formats ---------------------------------------------------------------------------------------


def test_both_formats_are_valid_and_say_the_same_series(server):
    assert_promtool_takes(read_text(server))
    in_text = set(re.findall(r"^(\w+(?:\{[^}]*\})?) ", read_text(server), re.M))
    openmetrics = read(server)
    assert len(in_text) == len(openmetrics.samples)
    assert {line.split("{")[0] for line in in_text} == openmetrics.names()


def test_registered_locks_are_there_with_zeros_before_anybody_uses_them(server):
    metrics = read(server)
    names = {"nightly", "report", "tenant-job", "by-number", "_other"}
    for metric in ("holdfast_lock_held", "holdfast_lock_waiters", "holdfast_lock_longest_wait_seconds",
                   "holdfast_lock_acquired_timestamp_seconds", "holdfast_lock_acquisitions_total",
                   "holdfast_lock_losses_total", "holdfast_run_exits_total"):
        assert metrics.labels(metric, "lock") == names
        assert not any(value for (name, _), value in metrics.samples.items() if name == metric)
    assert metrics.labels("holdfast_lock_wait_seconds_bucket", "lock") == {"report"}
    assert metrics("holdfast_up") == 1
    assert metrics("holdfast_build_info", version=hf_version(), store=server_kind(server)) == 1


def hf_version():
    return re.search(r'HF_VERSION "(.*)"', (hf.ROOT / "include/holdfast/locks.h").read_text())[1]


def server_kind(server):
    return next(iter(read(server).labels("holdfast_build_info", "store")))


# --- locks ----------------------------------------------------------------------------------------------


def test_holders_waiters_and_times_of_now(server, command):
    before = time.time()
    holder = command.hold("nightly")
    waiters = [command.start("run", "nightly", "--", "true") for _ in range(2)]
    metrics = becomes(server, 2, "holdfast_lock_waiters", lock="nightly")
    assert metrics("holdfast_lock_held", lock="nightly", mode="exclusive") == 1
    assert metrics("holdfast_lock_held", lock="nightly", mode="shared") == 0
    assert before - 1 <= metrics("holdfast_lock_acquired_timestamp_seconds", lock="nightly") <= time.time() + 1
    eventually(lambda: read(server)("holdfast_lock_longest_wait_seconds", lock="nightly") > 0.2)
    holder.end()
    for waiter in waiters:
        assert waiter.wait() == 0
    server.await_refresh()
    metrics = becomes(server, 0, "holdfast_lock_held", lock="nightly", mode="exclusive")
    assert metrics("holdfast_lock_longest_wait_seconds", lock="nightly") == 0
    assert metrics("holdfast_lock_acquired_timestamp_seconds", lock="nightly") == 0


def test_shared_holders_are_counted_apart(server, recorded):
    with hf.Store(recorded.url) as store, hf.Store(recorded.url) as other:
        first, second = store.acquire("nightly", mode=hf.SHARED), other.acquire("nightly", mode=hf.SHARED)
        metrics = becomes(server, 2, "holdfast_lock_held", lock="nightly", mode="shared")
        assert metrics("holdfast_lock_held", lock="nightly", mode="exclusive") == 0
        first.end()
        second.end()


def test_attempts_by_outcome(server, command):
    holder = command.hold("nightly")
    assert command("run", "-n", "nightly", "--", "true").code == 75
    assert command("run", "-w", "100ms", "nightly", "--", "true").code == 75
    becomes(server, 1, "holdfast_lock_acquisitions_total", lock="nightly", outcome="acquired")
    becomes(server, 1, "holdfast_lock_acquisitions_total", lock="nightly", outcome="timeout")
    becomes(server, 2, "holdfast_lock_acquisitions_total", lock="nightly", outcome="conflict")
    holder.end()


def test_labels_of_a_pattern_count_under_its_name_and_strangers_as_others(server, command):
    for label in ("job-a", "job-b", "job-c"):
        assert command("run", label, "--", "true").code == 0
    holder = command.hold("whose-is-this")
    becomes(server, 3, "holdfast_lock_acquisitions_total", lock="tenant-job", outcome="acquired")
    metrics = becomes(server, 1, "holdfast_locks_unregistered")
    assert metrics("holdfast_lock_held", lock="_other", mode="exclusive") == 1
    assert not re.search("job-[abc]|whose", read_text(server))
    holder.end()
    becomes(server, 0, "holdfast_locks_unregistered")


def test_without_a_registry_nothing_is_unregistered(command):
    holder = command.hold("whose-is-this")
    metrics = read(Serve(command))
    assert metrics("holdfast_lock_held", lock="_other", mode="exclusive") == 1
    assert metrics("holdfast_locks_unregistered") is None
    holder.end()


def test_the_lock_of_a_network_is_not_unregistered(world, holdfast, registry):
    world.ingest(10, 12)
    server = Serve(world.command, "--registry", registry)
    live = world.follow()
    eventually(lambda: server.api("ingest")["data"][0]["ingester"])
    assert server.api("locks")["data"] and not server.api("locks", state="unregistered")["data"]
    assert read(server)("holdfast_locks_unregistered") == 0
    live.end()
    server.end()


def test_a_loss_counts_by_its_reason(server, command, recorded):
    holder = command.hold("nightly", "--ping", "200ms")
    becomes(server, 1, "holdfast_lock_held", lock="nightly", mode="exclusive")
    recorded.lose(hf.derive("nightly"))
    assert holder.wait() == 79
    reason = "lock_file" if recorded.local else "server"
    metrics = becomes(server, 1, "holdfast_lock_losses_total", lock="nightly", reason=reason)
    assert sum(value for (name, _), value in metrics.samples.items() if name == "holdfast_lock_losses_total") == 1
    becomes(server, 1, "holdfast_run_exits_total", **{"lock": "nightly", "class": "lost"})


def test_loss_of_a_lease_is_told_as_one(server, command, recorded):
    def records(on_local, on_server):
        if not recorded.local:
            return recorded.database.sql(on_server)
        path = pathlib.Path(recorded.url.removeprefix("local:")) / "holdfast.db"
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as connection, connection:
            return connection.execute(on_local).fetchall()

    holder = command.hold("nightly", "--lease", "1500ms")
    becomes(server, 1, "holdfast_lock_held", lock="nightly", mode="exclusive")
    records("update leases set until_ms = 1", "update holdfast.tenures set until = clock_timestamp()")
    assert holder.wait() == 79
    becomes(server, 1, "holdfast_lock_losses_total", lock="nightly", reason="lease")
    told = dict(records("select event, detail from events", "select event, detail from holdfast.events"))
    assert told["acquired"] == told["lost"] == "lease"


def test_runs_count_by_how_they_ended(server, command):
    for words, code in ENDINGS.values():
        assert command("run", "nightly", "--", *words).code == code
    assert command("run", "-t", "100ms", "nightly", "--", "sleep", "60").code == 124
    for word in (*ENDINGS, "time_limit"):
        metrics = becomes(server, 1, "holdfast_run_exits_total", **{"lock": "nightly", "class": word})
    assert metrics("holdfast_run_exits_total", **{"lock": "nightly", "class": "other"}) == 0


def test_marked_locks_have_histograms_that_add_up(server, command):
    for _ in range(3):
        assert command("run", "report", "--", "sleep", "0.2").code == 0
    metrics = becomes(server, 3, "holdfast_lock_hold_seconds_count", lock="report")
    assert metrics("holdfast_lock_wait_seconds_count", lock="report") == 3
    buckets = sorted((float(dict(labels)["le"]), value) for (name, labels), value in metrics.samples.items()
                     if name == "holdfast_lock_hold_seconds_bucket")
    counts = [count for _, count in buckets]
    assert len(buckets) <= 10 and counts == sorted(counts) and counts[-1] == 3
    assert dict(buckets)[0.1] == 0
    assert metrics("holdfast_lock_hold_seconds_sum", lock="report") >= 0.6


# --- ingestion and appends ------------------------------------------------------------------------------


def test_ingestion_moves_its_numbers(world, holdfast):
    world.ingest(100, 150)
    server = Serve(world.command)
    metrics = becomes(server, 150, "holdfast_ingest_latest_ledger", network="testnet")
    assert metrics("holdfast_ingest_oldest_ledger", network="testnet") == 100
    assert metrics("holdfast_ingest_lag_ledgers", network="testnet") == 0
    assert metrics("holdfast_ingest_gaps", network="testnet") == 0
    assert metrics("holdfast_ingest_missing_ledgers", network="testnet") == 0
    assert metrics("holdfast_ingest_ledgers_total", network="testnet", phase="live") == 51
    assert abs(metrics("holdfast_ingest_last_success_timestamp_seconds", network="testnet") - time.time()) < 60
    live = world.follow(chain(150, 152))
    becomes(server, 54 - 1, "holdfast_ingest_ledgers_total", network="testnet", phase="live")
    world.add(ledger(153))
    becomes(server, 153, "holdfast_ingest_latest_ledger", network="testnet")
    live.end()
    assert world("ingest", "--backfill", "50-79", "--source", world.source(chain(1, 160), "all.ndjson")).code == 0
    metrics = becomes(server, 30, "holdfast_ingest_ledgers_total", network="testnet", phase="backfill")
    metrics = becomes(server, 1, "holdfast_ingest_gaps", network="testnet")
    assert metrics("holdfast_ingest_missing_ledgers", network="testnet") == 20
    server.end()


def test_a_source_that_is_ahead_shows_as_lag(world, holdfast):
    made = chain(1, 40)
    made[19] = '{"sequence": 20, "hash": 5}'
    world.ingest_these(made, code=65)
    server = Serve(world.command)
    becomes(server, 21, "holdfast_ingest_lag_ledgers", network="testnet")
    server.end()


def test_appended_rows_count_by_table(appender15, ch):
    make_table(ch)
    server = Serve(appender15.holdfast)
    appender15.done("t", input=rows_of(1, 25))
    appender15.done("--direct", "t", input=rows_of(2, 10))
    eventually(lambda: read(server).labels("holdfast_append_rows_total", "table"))
    (table,) = read(server).labels("holdfast_append_rows_total", "table")
    assert table == f"{ch.name}.t"
    becomes(server, 35, "holdfast_append_rows_total", table=table)
    server.end()


# --- the collector, and Prometheus ----------------------------------------------------------------------


def test_a_store_that_is_away_shows_and_what_was_read_stays(own_pg, own_db, holdfast, registry):
    hf.install(own_db.url())
    server = Serve(holdfast.at(own_db.url()), "--registry", registry)
    holdfast.at(own_db.url()).hold("nightly")
    becomes(server, 1, "holdfast_lock_held", lock="nightly", mode="exclusive")
    own_pg.stop()
    metrics = becomes(server, 0, "holdfast_up")
    assert metrics("holdfast_lock_held", lock="nightly", mode="exclusive") == 1
    taken = metrics("holdfast_snapshot_timestamp_seconds")
    own_pg.start()
    metrics = becomes(server, 1, "holdfast_up")
    assert metrics("holdfast_snapshot_timestamp_seconds") > taken
    server.end()


def test_a_real_prometheus_scrapes_it(server, command, tmp_path):
    command.hold("nightly")
    assert command("run", "report", "--", "true").code == 0
    with Prometheus(tmp_path, server.port) as prometheus:
        eventually(lambda: prometheus.value('holdfast_lock_held{lock="nightly",mode="exclusive"}') == 1, 20)
        eventually(lambda: prometheus.target("health") == "up")
        assert prometheus.value('holdfast_lock_held{lock="by-number",mode="exclusive"}') == 0
        assert prometheus.value("holdfast_up") == 1
        assert prometheus.value("count(holdfast_lock_held)") == 2 * 5
        eventually(lambda: prometheus.value('holdfast_lock_hold_seconds_count{lock="report"}') == 1, 20)
        assert prometheus.value('holdfast_lock_hold_seconds_bucket{lock="report",le="+Inf"}') == 1
        assert command("run", "report", "--", "true").code == 0
        eventually(lambda: (prometheus.value('increase(holdfast_run_exits_total{lock="report",class="ok"}[30s])') or 0) > 0, 20)
        kinds = prometheus.ask("metadata")
        assert kinds["holdfast_lock_hold_seconds"][0]["type"] == "histogram"
        assert kinds["holdfast_lock_waiters"][0]["type"] == "gauge"


@pytest.mark.parametrize("recorded", ["local"], indirect=True)
def test_with_a_token_prometheus_needs_it(command, registry, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-the-test-and-nobody-elses\n")
    token.chmod(0o600)
    server = Serve(command, "--registry", registry, "--token-file", token)
    assert server.get("/metrics", bearer=False).status == 401
    without, having = tmp_path / "without", tmp_path / "having"
    without.mkdir()
    having.mkdir()
    with Prometheus(without, server.port) as prometheus:
        eventually(lambda: prometheus.target("health") == "down" and "401" in prometheus.target("lastError"))
    with Prometheus(having, server.port, credentials_file=token) as prometheus:
        eventually(lambda: prometheus.value("holdfast_up") == 1, 20)
    server.end()


@pytest.mark.parametrize("recorded", ["local"], indirect=True)
def test_a_thousand_registered_locks_are_no_trouble(command, tmp_path):
    path = hf_registry.write(tmp_path, [f"name: lock-{n}, key: {{ fixed: {10000 + n} }}" for n in range(1000)])
    server = Serve(command, "--registry", path, refresh="1s")
    assert_promtool_takes(read_text(server))
    assert len(read(server).labels("holdfast_lock_held", "lock")) == 1001
    server.end()
