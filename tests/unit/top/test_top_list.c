#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "top_support.h"

/* backup is waited for, the others are only held. */
static struct scene *some_locks(void)
{
    struct scene *made = scene_new(40);
    size_t ingest = add_party(made, "ingest", "db1", 1);
    size_t nightly = add_party(made, "nightly", "db2", 2);
    size_t psql = add_party(made, "psql", "laptop", 3);

    add_lock(made, "backup", 30);
    hold(made, nightly, 90000);
    await(made, psql, 61000);
    add_lock(made, "zebra", 10);
    hold(made, ingest, 3600000);
    add_lock(made, "", 77);
    hold(made, ingest, 500);
    add_lock(made, "apple", 20);
    hold(made, psql, 1000);
    finish(made);
    return made;
}

static void expect_rows(const hf__top *top, const char *expected)
{
    char *rows = rows_of(top);

    assert_string_equal(rows, expected);
    free(rows);
}

static void expect_text(char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL)
        fail_msg("no '%s' in:\n%s", wanted, text);
    free(text);
}

static void expect_no_text(char *text, const char *unwanted)
{
    if (strstr(text, unwanted) != NULL)
        fail_msg("'%s' in:\n%s", unwanted, text);
    free(text);
}

static const char *const titles[] = {"LABEL", "HOLDER",  "HOST",  "PID",  "MODE", "HELD",
                                     "WAIT",  "LONGEST", "OWNER", "NAME", "KEY",  NULL};

static void expect_titles(struct scene *made, size_t width, const char *expected)
{
    hf__buf found = {0};
    hf__top top;

    look_at(&top, made);
    char *text = drawn(&top, width, 24);
    char *heading = strstr(text, "LABEL");
    assert_non_null(heading);
    *strchr(heading, '\n') = '\0';
    for (size_t i = 0; titles[i] != NULL; i++)
        if (strstr(heading, titles[i]) != NULL)
            hf__buf_printf(&found, "%s ", titles[i]);
    assert_string_equal(found.data, expected);
    hf__buf_free(&found);
    free(text);
    hf__top_free(&top);
}

static void columns_are_left_out_in_the_stated_order(void **state)
{
    struct scene *made = some_locks();

    (void)state;
    expect_titles(made, 140, "LABEL HOLDER HOST PID MODE HELD WAIT LONGEST OWNER NAME KEY ");
    expect_titles(made, 120, "LABEL HOLDER HOST PID MODE HELD WAIT LONGEST OWNER NAME ");
    expect_titles(made, 80, "LABEL HOLDER HOST MODE HELD WAIT LONGEST OWNER ");
    expect_titles(made, 72, "LABEL HOLDER HOST MODE HELD WAIT LONGEST ");
    expect_titles(made, 60, "LABEL HOLDER HELD WAIT LONGEST ");
    expect_titles(made, 45, "LABEL HOLDER HELD WAIT ");
    expect_titles(made, 30, "LABEL WAIT ");
    expect_titles(made, 15, "LABEL ");
    made->seen.registry = NULL;
    expect_titles(made, 140, "LABEL HOLDER HOST PID MODE HELD WAIT LONGEST KEY ");
    scene_free(made);
}

static void what_is_waited_for_comes_first(void **state)
{
    struct scene *made = some_locks();
    hf__top top;

    (void)state;
    look_at(&top, made);
    expect_rows(&top, "backup|zebra|77|apple");
    hf__top_free(&top);
    scene_free(made);
}

static void s_goes_through_the_columns_and_the_heading_says_which(void **state)
{
    struct scene *made = some_locks();
    hf__top top;

    (void)state;
    look_at(&top, made);
    assert_true(hf__top_choose_sort(&top, "label"));
    hf__top_see(&top, &made->seen);
    expect_rows(&top, "apple|backup|zebra|77"); /* what has no label stands last */
    expect_text(drawn(&top, 120, 24), "LABEL ▲");
    press(&top, "r");
    expect_rows(&top, "zebra|backup|apple|77");
    expect_text(drawn(&top, 120, 24), "LABEL ▼");
    press(&top, "s");
    expect_text(drawn(&top, 120, 24), "HOLDER ▲");
    expect_rows(&top, "zebra|77|backup|apple");
    press(&top, "ssss");
    expect_text(drawn(&top, 120, 24), "HELD ▼");
    expect_rows(&top, "zebra|backup|apple|77");
    expect_text(drawn(&top, 30, 24), "LABEL");
    expect_no_text(drawn(&top, 30, 24), "HELD");
    expect_text(drawn(&top, 60, 24), "HELD ▼");
    press(&top, "sss");
    expect_text(drawn(&top, 60, 24), "by owner ▲"); /* whose column is left out */
    for (int i = 0; i < 3; i++)
        press(&top, "s");
    expect_text(drawn(&top, 120, 24), "LABEL ▲");
    assert_true(hf__top_choose_sort(&top, "-held"));
    hf__top_see(&top, &made->seen);
    expect_rows(&top, "77|apple|backup|zebra");
    assert_false(hf__top_choose_sort(&top, "nonsense"));
    hf__top_free(&top);
    scene_free(made);
}

static void the_filter_works_while_it_is_typed(void **state)
{
    struct scene *made = some_locks();
    hf__top top;

    (void)state;
    look_at(&top, made);
    press(&top, "/");
    expect_text(drawn(&top, 80, 24), "\n/\n");
    press(&top, "PP");
    expect_rows(&top, "apple");
    expect_text(drawn(&top, 80, 24), "\n/PP\n");
    (void)hf__top_press(&top, HF__KEY_BACKSPACE);
    expect_rows(&top, "backup|apple"); /* psql waits for backup */
    (void)hf__top_press(&top, HF__KEY_ENTER);
    expect_text(drawn(&top, 80, 24), "/P\n");
    assert_int_equal(hf__top_press(&top, 'q'), HF__ACT_QUIT); /* typing is over */
    (void)hf__top_press(&top, HF__KEY_ESCAPE);
    expect_rows(&top, "backup|zebra|77|apple");
    press(&top, "/nowhere");
    expect_text(drawn(&top, 80, 24), "Nothing matches the filter.");
    (void)hf__top_press(&top, HF__KEY_ESCAPE);
    expect_rows(&top, "backup|zebra|77|apple");
    hf__top_free(&top);
    scene_free(made);
}

static void a_filter_finds_keys_holders_and_hosts(void **state)
{
    static const char *const found[][2] = {
        {"77", "77"}, {"laptop", "backup|apple"}, {"INGEST", "zebra|77"}, {"zeb", "zebra"}};
    struct scene *made = some_locks();
    hf__top top;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        hf__top_init(&top);
        hf__top_choose_filter(&top, found[i][0]);
        hf__top_see(&top, &made->seen);
        expect_rows(&top, found[i][1]);
        hf__top_free(&top);
    }
    scene_free(made);
}

static void the_chosen_row_stays_chosen_when_others_come_and_go(void **state)
{
    struct scene *before = some_locks(), *after = scene_new(40);
    size_t party = add_party(after, "ingest", "db1", 1);
    hf__buf copied = {0};
    hf__top top;

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
    look_at(&top, before);
    press(&top, "j");
    assert_string_equal(hf__top_copied(&top, &copied), "zebra");
    hf__top_see(&top, &after->seen);
    assert_string_equal(hf__top_copied(&top, &copied), "zebra");
    assert_int_equal(top.standings[HF__TAB_LOCKS].index, 3);
    hf__top_see(&top, &before->seen);
    assert_string_equal(hf__top_copied(&top, &copied), "zebra");
    press(&top, "k"); /* backup, which is not there afterwards: its place is taken */
    hf__top_see(&top, &after->seen);
    assert_string_equal(hf__top_copied(&top, &copied), "new");
    hf__buf_free(&copied);
    hf__top_free(&top);
    scene_free(before);
    scene_free(after);
}

static void nothing_to_see_is_said_in_words(void **state)
{
    static const char *const words[] = {"No advisory lock is held.", "Nobody waits.",
                                        "No network is ingested", "Nothing is recorded."};
    struct scene *made = scene_new(1);
    hf__top top;

    (void)state;
    finish(made);
    look_at(&top, made);
    for (int i = 0; i < 4; i++) {
        char key[2] = {(char)('1' + i), '\0'};
        press(&top, key);
        expect_text(drawn(&top, 80, 24), words[i]);
        press(&top, "jkGgsry/x"); /* and no key is in trouble with it */
        (void)hf__top_press(&top, HF__KEY_ENTER);
        (void)hf__top_press(&top, HF__KEY_PAGE_DOWN);
        (void)hf__top_press(&top, HF__KEY_ESCAPE);
        press(&top, "K");
        assert_int_equal(top.mode, HF__MODE_LIST);
    }
    hf__top_free(&top);
    scene_free(made);
}

static void labels_that_would_break_the_screen_do_not(void **state)
{
    struct scene *made = scene_new(10);
    size_t party = add_party(made, "進行中の作業", "ホスト", 1);
    hf__top top;

    (void)state;
    add_lock(made, "a\033[2J\nb", 1);
    hold(made, party, 1);
    add_lock(made, "深夜のバックアップ作業", 2);
    hold(made, party, 1);
    finish(made);
    look_at(&top, made);
    for (size_t width = 1; width <= 130; width++)
        free(drawn(&top, width, 24)); /* checks that every line has its width */
    expect_text(drawn(&top, 130, 24), "a\\x1b[2J\\nb");
    expect_text(drawn(&top, 130, 24), "深夜のバックアップ作業");
    hf__top_free(&top);
    scene_free(made);
}

static void any_size_of_terminal_will_do(void **state)
{
    struct scene *made = some_locks();
    hf__top top;

    (void)state;
    made->seen.problem = "no route";
    made->seen.problem_since_ms = made->seen.taken_ms - 5000;
    look_at(&top, made);
    for (size_t height = 1; height <= 12; height++)
        for (size_t width = 1; width <= 30; width++) {
            press(&top, "1j");
            free(drawn(&top, width, height));
            (void)hf__top_press(&top, HF__KEY_ENTER);
            free(drawn(&top, width, height));
            press(&top, "h");
            free(drawn(&top, width, height));
            press(&top, "qK");
            free(drawn(&top, width, height));
            (void)hf__top_press(&top, HF__KEY_ESCAPE);
            press(&top, "2");
            free(drawn(&top, width, height));
        }
    expect_text(drawn(&top, 40, 3), "store away for 5s: no route");
    press(&top, "1g");
    expect_text(drawn(&top, 40, 1), "backup");
    hf__top_free(&top);
    scene_free(made);
}

static void pages_follow_the_height(void **state)
{
    enum { MANY = 100 };
    struct scene *made = scene_new(MANY);
    size_t party = add_party(made, "a", "db1", 1);
    char labels[MANY][8];
    hf__buf copied = {0};
    hf__top top;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(labels[i], sizeof labels[i], "l%02d", i);
        add_lock(made, labels[i], i);
        hold(made, party, 1);
    }
    finish(made);
    look_at(&top, made);
    free(drawn(&top, 80, 25));
    size_t page = top.page;
    (void)hf__top_press(&top, HF__KEY_PAGE_DOWN);
    assert_int_equal(top.standings[0].index, page);
    expect_text(drawn(&top, 80, 25), labels[page]);
    expect_no_text(drawn(&top, 80, 25), "l00");
    (void)hf__top_press(&top, HF__KEY_END);
    assert_string_equal(hf__top_copied(&top, &copied), "l99");
    expect_text(drawn(&top, 80, 25), "l99");
    (void)hf__top_press(&top, HF__KEY_PAGE_UP);
    assert_int_equal(top.standings[0].index, MANY - 1 - page);
    (void)hf__top_press(&top, HF__KEY_HOME);
    expect_text(drawn(&top, 80, 25), "l00");
    hf__buf_free(&copied);
    hf__top_free(&top);
    scene_free(made);
}

static void ten_thousand_locks_are_sorted_filtered_and_drawn(void **state)
{
    enum { MANY = 10000 };
    struct scene *made = scene_new(MANY);
    size_t party = add_party(made, "a", "db1", 1);
    char(*labels)[16] = calloc(MANY, sizeof *labels);
    hf__top top;

    (void)state;
    assert_non_null(labels);
    for (int i = 0; i < MANY; i++) {
        snprintf(labels[i], sizeof labels[i], "lock:%05d", (i * 7919) % MANY);
        add_lock(made, labels[i], i);
        hold(made, party, i);
    }
    finish(made);
    look_at(&top, made);
    assert_true(hf__top_choose_sort(&top, "label"));
    for (int i = 0; i < 20; i++) { /* refreshes, each with a frame and a key */
        hf__top_see(&top, &made->seen);
        free(drawn(&top, 120, 40));
        press(&top, "j");
    }
    assert_int_equal(top.row_count, MANY);
    assert_int_equal(top.standings[0].index, 20);
    expect_text(drawn(&top, 120, 40), "lock:00000");
    press(&top, "/09999");
    expect_rows(&top, "lock:09999");
    free(labels);
    hf__top_free(&top);
    scene_free(made);
}

static void a_frame_for_scripts_has_all_rows_and_whole_labels(void **state)
{
    enum { MANY = 200 };
    struct scene *made = scene_new(MANY);
    size_t party = add_party(made, "a", "db1", 1), lines = 0;
    char longest[400];
    hf__top top;

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (int i = 0; i < MANY; i++) {
        add_lock(made, i == 150 ? longest : "short", i);
        hold(made, party, 1);
    }
    finish(made);
    look_at(&top, made);
    char *text = printed(&top, SIZE_MAX);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, MANY + 4); /* store, figures, nothing, heading */
    expect_text(text, longest);
    expect_no_text(printed(&top, 80), longest);
    hf__top_free(&top);
    scene_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_left_out_in_the_stated_order),
        cmocka_unit_test(what_is_waited_for_comes_first),
        cmocka_unit_test(s_goes_through_the_columns_and_the_heading_says_which),
        cmocka_unit_test(the_filter_works_while_it_is_typed),
        cmocka_unit_test(a_filter_finds_keys_holders_and_hosts),
        cmocka_unit_test(the_chosen_row_stays_chosen_when_others_come_and_go),
        cmocka_unit_test(nothing_to_see_is_said_in_words),
        cmocka_unit_test(labels_that_would_break_the_screen_do_not),
        cmocka_unit_test(any_size_of_terminal_will_do),
        cmocka_unit_test(pages_follow_the_height),
        cmocka_unit_test(ten_thousand_locks_are_sorted_filtered_and_drawn),
        cmocka_unit_test(a_frame_for_scripts_has_all_rows_and_whole_labels),
    };

    return RUN(tests);
}
