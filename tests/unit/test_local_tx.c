/* Transactions of the local store through their vtable: one attempt each, without the retry loop. */
#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/store.h"

static char folder[64];
static hf__backend *store;

static const hf__tx_plan writing = {.deadline = HF__FOREVER};
static const hf__tx_plan reading = {.read_only = true, .deadline = HF__FOREVER};

/* ---- helpers --------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found, (void)kind, (void)at;
    return remove(path);
}

static hf__backend *open_store(void)
{
    char url[96];
    hf__backend *opened = NULL;
    hf_error err = {0};
    hf_store_options options = HF_STORE_OPTIONS_INIT;

    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    options.application = "test";
    if (hf__local_open(&options, &opened, &err) != HF_OK)
        fail_msg("%s", err.message);
    return opened;
}

static hf__tx *begin(const hf__tx_plan *plan)
{
    hf__tx *tx = NULL;
    hf_error err = {0};

    if (store->ops->tx->open(store, plan, &tx, &err) != HF_OK)
        fail_msg("%s", err.message);
    assert_false(tx->started);
    return tx;
}

static void finish(hf__tx *tx)
{
    store->ops->tx->close(tx);
}

static hf_status query(hf__tx *tx, const hf__tx_plan *plan, const char *sql, hf_error *err)
{
    return store->ops->tx->query(tx, plan, sql, 0, NULL, false, NULL, err);
}

static void must(hf__tx *tx, const char *sql)
{
    hf_error err = {0};

    if (query(tx, &writing, sql, &err) != HF_OK)
        fail_msg("%s: %s", sql, err.message);
}

static void must_queue(hf__tx *tx, const char *sql, size_t count, const hf_value *values)
{
    assert_int_equal(store->ops->tx->queue(tx, sql, count, values, NULL), HF_OK);
}

static void must_commit(hf__tx *tx, const hf__tx_plan *plan)
{
    hf_error err = {0};

    if (store->ops->tx->commit(tx, plan, &err) != HF_OK)
        fail_msg("COMMIT: %s", err.message);
}

static void run(const char *sql)
{
    hf__tx *tx = begin(&writing);

    must(tx, sql);
    must_commit(tx, &writing);
    finish(tx);
}

static const char *value(const hf_rows *rows, size_t row, size_t column)
{
    return rows->ops->value(rows, row, column, NULL);
}

static hf_rows *ask(hf__tx *tx, const hf__tx_plan *plan, const char *sql, bool binary)
{
    hf_rows *rows = NULL;
    hf_error err = {0};

    if (store->ops->tx->query(tx, plan, sql, 0, NULL, binary, &rows, &err) != HF_OK)
        fail_msg("%s: %s", sql, err.message);
    return rows;
}

/* The only value of a SELECT, in a transaction of its own. */
static int64_t number(const char *sql)
{
    hf__tx *tx = begin(&reading);
    hf_rows *rows = ask(tx, &reading, sql, false);

    assert_int_equal(rows->ops->count(rows), 1);
    int64_t found = strtoll(value(rows, 0, 0), NULL, 10);
    rows->ops->free(rows);
    finish(tx);
    return found;
}

/* What the statement alone fails with. */
static hf_status failure(const hf__tx_plan *plan, const char *sql, size_t count,
                         const hf_value *values, hf__tx_fault *fault, hf_error *err)
{
    hf__tx *tx = begin(plan);
    hf_status status = store->ops->tx->query(tx, plan, sql, count, values, false, NULL, err);

    *fault = tx->fault;
    finish(tx);
    return status;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hf-local-tx-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    store = open_store();
    run("CREATE TABLE account (id integer PRIMARY KEY, name text UNIQUE,"
        " balance integer NOT NULL CHECK (balance >= 0), note blob)");
    run("INSERT INTO account VALUES (1, 'ann', 100, NULL), (2, 'bob', 50, x'00ff')");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store->ops->close(store);
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A process of its own that is killed when it says so, with whatever it has open. */
static void kill_after(void (*act)(void))
{
    int says[2];
    char byte = 0;

    assert_int_equal(pipe2(says, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        store = open_store();
        act();
        if (write(says[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(says[1]);
    assert_int_equal(read(says[0], &byte, 1), 1);
    close(says[0]);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- statements and rows --------------------------------------------------------------------- */

static void test_what_is_committed_is_there_and_what_is_closed_is_not(void **state)
{
    hf__tx *tx = begin(&writing);

    (void)state;
    must(tx, "UPDATE account SET balance = 1");
    assert_true(tx->started);
    finish(tx);
    assert_int_equal(number("SELECT sum(balance) FROM account"), 150);
    run("UPDATE account SET balance = 1");
    assert_int_equal(number("SELECT sum(balance) FROM account"), 2);
}

static void test_an_empty_transaction_commits(void **state)
{
    hf__tx *tx = begin(&writing);

    (void)state;
    must_commit(tx, &writing);
    assert_false(tx->started);
    finish(tx);
}

static void test_rows_are_text_with_names_and_nulls(void **state)
{
    hf__tx *tx = begin(&reading);
    size_t size = 99;

    (void)state;
    hf_rows *rows =
        ask(tx, &reading,
            "SELECT id, name, 1.5 AS half, note, '' AS empty FROM account ORDER BY id", false);
    finish(tx); /* they outlive it */
    assert_int_equal(rows->ops->count(rows), 2);
    assert_int_equal(rows->ops->columns(rows), 5);
    assert_int_equal(rows->ops->affected(rows), 2);
    assert_string_equal(rows->ops->column(rows, 2), "half");
    assert_null(rows->ops->column(rows, 5));
    assert_string_equal(value(rows, 1, 0), "2");
    assert_string_equal(value(rows, 1, 1), "bob");
    assert_string_equal(value(rows, 1, 2), "1.5");
    assert_null(rows->ops->value(rows, 0, 3, &size));
    assert_int_equal(size, 0);
    assert_memory_equal(rows->ops->value(rows, 1, 3, &size), "\0\xff", 3);
    assert_int_equal(size, 2);
    assert_string_equal(rows->ops->value(rows, 0, 4, &size), "");
    assert_int_equal(size, 0);
    assert_null(value(rows, 2, 0));
    assert_null(value(rows, 0, 5));
    rows->ops->free(rows);
}

static void test_binary_rows_have_numbers_in_network_order(void **state)
{
    hf__tx *tx = begin(&reading);
    size_t size = 0;

    (void)state;
    hf_rows *rows = ask(tx, &reading, "SELECT -2, 1.5, 'text', x'00ff', NULL, zeroblob(0)", true);
    assert_memory_equal(rows->ops->value(rows, 0, 0, &size), "\xff\xff\xff\xff\xff\xff\xff\xfe", 8);
    assert_int_equal(size, 8);
    assert_memory_equal(rows->ops->value(rows, 0, 1, &size), "\x3f\xf8\0\0\0\0\0\0", 8);
    assert_int_equal(size, 8);
    assert_string_equal(rows->ops->value(rows, 0, 2, &size), "text");
    assert_int_equal(size, 4);
    assert_memory_equal(rows->ops->value(rows, 0, 3, &size), "\0\xff", 2);
    assert_int_equal(size, 2);
    assert_null(value(rows, 0, 4));
    assert_non_null(rows->ops->value(rows, 0, 5, &size));
    assert_int_equal(size, 0);
    rows->ops->free(rows);
    finish(tx);
}

static void test_many_rows_are_copied_whole(void **state)
{
    hf__tx *tx = begin(&reading);
    char wanted[16];

    (void)state;
    hf_rows *rows = ask(tx, &reading,
                        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < "
                        "9999) SELECT i, 'v' || i FROM n",
                        false);
    assert_int_equal(rows->ops->count(rows), 10000);
    for (size_t i = 0; i < 10000; i++) {
        (void)snprintf(wanted, sizeof wanted, "v%zu", i);
        assert_string_equal(value(rows, i, 1), wanted);
    }
    rows->ops->free(rows);
    finish(tx);
}

static void test_affected_counts_changed_rows_and_nothing_for_a_definition(void **state)
{
    static const struct {
        const char *sql;
        int64_t affected;
        size_t count;
    } cases[] = {
        {"UPDATE account SET balance = balance + 1", 2, 0},
        {"CREATE TABLE other (a)", 0, 0},
        {"UPDATE account SET balance = 0 WHERE id = 77", 0, 0},
        {"INSERT INTO account VALUES (3, 'cy', 1, NULL) RETURNING id, name", 1, 1},
        {"DELETE FROM account", 3, 0},
        {"SELECT * FROM account", 0, 0},
    };
    hf__tx *tx = begin(&writing);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_rows *rows = ask(tx, &writing, cases[i].sql, false);
        assert_int_equal(rows->ops->affected(rows), cases[i].affected);
        assert_int_equal(rows->ops->count(rows), cases[i].count);
        rows->ops->free(rows);
    }
    finish(tx);
}

static void test_parameters_are_found_by_number_and_may_repeat(void **state)
{
    const hf_value first[] = {
        HF_TEXT("ünï"), HF_TEXT("7"), {.data = "\0\1", .size = 2, .binary = true}};
    const hf_value second[] = {HF_TEXT("8"), {.data = NULL}, {.data = "", .binary = true}};
    const hf_value bounds[] = {HF_TEXT("7"), HF_TEXT("5")};
    hf__tx *tx = begin(&writing);
    hf_rows *rows = NULL;

    (void)state;
    must_queue(tx, "INSERT INTO account (note, name, id, balance) VALUES ($3, $1, $2, $2)", 3,
               first);
    must_queue(tx, "INSERT INTO account VALUES ($1, $2, $1, $3)", 3, second);
    assert_int_equal(
        store->ops->tx->query(tx, &writing,
                              "SELECT typeof(id), typeof(balance), name, hex(note), typeof(note) "
                              "FROM account WHERE id >= $1 ORDER BY id LIMIT $2",
                              2, bounds, false, &rows, NULL),
        HF_OK);
    assert_int_equal(rows->ops->count(rows), 2);
    assert_string_equal(value(rows, 0, 0), "integer");
    assert_string_equal(value(rows, 0, 1), "integer");
    assert_string_equal(value(rows, 0, 2), "ünï");
    assert_string_equal(value(rows, 0, 3), "0001");
    assert_null(value(rows, 1, 2));
    assert_string_equal(value(rows, 1, 4), "blob");
    rows->ops->free(rows);
    finish(tx);
}

static void test_what_is_no_single_statement_with_its_parameters_is_invalid(void **state)
{
    const hf_value values[] = {HF_TEXT("1"), HF_TEXT("2")};
    static const struct {
        const char *sql;
        size_t count;
        const char *said;
    } cases[] = {
        {"SELECT $1, $2", 1, "uses $2 and got 1"},
        {"SELECT $1", 0, "uses $1 and got 0"},
        {"SELECT $1", 2, "does not use $2"},
        {"SELECT $2", 2, "does not use $1"},
        {"SELECT 1", 1, "does not use $1"},
        {"SELECT $1, $3", 2, "does not use $2"},
        {"SELECT ?", 1, "does not use $1"},
        {"SELECT $1, ?", 1, "'?' is no parameter"},
        {"SELECT $1, :name", 1, "':name' is no parameter"},
        {"SELECT $1::int", 0, "'$1::int' is no parameter"},
        {"SELECT 1; SELECT 2", 0, "more than one statement"},
        {"SELECT 1; /* x */ nonsense", 0, "more than one statement"},
        {"DELETE FROM account; PRAGMA foreign_keys = OFF", 0, "more than one statement"},
        {"", 0, "empty"},
        {" -- nothing\n;", 0, "empty"},
    };
    hf__tx_fault fault = HF__TX_RETRY;
    hf_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(failure(&writing, cases[i].sql, cases[i].count, values, &fault, &err),
                         HF_INVALID);
        assert_int_equal(fault, HF__TX_FINAL);
        if (strstr(err.message, cases[i].said) == NULL)
            fail_msg("%s: %s", cases[i].sql, err.message);
    }
    assert_int_equal(failure(&writing, "SELECT 1 ; \t\r\n;-- no /* more\n/* ; x */ /* open", 0,
                             NULL, &fault, &err),
                     HF_OK);
    assert_int_equal(number("SELECT count(*) FROM account"), 2);
}

static void test_what_would_end_the_transaction_is_refused_before_it_does(void **state)
{
    static const char *const refused[] = {
        "COMMIT",
        "END",
        "ROLLBACK",
        "BEGIN",
        "BEGIN IMMEDIATE",
        "ATTACH 'x.db' AS x",
        "commit",
        "DETACH main",
        "PRAGMA query_only = OFF",
    };
    hf_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        hf__tx *tx = begin(&writing);
        must(tx, "DELETE FROM account");
        assert_int_equal(query(tx, &writing, refused[i], &err), HF_INVALID);
        assert_non_null(strstr(err.message, "refused"));
        assert_int_equal(tx->fault, HF__TX_FINAL);
        assert_int_equal(store->ops->tx->commit(tx, &writing, NULL), HF_INVALID);
        finish(tx);
        assert_int_equal(number("SELECT count(*) FROM account"), 2);
    }
}

static void test_savepoints_are_free_to_use(void **state)
{
    hf__tx *tx = begin(&writing);

    (void)state;
    must(tx, "SAVEPOINT one");
    must(tx, "DELETE FROM account");
    must(tx, "ROLLBACK TO one");
    must(tx, "DELETE FROM account WHERE id = 1");
    must(tx, "RELEASE one");
    must_commit(tx, &writing);
    finish(tx);
    assert_int_equal(number("SELECT count(*) FROM account"), 1);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void test_failures_have_the_codes_that_postgresql_gives(void **state)
{
    static const struct {
        const char *sql;
        const char *sqlstate;
        hf__tx_fault fault;
        int position;
    } cases[] = {
        {"SELECT 'ünï', FORM", "42703", HF__TX_FINAL, 15},
        {"SELECT 'ünï' FORM account x y", "42601", HF__TX_FINAL, 19},
        {"SELEC 1", "42601", HF__TX_FINAL, 1},
        {"SELECT \"typo\"", "42703", HF__TX_FINAL, 8},
        {"SELECT (1", "42601", HF__TX_FINAL, 0},
        {"SELECT 1 FROM nowhere", "42P01", HF__TX_FINAL, 0},
        {"SELECT missing(1)", "42883", HF__TX_FINAL, 8},
        {"CREATE TABLE account (a)", "42P07", HF__TX_FINAL, 14},
        {"INSERT INTO account VALUES (1, 'cy', 1, NULL)", "23505", HF__TX_UNIQUE, 0},
        {"INSERT INTO account VALUES (3, 'ann', 1, NULL)", "23505", HF__TX_UNIQUE, 0},
        {"INSERT INTO account VALUES (3, 'cy', NULL, NULL)", "23502", HF__TX_FINAL, 0},
        {"UPDATE account SET balance = balance - 51", "23514", HF__TX_FINAL, 0},
        {"INSERT OR ROLLBACK INTO account VALUES (1, 'cy', 1, NULL)", "23505", HF__TX_UNIQUE, 0},
        {"UPDATE account SET id = 'x' WHERE id = 1", "22P02", HF__TX_FINAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf__tx_fault fault = HF__TX_LOCKED;
        hf_error err = {.position = 99};
        assert_int_equal(failure(&writing, cases[i].sql, 0, NULL, &fault, &err), HF_DATABASE);
        if (strcmp(err.sqlstate, cases[i].sqlstate) != 0 || fault != cases[i].fault ||
            err.position != cases[i].position)
            fail_msg("%s: %s fault %d position %d: %s", cases[i].sql, err.sqlstate, (int)fault,
                     err.position, err.message);
    }
}

static void test_after_a_failure_every_call_returns_it_again(void **state)
{
    hf__tx *tx = begin(&writing);
    hf_error first = {0};
    hf_error again = {0};

    (void)state;
    must(tx, "DELETE FROM account WHERE id = 1");
    assert_int_equal(query(tx, &writing, "INSERT INTO account VALUES (2, 'x', 1, NULL)", &first),
                     HF_DATABASE);
    assert_int_equal(query(tx, &writing, "SELECT 1", &again), HF_DATABASE);
    assert_string_equal(again.message, first.message);
    assert_int_equal(store->ops->tx->queue(tx, "SELECT 1", 0, NULL, NULL), HF_DATABASE);
    tx->fault = HF__TX_FINAL; /* as after a callback that kept the failure to itself */
    assert_int_equal(store->ops->tx->commit(tx, &writing, &again), HF_DATABASE);
    assert_string_equal(again.sqlstate, "23505");
    assert_int_equal(tx->fault, HF__TX_UNIQUE);
    assert_int_equal(store->ops->tx->settle(tx, &writing, &again), HF__TX_NOT_COMMITTED);
    finish(tx);
    assert_int_equal(number("SELECT count(*) FROM account"), 2);
}

static void test_a_violation_that_commit_finds_rolls_back(void **state)
{
    hf__tx *tx = begin(&writing);
    hf_error err = {0};

    (void)state;
    must(tx, "CREATE TABLE item (owner REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED)");
    must(tx, "INSERT INTO item VALUES (77)");
    assert_int_equal(store->ops->tx->commit(tx, &writing, &err), HF_DATABASE);
    assert_string_equal(err.sqlstate, "23503");
    assert_int_equal(tx->fault, HF__TX_FINAL);
    finish(tx);
    assert_int_equal(number("SELECT count(*) FROM sqlite_schema WHERE name = 'item'"), 0);
}

static void test_a_read_only_transaction_writes_nothing(void **state)
{
    hf__tx_fault fault = HF__TX_RETRY;
    hf_error err = {0};

    (void)state;
    assert_int_equal(failure(&reading, "DELETE FROM account", 0, NULL, &fault, &err), HF_DATABASE);
    assert_string_equal(err.sqlstate, "25006");
    assert_int_equal(fault, HF__TX_FINAL);
    assert_int_equal(number("SELECT count(*) FROM account"), 2);
    run("DELETE FROM account"); /* on the same connection */
    assert_int_equal(number("SELECT count(*) FROM account"), 0);
}

static void test_there_is_no_postgresql_connection_and_the_attempt_goes_on(void **state)
{
    hf__tx *tx = begin(&writing);
    hf_error err = {0};

    (void)state;
    assert_null(store->ops->tx->connection(tx, &writing, &err));
    assert_int_equal(err.code, HF_INVALID);
    assert_string_equal(err.message, "the local store has no PostgreSQL connection");
    must(tx, "DELETE FROM account");
    must_commit(tx, &writing);
    finish(tx);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void test_queued_statements_run_in_order_before_the_next(void **state)
{
    char text[] = "from the stack";
    const hf_value values[] = {HF_TEXT(text), {.data = "\0", .size = 1, .binary = true}, {0}};
    hf__tx *tx = begin(&writing);

    (void)state;
    must_queue(tx, "CREATE TABLE log (a, b, c)", 0, NULL);
    must_queue(tx, "INSERT INTO log VALUES ($1, $2, $3)", 3, values);
    assert_false(tx->started);
    memset(text, 'x', sizeof text - 1);
    hf_rows *rows = ask(tx, &writing, "SELECT a, hex(b), c FROM log", false);
    assert_string_equal(value(rows, 0, 0), "from the stack");
    assert_string_equal(value(rows, 0, 1), "00");
    assert_null(value(rows, 0, 2));
    rows->ops->free(rows);
    must_queue(tx, "UPDATE log SET c = 1", 0, NULL);
    must_commit(tx, &writing);
    finish(tx);
    assert_int_equal(number("SELECT c FROM log"), 1);
}

static void test_a_queue_alone_is_run_by_commit(void **state)
{
    hf__tx *tx = begin(&writing);

    (void)state;
    must_queue(tx, "DELETE FROM account WHERE id = 1", 0, NULL);
    must_queue(tx, "DELETE FROM account WHERE id = 2", 0, NULL);
    must_commit(tx, &writing);
    finish(tx);
    assert_int_equal(number("SELECT count(*) FROM account"), 0);
}

static void test_a_failure_in_the_queue_is_told_by_number_and_undoes_all(void **state)
{
    hf__tx *tx = begin(&writing);
    hf_error err = {0};

    (void)state;
    must_queue(tx, "DELETE FROM account", 0, NULL);
    must_queue(tx, "SELECT 1, typo", 0, NULL);
    must_queue(tx, "SELECT 1", 0, NULL);
    assert_int_equal(store->ops->tx->commit(tx, &writing, &err), HF_DATABASE);
    assert_string_equal(err.message, "queued statement 2: no such column: typo");
    assert_string_equal(err.sqlstate, "42703");
    assert_int_equal(err.position, 11);
    finish(tx);
    assert_int_equal(number("SELECT count(*) FROM account"), 2);
}

/* ---- others ---------------------------------------------------------------------------------- */

static void test_a_second_writer_is_told_to_try_again(void **state)
{
    hf__tx *one = begin(&writing);
    hf__tx *two = begin(&writing);
    hf_error err = {0};

    (void)state;
    must(one, "UPDATE account SET balance = balance + 1");
    assert_int_equal(query(two, &writing, "SELECT 1", &err), HF_DATABASE);
    assert_int_equal(two->fault, HF__TX_RETRY);
    assert_string_equal(err.sqlstate, "55P03");
    assert_int_equal(store->ops->tx->commit(two, &writing, NULL), HF_DATABASE);
    finish(two);
    must_commit(one, &writing);
    finish(one);
    run("UPDATE account SET balance = balance + 1");
    assert_int_equal(number("SELECT sum(balance) FROM account"), 154);
}

static void test_a_writer_waits_no_longer_than_its_deadline(void **state)
{
    hf__tx *one = begin(&writing);
    const hf__tx_plan hurried = {.deadline = hf__now_ms() - 1};
    hf__tx *two = begin(&hurried);
    int64_t start = hf__now_ms();

    (void)state;
    must(one, "DELETE FROM account");
    assert_int_equal(query(two, &hurried, "SELECT 1", NULL), HF_DATABASE);
    assert_int_equal(two->fault, HF__TX_RETRY);
    assert_true(hf__now_ms() - start < 150);
    finish(two);
    finish(one);
}

static void test_readers_and_a_writer_do_not_wait_for_each_other(void **state)
{
    hf__tx *writer = begin(&writing);
    hf__tx *reader = begin(&reading);

    (void)state;
    must(writer, "DELETE FROM account");
    hf_rows *rows = ask(reader, &reading, "SELECT count(*) FROM account", false);
    assert_string_equal(value(rows, 0, 0), "2");
    rows->ops->free(rows);
    must_commit(writer, &writing);
    finish(writer);
    rows = ask(reader, &reading, "SELECT count(*) FROM account", false); /* one snapshot */
    assert_string_equal(value(rows, 0, 0), "2");
    rows->ops->free(rows);
    must_commit(reader, &reading);
    finish(reader);
}

enum { WORKERS = 8, ROUNDS = 40 };

static void *add_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS;) {
        hf__tx *tx = NULL;
        hf_rows *rows = NULL;
        char balance[32] = "";
        if (store->ops->tx->open(store, &writing, &tx, NULL) != HF_OK)
            return "open";
        hf_status status = store->ops->tx->query(
            tx, &writing, "SELECT balance FROM account WHERE id = 1", 0, NULL, false, &rows, NULL);
        if (status == HF_OK) {
            (void)snprintf(balance, sizeof balance, "%lld", atoll(value(rows, 0, 0)) + 1);
            rows->ops->free(rows);
            status = store->ops->tx->queue(tx, "UPDATE account SET balance = $1 WHERE id = 1", 1,
                                           &HF_TEXT(balance), NULL);
        }
        if (status == HF_OK)
            status = store->ops->tx->commit(tx, &writing, NULL);
        if (status != HF_OK && tx->fault != HF__TX_RETRY)
            return "a failure that does not pass";
        i += status == HF_OK;
        finish(tx);
    }
    return NULL;
}

static void test_threads_that_read_and_then_write_lose_no_update(void **state)
{
    pthread_t threads[WORKERS];
    void *said = NULL;

    (void)state;
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_often, NULL), 0);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], &said), 0);
        assert_null(said);
    }
    assert_int_equal(number("SELECT balance FROM account WHERE id = 1"), 100 + WORKERS * ROUNDS);
}

static void write_and_stop(void)
{
    hf__tx *tx = begin(&writing);

    must(tx, "UPDATE account SET balance = 1 WHERE id = 1");
    must(tx, "DELETE FROM account WHERE id = 2");
}

static void test_a_process_killed_between_statements_leaves_nothing(void **state)
{
    (void)state;
    kill_after(write_and_stop);
    assert_int_equal(number("SELECT sum(balance) FROM account"), 150);
    run("UPDATE account SET balance = balance + 1"); /* nothing is held either */
    assert_int_equal(number("SELECT sum(balance) FROM account"), 152);
}

static void commit_and_stop(void)
{
    run("UPDATE account SET balance = 7");
}

static void test_what_a_process_committed_before_it_was_killed_stays(void **state)
{
    (void)state;
    kill_after(commit_and_stop);
    assert_int_equal(number("SELECT sum(balance) FROM account"), 14);
}

static void test_many_may_create_the_file_at_once(void **state)
{
    enum { MANY = 8 };
    pid_t pids[MANY];
    int gate[2];
    char path[96];
    char byte = 0;
    struct stat found;

    (void)state;
    tear_down(NULL);
    (void)mkdir(folder, 0755);
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            hf__tx *tx = NULL;
            alarm(60);
            store = open_store();
            close(gate[1]);
            (void)!read(gate[0], &byte, 1);
            hf_status status = store->ops->tx->open(store, &writing, &tx, NULL);
            _exit(status == HF_OK ? 0 : 1);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < MANY; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    (void)snprintf(path, sizeof path, "%s/data.db", folder);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    store = open_store();
}

/* ---- connections ----------------------------------------------------------------------------- */

static void test_what_a_transaction_does_to_its_connection_is_not_seen_by_the_next(void **state)
{
    hf__tx_fault fault = HF__TX_RETRY;
    hf_error err = {0};

    (void)state;
    run("CREATE TEMP TABLE mine (a)");
    assert_int_equal(failure(&writing, "SELECT * FROM mine", 0, NULL, &fault, &err), HF_DATABASE);
    assert_string_equal(err.sqlstate, "42P01");
    run("PRAGMA case_sensitive_like = ON");
    assert_int_equal(number("SELECT 'A' LIKE 'a'"), 1);
}

static void test_a_file_that_was_removed_is_not_written_to(void **state)
{
    char path[96];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/data.db", folder);
    assert_int_equal(unlink(path), 0);
    strcat(path, "-wal");
    (void)unlink(path);
    strcpy(path + strlen(path) - 4, "-shm");
    (void)unlink(path);
    run("CREATE TABLE fresh (a)");
    assert_int_equal(number("SELECT count(*) FROM sqlite_schema"), 1);
}

static void test_more_transactions_than_idle_connections(void **state)
{
    hf__tx *open[20];

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 20; i++) {
            open[i] = begin(&reading);
            hf_rows *rows = ask(open[i], &reading, "SELECT count(*) FROM account", false);
            rows->ops->free(rows);
        }
        for (size_t i = 0; i < 20; i++)
            finish(open[i]);
    }
}

static void test_what_is_no_database_is_refused(void **state)
{
    char path[96];
    hf__tx *tx = NULL;
    hf_error err = {0};

    (void)state;
    tear_down(NULL);
    (void)mkdir(folder, 0700);
    (void)snprintf(path, sizeof path, "%s/data.db", folder);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 200; i++)
        (void)fputs("this is no database\n", file);
    (void)fclose(file);
    store = open_store();
    assert_int_equal(store->ops->tx->open(store, &writing, &tx, &err), HF_CONFIG);
    assert_non_null(strstr(err.message, "data.db"));
    assert_null(tx);
}

static void test_a_folder_with_a_strange_name_works(void **state)
{
    char path[96];
    struct stat found;

    (void)state;
    tear_down(NULL);
    strcat(folder, "?a=%41#ü b&");
    store = open_store();
    run("CREATE TABLE account (id, balance)");
    (void)snprintf(path, sizeof path, "%s/data.db", folder);
    assert_int_equal(stat(path, &found), 0);
}

/* ---- a disk that does not sync: a VFS over the system's -------------------------------------- */

static int (*real_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static sqlite3_io_methods log_methods;
static int (*real_sync)(sqlite3_file *, int);
static int syncs_to_fail;

static int bad_sync(sqlite3_file *file, int flags)
{
    if (syncs_to_fail > 0) {
        syncs_to_fail--;
        return SQLITE_IOERR_FSYNC;
    }
    return real_sync(file, flags);
}

static int bad_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int code = real_open(vfs, name, file, flags, out);

    if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0) {
        log_methods = *file->pMethods;
        real_sync = log_methods.xSync;
        log_methods.xSync = bad_sync;
        file->pMethods = &log_methods;
    }
    return code;
}

/* Only in a child: the parent's SQLite stays as it is. */
static hf__tx *commit_without_sync(int failing)
{
    static sqlite3_vfs bad;

    bad = *sqlite3_vfs_find(NULL);
    real_open = bad.xOpen;
    bad.zName = "bad";
    bad.xOpen = bad_open;
    sqlite3_vfs_register(&bad, 1);
    run("UPDATE account SET balance = 60"); /* so that the log is there */
    syncs_to_fail = 0;
    hf__tx *tx = begin(&writing);
    must(tx, "UPDATE account SET balance = 70");
    syncs_to_fail = failing;
    if (store->ops->tx->commit(tx, &writing, NULL) != HF_UNREACHABLE || tx->fault != HF__TX_BROKEN)
        _exit(2);
    return tx;
}

static void fail_one_sync(void)
{
    hf__tx *tx = commit_without_sync(1);

    if (store->ops->tx->settle(tx, &writing, NULL) != HF__TX_NOT_COMMITTED)
        _exit(3);
}

static void fail_all_syncs(void)
{
    hf__tx *tx = commit_without_sync(1000);
    hf_error err = {0};

    if (store->ops->tx->settle(tx, &writing, &err) != HF__TX_IN_DOUBT || err.code != HF_IN_DOUBT)
        _exit(3);
}

static void test_a_commit_that_was_not_synced_is_undone_for_good_once_settled(void **state)
{
    (void)state;
    store->ops->close(store);
    kill_after(fail_one_sync);
    store = open_store();
    assert_int_equal(number("SELECT sum(balance) FROM account"), 120);
}

static void test_a_commit_on_a_disk_that_never_syncs_is_in_doubt(void **state)
{
    (void)state;
    store->ops->close(store);
    kill_after(fail_all_syncs);
    store = open_store();
    int64_t sum = number("SELECT sum(balance) FROM account");
    assert_true(sum == 120 || sum == 140);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_committed_is_there_and_what_is_closed_is_not),
        TEST(test_an_empty_transaction_commits),
        TEST(test_rows_are_text_with_names_and_nulls),
        TEST(test_binary_rows_have_numbers_in_network_order),
        TEST(test_many_rows_are_copied_whole),
        TEST(test_affected_counts_changed_rows_and_nothing_for_a_definition),
        TEST(test_parameters_are_found_by_number_and_may_repeat),
        TEST(test_what_is_no_single_statement_with_its_parameters_is_invalid),
        TEST(test_what_would_end_the_transaction_is_refused_before_it_does),
        TEST(test_savepoints_are_free_to_use),
        TEST(test_failures_have_the_codes_that_postgresql_gives),
        TEST(test_after_a_failure_every_call_returns_it_again),
        TEST(test_a_violation_that_commit_finds_rolls_back),
        TEST(test_a_read_only_transaction_writes_nothing),
        TEST(test_there_is_no_postgresql_connection_and_the_attempt_goes_on),
        TEST(test_queued_statements_run_in_order_before_the_next),
        TEST(test_a_queue_alone_is_run_by_commit),
        TEST(test_a_failure_in_the_queue_is_told_by_number_and_undoes_all),
        TEST(test_a_second_writer_is_told_to_try_again),
        TEST(test_a_writer_waits_no_longer_than_its_deadline),
        TEST(test_readers_and_a_writer_do_not_wait_for_each_other),
        TEST(test_threads_that_read_and_then_write_lose_no_update),
        TEST(test_a_process_killed_between_statements_leaves_nothing),
        TEST(test_what_a_process_committed_before_it_was_killed_stays),
        TEST(test_many_may_create_the_file_at_once),
        TEST(test_what_a_transaction_does_to_its_connection_is_not_seen_by_the_next),
        TEST(test_a_file_that_was_removed_is_not_written_to),
        TEST(test_more_transactions_than_idle_connections),
        TEST(test_what_is_no_database_is_refused),
        TEST(test_a_folder_with_a_strange_name_works),
        TEST(test_a_commit_that_was_not_synced_is_undone_for_good_once_settled),
        TEST(test_a_commit_on_a_disk_that_never_syncs_is_in_doubt),
    };
    return RUN(tests);
}
