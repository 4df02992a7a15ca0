/* The tables of a network on a local store: which are made, and whose they are. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "folder.h"
#include "lib/ledgers/ledgers.h"

static hf_store *store;

static int open_store(void **state)
{
    char url[128];
    hf_store_options options = HF_STORE_OPTIONS_INIT;

    if (make_folder(state) != 0)
        return -1;
    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    return hf_store_open(&options, &store, NULL) == HF_OK ? 0 : -1;
}

static int close_store(void **state)
{
    hf_store_close(store);
    return drop_folder(state);
}

static hf_network *network_of(const char *name, const char *latest, const char *oldest)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *network = NULL;
    hf_error err = {0};

    options.name = name;
    options.schema = "book";
    options.latest_cursor = latest;
    options.oldest_cursor = oldest;
    if (hf_network_open(store, &options, &network, &err) != HF_OK)
        fail_msg("%s", err.message);
    return network;
}

struct look {
    hf_network *network;
    hf__tables_there there;
};

static hf_status look(hf_tx *tx, void *arg, hf_error *err)
{
    struct look *look = arg;
    return hf__tables_look(tx, look->network, &look->there, err);
}

static void test_for_coverage_only_its_tables_are_made(void **state)
{
    struct look seen = {.network = network_of("testnet", NULL, NULL)};

    (void)state;
    assert_int_equal(hf__tables_install_coverage(seen.network, NULL), HF_OK);
    assert_int_equal(hf__network_transact(seen.network, look, &seen, NULL), HF_OK);
    assert_true(seen.there.store && seen.there.coverage);
    assert_false(seen.there.ledgers || seen.there.transactions || seen.there.quarantine);
    hf_network_free(seen.network);
}

static void test_each_schema_has_keys_of_its_own(void **state)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *one = network_of("testnet", NULL, NULL);
    hf_network *other = NULL;

    (void)state;
    options.name = "testnet";
    options.schema = "other";
    assert_int_equal(hf_network_open(store, &options, &other, NULL), HF_OK);
    assert_true(one->lock_key == other->lock_key); /* that of the network */
    assert_true(one->coverage_key != other->coverage_key);
    assert_true(one->partitions_key != other->partitions_key);
    assert_true(one->coverage_key != one->partitions_key);
    hf_network_free(other);
    hf_network_free(one);
}

static hf_status find(hf_tx *tx, void *arg, hf_error *err)
{
    return hf__network_find(store, tx, "book", arg, err);
}

static void test_whoever_finds_a_schema_learns_its_network_and_cursors(void **state)
{
    hf_network *network = network_of("testnet", "head", "tail");
    hf_network *found = NULL;
    hf_error err = {0};

    (void)state;
    assert_int_equal(hf__network_transact(network, find, &found, &err), HF_CONFIG);
    assert_string_equal(err.message, "nobody has written down which network it is");
    assert_true(err.hint[0] != '\0');
    assert_int_equal(hf__tables_install(network, &err), HF_OK);
    assert_int_equal(hf__network_transact(network, find, &found, &err), HF_OK);
    assert_string_equal(found->name, "testnet");
    assert_string_equal(found->latest, "head");
    assert_string_equal(found->oldest, "tail");
    hf_network_free(found);
    hf_network_free(network);
}

static void test_a_schema_belongs_to_the_network_that_used_it_first(void **state)
{
    hf_network *first = network_of("testnet", NULL, NULL);
    hf_network *second = network_of("pubnet", NULL, NULL);
    hf_network *renamed = network_of("testnet", "head", NULL);
    hf_network *found = NULL;
    hf_error err = {0};

    (void)state;
    assert_int_equal(hf__tables_install(first, &err), HF_OK);
    assert_int_equal(hf__tables_install(second, &err), HF_CONFIG);
    assert_non_null(strstr(err.message, "testnet"));
    assert_int_equal(hf__tables_install(renamed, &err), HF_OK); /* its cursors may change */
    assert_int_equal(hf__network_transact(first, find, &found, &err), HF_OK);
    assert_string_equal(found->latest, "head");
    hf_network_free(found);
    hf_network_free(renamed);
    hf_network_free(second);
    hf_network_free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_for_coverage_only_its_tables_are_made, open_store,
                                        close_store),
        cmocka_unit_test_setup_teardown(test_each_schema_has_keys_of_its_own, open_store,
                                        close_store),
        cmocka_unit_test_setup_teardown(test_whoever_finds_a_schema_learns_its_network_and_cursors,
                                        open_store, close_store),
        cmocka_unit_test_setup_teardown(test_a_schema_belongs_to_the_network_that_used_it_first,
                                        open_store, close_store),
    };
    return RUN(tests);
}
