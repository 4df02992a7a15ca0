/* Transactions of the local store through their vtable: one attempt each, no retry loop. */
#include "local_tx_support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- statements and rows --------------------------------------------------------------------- */

static void test_what_is_committed_is_there_and_what_is_closed_is_not(void **state)
{
    hf__attempt *attempt = begin(&writing);

    (void)state;
    must(attempt, "UPDATE account SET balance = 1");
    assert_true(attempt->started);
    finish(attempt);
    assert_int_equal(number("SELECT sum(balance) FROM account"), 150);
    run("UPDATE account SET balance = 1");
    assert_int_equal(number("SELECT sum(balance) FROM account"), 2);
}

static void test_an_empty_transaction_commits(void **state)
{
    hf__attempt *attempt = begin(&writing);

    (void)state;
    must_commit(attempt, &writing);
    assert_false(attempt->started);
    finish(attempt);
}

static void test_rows_are_text_with_names_and_nulls(void **state)
{
    hf__attempt *attempt = begin(&reading);
    size_t size = 99;

    (void)state;
    hf_rows *rows =
        ask(attempt, &reading,
            "SELECT id, name, 1.5 AS half, note, '' AS empty FROM account ORDER BY id", false);
    finish(attempt); /* they outlive it */
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
    hf__attempt *attempt = begin(&reading);
    size_t size = 0;

    (void)state;
    hf_rows *rows =
        ask(attempt, &reading, "SELECT -2, 1.5, 'text', x'00ff', NULL, zeroblob(0)", true);
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
    finish(attempt);
}

static void test_many_rows_are_copied_whole(void **state)
{
    hf__attempt *attempt = begin(&reading);
    char wanted[16];

    (void)state;
    hf_rows *rows = ask(attempt, &reading,
                        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < "
                        "9999) SELECT i, 'v' || i FROM n",
                        false);
    assert_int_equal(rows->ops->count(rows), 10000);
    for (size_t i = 0; i < 10000; i++) {
        (void)snprintf(wanted, sizeof wanted, "v%zu", i);
        assert_string_equal(value(rows, i, 1), wanted);
    }
    rows->ops->free(rows);
    finish(attempt);
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
    hf__attempt *attempt = begin(&writing);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_rows *rows = ask(attempt, &writing, cases[i].sql, false);
        assert_int_equal(rows->ops->affected(rows), cases[i].affected);
        assert_int_equal(rows->ops->count(rows), cases[i].count);
        rows->ops->free(rows);
    }
    finish(attempt);
}

static void test_parameters_are_found_by_number_and_may_repeat(void **state)
{
    const hf_value first[] = {
        HF_TEXT("ünï"), HF_TEXT("7"), {.data = "\0\1", .size = 2, .binary = true}};
    const hf_value second[] = {HF_TEXT("8"), {.data = NULL}, {.data = "", .binary = true}};
    const hf_value bounds[] = {HF_TEXT("7"), HF_TEXT("5")};
    hf__attempt *attempt = begin(&writing);
    hf_rows *rows = NULL;

    (void)state;
    must_queue(attempt, "INSERT INTO account (note, name, id, balance) VALUES ($3, $1, $2, $2)", 3,
               first);
    must_queue(attempt, "INSERT INTO account VALUES ($1, $2, $1, $3)", 3, second);
    assert_int_equal(store->ops->attempt->query(
                         attempt, &writing,
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
    finish(attempt);
}

static void test_savepoints_are_free_to_use(void **state)
{
    hf__attempt *attempt = begin(&writing);

    (void)state;
    must(attempt, "SAVEPOINT one");
    must(attempt, "DELETE FROM account");
    must(attempt, "ROLLBACK TO one");
    must(attempt, "DELETE FROM account WHERE id = 1");
    must(attempt, "RELEASE one");
    must_commit(attempt, &writing);
    finish(attempt);
    assert_int_equal(number("SELECT count(*) FROM account"), 1);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void test_queued_statements_run_in_order_before_the_next(void **state)
{
    char text[] = "from the stack";
    const hf_value values[] = {HF_TEXT(text), {.data = "\0", .size = 1, .binary = true}, {0}};
    hf__attempt *attempt = begin(&writing);

    (void)state;
    must_queue(attempt, "CREATE TABLE log (a, b, c)", 0, NULL);
    must_queue(attempt, "INSERT INTO log VALUES ($1, $2, $3)", 3, values);
    assert_false(attempt->started);
    memset(text, 'x', sizeof text - 1);
    hf_rows *rows = ask(attempt, &writing, "SELECT a, hex(b), c FROM log", false);
    assert_string_equal(value(rows, 0, 0), "from the stack");
    assert_string_equal(value(rows, 0, 1), "00");
    assert_null(value(rows, 0, 2));
    rows->ops->free(rows);
    must_queue(attempt, "UPDATE log SET c = 1", 0, NULL);
    must_commit(attempt, &writing);
    finish(attempt);
    assert_int_equal(number("SELECT c FROM log"), 1);
}

static void test_a_queue_alone_is_run_by_commit(void **state)
{
    hf__attempt *attempt = begin(&writing);

    (void)state;
    must_queue(attempt, "DELETE FROM account WHERE id = 1", 0, NULL);
    must_queue(attempt, "DELETE FROM account WHERE id = 2", 0, NULL);
    must_commit(attempt, &writing);
    finish(attempt);
    assert_int_equal(number("SELECT count(*) FROM account"), 0);
}

static void test_a_failure_in_the_queue_is_told_by_number_and_undoes_all(void **state)
{
    hf__attempt *attempt = begin(&writing);
    hf_error err = {0};

    (void)state;
    must_queue(attempt, "DELETE FROM account", 0, NULL);
    must_queue(attempt, "SELECT 1, typo", 0, NULL);
    must_queue(attempt, "SELECT 1", 0, NULL);
    assert_int_equal(store->ops->attempt->commit(attempt, &writing, &err), HF_DATABASE);
    assert_string_equal(err.message, "queued statement 2: no such column: typo");
    assert_string_equal(err.sqlstate, "42703");
    assert_int_equal(err.position, 11);
    finish(attempt);
    assert_int_equal(number("SELECT count(*) FROM account"), 2);
}

/* ---- others ---------------------------------------------------------------------------------- */

/* As it is of no use to wait for one's own thread. */
static void test_a_second_writer_within_the_first_is_told_to_try_again(void **state)
{
    hf__attempt_plan nested = writing;
    nested.is_nested = true;
    hf__attempt *one = begin(&writing);
    hf__attempt *two = begin(&nested);
    hf_error err = {0};

    (void)state;
    must(one, "UPDATE account SET balance = balance + 1");
    assert_int_equal(query(two, &nested, "SELECT 1", &err), HF_DATABASE);
    assert_int_equal(two->fault, HF__FAULT_RETRY);
    assert_string_equal(err.sqlstate, "55P03");
    assert_int_equal(store->ops->attempt->commit(two, &nested, NULL), HF_DATABASE);
    finish(two);
    must_commit(one, &writing);
    finish(one);
    run("UPDATE account SET balance = balance + 1");
    assert_int_equal(number("SELECT sum(balance) FROM account"), 154);
}

/* Not the 200 ms of one that has time: the quickest of some, as the machine may be busy. */
static void test_a_writer_waits_no_longer_than_its_deadline(void **state)
{
    hf__attempt *one = begin(&writing);
    int64_t quickest = INT64_MAX;

    (void)state;
    must(one, "DELETE FROM account");
    for (int i = 0; i < 5; i++) {
        const hf__attempt_plan hurried = {.deadline = hf__now_ms() - 1};
        hf__attempt *two = begin(&hurried);
        int64_t start = hf__now_ms();

        assert_int_equal(query(two, &hurried, "SELECT 1", NULL), HF_DATABASE);
        assert_int_equal(two->fault, HF__FAULT_RETRY);
        int64_t took = hf__now_ms() - start;
        quickest = took < quickest ? took : quickest;
        finish(two);
    }
    assert_true(quickest < 150);
    finish(one);
}

static void test_readers_and_a_writer_do_not_wait_for_each_other(void **state)
{
    hf__attempt *writer = begin(&writing);
    hf__attempt *reader = begin(&reading);

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
        hf__attempt *attempt = NULL;
        hf_rows *rows = NULL;
        char balance[32] = "";
        if (store->ops->attempt->open(store, &writing, &attempt, NULL) != HF_OK)
            return "open";
        hf_status status = store->ops->attempt->query(attempt, &writing,
                                                      "SELECT balance FROM account WHERE id = 1", 0,
                                                      NULL, false, &rows, NULL);
        if (status == HF_OK) {
            (void)snprintf(balance, sizeof balance, "%lld", atoll(value(rows, 0, 0)) + 1);
            rows->ops->free(rows);
            status =
                store->ops->attempt->queue(attempt, "UPDATE account SET balance = $1 WHERE id = 1",
                                           1, &HF_TEXT(balance), NULL);
        }
        if (status == HF_OK)
            status = store->ops->attempt->commit(attempt, &writing, NULL);
        if (status != HF_OK && attempt->fault != HF__FAULT_RETRY)
            return "a failure that does not pass";
        i += status == HF_OK;
        finish(attempt);
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
    hf__attempt *attempt = begin(&writing);

    must(attempt, "UPDATE account SET balance = 1 WHERE id = 1");
    must(attempt, "DELETE FROM account WHERE id = 2");
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
            hf__attempt *attempt = NULL;
            alarm(60);
            store = open_store();
            close(gate[1]);
            (void)!read(gate[0], &byte, 1);
            hf_status status = store->ops->attempt->open(store, &writing, &attempt, NULL);
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
    hf__attempt_fault fault = HF__FAULT_RETRY;
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
    hf__attempt *open[20];

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
    hf__attempt *attempt = NULL;
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
    assert_int_equal(store->ops->attempt->open(store, &writing, &attempt, &err), HF_CONFIG);
    assert_non_null(strstr(err.message, "data.db"));
    assert_null(attempt);
}

static void find_nothing(void *arg, hf_level level, const char *topic, const char *text,
                         const char *remedy)
{
    (void)arg, (void)level, (void)topic, (void)text, (void)remedy;
}

static bool is_of_the_store(int fd)
{
    char name[32], path[256] = "";

    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return readlink(name, path, sizeof path - 1) > 0 && strstr(path, folder) != NULL;
}

/* Descriptor 0 is then the first that any call gets. */
static void use_without_input(int hear, int say)
{
    int from = 0;
    int to = 0;

    (void)hear;
    store = open_store();
    close(STDIN_FILENO);
    hf_status status = store->ops->examine(store, find_nothing, NULL, NULL);
    write_word(say, status == HF_OK && !is_of_the_store(STDIN_FILENO));
    close(STDIN_FILENO);
    status = store->ops->init(store, &from, &to, NULL);
    write_word(say, status == HF_OK && !is_of_the_store(STDIN_FILENO));
    close(STDIN_FILENO);
    run("CREATE TABLE account (id, balance)");
    write_word(say, !is_of_the_store(STDIN_FILENO));
    close_store(store);
}

static void test_a_process_without_standard_input_may_use_the_store(void **state)
{
    int64_t is_well[3];

    (void)state;
    tear_down(NULL);
    peer child = spawn(use_without_input);
    for (int i = 0; i < 3; i++)
        is_well[i] = read_word(child.says);
    int code = reap(child);
    store = open_store();
    for (int i = 0; i < 3; i++)
        assert_int_equal(is_well[i], true);
    assert_int_equal(code, 0);
    assert_int_equal(number("SELECT count(*) FROM account"), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ACCOUNTS_TEST(test_what_is_committed_is_there_and_what_is_closed_is_not),
        ACCOUNTS_TEST(test_an_empty_transaction_commits),
        ACCOUNTS_TEST(test_rows_are_text_with_names_and_nulls),
        ACCOUNTS_TEST(test_binary_rows_have_numbers_in_network_order),
        ACCOUNTS_TEST(test_many_rows_are_copied_whole),
        ACCOUNTS_TEST(test_affected_counts_changed_rows_and_nothing_for_a_definition),
        ACCOUNTS_TEST(test_parameters_are_found_by_number_and_may_repeat),
        ACCOUNTS_TEST(test_savepoints_are_free_to_use),
        ACCOUNTS_TEST(test_queued_statements_run_in_order_before_the_next),
        ACCOUNTS_TEST(test_a_queue_alone_is_run_by_commit),
        ACCOUNTS_TEST(test_a_failure_in_the_queue_is_told_by_number_and_undoes_all),
        ACCOUNTS_TEST(test_a_second_writer_within_the_first_is_told_to_try_again),
        ACCOUNTS_TEST(test_a_writer_waits_no_longer_than_its_deadline),
        ACCOUNTS_TEST(test_readers_and_a_writer_do_not_wait_for_each_other),
        ACCOUNTS_TEST(test_threads_that_read_and_then_write_lose_no_update),
        ACCOUNTS_TEST(test_a_process_killed_between_statements_leaves_nothing),
        ACCOUNTS_TEST(test_what_a_process_committed_before_it_was_killed_stays),
        ACCOUNTS_TEST(test_many_may_create_the_file_at_once),
        ACCOUNTS_TEST(test_what_a_transaction_does_to_its_connection_is_not_seen_by_the_next),
        ACCOUNTS_TEST(test_a_file_that_was_removed_is_not_written_to),
        ACCOUNTS_TEST(test_more_transactions_than_idle_connections),
        ACCOUNTS_TEST(test_what_is_no_database_is_refused),
        ACCOUNTS_TEST(test_a_process_without_standard_input_may_use_the_store),
        ACCOUNTS_TEST(test_a_folder_with_a_strange_name_works),
    };
    return RUN(tests);
}
