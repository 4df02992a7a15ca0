/* Which cells a backfill has, and who takes them. */
#include "programs/ingest/backfill/plan.h"

#include "programs/ingest/backfill/backfill.h"
#include "unit.h"

static struct plan plan_of(int64_t from, int64_t to)
{
    hf_range range = {from, to};
    hf__ranges missing = {.items = &range, .count = 1, .capacity = 1};
    struct plan plan;
    assert_true(plan_make(&plan, &missing));
    return plan;
}

static void cells_are_of_one_grid_whatever_the_ranges(void **state)
{
    (void)state;
    hf_range ranges[] = {{250, 255}, {256, 257}, {300, 310}, {511, 512}, {2000, 2001}};
    hf__ranges missing = {.items = ranges, .count = 5, .capacity = 5};
    const int64_t wanted[] = {0, 1, 2, 7};
    struct plan plan;
    assert_true(plan_make(&plan, &missing));
    assert_int_equal(plan.count, 4);
    for (size_t i = 0; i < plan.count; i++)
        assert_int_equal(plan.cells[i].number, wanted[i]);
    struct job job = {.first = 1, .count = 2};
    assert_int_equal(plan_range(&plan, &job).from, 256);
    assert_int_equal(plan_range(&plan, &job).to, 767);
    plan_free(&plan);
}

static void without_missing_ledgers_it_is_over_at_once(void **state)
{
    (void)state;
    hf__ranges none = {0};
    struct plan plan;
    struct job job;
    size_t at = PLAN_NOWHERE;
    assert_true(plan_make(&plan, &none));
    assert_true(plan_is_over(&plan));
    assert_false(plan_next(&plan, &at, 2, &job));
    plan_free(&plan);
}

static void each_cell_is_taken_once(void **state)
{
    (void)state;
    struct plan plan = plan_of(1, 100 * HF__CELL_LEDGERS - 1);
    unsigned char taken[100] = {0};
    size_t at[3] = {PLAN_NOWHERE, PLAN_NOWHERE, PLAN_NOWHERE};
    struct job job;
    for (unsigned turn = 0; plan_next(&plan, &at[turn % 3], 3, &job); turn++) {
        assert_in_range(job.count, 1, PLAN_RUN);
        assert_false(job.wait);
        for (size_t i = 0; i < job.count; i++)
            assert_int_equal(taken[job.first + i]++, 0);
        plan_done(&plan, &job);
    }
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(taken[i], 1);
    assert_true(plan_is_over(&plan));
    plan_free(&plan);
}

static void a_worker_goes_on_where_it_was_and_others_begin_far_from_it(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, 1000 * HF__CELL_LEDGERS - 1);
    size_t first = PLAN_NOWHERE, second = PLAN_NOWHERE;
    struct job job;
    assert_true(plan_next(&plan, &first, 2, &job));
    assert_int_equal(job.first, 0);
    assert_true(plan_next(&plan, &second, 2, &job));
    assert_true(job.first > 400 && job.first < 600);
    assert_true(plan_next(&plan, &first, 2, &job));
    assert_int_equal(job.first, PLAN_RUN);
    plan_free(&plan);
}

static void a_run_never_spans_a_hole(void **state)
{
    (void)state;
    hf_range ranges[] = {{0, 3 * HF__CELL_LEDGERS - 1},
                         {5 * HF__CELL_LEDGERS, 100 * HF__CELL_LEDGERS - 1}};
    hf__ranges missing = {.items = ranges, .count = 2, .capacity = 2};
    struct plan plan;
    size_t at = 0;
    struct job job;
    assert_true(plan_make(&plan, &missing));
    assert_true(plan_next(&plan, &at, 1, &job));
    assert_int_equal(job.count, 3);
    assert_int_equal(plan_range(&plan, &job).to, 3 * HF__CELL_LEDGERS - 1);
    plan_free(&plan);
}

static void busy_cells_come_last_one_by_one_and_are_waited_for(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, 8 * HF__CELL_LEDGERS - 1);
    size_t at = PLAN_NOWHERE;
    struct job job;
    assert_true(plan_next(&plan, &at, 1, &job));
    size_t held = job.count;
    plan_busy(&plan, &job);
    while (plan.todo > 0) {
        assert_true(plan_next(&plan, &at, 1, &job));
        assert_false(job.wait);
        plan_done(&plan, &job);
    }
    for (size_t i = 0; i < held; i++) {
        assert_false(plan_is_over(&plan));
        assert_true(plan_next(&plan, &at, 1, &job));
        assert_true(job.wait);
        assert_int_equal(job.count, 1);
        plan_done(&plan, &job);
    }
    assert_true(plan_is_over(&plan));
    plan_free(&plan);
}

static void a_run_that_failed_comes_back_cell_by_cell(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, 64 * HF__CELL_LEDGERS - 1);
    size_t at = PLAN_NOWHERE;
    struct job failed, job;
    assert_true(plan_next(&plan, &at, 1, &failed));
    assert_int_equal(failed.count, PLAN_RUN);
    plan_return(&plan, &failed);
    at = failed.first;
    for (size_t i = 0; i < failed.count; i++) {
        assert_true(plan_next(&plan, &at, 1, &job));
        assert_int_equal(job.first, failed.first + i);
        assert_int_equal(job.count, 1);
        plan_done(&plan, &job);
    }
    plan_free(&plan);
}

static void what_is_taken_may_come_back_so_it_is_not_over(void **state)
{
    (void)state;
    struct plan plan = plan_of(0, HF__CELL_LEDGERS - 1);
    size_t mine = PLAN_NOWHERE, other = PLAN_NOWHERE;
    struct job job, none;
    assert_true(plan_next(&plan, &mine, 2, &job));
    assert_false(plan_next(&plan, &other, 2, &none));
    assert_false(plan_is_over(&plan));
    plan_done(&plan, &job);
    assert_true(plan_is_over(&plan));
    plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_of_one_grid_whatever_the_ranges),
        cmocka_unit_test(without_missing_ledgers_it_is_over_at_once),
        cmocka_unit_test(each_cell_is_taken_once),
        cmocka_unit_test(a_worker_goes_on_where_it_was_and_others_begin_far_from_it),
        cmocka_unit_test(a_run_never_spans_a_hole),
        cmocka_unit_test(busy_cells_come_last_one_by_one_and_are_waited_for),
        cmocka_unit_test(a_run_that_failed_comes_back_cell_by_cell),
        cmocka_unit_test(what_is_taken_may_come_back_so_it_is_not_over),
    };
    return RUN(tests);
}
