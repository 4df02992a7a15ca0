"""Who may look at `holdfast serve`, and what it takes to end a holder."""

import re

import pytest

import cli
import hf
from awaiting import eventually
from serve import TOKEN, Serve

CLOSED = ["/", "/metrics", "/api/v1/locks", "/api/v1/openapi.json", "/nowhere", "/api/v1/nowhere"]
OPEN = ["/health", "/ready", "/login", "/assets/style.css"]


def token_file(folder, text=TOKEN + "\n", mode=0o600, name="token"):
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def guarded(holdfast, tmp_path):
    return lambda *options: Serve(holdfast, "--token-file", token_file(tmp_path), *options, token=TOKEN)


@pytest.fixture
def ending(command, tmp_path):
    """A server on each store that may end holders."""
    return lambda: Serve(command, "--token-file", token_file(tmp_path), "--allow-terminate", token=TOKEN)


# --- headers and hosts --------------------------------------------------------------------------------


def test_every_answer_has_the_safety_headers(holdfast):
    server = Serve(holdfast)
    tag = server.get("/api/v1/locks").headers["ETag"]
    for answer in [server.get("/"), server.get("/nowhere"), server.get("/api/v1/locks"), server.get("/metrics"),
                   server.request("DELETE", "/"), server.request("OPTIONS", "/"), server.get("/assets/style.css"),
                   server.get("/health"), server.get("/api/v1/locks", headers={"If-None-Match": tag}),
                   server.post("/terminate", {"csrf": "x"}), server.get("/?limit=%zz")]:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy, answer
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Referrer-Policy"] and answer.headers["Cache-Control"]


def test_other_names_of_the_host_are_refused_on_loopback(holdfast):
    server = Serve(holdfast)
    for host in ["localhost", f"localhost:{server.port}", "127.0.0.1", f"[::1]:{server.port}"]:
        assert server.get("/", headers={"Host": host}).status == 200, host
    for host in ["evil.example", f"evil.example:{server.port}", "localhost.evil.example", "", "127.0.0.1.nip.io"]:
        assert server.get("/", headers={"Host": host}).status == 421, host


def test_errors_are_json_for_programs_and_pages_for_people(holdfast):
    server = Serve(holdfast)
    error = server.get("/api/v1/nothing").json["error"]
    assert error["status"] == 404 and error["title"] == "Not Found" and error["detail"]
    assert server.get("/nothing", headers={"Accept": "application/json"}).json["error"]["status"] == 404
    page = server.get("/nothing", headers={"Accept": "text/html"})
    assert page.headers["Content-Type"].startswith("text/html") and "<html" in page.text


# --- the token ----------------------------------------------------------------------------------------


def test_without_the_token_only_health_login_and_assets_answer(guarded):
    server = guarded()
    for path in CLOSED:
        refused = server.get(path, bearer=False)
        assert refused.status == 401 and refused.headers["WWW-Authenticate"].startswith("Bearer"), path
        assert "snapshot" not in refused.text
    for path in OPEN:
        assert server.get(path, bearer=False).status == 200, path
    assert server.get("/api/v1/locks").status == 200
    assert server.get("/metrics").status == 200


@pytest.mark.parametrize("text", ["", " ", TOKEN[:-1], TOKEN[:-1] + "x", TOKEN + "x", "Basic " + TOKEN, "wrong" * 100])
def test_a_wrong_token_is_refused(guarded, text):
    server = guarded()
    assert server.get("/api/v1/locks", headers={"Authorization": f"Bearer {text}"}).status == 401


WRONG = {"Authorization": "Bearer " + "wrong" * 5}


def test_the_wrong_tokens_of_others_behind_the_same_proxy_bar_nobody_who_has_the_right_one(guarded):
    server = guarded()
    page = server.get("/login", bearer=False)
    for _ in range(30):
        assert server.get("/api/v1/locks", headers=WRONG).status == 401
        assert server.post("/login", {"token": "wrong", "csrf": csrf_of(page)}, bearer=False).status == 401
    assert server.get("/api/v1/locks").status == 200
    assert login(server).status == 303


def csrf_of(page):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', page.text).group(1)


def login(server, token=TOKEN, csrf=None, headers=None):
    csrf = csrf or csrf_of(server.get("/login", bearer=False))
    return server.post("/login", {"token": token, "csrf": csrf}, headers=headers, bearer=False)


def cookie_of(answer):
    return answer.headers["Set-Cookie"].split(";")[0]


def test_the_login_form_gives_a_session(guarded):
    server = guarded()
    answer = login(server)
    assert answer.status == 303 and answer.headers["Location"] == "/"
    flags = answer.headers["Set-Cookie"]
    assert "HttpOnly" in flags and "SameSite=Strict" in flags and TOKEN not in flags
    session = {"Cookie": cookie_of(answer)}
    page = server.get("/", headers=session)
    assert page.status == 200 and "<html" in page.text
    out = server.post("/logout", {"csrf": csrf_of(page)}, headers=session)
    assert out.status == 303 and "Max-Age=0" in out.headers["Set-Cookie"]


def test_a_session_that_was_signed_out_is_over_and_others_go_on(guarded):
    server = guarded()
    first, csrf = session_of(server)
    second, _ = session_of(server)
    assert server.post("/logout", {"csrf": csrf}, headers=first).status == 303
    assert server.get("/", headers=first).status == 401, "whoever copied the cookie has nothing of it"
    assert server.get("/", headers=second).status == 200


def test_the_page_of_a_session_is_not_compressed_and_the_rest_is(guarded):
    """A form's secret beside text that others choose must not be compressed with it."""
    server = guarded()
    session, _ = session_of(server)
    gzip = {"Accept-Encoding": "gzip"}
    assert "Content-Encoding" not in server.get("/", headers={**session, **gzip}).headers
    assert "Content-Encoding" not in server.get("/", headers=gzip).headers
    assert server.get("/metrics", headers=gzip).headers["Content-Encoding"] == "gzip"
    assert server.get("/metrics", headers={**session, **gzip}).headers["Content-Encoding"] == "gzip"


def test_a_login_needs_the_right_token_and_form(guarded):
    server = guarded()
    assert login(server, token="wrong-wrong-wrong-wrong").status == 401
    assert login(server, csrf="0" * 64).status == 403
    assert login(server, headers={"Origin": "http://evil.example"}).status == 403
    assert login(server, headers={"Sec-Fetch-Site": "cross-site"}).status == 403
    assert login(server, headers={"Origin": f"http://127.0.0.1:{server.port}"}).status == 303


def test_a_session_that_was_tampered_with_is_none(guarded):
    server = guarded()
    name, value = cookie_of(login(server)).split("=", 1)
    since, nonce, digest = value.split(".")
    later = f"{int(since) + 1}.{nonce}.{digest}"
    other = f"{since}.{nonce[:-1]}{'0' if nonce[-1] != '0' else '1'}.{digest}"
    for forged in [later, other, value[:-1], value + "0", "", ".", "..", digest]:
        assert server.get("/", headers={"Cookie": f"{name}={forged}"}).status == 401, forged
    assert server.get("/", headers={"Cookie": f"a=b; {name}={value}; c=d"}).status == 200


def test_another_address_than_loopback_demands_a_token(holdfast, tmp_path):
    done = holdfast("serve", "--listen", "0.0.0.0:0")
    assert done.code == cli.EXIT_CONFIG and "--token-file" in done.err
    server = Serve(holdfast, "--token-file", token_file(tmp_path), listen="0.0.0.0:0", token=TOKEN)
    server.host = "127.0.0.1"
    assert server.get("/api/v1/locks", headers={"Host": "shown.example"}).status == 200


@pytest.mark.parametrize("text, mode, words", [
    (TOKEN, 0o644, "open to others"), (TOKEN, 0o660, "open to others"), ("short\n", 0o600, "characters"),
    ("", 0o600, "characters"), ("with space in the middle\n", 0o600, "printable"),
    ("ünprintable-ünprintable\n", 0o600, "printable"), ("x" * 5000, 0o600, "characters"),
], ids=["for all to read", "for the group to write", "short", "empty", "spaces", "no ASCII", "long"])
def test_a_token_file_that_is_not_fit_is_refused(holdfast, tmp_path, text, mode, words):
    done = holdfast("serve", "--listen", "127.0.0.1:0", "--token-file", token_file(tmp_path, text, mode))
    assert done.code == cli.EXIT_CONFIG and words in done.err, done
    assert TOKEN not in done.err


@pytest.mark.parametrize("text, words", [
    (f"alice boss {TOKEN}\n", ":1: the role is read or admin"),
    (f"# who\nalice read {TOKEN}\nbob\n", ":3 is not NAME ROLE TOKEN"),
    (f"alice read {TOKEN}\nalice admin {TOKEN[::-1]}\n", ":2 has the name or the token of another line"),
    (f"alice read {TOKEN}\nbob read {TOKEN}\n", ":2 has the name or the token of another line"),
    (f"al/ice read {TOKEN}\n", ":1: a name has"), ("alice read short\n", "characters"),
], ids=["role", "words", "name twice", "token twice", "name", "short"])
def test_lines_of_a_token_file_that_are_not_fit_are_named(holdfast, tmp_path, text, words):
    done = holdfast("serve", "--listen", "127.0.0.1:0", "--token-file", token_file(tmp_path, text))
    assert done.code == cli.EXIT_CONFIG and words in done.err and TOKEN not in done.err, done


def test_a_token_file_that_is_not_there_is_refused(holdfast, tmp_path):
    for path in [tmp_path / "nothing", tmp_path]:
        done = holdfast("serve", "--token-file", path)
        assert done.code == cli.EXIT_CONFIG and str(path) in done.err, done


# --- ending a holder ----------------------------------------------------------------------------------


def held(server, label="precious"):
    lock = eventually(lambda: (found := server.lock(label)) and found["holders"] and found, 10)
    return {"space": "p" if lock["space"] == "pair" else "b", "key": lock["key_text"],
            "party": lock["holders"][0]["party"], "label": label}


def session_of(server):
    headers = {"Cookie": cookie_of(login(server))}
    return headers, csrf_of(server.get("/", headers=headers))


def about_to_end(server):
    """The headers and the form of somebody who has logged in and typed the label."""
    headers, csrf = session_of(server)
    return headers, {**held(server), "csrf": csrf}


def test_terminate_with_token_csrf_and_the_typed_label_ends_the_holder(ending, command):
    holder = command.hold("precious")
    server = ending()
    headers, form = about_to_end(server)
    done = server.post("/terminate", form, headers=headers)
    assert done.status == 303 and done.headers["Location"].startswith("/?notice="), done
    page = server.get(done.headers["Location"].split("#")[0], headers=headers)
    assert page.status == 200 and "was ended" in page.text
    assert holder.wait(20) != 0
    eventually(lambda: server.lock("precious") is None, 10, "the lock is free")
    events = eventually(lambda: server.api("events", event="terminated")["data"])
    assert events[0]["key_text"] == form["key"] and "serve" in events[0]["detail"]


def test_who_may_only_read_ends_nobody_and_who_ends_is_on_record_by_name(command, tmp_path):
    tokens = {"alice": TOKEN, "bob": TOKEN[::-1]}
    path = token_file(tmp_path, f"# operators\nalice admin {tokens['alice']}\n\n  bob\tread {tokens['bob']}\r\n")
    holder = command.hold("precious")
    server = Serve(command, "--token-file", path, "--allow-terminate", token=tokens["bob"])
    form = held(server)
    page = f"/?lock=b:{form['key']}"
    for name, may in (("bob", False), ("alice", True)):
        headers = {"Cookie": cookie_of(login(server, tokens[name]))}
        bearer = {"Authorization": f"Bearer {tokens[name]}"}
        for asked in (headers, bearer):
            shown = server.get(page, headers=asked)
            assert f">{name}</span>" in shown.text and ('action="/terminate"' in shown.text) is may
        done = server.post("/terminate", {**form, "csrf": csrf_of(server.get(page, headers=headers))}, headers=headers)
        assert done.status == (303 if may else 403), done
        assert may or (holder.process.poll() is None and "the role is read" in done.text)
    assert server.get("/", headers={"Authorization": "Bearer alice"}).status == 401
    assert holder.wait(20) != 0
    event, = eventually(lambda: server.api("events", event="terminated")["data"])
    assert event["detail"] == "alice by serve, from 127.0.0.1"


def test_terminate_ends_a_lease_by_the_form_of_the_page(ending, command):
    if command.url.startswith("local:"):
        pytest.skip("nobody but its time ends the lease of another process there")
    holder = command.hold("precious", "--lease", "1h")
    holder.kill9()
    server = ending()
    headers, csrf = session_of(server)
    held(server)
    page = server.get("/?lock=b:" + str(hf.derive("precious")), headers=headers).text
    form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page[page.index('action="/terminate"'):]))
    assert form["party"] == "0" and int(form["token"]) > 0 and "the lease of" in page
    assert re.search(r"lease with (<[^>]*>)?59", page) and 0 < server.lock("precious")["holders"][0]["left_ms"] < 3600000
    form = {**form, "csrf": csrf}
    assert server.post("/terminate", {**form, "label": "wrong"}, headers=headers).status == 303
    assert server.post("/terminate", {**form, "label": "precious", "token": "1"}, headers=headers).status == 409
    assert server.post("/terminate", {**form, "label": "precious"}, headers=headers).status == 303
    assert command("run", "-n", "precious", "--", "true").code == 0
    assert "serve" in eventually(lambda: server.api("events", event="terminated")["data"])[0]["detail"]


def test_terminate_answers_programs_in_json(ending, command):
    command.hold("precious")
    server = ending()
    json = {"Accept": "application/json"}
    csrf = csrf_of(server.get("/"))
    form = {**held(server), "csrf": csrf}
    assert server.post("/terminate", {**form, "label": "wrong"}, headers=json).json["error"]["status"] == 422
    done = server.post("/terminate", form, headers=json)
    assert done.status == 200 and done.json["terminated"] is True, done
    gone = eventually(lambda: (again := server.post("/terminate", form, headers=json)).status != 200 and again)
    assert gone.status in (404, 409), gone


def test_terminate_refuses_whatever_is_missing_or_wrong(ending, command):
    holder = command.hold("precious")
    server = ending()
    headers, form = about_to_end(server)
    foreign, foreign_csrf = session_of(server)

    def status(change=None, with_headers=None, **how):
        return server.post("/terminate", {**form, **(change or {})}, headers=with_headers or headers, **how).status

    assert status({"label": "precious "}, {**headers, "Accept": "application/json"}) == 422
    again = server.post("/terminate", {**form, "label": "precious "}, headers=headers)
    assert again.status == 303 and again.headers["Location"].startswith(f"/?lock=b:{form['key']}&notice=mistyped#")
    assert "nothing was done" in server.get(again.headers["Location"].split("#")[0], headers=headers).text
    assert status({"label": ""}) == 400
    assert status({"csrf": foreign_csrf}) == 403
    assert status({"csrf": ""}) == 400 and status({"csrf": "0" * 64}) == 403
    assert status({"key": "1"}) == 404
    assert status({"key": "x"}) == 400 and status({"space": "q"}) == 400 and status({"party": "-1"}) == 400
    assert status({"party": "2147483647"}) == 409
    assert status({"token": "1"}) == 409, "who took the lock since the page was shown is spared"
    assert status(with_headers={**headers, "Origin": "http://evil.example"}) == 403
    assert status(with_headers={**headers, "Sec-Fetch-Site": "same-site"}) == 403
    assert status(with_headers={"Cookie": "holdfast=none"}) == 401
    assert server.post("/terminate", form, bearer=False).status == 401
    assert server.request("POST", "/terminate", headers={**headers, "Content-Type": "application/json"},
                          body="{}").status == 415
    assert server.get("/terminate", headers=headers).status == 405
    server.await_refresh()
    assert holder.process.poll() is None and server.lock("precious")


def test_terminate_is_off_unless_it_was_allowed(guarded, holdfast):
    holder = holdfast.hold("precious")
    server = guarded()
    headers, form = about_to_end(server)
    refused = server.post("/terminate", form, headers=headers)
    assert refused.status == 403 and "/terminate" not in server.get("/?lock=b:" + form["key"], headers=headers).text
    open_one = Serve(holdfast)
    assert open_one.post("/terminate", form).status == 403
    assert holder.process.poll() is None


# --- secrets ------------------------------------------------------------------------------------------


def test_sql_text_is_shown_only_when_told(db, holdfast):
    with db.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("select pg_advisory_lock(77), 'secret-in-sql'")
        for options, shown in [((), False), (("--show-queries",), True)]:
            server = Serve(holdfast.at(db.url()), *options)
            texts = eventually(lambda: [server.get(path).text for path in ("/api/v1/locks", "/?lock=b:77", "/metrics")]
                               if server.api("locks", key=77)["data"] else None)
            assert ("secret-in-sql" in texts[0]) == shown
            if not shown:
                assert not any("secret-in-sql" in text for text in texts)


def test_the_password_of_the_store_is_never_shown(own_pg, own_db, holdfast):
    server = Serve(holdfast.at(own_db.url(password="very-secret")))
    paths = ["/", "/api/v1/locks", "/metrics", "/health"]
    assert not any("very-secret" in server.get(path).text for path in paths)
    own_pg.stop()
    eventually(lambda: server.get("/health").status == 503, 20)
    assert not any("very-secret" in server.get(path).text for path in paths)
    with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
        assert b"very-secret" not in file.read()


def test_health_tells_strangers_that_the_store_is_away_and_not_where_it_was(own_pg, own_db, holdfast, tmp_path):
    server = Serve(holdfast.at(own_db.url()), "--token-file", token_file(tmp_path), token=TOKEN)
    own_pg.stop()
    eventually(lambda: server.get("/health").status == 503, 20)
    where = str(own_pg.folder)
    for path in ["/health", "/ready"]:
        assert where in server.get(path).json["reasons"][0]
        assert server.get(path, bearer=False).json["reasons"] == ["the store cannot be read"]
        assert where not in server.get(path, headers=WRONG).text


def test_the_token_is_not_in_the_process_list(guarded):
    server = guarded()
    with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
        assert TOKEN.encode() not in file.read()
