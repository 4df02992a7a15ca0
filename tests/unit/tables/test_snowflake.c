#include "unit.h"

#include "lib/tables/snowflake.h"

static hf__snowflake leased(int machine)
{
    hf__snowflake flake = {0};
    hf__snowflake_lease(&flake, machine, INT64_MAX);
    return flake;
}

static int64_t next(hf__snowflake *flake, int64_t now_ms)
{
    int64_t id = 0;
    assert_true(hf__snowflake_next(flake, now_ms, &id));
    return id;
}

static void test_the_bits_are_a_zero_the_time_the_machine_and_a_sequence(void **state)
{
    (void)state;
    hf__snowflake flake = leased(0x2a5);
    int64_t first = next(&flake, INT64_C(1700000000123));
    assert_true(first == (INT64_C(1700000000123) << 22 | 0x2a5 << 12));
    assert_true(next(&flake, INT64_C(1700000000123)) == first + 1);
    hf__snowflake_parts parts = hf__snowflake_split(first + 1);
    assert_true(parts.ms == INT64_C(1700000000123));
    assert_int_equal(parts.machine, 0x2a5);
    assert_int_equal(parts.sequence, 1);
}

static void test_ids_grow_though_the_clock_steps_back(void **state)
{
    (void)state;
    hf__snowflake flake = leased(1023);
    int64_t last = 0;
    const int64_t times[] = {5000, 5000, 4000, 1, 4999, 5000, 5001, 2, 900000, 899999};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t id = next(&flake, times[i]);
        assert_true(id > last);
        assert_int_equal(hf__snowflake_split(id).machine, 1023);
        last = id;
    }
}

static void test_a_spent_sequence_goes_on_in_the_next_millisecond(void **state)
{
    (void)state;
    hf__snowflake flake = leased(7);
    int64_t last = 0;
    for (int i = 0; i < 3 * (HF__SEQUENCE_MAX + 1); i++) {
        int64_t id = next(&flake, 1000);
        assert_true(id > last);
        assert_int_equal(hf__snowflake_split(id).machine, 7);
        last = id;
    }
    assert_true(hf__snowflake_split(last).ms == 1002);
    assert_int_equal(hf__snowflake_split(last).sequence, HF__SEQUENCE_MAX);
}

static void test_without_a_lease_there_is_no_id(void **state)
{
    (void)state;
    hf__snowflake flake = {0};
    int64_t id = -1;
    assert_false(hf__snowflake_next(&flake, 1000, &id));
    assert_true(id == -1);
}

static void test_a_lease_ends_with_its_last_millisecond(void **state)
{
    (void)state;
    hf__snowflake flake = {0};
    int64_t id = 0;
    hf__snowflake_lease(&flake, 3, 1000);
    for (int i = 0; i <= HF__SEQUENCE_MAX; i++)
        assert_true(hf__snowflake_next(&flake, 1000, &id));
    assert_false(hf__snowflake_next(&flake, 1000, &id)); /* 1001 is somebody else's */
    assert_false(hf__snowflake_next(&flake, 1001, &id));
    hf__snowflake_lease(&flake, 3, 2000);
    assert_true(hf__snowflake_next(&flake, 1001, &id));
}

static void test_a_smaller_machine_number_is_no_step_back(void **state)
{
    (void)state;
    hf__snowflake flake = leased(9);
    int64_t before = next(&flake, 1000);
    hf__snowflake_lease(&flake, 8, INT64_MAX);
    int64_t after = next(&flake, 1000);
    assert_true(after > before);
    assert_int_equal(hf__snowflake_split(after).machine, 8);
}

static void test_times_beyond_41_bits_are_refused(void **state)
{
    (void)state;
    hf__snowflake flake = leased(1023);
    int64_t id = 0;
    for (int i = 0; i <= HF__SEQUENCE_MAX; i++)
        assert_true(next(&flake, HF__SNOWFLAKE_LAST_MS) > 0);
    assert_false(hf__snowflake_next(&flake, HF__SNOWFLAKE_LAST_MS, &id));
    flake = leased(1);
    assert_false(hf__snowflake_next(&flake, HF__SNOWFLAKE_LAST_MS + 1, &id));
    assert_false(hf__snowflake_next(&flake, INT64_MAX, &id));
}

static void test_a_clock_before_1970_is_refused(void **state)
{
    (void)state;
    hf__snowflake flake = leased(1);
    int64_t id = 0;
    assert_false(hf__snowflake_next(&flake, 0, &id));
    assert_false(hf__snowflake_next(&flake, -5, &id));
    assert_false(hf__snowflake_next(&flake, INT64_MIN, &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bits_are_a_zero_the_time_the_machine_and_a_sequence),
        cmocka_unit_test(test_ids_grow_though_the_clock_steps_back),
        cmocka_unit_test(test_a_spent_sequence_goes_on_in_the_next_millisecond),
        cmocka_unit_test(test_without_a_lease_there_is_no_id),
        cmocka_unit_test(test_a_lease_ends_with_its_last_millisecond),
        cmocka_unit_test(test_a_smaller_machine_number_is_no_step_back),
        cmocka_unit_test(test_times_beyond_41_bits_are_refused),
        cmocka_unit_test(test_a_clock_before_1970_is_refused),
    };
    return RUN(tests);
}
