#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "top_support.h"

/* The lines of the tab Waits, each before its first double space. */
static void expect_tree(struct scene *made, const char *expected)
{
    hf__top top;

    finish(made);
    look_at(&top, made);
    press(&top, "2");
    char *rows = rows_of(&top);
    assert_string_equal(rows, expected);
    free(rows);
    hf__top_free(&top);
    scene_free(made);
}

enum { A, B, C, D, E, F };

/* The first so many of a, b, c, …; their indexes are A, B, C, … */
static struct scene *people(int count)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    struct scene *made = scene_new();

    for (int i = 0; i < count; i++)
        add_party(made, names[i], "db1", i + 1);
    return made;
}

struct stay {
    size_t who;
    int64_t ms;
};

/* QUEUE(made, "x", {A, 9}, {B, 5}): A has held x for 9 ms, and B has waited for 5. */
#define QUEUE(made, label, ...)                                                                    \
    add_queue(made, label, (const struct stay[]){__VA_ARGS__},                                     \
              sizeof((const struct stay[]){__VA_ARGS__}) / sizeof(struct stay))

static void add_queue(struct scene *made, const char *label, const struct stay *stays, size_t count)
{
    add_lock(made, label, label[0]);
    hold(made, stays[0].who, stays[0].ms);
    for (size_t i = 1; i < count; i++)
        await(made, stays[i].who, stays[i].ms);
}

static void nobody_waits(void **state)
{
    struct scene *made = people(1);

    (void)state;
    QUEUE(made, "x", {A, 5});
    expect_tree(made, "");
}

static void waiters_stand_below_the_one_who_keeps_them_the_longest_first(void **state)
{
    struct scene *made = people(3);

    (void)state;
    QUEUE(made, "x", {A, 9000}, {B, 2000}, {C, 5000});
    expect_tree(made, "a (1001)|├─ c (1003)|└─ b (1002)");
}

static void whoever_waits_for_a_waiter_stands_below_it(void **state)
{
    struct scene *made = people(4);

    (void)state;
    QUEUE(made, "x", {A, 9000}, {B, 5000}, {D, 4000});
    QUEUE(made, "y", {B, 8000}, {C, 3000});
    expect_tree(made, "a (1001)|├─ b (1002)|│  └─ c (1003)|└─ d (1004)");
}

static void roots_that_keep_more_come_first(void **state)
{
    struct scene *made = people(5);

    (void)state;
    QUEUE(made, "x", {A, 1}, {B, 1});
    QUEUE(made, "y", {C, 1}, {D, 2}, {E, 1});
    expect_tree(made, "c (1003)|├─ d (1004)|└─ e (1005)|a (1001)|└─ b (1002)");
}

static void a_deadlock_comes_first_and_says_where_it_closes(void **state)
{
    struct scene *made = people(6);

    (void)state;
    QUEUE(made, "z", {C, 1}, {D, 1}, {E, 1}, {F, 1});
    QUEUE(made, "x", {A, 1}, {B, 1});
    QUEUE(made, "y", {B, 1}, {A, 1});
    expect_tree(made, "↻ a (1001)|└─ ↻ b (1002)|   └─ ↻ a (1001) closes the deadlock|"
                      "c (1003)|├─ d (1004)|├─ e (1005)|└─ f (1006)");
}

static void whoever_waits_for_several_is_unfolded_once(void **state)
{
    struct scene *made = people(4);

    (void)state;
    add_lock(made, "x", 1);
    hold(made, A, 1);
    hold(made, B, 1);
    await(made, C, 2);
    QUEUE(made, "y", {C, 1}, {D, 1});
    expect_tree(made, "a (1001)|└─ c (1003)|   └─ d (1004)|b (1002)|└─ c (1003) as above");
}

/* Each waiter is behind the holder, and behind those who asked before it. */
static void a_queue_stands_below_its_holder_and_not_below_itself(void **state)
{
    struct scene *made = people(3);

    (void)state;
    QUEUE(made, "x", {A, 9}, {B, 8}, {C, 7});
    add_edge(made, C, B, 0);
    expect_tree(made, "a (1001)|├─ b (1002)|└─ c (1003)");
}

static void whoever_waits_for_somebody_unknown_is_not_forgotten(void **state)
{
    struct scene *made = people(1);

    (void)state;
    add_lock(made, "x", 1); /* a prepared transaction has it */
    await(made, A, 1);
    expect_tree(made, "a (1001)");
}

/* Ten layers of readers that all wait for all of the layer before: far too many paths to walk. */
static void shared_locks_over_shared_locks_stay_small(void **state)
{
    enum { LAYERS = 10, WIDE = 4 };
    struct scene *made = scene_new();
    size_t layer[LAYERS + 1][WIDE];
    hf__top top;

    (void)state;
    for (int i = 0; i <= LAYERS; i++)
        for (int j = 0; j < WIDE; j++)
            layer[i][j] = add_party(made, "r", "db1", i * WIDE + j + 1);
    for (int i = 0; i < LAYERS; i++) {
        add_lock(made, "x", i + 1);
        for (int j = 0; j < WIDE; j++)
            hold(made, layer[i][j], 1);
        for (int j = 0; j < WIDE; j++)
            await(made, layer[i + 1][j], 1);
    }
    finish(made);
    look_at(&top, made);
    press(&top, "2");
    assert_int_equal(made->seen.edge_count, LAYERS * WIDE * WIDE);
    assert_true(top.row_count <= made->seen.party_count + made->seen.edge_count);
    assert_int_equal(top.row_count, WIDE + made->seen.edge_count);
    hf__top_free(&top);
    scene_free(made);
}

static void a_queue_of_ten_thousand_is_no_trouble(void **state)
{
    enum { LONG = 10000 };
    struct scene *made = scene_new();
    size_t before = add_party(made, "first", "db1", 1);
    hf__top top;

    (void)state;
    for (int i = 0; i < LONG; i++) {
        size_t next = add_party(made, "next", "db1", i + 2);
        add_lock(made, "x", i);
        hold(made, before, 1);
        await(made, next, 1);
        before = next;
    }
    finish(made);
    made->seen.parties[0].root = true;
    made->seen.parties[0].kept = LONG;
    look_at(&top, made);
    press(&top, "2G");
    assert_int_equal(top.row_count, LONG + 1);
    char *text = drawn(&top, 80, 24);
    assert_non_null(strstr(text, "10000 deep"));
    free(text);
    hf__top_free(&top);
    scene_free(made);
}

static void a_filter_keeps_whole_trees(void **state)
{
    struct scene *made = people(4);
    hf__top top;

    (void)state;
    made->seen.parties[B].application = "report";
    QUEUE(made, "x", {A, 1}, {B, 1});
    QUEUE(made, "y", {C, 1}, {D, 1});
    finish(made);
    look_at(&top, made);
    press(&top, "2/REP");
    char *rows = rows_of(&top);
    assert_string_equal(rows, "a (1001)|└─ report (1002)");
    free(rows);
    hf__top_free(&top);
    scene_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits),
        cmocka_unit_test(waiters_stand_below_the_one_who_keeps_them_the_longest_first),
        cmocka_unit_test(whoever_waits_for_a_waiter_stands_below_it),
        cmocka_unit_test(roots_that_keep_more_come_first),
        cmocka_unit_test(a_deadlock_comes_first_and_says_where_it_closes),
        cmocka_unit_test(whoever_waits_for_several_is_unfolded_once),
        cmocka_unit_test(a_queue_stands_below_its_holder_and_not_below_itself),
        cmocka_unit_test(whoever_waits_for_somebody_unknown_is_not_forgotten),
        cmocka_unit_test(shared_locks_over_shared_locks_stay_small),
        cmocka_unit_test(a_queue_of_ten_thousand_is_no_trouble),
        cmocka_unit_test(a_filter_keeps_whole_trees),
    };

    return RUN(tests);
}
