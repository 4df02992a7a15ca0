#include "unit.h"

#include <string.h>

#include "programs/append/work.h"

#define OLD "insert_deduplicate\t1\nreplicated_deduplication_window\t100\n"
#define NEW OLD "insert_deduplication_token\t\nnon_replicated_deduplication_window\t0\n"

static int64_t window_of(const char *engine_full, const char *answer)
{
    hf__grid settings = {0};

    assert_int_equal(hf__grid_read(strdup(answer), strlen(answer), &settings, NULL), HF_OK);
    int64_t window = hf__dedup_window(engine_full, &settings);
    hf__grid_free(&settings);
    return window;
}

static void test_a_replicated_table_has_the_servers_window_or_its_own(void **state)
{
    (void)state;
    assert_int_equal(window_of("ReplicatedMergeTree('/t', 'r') ORDER BY n", OLD), 100);
    assert_int_equal(window_of("ReplicatedMergeTree('/t', 'r') ORDER BY n SETTINGS "
                               "index_granularity = 8192, replicated_deduplication_window = 7",
                               OLD),
                     7);
    assert_int_equal(window_of("ReplicatedMergeTree ORDER BY n SETTINGS "
                               "non_replicated_deduplication_window = 7",
                               NEW),
                     100);
}

static void test_another_table_needs_a_window_and_a_server_that_knows_tokens(void **state)
{
    static const char own[] =
        "MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 9";

    (void)state;
    assert_int_equal(window_of("MergeTree ORDER BY n", OLD), 0);
    assert_int_equal(window_of("MergeTree ORDER BY n", NEW), 0);
    assert_int_equal(window_of(own, OLD), 0);
    assert_int_equal(window_of(own, NEW), 9);
}

static void test_nothing_is_known_where_it_is_off_or_not_said(void **state)
{
    static const char replicated[] = "ReplicatedMergeTree('/t', 'r') ORDER BY n";

    (void)state;
    assert_int_equal(window_of(replicated, "insert_deduplicate\t0\n"
                                           "replicated_deduplication_window\t100\n"),
                     0);
    assert_int_equal(window_of(replicated, "replicated_deduplication_window\t100\n"), 0);
    assert_int_equal(window_of(replicated, "insert_deduplicate\t1\n"), 0);
    assert_int_equal(window_of("", ""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_replicated_table_has_the_servers_window_or_its_own),
        cmocka_unit_test(test_another_table_needs_a_window_and_a_server_that_knows_tokens),
        cmocka_unit_test(test_nothing_is_known_where_it_is_off_or_not_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
