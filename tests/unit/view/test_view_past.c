/* Who waited for whom before, from rows alone. */
#include "view_support.h"

#define NOON INT64_C(1700000400000) /* begins a column of ten minutes */

static hf__past past; /* too large for a stack */

/* A refresh in which so many wait for key 1, which 1 holds. */
static void note(int64_t at_ms, int waiters)
{
    hf_lock_list *list = NULL;
    add_holder(&list, 1, 1, HF_EXCLUSIVE);
    add_holder(&list, 2, 1, HF_EXCLUSIVE);
    for (int i = 0; i < waiters; i++)
        add_waiter(&list, 1, 10 + i, HF_EXCLUSIVE, "1");
    hf__view_draft *draft = draft_of(list, NULL);
    draft->seen.taken_ms = at_ms;
    assert_true(hf__past_note(&past, &draft->seen, draft->common));
    drop(draft);
}

static hf__view_draft *show(int64_t at_ms)
{
    hf__view_draft *draft = draft_of(empty_list(), NULL);
    draft->seen.taken_ms = at_ms;
    hf__past_show(&past, draft);
    assert_false(draft->arena.broken);
    return draft;
}

static int clear(void **state)
{
    (void)state;
    hf__past_clear(&past);
    return 0;
}

static void the_moment_in_which_most_waited_is_kept_of_each_minute(void **state)
{
    (void)state;
    note(NOON + 1000, 1);
    note(NOON + 2000, 3);
    note(NOON + 3000, 2);
    note(NOON + 61000, 1);
    note(NOON + 62000, 0);
    hf__view_draft *draft = show(NOON + 63000);
    assert_int_equal(draft->seen.moment_count, 2); /* the newest first */
    assert_int_equal(draft->seen.moments[0].waits->taken_ms, NOON + 61000);
    const hf__snapshot *waits = hf__waits_at(&draft->seen, NOON + 59999);
    assert_ptr_equal(waits, draft->seen.moments[1].waits);
    assert_int_equal(waits->taken_ms, NOON + 2000);
    assert_int_equal(waits->edge_count, 3);
    assert_int_equal(waits->lock_count, 1); /* nobody waited for the other */
    assert_int_equal(waits->locks[0].waiters, 3);
    assert_int_equal(waits->party_count, 4);
    for (size_t i = 0; i < waits->edge_count; i++)
        assert_true(waits->parties[waits->edges[i].holder].root);
    assert_null(hf__waits_at(&draft->seen, NOON - 1));
    drop(draft);
}

static void after_an_hour_ten_minutes_are_one_and_after_a_day_none(void **state)
{
    (void)state;
    note(NOON, 1);
    note(NOON + 120000, 2);
    hf__view_draft *draft = show(NOON + INT64_C(2) * 3600000);
    assert_int_equal(draft->seen.moment_count, 1);
    assert_int_equal(draft->seen.moments[0].waits->taken_ms, NOON + 120000);
    assert_non_null(hf__waits_at(&draft->seen, NOON + 599999));
    drop(draft);
    draft = show(NOON + INT64_C(25) * 3600000);
    assert_int_equal(draft->seen.moment_count, 0);
    drop(draft);
    note(NOON + INT64_C(25) * 3600000, 0); /* takes the place of another column */
}

static void a_crowd_is_cut_and_its_holder_stays(void **state)
{
    (void)state;
    note(NOON, 2000);
    hf__view_draft *draft = show(NOON + 1);
    const hf__snapshot *waits = hf__waits_at(&draft->seen, NOON);
    assert_int_equal(waits->view_count, 500);
    assert_int_equal(waits->locks[0].holders, 1);
    assert_int_equal(waits->edge_count, 499);
    assert_int_equal(waits->waiting, 2000);
    drop(draft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_moment_in_which_most_waited_is_kept_of_each_minute, clear),
        cmocka_unit_test_teardown(after_an_hour_ten_minutes_are_one_and_after_a_day_none, clear),
        cmocka_unit_test_teardown(a_crowd_is_cut_and_its_holder_stays, clear),
    };
    return RUN(tests);
}
