/* Who waits for whom, from rows alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view_support.h"

static void chain_has_one_root_that_keeps_all(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    add_holder(&list, 1, 100, HF_EXCLUSIVE);
    add_holder(&list, 2, 200, HF_EXCLUSIVE);
    add_waiter(&list, 1, 200, HF_EXCLUSIVE, "100");
    add_waiter(&list, 2, 300, HF_EXCLUSIVE, "200");
    hf__view_draft *draft = draft_of(list, NULL);
    assert_int_equal(draft->seen.edge_count, 2);
    assert_true(has_edge(draft, 200, 100, 1));
    assert_true(has_edge(draft, 300, 200, 2));
    assert_true(party(draft, 100)->root);
    assert_int_equal(party(draft, 100)->kept, 2);
    assert_int_equal(party(draft, 100)->blocking, 1);
    assert_false(party(draft, 200)->root);
    assert_int_equal(party(draft, 200)->kept, 0);
    assert_int_equal(party(draft, 300)->blockers, 1);
    assert_int_equal(draft->seen.locks[party(draft, 300)->waits_for].key, 2);
    drop(draft);
}

static void writer_waits_for_all_readers_and_each_is_a_root(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    for (int reader = 1; reader <= 3; reader++)
        add_holder(&list, 9, reader, HF_SHARED);
    add_waiter(&list, 9, 50, HF_EXCLUSIVE, "1,2,3");
    add_waiter(&list, 9, 51, HF_SHARED, "");
    hf__view_draft *draft = draft_of(list, NULL);
    assert_int_equal(draft->seen.edge_count, 4);
    assert_true(has_edge(draft, 51, 50, 9)); /* queued behind the writer, not behind readers */
    assert_int_equal(party(draft, 50)->blockers, 3);
    for (int reader = 1; reader <= 3; reader++) {
        assert_true(party(draft, reader)->root);
        assert_int_equal(party(draft, reader)->kept, 2);
    }
    drop(draft);
}

static void who_waits_for_a_lock_of_an_unknown_holder_is_no_root(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    add_holder(&list, 1, 0, HF_EXCLUSIVE); /* a prepared transaction */
    add_waiter(&list, 1, 10, HF_EXCLUSIVE, "");
    add_waiter(&list, 1, 11, HF_EXCLUSIVE, "");
    hf__view_draft *draft = draft_of(list, NULL);
    assert_true(has_edge(draft, 11, 10, 1));
    assert_false(party(draft, 10)->root);
    drop(draft);
}

static void cycle_is_marked_and_who_waits_behind_it_is_not(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    for (int i = 1; i <= 3; i++)
        add_holder(&list, i, i, HF_EXCLUSIVE);
    add_waiter(&list, 2, 1, HF_EXCLUSIVE, "2");
    add_waiter(&list, 3, 2, HF_EXCLUSIVE, "3");
    add_waiter(&list, 1, 3, HF_EXCLUSIVE, "1");
    add_waiter(&list, 1, 4, HF_EXCLUSIVE, "1");
    add_holder(&list, 5, 5, HF_EXCLUSIVE);
    add_waiter(&list, 5, 6, HF_EXCLUSIVE, "5");
    hf__view_draft *draft = draft_of(list, NULL);
    for (int i = 1; i <= 3; i++)
        assert_true(party(draft, i)->in_cycle);
    for (int i = 4; i <= 6; i++)
        assert_false(party(draft, i)->in_cycle);
    assert_true(party(draft, 5)->root);
    assert_false(party(draft, 1)->root);
    drop(draft);
}

static void sessions_of_one_process_are_one_party(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    add_row(&list, (hf_lock_view){.key = 1, .backend_pid = 11, .host = "a", .pid = 77});
    add_row(&list, (hf_lock_view){.key = 2, .backend_pid = 21, .host = "b", .pid = 77});
    add_row(&list, (hf_lock_view){.key = 2,
                                  .backend_pid = 12, /* another session of the first */
                                  .host = "a",
                                  .pid = 77,
                                  .waiting = true,
                                  .blocked_by = "21"});
    hf__view_draft *draft = draft_of(list, NULL);
    assert_int_equal(draft->seen.party_count, 2);
    assert_int_equal(party(draft, 11)->blockers, 1); /* known by the session that holds */
    assert_true(has_edge(draft, 11, 21, 2));
    drop(draft);
}

static void process_that_waits_for_its_own_lock_is_no_deadlock(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    add_row(&list, (hf_lock_view){.key = 1, .backend_pid = 11, .host = "a", .pid = 77});
    add_row(&list, (hf_lock_view){.key = 1,
                                  .backend_pid = 12,
                                  .host = "a",
                                  .pid = 77,
                                  .waiting = true,
                                  .blocked_by = "11"});
    hf__view_draft *draft = draft_of(list, NULL);
    assert_int_equal(draft->seen.edge_count, 0);
    assert_false(party(draft, 11)->in_cycle);
    drop(draft);
}

static void who_is_nobody_has_no_edges(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    add_holder(&list, 1, 0, HF_EXCLUSIVE); /* a prepared transaction */
    add_waiter(&list, 1, 5, HF_EXCLUSIVE, "0");
    add_waiter(&list, 3, 6, HF_EXCLUSIVE, "4711,no number");
    hf__view_draft *draft = draft_of(list, NULL);
    assert_int_equal(draft->seen.party_count, 2);
    assert_int_equal(draft->seen.edge_count, 0);
    for (size_t i = 0; i < draft->seen.view_count; i++)
        if (draft->seen.views[i]->backend_pid == 0)
            assert_int_equal(draft->seen.view_party[i], SIZE_MAX);
    drop(draft);
}

/* ---- many ------------------------------------------------------------------------------------ */

enum { MANY = 10000 };

static void ten_thousand_in_a_chain_are_one_root_and_no_cycle(void **state)
{
    hf_lock_list *list = NULL;
    char before[16];
    (void)state;
    for (int i = 1; i <= MANY; i++)
        add_holder(&list, i, i, HF_EXCLUSIVE);
    for (int i = 2; i <= MANY; i++) {
        (void)snprintf(before, sizeof before, "%d", i - 1);
        add_waiter(&list, i - 1, i, HF_EXCLUSIVE, before);
    }
    hf__view_draft *draft = draft_of(list, NULL);
    assert_int_equal(draft->seen.party_count, MANY);
    assert_int_equal(draft->seen.edge_count, MANY - 1);
    assert_int_equal(party(draft, 1)->kept, MANY - 1);
    for (size_t i = 0; i < draft->seen.party_count; i++)
        assert_false(draft->seen.parties[i].in_cycle);
    drop(draft);
}

static void ten_thousand_in_a_ring_are_one_cycle(void **state)
{
    hf_lock_list *list = NULL;
    char next[16];
    (void)state;
    for (int i = 1; i <= MANY; i++)
        add_holder(&list, i, i, HF_EXCLUSIVE);
    for (int i = 1; i <= MANY; i++) {
        (void)snprintf(next, sizeof next, "%d", i % MANY + 1);
        add_waiter(&list, i % MANY + 1, i, HF_EXCLUSIVE, next);
    }
    hf__view_draft *draft = draft_of(list, NULL);
    for (size_t i = 0; i < draft->seen.party_count; i++) {
        assert_true(draft->seen.parties[i].in_cycle);
        assert_false(draft->seen.parties[i].root);
    }
    drop(draft);
}

static void edges_have_a_bound(void **state)
{
    enum { READERS = 700, WRITERS = 700 };
    hf_lock_list *list = NULL;
    hf__buf all = {0};
    (void)state;
    for (int i = 1; i <= READERS; i++) {
        add_holder(&list, 1, i, HF_SHARED);
        hf__buf_printf(&all, "%s%d", i > 1 ? "," : "", i);
    }
    for (int i = 1; i <= WRITERS; i++)
        add_waiter(&list, 1, READERS + i, HF_EXCLUSIVE, all.data);
    hf__view_draft *draft = draft_of(list, NULL);
    assert_int_equal(draft->seen.edge_count, HF__EDGES_MAX);
    assert_true(party(draft, 1)->root);
    drop(draft);
    hf__buf_free(&all);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void locks_come_by_need_and_their_rows_by_age(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    add_row(&list, (hf_lock_view){.key = 1, .backend_pid = 1, .age_ms = 9000});
    add_row(&list, (hf_lock_view){.key = 2, .backend_pid = 1, .age_ms = 10});
    add_row(&list,
            (hf_lock_view){.key = 2, .backend_pid = 3, .waiting = true, .age_ms = 5, .label = "x"});
    add_row(&list, (hf_lock_view){.key = 2, .backend_pid = 4, .waiting = true, .age_ms = 7});
    add_row(&list, (hf_lock_view){.key = 3, .backend_pid = 1, .age_ms = -1});
    add_row(&list, (hf_lock_view){.key = 1, .space = HF_PAIR, .backend_pid = 1, .age_ms = 50});
    hf__view_draft *draft = draft_of(list, NULL);
    const hf__snapshot *seen = &draft->seen;
    const int64_t keys[] = {2, 1, 1, 3};
    assert_int_equal(seen->lock_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(seen->locks[i].key, keys[i]);
    assert_int_equal(seen->locks[1].space, HF_BIGINT);
    assert_string_equal(seen->locks[0].label, "x");
    assert_int_equal(seen->locks[0].longest_wait_ms, 7);
    assert_int_equal(seen->locks[0].held_ms, 10);
    assert_int_equal(seen->locks[3].held_ms, -1);
    assert_int_equal(seen->locks[3].longest_wait_ms, -1);
    assert_false(seen->views[seen->locks[0].first]->waiting);
    assert_int_equal(seen->views[seen->locks[0].first + 1]->backend_pid, 4);
    assert_int_equal(hf__locks_find(draft, HF_PAIR, 1), 2);
    assert_int_equal(hf__locks_find(draft, HF_PAIR, 3), SIZE_MAX);
    assert_int_equal(seen->held, 4);
    assert_int_equal(seen->waiting, 2);
    drop(draft);
}

static void nothing_at_all_is_fine(void **state)
{
    (void)state;
    hf__view_draft *draft = draft_of(empty_list(), NULL);
    assert_int_equal(draft->seen.lock_count, 0);
    assert_int_equal(hf__locks_find(draft, HF_BIGINT, 0), SIZE_MAX);
    drop(draft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain_has_one_root_that_keeps_all),
        cmocka_unit_test(writer_waits_for_all_readers_and_each_is_a_root),
        cmocka_unit_test(who_waits_for_a_lock_of_an_unknown_holder_is_no_root),
        cmocka_unit_test(cycle_is_marked_and_who_waits_behind_it_is_not),
        cmocka_unit_test(sessions_of_one_process_are_one_party),
        cmocka_unit_test(process_that_waits_for_its_own_lock_is_no_deadlock),
        cmocka_unit_test(who_is_nobody_has_no_edges),
        cmocka_unit_test(ten_thousand_in_a_chain_are_one_root_and_no_cycle),
        cmocka_unit_test(ten_thousand_in_a_ring_are_one_cycle),
        cmocka_unit_test(edges_have_a_bound),
        cmocka_unit_test(locks_come_by_need_and_their_rows_by_age),
        cmocka_unit_test(nothing_at_all_is_fine),
    };
    return RUN(tests);
}
