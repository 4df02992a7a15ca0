#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "top_support.h"

static int show_two_holders(void **state)
{
    (void)state;
    stage = scene_new();
    size_t a = add_party(stage, "reader-a", "db1", 11);
    size_t b = add_party(stage, "reader-b", "db2", 12);
    size_t c = add_party(stage, "writer", "db3", 13);
    add_lock(stage, "nightly", 30);
    hold(stage, a, 90000);
    hold(stage, b, 80000);
    await(stage, c, 61000);
    add_lock(stage, "t\tb", 31);
    hold(stage, b, 5);
    add_event(stage, 1, "lost", "nightly", 30);
    add_event(stage, 2, "acquired", "nightly", 30);
    add_event(stage, 3, "acquired", "gone", 99);
    finish(stage);
    look_at(&screen, stage);
    return 0;
}

static void expect(const char *wanted)
{
    expect_text(drawn(&screen, 100, 40), wanted);
}

static void expect_not(const char *unwanted)
{
    expect_no_text(drawn(&screen, 100, 40), unwanted);
}

static void press_key(int32_t key)
{
    (void)hf__top_press(&screen, key);
}

static void tabs_are_reached_by_number_tab_and_arrows(void **state)
{
    (void)state;
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++) {
        press_key('1' + (int32_t)tab);
        assert_int_equal(screen.tab, tab);
    }
    press_key(HF__KEY_TAB);
    assert_int_equal(screen.tab, HF__TAB_LOCKS);
    press_key(HF__KEY_BACK_TAB);
    assert_int_equal(screen.tab, HF__TAB_EVENTS);
    press_key(HF__KEY_RIGHT);
    press_key(HF__KEY_RIGHT);
    assert_int_equal(screen.tab, HF__TAB_WAITS);
    press_key(HF__KEY_LEFT);
    assert_int_equal(screen.tab, HF__TAB_LOCKS);
}

static void the_head_tells_how_things_stand(void **state)
{
    (void)state;
    stage->seen.losses_24h = 3;
    stage->seen.gaps = 2;
    stage->seen.missing_ledgers = 14;
    hf__top_see(&screen, &stage->seen);
    screen.now_ms = stage->seen.taken_ms + 65000;
    expect("postgresql://app@db1:5432/prod");
    expect("2 held · 1 waiting · longest wait 1m 01s · 3 lost in 24 h · 2 gaps (14 ledgers)");
    stage->seen.losses_24h = 0;
    stage->seen.losses_unknown = true;
    expect("2 held · 1 waiting · longest wait 1m 01s · unknown lost in 24 h · 2 gaps (14 ledgers)");
    expect("every 2s · 1m 05s old");
    expect_not("away");
    stage->seen.problem = "server closed the connection";
    stage->seen.problem_since_ms = screen.now_ms - 12000;
    expect("store away for 12s: server closed the connection");
}

static void space_pauses_and_goes_on(void **state)
{
    (void)state;
    assert_int_equal(hf__top_press(&screen, ' '), HF__ACT_PAUSE);
    assert_true(screen.paused);
    expect("PAUSED");
    assert_int_equal(hf__top_press(&screen, ' '), HF__ACT_PAUSE);
    assert_false(screen.paused);
    expect_not("PAUSED");
}

static void plus_and_minus_stay_within_a_quarter_second_and_a_minute(void **state)
{
    (void)state;
    assert_int_equal(hf__top_press(&screen, '+'), HF__ACT_REFRESH);
    assert_int_equal(screen.refresh_ms, 5000);
    expect("every 5s");
    press(&screen, "++++++++++");
    assert_int_equal(screen.refresh_ms, 60000);
    press(&screen, "-");
    assert_int_equal(screen.refresh_ms, 30000);
    press(&screen, "----------");
    assert_int_equal(screen.refresh_ms, 250);
}

static void enter_shows_all_that_is_known_of_a_lock(void **state)
{
    static const hf_registry_entry entry = {.name = "nightly-job",
                                            .purpose = "one report at a time",
                                            .owner = "billing",
                                            .runbook = "https://example.org/runbook"};

    (void)state;
    stage->seen.locks[0].entry = &entry;
    hf__top_see(&screen, &stage->seen);
    press_key(HF__KEY_ENTER);
    expect("one report at a time");
    expect("billing");
    expect("https://example.org/runbook");
    expect("Held by: 2");
    expect("reader-b on db2, pid 1012, backend 12");
    expect("Waiting: 1");
    expect("writer on db3");
    expect("lost by nightly on db1");
    expect_not("gone");
    press_key(HF__KEY_ESCAPE);
    expect("HOLDER");
}

static void the_detail_of_a_lock_that_was_freed_says_so(void **state)
{
    struct scene *after = scene_new();

    (void)state;
    finish(after);
    press_key(HF__KEY_ENTER);
    hf__top_see(&screen, &after->seen);
    expect("nightly");
    expect("free: nobody holds it");
    scene_free(after);
}

static void every_tab_has_details(void **state)
{
    hf_range coverage[] = {{1, 40}, {61, 100}}, gaps[] = {{41, 60}};
    hf__seen_network *network = add_network(stage, "testnet");

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
    hf__top_see(&screen, &stage->seen);
    press(&screen, "2");
    press_key(HF__KEY_ENTER);
    expect("keeps others waiting and waits for nobody");
    expect("writer on db3, pid 1013, backend 13, for nightly");
    press(&screen, "3");
    expect("██████░░░░██████");
    press_key(HF__KEY_ENTER);
    expect("41 to 60, 20 ledgers");
    expect("3 ahead of what the source said last");
    press(&screen, "4");
    press_key(HF__KEY_ENTER);
    expect("lost");
    expect("History");
}

static void a_holder_is_ended_only_when_the_label_is_typed(void **state)
{
    (void)state;
    press(&screen, "K");
    assert_int_equal(screen.mode, HF__MODE_CONFIRM);
    expect("reader-a on db1");
    expect("1 of 2");
    press(&screen, "nightlz");
    assert_int_equal(hf__top_press(&screen, HF__KEY_ENTER), HF__ACT_NONE);
    expect("that is not 'nightly': nothing was ended");
    assert_int_equal(screen.mode, HF__MODE_CONFIRM);
    press_key(HF__KEY_BACKSPACE);
    assert_int_equal(hf__top_press(&screen, HF__KEY_ENTER), HF__ACT_NONE);
    press(&screen, "y");
    press_key(HF__KEY_DOWN);
    expect("reader-b on db2");
    expect("all 2 locks that it holds");
    assert_int_equal(hf__top_press(&screen, HF__KEY_ENTER), HF__ACT_END);
    assert_int_equal(screen.victims[screen.victim].party, 12);
    assert_int_equal(screen.victims[screen.victim].key, 30);
    assert_int_equal(screen.mode, HF__MODE_LIST);
}

static void an_empty_confirmation_ends_nobody(void **state)
{
    (void)state;
    press(&screen, "K");
    assert_int_equal(hf__top_press(&screen, HF__KEY_ENTER), HF__ACT_NONE);
    press_key(HF__KEY_ESCAPE);
    assert_int_equal(screen.mode, HF__MODE_LIST);
    expect("nothing was ended");
    press(&screen, "jK");
    press(&screen, "t\\tb"); /* as it is shown */
    assert_int_equal(hf__top_press(&screen, HF__KEY_ENTER), HF__ACT_END);
    assert_int_equal(screen.victims[screen.victim].key, 31);
}

static void a_refresh_does_not_change_whom_a_confirmation_means(void **state)
{
    struct scene *after = scene_new();

    (void)state;
    add_lock(after, "nightly", 30);
    hold(after, add_party(after, "somebody else", "db9", 99), 1);
    finish(after);
    press(&screen, "K");
    hf__top_see(&screen, &after->seen);
    press(&screen, "nightly");
    assert_int_equal(hf__top_press(&screen, HF__KEY_ENTER), HF__ACT_END);
    assert_int_equal(screen.victims[screen.victim].party, 11);
    scene_free(after);
}

static void whoever_holds_nothing_cannot_be_ended(void **state)
{
    (void)state;
    press(&screen, "2jK");
    assert_int_equal(screen.mode, HF__MODE_LIST);
    expect("it holds nothing");
    press(&screen, "4GK"); /* an event of a lock that is free */
    assert_int_equal(screen.mode, HF__MODE_LIST);
    expect("nobody who could be ended holds it");
}

static void help_names_every_key_and_goes_away(void **state)
{
    static const char *const keys[] = {"1 2 3 4", "/",  "space", "+ -", "s ", "enter",
                                       "K ",      "y ", "h ?",   "q ",  NULL};

    (void)state;
    press(&screen, "h");
    for (size_t i = 0; keys[i] != NULL; i++)
        expect(keys[i]);
    press(&screen, "q");
    assert_int_equal(screen.mode, HF__MODE_LIST);
    press(&screen, "?");
    assert_int_equal(screen.mode, HF__MODE_HELP);
}

static void copied_is_what_it_is_and_not_what_is_shown(void **state)
{
    hf__buf copied = {0};

    (void)state;
    stage->seen.locks[0].label = "";
    hf__top_see(&screen, &stage->seen);
    assert_int_equal(hf__top_press(&screen, 'y'), HF__ACT_COPY);
    assert_string_equal(hf__top_copied(&screen, &copied), "30");
    press(&screen, "j");
    assert_string_equal(hf__top_copied(&screen, &copied), "t\tb");
    hf__buf_free(&copied);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, show_two_holders, look_away)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tabs_are_reached_by_number_tab_and_arrows),
        TEST(the_head_tells_how_things_stand),
        TEST(space_pauses_and_goes_on),
        TEST(plus_and_minus_stay_within_a_quarter_second_and_a_minute),
        TEST(enter_shows_all_that_is_known_of_a_lock),
        TEST(the_detail_of_a_lock_that_was_freed_says_so),
        TEST(every_tab_has_details),
        TEST(a_holder_is_ended_only_when_the_label_is_typed),
        TEST(an_empty_confirmation_ends_nobody),
        TEST(a_refresh_does_not_change_whom_a_confirmation_means),
        TEST(whoever_holds_nothing_cannot_be_ended),
        TEST(help_names_every_key_and_goes_away),
        TEST(copied_is_what_it_is_and_not_what_is_shown),
    };

    return RUN(tests);
}
