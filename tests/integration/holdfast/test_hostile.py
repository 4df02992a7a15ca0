"""
Whatever others write into names, notes and hosts reaches nobody's terminal, page, JSON, SQL or shell as
anything but text. Whoever may lock can write all of it into the records.
"""

import html.parser
import json
import os
import re
import sqlite3

import pytest

import cli
from awaiting import eventually
from prometheus import read
from serve import Serve

EVIL = "x\x1b]0;owned\x07\x1b[2J\x9b31m'\"; drop table t; --<script>alert(1)</script>&amp;{{7*7}}$(touch owned)`id`\r\n\t\\"
# What a label may have: anything but control characters.
LABEL = "l'\"; drop table t; --<script>alert(1)</script>&amp;$(touch owned)`touch owned`\\%s{a=\"b\"}"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
def hostile(recorded):
    """A store in which a lock is held, and all that its records say of it is hostile."""
    with recorded.open(application=EVIL[:40]) as store:
        lock = store.acquire(LABEL)
        lock.note("note", EVIL[:100])
        store.acquire("released").end()
    with recorded.open() as store:
        lock = store.acquire(LABEL)
        if not recorded.local:
            eventually(lambda: recorded.database.value("select count(*) from holdfast.holders"))
        poison(recorded)
        yield recorded


def poison(kind):
    """Rewrites every text that the records have."""
    if kind.local:
        with sqlite3.connect(os.path.join(kind.url[len("local:"):], "holdfast.db"), timeout=20) as db:
            for table in ("holders", "waiters", "events"):
                db.execute(f"update {table} set host = ?, application = ?", (EVIL, EVIL))
            db.execute("update events set detail = ?", (EVIL,))
    else:
        db = kind.database
        db.sql("update holdfast.sessions set host = %s, application = %s", EVIL, EVIL)
        db.sql("update holdfast.events set host = %s, application = %s, detail = %s", EVIL, EVIL, EVIL)
        db.sql("update holdfast.labels set label = %s where label = 'released'", EVIL)


def assert_text(done):
    """Nothing that a terminal would act on; lines and what separates columns are ours."""
    assert not CONTROLS.search(done.out.replace("\t", "")), repr(done.out)
    assert not CONTROLS.search(done.err), repr(done.err)


class Elements(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.scripts, self.handlers = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.scripts.append(dict(attrs))
        self.handlers += [name for name, value in attrs if name.startswith("on") or
                          (value or "").strip().lower().startswith("javascript:")]


def test_terminals_get_text(hostile, holdfast, tmp_path):
    run = holdfast.at(hostile.url)
    refused = run("run", "--no-wait", LABEL, "--", "true")
    assert refused.code == cli.EXIT_NOT_ACQUIRED and "owned" in refused.err
    assert_text(refused)
    (tmp_path / "locks.yaml").write_text("version: 1\nlocks: []\n")
    for words in (["locks"], ["locks", "--waiting"], ["top", "--once"], ["doctor"], ["key", LABEL],
                  ["registry", "seen", "--registry", tmp_path / "locks.yaml"], ["ingest", "status"], ["table", "list"]):
        done = run(*words, env={"LC_ALL": "C.UTF-8", "COLUMNS": "400"})
        assert done.code in (0, 1), done
        assert_text(done)
    refused = run("run", "--json", "--no-wait", LABEL, "--", "true")
    assert json.loads(refused.err.splitlines()[-1])
    assert LABEL in [lock["label"] for lock in json.loads(run("locks", "--json").out)["locks"]]


def test_pages_get_text(hostile, holdfast):
    server = Serve(holdfast.at(hostile.url))
    (shown,) = [lock for lock in server.api("locks")["data"] if lock["label"] == LABEL]
    assert shown["holders"][0]["host"].startswith("x")
    pages = ["/", f"/?lock=b:{shown['key']}", "/?q=%3Cscript%3E"]
    clean = Elements(server.get("/?q=nothing-has-this").text)
    for path in pages:
        answer = server.get(path)
        found = Elements(answer.text)
        assert found.handlers == [] and found.scripts == clean.scripts, path
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", answer.text), path
        assert "script-src" in answer.headers["Content-Security-Policy"] or "default-src" in answer.headers[
            "Content-Security-Policy"]
    for what in ("locks", "waits", "events"):
        assert json.loads(server.get(f"/api/v1/{what}").text)
    read(server)  # the metrics parse
    assert not os.path.exists("owned")


def test_statements_and_shells_get_text(holdfast, recorded, tmp_path):
    """Names that an operator passes on from elsewhere."""
    run, folder = holdfast.at(recorded.url), tmp_path / "here"
    folder.mkdir()

    def rows():
        return json.loads(run("tx", "job", "--json", "-c", "select a from t").out)

    assert run("tx", "job", "-c", "create table t (a text)").code == 0
    assert run("run", LABEL, "--", "touch", "ran", cwd=folder).code == 0
    assert run("tx", LABEL, "-v", f"v={LABEL}", "-c", "insert into t values (:v)", cwd=folder).code == 0
    assert LABEL in str(rows()).replace("\\\\", "\\").replace("\\'", "'"), rows()
    for words in (["table", "register", LABEL], ["table", "register", f"a.{LABEL}"], ["gaps", "--network", LABEL],
                  ["ingest", "status", "--network", LABEL], ["cursor", "get", "--network", "n", "--schema", LABEL, "c"]):
        done = run(*words, cwd=folder)
        assert 0 < done.code < cli.EXIT_FAILED, (words, done)
        assert_text(done)
    assert rows() and [path.name for path in folder.iterdir()] == ["ran"]
