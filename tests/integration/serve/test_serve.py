"""REST, health and the OpenAPI document of `holdfast serve`, on real locks."""

import datetime
import gzip
import json
import signal
import threading

import jsonschema
import pytest

import cli
import hf
import hf_registry
from awaiting import eventually
from ledgers import chain
from serve import Serve

LISTS = ["contention", "waits/past", "locks", "waits", "events", "registry", "ingest", "tables"]


@pytest.fixture
def serve(recorded, holdfast):
    started = []

    def start(*options, **how):
        started.append(Serve(holdfast.at(recorded.url), *options, **how))
        return started[-1]

    return start


# --- content ------------------------------------------------------------------------------------------


def test_a_lock_is_shown_with_its_holder_and_waiters(serve, command, recorded):
    holder = command.hold("nightly")
    waiter = command.start("run", "nightly", "--", "true")
    server = serve()
    lock = eventually(lambda: (found := server.lock("nightly")) and found["waiters"] and found["holders"][0]["token"]
                      and found, 10)
    assert len(lock["holders"]) == 1 and len(lock["waiters"]) == 1
    held = lock["holders"][0]
    assert held["mode"] == "exclusive" and held["ours"] and held["pid"] == holder.pid
    assert held["token_text"] == str(held["token"])
    assert lock["waiters"][0]["blocked_by"] == [held["party"]]
    assert lock["key_text"] == str(lock["key"]) and lock["space"] == "bigint"
    edge = server.api("waits")["data"]
    assert [(row["waiter"]["pid"], row["holder"]["pid"], row["lock"]["label"]) for row in edge] \
        == [(waiter.pid, holder.pid, "nightly")]
    assert edge[0]["holder"]["root"] and not edge[0]["waiter"]["root"]


def test_a_released_lock_is_gone_and_its_history_stays(serve, command):
    server = serve()
    assert command("run", "brief", "--", "true").code == 0
    events = eventually(lambda: [event for event in server.api("events")["data"] if event["label"] == "brief"]
                        if any(event["event"] == "exit" for event in server.api("events")["data"]) else None)
    assert {"acquired", "released", "exit"} <= {event["event"] for event in events}
    eventually(lambda: server.lock("brief") is None, what="a snapshot that was begun after the release")
    newest = server.api("events")["data"]
    assert [event["id"] for event in newest] == sorted((event["id"] for event in newest), reverse=True)


def test_the_registry_names_locks_and_says_how_they_stand(serve, command, tmp_path):
    path = hf_registry.write(tmp_path, ["name: nightly, key: { pattern: 'nightly' }, owner: ops, purpose: the job",
                                        "name: other, key: { fixed: 7 }"])
    holder = command.hold("nightly", "--registry", path)
    server = serve("--registry", path)
    lock = eventually(lambda: server.lock("nightly"))
    assert (lock["name"], lock["owner"], lock["registered"]) == ("nightly", "ops", True)
    answer = server.api("registry")
    rows = {row["name"]: row for row in answer["data"]}
    assert rows["nightly"]["now"]["held_exclusive"] == 1 and rows["other"]["now"]["held_exclusive"] == 0
    assert rows["other"]["key_text"] == "7" and answer["path"] == str(path)
    assert holder.process.poll() is None


# --- filters and pages --------------------------------------------------------------------------------


def hold_many(recorded, count):
    store = recorded.open()
    return store, [store.acquire(f"job-{index:02d}") for index in range(count)]


def test_contention_is_told_by_label_where_no_registry_names_it(serve, command):
    holder = command.hold("hot")
    waiter = command.start("run", "-w", "600s", "hot", "--", "true")
    server = serve()
    row = eventually(lambda: next((row for row in server.api("contention")["data"] if row["waiters"]), None))
    assert row["lock"] == "hot" and not row["registered"] and row["step_ms"] == 60000
    assert row["columns"][-1]["waiters"] == 1 and row["samples"] >= row["held"] >= 1
    day, = server.api("contention", span="24h", q="HOT")["data"]
    assert day["lock"] == "hot" and day["step_ms"] == 600000
    assert ">hot</a>" in server.get("/").text.split('id="contention"')[1]
    holder.end()
    assert waiter.wait() == 0


def test_who_waited_for_whom_is_found_by_its_time(serve, command):
    holder = command.hold("hot")
    waiter = command.start("run", "-w", "600s", "hot", "--", "true")
    server = serve()
    before = eventually(lambda: server.api("waits")["data"])
    holder.end()
    assert waiter.wait() == 0
    eventually(lambda: not server.api("waits")["data"])
    moment = server.api("waits/past")["data"][0]
    assert moment["waiting"] == 1 and moment["step_ms"] == 60000
    then = server.api("waits", at=moment["at"])
    assert then["at"] == moment["at"]
    assert [(wait["waiter"]["pid"], wait["holder"]["pid"], wait["lock"]["label"]) for wait in then["data"]] == [
        (waiter.pid, holder.pid, "hot")] == [(before[0]["waiter"]["pid"], before[0]["holder"]["pid"], "hot")]
    page = server.get(f"/?at={moment['at']}").text
    assert "Who waited for whom at " in page and f"pid {holder.pid}" in page.split('id="waits"')[1].split("</section>")[0]
    assert "known to have waited then" in server.get("/?at=2024-06-01T12:00:00Z").text
    gone = server.api("waits", at="2024-06-01T12:00:00Z")
    assert gone["data"] == [] and gone["at"] is None


def test_all_events_are_read_by_a_cursor_and_chosen_by_kind_key_and_time(serve, command, recorded):
    for label in ("a", "b", "a"):
        assert command("run", label, "--", "true").code == 0
    server = serve()
    eventually(lambda: len(server.api("events", event="exit")["data"]) == 3)
    kept = server.api("events")["data"]
    url, seen = "/api/v1/history?limit=2", []
    while url:
        answer = server.get(url).json
        seen += answer["data"]
        url = answer["page"]["next"]
    assert [event["id"] for event in seen] == sorted((event["id"] for event in kept), reverse=True)
    assert {str(event) for event in seen} == {str(event) for event in kept}
    key = str(hf.derive("a"))
    assert [event["label"] for event in server.api("history", key=key, event="exit")["data"]] == ["a", "a"]
    first, last = seen[-1], seen[0]
    assert server.api("history", until=first["at_ms"])["data"] == []
    assert last in server.api("history", since=last["at_ms"])["data"]
    assert first not in server.api("history", since=first["at_ms"] + 1)["data"]


def test_pages_cover_every_lock_once(serve, recorded):
    store, _ = hold_many(recorded, 25)
    server = serve()
    eventually(lambda: server.api("locks")["page"]["total"] == 25)
    seen, path = [], "/api/v1/locks?limit=10&q=job"
    while path:
        page = server.get(path).json
        seen += [lock["label"] for lock in page["data"]]
        path = page["page"]["next"]
    assert sorted(seen) == [f"job-{index:02d}" for index in range(25)]
    store.close()


def test_filters_keep_what_fits(serve, recorded, command):
    store, _ = hold_many(recorded, 3)
    command.hold("shared-one", "-s")
    server = serve()
    eventually(lambda: server.api("locks")["page"]["total"] == 4)
    labels = lambda **how: sorted(lock["label"] for lock in server.api("locks", **how)["data"])
    assert labels(q="JOB-01") == ["job-01"]
    assert labels(mode="shared") == ["shared-one"]
    assert labels(state="waiting") == []
    assert len(labels(state="unregistered")) == 4
    key = server.lock("job-02")["key_text"]
    assert labels(key=key) == ["job-02"]
    assert server.api("events", event="lost")["data"] == []
    future = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).isoformat()
    eventually(lambda: server.api("events")["data"], what="events are recorded")
    assert server.api("events", since=future)["data"] == []
    assert server.api("events", since="0")["data"] != []
    store.close()


# --- caching ------------------------------------------------------------------------------------------


def test_what_the_client_has_is_not_sent_again(holdfast):
    server = Serve(holdfast, refresh="1h")
    for path in ["/api/v1/locks", "/metrics", "/", "/api/v1/openapi.json", "/assets/style.css"]:
        first = server.get(path)
        assert first.status == 200 and first.headers["ETag"].startswith('"'), path
        again = server.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status, again.body) == (304, b""), path
        assert again.headers["ETag"] == first.headers["ETag"]
        assert server.get(path, headers={"If-None-Match": '"else"'}).body == first.body


def test_the_next_snapshot_has_another_etag(holdfast):
    server = Serve(holdfast)
    before = server.get("/api/v1/locks").headers["ETag"]
    server.await_refresh()
    assert server.get("/api/v1/locks").headers["ETag"] != before


def test_head_says_what_get_would(holdfast):
    server = Serve(holdfast, refresh="1h")
    for path in ["/", "/api/v1/locks", "/metrics"]:
        get, head = server.get(path), server.request("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["Content-Length"] == str(len(get.body))
        assert head.headers["ETag"] == get.headers["ETag"]


def test_whoever_takes_gzip_gets_the_same_smaller(holdfast):
    server = Serve(holdfast, refresh="1h")
    for path in ["/", "/metrics"]:
        plain = server.get(path)
        packed = server.get(path, headers={"Accept-Encoding": "br, gzip;q=0.5"})
        assert packed.headers["Content-Encoding"] == "gzip" and "Accept-Encoding" in plain.headers["Vary"]
        assert gzip.decompress(packed.body) == plain.body and len(packed.body) < len(plain.body) / 2
        assert packed.headers["ETag"] != plain.headers["ETag"]
        refused = server.get(path, headers={"Accept-Encoding": "gzip;q=0, br;q=1"})
        assert "Content-Encoding" not in refused.headers and refused.body == plain.body


def test_metrics_come_in_the_format_that_is_asked_for(holdfast):
    server = Serve(holdfast)
    plain = server.get("/metrics")
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    other = server.get("/metrics", headers={"Accept": accept})
    assert other.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert other.text.endswith("# EOF\n") and not plain.text.endswith("# EOF\n")
    assert plain.headers["Vary"] == other.headers["Vary"] == "Accept, Accept-Encoding"


# --- ledgers and transactions ---------------------------------------------------------------------------


def test_ledgers_are_paged_by_a_cursor(world, holdfast):
    world.ingest(1, 25)
    server = Serve(holdfast.at(world.kind.url))
    seen, path = [], "/api/v1/ledgers?network=testnet&limit=10"
    while path:
        answer = server.get(path)
        assert answer.status == 200, answer
        seen += [ledger["sequence"] for ledger in answer.data]
        path = answer.json["page"]["next"]
    assert seen == list(range(1, 26))
    few = server.api("ledgers", network="testnet", **{"from": 5, "to": 7})["data"]
    assert [ledger["sequence"] for ledger in few] == [5, 6, 7]
    assert few[0]["closed_at"].endswith("Z") and few[1]["previous_hash"] == few[0]["hash"]


def test_transactions_are_found_by_range_hash_and_id(world, holdfast):
    world.ingest(1, 5)
    server = Serve(holdfast.at(world.kind.url))
    rows = world.network.sql("select to_id, hash, ledger_number from @transactions order by to_id")
    everything = server.api("transactions", network="testnet")["data"]
    assert [(row["id"], row["hash"], row["ledger"]) for row in everything] == [tuple(row) for row in rows]
    one = rows[-1]
    for how in [{"hash": one[1]}, {"id": one[0]}]:
        found = server.api("transactions", network="testnet", **how)["data"]
        assert [row["id_text"] for row in found] == [str(one[0])], how
    some = server.api("transactions", network="testnet", **{"from": 2, "to": 3})["data"]
    assert {row["ledger"] for row in some} == {2, 3}
    bodies = world.network.sql("select body from @transactions order by to_id")
    stored = [json.loads(body) if isinstance(body, str) else body for (body,) in bodies]
    assert [row["body"] for row in everything] == stored
    assert server.get("/api/v1/transactions?network=testnet&hash=x&id=3").status == 400


@pytest.mark.parametrize("world", ["pg18"], indirect=True)
def test_a_table_that_somebody_locks_holds_up_neither_the_refreshes_nor_the_end(world, holdfast):
    world.ingest(1, 5)
    server = Serve(holdfast.at(world.kind.url))
    with world.kind.database.connect(autocommit=False) as connection:
        connection.cursor().execute("lock table ingest_testnet.transactions in access exclusive mode")
        refused = server.get("/api/v1/transactions?network=testnet")
        assert refused.status == 503 and "deadline" in refused.text, refused
        server.await_refresh()
        server.process.signal(signal.SIGTERM)
        assert server.process.wait(20) == 0


@pytest.mark.parametrize("world", ["pg18"], indirect=True)
def test_a_network_that_cannot_be_read_says_so_and_the_others_are_shown(world, holdfast):
    world.ingest(1, 5)
    world.kind.database.sql("create schema ingest_broken; create table ingest_broken.ingest_store (other int);"
                            "grant usage on schema ingest_broken to app;"
                            "grant select on ingest_broken.ingest_store to app")
    server = Serve(holdfast.at(world.kind.url))
    broken, well = server.api("ingest")["data"]
    assert (broken["network"], well["network"]) == ("broken", "testnet")
    assert "does not exist" in broken["problem"] and well["problem"] is None
    page = server.get("/").text
    assert page.count("It cannot be read") == 1 and "Coverage of testnet" in page and "No ledger is there" not in page
    health = server.get("/health")
    assert (health.status, health.json["status"], health.json["unread"]) == (200, "degraded", ["broken"])
    strict = Serve(holdfast.at(world.kind.url), "--max-lag", 100).get("/health")
    assert strict.status == 503 and "the lag of broken is not known: it cannot be read" in strict.text, strict


@pytest.mark.parametrize("world", ["pg18"], indirect=True)
@pytest.mark.parametrize("table", ["ingest_store", "ingest_coverage"])
def test_a_network_that_somebody_locks_is_named_and_the_others_are_shown(world, holdfast, table):
    world.ingest(1, 5)
    world.ingest(1, 6, network="zebra")
    server = Serve(holdfast.at(world.kind.url))
    with world.kind.database.connect(autocommit=False) as connection:
        connection.cursor().execute(f"lock table ingest_testnet.{table} in access exclusive mode")
        eventually(lambda: server.get("/health").json["unread"] == ["testnet"], 30)
        locked, other = server.api("ingest")["data"]
        assert "locks one of its tables" in locked["problem"] and other["latest"] == 6, locked
    eventually(lambda: server.get("/health").json["status"] == "ok", 30)


def test_networks_in_other_schemas_are_shown_and_looked_up(world, holdfast):
    world.ingest(1, 5)
    world.ingest(1, 9, "--schema", "wallet")
    server = Serve(holdfast.at(world.kind.url))
    shown = {one["network"]: (one["schema"], one["latest"]) for one in server.api("ingest")["data"]}
    assert shown == {"testnet": ("ingest_testnet", 5), "testnet@wallet": ("wallet", 9)}
    assert server.api("ingest/testnet@wallet/gaps")["data"] == []
    ledgers = server.api("ledgers", network="testnet@wallet")["data"]
    assert [row["sequence"] for row in ledgers] == list(range(1, 10))
    assert server.get("/api/v1/ledgers?network=wallet").status == 404
    metrics = server.get("/metrics").text
    assert 'holdfast_ingest_latest_ledger{network="testnet@wallet"} 9' in metrics
    assert 'holdfast_ingest_readable{network="testnet@wallet"} 1' in metrics
    assert "Coverage of testnet@wallet" in server.get("/").text


def test_gaps_of_a_network_are_listed(world, holdfast):
    world.ingest(1, 20)
    world.network.sql("update @ingest_coverage set hi = 8 where lo = 1")
    world.network.sql("insert into @ingest_coverage (lo, hi) values (11, 14), (16, 20)")
    server = Serve(holdfast.at(world.kind.url))
    network = server.api("ingest", network="testnet")["data"][0]
    assert (network["network"], network["latest"], network["gaps"], network["missing"]) == ("testnet", 20, 2, 3)
    gaps = server.api("ingest/testnet/gaps")["data"]
    assert gaps == [{"from": 9, "to": 10, "ledgers": 2}, {"from": 15, "to": 15, "ledgers": 1}]
    assert [gap["from"] for gap in server.api("ingest/testnet/gaps", **{"from": 11})["data"]] == [15]
    assert server.get("/api/v1/ingest/nowhere/gaps").status == 404
    assert server.get("/api/v1/ledgers?network=nowhere").status == 404


# --- health ---------------------------------------------------------------------------------------------


def test_health_says_when_the_store_is_away_and_when_it_is_back(own_pg, own_db, holdfast):
    server = Serve(holdfast.at(own_db.url()))
    assert server.get("/health").json["status"] == "ok" and server.get("/ready").status == 200
    own_pg.stop()
    failing = eventually(lambda: (answer := server.get("/health")).status == 503 and answer, 20)
    assert failing.json["reasons"] and server.get("/ready").status == 503
    old = server.get("/api/v1/locks")
    assert old.status == 200 and old.json["snapshot"]["problem"], "what was known is still shown"
    own_pg.start()
    eventually(lambda: server.get("/health").status == 200, 30, "the store is back")


def test_while_the_store_is_away_nobody_waits_for_what_takes_it(own_pg, own_db, holdfast):
    server = Serve(holdfast.at(own_db.url()))
    own_pg.stop()
    eventually(lambda: server.get("/ready").status == 503, 20)
    answer = server.get("/api/v1/ledgers?network=testnet")
    assert answer.status == 503 and answer.headers["Retry-After"]
    assert answer.json["error"]["detail"].startswith("the store cannot be read: ")


@pytest.mark.parametrize("tip, lag, status", [(16, 6, 503), (15, 5, 200), (3, -7, 200)])
def test_health_fails_beyond_the_allowed_lag_only(world, holdfast, tip, lag, status):
    """Being ahead of what the source last said is healthy."""
    world.ingest(1, 10)
    world.network.sql("delete from @ingest_store where key = 'holdfast.sourceTip'")
    world.network.sql("insert into @ingest_store (key, value) values ('holdfast.sourceTip', %s)", str(tip))
    server = Serve(holdfast.at(world.kind.url), "--max-lag", 5)
    assert server.api("ingest")["data"][0]["lag"] == lag
    health = server.get("/health")
    assert health.status == status and ("testnet" in health.text) == (status == 503)
    assert server.get("/ready").status == 200


def test_a_lag_that_nobody_measures_any_more_is_not_known(world, holdfast):
    world.ingest(1, 10)
    world.network.sql("update @ingest_store set value = '1700000000000' where key = 'holdfast.lastSuccess'")
    server = Serve(holdfast.at(world.kind.url), "--max-lag", 5)
    health = server.get("/health")
    assert (health.status, server.api("ingest")["data"][0]["lag"]) == (503, None)
    assert "testnet" in health.text and "holdfast_ingest_lag_ledgers{" not in server.get("/metrics").text
    assert world.json("ingest", "status")["networks"][0]["lag_ledgers"] is None
    assert "caught up" not in world("ingest", "status").out
    live = world.start("ingest", "--source", world.source(chain(1, 10)), "--follow")
    eventually(lambda: server.api("ingest")["data"][0]["lag"] == 0)
    assert (server.get("/health").status, live.process.poll()) == (200, None)


@pytest.mark.parametrize("damage, said", [
    ("insert into @ingest_coverage (lo, hi) values (3, 4)", "overlap"),
    ("drop table @ingest_coverage", "no coverage"),
    ("update @ingest_store set value = 'abc' where key = 'latestLedgerCursor'", "abc"),
])
def test_what_is_not_known_of_a_network_is_never_none(world, holdfast, damage, said):
    world.ingest(1, 10)
    world.network.sql(damage)
    command = holdfast.at(world.kind.url)
    server = Serve(command)
    (shown,) = server.api("ingest")["data"]
    assert (shown["gaps"], shown["missing"], shown["covered"]) == (None, None, None), shown
    gaps = server.get("/api/v1/ingest/testnet/gaps")
    assert gaps.status == 503 and said in gaps.json["error"]["detail"], gaps
    page = server.get("/").text
    assert "?</b> <span>gaps" in page and "Coverage of testnet" not in page
    top = json.loads(command("top", "--once", "--json", "--tab", "ingest").out)
    assert (top["gaps"], top["missing_ledgers"]) == (None, None)
    assert "gaps unknown" in command("top", "--once", "--tab", "ingest").out
    if said == "abc":
        assert shown["latest"] is None and "holdfast_ingest_latest_ledger{" not in server.get("/metrics").text


# --- the document ---------------------------------------------------------------------------------------


def as_json_schema(schema):
    """OpenAPI 3.0 says nullable where JSON Schema has a list of types."""
    if isinstance(schema, list):
        return [as_json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: as_json_schema(value) for name, value in schema.items() if name != "nullable"}
    if schema.get("nullable") is True and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


def document(server):
    return server.get("/api/v1/openapi.json").json


def test_every_json_answer_is_as_documented(world, holdfast, tmp_path):
    path = hf_registry.write(tmp_path, ["name: nightly, key: { pattern: 'nightly' }, owner: ops"])
    command = holdfast.at(world.kind.url)
    assert command("init").code == 0
    world.ingest(1, 5)
    command.hold("nightly", "--registry", path)
    command.start("run", "--registry", path, "nightly", "--", "true")
    assert command("table", "register", "shop.orders").code == 0
    server = Serve(command, "--registry", path)
    eventually(lambda: server.api("waits")["data"])
    eventually(lambda: server.api("events")["data"])
    paths = document(server)["paths"]
    answers = [f"/api/v1/{name}" for name in LISTS] + ["/health", "/ready"]
    given = {"/api/v1/ingest/{network}/gaps": "/api/v1/ingest/testnet/gaps",
             "/api/v1/history": "/api/v1/history?limit=3",
             "/api/v1/ledgers": "/api/v1/ledgers?network=testnet",
             "/api/v1/transactions": "/api/v1/transactions?network=testnet"}
    for path, url in [*zip(answers, answers), *given.items()]:
        schema = paths[path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        answer = server.get(url)
        assert answer.status == 200, answer
        jsonschema.validate(answer.json, as_json_schema(schema))
        if "gaps" not in path and "data" in answer.json:
            assert answer.data, f"{path} had nothing to check"


def test_every_route_is_in_the_document_and_answers(holdfast):
    server = Serve(holdfast)
    described = document(server)
    assert described["openapi"].startswith("3.")
    for path, methods in described["paths"].items():
        url = path.replace("{network}", "nowhere").replace("{file}", "style.css")
        options = server.request("OPTIONS", url)
        allowed = {word.strip().lower() for word in options.headers["Allow"].split(",")} - {"head", "options"}
        assert allowed == set(methods), path
        wrong = server.request("DELETE", url)
        assert wrong.status == 405 and wrong.headers["Allow"] == options.headers["Allow"]
    for path in ["/", "/metrics", "/login", "/logout", "/terminate", *(f"/api/v1/{name}" for name in LISTS)]:
        assert path in described["paths"], path


def test_documented_parameters_are_taken_and_others_refused(holdfast):
    server = Serve(holdfast)
    for path, methods in document(server)["paths"].items():
        if "get" not in methods or path.startswith("/assets"):
            continue
        url = path.replace("{network}", "nowhere")
        needed = "&".join(f"{p['name']}=nowhere" for p in methods["get"]["parameters"]
                          if p["in"] == "query" and p["required"])
        plain = server.get(f"{url}?{needed}").status
        assert server.get(f"{url}?{needed}&unheard-of=1").status == 400, path
        for parameter in methods["get"]["parameters"]:
            if parameter["in"] != "query" or parameter["required"]:
                continue
            schema = parameter["schema"]
            good = schema.get("enum", ["2024-06-01T12:00:00Z"])[0]
            if schema["type"] == "integer":
                good = schema["minimum"]
                for beyond in (schema["minimum"] - 1, schema["maximum"] + 1, "many"):
                    assert server.get(f"{url}?{needed}&{parameter['name']}={beyond}").status == 400
            elif "enum" in schema:
                assert server.get(f"{url}?{needed}&{parameter['name']}=nonsense").status == 400
            answer = server.get(f"{url}?{needed}&{parameter['name']}={good}")
            assert answer.status == plain, (path, parameter, answer)


# --- one set of queries whatever the number of viewers ----------------------------------------------------


def test_viewers_do_not_add_queries(own_pg, own_db, holdfast):
    own_db.sql(f"alter database {own_db.name} set log_statement = 'all'")
    server = Serve(holdfast.at(own_db.url()), refresh="200ms")

    def statements_per_refresh():
        server.await_refresh(1)
        first, before = server.number, own_pg.log_size()
        eventually(lambda: server.number >= first + 10, 30)
        last = server.number
        text = own_pg.log(before)
        return sum(1 for line in text.splitlines() if "LOG:  " in line and
                   ("execute" in line or "statement:" in line)) / (last - first)

    alone = statements_per_refresh()
    watched = with_viewers(server, 50, statements_per_refresh)
    assert alone > 0
    assert watched <= alone * 1.5 + 1, (alone, watched)


def with_viewers(server, count, call):
    over = threading.Event()
    done = []

    def view():
        while not over.is_set():
            for path in ("/", "/api/v1/locks", "/api/v1/waits", "/metrics", "/api/v1/events?q=x"):
                if server.get(path).status == 200:
                    done.append(path)

    viewers = [threading.Thread(target=view) for _ in range(count)]
    for viewer in viewers:
        viewer.start()
    try:
        eventually(lambda: len(done) > count, 30, "all viewers look")
        return call()
    finally:
        over.set()
        for viewer in viewers:
            viewer.join()


# --- the program -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(holdfast, number):
    server = Serve(holdfast)
    server.process.signal(number)
    assert server.process.wait(10) == 0


@pytest.mark.parametrize(("listen", "url"), [("[::1]:0", "http://[::1]:"), ("localhost:0", "http://")])
def test_it_listens_on_ipv6_and_under_a_name(holdfast, listen, url):
    server = Serve(holdfast, listen=listen)
    assert server.url.startswith(url) and server.get("/ready").status == 200


def test_with_json_the_address_is_a_document(holdfast):
    process = holdfast.start("serve", "--json", "--listen", "127.0.0.1:0")
    where = json.loads(process.await_line("listening", timeout=30))
    assert where["listening"].startswith("http://127.0.0.1:")


def test_wrong_usage_is_one_clear_line(holdfast):
    taken = Serve(holdfast)
    for options, code, words in [
        (["--listen", f"127.0.0.1:{taken.port}"], cli.EXIT_CONFIG, "in use"),
        (["--listen", "127.0.0.1"], cli.EXIT_USAGE, "no address"),
        (["--listen", "127.0.0.1:99999"], cli.EXIT_USAGE, "no address"),
        (["--listen", "::1:80"], cli.EXIT_USAGE, "no address"),
        (["--listen", "no.such.host.invalid:80"], cli.EXIT_CONFIG, "cannot listen"),
        (["--listen", "192.0.2.1:0", "--token-file", "/nowhere"], cli.EXIT_CONFIG, "token file"),
        (["--listen", "0.0.0.0:0"], cli.EXIT_CONFIG, "takes a token"),
        (["--refresh", "1ms"], cli.EXIT_USAGE, "--refresh"),
        (["--allow-terminate"], cli.EXIT_USAGE, "--token-file"),
        (["--base-path", "holdfast"], cli.EXIT_USAGE, "--base-path"),
        (["--base-path", "/a/../b"], cli.EXIT_USAGE, "--base-path"),
        (["--base-path", "/a/"], cli.EXIT_USAGE, "--base-path"),
        (["--url", "postgresql://127.0.0.1:1/nothing"], cli.EXIT_UNREACHABLE, "127.0.0.1"),
    ]:
        done = holdfast("serve", *options)
        assert done.code == code and words in done.err, (options, done)
        assert done.out == "" and done.err.count("error:") == 1, done
