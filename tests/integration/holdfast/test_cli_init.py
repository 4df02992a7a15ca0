"""`holdfast init`."""

import json

import hf
from awaiting import Background
from cli import EXIT_CONFIG, EXIT_UNREACHABLE
from schema import make_newer


def test_init_installs_once_and_is_then_up_to_date(holdfast, db):
    command = holdfast.at(db.url())
    first = command("init")
    assert first.code == 0
    assert f"version {hf.SCHEMA_VERSION}" in first.out
    second = command("init")
    assert second.code == 0
    assert "up to date" in second.out
    assert db.value("select to_regnamespace('holdfast')::text") == "holdfast"


def test_init_as_json(holdfast, db):
    command = holdfast.at(db.url())
    assert json.loads(command("init", "--json").out) == {
        "schema": "holdfast", "from": 0, "to": hf.SCHEMA_VERSION}


def test_inits_at_once_all_succeed(holdfast, db):
    command = holdfast.at(db.url())
    crowd = [Background(command, "init", "--json") for _ in range(4)]
    outcomes = [one.result() for one in crowd]
    assert [done.code for done in outcomes] == [0] * 4, outcomes
    assert sorted(json.loads(done.out)["from"] for done in outcomes) == [0, *[hf.SCHEMA_VERSION] * 3]


def test_init_without_the_right_is_refused_and_says_which(holdfast, db):
    db.sql("do $$ begin create role visitor login; exception when duplicate_object then end $$")
    done = holdfast.at(db.url(user="visitor"))("init")
    assert done.code in (EXIT_CONFIG, 125)
    assert done.err.startswith("error: ")
    assert "hint: " in done.err and "CREATE" in done.err


def test_init_of_a_newer_schema_is_refused(holdfast, db):
    command = holdfast.at(db.url())
    assert command("init").code == 0
    make_newer(db)
    done = command("init")
    assert done.code == EXIT_CONFIG
    assert f"version {hf.SCHEMA_VERSION + 1}" in done.err and "hint: " in done.err


def test_init_of_an_unreachable_server(holdfast):
    assert holdfast.at("postgresql://127.0.0.1:1/x")("init").code == EXIT_UNREACHABLE


def test_init_of_the_local_store(holdfast, tmp_path):
    done = holdfast.at(f"local:{tmp_path / 'state'}")("init")
    assert done.code == 0
