"""Replicated tables, and several servers behind one address: all replicas are looked at, one takes the append."""

import contextlib
import itertools
import json
import socket
import socketserver
import struct
import threading
import urllib.parse

import pytest

import clickhouse
import hf
from appending import (BLOCK, SMALL_BLOCKS, Appender, balanced, counts, held_id, is_told, kill_before, kill_while_it_attaches,
                       rows_of, slow_select, trigger)
from appending_beside import beside_others
from awaiting import eventually
from sockets import serving

pytestmark = pytest.mark.timeout(300)  # ZooKeeper and two servers take their time
numbers = itertools.count()


@pytest.fixture(scope="module")
def pair():
    with clickhouse.ZooKeeper() as zookeeper:
        with clickhouse.Cluster(more=zookeeper.start().configuration) as cluster:
            yield cluster


@pytest.fixture
def replicas(pair):
    """The test's own database on both."""
    databases = pair.create_database(f"c{next(numbers)}")
    yield databases
    for database in databases:
        database.drop()


def make_replicated(replicas, engine="ReplicatedMergeTree", of="t"):
    for database in replicas:
        database.sql(f"CREATE TABLE {of} (append UInt32, n UInt64) ENGINE = {engine}('/{database.name}/{of}',"
                     " '{replica}') PARTITION BY n % 3 ORDER BY n")
    if replicas[0].strangers:
        replicas[0].strangers.begin(of, engine)


def to(holdfast, store, url):
    """`holdfast append` to an address, all replicas of the cluster being looked at."""
    appender = Appender(holdfast.at(store.url()), None)
    appender.words = lambda *args, **settings: [
        "append", "--to", url + ("?" + "&".join(f"{k}={v}" for k, v in settings.items()) if settings else ""),
        "--cluster", "pair", *args]
    return appender


@pytest.fixture
def first(holdfast, store15, replicas):
    return to(holdfast, store15, replicas[0].url())


@pytest.fixture
def second(holdfast, store15, replicas):
    return to(holdfast, store15, replicas[1].url())


@pytest.fixture
def anywhere(holdfast, store15, pair, replicas):
    """By way of a balancer, which gives every connection to the next server."""
    with balanced(*pair.servers, port=pair.servers[0].http_port) as port:
        yield to(holdfast, store15, f"clickhouse+http://default@127.0.0.1:{port}/{replicas[0].name}")


def both_have(replicas, expected):
    eventually(lambda: all(counts(database) == expected for database in replicas),
               what=f"both replicas have {expected}")


def kill(worker):
    worker.kill9()


# --- replicated tables ------------------------------------------------------------------------------------


@beside_others
@pytest.mark.parametrize("engine", ["ReplicatedMergeTree", "ReplicatedReplacingMergeTree"])
def test_a_staged_append_into_a_replicated_table_reaches_every_replica(first, second, replicas, engine):
    make_replicated(replicas, engine)
    summary = first.done("t", input=rows_of(1, 99))
    assert (summary["mode"], summary["rows"], summary["partitions"]) == ("staged", 99, 3)
    assert second.done("t", input=rows_of(2, 50))["rows"] == 50
    if engine == "ReplicatedMergeTree":
        both_have(replicas, {1: 99, 2: 50})
    assert [database.staging_tables() for database in replicas] == [[], []]


def test_one_replica_alone_needs_no_cluster(holdfast, store15, replicas):
    make_replicated(replicas[:1])
    appender = Appender(holdfast.at(store15.url()), replicas[0])
    assert appender.done("--id", "x", "t", input=rows_of(1, 99))["rows"] == 99
    assert appender.done("--id", "x", "t", input=rows_of(1, 99))["outcome"] == "nothing to do"
    assert counts(replicas[0]) == {1: 99}


def make_unpartitioned(database, of="t"):
    database.sql(f"CREATE TABLE {of} (append UInt32, n UInt64) ENGINE = ReplicatedMergeTree('/{database.name}/{of}',"
                 " '{replica}') ORDER BY n")


def tens(*ends):
    """Blocks of ten rows: equal ends are equal blocks."""
    return ["--select", " UNION ALL ".join(f"SELECT toUInt32({end}), number FROM numbers({BLOCK})" for end in ends)]


@pytest.mark.parametrize("strangers", [False, True])
def test_equal_parts_of_one_append_all_arrive(holdfast, store15, replicas, strangers):
    """ClickHouse refuses an ATTACH of two equal parts, and keeps inactive ones that look as if they were there."""
    make_unpartitioned(replicas[0])
    appender = Appender(holdfast.at(store15.url()), replicas[0])
    if strangers:
        replicas[0].sql(f"INSERT INTO t SELECT 2, number FROM numbers({BLOCK})")
    summary = appender.done("--id", "x", "t", *tens(1, 1, 1), max_threads=1, **SMALL_BLOCKS)
    assert (summary["outcome"], summary["rows"]) == ("appended", 3 * BLOCK)
    assert replicas[0].value("SELECT count() FROM t WHERE append = 1") == 3 * BLOCK
    assert appender.done("--id", "x", "t", input=b"")["outcome"] == "nothing to do"
    assert replicas[0].staging_tables() == []


def test_parts_that_the_table_has_had_already_arrive_again_inside_of_a_greater_one(holdfast, store15, replicas):
    make_unpartitioned(replicas[0])
    appender = Appender(holdfast.at(store15.url()), replicas[0])
    appender.done("t", *tens(1), **SMALL_BLOCKS)
    assert appender.done("t", *tens(1, 2, 3, 4), max_threads=1, **SMALL_BLOCKS)["rows"] == 4 * BLOCK
    found = replicas[0].rows("SELECT append, count() AS c FROM t GROUP BY append ORDER BY append")
    assert [(row["append"], row["c"]) for row in found] == [(1, 20), (2, 10), (3, 10), (4, 10)]


def test_equal_rows_that_the_server_would_leave_out_are_refused_before_any_arrives(first, store15, replicas):
    make_replicated(replicas)
    first.done("--id", "a", "t", input=rows_of(1, 99))
    more = rows_of(1, 99) + b'{"append":1,"n":300}\n'  # another part in one partition; the others are equal
    again = first("--id", "b", "t", input=more)
    assert again.code == 125 and "leaves out 33 rows of partition" in again.err, again
    assert "insert_deduplicate=0" in again.err
    assert store15.sql("SELECT id FROM holdfast.appends WHERE state <> 'done'") == []
    assert first.done("t", input=rows_of(2, 30))["rows"] == 30
    both_have(replicas, {1: 99, 2: 30})


def key_of(database, table="t"):
    """Of the lock that all names of a replicated table share."""
    return hf.derive(f"holdfast:replicated:/{database.name}/{table}") & 2**60 - 1 | 2**60


def test_all_names_of_a_replicated_table_are_one_lock(holdfast, store15, replicas):
    make_replicated(replicas)
    appender = Appender(holdfast.at(store15.url()), replicas[0])
    with held_id(replicas[0], f"holdfast-{key_of(replicas[0])}"):
        worker = appender.start("--cluster", "pair", "--orphans", "wait", "t", "--select",
                                "SELECT toUInt32(1), number FROM numbers(99)")
        worker.await_line("orphan", "err")
        for words in ([], ["--cluster", "other"], ["--cluster", "pair"]):
            for mode in ("--direct", "--staged"):
                refused = appender(*words, mode, "--wait", "0", "t", input=rows_of(2, 10))
                assert refused.code == 75, refused
    assert worker.wait(60) == 0
    for words in ([], ["--cluster", "other"]):
        appender.done(*words, "t", "--select", f"SELECT toUInt32({3 + len(words)}), number FROM numbers(10)")
    assert counts(replicas[0]) == {1: 99, 3: 10, 5: 10}


@pytest.mark.parametrize("when", ["attaching", "done"])
@pytest.mark.parametrize("writer", ["direct", "stranger"])
def test_a_replicated_table_tells_what_a_dead_append_has_attached(first, store15, replicas, when, writer):
    make_replicated(replicas)
    if when == "done":
        kill_before(first, store15, "done")
    else:
        kill_while_it_attaches(first, replicas[0], key_of(replicas[0]))
    before = counts(replicas[0])
    assert before.get(1, 0) == (100 if when == "done" else 0)
    if writer == "direct":
        first.done("--direct", "t", input=rows_of(2, 100))
    else:
        replicas[0].sql("INSERT INTO t SELECT 2, number FROM numbers(100)")
    first.done("--id", "x", "t", input=b"")
    both_have(replicas, {**before, 1: 100, 2: 100})


@pytest.mark.parametrize("word", ["DROP", "DETACH"])
@pytest.mark.parametrize("log", ["kept", "lost"])
def test_a_partition_that_somebody_dropped_does_not_come_back(first, store15, replicas, word, log):
    """ZooKeeper forgets its parts: only the log of queries still knows them."""
    make_replicated(replicas)
    kill_before(first, store15, "done")
    for part in replicas[0].rows("SELECT DISTINCT partition_id AS id FROM system.parts WHERE active AND table = 't'"
                                 " AND database = currentDatabase()"):
        replicas[0].sql(f"ALTER TABLE t {word} PARTITION ID '{part['id']}'")
    assert counts(replicas[0]) == {}
    if log == "lost":
        replicas[0].sql("SYSTEM FLUSH LOGS")
        replicas[0].sql("TRUNCATE TABLE IF EXISTS system.query_log")
    replicas[0].sql("INSERT INTO t SELECT 2, number FROM numbers(100)")
    result = first("--id", "x", "t", input=b"")
    assert result.code == (0 if log == "kept" else 76), result
    both_have(replicas, {2: 100})


# --- a connection that breaks -----------------------------------------------------------------------------


@contextlib.contextmanager
def breaking(server, when):
    """A line to the server that breaks in the first INSERT once `when` holds; seen counts the INSERTs."""
    seen = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with socket.create_connection((server.host, server.http_port)) as there:
                threading.Thread(target=self.back, args=(there,), daemon=True).start()
                with contextlib.suppress(OSError):
                    while data := self.request.recv(65536):
                        if b"POST /" in data and b"query=INSERT" in data:
                            seen.append(data)
                            self.sent = 0
                        there.sendall(data)
                        self.sent = getattr(self, "sent", -HALF) + len(data)
                        if len(seen) == 1 and self.sent > HALF:
                            eventually(when, what="some rows have been committed")
                            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                            self.request.close()
                            break
                    there.shutdown(socket.SHUT_RDWR)

        def back(self, there):
            with contextlib.suppress(OSError):
                while data := there.recv(65536):
                    self.request.sendall(data)

    with serving(Handler) as port:
        yield port, seen


ROWS, WIDTH = 400, 10000
HALF = ROWS * WIDTH // 2


def broken_append(holdfast, store, database, path, *words):
    path.write_bytes(rows_of(1, ROWS, WIDTH))
    with breaking(database.server, lambda: counts(database).get(1, 0) > 0) as (port, seen):
        url = f"clickhouse+http://default@127.0.0.1:{port}/{database.name}?" + urllib.parse.urlencode(SMALL_BLOCKS)
        return holdfast.at(store.url())("append", "--to", url, "--direct", "t", *words, path), len(seen)


def test_where_the_server_leaves_out_what_it_has_had_a_broken_stream_is_sent_again(holdfast, store15, replicas,
                                                                                  tmp_path):
    """Block by block it may have been committed; the half block at the break has not, for its seal is missing."""
    replicas[0].sql("CREATE TABLE t (append UInt32, n UInt64) ENGINE ="
                    f" ReplicatedMergeTree('/{replicas[0].name}/t', '{{replica}}') ORDER BY n")
    result, inserts = broken_append(holdfast, store15, replicas[0], tmp_path / "rows")
    assert result.code == 0 and "sent again" in result.err and inserts == 2, result
    assert json.loads(result.out)["rows"] == ROWS
    assert counts(replicas[0]) == {1: ROWS}


@pytest.mark.parametrize("engine", ["MergeTree ORDER BY n", "ReplicatedMergeTree('/{}/t', '{{replica}}') ORDER BY n"
                                    " SETTINGS replicated_deduplication_window = 3"])
def test_where_it_does_not_or_forgets_too_soon_the_outcome_is_unknown(holdfast, store15, replicas, tmp_path, engine):
    replicas[0].sql(f"CREATE TABLE t (append UInt32, n UInt64) ENGINE = {engine.format(replicas[0].name)}")
    result, inserts = broken_append(holdfast, store15, replicas[0], tmp_path / "rows")
    assert result.code == 76 and "of its rows are visible" in result.err and inserts == 1, result


def test_a_pipe_cannot_be_sent_again(holdfast, store15, replicas, tmp_path):
    make_replicated(replicas[:1])
    rows = rows_of(1, ROWS, WIDTH)
    with breaking(replicas[0].server, lambda: counts(replicas[0]).get(1, 0) > 0) as (port, seen):
        url = f"clickhouse+http://default@127.0.0.1:{port}/{replicas[0].name}?" + urllib.parse.urlencode(SMALL_BLOCKS)
        result = holdfast.at(store15.url())("append", "--to", url, "--direct", "t", input=rows)
    assert result.code == 76 and len(seen) == 1, result


# --- several servers --------------------------------------------------------------------------------------


@beside_others
def test_behind_a_balancer_one_replica_takes_all_statements(anywhere, replicas):
    make_replicated(replicas)
    for number in range(1, 4):
        assert anywhere.done("t", input=rows_of(number, 99))["rows"] == 99
    assert is_told(replicas[0], anywhere.done("--direct", "t", input=rows_of(4, 99))["rows"], 99)
    both_have(replicas, {number: 99 for number in range(1, 5)})
    assert [database.staging_tables() for database in replicas] == [[], []]


def test_a_balancer_is_refused_without_the_cluster_that_is_behind_it(anywhere, replicas):
    make_replicated(replicas)
    words = anywhere.words("t")
    at = words.index("--cluster")
    result = anywhere.holdfast(*words[:at], *words[at + 2:], input=rows_of(1, 10))
    assert result.code == 78 and "--cluster" in result.err, result
    words[at + 1] = "other"
    result = anywhere.holdfast(*words, input=rows_of(1, 10))
    assert result.code == 78 and "have no cluster other" in result.err, result


def test_a_table_that_is_not_replicated_is_refused_behind_a_balancer(anywhere, replicas):
    for database in replicas:
        database.sql("CREATE TABLE t (append UInt32, n UInt64) ENGINE = MergeTree ORDER BY n")
    result = anywhere("t", input=rows_of(1, 10))
    assert result.code == 78 and "is not replicated" in result.err, result


@pytest.mark.parametrize("mode", ["--direct", "--staged"])
def test_an_orphan_on_another_replica_is_ended(first, second, replicas, mode):
    make_replicated(replicas)
    slow = ["--select", slow_select(1, 500, 0.01)]
    dead = first.start("--direct", "t", *slow, **SMALL_BLOCKS)
    eventually(lambda: counts(replicas[0]).get(1, 0) >= 2 * BLOCK)
    kill(dead)
    summary = second.done(mode, "t", input=rows_of(2, 30))
    assert summary["orphan"] == "killed"
    assert replicas[0].rows("SELECT query_id FROM system.processes WHERE query_id LIKE 'holdfast-%'") == []
    eventually(lambda: counts(replicas[0]) == counts(replicas[1]) and counts(replicas[0])[2] == 30)


def test_staging_tables_of_the_dead_are_swept_on_every_replica(first, second, replicas):
    make_replicated(replicas)
    dead = first.start("t", "--select", slow_select(1, 500, 0.01), **SMALL_BLOCKS)
    eventually(replicas[0].staging_tables)
    kill(dead)
    second.done("t", input=rows_of(2, 30))
    assert [database.staging_tables() for database in replicas] == [[], []]


@beside_others
def test_a_repeat_at_another_replica_finds_what_was_staged(first, second, store15, replicas):
    make_replicated(replicas)
    with trigger(store15, "BEFORE INSERT", "NEW.state = 'attaching'", "PERFORM pg_sleep(60)"):
        worker = first.start("--id", "x", "t", "--select", "SELECT toUInt32(1), number FROM numbers(99)")
        eventually(lambda: store15.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
        kill(worker)
        for (pid,) in store15.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
            store15.server.terminate(pid)
    assert second.done("--id", "x", "t", input=b"")["outcome"] == "resumed"
    both_have(replicas, {1: 99})
    assert [database.staging_tables() for database in replicas] == [[], []]


def test_a_replica_that_does_not_answer_is_named(holdfast, store15):
    with clickhouse.Cluster("lame") as lame:
        database, _ = lame.create_database("d")
        database.sql("CREATE TABLE t (append UInt32, n UInt64) ENGINE = MergeTree ORDER BY n")
        lame.servers[1].kill()
        appender = Appender(holdfast.at(store15.url()), database)
        result = appender("--cluster", "lame", "t", input=rows_of(1, 10))
        assert result.code == 69 and f"replica {lame.servers[1].host} of the cluster lame" in result.err, result
        assert appender.done("t", input=rows_of(1, 10))["rows"] == 10
