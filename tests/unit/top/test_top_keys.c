#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "top_support.h"

static struct scene *two_holders(void)
{
    struct scene *made = scene_new(40);
    size_t a = add_party(made, "reader-a", "db1", 11);
    size_t b = add_party(made, "reader-b", "db2", 12);
    size_t c = add_party(made, "writer", "db3", 13);

    add_lock(made, "nightly", 30);
    hold(made, a, 90000);
    hold(made, b, 80000);
    await(made, c, 61000);
    add_lock(made, "t\tb", 31);
    hold(made, b, 5);
    add_event(made, 1, "lost", "nightly", 30);
    add_event(made, 2, "acquired", "nightly", 30);
    add_event(made, 3, "acquired", "gone", 99);
    finish(made);
    return made;
}

static void expect(hf__top *top, const char *wanted)
{
    char *text = drawn(top, 100, 40);

    if (strstr(text, wanted) == NULL)
        fail_msg("no '%s' in:\n%s", wanted, text);
    free(text);
}

static void expect_not(hf__top *top, const char *unwanted)
{
    char *text = drawn(top, 100, 40);

    if (strstr(text, unwanted) != NULL)
        fail_msg("'%s' in:\n%s", unwanted, text);
    free(text);
}

static void tabs_are_reached_by_number_tab_and_arrows(void **state)
{
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    look_at(&top, made);
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++) {
        (void)hf__top_press(&top, '1' + (int32_t)tab);
        assert_int_equal(top.tab, tab);
    }
    (void)hf__top_press(&top, HF__KEY_TAB);
    assert_int_equal(top.tab, HF__TAB_LOCKS);
    (void)hf__top_press(&top, HF__KEY_BACK_TAB);
    assert_int_equal(top.tab, HF__TAB_EVENTS);
    (void)hf__top_press(&top, HF__KEY_RIGHT);
    (void)hf__top_press(&top, HF__KEY_RIGHT);
    assert_int_equal(top.tab, HF__TAB_WAITS);
    (void)hf__top_press(&top, HF__KEY_LEFT);
    assert_int_equal(top.tab, HF__TAB_LOCKS);
    hf__top_free(&top);
    scene_free(made);
}

static void the_head_tells_how_things_stand(void **state)
{
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    made->seen.losses_24h = 3;
    made->seen.gaps = 2;
    made->seen.missing_ledgers = 14;
    look_at(&top, made);
    top.now_ms = made->seen.taken_ms + 65000;
    expect(&top, "postgresql://app@db1:5432/prod");
    expect(&top, "2 held · 1 waiting · longest wait 1m 01s · 3 lost in 24 h · 2 gaps (14 ledgers)");
    expect(&top, "every 2s · 1m 05s old");
    expect_not(&top, "away");
    made->seen.problem = "server closed the connection";
    made->seen.problem_since_ms = top.now_ms - 12000;
    expect(&top, "store away for 12s: server closed the connection");
    hf__top_free(&top);
    scene_free(made);
}

static void space_pauses_and_goes_on(void **state)
{
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    look_at(&top, made);
    assert_int_equal(hf__top_press(&top, ' '), HF__ACT_PAUSE);
    assert_true(top.paused);
    expect(&top, "PAUSED");
    assert_int_equal(hf__top_press(&top, ' '), HF__ACT_PAUSE);
    assert_false(top.paused);
    expect_not(&top, "PAUSED");
    hf__top_free(&top);
    scene_free(made);
}

static void plus_and_minus_stay_within_a_quarter_second_and_a_minute(void **state)
{
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    look_at(&top, made);
    assert_int_equal(hf__top_press(&top, '+'), HF__ACT_REFRESH);
    assert_int_equal(top.refresh_ms, 5000);
    expect(&top, "every 5s");
    press(&top, "++++++++++");
    assert_int_equal(top.refresh_ms, 60000);
    press(&top, "-");
    assert_int_equal(top.refresh_ms, 30000);
    press(&top, "----------");
    assert_int_equal(top.refresh_ms, 250);
    hf__top_free(&top);
    scene_free(made);
}

static void enter_shows_all_that_is_known_of_a_lock(void **state)
{
    static const hf_registry_entry entry = {.name = "nightly-job",
                                            .purpose = "one report at a time",
                                            .owner = "billing",
                                            .runbook = "https://example.org/runbook"};
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    made->seen.locks[0].entry = &entry;
    look_at(&top, made);
    (void)hf__top_press(&top, HF__KEY_ENTER);
    expect(&top, "one report at a time");
    expect(&top, "billing");
    expect(&top, "https://example.org/runbook");
    expect(&top, "Held by: 2");
    expect(&top, "reader-b on db2, pid 1012, backend 12");
    expect(&top, "Waiting: 1");
    expect(&top, "writer on db3");
    expect(&top, "lost by nightly on db1");
    expect_not(&top, "gone");
    (void)hf__top_press(&top, HF__KEY_ESCAPE);
    expect(&top, "HOLDER");
    hf__top_free(&top);
    scene_free(made);
}

static void the_detail_of_a_lock_that_was_freed_says_so(void **state)
{
    struct scene *made = two_holders(), *after = scene_new(5);
    hf__top top;

    (void)state;
    finish(after);
    look_at(&top, made);
    (void)hf__top_press(&top, HF__KEY_ENTER);
    hf__top_see(&top, &after->seen);
    expect(&top, "nightly");
    expect(&top, "free: nobody holds it");
    hf__top_free(&top);
    scene_free(made);
    scene_free(after);
}

static void every_tab_has_details(void **state)
{
    struct scene *made = two_holders();
    hf_range coverage[] = {{1, 40}, {61, 100}}, gaps[] = {{41, 60}};
    hf__seen_network *network = add_network(made, "testnet");
    hf__top top;

    (void)state;
    network->coverage = coverage;
    network->coverage_count = 2;
    network->gaps = gaps;
    network->gap_count = 1;
    network->lag = (hf__maybe){.known = true, .value = -3};
    network->status = (hf__network_status){.exists = true,
                                           .has_coverage = true,
                                           .ranges = 2,
                                           .covered = 80,
                                           .missing = 20,
                                           .latest = {.known = true, .value = 100},
                                           .gaps = {.known = true, .value = 1}};
    look_at(&top, made);
    press(&top, "2");
    (void)hf__top_press(&top, HF__KEY_ENTER);
    expect(&top, "keeps others waiting and waits for nobody");
    expect(&top, "writer on db3, pid 1013, backend 13, for nightly");
    press(&top, "3");
    expect(&top, "██████░░░░██████");
    (void)hf__top_press(&top, HF__KEY_ENTER);
    expect(&top, "41 to 60, 20 ledgers");
    expect(&top, "3 ahead of what the source said last");
    press(&top, "4");
    (void)hf__top_press(&top, HF__KEY_ENTER);
    expect(&top, "lost");
    expect(&top, "History");
    hf__top_free(&top);
    scene_free(made);
}

static void a_holder_is_ended_only_when_the_label_is_typed(void **state)
{
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    look_at(&top, made);
    press(&top, "K");
    assert_int_equal(top.mode, HF__MODE_CONFIRM);
    expect(&top, "reader-a on db1");
    expect(&top, "1 of 2");
    press(&top, "nightlz");
    assert_int_equal(hf__top_press(&top, HF__KEY_ENTER), HF__ACT_NONE);
    expect(&top, "that is not 'nightly': nothing was ended");
    assert_int_equal(top.mode, HF__MODE_CONFIRM);
    (void)hf__top_press(&top, HF__KEY_BACKSPACE);
    assert_int_equal(hf__top_press(&top, HF__KEY_ENTER), HF__ACT_NONE);
    press(&top, "y");
    (void)hf__top_press(&top, HF__KEY_DOWN);
    expect(&top, "reader-b on db2");
    expect(&top, "all 2 locks that it holds");
    assert_int_equal(hf__top_press(&top, HF__KEY_ENTER), HF__ACT_END);
    assert_int_equal(top.victims[top.victim].party, 12);
    assert_int_equal(top.victims[top.victim].key, 30);
    assert_int_equal(top.mode, HF__MODE_LIST);
    hf__top_free(&top);
    scene_free(made);
}

static void an_empty_confirmation_ends_nobody(void **state)
{
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    look_at(&top, made);
    press(&top, "K");
    assert_int_equal(hf__top_press(&top, HF__KEY_ENTER), HF__ACT_NONE);
    (void)hf__top_press(&top, HF__KEY_ESCAPE);
    assert_int_equal(top.mode, HF__MODE_LIST);
    expect(&top, "nothing was ended");
    press(&top, "jK");
    press(&top, "t\\tb"); /* as it is shown */
    assert_int_equal(hf__top_press(&top, HF__KEY_ENTER), HF__ACT_END);
    assert_int_equal(top.victims[top.victim].key, 31);
    hf__top_free(&top);
    scene_free(made);
}

static void a_refresh_does_not_change_whom_a_confirmation_means(void **state)
{
    struct scene *made = two_holders(), *after = scene_new(10);
    hf__top top;

    (void)state;
    add_lock(after, "nightly", 30);
    hold(after, add_party(after, "somebody else", "db9", 99), 1);
    finish(after);
    look_at(&top, made);
    press(&top, "K");
    hf__top_see(&top, &after->seen);
    press(&top, "nightly");
    assert_int_equal(hf__top_press(&top, HF__KEY_ENTER), HF__ACT_END);
    assert_int_equal(top.victims[top.victim].party, 11);
    hf__top_free(&top);
    scene_free(made);
    scene_free(after);
}

static void whoever_holds_nothing_cannot_be_ended(void **state)
{
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    look_at(&top, made);
    press(&top, "2jK");
    assert_int_equal(top.mode, HF__MODE_LIST);
    expect(&top, "it holds nothing");
    press(&top, "4GK"); /* an event of a lock that is free */
    assert_int_equal(top.mode, HF__MODE_LIST);
    expect(&top, "nobody who could be ended holds it");
    hf__top_free(&top);
    scene_free(made);
}

static void help_names_every_key_and_goes_away(void **state)
{
    static const char *const keys[] = {"1 2 3 4", "/",  "space", "+ -", "s ", "enter",
                                       "K ",      "y ", "h ?",   "q ",  NULL};
    struct scene *made = two_holders();
    hf__top top;

    (void)state;
    look_at(&top, made);
    press(&top, "h");
    for (size_t i = 0; keys[i] != NULL; i++)
        expect(&top, keys[i]);
    press(&top, "q");
    assert_int_equal(top.mode, HF__MODE_LIST);
    press(&top, "?");
    assert_int_equal(top.mode, HF__MODE_HELP);
    hf__top_free(&top);
    scene_free(made);
}

static void copied_is_what_it_is_and_not_what_is_shown(void **state)
{
    struct scene *made = two_holders();
    hf__buf copied = {0};
    hf__top top;

    (void)state;
    made->seen.locks[0].label = "";
    look_at(&top, made);
    assert_int_equal(hf__top_press(&top, 'y'), HF__ACT_COPY);
    assert_string_equal(hf__top_copied(&top, &copied), "30");
    press(&top, "j");
    assert_string_equal(hf__top_copied(&top, &copied), "t\tb");
    hf__buf_free(&copied);
    hf__top_free(&top);
    scene_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tabs_are_reached_by_number_tab_and_arrows),
        cmocka_unit_test(the_head_tells_how_things_stand),
        cmocka_unit_test(space_pauses_and_goes_on),
        cmocka_unit_test(plus_and_minus_stay_within_a_quarter_second_and_a_minute),
        cmocka_unit_test(enter_shows_all_that_is_known_of_a_lock),
        cmocka_unit_test(the_detail_of_a_lock_that_was_freed_says_so),
        cmocka_unit_test(every_tab_has_details),
        cmocka_unit_test(a_holder_is_ended_only_when_the_label_is_typed),
        cmocka_unit_test(an_empty_confirmation_ends_nobody),
        cmocka_unit_test(a_refresh_does_not_change_whom_a_confirmation_means),
        cmocka_unit_test(whoever_holds_nothing_cannot_be_ended),
        cmocka_unit_test(help_names_every_key_and_goes_away),
        cmocka_unit_test(copied_is_what_it_is_and_not_what_is_shown),
    };

    return RUN(tests);
}
