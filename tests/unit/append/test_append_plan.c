#include "unit.h"

#include <string.h>

#include "programs/append/plan.h"

/* A plan of one partition with two parts, as it stands in the store. */
static const char one_partition[] = "all 7 1000 100:4000,50:2500\n";

static hf__plan parsed(const char *text)
{
    hf__plan plan;
    hf_error err;

    if (hf__plan_parse(text, &plan, &err) != HF_OK)
        fail_msg("%s", err.message);
    return plan;
}

static hf__verdict judge(hf__plan_part *now, size_t count, int64_t rows_now, bool collapses)
{
    hf__plan plan = parsed(one_partition);
    const hf__parts parts = {.items = now, .count = count};

    for (size_t i = 0; i < count; i++)
        strcpy(now[i].partition, "all");
    hf__verdict verdict = hf__plan_judge(&plan, &plan.partitions[0], &parts, rows_now, collapses);
    hf__plan_free(&plan);
    return verdict;
}

static void test_a_plan_survives_the_store(void **state)
{
    static const char text[] = "202001 3 10 5:77\n202002-1 0 0 1:2,3:4,5:6\n";
    hf__plan plan = parsed(text);
    hf__buf again = {0};

    (void)state;
    assert_int_equal(plan.partition_count, 2);
    assert_int_equal(plan.part_count, 4);
    assert_int_equal(plan.rows, 14);
    assert_int_equal(plan.partitions[1].first, 1);
    assert_int_equal(plan.partitions[1].rows, 9);
    hf__plan_write(&plan, &again);
    assert_string_equal(again.data, text);
    assert_int_equal(hf__plan_least_block(&plan), 0);
    hf__buf_free(&again);
    hf__plan_free(&plan);
}

static void test_a_damaged_plan_is_refused(void **state)
{
    static const char *const damaged[] = {
        "all",           "all 7 1000",    "all 7 1000 100:4000",
        "all 7 1000 \n", "all 7 x 1:2\n", "all 7 1000 100:4000,\n"};
    hf__plan plan;

    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++)
        assert_int_equal(hf__plan_parse(damaged[i], &plan, NULL), HF_BAD_DATA);
    assert_int_equal(hf__plan_parse("", &plan, NULL), HF_OK);
    assert_int_equal(plan.partition_count, 0);
}

static void test_a_plan_is_made_of_active_parts_by_partition(void **state)
{
    hf__plan_part parts[] = {{.partition = "a", .rows = 5, .bytes = 50, .is_active = true},
                             {.partition = "a", .rows = 9, .bytes = 90},
                             {.partition = "b", .rows = 6, .bytes = 60, .is_active = true}};
    const hf__parts staged = {.items = parts, .count = 3};
    hf__plan plan;

    (void)state;
    assert_int_equal(hf__plan_make(&staged, &plan, NULL), HF_OK);
    assert_int_equal(plan.partition_count, 2);
    assert_int_equal(plan.rows, 11);
    hf__plan_free(&plan);
}

static void test_nothing_later_is_not_attached(void **state)
{
    hf__plan_part now[] = {{.min_block = 7, .max_block = 7, .rows = 100, .bytes = 4000}};

    (void)state;
    assert_int_equal(judge(NULL, 0, 1000, false), HF__NOT_ATTACHED);
    assert_int_equal(judge(now, 1, 1000, false), HF__NOT_ATTACHED);
}

static void test_the_same_parts_later_are_attached(void **state)
{
    hf__plan_part now[] = {
        {.min_block = 8, .max_block = 8, .rows = 100, .bytes = 4000, .is_active = true},
        {.min_block = 9, .max_block = 9, .rows = 50, .bytes = 2500, .is_active = true}};

    (void)state;
    assert_int_equal(judge(now, 2, 1150, false), HF__ATTACHED);
    assert_int_equal(judge(now, 2, 1150, true), HF__ATTACHED);
}

static void test_merged_away_they_are_still_seen_as_long_as_the_server_keeps_them(void **state)
{
    hf__plan_part now[] = {
        {.min_block = 1, .max_block = 9, .rows = 900, .bytes = 9000, .is_active = true},
        {.min_block = 8, .max_block = 8, .rows = 100, .bytes = 4000},
        {.min_block = 9, .max_block = 9, .rows = 50, .bytes = 2500}};

    (void)state;
    assert_int_equal(judge(now, 3, 900, true), HF__ATTACHED);
}

static void test_a_strangers_part_is_not_taken_for_ours(void **state)
{
    hf__plan_part now[] = {
        {.min_block = 8, .max_block = 8, .rows = 33, .bytes = 400, .is_active = true}};

    (void)state;
    assert_int_equal(judge(now, 1, 1033, false), HF__NOT_ATTACHED);
    assert_int_equal(judge(now, 1, 1033, true), HF__NOT_ATTACHED);
}

static void test_a_server_that_crashed_half_way_is_doubted(void **state)
{
    hf__plan_part now[] = {
        {.min_block = 8, .max_block = 8, .rows = 100, .bytes = 4000, .is_active = true}};

    (void)state;
    assert_int_equal(judge(now, 1, 1100, false), HF__UNSURE);
}

static void test_where_only_merged_parts_are_left_the_rows_decide_or_nobody(void **state)
{
    hf__plan_part now[] = {
        {.min_block = 1, .max_block = 9, .rows = 1150, .bytes = 9000, .is_active = true}};

    (void)state;
    assert_int_equal(judge(now, 1, 1150, false), HF__ATTACHED);
    assert_int_equal(judge(now, 1, 1000, false), HF__NOT_ATTACHED);
    assert_int_equal(judge(now, 1, 1170, false), HF__UNSURE);
    assert_int_equal(judge(now, 1, 1150, true), HF__UNSURE);
}

static void test_parts_of_the_same_rows_in_other_files_are_doubted(void **state)
{
    hf__plan_part now[] = {
        {.min_block = 8, .max_block = 8, .rows = 100, .bytes = 4001, .is_active = true},
        {.min_block = 9, .max_block = 9, .rows = 50, .bytes = 2501, .is_active = true}};

    (void)state;
    assert_int_equal(judge(now, 2, 1150, false), HF__ATTACHED);
    assert_int_equal(judge(now, 2, 1150, true), HF__UNSURE);
}

static void test_a_part_that_a_merge_has_made_of_one_may_be_ours(void **state)
{
    hf__plan_part now[] = {
        {.min_block = 8, .max_block = 8, .level = 1, .rows = 33, .bytes = 400, .is_active = true}};

    (void)state;
    assert_int_equal(judge(now, 1, 1033, true), HF__UNSURE);
    assert_int_equal(judge(now, 1, 1033, false), HF__UNSURE);
    assert_int_equal(judge(now, 1, 1000, false), HF__NOT_ATTACHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan_survives_the_store),
        cmocka_unit_test(test_a_damaged_plan_is_refused),
        cmocka_unit_test(test_a_plan_is_made_of_active_parts_by_partition),
        cmocka_unit_test(test_nothing_later_is_not_attached),
        cmocka_unit_test(test_the_same_parts_later_are_attached),
        cmocka_unit_test(test_merged_away_they_are_still_seen_as_long_as_the_server_keeps_them),
        cmocka_unit_test(test_a_strangers_part_is_not_taken_for_ours),
        cmocka_unit_test(test_a_server_that_crashed_half_way_is_doubted),
        cmocka_unit_test(test_where_only_merged_parts_are_left_the_rows_decide_or_nobody),
        cmocka_unit_test(test_parts_of_the_same_rows_in_other_files_are_doubted),
        cmocka_unit_test(test_a_part_that_a_merge_has_made_of_one_may_be_ours),
    };

    return RUN(tests);
}
