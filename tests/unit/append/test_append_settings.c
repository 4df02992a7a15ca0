#include "unit.h"

#include <string.h>

#include "programs/append/work.h"

#define BLOCKS "max_insert_block_size\t1048576\t0\nmin_insert_block_size_rows\t1048576\t0\n"
#define BYTES "min_insert_block_size_bytes\t268435456\t0\n"

static hf__grid settings_of(const char *answer)
{
    hf__grid settings = {0};

    assert_int_equal(hf__grid_read(strdup(answer), strlen(answer), &settings, NULL), HF_OK);
    return settings;
}

static void expect_for_rows(const char *answer, const char *wanted)
{
    hf__grid settings = settings_of(answer);

    assert_string_equal(hf__settings_for_rows(&settings), wanted);
    hf__grid_free(&settings);
}

static void test_a_setting_is_found_by_its_name(void **state)
{
    hf__grid settings = settings_of("format_csv_delimiter\t;\t1\ninsert_deduplicate\t1\t0\n");
    const hf__grid none = {0};

    (void)state;
    assert_string_equal(hf__settings_value(&settings, "format_csv_delimiter"), ";");
    assert_string_equal(hf__settings_value(&settings, "insert_deduplicate"), "1");
    assert_null(hf__settings_value(&settings, "insert"));
    assert_null(hf__settings_value(&none, "insert_deduplicate"));
    hf__grid_free(&settings);
}

static void test_a_server_that_parses_in_one_thread_is_given_less_at_a_time(void **state)
{
    (void)state;
    expect_for_rows(BLOCKS BYTES, "max_insert_block_size=65536");
    expect_for_rows(BLOCKS BYTES "input_format_parallel_parsing\t1\t0\n", "");
}

static void test_a_server_that_could_write_rows_later_is_told_not_to(void **state)
{
    (void)state;
    expect_for_rows(BLOCKS BYTES "async_insert\t0\t0\ninput_format_parallel_parsing\t1\t0\n",
                    "async_insert=0");
    expect_for_rows("async_insert\t1\t1\n", "async_insert=0");
}

static void test_what_somebody_has_set_stays(void **state)
{
    (void)state;
    expect_for_rows(BLOCKS "min_insert_block_size_bytes\t0\t1\n", "");
    expect_for_rows(BLOCKS, "");
    expect_for_rows("", "");
    expect_for_rows("max_insert_block_size\t500\t1\nmin_insert_block_size_rows\t1048576\t0\n" BYTES,
                    "");
    expect_for_rows("max_insert_block_size\t1048576\t0\nmin_insert_block_size_rows\t0\t1\n" BYTES,
                    "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_setting_is_found_by_its_name),
        cmocka_unit_test(test_a_server_that_parses_in_one_thread_is_given_less_at_a_time),
        cmocka_unit_test(test_a_server_that_could_write_rows_later_is_told_not_to),
        cmocka_unit_test(test_what_somebody_has_set_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
