/*
 * Writes a batch in one transaction, on the session of the cells' lock: rows, then coverage, then
 * the oldest cursor. A batch may have several runs of ledgers, so that many small gaps do not cost
 * a transaction each. Adding to coverage takes coverage's lock. Neighbours and bounds are checked
 * only after that, because until then other writers could still change them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "programs/ingest/backfill/parts.h"
#include "programs/ingest/sql.h"
#include "programs/ingest/status.h"
#include "programs/ingest/writer.h"

enum { MOST_REST_MS = 1000 };

static const hf_network *network_of(const struct worker *worker)
{
    return worker->fill->network;
}

/* ---- checking against the neighbours --------------------------------------------------------- */

hf_status backfill_refuse_chain(const hf_network *network, int64_t sequence, const char *ours,
                                hf__slice theirs, hf_error *err)
{
    hf_status status = hf__fail(err, HF_BAD_DATA,
                                "the source is of another chain: ledger %" PRId64
                                " of network %s is %s here and %.*s there",
                                sequence, network->name, ours, (int)theirs.size, theirs.text);
    hf__hint(err,
             "give a source of the chain that is here, or reset the network: "
             "'holdfast ingest reset --network %s --to LEDGER'",
             network->name);
    return status;
}

size_t backfill_run_end(const struct batch *batch, size_t at)
{
    do
        at++;
    while (at < batch->count &&
           batch->ledgers[at]->sequence == batch->ledgers[at - 1]->sequence + 1);
    return at;
}

/* The batch's ledger with this sequence, or NULL. */
static const hf__ledger *find_ledger(const struct batch *batch, int64_t sequence, size_t *at)
{
    size_t low = 0, high = batch->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (batch->ledgers[middle]->sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return low < batch->count && batch->ledgers[low]->sequence == sequence ? batch->ledgers[low]
                                                                           : NULL;
}

/* Checks one neighbour, a row of (sequence, hash, previous_hash). It may be the anchor, too. */
static hf_status check_neighbour(const struct worker *worker, const hf_rows *rows, size_t row,
                                 bool *is_anchored, hf_error *err)
{
    const char *hash = hf_rows_value(rows, row, 1, NULL);
    const char *previous = hf_rows_value(rows, row, 2, NULL);
    int64_t sequence = 0;
    size_t at = 0;
    hf_status status = hf__row_number(rows, row, 0, "ledgers.sequence", &sequence, err);
    if (status != HF_OK)
        return status;
    if (sequence == worker->anchor.sequence)
        *is_anchored = hash && strcmp(hash, worker->anchor.hash) == 0;
    const hf__ledger *before = find_ledger(&worker->batch, sequence - 1, &at);
    const hf__ledger *after = find_ledger(&worker->batch, sequence + 1, &at);
    if (after && hash && after->previous_hash.text && !hf__slice_is(after->previous_hash, hash))
        return backfill_refuse_chain(network_of(worker), sequence, hash, after->previous_hash, err);
    if (before && previous && !hf__slice_is(before->hash, previous))
        return backfill_refuse_chain(network_of(worker), before->sequence, previous, before->hash,
                                     err);
    return HF_OK;
}

/* The ledgers before and behind each run of the batch, and the anchor, as an array. */
static void list_neighbours(const struct worker *worker, hf__buf *list)
{
    const struct batch *batch = &worker->batch;
    bool local = network_of(worker)->local;
    for (size_t at = 0, end = 0; at < batch->count; at = end) {
        end = backfill_run_end(batch, at);
        hf__buf_printf(list, "%s%" PRId64 ",%" PRId64,
                       at > 0  ? ","
                       : local ? "["
                               : "{",
                       batch->ledgers[at]->sequence - 1, batch->ledgers[end - 1]->sequence + 1);
    }
    hf__buf_printf(list, ",%" PRId64 "%s", worker->anchor.sequence, local ? "]" : "}");
}

/* Without its anchor, the batch may be of the chain that the store had before a reset. */
static hf_status check_neighbours(struct worker *worker, hf_tx *tx, hf_error *err)
{
    bool is_anchored = false;
    hf__buf list = {0};
    hf_rows *rows = NULL;
    list_neighbours(worker, &list);
    hf_value value = HF_TEXT(list.data);
    hf_status status = list.broken
                           ? hf__no_memory(err)
                           : hf__network_query(tx, network_of(worker), &hf__sql_ingest_neighbours,
                                               1, &value, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++)
        status = check_neighbour(worker, rows, i, &is_anchored, err);
    if (status == HF_OK && !is_anchored)
        status = hf__fail(err, HF_CURSOR,
                          "network %s does not have ledger %" PRId64
                          " any more by which the source was known",
                          network_of(worker)->name, worker->anchor.sequence);
    hf_rows_free(rows);
    hf__buf_free(&list);
    return status;
}

/* ---- one transaction ------------------------------------------------------------------------- */

static hf_status write_new(struct worker *worker, hf_tx *tx, hf_error *err)
{
    const struct batch *batch = &worker->batch;
    const hf__stop *stop = &worker->fill->halt;
    size_t count = 0;
    if (!worker->is_there)
        return hf__write_rows(tx, network_of(worker), batch->ledgers, batch->count,
                              batch->count > 1, stop, err);
    hf__ledger **fresh = calloc(batch->count, sizeof(hf__ledger *));
    if (!fresh)
        return hf__no_memory(err);
    for (size_t i = 0; i < batch->count; i++)
        if (!worker->is_there[i])
            fresh[count++] = batch->ledgers[i];
    hf_status status =
        count > 0 ? hf__write_rows(tx, network_of(worker), fresh, count, count > 1, stop, err)
                  : HF_OK;
    free(fresh);
    return status;
}

hf_status backfill_read_bounds(hf_tx *tx, const hf_network *network, struct bounds *bounds,
                               hf_error *err)
{
    *bounds = (struct bounds){0};
    hf_status status = hf__cursor_read(tx, network, HF__RETENTION_FLOOR, false, &bounds->has_floor,
                                       &bounds->floor, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, network->latest, false, &bounds->has_latest,
                                 &bounds->latest, err);
    return status;
}

/* Nobody clips coverage while we hold its lock, so what we read here is true until the commit. */
static hf_status check_bounds(struct worker *worker, hf_tx *tx, hf_error *err)
{
    const hf_network *network = network_of(worker);
    struct bounds bounds;
    hf_status status = backfill_read_bounds(tx, network, &bounds, err);
    if (status != HF_OK)
        return status;
    if (bounds.has_floor && batch_first(&worker->batch) < bounds.floor)
        return hf__fail(err, HF_CURSOR, "retention of network %s keeps nothing below %" PRId64,
                        network->name, bounds.floor);
    worker->live_at = bounds.latest;
    if (!bounds.has_latest || batch_last(&worker->batch) > bounds.latest)
        return hf__fail(err, HF_CURSOR, "network %s was reset to ledger %" PRId64, network->name,
                        bounds.latest);
    return HF_OK;
}

static hf_status follow_oldest(struct worker *worker, hf_tx *tx, hf_error *err)
{
    const hf_network *network = network_of(worker);
    bool covered = false, found = false;
    int64_t row_from = 0, oldest = 0;
    hf_range last = {0};
    hf_status status = hf__coverage_last(tx, network, &covered, &last, &row_from, err);
    if (status != HF_OK || !covered || last.from > batch_first(&worker->batch))
        return status; /* the batch is not part of the last run, so that still begins there */
    status = hf__cursor_read(tx, network, network->oldest, true, &found, &oldest, err);
    if (status == HF_OK && (!found || last.from < oldest))
        status = hf__cursor_write(tx, network, network->oldest, last.from, err);
    return status;
}

/* The ledgers between two runs were covered when the cells were locked. */
static hf_status add_coverage(const struct worker *worker, hf_tx *tx, hf_error *err)
{
    const struct batch *batch = &worker->batch;
    hf__ranges runs = {0};
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < batch->count; i++)
        if (!hf__ranges_add(&runs, batch->ledgers[i]->sequence, batch->ledgers[i]->sequence))
            status = hf__no_memory(err);
    if (status == HF_OK)
        status = hf__coverage_add_runs(tx, network_of(worker), &runs, err);
    hf__ranges_free(&runs);
    return status;
}

static hf_status write_batch(hf_tx *tx, void *arg, hf_error *err)
{
    struct worker *worker = arg;
    const hf_network *network = network_of(worker);
    int64_t from = batch_first(&worker->batch), to = batch_last(&worker->batch);
    hf_status status = write_new(worker, tx, err);
    if (status == HF_OK)
        status = hf__quarantine_drop(tx, network, from, to, err);
    if (status == HF_OK)
        status = add_coverage(worker, tx, err);
    if (status == HF_OK)
        status = check_bounds(worker, tx, err);
    if (status == HF_OK)
        status = check_neighbours(worker, tx, err);
    if (status == HF_OK)
        status = follow_oldest(worker, tx, err);
    if (status == HF_OK)
        status = hf__activity_add_backfill(tx, network, (int64_t)worker->batch.count, err);
    return status;
}

/* The live ingester goes first: if it has committed meanwhile, rest as long as the write took. */
static void give_way(const struct worker *worker, int64_t before, int64_t began_ms)
{
    int64_t took = hf__now_ms() - began_ms;
    if (worker->live_at != before)
        (void)hf__stop_pause(&worker->fill->halt, took < MOST_REST_MS ? (int)took : MOST_REST_MS);
}

hf_status backfill_write(struct worker *worker, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(network_of(worker));
    int64_t before = worker->live_at, began_ms = hf__now_ms();
    hf_status status = hf_lock_transact(worker->lock, &options, write_batch, worker, err);
    if (status == HF_OK && before > 0)
        give_way(worker, before, began_ms);
    return status;
}

/* ---- rows that exist already ----------------------------------------------------------------- */

struct looking {
    struct worker *worker;
    size_t found;
};

static hf_status run_for(hf_tx *tx, const hf_network *network, const hf__sql *sql, int64_t from,
                         int64_t to, hf_error *err)
{
    char first[24], last[24];
    const hf_value values[] = {hf__number_value(first, from), hf__number_value(last, to)};
    return hf__network_queue(tx, network, sql, 2, values, err);
}

/*
 * What is there of a ledger is damaged, and nothing covers it: it makes room. The whole ledger is
 * in the batch, which is written next.
 */
static hf_status make_room(hf_tx *tx, const struct worker *worker, int64_t sequence, hf_error *err)
{
    const hf_network *network = network_of(worker);
    char text[160];
    (void)snprintf(text, sizeof text, "ledger %" PRId64 " is there in part, and is written again",
                   sequence);
    backfill_note(worker->fill, text);
    hf_status status = run_for(tx, network, &hf__sql_ingest_drop_ledgers, sequence, sequence, err);
    if (status == HF_OK)
        status = run_for(tx, network, &hf__sql_ingest_drop_transactions, hf__toid(sequence, 0),
                         hf__toid(sequence + 1, 0) - 1, err);
    return status;
}

/* Takes a row of (sequence, hash, transaction_count, number of rows in transactions). */
static hf_status take_found(hf_tx *tx, struct looking *looking, const hf_rows *rows, size_t row,
                            hf_error *err)
{
    struct worker *worker = looking->worker;
    int64_t sequence = 0, claimed = 0, counted = 0;
    const char *hash = hf_rows_value(rows, row, 1, NULL);
    hf_status status = hf__row_number(rows, row, 0, "ledgers.sequence", &sequence, err);
    if (status == HF_OK)
        status = hf__row_number(rows, row, 2, "ledgers.transaction_count", &claimed, err);
    if (status == HF_OK)
        status = hf__row_number(rows, row, 3, "the count of transactions", &counted, err);
    if (status != HF_OK)
        return status;
    size_t at = 0;
    const hf__ledger *ledger = find_ledger(&worker->batch, sequence, &at);
    if (!ledger)
        return HF_OK; /* it is between two runs of the batch */
    if (!hash || !hf__slice_is(ledger->hash, hash))
        return backfill_refuse_chain(network_of(worker), sequence, hash ? hash : "NULL",
                                     ledger->hash, err);
    looking->found++;
    worker->is_there[at] = claimed == counted && (size_t)counted == ledger->transaction_count;
    return worker->is_there[at] ? HF_OK : make_room(tx, worker, sequence, err);
}

static hf_status look_at_rows(hf_tx *tx, void *arg, hf_error *err)
{
    struct looking *looking = arg;
    struct worker *worker = looking->worker;
    char first[24], last[24];
    const hf_value values[] = {hf__number_value(first, batch_first(&worker->batch)),
                               hf__number_value(last, batch_last(&worker->batch))};
    hf_rows *rows = NULL;
    looking->found = 0;
    hf_status status = hf__network_query(tx, network_of(worker), &hf__sql_ingest_ledgers_there, 2,
                                         values, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++)
        status = take_found(tx, looking, rows, i, err);
    hf_rows_free(rows);
    return status;
}

/* Transactions whose ledger is not there: its row was lost, and nothing covers them. */
static hf_status drop_orphans(hf_tx *tx, void *arg, hf_error *err)
{
    const struct worker *worker = arg;
    const struct batch *batch = &worker->batch;
    hf_status status = HF_OK;
    for (size_t at = 0, end = 0; status == HF_OK && at < batch->count; at = end) {
        end = backfill_run_end(batch, at);
        status = run_for(tx, network_of(worker), &hf__sql_ingest_drop_transactions,
                         hf__toid(batch->ledgers[at]->sequence, 0),
                         hf__toid(batch->ledgers[end - 1]->sequence + 1, 0) - 1, err);
    }
    return status;
}

hf_status backfill_look(struct worker *worker, hf_error *err)
{
    struct looking looking = {.worker = worker};
    hf_tx_options options = hf__network_tx_options(network_of(worker));
    worker->is_there = calloc(worker->batch.count, sizeof *worker->is_there);
    if (!worker->is_there)
        return hf__no_memory(err);
    hf_status status = hf_lock_transact(worker->lock, &options, look_at_rows, &looking, err);
    if (status == HF_OK && looking.found == 0)
        status = hf_lock_transact(worker->lock, &options, drop_orphans, worker, err);
    return status;
}

/* ---- quarantine ------------------------------------------------------------------------------ */

struct quarantining {
    const struct worker *worker;
    int64_t sequence;
    const char *reason;
    const hf__bad_ledger *bad;
};

static hf_status write_quarantine(hf_tx *tx, void *arg, hf_error *err)
{
    const struct quarantining *one = arg;
    return hf__quarantine_add(tx, network_of(one->worker), one->sequence, one->reason, one->bad,
                              err);
}

hf_status backfill_quarantine(struct worker *worker, int64_t sequence, const char *reason,
                              const hf__bad_ledger *bad, hf_error *err)
{
    struct quarantining one = {worker, sequence, reason, bad};
    hf_tx_options options = hf__network_tx_options(network_of(worker));
    return hf_lock_transact(worker->lock, &options, write_quarantine, &one, err);
}
