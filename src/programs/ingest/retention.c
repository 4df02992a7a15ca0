#include "programs/ingest/retention.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/report.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/reconcile.h"
#include "programs/ingest/sql.h"
#include "programs/ingest/writer.h"

enum {
    AIM_MS = 15,      /* for a batch of deletes: no other process can write to SQLite meanwhile */
    FIRST_ROWS = 256, /* in the first batch; then the time that a batch took decides */
    LEAST_ROWS = 16,
    MOST_ROWS = 65536,
    LEAST_PAUSE_MS = 2,
    AHEAD_MS = 24 * 60 * 60 * 1000, /* no ledger closes so far ahead of the clock */
};

struct retention {
    hf_network *network;
    const hf__keep *keep;
    hf__stop *stop;
    hf__retention_report *report;
    int64_t wanted; /* the floor that `keep` asks for */
    int64_t below;  /* that floor, or an earlier one that is higher: partitions below it go */
};

/* ---- the plan, in one snapshot --------------------------------------------------------------- */

static hf_status nothing_there(const hf_network *network, hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG, "network %s has no ledgers in %s (schema %s)",
                                network->name, hf_store_name(network->store), network->schema);
    hf__hint(err, "check --network, --schema and the store; 'holdfast ingest status' lists them");
    return status;
}

static hf_status not_adopted(const hf_network *network, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "network %s has cursors but no coverage", network->name);
    hf__hint(err, "'holdfast ingest adopt --network %s' builds it from the data", network->name);
    return status;
}

static hf_status read_clock(hf_tx *tx, const hf_network *network, int64_t *now, hf_error *err)
{
    bool found = false;
    return hf__query_number(tx, network, &hf__sql_ingest_clock, 0, NULL, &found, now, err);
}

static hf_status check_due(hf_tx *tx, struct retention *run, hf_error *err)
{
    int64_t ran = 0, now = 0;
    bool found = false;
    hf_status status =
        hf__cursor_read(tx, run->network, HF__RETENTION_RAN, false, &found, &ran, err);
    if (status == HF_OK)
        status = read_clock(tx, run->network, &now, err);
    if (status != HF_OK || !found)
        return status;
    int64_t passed = now - ran; /* negative: the clock was set back, so ignore the row */
    run->report->too_early = passed >= 0 && passed < run->keep->every_ms;
    run->report->wait_ms = run->report->too_early ? run->keep->every_ms - passed : 0;
    return HF_OK;
}

/*
 * Old ledgers can be dropped without a scan only if the tables are partitioned. Tables that are not
 * were made by another program, which must drop its data itself.
 */
static hf_status check_partitioned(hf_tx *tx, const hf_network *network, hf_error *err)
{
    bool found = false;
    int64_t others = 0;
    if (network->local)
        return HF_OK;
    hf_status status = hf__query_number(tx, network, &hf__sql_ingest_not_partitioned, 0, NULL,
                                        &found, &others, err);
    if (status != HF_OK || others == 0)
        return status;
    status = hf__fail(err, HF_CONFIG, "the tables of schema %s are not partitioned by ledger",
                      network->schema);
    hf__hint(err,
             "let what made them drop old data, then run 'holdfast retention reconcile "
             "--network %s'",
             network->name);
    return status;
}

/* By a latest ledger that closes in the far future, all others would be old. */
static hf_status check_time(hf_tx *tx, const hf_network *network, int64_t latest, int64_t closed_us,
                            hf_error *err)
{
    char text[HF__TIME_SIZE];
    int64_t now = 0;
    hf_status status = read_clock(tx, network, &now, err);
    if (status != HF_OK || closed_us / 1000 - now <= AHEAD_MS)
        return status;
    hf__show_time(text, closed_us, 0);
    status = hf__fail(err, HF_BAD_DATA,
                      "ledger %" PRId64 ", the latest of network %s, closed at %s, more than a day "
                      "after the store's clock: nothing tells how old the others are",
                      latest, network->name, text);
    hf__hint(err, "nothing was dropped; set the clock right, or keep a number of ledgers");
    return status;
}

/* The time of the latest ledger minus the age, as text in the form that the store compares. */
static hf_status find_cutoff(hf_tx *tx, const struct retention *run, int64_t latest, bool *found,
                             char out[HF__TIME_SIZE], hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, latest);
    int64_t newest = 0;
    hf_status status = hf__query_number(tx, run->network, &hf__sql_ingest_closed_at, 1, &value,
                                        found, &newest, err);
    if (status == HF_OK && *found)
        status = check_time(tx, run->network, latest, newest, err);
    if (status == HF_OK && *found)
        hf__show_time(out, newest - run->keep->age_ms * 1000, 6);
    *found = *found && status == HF_OK;
    return status;
}

/* The first ledger that is not older than the age, counted from the latest one's time. */
static hf_status find_by_age(hf_tx *tx, struct retention *run, int64_t latest, hf_error *err)
{
    char cutoff[HF__TIME_SIZE];
    bool found = false;
    hf_status status = find_cutoff(tx, run, latest, &found, cutoff, err);
    const hf_value value = HF_TEXT(cutoff);
    if (found)
        status = hf__query_number(tx, run->network, &hf__sql_ingest_first_since, 1, &value, &found,
                                  &run->wanted, err);
    if (status == HF_OK && !found)
        status = hf__fail(err, HF_CONFIG,
                          "ledger %" PRId64 ", the latest of network %s, has no row in ledgers, so "
                          "nothing tells how old the others are",
                          latest, run->network->name);
    return status;
}

static hf_status find_floor(hf_tx *tx, struct retention *run, int64_t latest, hf_error *err)
{
    const hf__keep *keep = run->keep;
    int64_t by_count = keep->ledgers > 0 ? latest - keep->ledgers + 1 : 0;
    hf_status status = HF_OK;
    run->wanted = 0;
    if (keep->age_ms > 0)
        status = find_by_age(tx, run, latest, err);
    if (by_count > run->wanted)
        run->wanted = by_count;
    if (run->wanted > latest)
        run->wanted = latest;
    return status;
}

static hf_status plan(hf_tx *tx, void *arg, hf_error *err)
{
    struct retention *run = arg;
    hf__retention_report *report = run->report;
    const hf_network *network = run->network;
    hf__tables_there there = {0};
    bool covered = false, claimed = false, has_floor = false;
    hf_range last = {0};
    int64_t row_from = 0, latest = 0, floor = 0;

    *report = (hf__retention_report){0};
    hf_status status = hf__tables_look(tx, network, &there, err);
    if (status == HF_OK && !there.store)
        status = nothing_there(network, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, network->latest, false, &claimed, &latest, err);
    if (status == HF_OK && there.coverage)
        status = hf__coverage_last(tx, network, &covered, &last, &row_from, err);
    if (status == HF_OK && claimed && !covered)
        status = not_adopted(network, err);
    if (status == HF_OK && covered)
        status = check_partitioned(tx, network, err);
    if (status == HF_OK)
        status = check_due(tx, run, err);
    if (status != HF_OK || !covered || report->too_early)
        return status;
    report->latest = last.to;
    status = find_floor(tx, run, last.to, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, HF__RETENTION_FLOOR, false, &has_floor, &floor, err);
    run->below = has_floor && floor > run->wanted ? floor : run->wanted;
    return status;
}

/* ---- the first step: clip coverage, so that nothing claims what will be dropped -------------- */

static hf_status raise_floor(hf_tx *tx, struct retention *run, hf_error *err)
{
    hf__retention_report *report = run->report;
    const hf_network *network = run->network;
    bool found = false;
    int64_t floor = 0;
    hf_status status = hf__cursor_read(tx, network, HF__RETENTION_FLOOR, true, &found, &floor, err);
    report->floor_before = found ? floor : 0;
    report->floor = found && floor > run->wanted ? floor : run->wanted;
    if (status == HF_OK && report->floor > report->floor_before)
        status = hf__cursor_write(tx, network, HF__RETENTION_FLOOR, report->floor, err);
    return status;
}

static hf_status raise_oldest(hf_tx *tx, struct retention *run, int64_t begins, hf_error *err)
{
    hf__retention_report *report = run->report;
    const hf_network *network = run->network;
    bool found = false;
    int64_t oldest = 0;
    hf_status status = hf__cursor_read(tx, network, network->oldest, true, &found, &oldest, err);
    report->oldest_before = found ? oldest : 0;
    report->oldest = found && oldest > begins ? oldest : begins;
    if (status == HF_OK && report->oldest != report->oldest_before)
        status = hf__cursor_write(tx, network, network->oldest, report->oldest, err);
    return status;
}

/* Coverage is locked before the cursors, in the order of the writers of ledgers: no deadlock. */
static hf_status give_up_claims(hf_tx *tx, void *arg, hf_error *err)
{
    struct retention *run = arg;
    const hf_network *network = run->network;
    bool found = false;
    hf_range last = {0};
    int64_t row_from = 0;
    hf_status status = hf__coverage_clip(tx, network, run->wanted, 0, err);
    if (status == HF_OK)
        status = hf__coverage_last(tx, network, &found, &last, &row_from, err);
    if (status == HF_OK && (!found || last.to < run->report->latest)) {
        status = hf__fail(err, HF_CURSOR, "network %s was reset meanwhile", network->name);
        hf__hint(err, "nothing was changed; run it again");
    }
    if (status == HF_OK)
        status = raise_oldest(tx, run, last.from, err);
    if (status == HF_OK)
        status = raise_floor(tx, run, err);
    return status;
}

/* ---- the second step: partitions ------------------------------------------------------------- */

static bool is_stopped(const struct retention *run)
{
    return run->stop && hf__stop_is_set(run->stop);
}

static hf_status stopped(hf_error *err)
{
    return hf__fail(err, HF_INTERRUPTED, "stopped; the next run goes on");
}

static hf_status may_not_drop(const struct retention *run, const hf__partition *partition,
                              hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG,
                                "the role of %s may not drop the partition of ledgers %" PRId64
                                "-%" PRId64 " in schema %s",
                                hf_store_name(run->network->store), partition->ledger_range.from,
                                partition->ledger_range.to, run->network->schema);
    hf__hint(err, "nothing was changed; run it as the owner of the tables");
    return status;
}

static hf_status name_partition(const struct retention *run, const hf__partition *partition,
                                hf_error *err)
{
    hf_error found = err ? *err : (hf_error){0};
    hf_status status = hf__fail(
        err, HF_NOT_ACQUIRED,
        "partition %s (ledgers %" PRId64 "-%" PRId64 ") is in use and stays for now: %.300s",
        partition->table, partition->ledger_range.from, partition->ledger_range.to, found.message);
    hf__hint(err,
             "its ledgers are not covered any more; run it again, the next run drops it "
             "(%zu left)",
             run->report->left);
    return status;
}

/*
 * Lists the partitions that are to be dropped, before any claim is given up: where they cannot be
 * dropped, nothing changes.
 */
static hf_status list_partitions(struct retention *run, hf__partition **partitions, hf_error *err)
{
    size_t count = 0, *below = &run->report->left;
    hf_status status = hf__partitions_list(run->network, partitions, &count, err);
    while (status == HF_OK && *below < count && (*partitions)[*below].ledger_range.to < run->below)
        if (!(*partitions)[(*below)++].may_drop)
            status = may_not_drop(run, &(*partitions)[*below - 1], err);
    return status;
}

static hf_status drop_partitions(struct retention *run, const hf__partition *partitions,
                                 hf_error *err)
{
    hf__retention_report *report = run->report;
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && report->left > 0; i++) {
        status =
            is_stopped(run) ? stopped(err) : hf__partition_drop(run->network, &partitions[i], err);
        if (status == HF_NOT_ACQUIRED)
            status = name_partition(run, &partitions[i], err);
        if (status == HF_OK) {
            report->dropped++;
            report->left--;
        }
    }
    return status;
}

/* ---- the second step: rows ------------------------------------------------------------------- */

struct deletion {
    const hf_network *network;
    const hf__sql *sql;
    int64_t below;
    int64_t rows; /* at most */
    int64_t gone;
};

static hf_status delete_some(hf_tx *tx, void *arg, hf_error *err)
{
    struct deletion *deletion = arg;
    char bound[24], most[24];
    const hf_value values[] = {hf__number_value(bound, deletion->below),
                               hf__number_value(most, deletion->rows)};
    hf_rows *rows = NULL;
    hf_status status =
        hf__network_query(tx, deletion->network, deletion->sql, 2, values, &rows, err);
    deletion->gone = status == HF_OK ? hf_rows_affected(rows) : 0;
    hf_rows_free(rows);
    return status;
}

static int64_t next_size(int64_t rows, int64_t took_ms)
{
    if (took_ms > AIM_MS)
        rows /= 2;
    else if (took_ms < AIM_MS / 2)
        rows *= 2;
    return rows < LEAST_ROWS ? LEAST_ROWS : rows > MOST_ROWS ? MOST_ROWS : rows;
}

/* Pauses as long as a batch took, so that others can write half of the time. */
static void let_others_write(const struct retention *run, int64_t took_ms)
{
    int ms = took_ms > LEAST_PAUSE_MS ? (int)took_ms : LEAST_PAUSE_MS;
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};
    if (run->stop)
        (void)hf__stop_pause(run->stop, ms);
    else
        (void)nanosleep(&pause, NULL);
}

static hf_status delete_rows(struct retention *run, const hf__sql *sql, int64_t below,
                             hf_error *err)
{
    struct deletion deletion = {
        .network = run->network, .sql = sql, .below = below, .rows = FIRST_ROWS};
    for (;;) {
        if (is_stopped(run))
            return stopped(err);
        int64_t began = hf__now_ms();
        hf_status status = hf__network_transact(run->network, delete_some, &deletion, err);
        if (status != HF_OK)
            return status;
        run->report->rows += deletion.gone;
        if (deletion.gone < deletion.rows)
            return HF_OK;
        int64_t took = hf__now_ms() - began;
        deletion.rows = next_size(deletion.rows, took);
        let_others_write(run, took);
    }
}

/* Rows of ledgers go first: without one, what is left of a ledger is never taken for complete. */
static hf_status delete_ledgers(struct retention *run, hf_error *err)
{
    int64_t floor = run->report->floor;
    hf_status status = delete_rows(run, &hf__sql_ingest_expire_ledgers, floor, err);
    if (status == HF_OK)
        status = delete_rows(run, &hf__sql_ingest_expire_transactions, hf__toid(floor, 0), err);
    return status;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static hf_status write_mark(hf_tx *tx, void *arg, hf_error *err)
{
    const hf_network *network = arg;
    int64_t now = 0;
    hf_status status = read_clock(tx, network, &now, err);
    return status == HF_OK ? hf__cursor_write(tx, network, HF__RETENTION_RAN, now, err) : status;
}

static hf_status work(hf_lock *lock, void *arg, hf_error *err)
{
    struct retention *run = arg;
    hf__partition *partitions = NULL;
    bool there = false;
    (void)lock;
    hf_status status = hf__network_read(run->network, plan, run, &there, err);
    if (status == HF_OK && !there)
        status = nothing_there(run->network, err);
    if (status != HF_OK || run->report->too_early || run->report->latest == 0)
        return status;
    status = list_partitions(run, &partitions, err);
    if (status == HF_OK)
        status = hf__network_transact(run->network, give_up_claims, run, err);
    if (status == HF_OK)
        status =
            run->network->local ? delete_ledgers(run, err) : drop_partitions(run, partitions, err);
    if (status == HF_OK)
        status = hf__network_transact(run->network, write_mark, run->network, err);
    free(partitions);
    return status;
}

hf_status hf__retention_run(hf_store *store, hf_network *network, const hf__keep *keep,
                            hf__stop *stop, hf__retention_report *report, hf_error *err)
{
    struct retention run = {.network = network, .keep = keep, .stop = stop, .report = report};
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    char label[128];
    hf_target target = HF_LABEL(label);
    *report = (hf__retention_report){0};
    if (keep->age_ms <= 0 && keep->ledgers <= 0)
        return hf__fail(err, HF_INVALID, "nothing says what to keep");
    (void)snprintf(label, sizeof label, "holdfast:retention:%s", network->schema);
    spec.targets = &target;
    spec.target_count = 1;
    spec.wait_ms = 0;
    return hf_lock_with(store, &spec, work, &run, err);
}

/* ---- retention beside the live ingester ------------------------------------------------------ */

struct hf__keeper {
    hf_store *store;
    hf_network *network;
    hf__keep keep;
    hf__stop stop;
    pthread_t thread;
};

/* A failure is ignored: the next run is in a minute, and until then more is kept than needed. */
static void *keep_on(void *arg)
{
    hf__keeper *keeper = arg;
    do {
        hf__retention_report report = {0};
        hf_error ignored;
        (void)!hf__retention_run(keeper->store, keeper->network, &keeper->keep, &keeper->stop,
                                 &report, &ignored);
    } while (!hf__stop_pause(&keeper->stop, HF__RETENTION_EVERY_MS));
    return NULL;
}

hf_status hf__keeper_start(hf_store *store, hf_network *network, const hf__keep *keep,
                           hf__keeper **out, hf_error *err)
{
    hf__keeper *keeper = calloc(1, sizeof *keeper);
    if (!keeper)
        return hf__no_memory(err);
    keeper->store = store;
    keeper->network = network;
    keeper->keep = *keep;
    keeper->keep.every_ms = HF__RETENTION_EVERY_MS;
    hf_status status = hf__stop_init(&keeper->stop, err);
    if (status == HF_OK && pthread_create(&keeper->thread, NULL, keep_on, keeper) != 0) {
        hf__stop_destroy(&keeper->stop);
        status = hf__fail(err, HF_NO_MEMORY, "cannot start a thread for retention");
    }
    if (status != HF_OK) {
        free(keeper);
        return status;
    }
    *out = keeper;
    return HF_OK;
}

void hf__keeper_stop(hf__keeper *keeper, bool once_more)
{
    hf__retention_report report = {0};
    hf_error ignored;
    if (!keeper)
        return;
    hf__stop_set(&keeper->stop, HF__STOP_ASKED);
    pthread_join(keeper->thread, NULL);
    keeper->keep.every_ms = 0;
    if (once_more)
        (void)!hf__retention_run(keeper->store, keeper->network, &keeper->keep, NULL, &report,
                                 &ignored);
    hf__stop_destroy(&keeper->stop);
    free(keeper);
}

/* ---- parsing --keep -------------------------------------------------------------------------- */

hf_status read_keep(const char *text, hf__keep *keep, hf_error *err)
{
    static const char suffix[] = "-ledgers";
    size_t size = strlen(text), tail = sizeof suffix - 1;
    char digits[24] = "", shown[SHOWN_MAX];
    hf_status status = HF_INVALID;

    *keep = (hf__keep){0};
    if (size > tail && strcmp(text + size - tail, suffix) == 0 && size - tail < sizeof digits) {
        memcpy(digits, text, size - tail);
        status = hf__parse_int64(digits, "--keep", 1, HF__LEDGER_MAX, &keep->ledgers, NULL);
    } else if (size > 0 && strchr("0123456789.", text[size - 1]) == NULL &&
               hf__parse_duration(text, &keep->age_ms, NULL) == HF_OK && keep->age_ms > 0) {
        status = HF_OK; /* a bare number would be seconds, and was meant to be ledgers */
    }
    if (status == HF_OK)
        return HF_OK;
    status = hf__fail(err, HF_INVALID, "--keep cannot be '%s'", show_argument(shown, text));
    hf__hint(err, "give an age such as 30d, or a number such as 1000-ledgers");
    return status;
}
