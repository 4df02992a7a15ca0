"""Several stores in one `holdfast serve`: PostgreSQL 15, 18 and a folder, of which one falls silent and one ends."""

import pathlib
import re
import signal

import jsonschema
import pytest

import cli
import hf
import servers
from awaiting import eventually
from browser import Browser
from prometheus import read
from serve import TOKEN, Serve

SECRET = "open sesame"
SCREENS = hf.BUILD / "screens"


class Stores:
    """Three stores and the file that names them. The clusters are the test's own: it stops them."""

    def __init__(self, eu, us, folder, holdfast):
        self.eu, self.us = eu, us
        self.urls = {"eu": eu.url(user="guarded", password=SECRET), "us": us.url(), "local": f"local:{folder / 'state'}"}
        self.file = folder / "stores"
        self.file.write_text("# where we lock\n\n" + "".join(f"{name}  {url}\n" for name, url in self.urls.items()))
        self.file.chmod(0o600)
        self.holdfast = holdfast

    def at(self, name):
        return self.holdfast.at(self.urls[name])

    def serve(self, *options, **how):
        return Serve(self.holdfast, "--stores", self.file, *options, **how)


@pytest.fixture(scope="module", name="clusters")
def own_clusters(template15, template18):
    with servers.Postgres.copy_of(template15, "eu") as eu, servers.Postgres.copy_of(template18, "us") as us:
        for cluster in (eu, us):
            cluster.start()
            cluster.sql("grant create on database postgres to app, guarded")
        hf.install(eu.url(user="guarded", password=SECRET))
        hf.install(us.url())
        yield eu, us


@pytest.fixture
def stores(clusters, holdfast, tmp_path):
    eu, us = clusters
    yield Stores(eu, us, tmp_path, holdfast)
    holdfast.end_all()
    for cluster in clusters:
        if cluster.process is None:
            cluster.start()


def standing(server, base=""):
    return {row["name"]: row for row in server.get(f"{base}/api/v1/stores").data}


def await_states(server, **states):
    def there():
        found = standing(server)
        return all(found[name]["state"] == state for name, state in states.items()) and found

    return eventually(there, 40, f"the stores are {states}")


def await_all(server):
    return await_states(server, eu="up", us="up", local="up")


def labels(server, name):
    return {lock["label"] for lock in server.get(f"/stores/{name}/api/v1/locks").data}


def await_refresh(server, name, times=2):
    def number():
        return server.get(f"/stores/{name}/api/v1/tables").json["snapshot"]["number"]

    wanted = number() + times
    eventually(lambda: number() >= wanted, 20, f"the next snapshots of {name}")


# --- which stores -------------------------------------------------------------------------------------


def test_each_store_has_its_own_lists_history_and_page(stores):
    for name in stores.urls:
        stores.at(name).hold(f"job-of-{name}")
    server = stores.serve()
    await_all(server)
    for name in stores.urls:
        eventually(lambda: labels(server, name) == {f"job-of-{name}"})
        event, = eventually(lambda: server.get(f"/stores/{name}/api/v1/history?event=acquired&limit=1").data)
        assert event["label"] == f"job-of-{name}"
        assert f"job-of-{name}" in server.get(f"/stores/{name}/").text
    assert [row["name"] for row in server.get("/api/v1/stores").data] == list(stores.urls)
    assert {row["kind"] for row in standing(server).values()} == {"postgresql", "local"}


def test_what_is_of_one_store_says_which_there_are(stores):
    server = stores.serve()
    for path in ("/api/v1/locks", "/stores/mars/api/v1/locks", "/stores/mars/metrics"):
        answer = server.get(path, headers={"Accept": "application/json"})
        assert answer.status == 404 and "one of: eu, us, local" in answer.json["error"]["detail"], answer
    assert server.get("/stores/").status == 404 and server.get("/stores/eu/nothing").status == 404
    assert server.post("/terminate", {}).status == 404


def test_one_store_with_a_name_is_as_if_it_had_none(stores):
    command = stores.at("local")
    command.hold("nightly")
    plain, named = Serve(command), Serve(stores.holdfast, "--store", f"only={stores.urls['local']}")
    for server in (plain, named):
        eventually(lambda: server.lock("nightly"))
        assert "All stores" not in server.get("/").text
    answers = [set(server.get(path).json) for server in (plain, named) for path in ("/api/v1/locks", "/health")]
    assert answers[:2] == answers[2:]
    assert read(plain).labels("holdfast_build_info", "store") == {"local"}
    assert read(named).samples.keys() == read(plain).samples.keys()
    assert plain.get("/stores/only/api/v1/locks").status == 404
    assert [lock["label"] for lock in named.get("/stores/only/api/v1/locks").data] == ["nightly"]
    assert [row["path"] for row in named.get("/api/v1/stores").data] == [""]


def test_openapi_describes_every_address_of_several_stores(stores):
    server = stores.serve("--base-path", "/holdfast")
    await_states(server, local="up")
    described = server.get("/api/v1/openapi.json").json
    assert "/stores/{store}/api/v1/locks" in described["paths"] and "/api/v1/locks" not in described["paths"]
    for path, operations in described["paths"].items():
        needed = [one for one in operations.get("get", {}).get("parameters", [])
                  if one["required"] and one["name"] != "store"]
        if "get" not in operations or needed:
            continue
        answer = server.get(path.replace("{store}", "local"), headers={"Accept": "text/html, application/json"})
        assert answer.status in (200, 303, 503), (path, answer)
        content = operations["get"]["responses"]["200"]["content"]
        if "application/json" in content and answer.status == 200:
            jsonschema.validate(answer.json, plain(content["application/json"]["schema"]))
    assert standing(server, "/holdfast")["local"]["path"] == "/holdfast/stores/local"
    assert 'href="/holdfast/stores/local/"' in server.get("/holdfast/").text
    following = "/holdfast/stores/local/api/v1/locks?limit=1&offset=1"
    for label in ("a", "b"):
        stores.at("local").hold(label)
    eventually(lambda: server.get("/stores/local/api/v1/locks?limit=1").json["page"]["next"] == following)


def plain(schema):
    """OpenAPI 3.0 says nullable where JSON Schema has a second type."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: plain(value) for name, value in schema.items() if name not in ("nullable", "format")}
    if schema.get("nullable") and "type" in schema:
        made["type"] = [schema["type"], "null"]
    return made


# --- stores that are down -----------------------------------------------------------------------------


def test_a_silent_and_a_dead_store_neither_delay_nor_blank_the_others(stores):
    for name in stores.urls:
        stores.at(name).hold("nightly")
    server = stores.serve()
    await_all(server)
    eventually(lambda: all(labels(server, name) == {"nightly"} for name in stores.urls))
    with stores.us.frozen():
        stores.eu.stop()
        stores.at("local").hold("later")
        eventually(lambda: labels(server, "local") == {"nightly", "later"}, 5, "the folder is read all the time")
        found = await_states(server, eu="down", us="down", local="up")
        await_refresh(server, "local")
        for name in ("eu", "us"):
            row = found[name]
            assert row["problem"] and row["problem_since"] and row["taken_at"] and row["held"] == 1, row
            assert labels(server, name) == {"nightly"}, "what was read last stays, with its time"
        health = server.get("/health")
        assert health.status == 503 and {reason.split(":")[0] for reason in health.json["reasons"]} == {"eu", "us"}
        assert server.get("/stores/local/health").status == 200 and server.get("/stores/eu/health").status == 503
        assert server.get("/ready").status == 200 and server.get("/ready").json["status"] == "degraded"
        metrics = read(server)
        assert [metrics("holdfast_up", store=name) for name in stores.urls] == [0, 0, 1]
        page = server.get("/").text
        rows = re.findall(r'id="store-(\w+)"', page)
        assert set(rows[:2]) == {"eu", "us"} and rows[2] == "local", "those in trouble come first"
        assert page.index("eu is down") and "(2 down)" in page
        ended = server.get("/stores/us/api/v1/history")
        assert ended.status == 503, "nobody waits for a store that is away"
    stores.eu.start()
    await_all(server)
    assert server.get("/health").status == 200


def test_a_store_that_was_never_read_is_unknown_and_not_empty(stores):
    stores.eu.stop()
    server = stores.serve()
    row = await_states(server, eu="down", local="up")["eu"]
    eventually(lambda: "connect" in standing(server)["eu"]["problem"])
    assert [row[name] for name in ("taken_at", "held", "waiting", "losses_24h", "gaps", "store")] == [None] * 6
    refused = server.get("/stores/eu/api/v1/locks")
    assert refused.status == 503 and "cannot be read" in refused.json["error"]["detail"]
    page = server.get("/stores/eu/").text
    assert "nothing is known" in page and "Nobody holds" not in page and 'id="locks"' not in page
    assert ">0</td>" not in re.search(r'<tr id="store-eu">.*?</tr>', server.get("/").text, re.S).group()
    metrics = read(server)
    assert {name for name, of in metrics.samples if dict(of).get("store") == "eu"} \
        == {"holdfast_up", "holdfast_build_info"}
    assert server.get("/health").json["age_ms"] is None
    stores.eu.start()
    await_states(server, eu="up")
    assert server.get("/stores/eu/api/v1/locks").status == 200


def test_the_server_ends_while_stores_are_silent(stores):
    server = stores.serve()
    await_all(server)
    with stores.us.frozen(), stores.eu.frozen():
        eventually(lambda: standing(server)["us"]["state"] == "down", 40)
        server.process.signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


# --- metrics ------------------------------------------------------------------------------------------


def test_every_sample_has_its_store(stores):
    for name in stores.urls:
        stores.at(name).hold("nightly")
    server = stores.serve()
    await_all(server)
    metrics = read(server)
    assert all(dict(of).get("store") in stores.urls for _, of in metrics.samples)
    for name in metrics.names():
        assert metrics.labels(name, "store") == set(stores.urls), name
    eventually(lambda: all(read(server)("holdfast_lock_held", store=name, lock="_other", mode="exclusive") == 1
                           for name in stores.urls))
    answer = server.get("/stores/us/metrics")
    assert 'holdfast_up{store="us"} 1' in answer.text and 'store="eu"' not in answer.text


# --- ending a holder ----------------------------------------------------------------------------------


def test_who_ends_a_session_types_the_store_and_its_name_is_on_record(stores, tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"alice admin {TOKEN}\n")
    path.chmod(0o600)
    holders = {name: stores.at(name).hold("precious") for name in ("eu", "us")}
    server = stores.serve("--token-file", path, "--allow-terminate", token=TOKEN)
    await_states(server, eu="up", us="up")
    assert server.get("/", bearer=False).status == 401 and server.get("/stores/mars/", bearer=False).status == 401
    assert server.get("/stores/mars/assets/style.css", bearer=False).status == 401
    assert server.get("/stores/us/assets/style.css", bearer=False).status == 200
    lock = eventually(lambda: next(iter(server.get("/stores/us/api/v1/locks").data), None))
    page = server.get(f"/stores/us/?lock=b:{lock['key']}").text
    form = page[page.index('action="/stores/us/terminate"'):]
    assert "in the store <b>us</b>, type <code>us/precious</code>" in form
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form.split("</form>")[0]))
    json = {"Accept": "application/json"}
    for label, where, status in (("precious", "us", 422), ("eu/precious", "us", 422), ("us/precious", "eu", 422)):
        assert server.post(f"/stores/{where}/terminate", {**fields, "label": label}, headers=json).status == status
    done = server.post("/stores/us/terminate", {**fields, "label": "us/precious"})
    assert done.status == 303 and done.headers["Location"] == "/stores/us/?notice=terminated#locks"
    assert holders["us"].wait() == cli.EXIT_LOST and holders["eu"].process.poll() is None
    event, = eventually(lambda: server.get("/stores/us/api/v1/events?event=terminated").data)
    assert "alice by serve" in event["detail"] and "store us" in event["detail"]
    assert server.get("/stores/eu/api/v1/events?event=terminated").data == []


# --- the command line, the file, and secrets ----------------------------------------------------------


@pytest.mark.parametrize("options, said", [
    (["--store", "a=local:/x", "--store", "a=local:/y"], "the name a is there twice"),
    (["--store", "..=local:/x"], "begins with a letter or a digit"),
    (["--store", "a/b=local:/x"], "begins with a letter or a digit"),
    (["--store", "a"], "NAME=URL"),
    (["--store", "a=", "--store", "b=local:/x"], "the URL of a is missing"),
    (["--store", "a=local:/x", "--url", "local:/y"], "--url names the only store"),
])
def test_wrong_names_are_refused_in_one_line(holdfast, options, said):
    result = holdfast("serve", *options)
    assert result.code == cli.EXIT_USAGE
    error, = [line for line in result.err.splitlines() if line.startswith("error:")]
    assert said in error


@pytest.mark.parametrize("text, said", [
    ("eu local:/x\n# two\neu local:/y\n", "stores:3: the name eu is there twice"),
    ("eu local:/x\nus\n", "stores:2: the URL of us is missing"),
    ("eu local:/x\n-us local:/y\n", "stores:2: a name has"),
    (f"eu postgres:/u:{SECRET}@h/d\n", "stores:1: the URL of eu is missing or none"),
    ("\n", "no line says NAME URL"),
    ("eu local:/x\0y\n", "is no text"),
])
def test_a_wrong_line_of_the_file_is_named(holdfast, tmp_path, text, said):
    path = tmp_path / "stores"
    path.write_text(text)
    path.chmod(0o600)
    result = holdfast("serve", "--stores", path)
    assert result.code == cli.EXIT_CONFIG and said in result.err and SECRET not in result.err
    path.chmod(0o604)
    opened = holdfast("serve", "--stores", path)
    assert opened.code == cli.EXIT_CONFIG and "open to others (mode 604)" in opened.err


def test_a_password_of_the_file_is_nowhere_to_be_seen(stores):
    server = stores.serve()
    await_all(server)

    def shown():
        proc = pathlib.Path(f"/proc/{server.process.pid}")
        paths = ["/", "/api/v1/stores", "/health", "/metrics", "/stores/eu/", "/stores/eu/api/v1/locks"]
        return [(proc / "cmdline").read_text(), (proc / "environ").read_text(), *server.process.out, *server.process.err,
                *[server.get(path).text for path in paths]]

    texts = shown()
    stores.eu.stop()
    await_states(server, eu="down")
    for text in [*texts, *shown()]:
        assert SECRET not in text and "open%20sesame" not in text
    by_option = Serve(stores.holdfast, "--store", f"eu={stores.urls['eu']}", "--store", f"local={stores.urls['local']}")
    assert "sesame" not in pathlib.Path(f"/proc/{by_option.process.pid}/cmdline").read_text()


# --- the page -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def trouble(stores):
    """One store is down, in one somebody waits, and all is well in the third."""
    stores.at("us").hold("orders/import")
    stores.at("us").start("run", "-w", "600s", "orders/import", "--", "true")
    stores.at("local").hold("backup")
    stores.at("eu").hold("ledger-close")
    server = stores.serve()
    await_all(server)
    eventually(lambda: standing(server)["us"]["waiting"] == 1 and standing(server)["eu"]["held"] == 1)
    stores.eu.stop()
    await_states(server, eu="down")
    return server


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (390, "light"), (390, "dark")])
def test_the_page_of_all_stores_says_at_once_which_is_in_trouble(trouble, chromium, width, scheme):
    """Also writes pictures: stores-WIDTH.png and store-WIDTH.png in the screens of the build folder."""
    chromium.open(trouble.url, width=width, height=900, scheme=scheme)
    chromium.await_refreshes(2)
    assert chromium.texts(selector="#all tbody th a") == ["eu", "us", "local"]
    row = chromium.text("#store-eu")
    assert "down" in row and "since" in row and "ago" in row
    assert chromium.text("#store-us td[data-label=Waiting]") == "1"
    assert "eu" in chromium.text("#attention li.bad") and "cannot be read" in chromium.text("#attention li.bad")
    assert chromium.texts(selector="#stores a") == ["All stores", "eu is down", "us", "local"]
    SCREENS.mkdir(exist_ok=True)
    chromium.screenshot(file=str(SCREENS / f"stores-{width}-{scheme}.png"), full=True)
    chromium.click(selector="#pause")
    assert [issue for issue in chromium.axe() if issue["impact"] in ("serious", "critical")] == []
    assert chromium.evaluate(script="document.documentElement.scrollWidth <= innerWidth")
    chromium.click(selector="#stores a:text-is('us')")
    chromium.until("location.pathname === '/stores/us/'")
    chromium.click(selector="#locks .opener")
    chromium.until("document.querySelector('#locks tr.more')")
    assert chromium.url().startswith(f"{trouble.url}stores/us/?lock=b:"), "a link into a store keeps it"
    chromium.await_refreshes(2)
    assert chromium.text(".brand b") == "us" and "eu is down" in chromium.text("#stores")
    chromium.screenshot(file=str(SCREENS / f"store-{width}-{scheme}.png"))
    assert chromium.evaluate(script="document.documentElement.scrollWidth <= innerWidth")
    assert chromium.seen()["console"] == []


def test_the_page_sees_a_store_go_and_come_back(stores, chromium):
    server = stores.serve()
    await_all(server)
    chromium.open(f"{server.url}stores/local/")
    for running, text in ((False, "eu is down"), (True, "eu")):
        stores.eu.start() if running else stores.eu.stop()
        chromium.until(f"document.querySelector('#stores li:nth-child(2)').textContent === '{text}'")
    chromium.goto(url=f"{server.url}stores/eu/")
    stores.eu.stop()
    chromium.until("document.querySelector('#status .bad')")
    assert "The store is away" in chromium.text("#status") and chromium.count(selector="#locks") == 1
