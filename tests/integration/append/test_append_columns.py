"""What ends up in which column: defaults, names, and tables that pass rows on."""

import json

import pytest

import clickhouse
import strangers
from appending import Appender, counts, make_table, rows_of
from awaiting import eventually


def make_dated(ch, default="DEFAULT now()"):
    ch.sql(f"CREATE TABLE t (n UInt64, at DateTime {default}) ENGINE = MergeTree ORDER BY tuple()")


def clock(ch):
    return ch.value("SELECT toUInt32(now())")


# --- defaults that depend on the moment -------------------------------------------------------------------


@pytest.mark.parametrize("default", ["DEFAULT now()", "MATERIALIZED now()",
                                     "DEFAULT addSeconds(NOW(), 0)"])
def test_a_default_of_the_clock_is_evaluated_under_the_lock(appender15, store15, ch, tmp_path, default):
    """Who gets the lock later has the later times, also beside a neighbour that holds it itself."""
    make_dated(ch, default)
    (tmp_path / "rows").write_bytes(b"n\n1\n")
    key = appender15.done("--format", "CSVWithNames", "t", input=b"n\n0\n")["key"]
    with strangers.sessions(store15, 1) as [neighbour]:
        strangers.run(neighbour, "SELECT pg_advisory_lock(%s)", key)
        worker = appender15.start("--format", "CSVWithNames", "t", tmp_path / "rows")
        eventually(lambda: store15.value("SELECT count(*) FROM holdfast.waiters WHERE key = %s", key), 20, "it waits")
        waiting = clock(ch)
        eventually(lambda: clock(ch) > waiting + 1, 10, "time passes")
        ch.sql("INSERT INTO t (n) VALUES (2)")  # the neighbour's row
        strangers.run(neighbour, "SELECT pg_advisory_unlock(%s)", key)
    assert worker.wait(20) == 0
    times = {row["n"]: row["at"] for row in ch.rows("SELECT n, toUInt32(at) AS at FROM t")}
    assert times[0] <= waiting < times[2] <= times[1]


def test_such_a_table_is_appended_to_directly_and_told_why(appender15, ch):
    make_dated(ch)
    result = appender15("t", input=b'{"n":1}\n')
    assert result.code == 0 and json.loads(result.out)["mode"] == "direct", result
    assert f"{ch.name}.t has a default that depends on the moment (at)" in result.err
    assert "moment" not in appender15("--direct", "t", input=b'{"n":2}\n').err
    refused = appender15("--id", "one", "t", input=b'{"n":3}\n')
    assert refused.code == 64 and "--staged" in refused.err and "before the lock" in refused.err, refused
    staged = appender15("--staged", "--id", "one", "t", input=b'{"n":3}\n')
    assert staged.code == 0 and json.loads(staged.out)["mode"] == "staged" and "before the lock" in staged.err
    assert ch.sql("SELECT n FROM t ORDER BY n") == "1\n2\n3\n"


def test_a_query_gives_every_column_itself(appender15, ch):
    """No default is evaluated, except where nobody can give a value."""
    make_dated(ch)
    assert appender15.done("t", "--select", "SELECT 1, now()")["mode"] == "staged"
    ch.sql("ALTER TABLE t ADD COLUMN seen DateTime MATERIALIZED now()")
    assert appender15.done("t", "--select", "SELECT 1, now()")["mode"] == "direct"


@pytest.mark.parametrize("default", ["n + 1", "rand()", "toUInt64(cityHash64('now'))",
                                     "toUInt64(toDate('2020-01-01'))"])
def test_defaults_that_the_moment_does_not_matter_to_are_staged(appender15, ch, default):
    ch.sql(f"CREATE TABLE t (n UInt64, more UInt64 DEFAULT {default}) ENGINE = MergeTree ORDER BY tuple()")
    assert appender15.done("t", input=b'{"n":1}\n')["mode"] == "staged"


# --- tables that follow each other ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_tables_are_joined_by_the_names_of_their_columns(appender15, ch, mode):
    ch.sql("CREATE TABLE t (a UInt32, b UInt32, c UInt32 DEFAULT a + b) ENGINE = MergeTree ORDER BY tuple()")
    ch.sql("CREATE TABLE same (a UInt32, b UInt32, c UInt32) ENGINE = Memory")
    ch.sql("CREATE TABLE other (b UInt8, a UInt16, old UInt8 ALIAS a, twice UInt16 MATERIALIZED a * 2) ENGINE = Memory")
    ch.sql("INSERT INTO same VALUES (1, 2, 9)")
    ch.sql("INSERT INTO other VALUES (4, 3)")
    ch.sql("CREATE VIEW seen AS SELECT b, a FROM other")
    assert appender15.done(mode, "t", "--concat", "same", "other", "seen")["rows"] == 3
    assert ch.sql("SELECT a, b, c FROM t ORDER BY a, c") == "1\t2\t9\n3\t4\t7\n3\t4\t7\n"


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_a_column_that_the_table_does_not_have_is_refused_before_any_row(appender15, ch, mode):
    ch.sql("CREATE TABLE t (a UInt32, b UInt32, m UInt32 MATERIALIZED a) ENGINE = MergeTree ORDER BY tuple()")
    ch.sql("CREATE TABLE fine (a UInt32, b UInt32) ENGINE = Memory")
    ch.sql("INSERT INTO fine VALUES (1, 2)")
    for name in ("renamed", "m"):
        ch.sql(f"CREATE TABLE of_{name} (a UInt32, {name} UInt32) ENGINE = Memory")
        refused = appender15(mode, "t", "--concat", "fine", f"of_{name}")
        assert refused.code == 78 and f"'{name}'" in refused.err and f"of_{name}" in refused.err, refused
    assert ch.value("SELECT count() FROM t") == 0 and ch.staging_tables() == []


# --- tables that pass rows on ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def front(clickhouse_server):
    """A server whose one shard is another server: it keeps rows in a folder and sends them later, unless told."""
    with clickhouse.ClickHouse("front") as server:
        server.more = (f"<remote_servers><there><shard><replica><host>127.0.0.1</host>"
                       f"<port>{clickhouse_server.tcp_port}</port></replica></shard></there></remote_servers>")
        yield server.start()


@pytest.mark.parametrize("source", ["file", "select", "concat", "view"])
def test_rows_of_a_distributed_table_have_arrived_when_it_says_so(holdfast, store15, ch, front, source):
    make_table(ch)
    here = front.create_database()
    appender = Appender(holdfast.at(store15.url()), here)
    make_table(here, "from_here")
    here.sql("INSERT INTO from_here SELECT 1, number FROM numbers(100)")
    here.sql(f"CREATE TABLE spread (append UInt32, n UInt64) ENGINE = Distributed(there, {ch.name}, t, n)")
    here.sql("CREATE TABLE fed AS from_here ENGINE = Memory")
    here.sql("CREATE MATERIALIZED VIEW of_fed TO spread AS SELECT * FROM fed")
    words = {"file": ["spread"], "select": ["spread", "--select", "SELECT * FROM from_here"],
             "concat": ["spread", "--concat", "from_here"], "view": ["fed"]}[source]
    summary = appender.done(*words, input=rows_of(1, 100))
    assert (summary["mode"], summary["rows"]) == ("direct", 100)
    assert counts(ch) == {1: 100}


def test_a_shard_that_is_away_is_no_success(holdfast, store15, front):
    here = front.create_database()
    here.sql("CREATE TABLE spread (append UInt32, n UInt64) ENGINE = Distributed(there, nowhere, t, n)")
    refused = Appender(holdfast.at(store15.url()), here)("spread", input=rows_of(1, 100))
    assert refused.code not in (0, 75), refused


# --- tables of other kinds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine, known", [("File(TabSeparated)", False), ("Set", False), ("Null", False),
                                           ("StripeLog", True), ("Memory", True), ("Join(ANY, LEFT, append)", True)])
def test_tables_that_cannot_be_counted_are_appended_to_all_the_same(appender15, ch, engine, known):
    make_table(ch, engine=engine)
    for turn in (1, 2):
        summary = appender15.done("t", input=rows_of(turn, 10 if "Join" not in engine else 1))
        assert summary["rows"] == ((1 if "Join" in engine else 10) if known else None)
    if engine.startswith("File"):
        assert counts(ch) == {1: 10, 2: 10}
    if engine == "Set":
        assert ch.value("SELECT count() FROM numbers(20) WHERE (toUInt32(2), number) IN t") == 10
        failed = appender15("t", input=b'{"append":oops}\n')
        assert failed.code == 65 and "is not known" in failed.err, failed
