/*
 * Coverage in the store: disjoint rows (lo, hi) of ingest_coverage.
 *
 * A transaction that adds, clips or rebuilds coverage holds the network's coverage lock until it
 * ends, so no row appears or goes meanwhile. Only the live ingester does not take that lock. All it
 * does is raise `hi` of one row, under the lock of that row. So:
 *
 * - Adding a range locks every row that the range could meet, also the row before it, which may be
 *   growing towards it.
 * - Extending a row looks, under the lock of that row, whether somebody has begun a range in the
 *   way.
 * - The last row keeps its `lo`, because the live ingester finds the row by it. A range that ends
 *   right before the last row becomes a row of its own.
 */
#include "lib/ledgers/ledgers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/ledgers/sql.h"

/* ---- reading --------------------------------------------------------------------------------- */

static hf_status read_range(const hf_rows *rows, size_t row, const hf_network *network,
                            hf_range *range, hf_error *err)
{
    char what[96];
    (void)snprintf(what, sizeof what, "%s.ingest_coverage", network->schema);
    hf_status status = hf__row_number(rows, row, 0, what, &range->from, err);
    if (status == HF_OK)
        status = hf__row_number(rows, row, 1, what, &range->to, err);
    return status;
}

static hf_status not_disjoint(const hf_network *network, const hf_range *range, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_BAD_DATA,
                 "%s.ingest_coverage: the row %" PRId64 "-%" PRId64 " overlaps with another",
                 network->schema, range->from, range->to);
    hf__hint(err, "'holdfast gaps --network %s --repair' rebuilds coverage from the ledgers",
             network->name);
    return status;
}

static hf_status collect(const hf_rows *rows, const hf_network *network, int64_t from, int64_t to,
                         hf__ranges *ranges, hf_error *err)
{
    hf_range range = {0};
    int64_t end = 0;
    for (size_t i = 0; i < hf_rows_count(rows); i++) {
        hf_status status = read_range(rows, i, network, &range, err);
        if (status != HF_OK)
            return status;
        if (range.from > range.to || (i > 0 && range.from <= end))
            return not_disjoint(network, &range, err);
        end = range.to;
        if (range.to < from || range.from > to)
            continue;
        if (!hf__ranges_add(ranges, range.from > from ? range.from : from,
                            range.to < to ? range.to : to))
            return hf__no_memory(err);
    }
    return HF_OK;
}

hf_status hf__coverage_read(hf_tx *tx, const hf_network *network, int64_t from, int64_t to,
                            hf__ranges *ranges, hf_error *err)
{
    char first[24], last[24];
    const hf_value values[] = {hf__number_value(first, from), hf__number_value(last, to)};
    hf_rows *rows = NULL;
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ledgers_coverage_read, 2, values, &rows, err);
    if (status == HF_OK)
        status = collect(rows, network, from, to, ranges, err);
    hf_rows_free(rows);
    return status;
}

/*
 * Joins rows, greatest first, to the last range. *ends is set at the first one that does not touch.
 */
static hf_status join_down(const hf_rows *rows, const hf_network *network, bool *found,
                           hf_range *last, int64_t *row_from, bool *ends, hf_error *err)
{
    hf_range range = {0};
    for (size_t i = 0; i < hf_rows_count(rows) && !*ends; i++) {
        hf_status status = read_range(rows, i, network, &range, err);
        if (status != HF_OK)
            return status;
        if (range.from > range.to || (*found && range.to >= last->from))
            return not_disjoint(network, &range, err);
        if (!*found) {
            *last = range;
            *row_from = range.from;
            *found = true;
        } else if (range.to == last->from - 1) {
            last->from = range.from;
        } else {
            *ends = true;
        }
    }
    return HF_OK;
}

hf_status hf__coverage_last(hf_tx *tx, const hf_network *network, bool *found, hf_range *last,
                            int64_t *row_from, hf_error *err)
{
    enum { PAGE = 32 };
    bool ends = false;
    int64_t below = INT64_MAX;
    hf_status status = HF_OK;
    *found = false;
    *last = (hf_range){0};
    while (status == HF_OK && !ends) {
        char number[24];
        hf_value value = hf__number_value(number, below);
        hf_rows *rows = NULL;
        status =
            hf__network_query(tx, network, &hf__sql_ledgers_coverage_last, 1, &value, &rows, err);
        if (status == HF_OK)
            status = join_down(rows, network, found, last, row_from, &ends, err);
        ends = ends || (status == HF_OK && hf_rows_count(rows) < PAGE);
        below = last->from;
        hf_rows_free(rows);
    }
    return status;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* What to do with the rows that a new range meets. */
struct merge {
    hf_range range; /* the row that must exist afterwards */
    bool has_row;   /* a row with this start exists: only its end changes */
    bool swallows;  /* it contains further rows, which go */
    bool is_there;  /* one row covers all of it already */
    hf_range tail;  /* the last row, if the range meets it; it keeps its start */
    bool tail_grows;
};

static hf_status check_range(int64_t from, int64_t to, hf_error *err)
{
    if (from >= 0 && from <= to && to < INT64_MAX)
        return HF_OK;
    return hf__fail(err, HF_INVALID, "%" PRId64 "-%" PRId64 " is no range of ledgers", from, to);
}

static hf_status lock_rows(hf_tx *tx, const hf_network *network, int64_t from, int64_t to,
                           hf_rows **rows, hf_error *err)
{
    char first[24], last[24], next[24];
    const hf_value values[] = {hf__number_value(first, from), hf__number_value(last, to),
                               hf__number_value(next, to + 1)};
    hf_status status = hf__network_lock(tx, network, network->coverage_key, err);
    if (status == HF_OK)
        status = hf__network_query(tx, network, &hf__sql_ledgers_coverage_lock_rows, 3, values,
                                   rows, err);
    return status;
}

static void meet(struct merge *merge, const hf_range *row, bool is_last, int64_t from, int64_t to)
{
    if (row->to < from - 1)
        return; /* the row before, which the range does not touch */
    if (row->from <= from && row->to >= to)
        merge->is_there = true;
    if (is_last && row->from > from) {
        merge->tail = *row;
        merge->tail_grows = to > row->to;
        merge->range.to = row->from - 1;
        return;
    }
    if (row->from <= from) {
        merge->has_row = true;
        merge->range.from = row->from;
    } else {
        merge->swallows = true;
    }
    if (row->to > merge->range.to)
        merge->range.to = row->to;
}

static hf_status plan_merge(const hf_rows *rows, const hf_network *network, int64_t from,
                            int64_t to, struct merge *merge, hf_error *err)
{
    hf_range row = {0};
    int64_t end = 0;
    *merge = (struct merge){.range = {from, to}};
    for (size_t i = 0; i < hf_rows_count(rows); i++) {
        hf_status status = read_range(rows, i, network, &row, err);
        if (status != HF_OK)
            return status;
        if (row.from > row.to || (i > 0 && row.from <= end))
            return not_disjoint(network, &row, err);
        end = row.to;
        meet(merge, &row, hf__row_bool(rows, i, 2), from, to);
    }
    return HF_OK;
}

static hf_status queue_row(hf_tx *tx, const hf_network *network, const hf__sql *sql, int64_t lo,
                           int64_t hi, hf_error *err)
{
    char first[24], second[24];
    const hf_value values[] = {hf__number_value(first, lo), hf__number_value(second, hi)};
    return hf__network_queue(tx, network, sql, 2, values, err);
}

static hf_status apply_merge(hf_tx *tx, const hf_network *network, const struct merge *merge,
                             int64_t to, hf_error *err)
{
    hf_status status = HF_OK;
    if (merge->is_there)
        return HF_OK;
    if (merge->swallows)
        status = queue_row(tx, network, &hf__sql_ledgers_coverage_swallow, merge->range.from,
                           merge->range.to, err);
    if (status == HF_OK)
        status = queue_row(tx, network,
                           merge->has_row ? &hf__sql_ledgers_coverage_raise
                                          : &hf__sql_ledgers_coverage_insert,
                           merge->range.from, merge->range.to, err);
    if (status == HF_OK && merge->tail_grows)
        status = queue_row(tx, network, &hf__sql_ledgers_coverage_raise, merge->tail.from, to, err);
    return status;
}

/* Is what lies between the runs covered by the rows, which are locked? */
static hf_status check_between(const hf_rows *rows, const hf_network *network,
                               const hf__ranges *runs, hf_error *err)
{
    int64_t from = runs->items[0].from, to = runs->items[runs->count - 1].to;
    hf__ranges covered = {0}, missing = {0};
    hf_status status = collect(rows, network, from, to, &covered, err);
    if (status == HF_OK && !hf__ranges_missing(&covered, from, to, &missing))
        status = hf__no_memory(err);
    for (size_t i = 0, run = 0; status == HF_OK && i < missing.count; i++) {
        const hf_range *lacking = &missing.items[i];
        while (runs->items[run].to < lacking->from && run + 1 < runs->count)
            run++;
        if (lacking->from < runs->items[run].from || lacking->to > runs->items[run].to)
            status = hf__fail(err, HF_CURSOR,
                              "%s has lost coverage of ledgers between %" PRId64 " and %" PRId64
                              " meanwhile",
                              network->schema, from, to);
    }
    hf__ranges_free(&covered);
    hf__ranges_free(&missing);
    return status;
}

hf_status hf__coverage_add_runs(hf_tx *tx, const hf_network *network, const hf__ranges *runs,
                                hf_error *err)
{
    int64_t from = runs->items[0].from, to = runs->items[runs->count - 1].to;
    struct merge merge;
    hf_rows *rows = NULL;
    hf_status status = check_range(from, to, err);
    if (status == HF_OK)
        status = lock_rows(tx, network, from, to, &rows, err);
    if (status == HF_OK && runs->count > 1)
        status = check_between(rows, network, runs, err);
    if (status == HF_OK)
        status = plan_merge(rows, network, from, to, &merge, err);
    if (status == HF_OK)
        status = apply_merge(tx, network, &merge, to, err);
    hf_rows_free(rows);
    return status;
}

hf_status hf__coverage_add(hf_tx *tx, const hf_network *network, int64_t from, int64_t to,
                           hf_error *err)
{
    hf_range range = {from, to};
    const hf__ranges run = {.items = &range, .count = 1};
    return hf__coverage_add_runs(tx, network, &run, err);
}

/* ---- the live ingester's step ---------------------------------------------------------------- */

/*
 * The update follows the lock in a statement of its own, so that it sees ranges others have begun.
 */
static hf_status raise_end(hf_tx *tx, const hf_network *network, int64_t from, int64_t end,
                           int64_t to, bool *raised, hf_error *err)
{
    char first[24], second[24], third[24];
    const hf_value values[] = {hf__number_value(first, from), hf__number_value(second, end),
                               hf__number_value(third, to)};
    hf_rows *rows = NULL;
    hf_status status = HF_OK;
    if (!network->local)
        status = hf__network_queue(tx, network, &hf__sql_ledgers_coverage_lock_row, 1, values, err);
    if (status == HF_OK)
        status =
            hf__network_query(tx, network, &hf__sql_ledgers_coverage_extend, 3, values, &rows, err);
    *raised = status == HF_OK && hf_rows_affected(rows) == 1;
    hf_rows_free(rows);
    return status;
}

/* Finds the row that holds `end`: retention or a backfill may have moved its start. */
static hf_status find_row(hf_tx *tx, const hf_network *network, int64_t end, bool *found,
                          hf_range *row, hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, end);
    hf_rows *rows = NULL;
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ledgers_coverage_find, 1, &value, &rows, err);
    *found = status == HF_OK && hf_rows_count(rows) == 1;
    if (*found)
        status = read_range(rows, 0, network, row, err);
    hf_rows_free(rows);
    return status;
}

hf_status hf__coverage_extend(hf_tx *tx, const hf_network *network, int64_t from, int64_t end,
                              int64_t to, hf_error *err)
{
    hf_range row = {0};
    bool raised = false, found = false;
    hf_status status = check_range(from, to, err);
    if (status == HF_OK)
        status = raise_end(tx, network, from, end, to, &raised, err);
    if (status != HF_OK || raised)
        return status;
    status = find_row(tx, network, end, &found, &row, err);
    if (status == HF_OK && found && row.to == end && row.from != from)
        status = raise_end(tx, network, row.from, end, to, &raised, err);
    if (status != HF_OK || raised)
        return status;
    return hf__fail(err, HF_CURSOR,
                    "coverage of network %s does not end at %" PRId64 " any more: another writer "
                    "has changed it",
                    network->name, end);
}

/* ---- clipping -------------------------------------------------------------------------------- */

static hf_status clip(hf_tx *tx, const hf_network *network, const hf__sql *remove,
                      const hf__sql *cut, int64_t bound, hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, bound);
    hf_status status = hf__network_query(tx, network, remove, 1, &value, NULL, err);
    if (status == HF_OK)
        status = hf__network_query(tx, network, cut, 1, &value, NULL, err);
    return status;
}

hf_status hf__coverage_clip(hf_tx *tx, const hf_network *network, int64_t floor, int64_t ceiling,
                            hf_error *err)
{
    hf_status status = hf__network_lock(tx, network, network->coverage_key, err);
    if (status == HF_OK)
        status = clip(tx, network, &hf__sql_ledgers_coverage_drop_below,
                      &hf__sql_ledgers_coverage_cut_below, floor, err);
    if (status == HF_OK && ceiling > 0)
        status = clip(tx, network, &hf__sql_ledgers_coverage_drop_above,
                      &hf__sql_ledgers_coverage_cut_above, ceiling, err);
    return status;
}
