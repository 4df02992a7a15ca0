"""`holdfast tx`."""

import contextlib
import json
import os
import pty
import re
import subprocess

import pytest

import cli
import hf
import servers
from awaiting import Background, eventually
from cli import EXIT_DATA, EXIT_FAILED, EXIT_NOT_ACQUIRED, EXIT_UNREACHABLE, EXIT_USAGE

EXIT_SQL = 1
EXIT_IN_DOUBT = 76

ACCOUNTS = """
    create table account (id int primary key, balance int not null check (balance >= 0), note text);
    insert into account values (1, 100, null), (2, 50, 'it''s; :here')
"""


@pytest.fixture
def tx(holdfast, recorded):
    """Runs a transaction on each kind of store in turn."""
    command = holdfast.at(recorded.url)

    def run(*arguments, **options):
        return command("tx", *arguments, **options)

    run.url = recorded.url
    return run


@pytest.fixture
def accounts(tx):
    assert tx("setup", "-c", ACCOUNTS).code == 0
    return tx


@pytest.fixture
def pg_tx(holdfast, db):
    def run(*arguments, **options):
        return holdfast.at(db.url())("tx", *arguments, **options)

    return run


def balances(tx):
    done = tx("look", "--json", "-c", "select id, balance from account order by id")
    assert done.code == 0, done
    return {row["id"]: row["balance"] for row in json.loads(done.out)}


def place(done):
    """Line, column and text of the detail."""
    line, column, text = re.search(r"^detail: line (\d+), column (\d+): (.*)$", done.err, re.M).groups()
    return int(line), int(column), text


# --- what it does ---------------------------------------------------------------------------------


def test_script_is_one_transaction_with_bound_variables(accounts):
    done = accounts(
        "-v", "amount=30", "account:1", "account:2", "-v", "from=1", "-c",
        "update account set balance = balance - :amount where id = :from;"
        "update account set balance = balance + :amount where id = :to", "-v", "to=2")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert balances(accounts) == {"1": "70", "2": "80"}


def test_rows_are_printed_as_tables(accounts):
    done = accounts("look", "-c", "select id, balance, note from account order by id;"
                                  "select id from account where id > 7; select 'x' as word")
    assert done.code == 0 and done.err == ""
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "id balance note", " 1     100", " 2      50 it's; :here", "", "word", "x"]


def test_rows_are_printed_as_json(accounts):
    done = accounts("look", "--json", "-c", """
        select id, note from account order by id;
        update account set balance = balance + 1;
        select id from account where id > 7;
        select 1 as n, 2 as n, 'a"b' as s""")
    assert done.code == 0 and done.err == ""
    assert [json.loads(line) for line in done.out.splitlines()] == [
        [{"id": "1", "note": None}, {"id": "2", "note": "it's; :here"}], [],
        [{"n": "1", "n_2": "2", "s": 'a"b'}]]


def test_returning_gives_rows(accounts):
    done = accounts("new", "--json", "-c", "insert into account values (3, 7, null) returning id, balance")
    assert json.loads(done.out) == [{"id": "3", "balance": "7"}]


@pytest.mark.parametrize("value", ["'; drop table account; --", "$1", ":id", "\\'", "", "Zürich 🔒", "a\nb"])
def test_values_are_bound_and_never_pasted(accounts, value):
    done = accounts("note", "--json", "-v", f"note={value}", "-v", "id=1", "-c",
                    "update account set note = :note where id = :id returning note")
    assert done.code == 0, done
    assert json.loads(done.out) == [{"note": value}]
    assert len(balances(accounts)) == 2


def test_strings_comments_and_quotes_are_left_alone(pg_tx):
    done = pg_tx("quotes", "--json", "-c", """
        -- it's :nothing; really
        select ':a;' as a, e'\\';:b' as b, $x$;:c$$;$x$ as c, /* ; /* :d */ ' */ 'x'::text as ":e;";
        do $$ begin perform 1; end $$;
        select (array[1,2,3])[1:2] as slice;""")
    assert done.code == 0, done
    assert [json.loads(line) for line in done.out.splitlines()] == [
        [{"a": ":a;", "b": "';:b", "c": ";:c$$;", ":e;": "x"}], [{"slice": "{1,2}"}]]


def test_script_comes_from_a_file_or_from_standard_input(accounts, tmp_path):
    script = tmp_path / "script.sql"
    script.write_bytes(b"\xef\xbb\xbfselect 40 + 2 as answer;\r\n")
    assert accounts("ask", "-f", script).out.split() == ["answer", "42"]
    assert accounts("ask", "-f", "-", input=b"select 'stdin' as answer").out.split() == ["answer", "stdin"]


def test_savepoints_are_allowed(accounts):
    done = accounts("careful", "-c", "savepoint a; delete from account; rollback to a; release a;"
                                     "update account set balance = 1 where id = 1")
    assert done.code == 0, done
    assert balances(accounts) == {"1": "1", "2": "50"}


@pytest.mark.parametrize("options, level, read_only", [
    ([], "serializable", "off"),
    (["--isolation", "serializable"], "serializable", "off"),
    (["--isolation", "repeatable-read"], "repeatable read", "off"),
    (["--isolation=read-committed", "--read-only"], "read committed", "on")])
def test_isolation_is_as_asked(pg_tx, options, level, read_only):
    done = pg_tx("look", *options, "--json", "-c", "select current_setting('transaction_isolation') as level,"
                                                   " current_setting('transaction_read_only') as read_only")
    assert json.loads(done.out) == [{"level": level, "read_only": read_only}]


def test_labels_are_locked_while_it_runs(pg_tx):
    done = pg_tx("--as", "fixed", "--json", "-c",
                 "select (classid::bigint << 32 | objid::bigint) as key from pg_locks"
                 " where locktype = 'advisory' order by 1", "--", "7", "-5", "7")
    assert [row["key"] for row in json.loads(done.out)] == ["-5", "7"]


def test_one_after_the_other_under_one_label(accounts):
    crowd = [Background(accounts, "count", "-c", "update account set balance = balance + 1 where id = 1")
             for _ in range(12)]
    outcomes = [one.result(30) for one in crowd]
    assert [done.code for done in outcomes] == [0] * 12, outcomes
    assert balances(accounts)["1"] == "112"


def test_works_through_a_transaction_pooler(holdfast, db15, transaction_pooler):
    command = holdfast.at(transaction_pooler.url(db15.name))
    done = command("tx", "a", "b", "--json", "-c", "create table t (n int); insert into t values (:n)"
                                                   " returning n", "-v", "n=5")
    assert done.code == 0, done
    assert json.loads(done.out) == [{"n": "5"}]
    assert db15.value("select n from t") == 5


# --- retries --------------------------------------------------------------------------------------

FAIL_TWICE = """
    select nextval('attempts') as attempt;
    do $$ begin
        if (select last_value from attempts) < 3 then
            raise exception 'not yet' using errcode = '%s';
        end if;
    end $$;
    insert into done values (1)
"""


@pytest.fixture
def attempts(db):
    db.sql("create sequence attempts; create table done (n int);"
           "grant all on attempts, done to public")
    return db


@pytest.mark.parametrize("options, sqlstate", [([], "40001"), ([], "40P01"), (["--retry-unique"], "23505")])
def test_retried_attempts_print_nothing(pg_tx, attempts, options, sqlstate):
    done = pg_tx("patient", *options, "-c", FAIL_TWICE % sqlstate)
    assert done.code == 0, done
    assert done.out.split() == ["attempt", "3"]
    assert attempts.sql("select n from done") == [(1,)]


def test_unique_violation_is_an_error_unless_asked(pg_tx, attempts):
    done = pg_tx("patient", "-c", FAIL_TWICE % "23505")
    assert done.code == EXIT_SQL
    assert attempts.value("select last_value from attempts") == 1


def test_attempts_are_spent(pg_tx, attempts):
    done = pg_tx("patient", "--attempts", "2", "-c", FAIL_TWICE % "40001")
    assert (done.code, done.out) == (EXIT_NOT_ACQUIRED, "")
    assert "2 attempts" in done.err and "not yet" in done.err
    assert attempts.value("select last_value from attempts") == 2
    assert attempts.sql("select n from done") == []


def test_deadline_ends_a_statement(pg_tx, attempts):
    done = pg_tx("slow", "--deadline", "300ms", "-c", "insert into done values (1); select pg_sleep(60)")
    assert (done.code, done.out) == (EXIT_NOT_ACQUIRED, "")
    assert attempts.sql("select n from done") == []


def test_held_label_is_named_at_the_deadline(holdfast, recorded):
    command = holdfast.at(recorded.url)
    with command.hold("Transfer:1:2"):
        done = command("tx", "--deadline", "1500ms", "other", "Transfer:1:2", "-c",
                       "create table never (n int)")
    assert done.code == EXIT_NOT_ACQUIRED
    assert "Transfer:1:2" in done.err and "holdfast run" in done.err
    assert command("tx", "look", "-c", "select * from never").code == EXIT_SQL


def test_textbook_users_of_hashtext_are_excluded(pg_tx, db):
    with contextlib.closing(db.connect()) as stranger, stranger.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(hashtext('invoice'))")
        assert pg_tx("--as", "hashtext", "--deadline=200ms", "invoice", "-c", "select 1").code == EXIT_NOT_ACQUIRED
    assert pg_tx("--as", "hashtext", "--deadline=9s", "invoice", "-c", "select 1").code == 0


# --- errors in the SQL ----------------------------------------------------------------------------


def test_sql_error_has_line_and_column_and_nothing_stays(accounts):
    done = accounts("typo", "-v", "amount=5", "-v", "id=1", "-c",
                    "update account set balance = 0;\n\n"
                    "    update account set note = 'é', balance = :amount + balnce where id = :id")
    assert (done.code, done.out) == (EXIT_SQL, "")
    assert "balnce" in done.err.splitlines()[0]
    line, column, text = place(done)
    source = "    update account set note = 'é', balance = :amount + balnce where id = :id"
    assert (line, column, text) == (3, source.index("balnce") + 1, source.strip())
    assert balances(accounts) == {"1": "100", "2": "50"}


def test_error_without_a_position_shows_the_statement(accounts):
    done = accounts("overdraw", "-c", "select 1;\n -- now\n update account set balance = balance - 200")
    assert (done.code, done.out) == (EXIT_SQL, "")
    assert place(done) == (3, 2, "update account set balance = balance - 200")
    assert balances(accounts) == {"1": "100", "2": "50"}


def test_error_as_json(accounts):
    done = accounts("typo", "--json", "-c", "select\nnonsense")
    assert (done.code, done.out) == (EXIT_SQL, "")
    error = json.loads(done.err)["error"]
    assert error["status"] == "HF_DATABASE" and error["sqlstate"] == "42703"
    assert error["detail"] == "line 2, column 1: nonsense"


def test_error_at_a_variable_points_to_it(pg_tx):
    done = pg_tx("typo", "-v", "long_name=b", "-v", "t=x", "-c", "select :long_name,\n  :t::text from :t")
    assert done.code == EXIT_SQL
    assert place(done) == (2, 17, ":t::text from :t")


def test_failure_at_commit_is_an_error_of_no_statement(pg_tx, db):
    db.sql("create table t (n int primary key deferrable initially deferred);"
           "insert into t values (1); grant all on t to public")
    done = pg_tx("late", "-c", "insert into t values (1); select 'printed' as word")
    assert (done.code, done.out) == (EXIT_SQL, "")
    assert "t_pkey" in done.err and "detail:" not in done.err


def test_writing_in_a_read_only_transaction_is_an_error(accounts):
    done = accounts("look", "--read-only", "-c", "update account set balance = 0")
    assert done.code == EXIT_SQL
    assert place(done)[:2] == (1, 1)
    assert balances(accounts) == {"1": "100", "2": "50"}


def test_missing_privilege_is_an_error_in_the_sql(pg_tx, db):
    db.sql("create table secret (n int)")
    done = pg_tx("spy", "-c", "select * from secret")
    assert done.code == EXIT_SQL
    assert "permission denied" in done.err and place(done)[2] == "select * from secret"


@pytest.mark.parametrize("when", ["immediate", "deferred"])
@pytest.mark.parametrize("sqlstate", ["42501", "25006", "53200"])
def test_whatever_the_server_refuses_for_in_a_statement_or_at_commit_is_an_error_in_the_sql(pg_tx, db, when, sqlstate):
    db.sql("create table t (n int); grant all on t to public;"
           " create function refuse() returns trigger language plpgsql as"
           f" $$ begin raise exception 'refused' using errcode = '{sqlstate}'; end $$;"
           " create constraint trigger refusal after insert on t deferrable"
           f" initially {when} for each row execute function refuse()")
    done = pg_tx("late", "-c", "insert into t values (1)")
    assert done.code == EXIT_SQL and "refused" in done.err, done
    assert ("detail: line 1" in done.err) == (when == "immediate"), done


# --- what is refused before anything runs -----------------------------------------------------------


@pytest.mark.parametrize("script, line, column", [
    ("create table t (n int);\n  commit", 2, 3),
    ("create table t (n int); BEGIN; select 1", 1, 25),
    ("create table t (n int);\nrollback;", 2, 1),
    ("create table t (n int);\nstart transaction", 2, 1),
    ("create table t (n int);\nprepare transaction 'x'", 2, 1),
    ("create table t (n int);\nend", 2, 1),
    ("create table t (n int);\nselect :id, :missing", 2, 13),
    ("create table t (n int);\nselect $1", 2, 8),
    ("create table t (n int);\nselect 'open", 2, 8),
    ("create table t (n int); /* open", 1, 25),
    ("create table t (n int); copy t from stdin", 1, 37)])
def test_bad_script_is_refused_before_anything_runs(tx, script, line, column):
    done = tx("label", "-v", "id=1", "-c", script)
    assert (done.code, done.out) == (EXIT_USAGE, "")
    assert done.err.startswith("error: ") or done.err.startswith("warning: ")
    assert place(done)[:2] == (line, column)
    assert tx("label", "-c", "select * from t").code == EXIT_SQL


@pytest.mark.parametrize("arguments", [
    [], ["-c", "select 1"], ["label"], ["", "-c", "select 1"], ["label", "-c"],
    ["label", "-c", "select 1", "-f", "-"], ["label", "-c", "select 1", "-c", "select 2"],
    ["label", "-c", ""], ["label", "-c", " -- nothing"], ["label", "-c", ";;"],
    ["label", "-c", "select 1", "--isolation", "chaos"], ["label", "-c", "select 1", "--attempts", "0"],
    ["label", "-c", "select 1", "--deadline", "soon"], ["label", "-c", "select 1", "--as", "nonsense"],
    ["label", "-c", "select :a", "-v", "a"], ["label", "-c", "select :a", "-v", "1a=2"],
    ["label", "-c", "select :a", "-v", "a=1", "-v", "a=2"], ["label\n", "-c", "select 1"]])
def test_wrong_usage(holdfast, arguments):
    done = holdfast.at("postgresql://127.0.0.1:1/x")("tx", *arguments)
    assert (done.code, done.out) == (EXIT_USAGE, "")
    assert done.err.startswith("error: ")


@pytest.mark.parametrize("content", [None, b"select 1;\0"])
def test_unreadable_file(holdfast, tmp_path, content):
    script = tmp_path / "script.sql"
    if content:
        script.write_bytes(content)
    done = holdfast("tx", "label", "-f", script)
    assert done.code == EXIT_DATA
    assert holdfast("tx", "label", "-f", tmp_path).code == EXIT_DATA


def test_unused_variable_is_a_warning(accounts):
    done = accounts("label", "-v", "id=1", "-v", "spare=2", "-c", "select id from account where id = :id")
    assert done.code == 0
    assert done.err == "warning: the variable :spare is not used\n"


def test_unreachable_server(holdfast):
    done = holdfast.at("postgresql://127.0.0.1:1/x")("tx", "label", "-c", "select 1")
    assert done.code == EXIT_UNREACHABLE


# --- around COMMIT ----------------------------------------------------------------------------------


def test_output_that_fails_does_not_hide_the_commit(accounts):
    done = subprocess.run(
        [cli.program(), "tx", "--url", accounts.url, "label", "-c",
         "update account set balance = 7 where id = 1 returning balance"],
        stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == EXIT_FAILED
    assert "is committed" in done.stderr
    assert balances(accounts)["1"] == "7"


def test_terminal_is_told_what_was_done(accounts):
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as terminal:
        done = subprocess.run(
            [cli.program(), "tx", "--url", accounts.url, "label", "-c",
             "select 1 as n; update account set balance = 7"],
            stdout=subprocess.PIPE, stderr=theirs, timeout=30)
        os.close(theirs)
        text = terminal.read(4096).decode()
    assert done.returncode == 0
    assert done.stdout.split() == [b"n", b"1"]
    assert text == "note: committed: 2 statements, 2 rows changed, attempt 1\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("schema, expected", [(False, EXIT_IN_DOUBT), (True, 0)])
def test_answer_to_commit_lost_in_a_crash(holdfast, own_pg, own_db, schema, expected):
    """The marker of the schema tells; without it nobody can, and it says so."""
    if schema:
        hf.install(own_db.url(user="postgres"))
    own_db.sql("""
        create table t (n int);
        create function wait() returns trigger language plpgsql as
            'begin perform pg_advisory_xact_lock(77); return null; end';
        create constraint trigger wait after insert on t deferrable initially deferred
            for each row execute function wait()""")
    with servers.Proxy(own_pg.port) as proxy:
        command = holdfast.at(own_db.url(user="postgres", port=proxy.port))
        with contextlib.closing(own_db.connect()) as blocker, blocker.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(77)")
            running = command.start("tx", "label", "-c", "insert into t values (1); select 'row' as word")
            eventually(lambda: own_db.waiters(77))
            proxy.blackhole()
        eventually(lambda: own_db.sql("select n from t") == [(1,)])
        own_pg.kill9()
        own_pg.start()
        proxy.cut()
        done = running.wait_all(60)
    assert done.code == expected, done
    assert own_db.sql("select n from t") == [(1,)]
    if expected == 0:
        assert done.out.split() == ["word", "row"]
    else:
        assert done.out == "" and re.search(r"error: transaction \d+ may or may not", done.err)


def test_nul_in_a_value_cuts_nothing(holdfast, tmp_path):
    command = holdfast.at(f"local:{tmp_path / 'state'}")
    sql = "select 'ab' || char(0) || 'cd' as a, 'x' as b"
    assert json.loads(command("tx", "look", "--json", "-c", sql).out) == [{"a": "ab\0cd", "b": "x"}]
    assert "ab␀cd" in command("tx", "look", "-c", sql).out


def test_script_on_the_local_store_is_read_as_sqlite(holdfast, tmp_path):
    done = holdfast.at(f"local:{tmp_path / 'state'}")("tx", "look", "--json", "-c", """
        create table `a;b` ([c;d] integer);
        create table log (n integer);
        create trigger t after insert on `a;b` begin
            insert into log values (new.[c;d]);
            insert into log select case when 1 then 2 end;
        end;
        insert into `a;b` values (1);
        select n from log order by n""")
    assert done.code == 0, done
    assert [row["n"] for row in json.loads(done.out)] == ["1", "2"]
