#include "programs/ingest/reset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ledgers/ledgers.h"
#include "programs/ingest/reconcile.h"
#include "programs/ingest/retention.h"
#include "programs/ingest/sources/source.h"
#include "programs/ingest/sql.h"
#include "programs/ingest/status.h"

struct resetting {
    hf_network *network;
    int64_t to;
    hf__reset_report *report;
    hf__tables_there there;
    hf__partition *partitions; /* PostgreSQL only */
    size_t count;
};

static hf_status run_above(hf_tx *tx, const struct resetting *job, const hf__sql *sql,
                           int64_t bound, hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, bound);
    return hf__network_query(tx, job->network, sql, 1, &value, NULL, err);
}

/* ---- the data -------------------------------------------------------------------------------- */

/*
 * A backfill may be writing, since it does not hold the network's lock. The table locks wait for
 * its commit, so that we see its rows, and let its next batch begin only after us. They do not
 * conflict with readers.
 */
static hf_status keep_writers_out(hf_tx *tx, const struct resetting *job, hf_error *err)
{
    hf_status status = HF_OK;
    if (job->network->local)
        return HF_OK;
    status = hf__network_query(tx, job->network, &hf__sql_ingest_patience, 0, NULL, NULL, err);
    if (status == HF_OK && job->there.transactions)
        status = hf__network_query(tx, job->network, &hf__sql_ingest_lock_transactions, 0, NULL,
                                   NULL, err);
    if (status == HF_OK && job->there.ledgers)
        status =
            hf__network_query(tx, job->network, &hf__sql_ingest_lock_ledgers, 0, NULL, NULL, err);
    return status;
}

static hf_status empty_partition(hf_tx *tx, const hf_network *network, const char *table,
                                 hf_error *err)
{
    const hf__sql_part parts[] = {{"prefix", network->prefix}, {"table", table}, {0}};
    if (table[0] == '\0')
        return HF_OK;
    return hf__tx_query_sql(tx, &hf__sql_ingest_empty_partition, parts, 0, NULL, NULL, err);
}

/* Whole partitions above the ledger are truncated: deleting millions of rows would take long. */
static hf_status empty_partitions(hf_tx *tx, const struct resetting *job, hf_error *err)
{
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < job->count; i++) {
        const hf__partition *partition = &job->partitions[i];
        if (partition->ledger_range.from <= job->to)
            continue;
        status = empty_partition(tx, job->network, partition->table, err);
        if (status == HF_OK)
            status = empty_partition(tx, job->network, partition->ledgers, err);
    }
    return status;
}

static hf_status delete_data(hf_tx *tx, const struct resetting *job, hf_error *err)
{
    hf_status status = keep_writers_out(tx, job, err);
    if (status == HF_OK)
        status = empty_partitions(tx, job, err);
    if (status == HF_OK && job->there.transactions)
        status =
            run_above(tx, job, &hf__sql_ingest_delete_transactions, hf__toid(job->to + 1, 0), err);
    if (status == HF_OK && job->there.ledgers)
        status = run_above(tx, job, &hf__sql_ingest_delete_ledgers, job->to, err);
    if (status == HF_OK && job->there.quarantine)
        status = run_above(tx, job, &hf__sql_ingest_delete_quarantine, job->to, err);
    return status;
}

/* ---- coverage and cursors -------------------------------------------------------------------- */

static hf_status count_covered(hf_tx *tx, const struct resetting *job, int64_t *count,
                               hf_error *err)
{
    bool found = false;
    *count = 0;
    return hf__query_number(tx, job->network, &hf__sql_ingest_count_covered, 0, NULL, &found, count,
                            err);
}

static hf_status clip(hf_tx *tx, const struct resetting *job, hf_error *err)
{
    if (job->to > 0)
        return hf__coverage_clip(tx, job->network, 0, job->to, err);
    return hf__coverage_clip(tx, job->network, INT64_MAX, 0, err);
}

static hf_status remove_row(hf_tx *tx, const hf_network *network, const char *name, hf_error *err)
{
    hf_value value = HF_TEXT(name);
    return hf__network_query(tx, network, &hf__sql_ingest_forget, 1, &value, NULL, err);
}

/* Nothing is left: the network is as before its first run. Rows of other programs stay. */
static hf_status forget(hf_tx *tx, const struct resetting *job, hf_error *err)
{
    const hf_network *network = job->network;
    const char *const names[] = {
        network->latest,   network->oldest,      HF__WANTED_FROM,  HF__RETENTION_FLOOR,
        HF__RETENTION_RAN, HF__SOURCE_TIP,       HF__LAST_SUCCESS, HF__LIVE_LEDGERS,
        HF__LIVE_COUNTED,  HF__BACKFILL_LEDGERS,
    };
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < sizeof names / sizeof *names; i++)
        status = remove_row(tx, network, names[i], err);
    return status;
}

static hf_status move_back(hf_tx *tx, const struct resetting *job, hf_error *err)
{
    const hf_network *network = job->network;
    hf__reset_report *report = job->report;
    hf_range last = {0};
    int64_t row_from = 0;
    bool found = false;
    hf_status status = HF_OK;
    if (job->there.coverage)
        status = hf__coverage_last(tx, network, &found, &last, &row_from, err);
    if (status == HF_OK && !found)
        return forget(tx, job, err);
    report->latest = last.to;
    report->oldest = last.from;
    if (status == HF_OK)
        status = hf__cursor_write(tx, network, network->latest, last.to, err);
    if (status == HF_OK)
        status = hf__cursor_write(tx, network, network->oldest, last.from, err);
    return status;
}

/*
 * Where nothing up to the ledger is covered, nothing is left, and the next run is a first one: rows
 * that retention has not dropped yet would be in its way.
 */
static hf_status find_end(hf_tx *tx, struct resetting *job, hf_error *err)
{
    hf__ranges left = {0};
    hf_status status = HF_OK;
    if (job->there.coverage)
        status = hf__coverage_read(tx, job->network, 0, job->to, &left, err);
    if (status == HF_OK && left.count == 0)
        job->to = 0;
    hf__ranges_free(&left);
    return status;
}

static hf_status reset(hf_tx *tx, void *arg, hf_error *err)
{
    struct resetting *job = arg;
    const hf_network *network = job->network;
    hf__reset_report *report = job->report;
    int64_t before = 0, after = 0;

    *report = (hf__reset_report){0};
    hf_status status = find_end(tx, job, err);
    if (status == HF_OK)
        status = delete_data(tx, job, err);
    if (status == HF_OK && job->there.coverage)
        status = hf__network_lock(tx, network, network->coverage_key, err);
    if (status == HF_OK && job->there.coverage)
        status = count_covered(tx, job, &before, err);
    if (status == HF_OK && job->there.coverage)
        status = clip(tx, job, err);
    if (status == HF_OK && job->there.coverage)
        status = count_covered(tx, job, &after, err);
    report->uncovered = before - after;
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, network->latest, true, &report->had_latest,
                                 &report->latest_before, err);
    return status == HF_OK ? move_back(tx, job, err) : status;
}

/* ---- a reset --------------------------------------------------------------------------------- */

static hf_status look(hf_tx *tx, void *arg, hf_error *err)
{
    struct resetting *job = arg;
    return hf__tables_look(tx, job->network, &job->there, err);
}

static hf_status not_there(const hf_network *network, hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG, "network %s has nothing in %s (schema %s)",
                                network->name, hf_store_name(network->store), network->schema);
    hf__hint(err, "check --network, --schema and the store; 'holdfast ingest status' lists them");
    return status;
}

/* SQLSTATE 55P03: a lock of keep_writers_out or a TRUNCATE ran into lock_timeout. */
static hf_status name_reader(const hf_network *network, hf_status status, hf_error *err)
{
    if (status != HF_DATABASE || !err || strcmp(err->sqlstate, "55P03") != 0)
        return status;
    status = hf__fail(err, HF_NOT_ACQUIRED,
                      "somebody has used the tables of network %s for 10 s: nothing was changed",
                      network->name);
    hf__hint(err, "end long transactions and backfills on schema %s, then run it again",
             network->schema);
    return status;
}

/* Tables of another shape were made by another program, and what is in them is not ours. */
static hf_status work(struct resetting *job, hf_lock *lock, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(job->network);
    bool there = false;
    hf_status status = hf__tables_check(job->network, &there, err);
    if (status == HF_OK)
        status = hf__network_read(job->network, look, job, &there, err);
    if (status == HF_OK && (!there || !job->there.store))
        status = not_there(job->network, err);
    if (status == HF_OK)
        status = hf__partitions_list(job->network, &job->partitions, &job->count, err);
    if (status == HF_OK)
        status = name_reader(job->network, hf_lock_transact(lock, &options, reset, job, err), err);
    free(job->partitions);
    return status;
}

hf_status hf__reset(hf_store *store, hf_network *network, int64_t to, hf__reset_report *report,
                    hf_error *err)
{
    struct resetting job = {.network = network, .to = to, .report = report};
    hf_lock *lock = NULL;
    *report = (hf__reset_report){0};
    if (to < 0 || to >= HF__LEDGER_MAX)
        return hf__fail(err, HF_INVALID, "%" PRId64 " is no ledger to go back to", to);
    hf_status status = hf__take_network(store, network, &lock, err);
    if (status == HF_OK)
        status = work(&job, lock, err);
    hf_lock_free(lock);
    return status;
}

/* ---- the network's lock ---------------------------------------------------------------------- */

hf_status hf__take_network(hf_store *store, const hf_network *network, hf_lock **lock,
                           hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_target target = {.label = network->label, .derivation = HF_FNV1A64};
    spec.targets = &target;
    spec.target_count = 1;
    spec.flags = HF_PRIVATE;
    spec.wait_ms = 0;
    hf_status status = hf_lock_acquire(store, &spec, lock, err);
    if (status != HF_NOT_ACQUIRED || !err)
        return status;
    hf_error found = *err;
    status =
        hf__fail(err, HF_NOT_ACQUIRED, "network %s (key %" PRId64 ") is being ingested: %.700s",
                 network->name, network->lock_key, found.message);
    hf__hint(err, "stop the ingester first");
    return status;
}
