/* Tables of a network that others have made and filled: what is no number or no range is told. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "folder.h"
#include "lib/ledgers/ledgers.h"

static hf_store *store;
static hf_network *network;
static hf_error err;

static hf_status run_sql(hf_tx *tx, void *arg, hf_error *why)
{
    hf_status status = HF_OK;
    for (const char *const *sql = arg; status == HF_OK && *sql; sql++)
        status = hf_tx_query(tx, *sql, 0, NULL, false, NULL, why);
    return status;
}

#define EXECUTE(...) execute((const char *[]){__VA_ARGS__, NULL})

static void execute(const char *const *statements)
{
    if (hf__network_transact(network, run_sql, (void *)(uintptr_t)statements, &err) != HF_OK)
        fail_msg("%s", err.message);
}

/* Tables without rules, as an older program may have left them: columns take anything. */
static int set_up(void **state)
{
    char url[128];
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_network_options of_network = HF_NETWORK_OPTIONS_INIT;
    if (make_folder(state) != 0)
        return -1;
    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    of_network.name = "old";
    err = (hf_error){0};
    if (hf_store_open(&options, &store, &err) != HF_OK ||
        hf_network_open(store, &of_network, &network, &err) != HF_OK)
        fail_msg("%s", err.message);
    EXECUTE("CREATE TABLE ingest_store (key, value)",
            "CREATE TABLE ingest_coverage (lo INTEGER, hi INTEGER)",
            "CREATE TABLE ledgers (sequence INTEGER, hash, previous_hash, closed_at,"
            " transaction_count INTEGER)",
            "CREATE TABLE transactions (to_id INTEGER, ledger_number, application_order, hash, "
            "status, fee,"
            " closed_at, body)",
            "CREATE TABLE ingest_quarantine (sequence, reason, source, line, at)");
    return 0;
}

static int tear_down(void **state)
{
    hf_network_free(network);
    hf_store_close(store);
    return drop_folder(state);
}

/* ---- coverage -------------------------------------------------------------------------------- */

static hf_status read_all(hf_tx *tx, void *arg, hf_error *why)
{
    hf__ranges ranges = {0};
    (void)arg;
    hf_status status = hf__coverage_read(tx, network, 0, 100, &ranges, why);
    hf__ranges_free(&ranges);
    return status;
}

static hf_status read_last(hf_tx *tx, void *arg, hf_error *why)
{
    bool found = false;
    hf_range last = {0};
    int64_t row_from = 0;
    (void)arg;
    return hf__coverage_last(tx, network, &found, &last, &row_from, why);
}

static hf_status add_some(hf_tx *tx, void *arg, hf_error *why)
{
    (void)arg;
    return hf__coverage_add(tx, network, 0, 50, why);
}

static void check_refused(const char *row, const char *message)
{
    hf_tx_fn *const calls[] = {read_all, read_last, add_some};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        EXECUTE("DELETE FROM ingest_coverage", row);
        assert_int_equal(hf__network_transact(network, calls[i], NULL, &err), HF_BAD_DATA);
        assert_non_null(strstr(err.message, message));
    }
}

static void test_a_row_of_coverage_that_is_no_range_is_told(void **state)
{
    (void)state;
    check_refused("INSERT INTO ingest_coverage VALUES (5, 3)", "5-3 overlaps");
    check_refused("INSERT INTO ingest_coverage VALUES (1, 5), (5, 9)", "overlaps");
    check_refused("INSERT INTO ingest_coverage VALUES (1.5, 5)", "ingest_coverage");
    check_refused("INSERT INTO ingest_coverage VALUES (1, 'b')", "ingest_coverage");
    check_refused("INSERT INTO ingest_coverage VALUES (1, NULL)", "ingest_coverage");
}

static hf_status add_around(hf_tx *tx, void *arg, hf_error *why)
{
    hf_range runs[] = {{1, 4}, {10, 14}};
    (void)arg;
    return hf__coverage_add_runs(tx, network, &(hf__ranges){.items = runs, .count = 2}, why);
}

/* A backfill that wrote 1-4 and 10-14 believed the rest to be covered. */
static void test_runs_with_a_hole_between_them_are_not_added(void **state)
{
    static const char *const rows[] = {
        "INSERT INTO ingest_coverage VALUES (5, 8)",  /* 9 is missing */
        "INSERT INTO ingest_coverage VALUES (7, 9)",  /* 5 and 6 are */
        "INSERT INTO ingest_coverage VALUES (20, 21)" /* all of it is */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXECUTE("DELETE FROM ingest_coverage", rows[i]);
        assert_int_equal(hf__network_transact(network, add_around, NULL, &err), HF_CURSOR);
    }
    EXECUTE("DELETE FROM ingest_coverage", "INSERT INTO ingest_coverage VALUES (5, 9)");
    assert_int_equal(hf__network_transact(network, add_around, NULL, &err), HF_OK);
}

/* ---- cursors --------------------------------------------------------------------------------- */

static void test_a_cursor_that_is_there_twice_is_told_and_left_alone(void **state)
{
    int64_t value = 0;
    bool found = false;
    (void)state;
    EXECUTE("INSERT INTO ingest_store VALUES ('mine', '3'), ('mine', '3')");
    assert_int_equal(hf_cursor_get(network, "mine", &found, &value, &err), HF_BAD_DATA);
    assert_int_equal(hf_cursor_advance(network, "mine", 4, &err), HF_BAD_DATA);
    assert_int_equal(hf_cursor_set_min(network, "mine", 1, &err), HF_BAD_DATA);
    assert_non_null(strstr(err.message, "more than once"));
}

static void test_a_cursor_that_is_no_number_is_never_overwritten(void **state)
{
    static const char *const values[] = {"DELETE FROM ingest_store WHERE key = 'none'",
                                         "UPDATE ingest_store SET value = 'x' WHERE key = 'mine'",
                                         "UPDATE ingest_store SET value = '' WHERE key = 'mine'",
                                         "UPDATE ingest_store SET value = '3' || char(0) || '4'"};
    int64_t value = 0;
    bool found = false;
    (void)state;
    EXECUTE("INSERT INTO ingest_store VALUES ('mine', NULL)");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        EXECUTE(values[i]);
        assert_int_equal(hf_cursor_get(network, "mine", &found, &value, &err), HF_BAD_DATA);
        assert_int_equal(hf_cursor_advance(network, "mine", 4, &err), HF_BAD_DATA);
        assert_int_equal(hf_cursor_swap(network, "mine", 3, 4, &err), HF_BAD_DATA);
    }
}

static void count_call(void *arg, const char *name, int64_t value)
{
    (void)name, (void)value;
    *(int *)arg += 1;
}

static void test_the_list_of_cursors_leaves_out_what_is_none(void **state)
{
    int calls = 0;
    (void)state;
    EXECUTE("INSERT INTO ingest_store VALUES (NULL, '1'), ('a', NULL), ('b', 'x'), ('c', '7')");
    assert_int_equal(hf_cursor_list(network, count_call, &calls, &err), HF_OK);
    assert_int_equal(calls, 1);
}

/* ---- ledgers --------------------------------------------------------------------------------- */

static void never_told(void *arg, hf__disagreement kind, hf_range ledgers)
{
    (void)arg, (void)kind, (void)ledgers;
    fail_msg("it is told of ledgers that cannot be read");
}

static void test_ledgers_that_are_no_numbers_are_not_verified(void **state)
{
    static const char *const rows[] = {"INSERT INTO ledgers VALUES (5, 'h', NULL, '', 'many')",
                                       "INSERT INTO ledgers VALUES (5, 'h', NULL, '', NULL)",
                                       "INSERT INTO ledgers VALUES (5.5, 'h', NULL, '', 0)"};
    hf__repair repair = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXECUTE("DELETE FROM ledgers", "INSERT INTO ledgers VALUES (4, 'h', NULL, '', 0)", rows[i]);
        assert_int_equal(hf__coverage_verify(network, 0, 0, never_told, NULL, &err), HF_BAD_DATA);
        assert_int_equal(hf__coverage_repair(network, &repair, &err), HF_BAD_DATA);
        assert_non_null(strstr(err.message, "ledgers"));
    }
}

static void test_a_quarantine_without_a_number_is_told(void **state)
{
    hf_range *gaps = NULL;
    size_t count = 0;
    (void)state;
    EXECUTE("INSERT INTO ingest_quarantine VALUES ('x', '', '', '', '')");
    assert_int_equal(hf_network_gaps(network, 0, 0, &gaps, &count, &err), HF_BAD_DATA);
    assert_null(gaps);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void test_a_network_without_all_its_tables_is_not_verified(void **state)
{
    static const char *const drops[] = {"DROP TABLE transactions", "DROP TABLE ledgers",
                                        "DROP TABLE ingest_store"};
    (void)state;
    for (size_t i = 0; i < sizeof drops / sizeof *drops; i++) {
        EXECUTE(drops[i]);
        assert_int_equal(hf__coverage_verify(network, 0, 0, never_told, NULL, &err), HF_CONFIG);
    }
}

static void test_columns_that_nobody_would_fill_do_not_fit(void **state)
{
    bool there = true;
    (void)state;
    assert_int_equal(hf__tables_check(network, &there, &err), HF_OK);
    assert_true(there);
    EXECUTE("CREATE TABLE theirs (x TEXT NOT NULL)"); /* none of ours */
    assert_int_equal(hf__tables_check(network, &there, &err), HF_OK);
    EXECUTE("DROP TABLE ingest_store", "CREATE TABLE ingest_store (key, value, x TEXT NOT NULL)");
    assert_int_equal(hf__tables_check(network, &there, &err), HF_CONFIG);
    assert_non_null(strstr(err.message, "neither NULL nor a default"));
}

static void test_a_schema_that_holds_another_network_is_refused(void **state)
{
    bool there = true;
    (void)state;
    EXECUTE("INSERT INTO ingest_store VALUES ('holdfast.network', 'new')");
    assert_int_equal(hf__tables_check(network, &there, &err), HF_CONFIG);
    assert_non_null(strstr(err.message, "holds network new, not old"));
    assert_false(there);
}

static hf_status find_it(hf_tx *tx, void *arg, hf_error *why)
{
    return hf__network_find(store, tx, "ingest_old", arg, why);
}

static void test_a_schema_without_a_usable_name_is_nobodys(void **state)
{
    hf_network *found = NULL;
    (void)state;
    EXECUTE("INSERT INTO ingest_store VALUES ('holdfast.network', 'No Name')");
    assert_int_equal(hf__network_transact(network, find_it, &found, &err), HF_CONFIG);
    assert_non_null(strstr(err.message, "nobody has written down"));
    assert_null(found);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_row_of_coverage_that_is_no_range_is_told),
        TEST(test_runs_with_a_hole_between_them_are_not_added),
        TEST(test_a_cursor_that_is_there_twice_is_told_and_left_alone),
        TEST(test_a_cursor_that_is_no_number_is_never_overwritten),
        TEST(test_the_list_of_cursors_leaves_out_what_is_none),
        TEST(test_ledgers_that_are_no_numbers_are_not_verified),
        TEST(test_a_quarantine_without_a_number_is_told),
        TEST(test_a_network_without_all_its_tables_is_not_verified),
        TEST(test_columns_that_nobody_would_fill_do_not_fit),
        TEST(test_a_schema_that_holds_another_network_is_refused),
        TEST(test_a_schema_without_a_usable_name_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
