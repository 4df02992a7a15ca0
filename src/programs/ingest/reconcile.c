#include "programs/ingest/reconcile.h"

#include <inttypes.h>
#include <stdio.h>

#include "programs/ingest/sources/source.h"
#include "programs/ingest/sql.h"

/* ---- queries with one number ----------------------------------------------------------------- */

hf_status hf__query_number(hf_tx *tx, const hf_network *network, const hf__sql *sql, size_t count,
                           const hf_value *values, bool *found, int64_t *number, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = hf__network_query(tx, network, sql, count, values, &rows, err);
    *found = status == HF_OK && hf_rows_count(rows) > 0 && hf_rows_value(rows, 0, 0, NULL);
    if (*found)
        status = hf__row_number(rows, 0, 0, network->schema, number, err);
    hf_rows_free(rows);
    return status;
}

hf_status hf__has_column(hf_tx *tx, const hf_network *network, const char *table,
                         const char *column, bool *has, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(table), HF_TEXT(column), HF_TEXT(network->schema)};
    int64_t one = 0;
    return hf__query_number(tx, network, &hf__sql_ingest_has_column, 3, values, has, &one, err);
}

/* ---- where the data begins ------------------------------------------------------------------- */

struct start {
    bool has_ledgers;
    int64_t ledgers; /* the first row of ledgers */
    bool has_transactions;
    int64_t transactions; /* the ledger of the first row of transactions */
    bool has_id;          /* transactions has to_id, which grows with the ledger */
};

static hf_status find_transactions(hf_tx *tx, const hf_network *network, struct start *start,
                                   hf_error *err)
{
    bool has_number = false;
    hf_status status =
        hf__has_column(tx, network, "transactions", "ledger_number", &has_number, err);
    if (status == HF_OK && has_number)
        status = hf__has_column(tx, network, "transactions", "to_id", &start->has_id, err);
    if (status != HF_OK || !has_number)
        return status;
    return hf__query_number(tx, network,
                            start->has_id ? &hf__sql_ingest_first_transaction
                                          : &hf__sql_ingest_first_transaction_without_id,
                            0, NULL, &start->has_transactions, &start->transactions, err);
}

static hf_status find_start(hf_tx *tx, const hf_network *network, const hf__tables_there *there,
                            struct start *start, hf_error *err)
{
    bool has_sequence = false;
    hf_status status = HF_OK;
    *start = (struct start){0};
    if (there->ledgers)
        status = hf__has_column(tx, network, "ledgers", "sequence", &has_sequence, err);
    if (status == HF_OK && has_sequence)
        status = hf__query_number(tx, network, &hf__sql_ingest_first_ledger, 0, NULL,
                                  &start->has_ledgers, &start->ledgers, err);
    if (status == HF_OK && there->transactions)
        status = find_transactions(tx, network, start, err);
    return status;
}

/* Does the first ledger with transactions have fewer of them than it states? */
static hf_status is_partial(hf_tx *tx, const hf_network *network, const struct start *start,
                            bool *partial, hf_error *err)
{
    char first[24], from[24], to[24];
    int64_t sequence = 0;
    const hf_value values[] = {hf__number_value(first, start->transactions),
                               hf__number_value(from, hf__toid(start->transactions, 0)),
                               hf__number_value(to, hf__toid(start->transactions + 1, 0))};
    return hf__query_number(tx, network,
                            start->has_id ? &hf__sql_ingest_is_partial
                                          : &hf__sql_ingest_is_partial_without_id,
                            3, values, partial, &sequence, err);
}

/*
 * The last ledger at the lower end whose transactions were dropped, all or some of them: the rows
 * of transactions may have been dropped further up than those of ledgers.
 */
static hf_status find_lost(hf_tx *tx, const hf_network *network, const struct start *start,
                           bool *found, int64_t *lost, hf_error *err)
{
    char first[24];
    bool partial = false;
    hf_value value =
        hf__number_value(first, start->has_transactions ? start->transactions : INT64_MAX);
    hf_status status =
        hf__query_number(tx, network, &hf__sql_ingest_last_lost, 1, &value, found, lost, err);
    if (status == HF_OK && start->has_transactions)
        status = is_partial(tx, network, start, &partial, err);
    if (status == HF_OK && partial) {
        *found = true;
        *lost = start->transactions;
    }
    return status;
}

/* The first ledger with all its rows. Only the lower end is looked at, where data is dropped. */
static hf_status find_first(hf_tx *tx, const hf_network *network, const hf__tables_there *there,
                            bool *found, int64_t *first, hf_error *err)
{
    struct start start;
    bool counted = false, has_lost = false;
    int64_t lost = 0;
    hf_status status = find_start(tx, network, there, &start, err);
    *found = status == HF_OK && (start.has_ledgers || start.has_transactions);
    if (!*found)
        return status;
    *first = start.has_ledgers ? start.ledgers : start.transactions;
    if (!start.has_ledgers || !there->transactions)
        return HF_OK;
    status = hf__has_column(tx, network, "ledgers", "transaction_count", &counted, err);
    if (status == HF_OK && counted)
        status = find_lost(tx, network, &start, &has_lost, &lost, err);
    if (status == HF_OK && has_lost && lost >= *first)
        *first = lost + 1;
    if (status == HF_OK && !counted && start.has_transactions && start.transactions > *first)
        *first = start.transactions;
    return status;
}

/* ---- one transaction ------------------------------------------------------------------------- */

struct reconciling {
    hf_network *network;
    hf__reconcile_report *report;
};

static hf_status refuse(const hf_network *network, const char *why, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "network %s (schema %s): %s", network->name, network->schema, why);
    hf__hint(err,
             "nothing was changed; 'holdfast ingest adopt --network %s' looks at all the data, "
             "'holdfast ingest reset --network %s --to 0' starts anew",
             network->name, network->name);
    return status;
}

static hf_status count_below(hf_tx *tx, const hf_network *network, int64_t floor, int64_t *count,
                             hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, floor);
    bool found = false;
    *count = 0;
    return hf__query_number(tx, network, &hf__sql_ingest_count_covered_below, 1, &value, &found,
                            count, err);
}

/* What was dropped is not wanted any more: gaps must not list it, nor a backfill fetch it. */
static hf_status raise_floor(hf_tx *tx, const hf_network *network, int64_t floor, hf_error *err)
{
    bool found = false;
    int64_t before = 0;
    hf_status status =
        hf__cursor_read(tx, network, HF__RETENTION_FLOOR, true, &found, &before, err);
    if (status == HF_OK && (!found || before < floor))
        status = hf__cursor_write(tx, network, HF__RETENTION_FLOOR, floor, err);
    return status;
}

/* Coverage is locked before the cursors, in the order of the writers of ledgers: no deadlock. */
static hf_status clip_to_data(hf_tx *tx, const struct reconciling *job,
                              const hf__tables_there *there, bool *covered, hf_error *err)
{
    const hf_network *network = job->network;
    hf__reconcile_report *report = job->report;
    hf_range last = {0};
    int64_t row_from = 0;
    bool found = false;
    hf_status status = hf__coverage_last(tx, network, covered, &last, &row_from, err);
    if (status != HF_OK || !*covered)
        return status;
    status = hf__network_lock(tx, network, network->coverage_key, err);
    if (status == HF_OK)
        status = find_first(tx, network, there, &found, &report->data_from, err);
    if (status == HF_OK && (!found || report->data_from > last.to))
        return refuse(network, "the data of all that is covered is gone", err);
    if (status == HF_OK)
        status = count_below(tx, network, report->data_from, &report->uncovered, err);
    if (status == HF_OK && report->uncovered > 0)
        status = hf__coverage_clip(tx, network, report->data_from, 0, err);
    return status;
}

static hf_status find_true_oldest(hf_tx *tx, const struct reconciling *job,
                                  const hf__tables_there *there, bool covered, hf_error *err)
{
    hf__reconcile_report *report = job->report;
    hf_range last = {0};
    int64_t row_from = 0;
    bool found = false;
    hf_status status = HF_OK;
    if (covered) {
        status = hf__coverage_last(tx, job->network, &found, &last, &row_from, err);
        report->oldest = last.from;
    } else {
        status = find_first(tx, job->network, there, &found, &report->data_from, err);
        report->oldest = report->data_from;
    }
    if (status == HF_OK && !found)
        status = refuse(job->network, "there is no data", err);
    return status;
}

static hf_status reconcile(hf_tx *tx, void *arg, hf_error *err)
{
    const struct reconciling *job = arg;
    hf__reconcile_report *report = job->report;
    const hf_network *network = job->network;
    hf__tables_there there = {0};
    bool covered = false, found = false;

    *report = (hf__reconcile_report){0};
    hf_status status = hf__tables_look(tx, network, &there, err);
    if (status == HF_OK && !there.store)
        status = refuse(network, "there is no table ingest_store", err);
    if (status == HF_OK && there.coverage)
        status = clip_to_data(tx, job, &there, &covered, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, network->oldest, true, &found, &report->oldest_before,
                                 err);
    if (status == HF_OK && !found)
        status = refuse(network, "there is no cursor for the oldest ledger", err);
    if (status == HF_OK)
        status = find_true_oldest(tx, job, &there, covered, err);
    if (status == HF_OK && report->oldest != report->oldest_before)
        status = hf__cursor_write(tx, network, network->oldest, report->oldest, err);
    if (status == HF_OK && report->uncovered > 0)
        status = raise_floor(tx, network, report->data_from, err);
    return status;
}

static hf_status look(hf_tx *tx, void *arg, hf_error *err)
{
    return hf__tables_look(tx, ((struct reconciling *)arg)->network, &(hf__tables_there){0}, err);
}

hf_status hf__reconcile(hf_network *network, hf__reconcile_report *report, hf_error *err)
{
    struct reconciling job = {.network = network, .report = report};
    bool there = false;
    hf_status status = hf__network_read(network, look, &job, &there, err);
    if (status == HF_OK && !there)
        status = refuse(network, "there is no such file in the store", err);
    return status == HF_OK ? hf__network_transact(network, reconcile, &job, err) : status;
}
