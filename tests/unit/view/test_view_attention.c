/* What a person should look at, and in which order. */
#include <stdio.h>
#include <string.h>

#include "view_support.h"

static void worry(hf__view_draft *draft)
{
    const hf__worries none = {.problem = ""};
    draft->seen.has_records = true;
    hf__attention_gather(draft, &none);
    assert_false(draft->arena.broken);
}

static void expect_about(const hf__view_draft *draft, size_t at, int64_t key, const char *text)
{
    assert_true(at < draft->seen.attention_count);
    const hf__attention *item = &draft->seen.attention[at];
    assert_string_equal(item->text, text);
    assert_true(item->lock < draft->seen.lock_count);
    assert_int_equal(draft->seen.locks[item->lock].key, key);
}

/* 100 holds key 1; 101 holds key 2 and waits for key 1; and so on: six wait in a row. */
static void add_chain(hf_lock_list **list)
{
    char blocker[16];
    for (int i = 0; i < 7; i++) {
        (void)snprintf(blocker, sizeof blocker, "%d", 99 + i);
        if (i > 0)
            add_waiter(list, i, 100 + i, HF_EXCLUSIVE, blocker);
        add_holder(list, i + 1, 100 + i, HF_EXCLUSIVE);
    }
}

static void a_crowd_behind_one_lock_comes_before_a_longer_chain(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    add_chain(&list); /* waits for longer than the crowd */
    add_holder(&list, 50, 500, HF_EXCLUSIVE);
    for (int i = 1; i <= 30; i++)
        add_waiter(&list, 50, 500 + i, HF_EXCLUSIVE, "500");
    hf__view_draft *draft = draft_of(list, NULL);
    worry(draft);
    assert_int_equal(draft->seen.attention_count, 2);
    expect_about(
        draft, 0, 50,
        "key 50 keeps 30 waiting, the longest for 1 d 3 h: somebody (backend 500) holds it.");
    expect_about(draft, 1, 1,
                 "key 1 keeps 6 waiting, also through others, the longest for 1 d 3 h: somebody "
                 "(backend 100) holds it.");
    drop(draft);
}

static void readers_who_keep_one_writer_are_one_sentence(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    for (int reader = 1; reader <= 3; reader++)
        add_holder(&list, 9, reader, HF_SHARED);
    add_waiter(&list, 9, 50, HF_EXCLUSIVE, "1,2,3");
    hf__view_draft *draft = draft_of(list, NULL);
    worry(draft);
    assert_int_equal(draft->seen.attention_count, 1);
    assert_non_null(strstr(draft->seen.attention[0].text, "and 2 others hold it"));
    drop(draft);
}

static void a_lock_of_nobody_known_is_told_by_its_waiters(void **state)
{
    hf_lock_list *list = NULL;
    (void)state;
    add_holder(&list, 7, 0, HF_EXCLUSIVE); /* a prepared transaction */
    add_waiter(&list, 7, 10, HF_EXCLUSIVE, "");
    add_waiter(&list, 7, 11, HF_EXCLUSIVE, "");
    hf__view_draft *draft = draft_of(list, NULL);
    worry(draft);
    assert_int_equal(draft->seen.attention_count, 1);
    expect_about(draft, 0, 7, "key 7 keeps 2 waiting, the longest for 1 d 3 h.");
    drop(draft);
}

/* libpq writes "server closed the connection unexpectedly; … processing the request." */
static void the_reason_of_an_outage_ends_with_one_full_stop(void **state)
{
    static hf__memory memory;
    const hf_error why = {.code = HF_UNREACHABLE, .message = "the server went away."};
    (void)state;
    hf__view_draft *draft = draft_of(empty_list(), NULL);
    draft->seen.problem = "";
    hf__snapshot *away = hf__repeat(&memory, &draft->seen, 2, &why);
    assert_non_null(away);
    assert_string_equal(away->problem, "the server went away");
    assert_string_equal(away->attention[0].text, "The store cannot be read: the server went away.");
    hf__snapshot_release(away);
    drop(draft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_behind_one_lock_comes_before_a_longer_chain),
        cmocka_unit_test(readers_who_keep_one_writer_are_one_sentence),
        cmocka_unit_test(a_lock_of_nobody_known_is_told_by_its_waiters),
        cmocka_unit_test(the_reason_of_an_outage_ends_with_one_full_stop),
    };
    return RUN(tests);
}
