/* Values that no lock, network, table or store can have are refused; what may be left out may. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "holdfast/holdfast.h"
#include "lib/ledgers/ledgers.h"

static char url[128];
static hf_store *store;
static hf_error err;

static int open_store(void **state)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    if (make_folder(state) != 0)
        return -1;
    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    options.application = ""; /* the same as none */
    if (hf_store_open(&options, &store, &err) != HF_OK)
        fail_msg("%s", err.message);
    return 0;
}

static int close_store(void **state)
{
    hf_store_close(store);
    return drop_folder(state);
}

#define REFUSED(CALL) assert_int_equal(CALL, HF_INVALID)

static void refuse_spec(hf_lock_spec spec, const char *why)
{
    hf_lock *lock = NULL;
    REFUSED(hf_lock_acquire(store, &spec, &lock, &err));
    assert_non_null(strstr(err.message, why));
    assert_null(lock);
}

static void test_a_lock_that_cannot_be_is_refused_with_its_reason(void **state)
{
    const hf_target job = HF_LABEL("job");
    const hf_target both[] = {job, HF_KEY(1)};
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;
    (void)state;
    spec.targets = &job;
    spec.target_count = 1;
    refuse_spec((hf_lock_spec){.size = sizeof spec, .mode = (hf_mode)7, .targets = &job}, "mode 7");
    hf_lock_spec changed = spec;
    changed.wait_ms = -2;
    refuse_spec(changed, "negative");
    changed = spec;
    changed.slots = HF_SLOTS_MAX + 1;
    refuse_spec(changed, "slots are more than");
    changed.slots = 2;
    changed.mode = HF_SHARED;
    refuse_spec(changed, "one exclusive target");
    changed = spec;
    changed.slots = 2;
    changed.targets = both;
    changed.target_count = 2;
    refuse_spec(changed, "one exclusive target");
    changed = spec;
    changed.slots = 2;
    changed.flags = HF_PRIVATE;
    refuse_spec(changed, "neither");
    changed = spec;
    changed.lifetime = HF_TRANSACTION;
    refuse_spec(changed, "connection");
    assert_int_equal(hf_lock_acquire(store, &spec, &lock, &err), HF_OK);
    REFUSED(hf_lock_token(lock, NULL, &err));
    hf_lock_free(lock);
}

static hf_status never_called(hf_tx *tx, void *arg, hf_error *why)
{
    (void)tx, (void)arg, (void)why;
    fail_msg("it is called");
    return HF_OK;
}

static void test_times_below_zero_are_refused(void **state)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    bool due = false;
    int64_t wait_ms = 0;
    (void)state;
    options.deadline_ms = -1;
    REFUSED(hf_transact(store, &options, never_called, NULL, &err));
    REFUSED(hf_schedule_claim(store, "job", 0, &due, &wait_ms, &err));
    REFUSED(hf_schedule_claim(store, "", 1000, &due, &wait_ms, &err));
    REFUSED(hf_schedule_claim(store, NULL, 1000, &due, &wait_ms, &err));
}

static void test_a_store_without_an_address_is_refused(void **state)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_store *opened = NULL;
    char path[5000] = "local:/";
    (void)state;
    options.url = "";
    REFUSED(hf_store_open(&options, &opened, &err));
    options.url = "local:";
    assert_int_not_equal(hf_store_open(&options, &opened, &err), HF_OK);
    memset(path + strlen(path), 'x', sizeof path - strlen("local:/") - 1);
    options.url = path;
    assert_int_not_equal(hf_store_open(&options, &opened, &err), HF_OK);
    assert_null(opened);
}

static void test_no_cancel_handle_is_never_triggered(void **state)
{
    (void)state;
    REFUSED(hf_cancel_create(NULL, &err));
    hf_cancel_trigger(NULL);
    assert_false(hf_cancel_is_triggered(NULL));
    hf_cancel_free(NULL);
}

/* ---- networks -------------------------------------------------------------------------------- */

static void test_names_of_networks_and_cursors_are_checked(void **state)
{
    static const char *const bad[] = {"", "a\x7f", "a\x01", "\xff", "holdfast.mine", NULL};
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *network = NULL;
    (void)state;
    REFUSED(hf_network_open(store, &options, &network, &err)); /* it has no name */
    REFUSED(hf_network_open(store, NULL, &network, &err));
    REFUSED(hf_network_open(store, &(hf_network_options){.name = "x"}, &network, &err)); /* size */
    options.name = "testnet";
    for (size_t i = 0; bad[i]; i++) {
        options.latest_cursor = bad[i];
        options.oldest_cursor = NULL;
        REFUSED(hf_network_open(store, &options, &network, &err));
        options.latest_cursor = NULL;
        options.oldest_cursor = bad[i];
        REFUSED(hf_network_open(store, &options, &network, &err));
    }
    assert_null(network);
}

static void test_a_cursor_that_nobody_has_set_cannot_be_moved(void **state)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *network = NULL;
    (void)state;
    options.name = "testnet";
    assert_int_equal(hf_network_open(store, &options, &network, &err), HF_OK);
    REFUSED(hf_cursor_set(network, NULL, 1, &err));
    assert_int_equal(hf_cursor_set(network, "other", 1, &err), HF_OK);
    assert_int_equal(hf_cursor_set_min(network, "mine", 1, &err), HF_CURSOR);
    assert_int_equal(hf_cursor_advance(network, "mine", 1, &err), HF_CURSOR);
    assert_non_null(strstr(err.message, "not initialised"));
    hf_network_free(network);
}

static void never_told(void *arg, hf__disagreement kind, hf_range ledgers)
{
    (void)arg, (void)kind, (void)ledgers;
    fail_msg("there is nothing to tell");
}

static void test_a_network_without_a_file_has_no_gaps_and_nothing_to_verify(void **state)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *network = NULL;
    hf_range *gaps = NULL;
    size_t count = 7;
    (void)state;
    options.name = "nowhere";
    assert_int_equal(hf_network_open(store, &options, &network, &err), HF_OK);
    REFUSED(hf_network_gaps(network, 1, 2, NULL, &count, &err));
    REFUSED(hf_network_gaps(network, 1, 2, &gaps, NULL, &err));
    assert_int_equal(hf_network_gaps(network, 1, 0, &gaps, &count, &err), HF_OK);
    assert_int_equal(count, 0);
    assert_int_equal(hf__coverage_verify(network, 1, INT64_MAX, never_told, NULL, &err), HF_OK);
    assert_int_equal(hf__partition_drop(network, &(hf__partition){.table = "t"}, &err), HF_OK);
    free(gaps);
    hf_network_free(network);
}

/* ---- shared tables --------------------------------------------------------------------------- */

static void test_names_of_tables_and_contexts_are_checked(void **state)
{
    const hf_table_name name = {.table = "rows"};
    static const char *const bad[] = {"", "a\x7f", "a\n", "\xff", NULL};
    hf_table_name parsed = {0};
    char *memory = NULL;
    int64_t id = 0;
    (void)state;
    REFUSED(hf_table_name_parse(NULL, &parsed, &memory, &err));
    REFUSED(hf_table_name_parse("a.b", NULL, &memory, &err));
    REFUSED(hf_table_name_parse("a.b", &parsed, NULL, &err));
    REFUSED(hf_table_register(store, &(hf_table_name){.table = "a\u2029b"}, &id, NULL, &err));
    REFUSED(hf_table_ref(store, &name, NULL, &id, &err));
    for (size_t i = 0; bad[i]; i++)
        REFUSED(hf_table_ref(store, &name, bad[i], &id, &err));
    assert_int_equal(id, 0);
}

static void test_a_table_that_nobody_has_registered_cannot_be_dropped(void **state)
{
    const hf_table_name name = {.table = "nobodys"};
    (void)state;
    REFUSED(hf_table_unref(store, &name, "context", 0, NULL, &err));
    assert_non_null(strstr(err.message, "nobodys"));
    REFUSED(hf_table_drop(store, &name, true, 0, &err));
    assert_non_null(strstr(err.message, "nobodys"));
}

static void test_a_table_is_registered_and_locked_whoever_wants_no_answer(void **state)
{
    const hf_table_name name = {.table = "quiet"};
    hf_lock *lock = NULL;
    int64_t id = 0;
    (void)state;
    assert_int_equal(hf_table_register(store, &name, NULL, NULL, &err), HF_OK);
    assert_int_equal(hf_table_find(store, &name, &id, &err), HF_OK);
    assert_int_equal(hf_table_lock(store, &name, NULL, &lock, &err), HF_OK);
    assert_int_equal(hf_lock_key(lock), id);
    hf_lock_free(lock);
}

static void test_a_file_is_adopted_without_schemas_and_never_left(void **state)
{
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    (void)state;
    REFUSED(hf_table_adopt(store, &adoption, NULL, NULL, NULL, &err)); /* which file? */
    adoption.file = "app.db";
    REFUSED(hf_table_leave(store, &adoption, &err));
    assert_non_null(strstr(err.message, "nothing is to be left"));
    adoption.schema = "public";
    REFUSED(hf_table_adopt(store, &adoption, NULL, NULL, NULL, &err));
    assert_non_null(strstr(err.message, "no schemas"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lock_that_cannot_be_is_refused_with_its_reason),
        cmocka_unit_test(test_times_below_zero_are_refused),
        cmocka_unit_test(test_a_store_without_an_address_is_refused),
        cmocka_unit_test(test_no_cancel_handle_is_never_triggered),
        cmocka_unit_test(test_names_of_networks_and_cursors_are_checked),
        cmocka_unit_test(test_a_cursor_that_nobody_has_set_cannot_be_moved),
        cmocka_unit_test(test_a_network_without_a_file_has_no_gaps_and_nothing_to_verify),
        cmocka_unit_test(test_names_of_tables_and_contexts_are_checked),
        cmocka_unit_test(test_a_table_that_nobody_has_registered_cannot_be_dropped),
        cmocka_unit_test(test_a_table_is_registered_and_locked_whoever_wants_no_answer),
        cmocka_unit_test(test_a_file_is_adopted_without_schemas_and_never_left),
    };
    return cmocka_run_group_tests(tests, open_store, close_store);
}
