/* A worker: takes cells, locks them, reads coverage again, and fills what is missing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/ingest/backfill/parts.h"

enum {
    TRIES = 3,
    MOST_PAUSE_MS = 10000,
    LOCK_WAIT_MS = 500, /* at a time, so that a stop does not have to wait longer */
    ENDS_AFTER = 3,     /* give up after so many cells in a row failed: source or store is away */
};

/* ---- the lock -------------------------------------------------------------------------------- */

static hf_status lock_cells(struct worker *worker, hf_error *err)
{
    const struct backfill *fill = worker->fill;
    char labels[PLAN_RUN][128];
    hf_target targets[PLAN_RUN];
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    for (size_t i = 0; i < worker->job.count; i++) {
        (void)snprintf(labels[i], sizeof labels[i], "holdfast:backfill:%s:%" PRId64,
                       fill->network->schema, fill->plan.cells[worker->job.first + i].number);
        targets[i] = HF_LABEL(labels[i]);
    }
    spec.targets = targets;
    spec.target_count = worker->job.count;
    spec.flags = HF_PRIVATE;
    spec.wait_ms = worker->job.wait ? LOCK_WAIT_MS : 0;
    return hf_lock_acquire(fill->store, &spec, &worker->lock, err);
}

static void unlock_cells(struct worker *worker)
{
    hf_lock_free(worker->lock);
    worker->lock = NULL;
}

/* ---- what is missing ------------------------------------------------------------------------- */

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void set_missing(struct worker *worker, hf__ranges *missing)
{
    hf__ranges_free(&worker->missing);
    worker->missing = *missing;
    worker->range = 0;
    *missing = (hf__ranges){0};
}

/* Fills worker->missing from the plan, in case the store cannot even be asked. */
static void expect_missing(struct worker *worker)
{
    const struct backfill *fill = worker->fill;
    hf_range cells = plan_range(&fill->plan, &worker->job);
    hf__ranges missing = {0};
    for (size_t i = backfill_find_missing(fill, cells.from);
         i < fill->missing.count && fill->missing.items[i].from <= cells.to; i++)
        if (!hf__ranges_add(&missing, greater(fill->missing.items[i].from, cells.from),
                            smaller(fill->missing.items[i].to, cells.to)))
            break; /* out of memory: only the report would be incomplete */
    set_missing(worker, &missing);
    hf__ranges_free(&missing);
}

/* Reads what is missing in the cells, within the window, the floor and the latest ledger. */
static hf_status read_missing(hf_tx *tx, void *arg, hf_error *err)
{
    struct worker *worker = arg;
    struct backfill *fill = worker->fill;
    const hf_network *network = fill->network;
    hf_range range = plan_range(&fill->plan, &worker->job);
    hf__ranges covered = {0}, missing = {0};
    struct bounds bounds;
    hf_status status = backfill_read_bounds(tx, network, &bounds, err);
    range.from = greater(range.from, greater(fill->window.from, bounds.floor));
    range.to = smaller(range.to, smaller(fill->window.to, bounds.latest));
    if (status == HF_OK && range.from <= range.to)
        status = hf__coverage_read(tx, network, range.from, range.to, &covered, err);
    if (status == HF_OK && range.from <= range.to &&
        !hf__ranges_missing(&covered, range.from, range.to, &missing))
        status = hf__no_memory(err);
    if (status == HF_OK)
        set_missing(worker, &missing);
    hf__ranges_free(&covered);
    hf__ranges_free(&missing);
    return status;
}

static hf_status read_missing_locked(struct worker *worker, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(worker->fill->network);
    options.read_only = true;
    return hf_lock_transact(worker->lock, &options, read_missing, worker, err);
}

/* Another process may have filled the cells. Looking first saves acquiring the lock. */
static hf_status read_missing_unlocked(struct worker *worker, hf_error *err)
{
    bool there = true;
    return hf__network_read(worker->fill->network, read_missing, worker, &there, err);
}

/* ---- a job ----------------------------------------------------------------------------------- */

static hf_status fill_missing(struct worker *worker, hf_error *err)
{
    const struct backfill *fill = worker->fill;
    const hf__ranges *missing = &worker->missing;
    int64_t width = fill->options->partition_ledgers;
    if (missing->count == 0)
        return HF_OK;
    hf_status status = hf__partitions_ensure(fill->network, missing->items[0].from,
                                             missing->items[missing->count - 1].to,
                                             width > 0 ? width : HF__PARTITION_LEDGERS, err);
    while (status == HF_OK && worker->range < missing->count) {
        status = backfill_range(worker, err);
        if (status == HF_OK)
            worker->range++;
    }
    return status;
}

static void note_elsewhere(struct worker *worker)
{
    struct backfill *fill = worker->fill;
    pthread_mutex_lock(&fill->mutex);
    fill->report->cells_elsewhere += (int64_t)worker->job.count;
    pthread_mutex_unlock(&fill->mutex);
}

static hf_status attempt(struct worker *worker, hf_error *err)
{
    worker->lacking.count = 0;
    worker->quarantined = 0;
    worker->troubles = 0;
    worker->source_failed = false;
    hf_status status = read_missing_unlocked(worker, err);
    if (status == HF_OK && worker->missing.count == 0) {
        note_elsewhere(worker);
        return HF_OK;
    }
    if (status == HF_OK)
        status = lock_cells(worker, err);
    if (status == HF_OK)
        status = read_missing_locked(worker, err);
    if (status == HF_OK && worker->missing.count == 0)
        note_elsewhere(worker);
    if (status == HF_OK)
        status = fill_missing(worker, err);
    if (status != HF_OK) {
        err->code = status;
        stream_close(&worker->stream); /* it has read ledgers that were not committed */
        worker->is_doubtful = true;
    }
    batch_free(&worker->batch);
    free(worker->is_there);
    worker->is_there = NULL;
    unlock_cells(worker);
    return status;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

static bool is_class(const hf_error *err, const char *class_name)
{
    return strncmp(err->sqlstate, class_name, 2) == 0;
}

/*
 * SQLSTATE classes: 08 connection, 40 rollback, 53 no resources, 55 object in use, 57 operator
 * intervention, 58 system error.
 */
static bool may_pass(const hf_error *err)
{
    switch (err->code) {
    case HF_UNREACHABLE:
    case HF_LOST:
    case HF_IN_DOUBT:
    case HF_EXHAUSTED:
    case HF_CURSOR:
    case HF_QUOTA: return true;
    case HF_DATABASE:
        return is_class(err, "08") || is_class(err, "40") || is_class(err, "53") ||
               is_class(err, "55") || is_class(err, "57") || is_class(err, "58") ||
               strcmp(err->sqlstate, "23514") == 0; /* the partition was dropped meanwhile */
    default: return false;
    }
}

/* Would every other cell fail too? */
static bool ends_all(const struct worker *worker, const hf_error *err)
{
    switch (err->code) {
    case HF_BAD_DATA:
    case HF_NO_MEMORY: return true;
    case HF_CONFIG: return !worker->source_failed;
    default: return false;
    }
}

static void settle(struct worker *worker, void (*how)(struct plan *, const struct job *))
{
    struct backfill *fill = worker->fill;
    pthread_mutex_lock(&fill->mutex);
    how(&fill->plan, &worker->job);
    pthread_cond_broadcast(&fill->changed);
    pthread_mutex_unlock(&fill->mutex);
}

static void report_lacking(struct worker *worker)
{
    hf_error why = {0};
    (void)!hf__fail(&why, HF_UNREACHABLE, "the source does not have them");
    for (size_t i = 0; i < worker->lacking.count; i++)
        backfill_fail(worker->fill, worker->lacking.items[i], &why);
}

static void finish_job(struct worker *worker)
{
    struct backfill *fill = worker->fill;
    report_lacking(worker);
    pthread_mutex_lock(&fill->mutex);
    fill->report->quarantined += worker->quarantined;
    fill->failed_in_a_row = 0;
    pthread_mutex_unlock(&fill->mutex);
    settle(worker, plan_done);
}

static void fail_job(struct worker *worker, const hf_error *why)
{
    struct backfill *fill = worker->fill;
    report_lacking(worker);
    for (size_t i = 0; i < worker->missing.count; i++)
        if (worker->missing.items[i].from <= worker->missing.items[i].to)
            backfill_fail(fill, worker->missing.items[i], why);
    pthread_mutex_lock(&fill->mutex);
    fill->report->quarantined += worker->quarantined;
    bool away = may_pass(why) || worker->source_failed;
    fill->failed_in_a_row = away ? fill->failed_in_a_row + 1 : 0;
    fill->gave_up = fill->gave_up || fill->failed_in_a_row >= ENDS_AFTER;
    bool gave_up = fill->gave_up;
    pthread_mutex_unlock(&fill->mutex);
    settle(worker, plan_done);
    if (gave_up)
        backfill_end(fill, HF_UNREACHABLE, why);
}

static void stop_job(struct worker *worker, hf_status status, const hf_error *why)
{
    settle(worker, plan_return);
    if (status == HF_INTERRUPTED)
        backfill_end(worker->fill, status, why); /* the store was interrupted, for all workers */
}

/* Ends the job by how the attempt went. False: the same job is worth another attempt. */
static bool conclude(struct worker *worker, unsigned tries, hf_status status, const hf_error *why)
{
    struct backfill *fill = worker->fill;
    if (status == HF_OK)
        finish_job(worker);
    else if (backfill_is_halted(fill) || status == HF_INTERRUPTED)
        stop_job(worker, status, why);
    else if (status == HF_NOT_ACQUIRED)
        settle(worker, plan_busy);
    else if (ends_all(worker, why))
        backfill_end(fill, status, why);
    else if (worker->job.count > 1)
        settle(worker, plan_return); /* one by one, to find the cell that fails */
    else if (tries >= TRIES || !may_pass(why) || worker->source_failed)
        fail_job(worker, why);
    else
        return false;
    return true;
}

static void pause_before_retry(struct worker *worker, unsigned tries, const hf_error *why)
{
    char text[512];
    int ms = hf__backoff_ms(tries, MOST_PAUSE_MS);
    (void)snprintf(text, sizeof text, "%.400s; trying again in %d s", why->message, ms / 1000);
    backfill_note(worker->fill, text);
    (void)hf__stop_pause(&worker->fill->halt, ms);
}

static void do_job(struct worker *worker)
{
    expect_missing(worker);
    for (unsigned tries = 1;; tries++) {
        hf_error why = {0};
        hf_status status = attempt(worker, &why);
        if (status == HF_NOT_ACQUIRED)
            worker->at = PLAN_NOWHERE; /* another process works here: continue elsewhere */
        if (conclude(worker, tries, status, &why))
            return;
        pause_before_retry(worker, tries, &why);
    }
}

static bool take_job(struct worker *worker)
{
    struct backfill *fill = worker->fill;
    bool taken = false;
    pthread_mutex_lock(&fill->mutex);
    for (;;) {
        if (backfill_is_halted(fill) || plan_is_over(&fill->plan))
            break;
        taken = plan_next(&fill->plan, &worker->at, fill->workers, &worker->job);
        if (taken)
            break;
        pthread_cond_wait(&fill->changed, &fill->mutex);
    }
    pthread_mutex_unlock(&fill->mutex);
    return taken;
}

void *backfill_work(void *arg)
{
    struct worker *worker = arg;
    struct backfill *fill = worker->fill;
    while (take_job(worker))
        do_job(worker);
    stream_close(&worker->stream);
    batch_free(&worker->batch);
    hf__ranges_free(&worker->missing);
    hf__ranges_free(&worker->lacking);
    pthread_mutex_lock(&fill->mutex);
    fill->running--;
    pthread_cond_broadcast(&fill->changed);
    pthread_mutex_unlock(&fill->mutex);
    return NULL;
}

/* ---- a token bucket -------------------------------------------------------------------------- */

static const double burst_seconds = 0.1;

void hf__rate_init(hf__rate *rate, double per_second, int64_t now_ms)
{
    double burst = per_second * burst_seconds;
    pthread_mutex_init(&rate->mutex, NULL);
    rate->per_second = per_second;
    rate->burst = burst > 1 ? burst : 1;
    rate->tokens = rate->burst;
    rate->at_ms = now_ms;
}

void hf__rate_destroy(hf__rate *rate)
{
    pthread_mutex_destroy(&rate->mutex);
}

/* Adds the tokens of the time since at_ms; the mutex is held. A clock that goes back adds none. */
static void fill(hf__rate *rate, int64_t now_ms)
{
    if (now_ms <= rate->at_ms)
        return;
    rate->tokens += (double)(now_ms - rate->at_ms) * rate->per_second / 1000;
    if (rate->tokens > rate->burst)
        rate->tokens = rate->burst;
    rate->at_ms = now_ms;
}

int64_t hf__rate_take(hf__rate *rate, int64_t now_ms)
{
    double lacking = 0;
    if (rate->per_second <= 0)
        return 0;
    pthread_mutex_lock(&rate->mutex);
    fill(rate, now_ms);
    rate->tokens -= 1;
    lacking = -rate->tokens;
    pthread_mutex_unlock(&rate->mutex);
    return lacking > 0 ? (int64_t)(lacking * 1000 / rate->per_second) + 1 : 0;
}
