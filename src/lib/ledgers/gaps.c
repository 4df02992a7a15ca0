/* Gaps: the ledgers that are wanted and not covered. And ranges of ledgers in memory. */
#include <stdlib.h>

#include "base/vec.h"
#include "lib/ledgers/ledgers.h"
#include "lib/ledgers/sql.h"

struct question {
    hf_network *network;
    hf_range window; /* from 0: as far back as is wanted; to 0: up to the latest */
    hf__ranges missing;
};

static hf_status needs_coverage(const hf_network *network, hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG, "%s has cursors and no coverage", network->schema);
    hf__hint(err, "'holdfast ingest adopt --network %s' builds coverage from the data",
             network->name);
    return status;
}

/* If no start is wanted, it is the first ledger that the cursor or coverage knows of. */
static hf_status find_start(hf_tx *tx, const hf_network *network, const hf__tables_there *there,
                            int64_t *from, hf_error *err)
{
    bool wanted = false, has_oldest = false, kept = false;
    int64_t oldest = 0, floor = 0;
    hf_rows *rows = NULL;
    hf_status status = HF_OK;
    *from = INT64_MAX;
    if (there->store)
        status = hf__cursor_read(tx, network, HF__WANTED_FROM, false, &wanted, from, err);
    if (status == HF_OK && there->store)
        status = hf__cursor_read(tx, network, HF__RETENTION_FLOOR, false, &kept, &floor, err);
    if (status == HF_OK && !wanted && there->store)
        status = hf__cursor_read(tx, network, network->oldest, false, &has_oldest, &oldest, err);
    if (status == HF_OK && !wanted && there->coverage)
        status = hf__network_query(tx, network, &hf__sql_ledgers_coverage_start, 1,
                                   &HF_TEXT("9223372036854775807"), &rows, err);
    if (status == HF_OK && rows)
        status = hf__row_number(rows, 0, 0, "the start of coverage", from, err);
    hf_rows_free(rows);
    if (has_oldest && oldest < *from)
        *from = oldest;
    if (kept && floor > *from)
        *from = floor;
    return status;
}

static hf_status find_end(hf_tx *tx, const hf_network *network, const hf__tables_there *there,
                          int64_t *to, hf_error *err)
{
    bool found = false, covered = false;
    hf_range last = {0};
    int64_t row_from = 0;
    hf_status status = HF_OK;
    *to = INT64_MIN;
    if (there->store)
        status = hf__cursor_read(tx, network, network->latest, false, &found, to, err);
    if (status == HF_OK && found && !there->coverage)
        status = needs_coverage(network, err);
    if (status == HF_OK && !found && there->coverage)
        status = hf__coverage_last(tx, network, &covered, &last, &row_from, err);
    if (covered)
        *to = last.to;
    return status;
}

/* A ledger in quarantine above the latest is missing too, but not what is between them: not yet. */
static hf_status add_quarantined(hf_tx *tx, const hf_network *network, int64_t latest,
                                 hf__ranges *missing, hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, latest);
    hf_rows *rows = NULL;
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ledgers_quarantined, 1, &value, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++) {
        int64_t sequence = 0;
        status = hf__row_number(rows, i, 0, "a ledger in quarantine", &sequence, err);
        if (status == HF_OK && !hf__ranges_add(missing, sequence, sequence))
            status = hf__no_memory(err);
    }
    hf_rows_free(rows);
    return status;
}

hf_status hf__gaps_read(hf_tx *tx, const hf_network *network, hf_range window, hf__ranges *missing,
                        hf_error *err)
{
    hf__tables_there there;
    hf__ranges covered = {0};
    bool is_open = window.to == 0;
    missing->count = 0;
    hf_status status = hf__tables_look(tx, network, &there, err);
    if (status == HF_OK && window.from == 0)
        status = find_start(tx, network, &there, &window.from, err);
    if (status == HF_OK && window.to == 0)
        status = find_end(tx, network, &there, &window.to, err);
    if (status == HF_OK && there.coverage && window.from <= window.to)
        status = hf__coverage_read(tx, network, window.from, window.to, &covered, err);
    if (status == HF_OK && !hf__ranges_missing(&covered, window.from, window.to, missing))
        status = hf__no_memory(err);
    if (status == HF_OK && is_open && there.quarantine)
        status = add_quarantined(
            tx, network, window.to >= window.from ? window.to : window.from - 1, missing, err);
    hf__ranges_free(&covered);
    return status;
}

static hf_status answer(hf_tx *tx, void *arg, hf_error *err)
{
    struct question *question = arg;
    return hf__gaps_read(tx, question->network, question->window, &question->missing, err);
}

static hf_status answer_without_tables(struct question *question, hf_error *err)
{
    hf_range window = question->window;
    if (window.from > 0 && window.to > 0 &&
        !hf__ranges_add(&question->missing, window.from, window.to))
        return hf__no_memory(err);
    return HF_OK;
}

hf_status hf_network_gaps(hf_network *network, int64_t from, int64_t to, hf_range **gaps,
                          size_t *count, hf_error *err)
{
    struct question question = {.network = network, .window = {from, to}};
    bool there = false;
    if (!network || !gaps || !count)
        return hf__fail(err, HF_INVALID, "hf_network_gaps needs a network and room for the answer");
    if (from < 0 || to < 0 || (from > to && to != 0))
        return hf__fail(err, HF_INVALID, "the window of ledgers ends before it begins");
    hf_status status = hf__network_read(network, answer, &question, &there, err);
    if (status == HF_OK && !there)
        status = answer_without_tables(&question, err);
    if (status != HF_OK) {
        hf__ranges_free(&question.missing);
        return status;
    }
    *gaps = question.missing.items;
    *count = question.missing.count;
    return HF_OK;
}

/* ---- ranges in memory: no I/O ---------------------------------------------------------------- */

void hf__ranges_free(hf__ranges *ranges)
{
    free(ranges->items);
    *ranges = (hf__ranges){0};
}

bool hf__ranges_add(hf__ranges *ranges, int64_t from, int64_t to)
{
    if (from > to)
        return true;
    hf_range *last = ranges->count > 0 ? &ranges->items[ranges->count - 1] : NULL;
    if (last && from <= last->to + (last->to < INT64_MAX)) {
        if (to > last->to)
            last->to = to;
        return true;
    }
    if (!hf__grow(&ranges->items, &ranges->capacity, ranges->count + 1, sizeof *ranges->items))
        return false;
    ranges->items[ranges->count++] = (hf_range){from, to};
    return true;
}

bool hf__ranges_missing(const hf__ranges *covered, int64_t from, int64_t to, hf__ranges *missing)
{
    for (size_t i = 0; i < covered->count && from <= to; i++) {
        const hf_range *range = &covered->items[i];
        if (range->to < from)
            continue;
        if (range->from > to)
            break;
        if (range->from > from && !hf__ranges_add(missing, from, range->from - 1))
            return false;
        if (range->to >= to)
            return true;
        from = range->to + 1;
    }
    return hf__ranges_add(missing, from, to);
}
