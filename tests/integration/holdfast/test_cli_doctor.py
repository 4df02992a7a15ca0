"""`holdfast doctor`: what it finds, and that it finds nothing where nothing is."""

import json

import pytest

import hf
import hf_registry
import servers
from awaiting import eventually
from schema import make_newer


def findings(holdfast, url, *options):
    done = holdfast.at(url)("doctor", "--json", *options)
    report = json.loads(done.out)
    assert done.code == (1 if report["problems"] else 0), done
    assert report["problems"] == sum(f["level"] == "problem" for f in report["findings"])
    for finding in report["findings"]:
        assert finding["text"]
        assert finding["level"] == "ok" or finding["remedy"], finding
    return report["findings"]


def about(found, *words, level=None):
    hits = [f for f in found
            if any(word in (f["topic"] + " " + f["text"]).lower() for word in words)
            and (level is None or f["level"] in level)]
    assert hits, (words, found)
    return hits


BAD = ("warning", "problem")


def test_healthy_server_has_no_problem(holdfast, db):
    hf.install(db.url())
    found = findings(holdfast, db.url())
    assert not [f for f in found if f["level"] == "problem"], found
    assert not [f for f in found if f["level"] == "warning" and f["topic"] == "timeouts"], found
    for topic in (["connection"], ["version", "postgresql"], ["role", "right"], ["pool"], ["recovery", "standby", "primary"],
                  ["lock table", "lock-table", "capacity", "locks"], ["timeout"], ["keepalive"], ["schema"], ["clock"]):
        about(found, *topic)


def test_a_role_that_only_reads_by_default_is_told(holdfast, db):
    def recovery():
        return [f["text"] for f in findings(holdfast, db.url()) if f["topic"] == "recovery"]

    assert recovery() == ["primary"]
    db.sql(f"alter role app in database {db.name} set default_transaction_read_only = on")
    assert recovery() == ["primary; default_transaction_read_only is on for this role"]


def test_missing_schema_is_no_problem_but_said(holdfast, db):
    hit = about(findings(holdfast, db.url()), "schema")
    assert any("holdfast init" in (f["remedy"] or "") for f in hit)


def test_proxy_in_between_is_found(holdfast, db):
    """The server's keepalives then tell it of the proxy, not of the host behind it."""
    direct = findings(holdfast, db.url(host="127.0.0.1"))
    assert all("between" not in finding["text"] for finding in direct), direct
    with servers.Proxy(db.server.port) as proxy:
        found = findings(holdfast, db.url(port=proxy.port))
    hits = about(found, "between", level=BAD)
    assert {hit["topic"] for hit in hits} == {"pooler", "keepalives"}, found


@pytest.mark.parametrize("setting", ["statement_timeout", "lock_timeout", "idle_session_timeout",
                                     "idle_in_transaction_session_timeout"])
def test_timeouts_that_would_free_locks_are_found(holdfast, db, setting):
    db.sql(f"alter role app in database {db.name} set {setting} = '5s'")
    about(findings(holdfast, db.url()), setting, level=BAD)


def test_transaction_timeout_is_found(holdfast, pg18):
    db = pg18.create_database()
    db.sql(f"alter database {db.name} set transaction_timeout = '5s'")
    about(findings(holdfast, db.url()), "transaction_timeout", level=BAD)
    db.drop()


def test_transaction_pooler_is_a_problem(holdfast, db15, transaction_pooler):
    hit = about(findings(holdfast, transaction_pooler.url(db15.name)), "pool", level=("problem",))
    assert any("session" in f["remedy"] for f in hit)


def test_standby_is_a_problem(holdfast, own_pg):
    with own_pg.make_standby() as standby:
        about(findings(holdfast, standby.url("postgres")), "standby", "recovery", level=("problem",))


def test_commits_that_a_failover_would_lose_are_told(holdfast, own_pg):
    db = own_pg.create_database()
    db.sql("grant pg_read_all_stats to app", user="postgres")

    def replication(level, words):
        about([f for f in findings(holdfast, db.url()) if f["topic"] == "replication"], words, level=(level,))

    replication("ok", "no standby")
    db.sql(f"alter database {db.name} set synchronous_commit = off", user="postgres")
    replication("warning", "synchronous_commit is off")
    db.sql(f"alter database {db.name} reset synchronous_commit", user="postgres")
    with own_pg.make_standby():
        eventually(lambda: own_pg.value("select count(*) from pg_stat_replication where state = 'streaming'") == 1)
        replication("warning", "asynchronous, 1 standby")
        own_pg.sql("alter system set synchronous_standby_names = '*'")
        own_pg.sql("select pg_reload_conf()")
        eventually(lambda: own_pg.value("select sync_state from pg_stat_replication") == "sync")
        replication("ok", "synchronous, 1 standby")
    eventually(lambda: own_pg.value("select count(*) from pg_stat_replication") == 0)
    replication("problem", "commits wait")


def test_a_standby_that_a_new_server_waits_for_is_named(holdfast, own_pg):
    """The first session commits where its tokens begin; nobody can be granted one before that."""
    db = own_pg.create_database()
    hf.install(db.url())
    own_pg.sql("alter system set synchronous_standby_names = 'away'")
    own_pg.restart()
    command = holdfast.at(db.url())
    first = command.start("run", "job", "--", "true")
    eventually(lambda: own_pg.value("select count(*) from pg_stat_activity where wait_event = 'SyncRep'"))
    refused = command("run", "job", "--", "true")
    assert refused.code == 69 and "synchronous standby (away)" in refused.err
    about(findings(holdfast, db.url()), "synchronous standby (away)", level=("problem",))
    own_pg.sql("alter system set synchronous_standby_names = ''")
    own_pg.sql("select pg_reload_conf()")
    first.wait(60)
    assert command("run", "job", "--", "true").code == 0


def test_unreachable_server_is_a_problem(holdfast):
    found = findings(holdfast, f"postgresql://u:hush-hush@127.0.0.1:{servers.free_port()}/x")
    about(found, "connection", level=("problem",))
    assert "hush-hush" not in json.dumps(found)


def test_full_lock_table_is_found(holdfast, own_pg):
    own_pg.extra_settings = "max_locks_per_transaction = 10\nmax_connections = 20\n"
    own_pg.restart()
    db = own_pg.create_database()
    with db.connect() as stranger, stranger.cursor() as cursor:
        cursor.execute("select count(pg_advisory_lock(i)) from generate_series(1, 190) i")
        about(findings(holdfast, db.url()), "lock table", "lock-table", "capacity", "locks", level=BAD)
    stranger.close()


def test_newer_schema_is_a_problem(holdfast, db):
    hf.install(db.url())
    make_newer(db)
    about(findings(holdfast, db.url()), "schema", level=("problem",))


def test_local_store_is_examined_too(holdfast, tmp_path):
    found = findings(holdfast, f"local:{tmp_path / 'state'}")
    assert found
    assert not [f for f in found if f["level"] == "problem"], found


def test_broken_local_store_is_a_problem(holdfast, tmp_path):
    (tmp_path / "state").write_text("no folder")
    assert [f for f in findings(holdfast, f"local:{tmp_path / 'state'}") if f["level"] == "problem"]


def test_prose_names_level_topic_and_remedy(holdfast, db):
    done = holdfast.at(db.url())("doctor")
    assert done.code == 0
    assert any(line.startswith("ok") and "connection" in line for line in done.out.splitlines())
    assert "-> " in done.out or "→" in done.out


def test_examination_reports_each_topic_once(db):
    with hf.Store(db.url()) as store:
        assert len(store.examine()) >= 8


# --- neighbours who lock the same label by another key ----------------------------------------------


@pytest.fixture
def stranger(db):
    """Runs statements in a transaction that stays open."""
    with db.connect() as connection, connection.cursor() as cursor:
        cursor.execute("begin")
        yield cursor.execute
    connection.close()


def neighbours(found):
    finding, = [f for f in found if f["topic"] == "neighbours"]
    return finding


@pytest.mark.parametrize("theirs", ["hashtext('Transfer:é1')", "hashtextextended('Transfer:é1', 0)"])
def test_a_recorded_label_that_a_neighbour_locks_by_hashtext_is_a_problem(holdfast, db, stranger, theirs):
    hf.install(db.url())
    assert holdfast.at(db.url())("run", "Transfer:é1", "--", "true").code == 0
    assert neighbours(findings(holdfast, db.url()))["level"] == "ok"
    stranger("set application_name = 'old transfers'")
    stranger(f"select pg_advisory_xact_lock({theirs})")
    found = neighbours(findings(holdfast, db.url()))
    assert found["level"] == "problem" and "--as" in found["remedy"]
    assert theirs.partition("(")[0] + "('Transfer:é1')" in found["text"] and "old transfers" in found["text"], found


def test_a_registered_label_is_looked_for_without_the_schema_too(holdfast, db, stranger, tmp_path):
    registry = hf_registry.write(tmp_path, ["name: a, key: { pattern: 'Transfer:{side}' }, placeholders: { side: 'in|out' }"])
    stranger("select pg_advisory_xact_lock(hashtext('Transfer:out'))")
    found = neighbours(findings(holdfast, db.url(), "--registry", registry))
    assert found["level"] == "problem" and "'Transfer:out'" in found["text"], found


def test_neighbours_who_use_our_key_or_labels_that_are_not_ours_are_none(holdfast, db, stranger):
    hf.install(db.url())
    assert holdfast.at(db.url())("run", "--as", "hashtext", "Transfer:acc1", "--", "true").code == 0
    stranger("select pg_advisory_xact_lock(hashtext('Transfer:acc1')), pg_advisory_xact_lock(hashtext('acc2'))")
    found = neighbours(findings(holdfast, db.url()))
    assert found["level"] == "ok" and "(1)" in found["text"], found


def test_where_no_label_is_known_it_says_that_it_did_not_look(holdfast, db):
    assert "not looked for" in neighbours(findings(holdfast, db.url()))["text"]


def test_a_registry_that_cannot_be_read_is_a_problem(holdfast, db, tmp_path):
    (tmp_path / "locks.yaml").write_text("locks: 7\n")
    about(findings(holdfast, db.url(), "--registry", tmp_path / "locks.yaml"), "registry", level=("problem",))
