/* Transactions of the local store that are refused or fail, through their vtable. */
#include "local_tx_support.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

/* ---- refusals -------------------------------------------------------------------------------- */

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
    hf__attempt_fault fault = HF__FAULT_RETRY;
    hf_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(failure(&writing, cases[i].sql, cases[i].count, values, &fault, &err),
                         HF_INVALID);
        assert_int_equal(fault, HF__FAULT_FINAL);
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
        hf__attempt *attempt = begin(&writing);
        must(attempt, "DELETE FROM account");
        assert_int_equal(query(attempt, &writing, refused[i], &err), HF_INVALID);
        assert_non_null(strstr(err.message, "refused"));
        assert_int_equal(attempt->fault, HF__FAULT_FINAL);
        assert_int_equal(store->ops->attempt->commit(attempt, &writing, NULL), HF_INVALID);
        finish(attempt);
        assert_int_equal(number("SELECT count(*) FROM account"), 2);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

static void test_failures_have_the_codes_that_postgresql_gives(void **state)
{
    static const struct {
        const char *sql;
        const char *sqlstate;
        hf__attempt_fault fault;
        int position;
    } cases[] = {
        {"SELECT 'ünï', FORM", "42703", HF__FAULT_FINAL, 15},
        {"SELECT 'ünï' FORM account x y", "42601", HF__FAULT_FINAL, 19},
        {"SELEC 1", "42601", HF__FAULT_FINAL, 1},
        {"SELECT \"typo\"", "42703", HF__FAULT_FINAL, 8},
        {"SELECT (1", "42601", HF__FAULT_FINAL, 0},
        {"SELECT 1 FROM nowhere", "42P01", HF__FAULT_FINAL, 0},
        {"SELECT missing(1)", "42883", HF__FAULT_FINAL, 8},
        {"CREATE TABLE account (a)", "42P07", HF__FAULT_FINAL, 14},
        {"INSERT INTO account VALUES (1, 'cy', 1, NULL)", "23505", HF__FAULT_UNIQUE, 0},
        {"INSERT INTO account VALUES (3, 'ann', 1, NULL)", "23505", HF__FAULT_UNIQUE, 0},
        {"INSERT INTO account VALUES (3, 'cy', NULL, NULL)", "23502", HF__FAULT_FINAL, 0},
        {"UPDATE account SET balance = balance - 51", "23514", HF__FAULT_FINAL, 0},
        {"INSERT OR ROLLBACK INTO account VALUES (1, 'cy', 1, NULL)", "23505", HF__FAULT_UNIQUE, 0},
        {"UPDATE account SET id = 'x' WHERE id = 1", "22P02", HF__FAULT_FINAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf__attempt_fault fault = HF__FAULT_LOCKED;
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
    hf__attempt *attempt = begin(&writing);
    hf_error first = {0};
    hf_error again = {0};

    (void)state;
    must(attempt, "DELETE FROM account WHERE id = 1");
    assert_int_equal(
        query(attempt, &writing, "INSERT INTO account VALUES (2, 'x', 1, NULL)", &first),
        HF_DATABASE);
    assert_int_equal(query(attempt, &writing, "SELECT 1", &again), HF_DATABASE);
    assert_string_equal(again.message, first.message);
    assert_int_equal(store->ops->attempt->queue(attempt, "SELECT 1", 0, NULL, NULL), HF_DATABASE);
    attempt->fault = HF__FAULT_FINAL; /* as after a callback that kept the failure to itself */
    assert_int_equal(store->ops->attempt->commit(attempt, &writing, &again), HF_DATABASE);
    assert_string_equal(again.sqlstate, "23505");
    assert_int_equal(attempt->fault, HF__FAULT_UNIQUE);
    assert_int_equal(store->ops->attempt->outcome(attempt, &writing, &again),
                     HF__OUTCOME_NOT_COMMITTED);
    finish(attempt);
    assert_int_equal(number("SELECT count(*) FROM account"), 2);
}

static void test_a_violation_that_commit_finds_rolls_back(void **state)
{
    hf__attempt *attempt = begin(&writing);
    hf_error err = {0};

    (void)state;
    must(attempt,
         "CREATE TABLE item (owner REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED)");
    must(attempt, "INSERT INTO item VALUES (77)");
    assert_int_equal(store->ops->attempt->commit(attempt, &writing, &err), HF_DATABASE);
    assert_string_equal(err.sqlstate, "23503");
    assert_int_equal(attempt->fault, HF__FAULT_FINAL);
    finish(attempt);
    assert_int_equal(number("SELECT count(*) FROM sqlite_schema WHERE name = 'item'"), 0);
}

static void test_a_read_only_transaction_writes_nothing(void **state)
{
    hf__attempt_fault fault = HF__FAULT_RETRY;
    hf_error err = {0};

    (void)state;
    assert_int_equal(failure(&reading, "DELETE FROM account", 0, NULL, &fault, &err), HF_DATABASE);
    assert_string_equal(err.sqlstate, "25006");
    assert_int_equal(fault, HF__FAULT_FINAL);
    assert_int_equal(number("SELECT count(*) FROM account"), 2);
    run("DELETE FROM account"); /* on the same connection */
    assert_int_equal(number("SELECT count(*) FROM account"), 0);
}

static void test_there_is_no_postgresql_connection_and_the_attempt_goes_on(void **state)
{
    hf__attempt *attempt = begin(&writing);
    hf_error err = {0};

    (void)state;
    assert_null(store->ops->attempt->connection(attempt, &writing, &err));
    assert_int_equal(err.code, HF_INVALID);
    assert_string_equal(err.message, "the local store has no PostgreSQL connection");
    must(attempt, "DELETE FROM account");
    must_commit(attempt, &writing);
    finish(attempt);
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
static hf__attempt *commit_without_sync(int failing)
{
    static sqlite3_vfs bad;

    bad = *sqlite3_vfs_find(NULL);
    real_open = bad.xOpen;
    bad.zName = "bad";
    bad.xOpen = bad_open;
    sqlite3_vfs_register(&bad, 1);
    run("UPDATE account SET balance = 60"); /* so that the log is there */
    syncs_to_fail = 0;
    hf__attempt *attempt = begin(&writing);
    must(attempt, "UPDATE account SET balance = 70");
    syncs_to_fail = failing;
    if (store->ops->attempt->commit(attempt, &writing, NULL) != HF_UNREACHABLE ||
        attempt->fault != HF__FAULT_BROKEN)
        _exit(2);
    return attempt;
}

static void fail_one_sync(void)
{
    hf__attempt *attempt = commit_without_sync(1);

    if (store->ops->attempt->outcome(attempt, &writing, NULL) != HF__OUTCOME_NOT_COMMITTED)
        _exit(3);
}

static void fail_all_syncs(void)
{
    hf__attempt *attempt = commit_without_sync(1000);
    hf_error err = {0};

    if (store->ops->attempt->outcome(attempt, &writing, &err) != HF__OUTCOME_IN_DOUBT ||
        err.code != HF_IN_DOUBT)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ACCOUNTS_TEST(test_what_is_no_single_statement_with_its_parameters_is_invalid),
        ACCOUNTS_TEST(test_what_would_end_the_transaction_is_refused_before_it_does),
        ACCOUNTS_TEST(test_failures_have_the_codes_that_postgresql_gives),
        ACCOUNTS_TEST(test_after_a_failure_every_call_returns_it_again),
        ACCOUNTS_TEST(test_a_violation_that_commit_finds_rolls_back),
        ACCOUNTS_TEST(test_a_read_only_transaction_writes_nothing),
        ACCOUNTS_TEST(test_there_is_no_postgresql_connection_and_the_attempt_goes_on),
        ACCOUNTS_TEST(test_a_commit_that_was_not_synced_is_undone_for_good_once_settled),
        ACCOUNTS_TEST(test_a_commit_on_a_disk_that_never_syncs_is_in_doubt),
    };
    return RUN(tests);
}
