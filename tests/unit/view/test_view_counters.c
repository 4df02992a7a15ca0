/* What is counted, what is remembered over time, and the memory of snapshots. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/registry/registry.h"
#include "lib/transactions/transactions.h"
#include "local/local_store.h"
#include "view_support.h"

static const char locks_yaml[] = "version: 1\n"
                                 "locks:\n"
                                 "  - { name: one, key: { fixed: 5001 }, histogram: true }\n"
                                 "  - { name: two, key: { fixed: 5002 } }\n";

static hf_registry *read_registry(void)
{
    hf_registry *registry = NULL;
    hf__findings findings = {0};
    hf_error err = {0};
    assert_int_equal(hf__registry_examine_text("locks.yaml", locks_yaml, strlen(locks_yaml),
                                               &registry, &findings, &err),
                     HF_OK);
    assert_int_equal(findings.count, 0);
    hf__findings_free(&findings);
    assert_non_null(registry);
    return registry;
}

/* ---- counters -------------------------------------------------------------------------------- */

static void count(hf__counters *counters, const hf_registry *registry, const char *lock,
                  hf__seen_event event)
{
    const hf__kept_event kept = {.event = event, .entry = hf_registry_find(registry, lock)};
    hf__counters_add(counters, &kept);
}

#define EVENT(why, ...) ((hf__seen_event){.label = "", .detail = (why), __VA_ARGS__})

static void events_are_counted_under_their_registered_name(void **state)
{
    hf_registry *registry = read_registry();
    hf__counters counters;
    (void)state;
    assert_true(hf__counters_init(&counters, registry));
    assert_int_equal(counters.lock_count, 3);
    count(&counters, registry, "one", EVENT("", .event = "acquired", .wait_ms = 3));
    count(&counters, registry, "two", EVENT("", .event = "conflict", .wait_ms = 3));
    count(&counters, registry, "two", EVENT("no_answer", .event = "lost", .hold_ms = 1));
    count(&counters, registry, "nobody's", EVENT("", .event = "timeout", .wait_ms = 3));
    count(&counters, registry, "nobody's", EVENT("a new reason", .event = "lost"));
    count(&counters, registry, "one", EVENT("time_limit", .event = "exit"));
    count(&counters, registry, "one", EVENT("", .event = "something else"));
    assert_int_equal(counters.locks[0].outcomes[HF__OUTCOME_acquired], 1);
    assert_int_equal(counters.locks[0].exits[HF__EXIT_time_limit], 1);
    assert_int_equal(counters.locks[1].outcomes[HF__OUTCOME_conflict], 1);
    assert_int_equal(counters.locks[1].losses[HF__LOSS_no_answer], 1);
    assert_string_equal(counters.locks[2].lock, HF__OTHER);
    assert_int_equal(counters.locks[2].outcomes[HF__OUTCOME_timeout], 1);
    assert_int_equal(counters.locks[2].losses[HF__LOSS_other], 1);
    hf__counters_free(&counters);
    hf_registry_free(registry);
}

static void histograms_are_kept_where_the_registry_asks(void **state)
{
    hf_registry *registry = read_registry();
    hf__counters counters;
    (void)state;
    assert_true(hf__counters_init(&counters, registry));
    count(&counters, registry, "one", EVENT("", .event = "acquired", .wait_ms = 0, .hold_ms = -1));
    count(&counters, registry, "one", EVENT("", .event = "acquired", .wait_ms = 1, .hold_ms = -1));
    count(&counters, registry, "one", EVENT("", .event = "timeout", .wait_ms = 2, .hold_ms = -1));
    count(&counters, registry, "one", EVENT("", .event = "acquired", .wait_ms = -1, .hold_ms = -1));
    count(&counters, registry, "one",
          EVENT("", .event = "released", .wait_ms = -1, .hold_ms = 700000));
    count(&counters, registry, "two", EVENT("", .event = "acquired", .wait_ms = 0, .hold_ms = -1));
    const hf__lock_meter *one = &counters.locks[0];
    assert_true(one->has_histogram);
    assert_int_equal(one->wait.buckets[0], 2); /* a bound belongs to its bucket */
    assert_int_equal(one->wait.buckets[1], 1);
    assert_int_equal(one->wait.count, 3);
    assert_true(one->wait.sum > 0.0029 && one->wait.sum < 0.0031);
    assert_int_equal(one->hold.buckets[HF__HISTOGRAM_BUCKETS], 1);
    assert_int_equal(counters.locks[1].wait.count, 0);
    hf__counters_free(&counters);
    hf_registry_free(registry);
}

static void tables_beyond_the_cap_are_counted_together(void **state)
{
    hf__counters counters;
    char name[32];
    (void)state;
    assert_true(hf__counters_init(&counters, NULL));
    for (int i = 0; i < HF__TABLE_METERS + 50; i++) {
        (void)snprintf(name, sizeof name, "db.t%d", i);
        const hf__kept_event kept = {.event = {.event = "appended", .label = name, .detail = "10"}};
        hf__counters_add(&counters, &kept);
        hf__counters_add(&counters, &kept);
    }
    hf__view_draft *draft = draft_of(empty_list(), NULL);
    hf__counters_show(&counters, draft);
    assert_int_equal(draft->seen.table_meter_count, HF__TABLE_METERS + 1);
    assert_int_equal(draft->seen.table_meters[0].rows, 20);
    assert_string_equal(draft->seen.table_meters[HF__TABLE_METERS].table, HF__OTHER);
    assert_int_equal(draft->seen.table_meters[HF__TABLE_METERS].rows, 1000);
    drop(draft);
    hf__counters_free(&counters);
}

static void meters_say_what_is_held_now(void **state)
{
    hf_registry *registry = read_registry();
    hf__counters counters;
    hf_lock_list *list = NULL;
    (void)state;
    assert_true(hf__counters_init(&counters, registry));
    add_row(&list, (hf_lock_view){.key = 5001, .backend_pid = 1, .age_ms = 400, .name = "one"});
    add_row(&list,
            (hf_lock_view){
                .key = 8, .backend_pid = 2, .mode = HF_SHARED, .age_ms = 9, .age_is_bound = true});
    add_row(&list, (hf_lock_view){.key = 8, .backend_pid = 3, .waiting = true, .age_ms = 70});
    hf__view_draft *draft = draft_of(list, registry);
    draft->seen.taken_ms = 1000000;
    hf__counters_show(&counters, draft);
    const hf__lock_meter *meters = draft->seen.meters;
    assert_int_equal(draft->seen.meter_count, 3);
    assert_int_equal(meters[0].held[HF_EXCLUSIVE], 1);
    assert_int_equal(meters[0].acquired_ms, 999600);
    assert_int_equal(meters[1].held[HF_EXCLUSIVE] + meters[1].held[HF_SHARED], 0);
    assert_int_equal(meters[2].held[HF_SHARED], 1);
    assert_int_equal(meters[2].acquired_ms, 0); /* at most so old: nobody knows */
    assert_int_equal(meters[2].waiters, 1);
    assert_int_equal(meters[2].longest_wait_ms, 70);
    drop(draft);
    hf__counters_free(&counters);
    hf_registry_free(registry);
}

/* ---- history --------------------------------------------------------------------------------- */

#define NOON INT64_C(1700000400000) /* begins a column of ten minutes */

/* A refresh at that time, in which one lock had so many holders and waiters. */
static void note(hf__history *history, int64_t at_ms, unsigned held, unsigned waiters)
{
    hf__lock_meter meters[] = {
        {.lock = "one", .held = {held, 0}, .waiters = waiters, .longest_wait_ms = waiters * 10},
        {.lock = HF__OTHER},
    };
    const hf__snapshot seen = {.taken_ms = at_ms, .meters = meters, .meter_count = 2};
    assert_true(hf__history_note(history, &seen));
}

static hf__view_draft *show(const hf__history *history)
{
    static hf__lock_meter meters[] = {{.lock = "one"}, {.lock = HF__OTHER}};
    hf__view_draft *draft = draft_of(empty_list(), NULL);
    draft->seen.meters = meters;
    draft->seen.meter_count = 2;
    hf__history_show(history, draft);
    return draft;
}

static void minutes_and_ten_minutes_keep_the_worst(void **state)
{
    hf__history history;
    (void)state;
    assert_true(hf__history_init(&history, 2));
    note(&history, NOON, 1, 0);
    note(&history, NOON + 1000, 1, 4);
    note(&history, NOON + 2000, 0, 0);
    note(&history, NOON + 60000, 1, 2);
    hf__view_draft *draft = show(&history);
    const hf__heat_map *hour = &draft->seen.hour, *day = &draft->seen.day;
    assert_int_equal(hour->count, 1); /* the other has nothing to show */
    assert_string_equal(hour->rows[0].lock, "one");
    assert_int_equal(hour->columns, 60);
    assert_int_equal(hour->from_ms + 59 * hour->step_ms, NOON + 60000);
    const hf__heat_cell *before = &hour->rows[0].cells[58], *now = &hour->rows[0].cells[59];
    assert_int_equal(before->samples, 3);
    assert_int_equal(before->held, 2);
    assert_int_equal(before->waiters, 4);
    assert_int_equal(before->longest_wait_ms, 40);
    assert_int_equal(now->samples, 1);
    assert_int_equal(now->waiters, 2);
    assert_int_equal(hour->rows[0].cells[57].samples, 0);
    assert_int_equal(day->rows[0].cells[143].samples, 4);
    assert_int_equal(day->rows[0].cells[143].held, 3);
    drop(draft);
    hf__history_free(&history);
}

static void what_is_older_than_the_map_is_gone(void **state)
{
    hf__history history;
    (void)state;
    assert_true(hf__history_init(&history, 2));
    note(&history, NOON, 1, 1);
    note(&history, NOON + INT64_C(3600000) * 2, 0, 0);
    hf__view_draft *draft = show(&history);
    assert_int_equal(draft->seen.hour.count, 0);
    assert_int_equal(draft->seen.day.count, 1);
    drop(draft);
    note(&history, NOON + INT64_C(3600000) * 48, 0, 0);
    note(&history, NOON, 1, 1); /* the clock was set back: no harm */
    draft = show(&history);
    assert_int_equal(draft->seen.day.count, 1);
    assert_int_equal(draft->seen.day.rows[0].cells[143].held, 1);
    drop(draft);
    hf__history_free(&history);
}

static hf_store *open_folder(void)
{
    char url[128];
    hf_store *store = NULL;
    hf_error err = {0};
    int from = 0, to = 0;
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    assert_int_equal(hf_store_open(&options, &store, &err), HF_OK);
    assert_int_equal(hf_store_init(store, &from, &to, &err), HF_OK);
    return store;
}

static hf_status read_stored(hf_tx *tx, void *arg, hf_error *err)
{
    return hf_tx_query(
        tx, "SELECT at_ms, lock, samples, held, waiters, longest_wait_ms FROM contention", 0, NULL,
        false, arg, err);
}

static hf_rows *stored(hf_store *store)
{
    hf_rows *rows = NULL;
    hf_error err = {0};
    hf_tx_options options = hf__gather_options();
    assert_int_equal(hf__transact_at(store, HF__PLACE_OWN, &options, read_stored, &rows, &err),
                     HF_OK);
    return rows;
}

static void closed_columns_go_to_the_store_and_are_found_again(void **state)
{
    hf_store *store = open_folder();
    hf__history history, later;
    hf__counters counters;
    hf_registry *registry = read_registry();
    hf_error err = {0};
    (void)state;
    assert_true(hf__history_init(&history, 2));
    note(&history, NOON, 1, 5);
    assert_int_equal(hf__history_write(&history, store, &err), HF_OK);
    hf_rows *rows = stored(store);
    assert_int_equal(hf_rows_count(rows), 0); /* it is not over yet */
    hf_rows_free(rows);

    note(&history, NOON + HF__DAY_STEP_MS, 0, 0);
    assert_int_equal(hf__history_write(&history, store, &err), HF_OK);
    assert_int_equal(hf__history_write(&history, store, &err), HF_OK); /* nothing is left */
    hf__history_free(&history);
    assert_true(hf__history_init(&history, 2)); /* another collector saw more of it */
    note(&history, NOON, 1, 3);
    note(&history, NOON + 1, 1, 3);
    note(&history, NOON + HF__DAY_STEP_MS, 0, 0);
    assert_int_equal(hf__history_write(&history, store, &err), HF_OK);

    rows = stored(store);
    assert_int_equal(hf_rows_count(rows), 1);
    assert_true(hf__counters_init(&counters, registry));
    assert_true(hf__history_init(&later, counters.lock_count));
    assert_true(hf__history_load(&later, rows, &counters, registry, NOON + 2 * HF__DAY_STEP_MS));
    hf__view_draft *draft = show(&later);
    assert_int_equal(draft->seen.day.count, 1);
    const hf__heat_cell *cell = &draft->seen.day.rows[0].cells[141];
    assert_int_equal(cell->samples, 2);
    assert_int_equal(cell->held, 2);
    assert_int_equal(cell->waiters, 5);
    assert_int_equal(cell->longest_wait_ms, 50);
    drop(draft);
    hf_rows_free(rows);
    hf__history_free(&history);
    hf__history_free(&later);
    hf__counters_free(&counters);
    hf_registry_free(registry);
    hf_store_close(store);
}

/* A refresh in which so many locks are held, by their keys, and the last ones waited for. */
static void note_keys(hf__history *history, int64_t at_ms, size_t held, size_t waited)
{
    static hf__lock_meter meters[] = {{.lock = "one"}, {.lock = HF__OTHER}};
    hf__seen_lock *locks = calloc(held, sizeof *locks);
    assert_non_null(locks);
    for (size_t i = 0; i < held; i++) /* those with waiters come first in a snapshot */
        locks[i] = (hf__seen_lock){.key = (int64_t)(held - i),
                                   .label = "",
                                   .holders = 1,
                                   .waiters = i < waited,
                                   .longest_wait_ms = i < waited ? 7 : -1};
    const hf__snapshot seen = {
        .taken_ms = at_ms, .meters = meters, .meter_count = 2, .locks = locks, .lock_count = held};
    assert_true(hf__history_note(history, &seen));
    free(locks);
}

static const hf__heat_cell *newest(const hf__view_draft *draft, const char *lock)
{
    const hf__heat_map *hour = &draft->seen.hour;
    for (size_t i = 0; i < hour->count; i++)
        if (strcmp(hour->rows[i].lock, lock) == 0)
            return &hour->rows[i].cells[hour->columns - 1];
    return NULL;
}

static void locks_without_a_name_have_rows_and_contended_ones_are_not_crowded_out(void **state)
{
    hf__history history;
    (void)state;
    assert_true(hf__history_init(&history, 2));
    note_keys(&history, NOON, HF__HEAT_LABELS + 50, 0);
    hf__view_draft *draft = show(&history);
    assert_int_equal(draft->seen.hour.count, HF__HEAT_LABELS + 1);
    assert_non_null(newest(draft, "key 250"));
    assert_null(newest(draft, "key 50"));
    assert_int_equal(newest(draft, HF__OTHER)->held, 1);
    drop(draft);
    note_keys(&history, NOON + 1000, 40, 10); /* 31 to 40 are waited for */
    draft = show(&history);
    assert_int_equal(newest(draft, "key 40")->waiters, 1);
    assert_int_equal(newest(draft, "key 31")->longest_wait_ms, 7);
    assert_null(newest(draft, "key 30"));
    assert_int_equal(draft->seen.hour.count, HF__HEAT_LABELS + 1);
    drop(draft);
    note_keys(&history, NOON + 2 * HF__DAY_COLUMNS * HF__DAY_STEP_MS, 0, 0);
    draft = show(&history);
    assert_int_equal(draft->seen.hour.count, 0);
    drop(draft);
    note_keys(&history, NOON + 2 * HF__DAY_COLUMNS * HF__DAY_STEP_MS + 1, 1, 0);
    draft = show(&history);
    assert_int_equal(newest(draft, "key 1")->held, 1); /* its place was free again */
    drop(draft);
    hf__history_free(&history);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void arena_gives_zeroed_aligned_memory_of_any_size(void **state)
{
    hf__arena arena = {0};
    unsigned char *before = NULL;
    (void)state;
    for (size_t size = 0; size < 300000; size = size * 3 + 1) {
        unsigned char *array = hf__arena_array(&arena, size, 1);
        assert_non_null(array);
        assert_int_equal((uintptr_t)array % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(array[i], 0);
        memset(array, 0xff, size);
        assert_ptr_not_equal(array, before);
        before = array;
    }
    assert_string_equal(hf__arena_text(&arena, NULL), "");
    assert_string_equal(hf__arena_printf(&arena, "%d-%s", 5, "x"), "5-x");
    assert_false(arena.broken);
    hf__arena_free(&arena);
}

static void arena_that_is_asked_for_too_much_breaks_and_stays_so(void **state)
{
    hf__arena arena = {0};
    (void)state;
    assert_null(hf__arena_array(&arena, SIZE_MAX / 2, 3));
    assert_true(arena.broken);
    assert_null(hf__arena_array(&arena, 1, 1));
    assert_string_equal(hf__arena_text(&arena, "text"), "");
    hf__arena_free(&arena);
}

static void repeated_snapshots_hold_only_what_they_repeat(void **state)
{
    hf__view_draft *draft = draft_of(empty_list(), NULL);
    (void)state;
    draft->seen.number = 7;
    hf__view_draft *again = hf__view_draft_again(&draft->seen, 8);
    hf__view_draft *third = hf__view_draft_again(&again->seen, 9);
    assert_ptr_equal(third->older, draft);
    drop(again);
    drop(draft);
    assert_int_equal(third->seen.number, 9);
    assert_ptr_equal(third->seen.list, third->older->seen.list);
    drop(third);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_counted_under_their_registered_name),
        cmocka_unit_test(histograms_are_kept_where_the_registry_asks),
        cmocka_unit_test(tables_beyond_the_cap_are_counted_together),
        cmocka_unit_test(meters_say_what_is_held_now),
        cmocka_unit_test(minutes_and_ten_minutes_keep_the_worst),
        cmocka_unit_test(what_is_older_than_the_map_is_gone),
        FOLDER_TEST(closed_columns_go_to_the_store_and_are_found_again),
        cmocka_unit_test(locks_without_a_name_have_rows_and_contended_ones_are_not_crowded_out),
        cmocka_unit_test(arena_gives_zeroed_aligned_memory_of_any_size),
        cmocka_unit_test(arena_that_is_asked_for_too_much_breaks_and_stays_so),
        cmocka_unit_test(repeated_snapshots_hold_only_what_they_repeat),
    };
    return RUN(tests);
}
