"""What a server is asked, seen and changed by somebody in between."""

import contextlib
import http.client
import http.server
import json
import signal
import socket
import threading
import urllib.parse

import pytest

from appending import (BLOCK, SMALL_BLOCKS, counts, is_told, kill_while_it_attaches, make_table, rows_of, slow_select,
                       visible)
from appending_beside import beside_plain, beside_strangers
from awaiting import eventually
from sockets import serving


class Between:
    """Passes requests on.

    change(query, settings) may answer in the server's place: (status, body). The answer to the first query with one of
    the words in cut is lost, and the connection with it; with those in leave it is lost once they run.
    """

    def __init__(self, server, change=None, cut=(), leave=()):
        self.server, self.change, self.cut, self.leave = server, change, list(cut), list(leave)
        self.asked = []  # (query, settings)

    def _pass_on(self, query, settings, body):
        path = "/?" + urllib.parse.urlencode({**settings, "query": query} if query != body.decode() else settings)
        with contextlib.closing(http.client.HTTPConnection(self.server.host, self.server.http_port)) as there:
            there.request("POST", path, body)
            answer = there.getresponse()
            return answer.status, answer.read()

    def _answer(self, handler):
        settings = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query))
        body = read_body(handler)
        query = settings.pop("query", None) or body.decode()
        self.asked.append((query, settings))
        changed = self.change(query, settings) if self.change else None
        if any(word in query for word in self.leave):
            self.leave = []
            threading.Thread(target=self._pass_on, args=(query, settings, body), daemon=True).start()
            eventually(lambda: self.server.value(
                f"SELECT count() FROM system.processes WHERE query_id = '{settings['query_id']}'"))
            handler.close_connection = True
            return
        if changed is None:
            changed = self._pass_on(query, settings, body)
        if any(word in query for word in self.cut):
            self.cut = [word for word in self.cut if word not in query]
            handler.close_connection = True
            return
        status, text = changed
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def at_work(self):
        """Gives its port."""
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                between._answer(self)

            def log_message(self, *_):
                pass

        return serving(Handler)


def read_body(handler):
    if handler.headers.get("Transfer-Encoding") != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
    body = b""
    while size := int(handler.rfile.readline(), 16):
        body += handler.rfile.read(size)
        handler.rfile.readline()
    handler.rfile.readline()
    return body


def appended(appender, between, *words, input=None, **settings):
    with between.at_work() as port:
        return appender.holdfast("append", "--to", appender.ch.url(port=port, **settings), *words, input=input)


@beside_strangers
def test_tables_that_were_merged_are_not_merged_again_when_a_later_one_is_refused(appender15, ch):
    refusals = [(500, b"Code: 216, e.displayText() = DB::Exception: Query with id = x is already running.\n")]

    def refuse_once(query, _):
        return refusals.pop() if "INSERT" in query and "`b`" in query and refusals else None

    make_table(ch)
    for number, name in enumerate("ab", 1):
        make_table(ch, name)
        ch.sql(f"INSERT INTO {name} SELECT {number}, number FROM numbers(50)")
    result = appended(appender15, Between(ch.server, refuse_once), "--direct", "t", "--concat", "a", "b")
    assert result.code == 0 and refusals == [], result
    assert counts(ch) == {1: 50, 2: 50}


def test_an_orphan_s_statement_is_never_replaced_whatever_the_settings_say(appender15, ch):
    between = Between(ch.server)
    make_table(ch)
    for mode in ("--direct", "--staged"):
        result = appended(appender15, between, mode, "t", input=rows_of(1, 10), replace_running_query=1)
        assert result.code == 0, result
    named = [(query, settings) for query, settings in between.asked if "query_id" in settings]
    assert any(query.startswith("INSERT") for query, _ in named) and any("ATTACH" in query for query, _ in named)
    assert {settings["replace_running_query"] for _, settings in named} == {"0"}


SHAPES = {"extremes": 1, "default_format": "JSON", "compress": 1, "wait_end_of_query": 0, "buffer_size": 1,
          "max_result_rows": 1, "result_overflow_mode": "break", "read_overflow_mode": "break", "max_rows_to_read": 1,
          "output_format_json_quote_64bit_integers": 1, "output_format_write_statistics": 0, "query": "SELECT 7",
          "query_id": "mine", "send_progress_in_http_headers": 1}


@pytest.mark.parametrize("mode", ["--direct", "--staged"])
def test_settings_that_shape_an_answer_do_not_change_how_ours_is_read(appender15, ch, mode):
    limited = set()

    def know_limits(query, settings):  # as Debian's server does not
        if settings.pop("limit", None):
            limited.add(query.split()[0])

    make_table(ch, engine="MergeTree PARTITION BY n % 5 ORDER BY tuple()")
    result = appended(appender15, Between(ch.server, know_limits), mode, "t", "--format", "CSVWithNames",
                      input=b"append;n\n" + b"".join(b"1;%d\n" % n for n in range(100)),
                      format_csv_delimiter=";", limit=1, **SHAPES)
    assert result.code == 0 and json.loads(result.out)["rows"] == 100, result
    assert counts(ch) == {1: 100} and ch.staging_tables() == [] and limited == {"INSERT"}


@pytest.mark.parametrize("mode", ["--direct", "--staged"])
def test_a_profile_that_shapes_answers_does_not_change_how_ours_is_read(appender15, ch, mode):
    make_table(ch)
    result = appender15(mode, "t", input=rows_of(1, 100), user="extreme")
    assert result.code == 0 and json.loads(result.out)["rows"] == 100, result
    assert counts(ch) == {1: 100} and ch.staging_tables() == []


def test_rows_do_not_wait_in_a_server_that_would_write_them_later(appender15, ch):
    """Debian's server is too old to do so: one that knows the setting is made of it."""
    def know_async(query, settings):
        settings.pop("async_insert", None)
        if "system.settings" not in query:
            return None
        return 200, ch.sql(query).encode() + b"async_insert\t1\t1\n"

    make_table(ch)
    for mode in ("--direct", "--staged"):
        seen = []
        between = Between(ch.server, lambda query, settings: (
            seen.append((query, settings.get("async_insert"))), know_async(query, settings))[1])
        result = appended(appender15, between, mode, "t", input=rows_of(1, 10), async_insert=1)
        assert result.code == 0, result
        assert [value for query, value in seen if query.startswith("INSERT")] == ["0"]


def test_a_server_that_does_not_know_the_setting_is_not_told_it(appender15, ch):
    between = Between(ch.server)
    make_table(ch)
    assert appended(appender15, between, "t", input=rows_of(1, 10)).code == 0
    assert not any("async_insert" in settings for _, settings in between.asked)


def test_a_create_statement_may_answer(appender15, ch):
    """As one ON CLUSTER does, with a line for every host."""
    def create(query, _):
        if not query.startswith("CREATE TABLE t ON CLUSTER"):
            return None
        make_table(ch)
        return 200, b"db1\t9000\t0\t\t0\t0\n"

    result = appended(appender15, Between(ch.server, create), "t", "--create", "CREATE TABLE t ON CLUSTER pair (…)",
                      input=rows_of(1, 10))
    assert result.code == 0, result
    assert counts(ch) == {1: 10}


def test_one_who_may_not_stop_merges_is_told_before_any_row_is_sent(appender15, ch):
    """What is merged while it is attached could not be told from what others write."""
    def refuse(query, _):
        return (500, b"Code: 497. DB::Exception: me: Not enough privileges. To execute this query, it's necessary to"
                     b" have the grant SYSTEM MERGES ON d.x. (ACCESS_DENIED) (version 23.1)\n"
                ) if query.startswith("SYSTEM STOP MERGES") else None

    between = Between(ch.server, refuse)
    make_table(ch)
    result = appended(appender15, between, "t", input=rows_of(1, 10))
    assert result.code == 78 and "the grant SYSTEM MERGES" in result.err, result
    assert not any(query.startswith("INSERT") for query, _ in between.asked)
    assert ch.staging_tables() == []


def test_a_merge_that_was_about_to_end_is_awaited(appender15, ch):
    merges = [b"1\n", b"1\n"]

    def merge(query, _):
        return (200, merges.pop()) if "system.merges" in query and merges else None

    between = Between(ch.server, merge)
    make_table(ch)
    assert appended(appender15, between, "t", input=rows_of(1, 10)).code == 0
    asked = [query for query, _ in between.asked]
    looks = [at for at, query in enumerate(asked) if "system.merges" in query]
    assert len(looks) == 3
    assert all("system.parts" not in query for query in asked[:looks[-1]])
    assert "system.parts" in asked[looks[-1] + 1]


GONE = (b"Poco::Exception. Code: 1000, e.code() = 2, e.displayText() = File not found: /x/holdfast_staging_1.sql,"
        b" e.what() = File not found\n",
        b"Code: 60, e.displayText() = DB::Exception: Table d.holdfast_staging_1 doesn't exist., e.what() ="
        b" DB::Exception\n")


@pytest.mark.parametrize("mode", ["--staged", "--direct"])
@pytest.mark.parametrize("answer", GONE, ids=["library", "server"])
def test_a_table_that_others_drop_while_all_are_listed_is_nobodys_fault(appender15, ch, answer, mode):
    """So this server says when the appends of others end at the same time."""
    seen = set()

    def fail_once(query, _):
        kind = query[:40]
        if "system.tables" not in query or kind in seen:
            return None
        seen.add(kind)
        return 500, answer

    make_table(ch)
    result = appended(appender15, Between(ch.server, fail_once), mode, "t", input=rows_of(1, 10))
    assert result.code == 0 and len(seen) >= (3 if mode == "--staged" else 1), (result, seen)
    assert counts(ch) == {1: 10}


# --- an answer that is lost ---------------------------------------------------------------------------------


def lost(between, word):
    """The statement went out once, whatever came of it."""
    assert between.cut == []
    return sum(1 for query, _ in between.asked if word in query) == 1


@beside_strangers
def test_partitions_are_not_attached_twice_when_the_answer_is_lost(appender15, ch):
    between = Between(ch.server, cut=["ATTACH PARTITION"])
    make_table(ch)
    result = appended(appender15, between, "--id", "x", "t", input=rows_of(1, 100))
    assert lost(between, "ATTACH PARTITION") and result.code == 76, result
    assert "how many of 1 partitions are attached is not known" in result.err
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert counts(ch) == {1: 100} and ch.staging_tables() == []


@beside_strangers
def test_a_query_is_not_run_twice_when_the_answer_is_lost(appender15, ch):
    make_table(ch)
    select = ["--select", "SELECT toUInt32(1), number FROM numbers(100)"]
    between = Between(ch.server, cut=["INSERT INTO"])
    result = appended(appender15, between, "--direct", "t", *select)
    assert lost(between, "INSERT INTO") and result.code == 76 and "at most" in result.err, result
    assert is_told(ch, visible(result.err), 100)
    assert counts(ch) == {1: 100}
    between = Between(ch.server, cut=["INSERT INTO"])
    result = appended(appender15, between, "--id", "x", "t", *select)
    assert lost(between, "INSERT INTO") and result.code == 69, result
    assert counts(ch) == {1: 100} and ch.staging_tables() == []


@beside_plain
@pytest.mark.parametrize("how", ["kill", "wait"])
def test_what_goes_on_behind_a_lost_connection_is_ended_before_it_is_counted(appender15, ch, how):
    make_table(ch)
    between = Between(ch.server, leave=["INSERT INTO"])
    result = appended(appender15, between, "--direct", "--orphans", how, "t", "--select", slow_select(1, 100),
                      **SMALL_BLOCKS)
    assert result.code == 76, result
    assert not ch.rows("SELECT query FROM system.processes WHERE query_id LIKE 'holdfast-%'")
    found = counts(ch)[1]
    assert is_told(ch, visible(result.err), found)
    assert (found == 100 * BLOCK) == (how == "wait")


@beside_strangers
@pytest.mark.parametrize("word", ["CREATE TABLE", "RENAME TABLE", "STOP MERGES", "DROP TABLE", "system.parts"])
def test_whatever_answer_is_lost_a_repeat_appends_once(appender15, ch, word):
    between = Between(ch.server, cut=[word])
    make_table(ch)
    result = appended(appender15, between, "--id", "x", "t", input=rows_of(1, 100))
    assert between.cut == [] and result.code in (0, 69), result
    again = appender15.done("--id", "x", "t", input=rows_of(1, 100))
    assert again["outcome"] in ("appended", "resumed", "nothing to do")
    appender15.done("t", input=b"")  # sweeps
    assert counts(ch) == {1: 100} and ch.staging_tables() == []


def cutting_the_list(server, cut):
    """Passes requests on, but only half of the body of the first long ATTACH; cut has what the server says to that."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = read_body(self)
            encoding = {key: value for key, value in self.headers.items() if key == "Content-Encoding"}
            if not cut and "query_id=holdfast-" in self.path and body and not body.startswith(b"SELECT"):
                self.cut_off(body, encoding)
                return
            with contextlib.closing(http.client.HTTPConnection(server.host, server.http_port)) as there:
                there.request("POST", self.path, body, encoding)
                answer = there.getresponse()
                text = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def cut_off(self, body, encoding):
            half = len(body) // 2 if encoding else body.rindex(b", ATTACH", 0, len(body) // 2)
            head = [f"POST {self.path} HTTP/1.1", "Host: server", f"Content-Length: {len(body)}",
                    *(f"{key}: {value}" for key, value in encoding.items())]
            with socket.create_connection((server.host, server.http_port)) as there:
                there.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body[:half])
                there.shutdown(socket.SHUT_WR)
                cut.append(there.recv(65536))
            self.close_connection = True

        def log_message(self, *_):
            pass

    return serving(Handler)


@pytest.mark.parametrize("stranger", [False, True])
def test_a_long_list_of_partitions_that_is_cut_on_its_way_attaches_none(appender15, ch, stranger):
    """A list that ends behind one of its items is a list, too: the server would attach some partitions."""
    cut = []
    make_table(ch, engine="MergeTree PARTITION BY n % 300 ORDER BY tuple()")
    with cutting_the_list(ch.server, cut) as port:
        result = appender15.holdfast("append", "--to", ch.url(port=port), "--id", "x", "t", input=rows_of(1, 300))
    assert cut and result.code == 76, (cut, result)
    assert counts(ch) == {}
    if stranger:
        ch.sql("INSERT INTO t SELECT 2, number FROM numbers(10)")
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "finished"
    assert counts(ch) == {1: 300, **({2: 10} if stranger else {})}


@beside_plain
def test_a_question_that_still_runs_when_its_answer_is_lost_is_asked_again(appender15, ch):
    """The server refuses a second one of the same id as long as the first is there."""
    refused = []
    make_table(ch)

    def lose(query, settings):
        if settings.get("query_id", "").startswith("look-") and len(refused) < 5:
            refused.append(settings["query_id"])
            return 500, (b"Code: 216, e.displayText() = DB::Exception: Query with id = x is already running.,"
                         b" e.what() = DB::Exception\n")

    result = appended(appender15, Between(ch.server, lose), "--id", "x", "t", input=rows_of(1, 100))
    assert result.code == 0 and len(refused) == 5, (result, refused)
    assert counts(ch) == {1: 100}


@beside_plain
@pytest.mark.parametrize("word", ["look-", "RENAME TABLE"])
def test_told_to_stop_before_it_attaches_it_attaches_nothing_and_says_so(appender15, ch, word):
    stopped = []
    make_table(ch, engine="MergeTree PARTITION BY n % 2 ORDER BY tuple()")

    def stop(query, settings):
        what = query + settings.get("query_id", "")
        if word in what and "begun" in what and not stopped:
            stopped.append(query)
            worker.signal(signal.SIGTERM)
            worker.await_line("told again", "err")

    with Between(ch.server, stop).at_work() as port:
        worker = appender15.holdfast.start("append", "--to", ch.url(port=port), "--id", "x", "t", "--select",
                                           "SELECT toUInt32(1), number FROM numbers(100)")
        result = worker.wait_all(30)
    assert stopped and result.code == 128 + signal.SIGTERM, result
    assert "not known" not in result.err and "repeat with --id x" in result.err, result
    assert counts(ch) == {}
    appender15.done("t", input=rows_of(2, 10))
    assert counts(ch) == {2: 10}, "nobody goes on with what was told to stop"
    assert appender15.done("--id", "x", "t", input=b"")["outcome"] == "resumed"
    assert counts(ch) == {1: 100, 2: 10} and ch.staging_tables() == []


def test_told_to_stop_it_does_not_wait_for_a_server_that_has_swallowed_the_rows(appender15, ch, tmp_path):
    swallowed, over = threading.Event(), threading.Event()
    make_table(ch)
    (tmp_path / "rows").write_bytes(rows_of(1, 100))

    def swallow(query, _):
        if "INSERT INTO" not in query:
            return None
        swallowed.set()
        over.wait(60)
        return 500, b""

    with Between(ch.server, swallow).at_work() as port:
        worker = appender15.holdfast.start("append", "--to", ch.url(port=port), "t", tmp_path / "rows")
        assert swallowed.wait(30)
        worker.signal(signal.SIGTERM)
        assert worker.wait(15) == 128 + signal.SIGTERM
        over.set()
    assert counts(ch) == {} and ch.staging_tables() == []


# --- a clock that is set back ------------------------------------------------------------------------------


@pytest.mark.parametrize("hours", [0, 1])
def test_by_a_clock_that_was_set_back_nothing_is_proven(appender15, ch, hours):
    """The look at the table is still to come, by the server: its log may be another run's, and old parts new ones."""
    def set_back(query, _):
        if "uptime()" in query and "system.parts" in query:
            return 200, ch.sql(query.replace("now()", f"(now() - {hours * 3600})")).encode()

    make_table(ch)
    kill_while_it_attaches(appender15, ch)
    result = appended(appender15, Between(ch.server, set_back), "--id", "x", "t", input=b"")
    assert result.code == (76 if hours else 0), result
    assert counts(ch) == ({0: 1} if hours else {0: 1, 1: 100})


# --- a lock that is lost ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stranger", [False, True])
def test_a_lock_found_lost_behind_the_whole_insert_is_told_with_what_is_there(appender15, store15, ch, stranger):
    """All rows have arrived: who takes this for a failure and repeats it has them twice."""
    make_table(ch)

    def lose(query, _):
        if "min_block_number = max_block_number" in query:  # it counts what has arrived
            for pid in store15.sessions("holdfast append%"):
                store15.server.terminate(pid)
            if stranger:
                ch.sql("INSERT INTO t SELECT 9, number FROM numbers(7)")

    result = appended(appender15, Between(ch.server, lose), "--direct", "t", input=rows_of(1, 100))
    assert result.code == 79 and "remove them before it is repeated" in result.err, result
    assert visible(result.err) == (107 if stranger else 100)
    assert counts(ch)[1] == 100


@pytest.mark.parametrize("word", ["ATTACH PARTITION", "INSERT INTO", "RENAME TABLE"])
def test_who_loses_the_lock_and_is_settled_by_another_says_so_and_not_that_it_failed(appender15, store15, ch, word):
    """The statement is late: another append has finished this one, or swept what it had staged."""
    others = []
    make_table(ch)

    def lose(query, _):
        if word in query and not others:
            for pid in store15.sessions("holdfast append%"):
                store15.server.terminate(pid)
            others.append(appender15("t", input=rows_of(2, 10)))

    result = appended(appender15, Between(ch.server, lose), "--id", "x", "t", input=rows_of(1, 100))
    assert others[0].code == 0 and result.code == 79, (others, result)
    assert "forget" not in result.err and "repeat with --id x" in result.err, result
    is_there = word == "ATTACH PARTITION"
    assert ("all of its rows are in the table" in result.err) == is_there, result
    assert counts(ch) == {2: 10, **({1: 100} if is_there else {})}
    appender15.done("--id", "x", "t", input=rows_of(1, 100))
    assert counts(ch) == {1: 100, 2: 10}
