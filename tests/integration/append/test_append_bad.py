"""What goes wrong: a clear error, the lock released, no staging table left, and the truth about the table."""

import contextlib
import gzip
import http.server
import os
import random
import signal
import subprocess
import threading

import pytest

import cli
import clickhouse
from appending import BLOCK, SMALL_BLOCKS, WIDE, Appender, Feed, balanced, counts, make_table, rows_of, visible
from awaiting import eventually
from sockets import serving

ROWS = rows_of(1, 10)


def web_server(answer):
    """Gives its port; answer(handler) replies to a POST whose body has been read."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer(self)

        def log_message(self, *_):
            pass

    return serving(Handler)


def reply(code, body, **headers):
    def answer(handler):
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


# --- names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["o'brien", 'a"b', "a`b", "a.b.c", "", "x" * 300, b"caf\xe9", "a\nb"])
def test_a_name_that_is_none_is_refused_before_anything_is_asked(appender15, name):
    result = appender15.holdfast("append", "--to", "clickhouse+http://127.0.0.1:1/", name, input=ROWS)
    assert result.code == 64 and result.err.count("error:") == 1, result


def test_an_id_that_is_none_is_refused(appender15):
    result = appender15("--id", "a b", "t", input=ROWS)
    assert result.code == 64 and "is no id for an append" in result.err


# --- rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_a_row_that_does_not_parse_is_named_by_file_and_line(appender15, store15, ch, tmp_path, mode):
    make_table(ch)
    (tmp_path / "good").write_bytes(rows_of(1, 7))
    (tmp_path / "bad").write_bytes(rows_of(2, 4) + b'{"append":oops}\n')
    result = appender15(mode, "t", tmp_path / "good", tmp_path / "bad")
    assert result.code == 65 and f"{tmp_path}/bad, line 5: " in result.err and "Cannot parse" in result.err, result
    assert counts(ch) == {} and ch.staging_tables() == [] and store15.advisory_locks() == []


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
@pytest.mark.parametrize("how", ["text", "random", "cut", "another type", "behind a block"])
def test_blocks_that_do_not_parse_are_bad_data(appender15, ch, mode, how):
    make_table(ch)
    good = ch.server.sql_bytes("SELECT toUInt32(1) AS append, number AS n FROM numbers(100) FORMAT Native")
    other = ch.server.sql_bytes("SELECT 'x' AS append, toUInt64(1) AS n FORMAT Native")
    garbage = {"text": ROWS * 10, "random": random.Random(1).randbytes(1000), "cut": good[:-3], "another type": other,
               "behind a block": good + ROWS}[how]
    result = appender15(mode, "--format", "Native", "t", input=garbage)
    assert result.code == 65 and "hint" not in result.err, result
    assert counts(ch) == {} and ch.staging_tables() == []


def test_lines_of_csv_count_from_the_header(appender15, ch):
    make_table(ch)
    result = appender15("--format", "CSVWithNames", "t", input=b"append,n\n1,1\n1,x\n")
    assert result.code == 65 and "standard input, line 3: " in result.err


CUT = [  # format, a file that is cut, the line of the row, what is whole and looks alike
    ("CSVWithNames", b'append,n,s\n1,1,x\n1,2,"cut her', 3, b'append,n,s\n1,1,x\n1,2,"cut ""her""\nand there"'),
    ("CSVWithNames", b'append,n,s\n1,1,"a\nb"\n1,2,"cut\nhere\n', 4, b'append,n,s\n1,1,x;"y\n1,2,"a\n1,"\n'),
    ("CSVWithNames", b"append,n,s\n1,1,x\n1,2,'cut her", 3, b"append,n,s\n1,1,it's\n1,2,'cut \"her'\n"),
    ("JSONEachRow", b'{"append":1,"n":1,"s":"x"}\n{"append":1,"n":2,"s":"cut her', 2,
     b'{"append":1,"n":1,"s":"}{"},\n{"append":1,"n":2,"s":"{"}'),
    ("JSONEachRow", b'{"append":1,"n":1,"s":"x"}\n{"append":1,"n"', 2, b' {"append":1,"n":1}\n\n{"append":1,"n":2} \n'),
    ("TSV", b"1\t1\tx\n1\t2\tcut\\", 2, b"1\t1\tx\\\\\n1\t2\tx\\\\"),
]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("name, cut, line, whole", CUT)
def test_a_file_that_is_cut_inside_of_a_row_is_refused(appender15, ch, tmp_path, name, cut, line, whole, alone):
    """The server would take the next file for the rest of the row, or the end of the file for the row's."""
    ch.sql("CREATE TABLE t (append UInt32, n UInt64, s String) ENGINE = MergeTree ORDER BY tuple()")
    (tmp_path / "cut").write_bytes(cut)
    (tmp_path / "whole").write_bytes(whole)
    files = [tmp_path / "cut"] if alone else [tmp_path / "cut", tmp_path / "whole"]
    for mode in ("--staged", "--direct"):
        result = appender15("--format", name, mode, "t", *files)
        assert result.code == 65 and f"cut, line {line}: " in result.err, result
        assert counts(ch) == {} and ch.staging_tables() == []
    appender15.done("--format", name, "t", tmp_path / "whole", tmp_path / "whole")
    assert ch.value("SELECT count() FROM t") == 4


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
@pytest.mark.parametrize("name, body, line", [
    ("CSVWithNames", b'append,s\n1,"two\nlines"\n1,"a ""quoted"" one\n\n"\nx,end\n', 7),
    ("JSONEachRow", b'{"append":1,\n "s":"a"}\n\n{"append":x}\n', 4),
    ("TSV", b"1\ttwo\\\nlines\nx\tend\n", 3)])
def test_lines_are_counted_where_rows_have_several(appender15, ch, mode, name, body, line):
    ch.sql("CREATE TABLE t (append UInt32, s String) ENGINE = MergeTree ORDER BY tuple()")
    result = appender15(mode, "--format", name, "t", input=body)
    assert result.code == 65 and f"standard input, line {line}: " in result.err, result


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_a_column_that_is_not_there_is_named_with_its_file(appender15, ch, tmp_path, mode):
    ch.sql("CREATE TABLE t (a UInt32, m UInt32 MATERIALIZED a) ENGINE = MergeTree ORDER BY tuple()")
    path = tmp_path / "rows.csv"
    for name in ("other", "m"):
        path.write_text(f"a,{name}\n1,2\n")
        result = appender15(mode, "--format", "CSVWithNames", "t", path)
        assert result.code == 65 and f"{path}, line 1: " in result.err and f"'{name}'" in result.err, result
        assert "holdfast_stag" not in result.err
    assert ch.value("SELECT count() FROM t") == 0 and ch.staging_tables() == []


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
@pytest.mark.parametrize("name", ["JSONEachRow", "CSVWithNames", "TSV", "Native"])
def test_nothing_is_nothing_in_every_format(appender15, ch, tmp_path, mode, name):
    make_table(ch)
    (tmp_path / "empty").write_bytes(b"")
    assert appender15.done(mode, "--format", name, "t", tmp_path / "empty")["rows"] == 0
    assert appender15.done(mode, "--format", name, "t", tmp_path / "empty", tmp_path / "empty")["rows"] == 0
    if name == "CSVWithNames":
        (tmp_path / "full").write_bytes(b"append,n\n1,1\n")
        assert appender15.done(mode, "--format", name, "t", tmp_path / "empty", tmp_path / "full")["rows"] == 1
    assert ch.staging_tables() == []


def test_what_is_packed_is_not_taken_for_rows(appender15, ch, tmp_path):
    ch.sql("CREATE TABLE t (line String) ENGINE = MergeTree ORDER BY tuple()")
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    for words in ([path], ["-"]):
        result = appender15("--format", "TSV", "t", *words, input=path.read_bytes())
        assert result.code == 65 and "gzip" in result.err and "zcat" in result.err, result
    assert ch.value("SELECT count() FROM t") == 0


def test_a_bad_row_at_the_start_of_an_endless_stream_ends_it(appender15, ch, tmp_path):
    make_table(ch)
    path = tmp_path / "rows"
    os.mkfifo(path)
    many = rows_of(1, 50000)

    def feed():
        with contextlib.suppress(BrokenPipeError), open(path, "wb", buffering=0) as pipe:
            pipe.write(b"oops\n")
            while True:
                pipe.write(many)

    threading.Thread(target=feed, daemon=True).start()
    result = appender15("t", path)
    assert result.code == 65 and f"{path}, line 1: " in result.err, result
    assert ch.staging_tables() == []


def test_a_standard_input_that_is_closed_is_not_an_empty_one(appender15, ch):
    make_table(ch)
    result = appender15.holdfast(*appender15.words("t"), prefix=("sh", "-c", 'exec "$@" <&-', "sh"))
    assert result.code == 65 and "cannot read standard input" in result.err, result


def test_a_file_that_cannot_be_read_is_said_before_anything_is_written(appender15, ch, tmp_path):
    make_table(ch)
    for path in (tmp_path / "none", tmp_path):
        result = appender15("t", path)
        assert result.code == 65 and str(path) in result.err
    assert ch.staging_tables() == []


def test_two_clusters_for_one_table_are_refused(appender15, ch):
    make_table(ch)
    result = appender15("--cluster", "here", f"there/{ch.name}.t", input=ROWS)
    assert result.code == 64 and "'there'" in result.err and "'here'" in result.err, result
    assert appender15("--cluster", "here", f"here/{ch.name}.t", input=ROWS).code == 0


def test_a_source_that_fails_is_told_with_what_came_before_it(appender15, ch):
    make_table(ch)
    make_table(ch, "source")
    ch.sql("INSERT INTO source SELECT 1, number FROM numbers(50)")
    result = appender15("--direct", "t", "--concat", "source", "none")
    assert result.code == 78 and visible(result.err) == 0 and "--create" not in result.err, result
    ch.sql("CREATE VIEW broken AS SELECT append, n FROM source WHERE throwIf(n = 7)")
    result = appender15("--direct", "t", "--concat", "source", "broken")
    assert result.code == 125 and visible(result.err) == 50, result
    assert "remove them before it is repeated" in result.err


# --- servers that are none ----------------------------------------------------------------------------------


def appended(holdfast, port, *words):
    return holdfast("append", "--to", f"clickhouse+http://me:secret@127.0.0.1:{port}/d", *words, "t", input=ROWS)


@pytest.mark.parametrize("answer, code, text", [
    (reply(200, b"<!DOCTYPE html>\n<title>Hello</title>\n"), 78, "is no ClickHouse"),
    (reply(404, b"no such page"), 78, "it is no ClickHouse: HTTP 404"),
    (reply(302, b"", Location="http://127.0.0.1:1/other"), 78, "redirects (HTTP 302) to 'http://127.0.0.1:1/other'"),
    (reply(200, b"Code: 241, e.displayText() = DB::Exception: Memory limit exceeded, e.what() = DB::Exception\n"), 125,
     "ClickHouse (code 241): Memory limit exceeded"),
    (reply(200, b"1\tCode: 241. DB::Exception: Memory limit", X_ClickHouse_Exception_Code="241"), 125, "Memory limit"),
    (reply(500, b"Code: 497. DB::Exception: me: Not enough privileges. To execute this query, it's necessary to have"
                b" the grant SELECT ON system.one. (ACCESS_DENIED) (version 23.1)\n"), 78, "the grant SELECT"),
    (reply(500, b"Code: 516. DB::Exception: me: Authentication failed. (AUTHENTICATION_FAILED) (version 23.1)\n"), 78,
     "--password-file"),
    (reply(503, b""), 78, "HTTP 503"),
])
def test_an_answer_that_is_no_good_is_told(appender15, answer, code, text):
    with web_server(answer) as port:
        result = appended(appender15.holdfast, port)
    assert result.code == code and text in result.err, result
    assert "secret" not in result.err + result.out


def test_nobody_there_is_unreachable(appender15):
    result = appended(appender15.holdfast, 1)
    assert result.code == 69 and "secret" not in result.err


def test_a_password_is_wanted_wrong_or_read_from_a_file(appender15, ch, tmp_path):
    make_table(ch)
    run = appender15.holdfast
    missing = run("append", "--to", ch.url(user="guarded"), "t", input=ROWS)
    assert missing.code == 78 and "--password-file" in missing.err
    wrong = run("append", "--to", ch.url(user="guarded", password="no"), "t", input=ROWS)
    assert wrong.code == 78 and "no@" not in wrong.err
    (tmp_path / "password").write_text("open sesame\n")
    right = run("append", "--to", ch.url(user="guarded"), "--password-file", tmp_path / "password", "t", input=ROWS)
    assert right.code == 0, right


def test_rights_that_lack_are_named(appender15, ch):
    make_table(ch)
    result = appender15.holdfast("append", "--to", ch.url(user="reader"), "t", input=ROWS)
    assert result.code == 78 and "'reader' is readonly: it must be able to create the staging table" in result.err


def test_a_balancer_in_front_of_two_servers_is_refused(appender15, ch, clickhouse_server):
    with clickhouse.ClickHouse("other-clickhouse") as other:
        other.start()
        other.sql(f"create database {ch.name}")
        with balanced(clickhouse_server, other) as port:
            result = appender15.holdfast("append", "--to", ch.url(port=port), "t", input=ROWS)
    assert result.code == 78 and "leads to several servers" in result.err, result


# --- over a network --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_rows_are_compressed_unless_the_server_is_here(appender15, ch, clickhouse_server, mode):
    make_table(ch)
    rows = rows_of(1, 50000)
    for host, is_small in (("127.0.0.1", False), ("0.0.0.0", True)):  # both lead here, one does not look like it
        seen = []
        with balanced(clickhouse_server, seen=seen) as port:
            url = ch.url(port=port).replace("127.0.0.1", host)
            result = appender15.holdfast("append", "--to", url, mode, "t", input=rows)
        assert result.code == 0, result
        assert (sum(seen) < len(rows) / 2) == is_small
    assert ch.value("SELECT count() FROM t") == 100000


def test_a_compressed_stream_is_aborted_as_well(appender15, ch, tmp_path):
    make_table(ch)
    (tmp_path / "bad").write_bytes(rows_of(1, 100000) + b"oops\n")
    url = ch.url().replace("127.0.0.1", "0.0.0.0")
    result = appender15.holdfast("append", "--to", url, "t", tmp_path / "bad")
    assert result.code == 65 and "line 100001: " in result.err, result
    feed = Feed(tmp_path / "rows")
    worker = appender15.holdfast.start("append", "--to", url, "--direct", "t", feed.path)
    dice = random.Random(1)  # what is random stays large
    feed.write("".join(f'{{"append":1,"n":{dice.getrandbits(60)}}}\n' for _ in range(300000)).encode())
    eventually(lambda: ch.value("SELECT count() FROM system.processes WHERE query LIKE 'INSERT%'"))
    worker.signal(signal.SIGTERM)
    result = worker.wait_all(20)
    assert result.code == 128 + signal.SIGTERM and visible(result.err) == 0, result
    assert counts(ch) == {}


# --- servers that fail ---------------------------------------------------------------------------------------


@pytest.fixture
def own_clickhouse():
    with clickhouse.ClickHouse("own-clickhouse") as server:
        yield server.start()


@pytest.mark.parametrize("mode, code, text", [("--staged", 69, ""), ("--direct", 76, "is not known")])
def test_a_server_killed_in_the_middle_of_the_stream(holdfast, store15, own_clickhouse, tmp_path, mode, code, text):
    database = own_clickhouse.create_database()
    make_table(database)
    feed = Feed(tmp_path / "rows")
    worker = Appender(holdfast.at(store15.url()), database).start(mode, "t", feed.path, **SMALL_BLOCKS)
    feed.write(rows_of(1, 30 * BLOCK, WIDE))
    eventually(lambda: database.value("SELECT count() FROM system.parts WHERE database = currentDatabase()") > 5)
    own_clickhouse.kill()
    feed.write(rows_of(1, 10))
    feed.end()
    result = worker.wait_all(40)
    assert result.code == code and text in result.err, result
    assert store15.advisory_locks() == []
    own_clickhouse.start()
    if mode == "--staged":
        assert counts(database) == {}
        summary = Appender(holdfast.at(store15.url()), database).done("t", input=rows_of(2, 10))
        assert summary["rows"] == 10 and database.staging_tables() == [], "what was left is swept"


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
def test_a_full_disk_is_told_and_the_count_is_true(holdfast, store15, mode):
    with clickhouse.SmallClickHouse() as server:
        server.start()
        database = server.create_database()
        make_table(database)
        database.sql("SYSTEM STOP MERGES")  # on a full disk the parts that come and go cannot always be counted
        appender = Appender(holdfast.at(store15.url()), database)
        result = appender(mode, "t", "--select", "SELECT toUInt32(1), rand64(number) FROM numbers(20000000)",
                          max_block_size=100000, min_insert_block_size_rows=100000)
        assert result.code == 125 and "disk is full" in result.err, result
        if mode == "--direct":
            assert visible(result.err) == database.value("SELECT count() FROM t")
        else:
            assert counts(database) == {} and database.staging_tables() == []
            assert appender.done("t", input=ROWS)["rows"] == 10
    assert store15.advisory_locks() == []


def test_without_the_schema_it_says_what_to_do(holdfast, db15, ch):
    make_table(ch)
    result = holdfast.at(db15.url())("append", "--to", ch.url(), "t", input=ROWS)
    assert result.code == 78 and "holdfast init" in result.err
    assert counts(ch) == {} and ch.staging_tables() == []


def test_a_summary_that_cannot_be_written_is_told_and_the_rows_are_there(appender15, ch):
    make_table(ch)
    words = [cli.program(), *appender15.words("t", "--select", "SELECT toUInt32(1), toUInt64(1)")]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, env=appender15.holdfast.environment({}), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 125 and b"all of its rows are in the table" in done.stderr, done
    assert counts(ch) == {1: 1}
