#include "programs/ingest/adopt.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/ledgers/ledgers.h"
#include "programs/ingest/reconcile.h"
#include "programs/ingest/reset.h"
#include "programs/ingest/sql.h"

struct adoption {
    hf_network *network;
    hf__adopt_report *report;
    hf__tables_there there; /* before adopting creates any */
    bool dry_run;
};

void hf__adopt_report_free(hf__adopt_report *report)
{
    hf__ranges_free(&report->covered);
    hf__ranges_free(&report->lacking);
}

static hf_status nothing_to_adopt(const hf_network *network, const char *why, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "nothing to adopt in schema %s: %s", network->schema, why);
    hf__hint(err, "check --schema and the store; 'holdfast ingest' makes tables of its own");
    return status;
}

static hf_status nothing_to_leave(const hf_network *network, hf_error *err)
{
    return hf__fail(err, HF_CONFIG, "nothing to leave in schema %s: it has no coverage",
                    network->schema);
}

/* ---- coverage from the data ------------------------------------------------------------------ */

enum evidence {
    WHOLE_LEDGERS, /* rows of ledgers with as many transactions as they state */
    LEDGERS,       /* rows of ledgers: their transactions cannot be counted */
    TRANSACTIONS,  /* there are no rows of ledgers: ledgers that have transactions */
};

static hf_status choose_evidence(hf_tx *tx, const struct adoption *job, enum evidence *evidence,
                                 hf_error *err)
{
    const hf_network *network = job->network;
    bool has_ledgers = false, counted = false, has_id = false, has_number = false;
    int64_t one = 0;
    hf_status status = hf__has_column(tx, network, "ledgers", "sequence", &has_ledgers, err);
    if (status == HF_OK && has_ledgers)
        status = hf__query_number(tx, network, &hf__sql_ingest_has_ledgers, 0, NULL, &has_ledgers,
                                  &one, err);
    if (status == HF_OK)
        status = hf__has_column(tx, network, "ledgers", "transaction_count", &counted, err);
    if (status == HF_OK)
        status = hf__has_column(tx, network, "transactions", "to_id", &has_id, err);
    if (status == HF_OK)
        status = hf__has_column(tx, network, "transactions", "ledger_number", &has_number, err);
    if (status != HF_OK)
        return status;
    *evidence = has_ledgers && counted && has_id ? WHOLE_LEDGERS
                : has_ledgers                    ? LEDGERS
                                                 : TRANSACTIONS;
    job->report->by_transactions = *evidence == TRANSACTIONS;
    if (has_ledgers || has_number)
        return HF_OK;
    return nothing_to_adopt(network, "ledgers has no rows, and transactions no ledger_number", err);
}

/* Adds what the data shows to report->covered. */
static hf_status measure(hf_tx *tx, const struct adoption *job, enum evidence evidence,
                         int64_t floor, hf_error *err)
{
    const hf_network *network = job->network;
    hf__ranges *covered = &job->report->covered;
    char number[24];
    hf_value value = hf__number_value(number, floor);
    hf_range range = {0};
    hf_rows *rows = NULL;
    if (evidence == WHOLE_LEDGERS)
        return hf__coverage_measure(tx, network, floor, covered, err);
    hf_status status = hf__network_query(tx, network,
                                         evidence == LEDGERS ? &hf__sql_ingest_measure_ledgers
                                                             : &hf__sql_ingest_measure_transactions,
                                         1, &value, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++) {
        status = hf__row_number(rows, i, 0, network->schema, &range.from, err);
        if (status == HF_OK)
            status = hf__row_number(rows, i, 1, network->schema, &range.to, err);
        if (status == HF_OK && !hf__ranges_add(covered, range.from, range.to))
            status = hf__no_memory(err);
    }
    hf_rows_free(rows);
    return status;
}

static hf_status count_incomplete(hf_tx *tx, const struct adoption *job, int64_t floor,
                                  hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, floor);
    bool found = false;
    int64_t ledgers = 0, covered = 0;
    hf_status status = hf__query_number(tx, job->network, &hf__sql_ingest_count_ledgers, 1, &value,
                                        &found, &ledgers, err);
    for (size_t i = 0; i < job->report->covered.count; i++)
        covered += job->report->covered.items[i].to - job->report->covered.items[i].from + 1;
    job->report->incomplete = ledgers - covered;
    return status;
}

/* ---- the cursors ----------------------------------------------------------------------------- */

static hf_status read_claims(hf_tx *tx, const struct adoption *job, hf_error *err)
{
    const hf_network *network = job->network;
    hf__adopt_report *report = job->report;
    bool moves = report->moves_cursors && !job->dry_run;
    if (job->dry_run && !job->there.store)
        return HF_OK;
    hf_status status = hf__cursor_read(tx, network, network->latest, moves, &report->had_latest,
                                       &report->claimed_latest, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, network->oldest, moves, &report->had_oldest,
                                 &report->claimed_oldest, err);
    return status;
}

static hf_status find_lacking(const struct adoption *job, int64_t floor, hf_error *err)
{
    hf__adopt_report *report = job->report;
    int64_t from = report->claimed_oldest > floor ? report->claimed_oldest : floor;
    if (!report->had_latest || !report->had_oldest || from > report->claimed_latest)
        return HF_OK;
    if (!hf__ranges_missing(&report->covered, from, report->claimed_latest, &report->lacking))
        return hf__no_memory(err);
    return HF_OK;
}

/*
 * What the cursors claimed stays wanted, so that 'holdfast gaps' lists what is missing of it. Where
 * another program drops old data, its cursor follows that, and what is wanted follows the cursor.
 */
static hf_status set_wanted(hf_tx *tx, const struct adoption *job, hf_error *err)
{
    const hf__adopt_report *report = job->report;
    int64_t wanted = 0, first = report->covered.items[0].from;
    bool found = false, claims = report->had_oldest && report->claimed_oldest >= 0;
    hf_status status =
        hf__cursor_read(tx, job->network, HF__WANTED_FROM, true, &found, &wanted, err);
    if (claims && (report->claimed_oldest < first || !report->moves_cursors))
        first = report->claimed_oldest;
    bool changes = !found || first < wanted || (claims && !report->moves_cursors);
    if (status == HF_OK && changes)
        status = hf__cursor_write(tx, job->network, HF__WANTED_FROM, first, err);
    return status;
}

static hf_status move_cursors(hf_tx *tx, const struct adoption *job, hf_error *err)
{
    const hf_network *network = job->network;
    const hf__adopt_report *report = job->report;
    hf_status status = HF_OK;
    if (!report->had_latest || report->claimed_latest != report->latest)
        status = hf__cursor_write(tx, network, network->latest, report->latest, err);
    if (status == HF_OK && (!report->had_oldest || report->claimed_oldest != report->oldest))
        status = hf__cursor_write(tx, network, network->oldest, report->oldest, err);
    return status;
}

/* ---- adopting -------------------------------------------------------------------------------- */

static hf_status refuse_empty(const struct adoption *job, hf_error *err)
{
    const hf__adopt_report *report = job->report;
    const hf_network *network = job->network;
    if (!report->had_latest)
        return nothing_to_adopt(network, "it has neither data nor cursors", err);
    hf_status status = hf__fail(err, HF_CONFIG,
                                "schema %s has no data, but its cursor %s claims ledgers up to "
                                "%" PRId64,
                                network->schema, network->latest, report->claimed_latest);
    hf__hint(err, "'holdfast ingest reset --network %s --to 0' lets it begin anew", network->name);
    return status;
}

static hf_status look_at_data(hf_tx *tx, const struct adoption *job, hf_error *err)
{
    const hf_network *network = job->network;
    hf__adopt_report *report = job->report;
    enum evidence evidence = TRANSACTIONS;
    bool has_floor = false;
    int64_t floor = 0;

    hf__adopt_report_free(report); /* a failed attempt may have filled it */
    hf_status status = choose_evidence(tx, job, &evidence, err);
    if (status == HF_OK && job->there.store)
        status = hf__cursor_read(tx, network, HF__RETENTION_FLOOR, false, &has_floor, &floor, err);
    if (status == HF_OK)
        status = measure(tx, job, evidence, floor, err);
    if (status == HF_OK && evidence == WHOLE_LEDGERS)
        status = count_incomplete(tx, job, floor, err);
    if (status == HF_OK)
        status = read_claims(tx, job, err);
    if (status == HF_OK && report->covered.count == 0)
        status = refuse_empty(job, err);
    if (status == HF_OK)
        status = find_lacking(job, floor, err);
    if (status == HF_OK) {
        report->latest = report->covered.items[report->covered.count - 1].to;
        report->oldest = report->covered.items[report->covered.count - 1].from;
    }
    return status;
}

static hf_status adopt(hf_tx *tx, void *arg, hf_error *err)
{
    const struct adoption *job = arg;
    const hf_network *network = job->network;
    if (job->dry_run)
        return look_at_data(tx, job, err);
    /* Nobody else can change coverage until the commit, so that what we find stays true. */
    hf_status status = hf__network_lock(tx, network, network->coverage_key, err);
    if (status == HF_OK)
        status = look_at_data(tx, job, err);
    if (status == HF_OK)
        status = hf__coverage_replace(tx, network, &job->report->covered, err);
    if (status == HF_OK)
        status = set_wanted(tx, job, err);
    return status == HF_OK && job->report->moves_cursors ? move_cursors(tx, job, err) : status;
}

static hf_status look(hf_tx *tx, void *arg, hf_error *err)
{
    struct adoption *job = arg;
    return hf__tables_look(tx, job->network, &job->there, err);
}

/*
 * Tables of another shape belong to a program that goes on writing to them: it keeps its cursors,
 * and the report says why we cannot write there.
 */
static hf_status look_at_tables(struct adoption *job, hf_error *err)
{
    hf__adopt_report *report = job->report;
    bool there = false, complete = false;
    hf_error why = {0};
    hf_status status = hf__network_read(job->network, look, job, &there, err);
    if (status == HF_OK && (!there || (!job->there.ledgers && !job->there.transactions)))
        status = nothing_to_adopt(job->network, "it has no table of ledgers or transactions", err);
    if (status != HF_OK)
        return status;
    status = hf__tables_check(job->network, &complete, &why);
    report->moves_cursors = status == HF_OK;
    if (status == HF_CONFIG) {
        (void)snprintf(report->misfit, sizeof report->misfit, "%s", why.message);
        return HF_OK;
    }
    if (status != HF_OK && err)
        *err = why;
    return status;
}

/*
 * The other program may go on meanwhile, so that data and cursors are looked at in one snapshot.
 */
static hf_status adopt_as_guest(struct adoption *job, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(job->network);
    options.isolation = HF_REPEATABLE_READ;
    hf_status status = hf__tables_install_coverage(job->network, err);
    return status == HF_OK ? hf_transact(job->network->store, &options, adopt, job, err) : status;
}

static hf_status adopt_alone(hf_store *store, struct adoption *job, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(job->network);
    hf_lock *lock = NULL;
    hf_status status = hf__take_network(store, job->network, &lock, err);
    if (status == HF_OK)
        status = hf__tables_install(job->network, err);
    if (status == HF_OK)
        status = hf_lock_transact(lock, &options, adopt, job, err);
    hf_lock_free(lock);
    return status;
}

hf_status hf__adopt(hf_store *store, hf_network *network, bool dry_run, hf__adopt_report *report,
                    hf_error *err)
{
    struct adoption job = {.network = network, .report = report, .dry_run = dry_run};
    bool there = false;
    *report = (hf__adopt_report){0};
    hf_status status = look_at_tables(&job, err);
    if (status != HF_OK)
        return status;
    if (dry_run)
        return hf__network_read(network, adopt, &job, &there, err);
    return report->moves_cursors ? adopt_alone(store, &job, err) : adopt_as_guest(&job, err);
}

/* ---- leaving --------------------------------------------------------------------------------- */

static hf_status leave(hf_tx *tx, void *arg, hf_error *err)
{
    const hf_network *network = arg;
    hf__tables_there there = {0};
    bool found = false;
    int64_t quarantined = 0;
    hf_status status = hf__network_lock(tx, network, network->coverage_key, err);
    if (status == HF_OK)
        status = hf__tables_look(tx, network, &there, err);
    if (status == HF_OK && !there.coverage)
        return nothing_to_leave(network, err);
    if (status == HF_OK && there.store)
        status =
            hf__network_query(tx, network, &hf__sql_ingest_forget_own_rows, 0, NULL, NULL, err);
    if (status == HF_OK)
        status = hf__network_query(tx, network, &hf__sql_ingest_drop_coverage, 0, NULL, NULL, err);
    if (status == HF_OK && there.quarantine)
        status = hf__query_number(tx, network, &hf__sql_ingest_count_quarantine, 0, NULL, &found,
                                  &quarantined, err);
    if (status == HF_OK && found && quarantined == 0)
        status = hf__network_query(tx, network, &hf__sql_ingest_drop_quarantine_table, 0, NULL,
                                   NULL, err);
    return status;
}

hf_status hf__adopt_leave(hf_store *store, hf_network *network, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(network);
    bool complete = false;
    hf_error why = {0};
    hf_lock *lock = NULL;
    hf_status status = hf__tables_check(network, &complete, &why);
    if (status == HF_CONFIG) /* another program writes here, and holds the lock */
        return hf__network_transact(network, leave, network, err);
    status = hf__take_network(store, network, &lock, err);
    if (status == HF_OK)
        status = hf_lock_transact(lock, &options, leave, network, err);
    hf_lock_free(lock);
    return status;
}
