/* Locks and shared tables of a snapshot. Of each lock: holders, then waiters, the oldest first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lib/transactions/transactions.h"
#include "programs/view/parts.h"
#include "programs/view/sql.h"

static int compare_numbers(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_key(const void *a, const void *b)
{
    const hf_lock_view *left = *(const hf_lock_view *const *)a,
                       *right = *(const hf_lock_view *const *)b;
    int order = compare_numbers(left->space, right->space);
    if (order == 0)
        order = compare_numbers(left->key, right->key);
    if (order == 0)
        order = compare_numbers(left->waiting, right->waiting);
    if (order == 0)
        order = compare_numbers(right->age_ms, left->age_ms);
    return order ? order : compare_numbers(left->backend_pid, right->backend_pid);
}

static int by_need(const void *a, const void *b)
{
    const hf__seen_lock *left = a, *right = b;
    int order = compare_numbers(right->waiters > 0, left->waiters > 0);
    if (order == 0)
        order = compare_numbers(right->longest_wait_ms, left->longest_wait_ms);
    if (order == 0)
        order = compare_numbers(right->held_ms, left->held_ms);
    if (order == 0)
        order = compare_numbers(left->space, right->space);
    return order ? order : compare_numbers(left->key, right->key);
}

static void add_view(hf__seen_lock *lock, const hf_lock_view *view)
{
    lock->count++;
    if (!lock->label[0])
        lock->label = view->label;
    if (!lock->name[0])
        lock->name = view->name;
    lock->known_as = view->known_as;
    if (view->waiting) {
        lock->waiters++;
        if (view->age_ms > lock->longest_wait_ms)
            lock->longest_wait_ms = view->age_ms;
        if (lock->longest_wait_ms < 0)
            lock->longest_wait_ms = 0;
        return;
    }
    lock->holders++;
    if (view->age_ms > lock->held_ms) {
        lock->held_ms = view->age_ms;
        lock->held_is_bound = view->age_is_bound;
    }
}

static bool is_of(const hf__seen_lock *lock, const hf_lock_view *view)
{
    return lock->key == view->key && lock->space == view->space;
}

static void group(hf__snapshot *seen)
{
    for (size_t i = 0; i < seen->view_count; i++) {
        const hf_lock_view *view = seen->views[i];
        if (i == 0 || !is_of(&seen->locks[seen->lock_count - 1], view))
            seen->locks[seen->lock_count++] = (hf__seen_lock){
                .key = view->key,
                .space = view->space,
                .label = "",
                .name = "",
                .known_as = "",
                .first = i,
                .held_ms = -1,
                .longest_wait_ms = -1,
            };
        add_view(&seen->locks[seen->lock_count - 1], view);
    }
}

static void name(hf__snapshot *seen)
{
    for (size_t i = 0; i < seen->lock_count; i++) {
        hf__seen_lock *lock = &seen->locks[i];
        if (lock->name[0] && seen->registry)
            lock->entry = hf_registry_find(seen->registry, lock->name);
        if (!lock->label[0])
            lock->label = lock->name;
    }
}

/* Puts the rows in the order of their locks. */
static void order_views(hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    size_t at = 0;
    const hf_lock_view **views =
        hf__arena_array(&draft->arena, seen->view_count, sizeof(hf_lock_view *));
    if (!views)
        return;
    for (size_t i = 0; i < seen->lock_count; i++) {
        hf__seen_lock *lock = &seen->locks[i];
        memcpy(&views[at], &seen->views[lock->first], lock->count * sizeof(hf_lock_view *));
        lock->first = at;
        at += lock->count;
    }
    seen->views = views;
}

/* ---- by key ---------------------------------------------------------------------------------- */

struct hf__lock_place {
    hf_space space;
    int64_t key;
    size_t lock;
};

static int compare_places(const void *a, const void *b)
{
    const struct hf__lock_place *left = a, *right = b;
    int order = compare_numbers(left->space, right->space);
    return order ? order : compare_numbers(left->key, right->key);
}

static void index_locks(hf__view_draft *draft)
{
    const hf__snapshot *seen = &draft->seen;
    draft->by_key = hf__arena_array(&draft->arena, seen->lock_count, sizeof *draft->by_key);
    if (!draft->by_key)
        return;
    for (size_t i = 0; i < seen->lock_count; i++)
        draft->by_key[i] = (struct hf__lock_place){seen->locks[i].space, seen->locks[i].key, i};
    qsort(draft->by_key, seen->lock_count, sizeof *draft->by_key, compare_places);
}

size_t hf__locks_find(const hf__view_draft *draft, hf_space space, int64_t key)
{
    const struct hf__lock_place wanted = {.space = space, .key = key};
    const struct hf__lock_place *found =
        draft->by_key ? bsearch(&wanted, draft->by_key, draft->seen.lock_count,
                                sizeof *draft->by_key, compare_places)
                      : NULL;
    return found ? found->lock : SIZE_MAX;
}

static void count(hf__snapshot *seen)
{
    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        seen->held += lock->holders > 0;
        seen->waiting += lock->waiters;
        if (lock->longest_wait_ms > seen->longest_wait_ms)
            seen->longest_wait_ms = lock->longest_wait_ms;
    }
}

void hf__locks_count_unregistered(hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    for (size_t i = 0; seen->registry && i < seen->lock_count; i++)
        seen->unregistered += !seen->locks[i].entry && !seen->locks[i].is_own;
}

void hf__locks_sort(hf__view_draft *draft, hf_lock_list *list, const hf_registry *registry)
{
    hf__snapshot *seen = &draft->seen;
    size_t size = hf_lock_list_count(list);
    seen->list = list;
    seen->registry = registry;
    seen->views = hf__arena_array(&draft->arena, size, sizeof(hf_lock_view *));
    seen->locks = hf__arena_array(&draft->arena, size, sizeof *seen->locks);
    if (!seen->views || !seen->locks)
        return;
    seen->view_count = size;
    for (size_t i = 0; i < size; i++)
        seen->views[i] = hf_lock_list_at(list, i);
    qsort(seen->views, size, sizeof(hf_lock_view *), by_key);
    group(seen);
    name(seen);
    qsort(seen->locks, seen->lock_count, sizeof *seen->locks, by_need);
    order_views(draft);
    index_locks(draft);
    count(seen);
}

/* ---- shared tables, and what was appended to them -------------------------------------------- */

enum {
    APPENDS_MS = 2000,  /* appends are summed up at most this often, */
    APPENDS_REST = 100, /* and after a pause of this many times what it took */
};

enum column { C_NEWEST, C_CLUSTER, C_DATABASE, C_TABLE, C_ID, C_CREATED, C_REFERENCES };

static bool is_due(const hf__view_tables *tables, const hf_rows *rows)
{
    int64_t newest = hf_rows_count(rows) > 0 ? hf__row_int(rows, 0, C_NEWEST, 0) : 0;
    return newest != tables->newest && hf__now_ms() >= tables->due_ms;
}

static void rest(hf__view_tables *tables, int64_t began)
{
    int64_t now = hf__now_ms(), pause = (now - began) * APPENDS_REST;
    tables->due_ms = now + (pause > APPENDS_MS ? pause : APPENDS_MS);
}

static hf_status read_tables(hf_tx *tx, void *arg, hf_error *err)
{
    hf__view_reading *reading = arg;
    hf_rows_free(reading->tables); /* of an attempt before */
    return hf__tx_query_sql(tx, &hf__sql_view_tables, NULL, 0, NULL, &reading->tables, err);
}

static hf_status read_appends(hf_tx *tx, void *arg, hf_error *err)
{
    hf__view_reading *reading = arg;
    hf_rows_free(reading->appends);
    return hf__tx_query_sql(tx, &hf__sql_view_appends, NULL, 0, NULL, &reading->appends, err);
}

static hf_status gather_on_postgres(hf__view_tables *tables, hf_tx *tx, hf__view_reading *reading,
                                    hf_error *err)
{
    hf_status status = read_tables(tx, reading, err);
    if (status != HF_OK || !is_due(tables, reading->tables))
        return status;
    int64_t began = hf__now_ms();
    status = read_appends(tx, reading, err);
    rest(tables, began);
    return status;
}

static hf_status gather_files(hf__view_tables *tables, hf_store *store, hf__view_reading *reading,
                              hf_error *err)
{
    hf_tx_options options = hf__gather_options();
    hf_status status = hf__transact_at(store, HF__PLACE_OWN, &options, read_tables, reading, err);
    options.database = "appends";
    if (status != HF_OK || hf__now_ms() < tables->due_ms || !hf__has_file(store, "appends"))
        return status;
    int64_t began = hf__now_ms();
    status = hf_transact(store, &options, read_appends, reading, err);
    rest(tables, began);
    return status;
}

hf_status hf__view_tables_gather(hf__view_tables *tables, hf_store *store, hf_tx *tx,
                                 hf__view_reading *reading, hf_error *err)
{
    return tx ? gather_on_postgres(tables, tx, reading, err)
              : gather_files(tables, store, reading, err);
}

/* ---- tables: appends, which are kept between refreshes --------------------------------------- */

static void drop_appended(hf__view_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        free(tables->appended[i].table);
    free(tables->appended);
    tables->appended = NULL;
    tables->count = 0;
}

void hf__view_tables_clear(hf__view_tables *tables)
{
    drop_appended(tables);
    *tables = (hf__view_tables){0};
}

static bool take_appended(const hf_rows *rows, size_t row, hf__appended *appended)
{
    const char *last = strchr(hf__row_text(rows, row, 5), ' ');
    *appended = (hf__appended){
        .table = strdup(hf__row_text(rows, row, 0)),
        .appends = hf__row_int(rows, row, 1, 0),
        .rows = hf__row_int(rows, row, 2, 0),
        .last_ms = hf__row_int(rows, row, 3, 0),
        .doubtful = hf__row_int(rows, row, 4, 0),
    };
    (void)snprintf(appended->state, sizeof appended->state, "%s", last ? last + 1 : "");
    return appended->table != NULL;
}

bool hf__view_tables_take(hf__view_tables *tables, const hf__view_reading *reading)
{
    if (!reading->appends)
        return true;
    size_t count = hf_rows_count(reading->appends);
    drop_appended(tables);
    tables->appended = calloc(count + 1, sizeof *tables->appended);
    for (size_t i = 0; tables->appended && i < count; i++) {
        if (!take_appended(reading->appends, i, &tables->appended[i]))
            return false;
        tables->count = i + 1;
    }
    if (hf_rows_count(reading->tables) > 0)
        tables->newest = hf__row_int(reading->tables, 0, C_NEWEST, 0);
    return tables->appended != NULL;
}

static int compare_appended(const void *name, const void *appended)
{
    return strcmp(name, ((const hf__appended *)appended)->table);
}

/* ---- tables: into the snapshot --------------------------------------------------------------- */

static const char *text_of(hf__view_draft *draft, const hf_rows *rows, size_t row)
{
    const char *cluster = hf__row_text(rows, row, C_CLUSTER);
    return hf__arena_printf(&draft->arena, "%s%s%s.%s", cluster, cluster[0] ? "/" : "",
                            hf__row_text(rows, row, C_DATABASE), hf__row_text(rows, row, C_TABLE));
}

static void show_table(const hf__view_tables *tables, const hf_rows *rows, size_t row,
                       hf__view_draft *draft, hf__seen_table *table)
{
    hf__arena *arena = &draft->arena;
    *table = (hf__seen_table){
        .cluster = hf__arena_text(arena, hf__row_text(rows, row, C_CLUSTER)),
        .database = hf__arena_text(arena, hf__row_text(rows, row, C_DATABASE)),
        .table = hf__arena_text(arena, hf__row_text(rows, row, C_TABLE)),
        .text = text_of(draft, rows, row),
        .id = hf__row_int(rows, row, C_ID, 0),
        .created_ms = hf__row_int(rows, row, C_CREATED, 0),
        .references = hf__row_int(rows, row, C_REFERENCES, 0),
        .state = "",
    };
    table->lock = hf__locks_find(draft, HF_BIGINT, table->id);
    if (table->lock != SIZE_MAX)
        draft->seen.locks[table->lock].is_own = true;
    const hf__appended *appended = tables->count > 0
                                       ? bsearch(table->text, tables->appended, tables->count,
                                                 sizeof *tables->appended, compare_appended)
                                       : NULL;
    if (!appended)
        return;
    table->appends = appended->appends;
    table->appended_rows = appended->rows;
    table->last_append_ms = appended->last_ms;
    table->state = hf__arena_text(arena, appended->state);
}

void hf__view_tables_show(const hf__view_tables *tables, const hf__view_reading *reading,
                          hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    size_t count = reading->tables ? hf_rows_count(reading->tables) : 0;
    seen->tables = hf__arena_array(&draft->arena, count, sizeof *seen->tables);
    for (size_t i = 0; seen->tables && i < count; i++)
        if (hf_rows_value(reading->tables, i, C_ID, NULL))
            show_table(tables, reading->tables, i, draft, &seen->tables[seen->table_count++]);
}
