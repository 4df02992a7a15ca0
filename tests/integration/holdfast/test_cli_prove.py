"""`holdfast doctor --prove`: what works is proven by trying, and what only looks as if it did is found out."""

import contextlib
import json

import pytest

import hf
import servers



def without_effect(name, type_, value):
    """SQL that puts a function of that name in the place of the server's own, whose number the server knows by heart."""
    return (f"set allow_system_table_mods = on; alter function pg_catalog.{name}(bigint) rename to true_{name};"
            f"create function pg_catalog.{name}(bigint) returns {type_} language sql as $$select {value}$$;")


LOCKS_NOTHING = "".join(without_effect(*function) for function in [
    ("pg_try_advisory_lock", "boolean", "true"), ("pg_advisory_lock", "void", ""),
    ("pg_try_advisory_xact_lock", "boolean", "true"), ("pg_advisory_xact_lock", "void", ""),
    ("pg_advisory_unlock", "boolean", "true")])


class Hoarder(servers.Proxy):
    """Keeps its connection to the server when the client is gone."""

    def _pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)


@pytest.fixture(name="prove")
def prove_fixture(holdfast):
    """The findings of the proof, by topic."""

    def prove(url, *options):
        done = holdfast.at(url)("doctor", "--prove", "--json", *options)
        report = json.loads(done.out)
        assert done.code == (1 if report["problems"] else 0), done
        for finding in report["findings"]:
            assert finding["level"] == "ok" or finding["remedy"], finding
        return {finding["topic"]: finding for finding in report["findings"]}

    return prove


def levels(found, *topics):
    return {topic: found[topic]["level"] for topic in topics if topic in found}


def test_a_server_whose_locks_work_is_proven_to(prove, db):
    hf.install(db.url())
    found = prove(db.url())
    topics = ("keeping", "exclusion", "view", "cut", "commit", "notify", "tokens", "terms", "session", "transaction", "lease")
    assert levels(found, *topics) == dict.fromkeys(topics, "ok"), found
    assert db.advisory_locks() == []


def test_a_server_without_the_schema_has_no_tokens_to_prove(prove, db):
    found = prove(db.url())
    assert levels(found, "tokens", "lease", "session", "transaction") == {
        "tokens": "warning", "lease": "warning", "session": "ok", "transaction": "ok"}
    assert "holdfast init" in found["tokens"]["remedy"]


def test_a_server_that_accepts_locks_and_locks_nothing_is_found_out(prove, db):
    db.sql(LOCKS_NOTHING)
    found = prove(db.url())
    assert levels(found, "session", "transaction") == {"session": "problem", "transaction": "problem"}, found
    assert "lock nothing" in found["exclusion"]["text"] and "lock nothing" in found["commit"]["text"]


def test_a_server_that_has_no_such_functions_is_doubtful_not_proven(prove, db):
    db.sql("set allow_system_table_mods = on; alter function pg_catalog.pg_try_advisory_xact_lock(bigint) rename to gone;"
           "alter function pg_catalog.pg_try_advisory_lock(bigint) rename to gone_too")
    found = prove(db.url())
    assert levels(found, "exclusion", "session", "transaction") == dict.fromkeys(("exclusion", "session", "transaction"), "warning")
    assert "doubtful" in found["session"]["text"] and "does not exist" in found["exclusion"]["text"]


@pytest.mark.parametrize("function, type_, value, lifetime, words", [
    ("pg_advisory_lock", "void", "", "session", "was granted"),
    ("pg_try_advisory_lock_shared", "boolean", "true", "session", "can be shared"),
    ("pg_advisory_unlock", "boolean", "false", "session", "is not held"),
    ("pg_advisory_xact_lock", "void", "", "transaction", "was granted"),
    ("pg_try_advisory_xact_lock", "boolean", "pg_catalog.pg_try_advisory_lock($1)", "transaction", "does not free")])
def test_each_function_that_does_not_do_its_work_is_found_out(prove, db, function, type_, value, lifetime, words):
    db.sql(without_effect(function, type_, value))
    found = prove(db.url())
    other, = {"session", "transaction"} - {lifetime}
    assert levels(found, lifetime, other) == {lifetime: "problem", other: "ok"}, found
    assert any(words in finding["text"] for finding in found.values()), found


def test_leases_that_two_can_have_are_found_out(prove, db):
    hf.install(db.url())
    db.sql("create or replace function holdfast.evict(keys bigint[], spaces smallint[], want_shared boolean, own uuid,"
           " out blocked int, out left_ms bigint, out newest bigint) language sql as $$select 0, 0::bigint, 0::bigint$$")
    found = prove(db.url())
    assert levels(found, "lease", "session") == {"lease": "problem", "session": "ok"} and "two have a lease" in found["terms"]["text"]


def test_timeouts_of_the_role_do_not_disturb_the_proof(prove, db):
    for setting in ("idle_session_timeout = 50", "lock_timeout = 10", "statement_timeout = 50"):
        db.sql(f"alter role app in database {db.name} set {setting}")
    assert levels(prove(db.url()), "session", "transaction") == {"session": "ok", "transaction": "ok"}


def test_a_standby_is_not_proven(prove, own_pg):
    with own_pg.make_standby() as standby:
        found = prove(standby.url("postgres") + "&target_session_attrs=any")
    assert "session" not in found and "standby" in found["proof"]["text"], found


def test_two_servers_behind_one_address_are_found_out(prove, own_pg, pg15):
    """A balancer that leads the third connection elsewhere."""

    class Balancer(servers.Proxy):
        def _pump(self, source, sink):
            if self.accepted >= 2:
                self.target("127.0.0.1", pg15.port)
            super()._pump(source, sink)

    own_pg.create_database()
    with Balancer(own_pg.port) as proxy:
        found = prove(f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres")
    assert "session" not in found and "different servers" in found["proof"]["text"], found


def test_behind_a_pooler_of_transactions_its_locks_and_leases_are_proven(prove, db15, transaction_pooler):
    hf.install(db15.url())
    found = prove(transaction_pooler.url(db15.name))
    assert levels(found, "keeping", "session", "transaction", "lease", "notify") == {
        "keeping": "warning", "session": "problem", "transaction": "ok", "lease": "ok", "notify": "warning"}, found
    assert db15.value("select count(*) from holdfast.tenures") == 0
    assert db15.advisory_locks() == []


def test_a_pooler_in_session_mode_is_proven_once_it_is_stated(prove, db15, session_pooler):
    doubtful = prove(session_pooler.url(db15.name))
    assert levels(doubtful, "session", "exclusion", "transaction") == {"session": "warning", "transaction": "ok"}
    stated = prove(session_pooler.url(db15.name), "--session-pool")
    assert levels(stated, "session", "transaction", "cut") == {"session": "ok", "transaction": "ok", "cut": "ok"}


def test_locks_that_outlive_their_connection_are_a_problem(prove, db):
    with Hoarder(db.server.port) as proxy:
        found = prove(db.url(port=proxy.port))
    assert levels(found, "cut", "session", "transaction") == {"cut": "warning", "session": "problem", "transaction": "ok"}, found


def test_a_server_that_is_not_there_is_one_problem_more(prove):
    found = prove("postgresql://app@127.0.0.1:1/none")
    assert levels(found, "connection", "proof") == {"connection": "problem", "proof": "problem"}


def test_a_folder_is_proven_too(prove, tmp_path):
    found = prove(f"local:{tmp_path}/store")
    topics = ("exclusion", "session", "transaction", "lease")
    assert levels(found, *topics) == dict.fromkeys(topics, "ok")
    assert not list((tmp_path / "store" / "locks").glob("test.*"))
