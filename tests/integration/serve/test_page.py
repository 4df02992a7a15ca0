"""The page of `holdfast serve`, in a real browser."""

import datetime
import http.client
import http.server
import re
import threading
import zoneinfo

import pytest

import hf
import servers
from awaiting import eventually
from browser import Browser
from hf import ANY_ORDER, FOREVER
from ingesting import World
from serve import TOKEN, Serve
from stores import StoreKind

REGISTRY = """\
version: 1
locks:
  - name: transfer
    key: { pattern: "Transfer:{from}:{to}" }
    owner: team-payments
    component: payments
    purpose: one transfer between two accounts at a time
    runbook: https://runbooks.example/transfer
"""
SCREENS = hf.BUILD / "screens"


@pytest.fixture(scope="module")
def chromium():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium, holdfast):
    """Whatever a test does, the page says nothing on the console and asks nobody but its host."""
    yield chromium
    seen = chromium.seen()
    hosts = {url.split("/")[2] for url in seen["requests"] if not url.startswith("data:")}
    assert len(hosts) == 1 and hosts.pop().startswith("127.0.0.1:"), seen["requests"]
    assert [line for line in seen["console"] if not is_expected(line)] == []


def is_expected(line):
    """A test takes the network away, or asks for what is refused; chromium says so itself."""
    return "net::ERR_INTERNET_DISCONNECTED" in line or "status of 401" in line


@pytest.fixture
def store(pg15):
    database = pg15.create_database()
    url = database.url(host="127.0.0.1", port=pg15.port)
    hf.install(url)
    yield StoreKind("pg15", url, database)
    database.drop()


@pytest.fixture
def command(store, holdfast, tmp_path):
    registry = tmp_path / "locks.yaml"
    registry.write_text(REGISTRY)
    command = holdfast.at(store.url)
    command.registry = registry
    return command


@pytest.fixture
def server(command):
    return Serve(command, "--registry", command.registry)


@pytest.fixture
def contended(command):
    """One holder and two waiters of a lock of the registry."""
    def start(label="Transfer:acc1:acc2"):
        holder = command.hold(label, "--registry", command.registry)
        waiters = [command.start("run", "--registry", command.registry, "-w", "600s", label, "--", "true")
                   for _ in range(2)]
        return holder, waiters
    return start


def await_waiters(server, label="Transfer:acc1:acc2", count=2):
    eventually(lambda: len((server.lock(label) or {"waiters": []})["waiters"]) == count, 20, "all wait")


def edges(browser):
    return {tuple(pair) for pair in browser.attributes(selector="path.edge", names=["data-from", "data-to"])}


def gone(browser, selector):
    return browser.until(f"!document.querySelector('{selector}')")


# --- what it shows ------------------------------------------------------------------------------------


def test_a_holder_and_two_waiters_appear_within_two_refreshes(server, browser, contended):
    browser.open(server.url)
    assert "Nobody holds" in browser.text("#locks")
    contended()
    await_waiters(server)
    browser.await_refreshes(2)
    row = browser.text("#locks tbody tr")
    assert "Transfer:acc1:acc2" in row and "transfer" in row and "team-payments" in row and "holdfast" in row
    assert browser.texts(selector="#locks td[data-label=Waiters]") == ["2"]
    assert browser.texts(selector=".tile b")[:2] == ["1", "2"]
    assert "keeps 2 others waiting" in browser.text("#waits .tree > li")


def test_the_graph_has_an_edge_from_each_waiter_to_the_lock_and_from_it_to_the_holder(command, browser, contended):
    server = Serve(command, "--registry", command.registry, refresh="1s")
    contended()
    await_waiters(server)
    browser.open(server.url)
    waits = eventually(lambda: waits_as_shown(server, browser), 20, "the page and the API on one snapshot")
    lock = f"lock:b:{waits[0]['lock']['key']}"
    holder = f"party:{waits[0]['holder']['party']}"
    assert edges(browser) == {(f"party:{wait['waiter']['party']}", lock) for wait in waits} | {(lock, holder)}
    assert browser.attributes(selector="svg.node.root", names=["data-node"]) == [[holder]]


def waits_as_shown(server, browser):
    """Two waits that the API tells of in the snapshot that the page shows, which then stays as it is."""
    waits = server.api("waits")
    browser.click(selector="#pause")
    shown = browser.evaluate(script="document.querySelector('#updated').dataset.number")
    if shown == str(waits["snapshot"]["number"]) and len(waits["data"]) == 2:
        return waits["data"]
    browser.click(selector="#pause")
    return None


def test_a_gap_in_coverage_is_drawn_at_least_two_pixels_wide(store, command, holdfast, browser, tmp_path):
    world = World(store, holdfast, tmp_path)
    world.ingest(1, 20)
    cut_coverage(world)
    server = Serve(command)
    eventually(lambda: server.api("ingest")["data"] and server.api("ingest")["data"][0]["gaps"] == 1, 20, "the gap")
    for width in (1280, 390):
        browser.open(server.url, width=width)
        assert browser.count(selector="svg.coverage .gap") == 1
        assert browser.box(selector="svg.coverage .gap")["width"] >= 2
        assert "1 gap" in browser.text("#ingest summary")


LONG = ["L" + "o" * 300 + "ng", "many words " * 20, "قفل التحويل:حساب١:حساب٢", "🔒 deploy"]
LINES = """[...document.querySelectorAll('%s')].filter((one) => one.offsetWidth).map((one) => {
    const text = document.createRange();
    text.selectNodeContents(one);
    return text.getClientRects().length;
})"""


@pytest.mark.parametrize("width", [320, 390, 800, 1000, 1280])
def test_long_labels_break_no_word_of_other_columns_and_nothing_overflows(store, server, browser, command, width):
    with store.peer(application="a-holder-with-a-name") as peer:
        for label in LONG:
            peer.acquire(label, flags=ANY_ORDER)
        eventually(lambda: len(server.api("locks")["data"]) == len(LONG), 20)
        eventually(lambda: len(server.api("events")["data"]) == len(LONG), 20)
        browser.open(server.url, width=width)
        browser.click(selector="#pause")
        assert browser.evaluate(script="document.documentElement.scrollWidth <= innerWidth")
        for words in ("#locks td[data-label=Mode]", "#events .kind", ".top nav a"):
            assert set(browser.evaluate(script=LINES % words)) <= {1}, words
        assert browser.box(selector=".top")["height"] < 160


# --- how it behaves -----------------------------------------------------------------------------------


def test_filters_live_in_the_url_and_survive_a_refresh(server, browser, command):
    command.hold("first-lock")
    command.hold("second-lock")
    server.await_refresh()
    browser.open(server.url)
    browser.fill(selector="#q", text="second")
    browser.click(selector="#locks form button")
    browser.until("location.search === '?q=second'")
    gone(browser, "#locks tbody tr:nth-child(2)")
    browser.await_refreshes(2)
    assert "second-lock" in browser.text("#locks tbody") and "first-lock" not in browser.text("#locks tbody")
    browser.click(selector="#locks .opener")
    browser.until("document.querySelector('#locks tr.more') && location.search.includes('lock=b')")
    assert "q=second" in browser.url()
    browser.reload()
    assert browser.value(selector="#q") == "second" and browser.count(selector="#locks tr.more") == 1
    browser.evaluate(script="history.back()")
    browser.until("!document.querySelector('#locks tr.more')")


def test_a_refresh_keeps_focus_typing_and_what_is_open(server, browser, contended):
    contended()
    await_waiters(server)
    browser.open(server.url)
    browser.until("document.querySelector('#waits-list')")
    browser.click(selector="#waits-list summary")
    browser.fill(selector="#q", text="half a wo")
    browser.evaluate(script="window.row = document.querySelector('#locks tbody tr')")
    browser.evaluate(script="document.querySelector('#locks form label').textContent = 'to be mended'")
    browser.await_refreshes(3)
    assert browser.text("#locks form label[for=q]") == "Find"
    assert browser.value(selector="#q") == "half a wo"
    assert browser.evaluate(script="document.activeElement.id") == "q"
    assert browser.evaluate(script="document.querySelector('#waits-list').open") is False
    assert browser.evaluate(script="window.row === document.querySelector('#locks tbody tr')") is True


def test_a_list_that_was_closed_is_closed_when_it_comes_back(server, browser, contended):
    """Between two looks at the queue a waiter may be out of it for a moment."""
    _, waiters = contended()
    await_waiters(server)
    browser.open(server.url)
    browser.click(selector="#waits-list summary")
    browser.until("!document.querySelector('#waits-list').open")
    for waiter in waiters:
        waiter.kill9()
    browser.until("document.querySelector('#waits-list').hidden")
    contended("Transfer:acc3:acc4")
    browser.until("!document.querySelector('#waits-list').hidden")
    assert browser.evaluate(script="document.querySelector('#waits-list').open") is False


def test_pause_stops_the_refreshes_and_a_lost_server_is_said(server, browser):
    browser.open(server.url)
    browser.await_refreshes(1)
    browser.click(selector="#pause")
    number = browser.evaluate(script="document.querySelector('#updated').dataset.number")
    server.await_refresh(5)
    assert browser.evaluate(script="document.querySelector('#updated').dataset.number") == number
    browser.click(selector="#pause")
    browser.await_refreshes(1)
    browser.offline(offline=True)
    browser.until("!document.querySelector('#away').hidden")
    assert "does not answer" in browser.text("#away")
    browser.offline(offline=False)
    browser.until("document.querySelector('#away').hidden")


def test_a_store_that_is_away_is_said_and_forgotten(template15, browser, holdfast):
    with servers.Postgres.copy_of(template15, "page-pg15") as own:
        own.start()
        database = own.create_database()
        server = Serve(holdfast.at(database.url()))
        browser.open(server.url)
        own.stop()
        browser.until("document.querySelector('#status').textContent.includes('The store is away')", timeout=30)
        assert browser.count(selector="#updated.stale") == 1
        own.start()
        browser.until("!document.querySelector('#status').textContent.includes('The store is away')", timeout=60)


def test_without_javascript_links_and_forms_do_everything(server, browser, contended, command):
    contended()
    command.hold("other")
    await_waiters(server)
    server.await_refresh()
    browser.open(server.url, javascript=False)
    assert "other" in browser.text("#locks tbody")
    browser.choose(selector="#state", value="waiting")
    browser.click(selector="#locks form button")
    assert "state=waiting" in browser.url()
    assert browser.count(selector="#locks tbody tr") == 1
    browser.click(selector="#locks .opener")
    assert "https://runbooks.example/transfer" in browser.text("#locks tr.more")
    browser.click(selector="#refresh")
    assert browser.count(selector="#locks tr.more") == 1
    assert browser.count(selector="#pause:visible") == 0


def test_the_keyboard_reaches_content_first(server, browser):
    browser.open(server.url)
    browser.press(key="Tab")
    assert browser.evaluate(script="document.activeElement.className") == "skip"
    browser.press(key="Enter")
    browser.until("location.hash === '#main'")


# --- ending a holder ----------------------------------------------------------------------------------


def test_a_holder_is_ended_only_with_the_label_typed(command, browser, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    holder = command.hold("precious")
    server = Serve(command, "--token-file", token, "--allow-terminate", token=TOKEN)
    browser.open(server.url)
    browser.fill(selector="#token", text="wrong")
    browser.click(selector=".login button")
    assert "not the token" in browser.text("#wrong")
    browser.fill(selector="#token", text=TOKEN)
    browser.click(selector=".login button")
    browser.until("document.querySelector('#locks .opener')")
    browser.click(selector="#locks .opener")
    browser.until("document.querySelector('form.end')")
    browser.fill(selector="form.end input[name=label]", text="preciou")
    browser.await_refreshes(2)
    assert browser.value(selector="form.end input[name=label]") == "preciou"
    browser.click(selector="form.end button")
    browser.until("document.querySelector('#status .bad')")
    assert "nothing was done" in browser.text("#status")
    assert holder.process.poll() is None
    browser.fill(selector="form.end input[name=label]", text="precious")
    browser.click(selector="form.end button")
    browser.until("document.querySelector('#status') && document.querySelector('#status').textContent.includes('ended')")
    holder.wait(20)
    browser.until("[...document.querySelectorAll('#events .kind')].some((kind) => kind.textContent === 'terminated')")
    browser.click(selector=".live form button")
    browser.until("document.querySelector('#token')")


class ReverseProxy(http.server.BaseHTTPRequestHandler):
    """Has a server under /holdfast, and nothing else; it takes that away from the path, or not."""
    protocol_version = "HTTP/1.1"

    @classmethod
    def start(cls, port, strips):
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Proxy", (cls,), {"to": port, "strips": strips}))
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        return proxy

    def forward(self):
        if self.path.split("?")[0].strip("/").split("/")[0] != "holdfast":
            self.send_error(404)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        to = http.client.HTTPConnection("127.0.0.1", self.to, timeout=20)
        to.request(self.command, self.path.removeprefix("/holdfast") if self.strips else self.path, body, dict(self.headers))
        answer = to.getresponse()
        text = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "connection", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        to.close()

    do_GET = do_POST = forward

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("strips", [True, False], ids=["path taken away", "path passed on"])
def test_it_works_under_a_path_of_a_reverse_proxy(command, browser, tmp_path, strips):
    token = tmp_path / "token"
    token.write_text(f"alice admin {TOKEN}\n")
    token.chmod(0o600)
    command.hold("precious")
    server = Serve(command, "--token-file", token, "--allow-terminate", "--base-path", "/holdfast", token=TOKEN)
    assert server.url.endswith("/holdfast/")
    proxy = ReverseProxy.start(server.port, strips)
    browser.open(f"http://127.0.0.1:{proxy.server_port}/holdfast/")
    browser.fill(selector="#token", text=TOKEN)
    browser.click(selector=".login button")
    browser.until("document.querySelector('#locks .opener')")
    browser.click(selector="#locks .opener")
    browser.until("document.querySelector('form.end')")
    browser.await_refreshes(2)
    browser.fill(selector="#q", text="prec")
    browser.click(selector=".filter button")
    browser.until("location.search.includes('q=prec')")
    browser.fill(selector="form.end input[name=label]", text="precious")
    browser.click(selector="form.end button")
    browser.until("document.querySelector('#status') && document.querySelector('#status').textContent.includes('ended')")
    links = browser.evaluate(script="[...document.querySelectorAll('[href], [src], form[action]')].map((one) =>"
                                    " one.getAttribute('href') || one.getAttribute('src') || one.getAttribute('action'))")
    assert [link for link in links if link[0] != "#" and not link.startswith("/holdfast/")] == []
    assert all("/holdfast/" in url for url in browser.seen()["requests"])
    following = eventually(lambda: server.api("events", limit=1)["page"]["next"], 20, "a second event")
    assert following.startswith("/holdfast/api/v1/events?")
    assert server.get("/holdfast/api/v1/openapi.json").json["servers"] == [{"url": "/holdfast"}]
    assert server.get("/holdfast").status == 200 and server.get("/holdfastened").status == 404
    proxy.shutdown()
    proxy.server_close()


def test_times_are_those_of_the_viewer_and_utc_is_there_on_hover(server, browser, command):
    command("run", "short-job", "--", "true")
    event = eventually(lambda: server.api("events", event="exit")["data"])[0]
    utc = datetime.datetime.fromtimestamp(event["at_ms"] / 1000, datetime.timezone.utc)
    there = utc.astimezone(zoneinfo.ZoneInfo("Asia/Kathmandu"))
    browser.open(server.url + "?event=exit", zone="Asia/Kathmandu")
    browser.await_refreshes(2)
    browser.until("document.querySelector('#events tbody time')")
    assert browser.text("#events tbody time") in (f"{there:%H:%M:%S}", f"{there:%Y-%m-%d %H:%M:%S}")
    assert browser.attributes(selector="#events tbody time", names=["title"]) == [[f"{utc:%Y-%m-%d %H:%M:%S} UTC"]]
    assert browser.text("#updated .zone") == "GMT+5:45"


def test_a_click_on_the_order_turns_it_around(server, browser, command):
    for label in ("a-lock", "b-lock"):
        command.hold(label)
    browser.open(server.url)
    browser.until("document.querySelectorAll('#locks .opener').length === 2")

    def order(direction):
        browser.click(selector="#locks thead th:first-child a")
        browser.until(f"document.querySelector('#locks thead th:first-child').ariaSort === '{direction}'")
        return browser.texts(selector="#locks .opener")

    assert order("ascending") == ["a-lock", "b-lock"]
    assert order("descending") == ["b-lock", "a-lock"]
    assert "sort=-label" in browser.url()
    assert order("ascending") == ["a-lock", "b-lock"]


def test_what_is_printed_says_when_it_was(server, browser):
    browser.open(server.url)
    browser.media(media="print")
    browser.hidden(selector="#pause", hidden=True)
    assert re.fullmatch(r"\d\d:\d\d:\d\d UTC", browser.text("#updated"))


# --- for everybody ------------------------------------------------------------------------------------


@pytest.fixture
def scene(store, command, holdfast, tmp_path):
    """A little of everything: a chain of waits, a stranger, a run, a network with a gap, a shared table."""
    world = World(store, holdfast, tmp_path)
    world.ingest(1, 40)
    cut_coverage(world)
    command.hold("nightly-close")
    command("run", "short-job", "--", "true")
    peers = {name: store.peer(application=name) for name in ("payments-api", "payments-batch", "reconciler", "reports")}
    peers["payments-api"].acquire("Transfer:acc1:acc2")
    peers["payments-batch"].acquire("Transfer:acc7:acc9")
    peers["payments-batch"].begin("acquire", "Transfer:acc1:acc2", wait_ms=FOREVER, flags=ANY_ORDER)
    peers["reports"].begin("acquire", "Transfer:acc1:acc2", wait_ms=FOREVER)
    peers["reconciler"].begin("acquire", "Transfer:acc7:acc9", wait_ms=FOREVER)
    stranger = store.database.server.connect(store.database.name)
    stranger.cursor().execute("select pg_advisory_lock(42)")
    server = Serve(command, "--registry", command.registry)
    await_waiters(server)
    await_waiters(server, "Transfer:acc7:acc9", 1)
    yield server
    server.end()
    stranger.close()
    for peer in peers.values():
        peer.kill9()


EVERY_BOX_IS_INSIDE = """(() => {
    const picture = document.querySelector('svg.graph').viewBox.baseVal;
    const ends = (box, at, size) => Number(box.getAttribute(at)) + Number(box.getAttribute(size));
    return [...document.querySelectorAll('svg.graph svg.node')].every(
        box => ends(box, 'x', 'width') <= picture.width && ends(box, 'y', 'height') <= picture.height);
})()"""


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_nothing_is_in_the_way_of_anybody(scene, browser, look):
    """Also writes the pictures: screens/light.png, dark.png and phone.png in the build folder."""
    width, height = (390, 2400) if look == "phone" else (1280, 1180)
    browser.open(scene.url, scheme="dark" if look == "dark" else "light", width=width, height=height)
    browser.await_refreshes(2)
    browser.until("document.querySelector('svg.graph')")
    assert browser.evaluate(script=EVERY_BOX_IS_INSIDE)
    SCREENS.mkdir(exist_ok=True)
    browser.screenshot(file=str(SCREENS / f"{look}.png"))
    browser.click(selector="#locks .opener")
    browser.until("document.querySelector('#locks tr.more')")
    browser.click(selector="#pause")
    assert [issue for issue in browser.axe() if issue["impact"] in ("serious", "critical")] == []
    assert browser.evaluate(script="document.documentElement.scrollWidth <= innerWidth")


def cut_coverage(world):
    """One ledger of a million is missing: by its true width nobody could see that."""
    world.network.sql("delete from @ingest_coverage")
    world.network.sql("insert into @ingest_coverage (lo, hi) values (1, 600000), (600002, 1000000)")
    world.network.sql("update @ingest_store set value = '1000000' where key = 'latestLedgerCursor'")
