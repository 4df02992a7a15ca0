/* Calls that break a rule of the interface are refused, and crash nothing. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "folder.h"
#include "holdfast/holdfast.h"

static hf_store *store;

static int open_store(void **state)
{
    char url[128];
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_error err = {0};

    if (make_folder(state) != 0)
        return -1;
    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    if (hf_store_open(&options, &store, &err) != HF_OK)
        fail_msg("%s", err.message);
    return 0;
}

static int close_store(void **state)
{
    hf_store_close(store);
    return drop_folder(state);
}

static hf_status never_called(hf_tx *tx, void *arg, hf_error *err)
{
    (void)tx, (void)arg, (void)err;
    fail_msg("it is called");
    return HF_OK;
}

#define REFUSED(CALL) assert_int_equal(CALL, HF_INVALID)

static void test_a_missing_store_or_place_for_the_answer_is_refused(void **state)
{
    const hf_store_options no_url = HF_STORE_OPTIONS_INIT;
    hf_store *opened = NULL;
    hf_lock *lock = NULL;
    const hf_table_name table = {.table = "t"};
    const hf_network_options network_options = {.size = sizeof network_options, .name = "testnet"};
    hf_network *network = NULL;
    hf_table_list *tables = NULL;
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    int64_t id = 0;

    (void)state;
    REFUSED(hf_store_open(NULL, &opened, NULL));
    REFUSED(hf_store_open(&no_url, &opened, NULL));
    REFUSED(hf_store_open(&no_url, NULL, NULL));
    REFUSED(hf_store_borrow(NULL, NULL, &opened, NULL));
    REFUSED(hf_store_borrow(NULL, NULL, NULL, NULL));
    REFUSED(hf_lock_acquire(NULL, &spec, &lock, NULL));
    REFUSED(hf_lock_acquire(store, NULL, &lock, NULL));
    REFUSED(hf_lock_acquire(store, &spec, NULL, NULL));
    REFUSED(hf_lock_acquire(store, &spec, &lock, NULL)); /* no target */
    REFUSED(hf_lock_release(NULL, NULL));
    REFUSED(hf_lock_token(NULL, &id, NULL));
    REFUSED(hf_network_open(NULL, &network_options, &network, NULL));
    REFUSED(hf_network_open(store, &network_options, NULL, NULL));
    REFUSED(hf_table_register(NULL, &table, &id, NULL, NULL));
    REFUSED(hf_table_register(store, NULL, &id, NULL, NULL));
    REFUSED(hf_table_lock(store, &table, NULL, NULL, NULL));
    REFUSED(hf_table_list_read(NULL, NULL, false, &tables, NULL));
    REFUSED(hf_table_adopt(NULL, &adoption, NULL, NULL, NULL, NULL));
    REFUSED(hf_table_adopt(store, NULL, NULL, NULL, NULL, NULL));
    REFUSED(hf_table_leave(NULL, &adoption, NULL));
    REFUSED(hf_table_leave(store, NULL, NULL));
    REFUSED(hf_transact(NULL, NULL, never_called, NULL, NULL));
    REFUSED(hf_transact(store, NULL, NULL, NULL, NULL));
    REFUSED(hf_lock_transact(NULL, NULL, never_called, NULL, NULL));
    assert_null(lock);
    assert_null(opened);
}

static void test_a_missing_network_or_callback_is_refused(void **state)
{
    const hf_network_options options = {.size = sizeof options, .name = "testnet"};
    hf_network *network = NULL;
    hf_range *gaps = NULL;
    size_t count = 0;
    bool found = false;
    int64_t value = 0;

    (void)state;
    assert_int_equal(hf_network_open(store, &options, &network, NULL), HF_OK);
    REFUSED(hf_cursor_get(NULL, "a", &found, &value, NULL));
    REFUSED(hf_cursor_set(NULL, "a", 1, NULL));
    REFUSED(hf_cursor_list(NULL, NULL, NULL, NULL));
    REFUSED(hf_cursor_list(network, NULL, NULL, NULL));
    REFUSED(hf_network_gaps(NULL, 1, 2, &gaps, &count, NULL));
    hf_network_free(network);
}

static hf_status break_rules(hf_tx *tx, void *arg, hf_error *err)
{
    hf_rows *rows = NULL;

    (void)arg;
    REFUSED(hf_tx_query(tx, NULL, 0, NULL, false, NULL, NULL));
    REFUSED(hf_tx_query(tx, "SELECT ?1", 1, NULL, false, NULL, NULL));
    REFUSED(hf_tx_queue(tx, NULL, 0, NULL, NULL));
    REFUSED(hf_tx_queue(tx, "SELECT ?1", 1, NULL, NULL));
    hf_status status = hf_tx_query(tx, "SELECT 1", 0, NULL, false, &rows, err);
    assert_null(hf_rows_value(rows, 1, 0, NULL));
    assert_null(hf_rows_value(rows, 0, 1, NULL));
    assert_null(hf_rows_column(rows, 1));
    hf_rows_free(rows);
    return status;
}

static void test_a_statement_that_is_none_does_not_end_its_transaction(void **state)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;

    (void)state;
    assert_int_equal(hf_transact(store, &options, break_rules, NULL, NULL), HF_OK);
    options.isolation = HF_READ_COMMITTED + 1;
    REFUSED(hf_transact(store, &options, never_called, NULL, NULL));
}

static void test_what_is_behind_the_end_is_nothing(void **state)
{
    hf_lock_list *locks = NULL;
    hf_table_list *tables = NULL;

    (void)state;
    assert_int_equal(hf_lock_list_read(store, &locks, NULL), HF_OK);
    assert_null(hf_lock_list_at(locks, hf_lock_list_count(locks)));
    hf_lock_list_free(locks);
    assert_int_equal(hf_table_list_read(store, NULL, false, &tables, NULL), HF_OK);
    assert_null(hf_table_list_at(tables, hf_table_list_count(tables)));
    hf_table_list_free(tables);
}

static void test_a_lock_for_transactions_may_be_held_by_a_session_of_an_own_store(void **state)
{
    static const char text[] = "version: 1\nlocks:\n"
                               "  - { name: a, key: { fixed: 5000 }, lifetime: transaction }\n";
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    const hf_target target = HF_KEY(5000);
    hf_registry *registry = NULL;
    hf_store *registered = NULL;
    hf_lock *lock = NULL;
    hf_error err = {0};
    char url[128], path[128];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/locks.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    assert_int_equal(hf_registry_read(path, &registry, &err), HF_OK);
    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    options.registry = registry;
    assert_int_equal(hf_store_open(&options, &registered, &err), HF_OK);
    spec.targets = &target;
    spec.target_count = 1;
    if (hf_lock_acquire(registered, &spec, &lock, &err) != HF_OK)
        fail_msg("%s", err.message);
    assert_int_equal(hf_lock_release(lock, &err), HF_OK);
    hf_lock_free(lock);
    hf_store_close(registered);
    hf_registry_free(registry);
}

static void test_a_context_is_refused_alike_where_it_is_added_and_given_up(void **state)
{
    const hf_table_name table = {.table = "t"};
    hf_error added = {0};
    hf_error given_up = {0};

    (void)state;
    REFUSED(hf_table_ref(store, &table, "", NULL, &added));
    REFUSED(hf_table_unref(store, &table, "", 0, NULL, &given_up));
    assert_string_equal(given_up.message, added.message);
}

static void test_a_file_of_the_local_store_is_told_not_to_be_followed(void **state)
{
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    hf_error err = {0};

    (void)state;
    adoption.file = "/no/such.db";
    adoption.cluster = adoption.database = "c";
    REFUSED(hf_table_leave(store, &adoption, &err));
    assert_string_equal(err.message, "a SQLite file is not followed: nothing is to be left");
    assert_string_equal(err.hint, "its ids stay as they are");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_missing_store_or_place_for_the_answer_is_refused),
        cmocka_unit_test(test_a_missing_network_or_callback_is_refused),
        cmocka_unit_test(test_a_statement_that_is_none_does_not_end_its_transaction),
        cmocka_unit_test(test_what_is_behind_the_end_is_nothing),
        cmocka_unit_test(test_a_lock_for_transactions_may_be_held_by_a_session_of_an_own_store),
        cmocka_unit_test(test_a_context_is_refused_alike_where_it_is_added_and_given_up),
        cmocka_unit_test(test_a_file_of_the_local_store_is_told_not_to_be_followed),
    };
    return cmocka_run_group_tests(tests, open_store, close_store);
}
