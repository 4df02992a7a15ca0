/*
 * How contended locks were, by registered name or else by label: by the minute for the last hour,
 * by ten minutes for the last day. The columns of the day are written to the store when they are
 * complete, and at the end. The next collector reads them from there.
 */
#include "programs/view/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lib/transactions/transactions.h"
#include "programs/view/sql.h"

/* ---- a ring of columns ----------------------------------------------------------------------- */

static bool heat_init(hf__heat *heat, size_t columns, int64_t step_ms, size_t locks)
{
    *heat = (hf__heat){.columns = columns, .step_ms = step_ms, .now = -1, .row_count = locks};
    heat->samples = calloc(columns, sizeof *heat->samples);
    heat->rows = calloc(locks, sizeof(hf__heat_cell *));
    return heat->samples && heat->rows;
}

static void heat_free(hf__heat *heat)
{
    for (size_t i = 0; heat->rows && i < heat->row_count; i++)
        free(heat->rows[i]);
    free(heat->rows);
    free(heat->samples);
    *heat = (hf__heat){0};
}

static size_t place(const hf__heat *heat, int64_t column)
{
    return (size_t)(column % (int64_t)heat->columns);
}

static void forget(hf__heat *heat, int64_t column)
{
    size_t at = place(heat, column);
    heat->samples[at] = 0;
    for (size_t i = 0; i < heat->row_count; i++)
        if (heat->rows[i])
            heat->rows[i][at] = (hf__heat_cell){0};
}

/* Frees rows that have nothing to show. */
static void drop_empty(hf__heat *heat)
{
    for (size_t i = 0; i < heat->row_count; i++) {
        bool empty = heat->rows[i] != NULL;
        for (size_t c = 0; empty && c < heat->columns; c++)
            empty = !heat->rows[i][c].held && !heat->rows[i][c].waiters;
        if (empty) {
            free(heat->rows[i]);
            heat->rows[i] = NULL;
        }
    }
}

/* Makes the column of now_ms the newest. After the clock was set back the newest column stays. */
static void move_to(hf__heat *heat, int64_t now_ms)
{
    int64_t column = now_ms / heat->step_ms;
    if (heat->now < 0 || column - heat->now >= (int64_t)heat->columns)
        heat->now = column - (int64_t)heat->columns;
    bool turned = column > heat->now;
    while (heat->now < column)
        forget(heat, ++heat->now);
    if (turned)
        drop_empty(heat);
}

static hf__heat_cell *cell_of(hf__heat *heat, size_t row, int64_t column)
{
    if (!heat->rows[row])
        heat->rows[row] = calloc(heat->columns, sizeof **heat->rows);
    return heat->rows[row] ? &heat->rows[row][place(heat, column)] : NULL;
}

static void join(hf__heat_cell *cell, const hf__heat_cell *more)
{
    cell->held += more->held;
    if (more->waiters > cell->waiters)
        cell->waiters = more->waiters;
    if (more->longest_wait_ms > cell->longest_wait_ms)
        cell->longest_wait_ms = more->longest_wait_ms;
}

static bool add(hf__heat *heat, size_t row, const hf__heat_cell *now)
{
    hf__heat_cell *cell = cell_of(heat, row, heat->now);
    if (cell)
        join(cell, now);
    return cell != NULL;
}

/* ---- rows of locks without a registered name ------------------------------------------------- */

/*
 * "=LABEL", or "{KEY}" without one: what no name of a registry looks like, so that the store's
 * history has both. The caller frees out.
 */
static void name_of(const hf__seen_lock *lock, hf__buf *out)
{
    if (lock->label[0])
        hf__buf_printf(out, "=%s", lock->label);
    else if (lock->space == HF_PAIR)
        hf__buf_printf(out, "{%d, %d}", (int)(int32_t)((uint64_t)lock->key >> 32),
                       (int)(int32_t)(uint32_t)lock->key);
    else
        hf__buf_printf(out, "{%" PRId64 "}", lock->key);
}

static bool is_name_of_label(const char *name)
{
    return name[0] == '=' || name[0] == '{';
}

/* For people; "key (1, 2)" for a pair. */
static const char *shown_name(hf__arena *arena, const char *name)
{
    size_t size = strlen(name);
    if (name[0] == '=')
        return hf__arena_text(arena, name + 1);
    return hf__arena_printf(arena, strchr(name, ',') ? "key (%.*s)" : "key %.*s",
                            (int)(size > 2 ? size - 2 : 0), name + 1);
}

static bool has_waiters(const hf__heat *heat, size_t row)
{
    for (size_t c = 0; heat->rows[row] && c < heat->columns; c++)
        if (heat->rows[row][c].waiters)
            return true;
    return false;
}

static void drop_row(hf__heat *heat, size_t row)
{
    free(heat->rows[row]);
    heat->rows[row] = NULL;
}

static void free_label(hf__history *history, size_t label)
{
    size_t row = history->meters + label;
    drop_row(&history->hour, row);
    drop_row(&history->day, row);
    free(history->labels[label].name);
    history->labels[label] = (hf__heat_label){0};
}

/*
 * A place for one more; one that somebody waits for may take that of one for which nobody did.
 * busy: rows with something in them stay; NULL: none is.
 */
static size_t free_place(hf__history *history, bool is_waited_for, const hf__heat_cell *busy)
{
    for (size_t i = 0; i < HF__HEAT_LABELS; i++)
        if (!history->labels[i].name)
            return i;
    for (size_t i = 0; is_waited_for && i < HF__HEAT_LABELS; i++)
        if (!(busy && (busy[history->meters + i].held || busy[history->meters + i].waiters)) &&
            !has_waiters(&history->hour, history->meters + i) &&
            !has_waiters(&history->day, history->meters + i)) {
            free_label(history, i);
            return i;
        }
    return HF__HEAT_LABELS;
}

/* The row of this name, which is made; without room for it, that of all others. */
static size_t row_of(hf__history *history, const char *name, bool is_waited_for,
                     const hf__heat_cell *busy)
{
    uint64_t hash = hf__hash_bytes(name, strlen(name));
    for (size_t i = 0; i < HF__HEAT_LABELS; i++)
        if (history->labels[i].name && history->labels[i].hash == hash &&
            strcmp(history->labels[i].name, name) == 0)
            return history->meters + i;
    size_t place = free_place(history, is_waited_for, busy);
    char *copy = place < HF__HEAT_LABELS ? strdup(name) : NULL;
    if (!copy)
        return history->meters - 1;
    history->labels[place] = (hf__heat_label){copy, hash};
    return history->meters + place;
}

/* Labels whose rows have nothing to show any more. */
static void forget_labels(hf__history *history)
{
    for (size_t i = 0; i < HF__HEAT_LABELS; i++)
        if (history->labels[i].name && !history->hour.rows[history->meters + i] &&
            !history->day.rows[history->meters + i])
            free_label(history, i);
}

/* ---- a refresh ------------------------------------------------------------------------------- */

static void count_lock(hf__heat_cell *cell, const hf__seen_lock *lock)
{
    const hf__heat_cell now = {
        .waiters = (uint32_t)lock->waiters,
        .longest_wait_ms = lock->longest_wait_ms,
    };
    uint32_t held = cell->held || lock->holders > 0; /* several locks may be one row */
    uint32_t waiters = cell->waiters;
    join(cell, &now);
    cell->held = held;
    cell->waiters = waiters + now.waiters;
}

/* What this refresh saw of each row. False: out of memory. */
static bool count_rows(hf__history *history, const hf__snapshot *seen, hf__heat_cell *rows)
{
    hf__buf name = {0};
    for (size_t i = 0; i < seen->meter_count && i + 1 < history->meters; i++) {
        const hf__lock_meter *meter = &seen->meters[i];
        rows[i].held = meter->held[HF_EXCLUSIVE] + meter->held[HF_SHARED] > 0;
        rows[i].waiters = (uint32_t)meter->waiters;
        rows[i].longest_wait_ms = meter->longest_wait_ms;
    }
    for (size_t i = 0; i < seen->lock_count && !name.broken; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        if (lock->entry)
            continue;
        hf__buf_clear(&name);
        name_of(lock, &name);
        if (!name.broken)
            count_lock(&rows[row_of(history, name.data, lock->waiters > 0, rows)], lock);
    }
    hf__buf_free(&name);
    return !name.broken;
}

static bool note(hf__history *history, const hf__snapshot *seen)
{
    size_t count = history->hour.row_count;
    hf__heat_cell *rows = calloc(count, sizeof *rows);
    bool ok = rows && count_rows(history, seen, rows);
    for (size_t i = 0; ok && i < count; i++)
        if (rows[i].held || rows[i].waiters)
            ok = add(&history->hour, i, &rows[i]) && add(&history->day, i, &rows[i]);
    free(rows);
    return ok;
}

static void begin_sample(hf__heat *heat, int64_t now_ms)
{
    move_to(heat, now_ms);
    heat->samples[place(heat, heat->now)]++;
}

/* ---- what goes to the store ------------------------------------------------------------------ */

static void put_cell(hf__json *json, const char *lock, const hf__heat_cell *cell, uint32_t samples)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "lock", lock);
    hf__json_put_integer(json, "samples", samples);
    hf__json_put_integer(json, "held", cell->held);
    hf__json_put_integer(json, "waiters", cell->waiters);
    hf__json_put_integer(json, "longest_wait_ms", cell->longest_wait_ms);
    hf__json_end_object(json);
}

/* Writes the newest column of the day as JSON, before the next one begins. */
static void close_column(hf__history *history, const hf__snapshot *seen)
{
    const hf__heat *day = &history->day;
    hf__json *json = &history->closed;
    bool any = false;
    hf__buf_clear(&json->text);
    json->needs_comma = false;
    hf__json_begin_array(json, NULL);
    for (size_t i = 0; i < day->row_count; i++) {
        const hf__heat_cell *cell = day->rows[i] ? &day->rows[i][place(day, day->now)] : NULL;
        if (!cell || (!cell->held && !cell->waiters))
            continue;
        const char *name =
            i < history->meters ? seen->meters[i].lock : history->labels[i - history->meters].name;
        put_cell(json, name, cell, day->samples[place(day, day->now)]);
        any = true;
    }
    hf__json_end_array(json);
    history->closed_at_ms = day->now * day->step_ms;
    if (!any)
        hf__buf_clear(&json->text);
}

static hf_status write_column(hf_tx *tx, void *arg, hf_error *err)
{
    const hf__history *history = arg;
    char at[24];
    const hf_value values[] = {hf__number_value(at, history->closed_at_ms),
                               HF_TEXT(history->closed.text.data)};
    return hf__tx_query_sql(tx, &hf__sql_view_add_contention, NULL, 2, values, NULL, err);
}

hf_status hf__history_write(hf__history *history, hf_store *store, hf_error *err)
{
    hf_tx_options options = hf__gather_options();
    hf_status status = HF_OK;
    options.read_only = false;
    options.isolation = HF_READ_COMMITTED;
    if (history->closed.text.length == 0 || history->closed.text.broken)
        return HF_OK;
    status = hf__transact_at(store, HF__PLACE_OWN, &options, write_column, history, err);
    hf__buf_clear(&history->closed.text);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool hf__history_init(hf__history *history, size_t locks)
{
    size_t rows = locks + HF__HEAT_LABELS;
    *history = (hf__history){.meters = locks};
    return heat_init(&history->hour, HF__HOUR_COLUMNS, HF__HOUR_STEP_MS, rows) &&
           heat_init(&history->day, HF__DAY_COLUMNS, HF__DAY_STEP_MS, rows);
}

void hf__history_free(hf__history *history)
{
    heat_free(&history->hour);
    heat_free(&history->day);
    for (size_t i = 0; i < HF__HEAT_LABELS; i++)
        free(history->labels[i].name);
    hf__buf_free(&history->closed.text);
}

bool hf__history_note(hf__history *history, const hf__snapshot *seen)
{
    const hf__heat *day = &history->day;
    if (day->now >= 0 && seen->taken_ms / day->step_ms > day->now &&
        day->samples[place(day, day->now)] > 0)
        close_column(history, seen);
    begin_sample(&history->hour, seen->taken_ms);
    begin_sample(&history->day, seen->taken_ms);
    forget_labels(history);
    return note(history, seen);
}

void hf__history_end(hf__history *history, const hf__snapshot *seen)
{
    if (history->day.now >= 0)
        close_column(history, seen);
}

/* at (Unix time in ms), lock, samples, held, waiters, longest_wait_ms */
bool hf__history_load(hf__history *history, const hf_rows *rows, const hf__counters *counters,
                      const hf_registry *registry, int64_t now_ms)
{
    hf__heat *day = &history->day;
    move_to(day, now_ms);
    for (size_t i = 0; i < hf_rows_count(rows); i++) {
        int64_t column = hf__row_int(rows, i, 0, 0) / day->step_ms;
        const char *lock = hf__row_text(rows, i, 1);
        const hf_registry_entry *entry = registry ? hf_registry_find(registry, lock) : NULL;
        const hf__heat_cell stored = {
            .held = (uint32_t)hf__row_int(rows, i, 3, 0),
            .waiters = (uint32_t)hf__row_int(rows, i, 4, 0),
            .longest_wait_ms = hf__row_int(rows, i, 5, 0),
        };
        if (column > day->now || column <= day->now - (int64_t)day->columns ||
            (!entry && strcmp(lock, HF__OTHER) != 0 && !is_name_of_label(lock)))
            continue; /* written with another registry or another clock */
        size_t row = entry || !is_name_of_label(lock)
                         ? hf__counters_index(counters, entry)
                         : row_of(history, lock, stored.waiters > 0, NULL);
        hf__heat_cell *cell = cell_of(day, row, column);
        uint32_t *samples = &day->samples[place(day, column)];
        uint32_t recorded = (uint32_t)hf__row_int(rows, i, 2, 0);
        if (!cell)
            return false;
        join(cell, &stored);
        if (recorded > *samples)
            *samples = recorded;
    }
    return true;
}

/* ---- for the snapshot ------------------------------------------------------------------------ */

static void show_row(const hf__heat *heat, size_t row, hf__heat_cell *cells)
{
    int64_t first = heat->now - (int64_t)heat->columns + 1;
    for (size_t c = 0; c < heat->columns; c++) {
        size_t at = place(heat, first + (int64_t)c);
        cells[c] = heat->rows[row][at];
        cells[c].samples = heat->samples[at];
    }
}

/* Those whom most waited for at once first, then by the longest wait. */
static int by_contention(const void *a, const void *b)
{
    const hf__heat_row *left = a, *right = b;
    const hf__heat_cell *one = &left->sum, *other = &right->sum;
    if (one->waiters != other->waiters)
        return one->waiters < other->waiters ? 1 : -1;
    if (one->longest_wait_ms != other->longest_wait_ms)
        return one->longest_wait_ms < other->longest_wait_ms ? 1 : -1;
    if (one->held != other->held)
        return one->held < other->held ? 1 : -1;
    return strcmp(left->lock, right->lock);
}

static hf__heat_cell sum_up(const hf__heat_cell *cells, size_t count)
{
    hf__heat_cell sum = {0};
    for (size_t i = 0; i < count; i++) {
        join(&sum, &cells[i]);
        sum.samples += cells[i].samples;
    }
    return sum;
}

static hf__heat_row begin_row(const hf__history *history, hf__view_draft *draft, size_t row)
{
    if (row < history->meters)
        return (hf__heat_row){.lock = draft->seen.meters[row].lock,
                              .registered = row + 1 < history->meters,
                              .is_other = row + 1 == history->meters};
    return (hf__heat_row){
        .lock = shown_name(&draft->arena, history->labels[row - history->meters].name)};
}

static void show(const hf__history *history, const hf__heat *heat, hf__view_draft *draft,
                 hf__heat_map *map)
{
    size_t rows = 0;
    for (size_t i = 0; i < heat->row_count; i++)
        rows += heat->rows[i] != NULL;
    map->from_ms = (heat->now - (int64_t)heat->columns + 1) * heat->step_ms;
    map->step_ms = heat->step_ms;
    map->columns = heat->columns;
    map->rows = hf__arena_array(&draft->arena, rows, sizeof *map->rows);
    for (size_t i = 0; map->rows && i < heat->row_count; i++) {
        hf__heat_cell *cells =
            heat->rows[i] ? hf__arena_array(&draft->arena, heat->columns, sizeof *cells) : NULL;
        if (!cells)
            continue;
        show_row(heat, i, cells);
        map->rows[map->count] = begin_row(history, draft, i);
        map->rows[map->count].sum = sum_up(cells, heat->columns);
        map->rows[map->count++].cells = cells;
    }
    if (map->rows && map->count > 1)
        qsort(map->rows, map->count, sizeof *map->rows, by_contention);
}

void hf__history_show(const hf__history *history, hf__view_draft *draft)
{
    show(history, &history->hour, draft, &draft->seen.hour);
    show(history, &history->day, draft, &draft->seen.day);
}
