#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "top_support.h"

static const hf_registry_entry owned = {.name = "zebra", .owner = "zoo"};

/* backup is waited for, the others are only held. */
static int show_some_locks(void **state)
{
    (void)state;
    stage = scene_new();
    size_t ingest = add_party(stage, "ingest", "db1", 1);
    size_t nightly = add_party(stage, "nightly", "db2", 2);
    size_t psql = add_party(stage, "psql", "laptop", 3);

    add_lock(stage, "backup", 30);
    hold(stage, nightly, 90000);
    await(stage, psql, 61000);
    add_lock(stage, "zebra", 10)->entry = &owned;
    hold(stage, ingest, 3600000);
    add_lock(stage, "", 77);
    hold(stage, ingest, 500);
    add_lock(stage, "apple", 20);
    hold(stage, psql, 1000);
    finish(stage);
    look_at(&screen, stage);
    return 0;
}

static void expect_rows(const char *expected)
{
    char *rows = rows_of(&screen);

    assert_string_equal(rows, expected);
    free(rows);
}

static const char *const titles[] = {"LABEL", "HOLDER",  "HOST",  "PID",  "MODE", "HELD",
                                     "WAIT",  "LONGEST", "OWNER", "NAME", "KEY",  NULL};

static void expect_titles(size_t width, const char *expected)
{
    hf__buf found = {0};

    char *text = drawn(&screen, width, 24);
    char *heading = strstr(text, "LABEL");
    assert_non_null(heading);
    *strchr(heading, '\n') = '\0';
    for (size_t i = 0; titles[i] != NULL; i++)
        if (strstr(heading, titles[i]) != NULL)
            hf__buf_printf(&found, "%s ", titles[i]);
    assert_string_equal(found.data, expected);
    hf__buf_free(&found);
    free(text);
}

static void columns_are_left_out_in_the_stated_order(void **state)
{
    (void)state;
    expect_titles(140, "LABEL HOLDER HOST PID MODE HELD WAIT LONGEST OWNER NAME KEY ");
    expect_titles(120, "LABEL HOLDER HOST PID MODE HELD WAIT LONGEST OWNER NAME ");
    expect_titles(80, "LABEL HOLDER HOST MODE HELD WAIT LONGEST OWNER ");
    expect_titles(72, "LABEL HOLDER HOST MODE HELD WAIT LONGEST ");
    expect_titles(60, "LABEL HOLDER HELD WAIT LONGEST ");
    expect_titles(45, "LABEL HOLDER HELD WAIT ");
    expect_titles(30, "LABEL WAIT ");
    expect_titles(15, "LABEL ");
    stage->seen.registry = NULL;
    hf__top_see(&screen, &stage->seen);
    expect_titles(140, "LABEL HOLDER HOST PID MODE HELD WAIT LONGEST KEY ");
}

static void what_is_waited_for_comes_first(void **state)
{
    (void)state;
    expect_rows("backup|zebra|77|apple");
}

static void s_goes_through_the_columns_and_the_heading_says_which(void **state)
{
    (void)state;
    assert_true(hf__top_choose_sort(&screen, "label"));
    hf__top_see(&screen, &stage->seen);
    expect_rows("apple|backup|zebra|77"); /* what has no label stands last */
    expect_text(drawn(&screen, 120, 24), "LABEL ▲");
    press(&screen, "r");
    expect_rows("zebra|backup|apple|77");
    expect_text(drawn(&screen, 120, 24), "LABEL ▼");
    press(&screen, "s");
    expect_text(drawn(&screen, 120, 24), "HOLDER ▲");
    expect_rows("zebra|77|backup|apple");
    press(&screen, "ssss");
    expect_text(drawn(&screen, 120, 24), "HELD ▼");
    expect_rows("zebra|backup|apple|77");
    expect_text(drawn(&screen, 30, 24), "LABEL");
    expect_no_text(drawn(&screen, 30, 24), "HELD");
    expect_text(drawn(&screen, 60, 24), "HELD ▼");
    press(&screen, "sss");
    expect_text(drawn(&screen, 60, 24), "by owner ▲"); /* whose column is left out */
    for (int i = 0; i < 3; i++)
        press(&screen, "s");
    expect_text(drawn(&screen, 120, 24), "LABEL ▲");
    assert_true(hf__top_choose_sort(&screen, "-held"));
    hf__top_see(&screen, &stage->seen);
    expect_rows("77|apple|backup|zebra");
    assert_false(hf__top_choose_sort(&screen, "nonsense"));
}

static void the_filter_works_while_it_is_typed(void **state)
{
    (void)state;
    press(&screen, "/");
    expect_text(drawn(&screen, 80, 24), "\n/\n");
    press(&screen, "PP");
    expect_rows("apple");
    expect_text(drawn(&screen, 80, 24), "\n/PP\n");
    (void)hf__top_press(&screen, HF__KEY_BACKSPACE);
    expect_rows("backup|apple"); /* psql waits for backup */
    (void)hf__top_press(&screen, HF__KEY_ENTER);
    expect_text(drawn(&screen, 80, 24), "/P\n");
    assert_int_equal(hf__top_press(&screen, 'q'), HF__ACT_QUIT); /* typing is over */
    (void)hf__top_press(&screen, HF__KEY_ESCAPE);
    expect_rows("backup|zebra|77|apple");
    press(&screen, "/nowhere");
    expect_text(drawn(&screen, 80, 24), "Nothing matches the filter.");
    (void)hf__top_press(&screen, HF__KEY_ESCAPE);
    expect_rows("backup|zebra|77|apple");
}

static void a_filter_finds_keys_holders_and_hosts(void **state)
{
    static const char *const found[][2] = {
        {"77", "77"}, {"laptop", "backup|apple"}, {"INGEST", "zebra|77"}, {"zeb", "zebra"}};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        hf__top_free(&screen);
        hf__top_init(&screen);
        hf__top_choose_filter(&screen, found[i][0]);
        hf__top_see(&screen, &stage->seen);
        expect_rows(found[i][1]);
    }
}

static void the_chosen_row_stays_chosen_when_others_come_and_go(void **state)
{
    struct scene *after = scene_new();
    size_t party = add_party(after, "ingest", "db1", 1);
    hf__buf copied = {0};

    (void)state;
    add_lock(after, "new", 1);
    hold(after, party, 9);
    await(after, add_party(after, "x", "db1", 9), 5);
    add_lock(after, "another", 2);
    hold(after, party, 9);
    add_lock(after, "apple", 20);
    hold(after, party, 9);
    add_lock(after, "zebra", 10);
    hold(after, party, 9);
    finish(after);
    press(&screen, "j");
    assert_string_equal(hf__top_copied(&screen, &copied), "zebra");
    hf__top_see(&screen, &after->seen);
    assert_string_equal(hf__top_copied(&screen, &copied), "zebra");
    assert_int_equal(screen.standings[HF__TAB_LOCKS].index, 3);
    hf__top_see(&screen, &stage->seen);
    assert_string_equal(hf__top_copied(&screen, &copied), "zebra");
    press(&screen, "k"); /* backup, which is not there afterwards: its place is taken */
    hf__top_see(&screen, &after->seen);
    assert_string_equal(hf__top_copied(&screen, &copied), "new");
    hf__buf_free(&copied);
    scene_free(after);
}

static void nothing_to_see_is_said_in_words(void **state)
{
    static const char *const words[] = {"No advisory lock is held.", "Nobody waits.",
                                        "No network is ingested", "Nothing is recorded."};

    (void)state;
    stage = scene_new();
    finish(stage);
    look_at(&screen, stage);
    for (int i = 0; i < 4; i++) {
        char key[2] = {(char)('1' + i), '\0'};
        press(&screen, key);
        expect_text(drawn(&screen, 80, 24), words[i]);
        press(&screen, "jkGgsry/x"); /* and no key is in trouble with it */
        (void)hf__top_press(&screen, HF__KEY_ENTER);
        (void)hf__top_press(&screen, HF__KEY_PAGE_DOWN);
        (void)hf__top_press(&screen, HF__KEY_ESCAPE);
        press(&screen, "K");
        assert_int_equal(screen.mode, HF__MODE_LIST);
    }
}

static void labels_that_would_break_the_screen_do_not(void **state)
{
    size_t party;

    (void)state;
    stage = scene_new();
    party = add_party(stage, "進行中の作業", "ホスト", 1);
    add_lock(stage, "a\033[2J\nb", 1);
    hold(stage, party, 1);
    add_lock(stage, "深夜のバックアップ作業", 2);
    hold(stage, party, 1);
    finish(stage);
    look_at(&screen, stage);
    for (size_t width = 1; width <= 130; width++)
        free(drawn(&screen, width, 24)); /* checks that every line has its width */
    expect_text(drawn(&screen, 130, 24), "a\\x1b[2J\\nb");
    expect_text(drawn(&screen, 130, 24), "深夜のバックアップ作業");
}

static void any_size_of_terminal_will_do(void **state)
{
    (void)state;
    stage->seen.problem = "no route";
    stage->seen.problem_since_ms = stage->seen.taken_ms - 5000;
    hf__top_see(&screen, &stage->seen);
    for (size_t height = 1; height <= 12; height++)
        for (size_t width = 1; width <= 30; width++) {
            press(&screen, "1j");
            free(drawn(&screen, width, height));
            (void)hf__top_press(&screen, HF__KEY_ENTER);
            free(drawn(&screen, width, height));
            press(&screen, "h");
            free(drawn(&screen, width, height));
            press(&screen, "qK");
            free(drawn(&screen, width, height));
            (void)hf__top_press(&screen, HF__KEY_ESCAPE);
            press(&screen, "2");
            free(drawn(&screen, width, height));
        }
    expect_text(drawn(&screen, 40, 3), "store away for 5s: no route");
    press(&screen, "1g");
    expect_text(drawn(&screen, 40, 1), "backup");
}

static void pages_follow_the_height(void **state)
{
    enum { MANY = 100 };
    size_t party;
    char labels[MANY][8];
    hf__buf copied = {0};

    (void)state;
    stage = scene_new();
    party = add_party(stage, "a", "db1", 1);
    for (int i = 0; i < MANY; i++) {
        snprintf(labels[i], sizeof labels[i], "l%02d", i);
        add_lock(stage, labels[i], i);
        hold(stage, party, 1);
    }
    finish(stage);
    look_at(&screen, stage);
    free(drawn(&screen, 80, 25));
    size_t page = screen.page;
    (void)hf__top_press(&screen, HF__KEY_PAGE_DOWN);
    assert_int_equal(screen.standings[0].index, page);
    expect_text(drawn(&screen, 80, 25), labels[page]);
    expect_no_text(drawn(&screen, 80, 25), "l00");
    (void)hf__top_press(&screen, HF__KEY_END);
    assert_string_equal(hf__top_copied(&screen, &copied), "l99");
    expect_text(drawn(&screen, 80, 25), "l99");
    (void)hf__top_press(&screen, HF__KEY_PAGE_UP);
    assert_int_equal(screen.standings[0].index, MANY - 1 - page);
    (void)hf__top_press(&screen, HF__KEY_HOME);
    expect_text(drawn(&screen, 80, 25), "l00");
    hf__buf_free(&copied);
}

static void ten_thousand_locks_are_sorted_filtered_and_drawn(void **state)
{
    enum { MANY = 10000 };
    size_t party;
    char(*labels)[16] = calloc(MANY, sizeof *labels);

    (void)state;
    stage = scene_new();
    party = add_party(stage, "a", "db1", 1);
    assert_non_null(labels);
    for (int i = 0; i < MANY; i++) {
        snprintf(labels[i], sizeof labels[i], "lock:%05d", (i * 7919) % MANY);
        add_lock(stage, labels[i], i);
        hold(stage, party, i);
    }
    finish(stage);
    look_at(&screen, stage);
    assert_true(hf__top_choose_sort(&screen, "label"));
    for (int i = 0; i < 20; i++) { /* refreshes, each with a frame and a key */
        hf__top_see(&screen, &stage->seen);
        free(drawn(&screen, 120, 40));
        press(&screen, "j");
    }
    assert_int_equal(screen.row_count, MANY);
    assert_int_equal(screen.standings[0].index, 20);
    expect_text(drawn(&screen, 120, 40), "lock:00000");
    press(&screen, "/09999");
    expect_rows("lock:09999");
    free(labels);
}

static void a_frame_for_scripts_has_all_rows_and_whole_labels(void **state)
{
    enum { MANY = 200 };
    size_t party, lines = 0;
    char longest[400];

    (void)state;
    stage = scene_new();
    party = add_party(stage, "a", "db1", 1);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (int i = 0; i < MANY; i++) {
        add_lock(stage, i == 150 ? longest : "short", i);
        hold(stage, party, 1);
    }
    finish(stage);
    look_at(&screen, stage);
    char *text = printed(&screen, SIZE_MAX);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, MANY + 4); /* store, figures, nothing, heading */
    expect_text(text, longest);
    expect_no_text(printed(&screen, 80), longest);
}

/* Room for three of them, without taking the rows' place. */
static void what_needs_attention_has_up_to_three_lines(void **state)
{
    static hf__attention items[] = {
        {HF__URGENCY_PROBLEM, "deadlock", "the worst", "", SIZE_MAX},
        {HF__URGENCY_WARNING, "wait", "a crowd waits", "", SIZE_MAX},
        {HF__URGENCY_WARNING, "wait", "somebody waits", "", SIZE_MAX},
        {HF__URGENCY_WARNING, "gap", "a gap", "", SIZE_MAX},
    };

    (void)state;
    stage->seen.attention = items;
    stage->seen.attention_count = 4;
    expect_text(drawn(&screen, 80, 24), "the worst\na crowd waits\nsomebody waits (and 1 more)\n");
    expect_text(drawn(&screen, 80, 12), "the worst (and 3 more)\n");
}

/* 80 columns: the room goes to the labels before the holders, and what is cut is not blank. */
static void labels_can_be_told_apart_on_a_terminal_of_eighty_columns(void **state)
{
    (void)state;
    stage = scene_new();
    stage->seen.registry = NULL;
    size_t party = add_party(stage, "holdfast run", "ingest-worker-01.example", 1);
    add_lock(stage, "ingest:stellar-mainnet:partition-2026-01", 1);
    hold(stage, party, 61000);
    add_lock(stage, "ingest:stellar-mainnet:partition-2026-02", 2);
    hold(stage, party, 61000);
    finish(stage);
    look_at(&screen, stage);
    char *text = drawn(&screen, 80, 24);
    expect_text(text, "2026-01");
    expect_text(drawn(&screen, 80, 24), "2026-02");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(columns_are_left_out_in_the_stated_order, show_some_locks,
                                        look_away),
        cmocka_unit_test_setup_teardown(what_is_waited_for_comes_first, show_some_locks, look_away),
        cmocka_unit_test_teardown(labels_can_be_told_apart_on_a_terminal_of_eighty_columns,
                                  look_away),
        cmocka_unit_test_setup_teardown(what_needs_attention_has_up_to_three_lines, show_some_locks,
                                        look_away),
        cmocka_unit_test_setup_teardown(s_goes_through_the_columns_and_the_heading_says_which,
                                        show_some_locks, look_away),
        cmocka_unit_test_setup_teardown(the_filter_works_while_it_is_typed, show_some_locks,
                                        look_away),
        cmocka_unit_test_setup_teardown(a_filter_finds_keys_holders_and_hosts, show_some_locks,
                                        look_away),
        cmocka_unit_test_setup_teardown(the_chosen_row_stays_chosen_when_others_come_and_go,
                                        show_some_locks, look_away),
        cmocka_unit_test_teardown(nothing_to_see_is_said_in_words, look_away),
        cmocka_unit_test_teardown(labels_that_would_break_the_screen_do_not, look_away),
        cmocka_unit_test_setup_teardown(any_size_of_terminal_will_do, show_some_locks, look_away),
        cmocka_unit_test_teardown(pages_follow_the_height, look_away),
        cmocka_unit_test_teardown(ten_thousand_locks_are_sorted_filtered_and_drawn, look_away),
        cmocka_unit_test_teardown(a_frame_for_scripts_has_all_rows_and_whole_labels, look_away),
    };

    return RUN(tests);
}
