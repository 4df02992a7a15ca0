#include "unit.h"

#include <string.h>

#include "programs/append/plan.h"

/* A plan of one partition with two parts, as it stands in the store. */
static const char one_partition[] = "2 1700000000 1600000000 m5\nall 7 100:40/9/1:,50:25/8/1:\n";

/* Parts of the table that could be ours, by their files. */
#define FIRST(block)                                                                               \
    {                                                                                              \
        .min_block = (block), .max_block = (block), .rows = 100, .files = "40/9/1"                 \
    }
#define SECOND(block)                                                                              \
    {                                                                                              \
        .min_block = (block), .max_block = (block), .rows = 50, .files = "25/8/1"                  \
    }
#define OTHER(block)                                                                               \
    {                                                                                              \
        .min_block = (block), .max_block = (block), .rows = 33, .files = "40/9/1"                  \
    }

static hf__plan parsed(const char *text)
{
    hf__plan plan;
    hf_error err;

    if (hf__plan_parse(text, &plan, &err) != HF_OK)
        fail_msg("%s", err.message);
    return plan;
}

/* All parts are active, unless something covers them. */
static hf__verdict judge(hf__plan_part *now, size_t count, const hf__evidence *evidence)
{
    hf__plan plan = parsed(one_partition);
    const hf__parts parts = {.items = now, .count = count};

    for (size_t i = 0; i < count; i++)
        strcpy(now[i].partition, "all");
    hf__verdict verdict = hf__plan_judge(&plan, &plan.partitions[0], &parts, evidence);
    hf__plan_free(&plan);
    return verdict;
}

static void activate(hf__plan_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        parts[i].is_active = true;
}

static const hf__evidence sizes = {.is_at_once = true}, answered = {.is_answered = true},
                          checksums = {.is_at_once = true, .has_checksums = true},
                          altered = {.is_at_once = true, .is_altered = true};

static void test_a_plan_survives_the_store(void **state)
{
    static const char text[] = "2 17 16 0123-uuid\n202001 3 5:7/7:\n"
                               "202002-1 0 1:2:AB,3:4:CD,5:6:EF\n";
    hf__plan plan = parsed(text);
    hf__buf again = {0};

    (void)state;
    assert_int_equal(plan.partition_count, 2);
    assert_int_equal(plan.part_count, 4);
    assert_int_equal(plan.rows, 14);
    assert_int_equal(plan.partitions[1].first, 1);
    assert_int_equal(plan.partitions[1].rows, 9);
    assert_string_equal(plan.parts[2].block_id, "CD");
    assert_string_equal(plan.table_mark, "0123-uuid");
    hf__plan_write(&plan, &again);
    assert_string_equal(again.data, text);
    assert_int_equal(hf__plan_least_block(&plan), 0);
    hf__buf_free(&again);
    hf__plan_free(&plan);
}

static void test_a_damaged_plan_is_refused(void **state)
{
    static const char *const damaged[] = {"",
                                          "all 7 1000 100:4000\n", /* an earlier version's */
                                          "3 1 1 m\n",
                                          "2 1 1 m",
                                          "2 1 1 m\nall",
                                          "2 1 1 m\nall 7",
                                          "2 1 1 m\nall 7 100:40:",
                                          "2 1 1 m\nall 7 \n",
                                          "2 1 1 m\nall x 1:2:\n",
                                          "2 1 1 m\nall 7 100:4000\n",
                                          "2 1 1 m\nall 7 100:40:,\n"};
    hf__plan plan;

    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++)
        assert_int_equal(hf__plan_parse(damaged[i], &plan, NULL), HF_BAD_DATA);
    assert_int_equal(hf__plan_parse("2 1 1 m\n", &plan, NULL), HF_OK);
    assert_int_equal(plan.partition_count, 0);
}

static void test_a_plan_is_made_of_active_parts_by_partition(void **state)
{
    hf__plan_part parts[] = {{.partition = "a", .rows = 5, .is_active = true},
                             {.partition = "a", .rows = 9},
                             {.partition = "b", .rows = 6, .is_active = true}};
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
    hf__plan_part now[] = {FIRST(7)};

    (void)state;
    activate(now, 1);
    assert_int_equal(judge(NULL, 0, &sizes), HF__NOT_ATTACHED);
    assert_int_equal(judge(now, 1, &sizes), HF__NOT_ATTACHED);
    assert_int_equal(judge(now, 1, &altered), HF__UNSURE);
}

static void test_what_is_not_there_may_have_been_dropped_unless_older_is_left(void **state)
{
    const hf__evidence later = {.is_same_run = true}, restarted = {.started = 1700000002};
    const hf__evidence at_once = {.started = 1700000001},
                       back = {.started = 1700000002, .is_clock_back = true};
    hf__plan_part before[] = {OTHER(7)}, behind[] = {OTHER(8)}, ours[] = {FIRST(8)};

    (void)state;
    activate(before, 1);
    activate(behind, 1);
    activate(ours, 1);
    before[0].modified = 1700000000; /* the second of the look */
    assert_int_equal(judge(NULL, 0, &later), HF__UNSURE);
    assert_int_equal(judge(behind, 1, &later), HF__UNSURE);
    assert_int_equal(judge(before, 1, &later), HF__NOT_ATTACHED);
    assert_int_equal(judge(before, 1, &restarted), HF__NOT_ATTACHED);
    assert_int_equal(judge(before, 1, &at_once), HF__UNSURE);
    assert_int_equal(judge(before, 1, &back), HF__UNSURE);
    before[0].modified--;
    assert_int_equal(judge(before, 1, &at_once), HF__NOT_ATTACHED);
    assert_int_equal(judge(before, 1, &back), HF__UNSURE);
    before[0].modified = INT64_MAX; /* a restarted server has given the number again */
    assert_int_equal(judge(before, 1, &restarted), HF__UNSURE);
    before[0].is_active = false;
    assert_int_equal(judge(before, 1, &later), HF__UNSURE);
    const hf__evidence sure = {.has_checksums = true};
    assert_int_equal(judge(ours, 1, &sure), HF__PARTLY); /* the other part would be gone as well */
}

static void test_equal_files_are_proof_only_with_checksums_or_an_answer(void **state)
{
    hf__plan_part now[] = {FIRST(8), SECOND(9)};

    (void)state;
    activate(now, 2);
    assert_int_equal(judge(now, 2, &checksums), HF__ATTACHED);
    assert_int_equal(judge(now, 2, &answered), HF__ATTACHED);
    assert_int_equal(judge(now, 2, &sizes), HF__UNSURE);
}

static void test_merged_away_they_are_still_seen_as_long_as_the_server_keeps_them(void **state)
{
    hf__plan_part now[] = {
        FIRST(8), SECOND(9), {.min_block = 1, .max_block = 9, .rows = 900, .level = 1}};

    (void)state;
    activate(now + 2, 1);
    assert_int_equal(judge(now, 3, &checksums), HF__ATTACHED);
    now[2].is_active = false; /* dropped, or ATTACH was taken back */
    assert_int_equal(judge(now, 3, &checksums), HF__UNSURE);
}

static void test_a_strangers_part_is_not_taken_for_ours(void **state)
{
    hf__plan_part now[] = {OTHER(8), OTHER(9)};

    (void)state;
    activate(now, 2);
    assert_int_equal(judge(now, 2, &sizes), HF__NOT_ATTACHED);
    assert_int_equal(judge(now, 2, &checksums), HF__NOT_ATTACHED);
}

static void test_rows_that_were_read_tell_parts_of_equal_size_apart(void **state)
{
    hf__plan plan = parsed(one_partition);
    hf__plan_part now[] = {FIRST(8), SECOND(9)};
    const hf__parts parts = {.items = now, .count = 2};

    (void)state;
    activate(now, 2);
    for (size_t i = 0; i < 2; i++) {
        strcpy(now[i].partition, "all");
        now[i].has_sum = plan.parts[i].has_sum = true;
        now[i].sum = plan.parts[i].sum = 5 + i;
    }
    assert_int_equal(hf__plan_judge(&plan, &plan.partitions[0], &parts, &sizes), HF__ATTACHED);
    now[0].sum = 99;
    assert_int_equal(hf__plan_judge(&plan, &plan.partitions[0], &parts, &sizes), HF__PARTLY);
    now[1].sum = 98;
    assert_int_equal(hf__plan_judge(&plan, &plan.partitions[0], &parts, &sizes), HF__NOT_ATTACHED);
    hf__plan_free(&plan);
}

static void test_a_server_that_crashed_half_way_is_told_part_by_part(void **state)
{
    hf__plan_part now[] = {FIRST(8)};

    (void)state;
    activate(now, 1);
    assert_int_equal(judge(now, 1, &checksums), HF__PARTLY);
}

static void test_a_merged_part_hides_what_the_server_no_longer_shows(void **state)
{
    hf__plan_part now[] = {
        {.min_block = 1, .max_block = 9, .rows = 1150, .level = 1}, OTHER(8), OTHER(9)};

    (void)state;
    activate(now, 1);
    assert_int_equal(judge(now, 1, &checksums), HF__UNSURE);
    assert_int_equal(judge(now, 2, &checksums), HF__UNSURE);
    assert_int_equal(judge(now, 3, &checksums), HF__NOT_ATTACHED);
}

static void test_a_mutated_part_or_one_that_was_merged_alone_may_be_ours(void **state)
{
    hf__plan_part now[] = {OTHER(8), OTHER(8)};

    (void)state;
    activate(now, 1);
    now[0].is_mutated = true;
    assert_int_equal(judge(now, 1, &checksums), HF__UNSURE);
    assert_int_equal(judge(now, 2, &checksums), HF__NOT_ATTACHED);
    now[0].is_mutated = false;
    now[0].level = 1;
    assert_int_equal(judge(now, 1, &checksums), HF__UNSURE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan_survives_the_store),
        cmocka_unit_test(test_a_damaged_plan_is_refused),
        cmocka_unit_test(test_a_plan_is_made_of_active_parts_by_partition),
        cmocka_unit_test(test_nothing_later_is_not_attached),
        cmocka_unit_test(test_what_is_not_there_may_have_been_dropped_unless_older_is_left),
        cmocka_unit_test(test_equal_files_are_proof_only_with_checksums_or_an_answer),
        cmocka_unit_test(test_merged_away_they_are_still_seen_as_long_as_the_server_keeps_them),
        cmocka_unit_test(test_a_strangers_part_is_not_taken_for_ours),
        cmocka_unit_test(test_rows_that_were_read_tell_parts_of_equal_size_apart),
        cmocka_unit_test(test_a_server_that_crashed_half_way_is_told_part_by_part),
        cmocka_unit_test(test_a_merged_part_hides_what_the_server_no_longer_shows),
        cmocka_unit_test(test_a_mutated_part_or_one_that_was_merged_alone_may_be_ours),
    };

    return RUN(tests);
}
