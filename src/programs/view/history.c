/*
 * How contended locks were: by the minute for the last hour, by ten minutes for the last day. The
 * columns of the day are written to the store when they are complete, and at the end. The next
 * collector reads them from there.
 */
#include "programs/view/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static bool note(hf__heat *heat, const hf__snapshot *seen)
{
    bool ok = true;
    move_to(heat, seen->taken_ms);
    heat->samples[place(heat, heat->now)]++;
    for (size_t i = 0; i < seen->meter_count; i++) {
        const hf__lock_meter *meter = &seen->meters[i];
        const hf__heat_cell now = {
            .held = meter->held[HF_EXCLUSIVE] + meter->held[HF_SHARED] > 0,
            .waiters = (uint32_t)meter->waiters,
            .longest_wait_ms = meter->longest_wait_ms,
        };
        if (!now.held && !now.waiters)
            continue;
        hf__heat_cell *cell = cell_of(heat, i, heat->now);
        if (cell)
            join(cell, &now);
        ok = ok && cell;
    }
    return ok;
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
    for (size_t i = 0; i < day->row_count && i < seen->meter_count; i++) {
        const hf__heat_cell *cell = day->rows[i] ? &day->rows[i][place(day, day->now)] : NULL;
        if (!cell || (!cell->held && !cell->waiters))
            continue;
        put_cell(json, seen->meters[i].lock, cell, day->samples[place(day, day->now)]);
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
    *history = (hf__history){0};
    return heat_init(&history->hour, HF__HOUR_COLUMNS, HF__HOUR_STEP_MS, locks) &&
           heat_init(&history->day, HF__DAY_COLUMNS, HF__DAY_STEP_MS, locks);
}

void hf__history_free(hf__history *history)
{
    heat_free(&history->hour);
    heat_free(&history->day);
    hf__buf_free(&history->closed.text);
}

bool hf__history_note(hf__history *history, const hf__snapshot *seen)
{
    const hf__heat *day = &history->day;
    if (day->now >= 0 && seen->taken_ms / day->step_ms > day->now &&
        day->samples[place(day, day->now)] > 0)
        close_column(history, seen);
    bool hour = note(&history->hour, seen);
    return note(&history->day, seen) && hour;
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
            (!entry && strcmp(lock, HF__OTHER) != 0))
            continue; /* written with another registry or another clock */
        hf__heat_cell *cell = cell_of(day, hf__counters_index(counters, entry), column);
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

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hf__heat_row *)a)->lock, ((const hf__heat_row *)b)->lock);
}

static void show(const hf__heat *heat, hf__view_draft *draft, hf__heat_map *map)
{
    const hf__snapshot *seen = &draft->seen;
    size_t rows = 0;
    for (size_t i = 0; i < heat->row_count; i++)
        rows += heat->rows[i] != NULL;
    map->from_ms = (heat->now - (int64_t)heat->columns + 1) * heat->step_ms;
    map->step_ms = heat->step_ms;
    map->columns = heat->columns;
    map->rows = hf__arena_array(&draft->arena, rows, sizeof *map->rows);
    for (size_t i = 0; map->rows && i < heat->row_count && i < seen->meter_count; i++) {
        hf__heat_cell *cells =
            heat->rows[i] ? hf__arena_array(&draft->arena, heat->columns, sizeof *cells) : NULL;
        if (!cells)
            continue;
        show_row(heat, i, cells);
        map->rows[map->count++] = (hf__heat_row){seen->meters[i].lock, cells};
    }
    if (map->rows && map->count > 1)
        qsort(map->rows, map->count, sizeof *map->rows, by_name);
}

void hf__history_show(const hf__history *history, hf__view_draft *draft)
{
    show(&history->hour, draft, &draft->seen.hour);
    show(&history->day, draft, &draft->seen.day);
}
