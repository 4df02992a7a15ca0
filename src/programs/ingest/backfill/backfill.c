#include "programs/ingest/backfill/backfill.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "programs/ingest/backfill/parts.h"

enum {
    WORKERS = 2,
    MEMORY = 64 * 1024 * 1024,
    MEMORY_LEAST = 1024 * 1024, /* of one worker's queue; enough where the rate is limited */
    LOOK_MS = 100,
};

/* ---- called by the workers ------------------------------------------------------------------- */

bool backfill_is_halted(const struct backfill *fill)
{
    return hf__stop_is_set(&fill->halt);
}

void backfill_note(struct backfill *fill, const char *text)
{
    struct note *note = calloc(1, sizeof *note);
    if (!note)
        return;
    (void)snprintf(note->text, sizeof note->text, "%s", text);
    pthread_mutex_lock(&fill->mutex);
    *fill->last_note = note;
    fill->last_note = &note->next;
    pthread_cond_broadcast(&fill->changed);
    pthread_mutex_unlock(&fill->mutex);
}

void backfill_end(struct backfill *fill, hf_status status, const hf_error *why)
{
    pthread_mutex_lock(&fill->mutex);
    if (fill->ended == HF_OK) {
        fill->ended = status;
        fill->why = *why;
    }
    hf__stop_set(&fill->halt, HF__STOP_ASKED);
    pthread_cond_broadcast(&fill->changed);
    pthread_mutex_unlock(&fill->mutex);
}

void backfill_tell(const struct backfill *fill, const char *text)
{
    const hf__ingest_events *events = &fill->options->events;
    if (events->note)
        events->note(events->arg, text);
}

/* ---- the report ------------------------------------------------------------------------------ */

void backfill_count(struct backfill *fill, hf_range range, int64_t transactions, int64_t known)
{
    pthread_mutex_lock(&fill->mutex);
    if (hf__grow(&fill->filled, &fill->filled_room, fill->filled_count + 1, sizeof *fill->filled))
        fill->filled[fill->filled_count++] = range;
    fill->report->ledgers += range.to - range.from + 1 - known;
    fill->report->transactions += transactions;
    fill->report->known += known;
    fill->progressed = true;
    pthread_cond_broadcast(&fill->changed);
    pthread_mutex_unlock(&fill->mutex);
}

/* Extends the last failure by the range if they touch and have the same reason. */
static bool join(struct hf__backfill_failure *last, hf_range range, const hf_error *why)
{
    if (range.from < last->range.from || range.from > last->range.to + 1 ||
        strcmp(last->why.message, why->message) != 0)
        return false;
    if (range.to > last->range.to)
        last->range.to = range.to;
    return true;
}

static void add_failure(struct backfill *fill, hf_range range, const hf_error *why)
{
    struct hf__backfill_report *report = fill->report;
    if (report->failure_count > 0 && join(&report->failures[report->failure_count - 1], range, why))
        return;
    if (hf__grow(&report->failures, &fill->failure_room, report->failure_count + 1,
                 sizeof *report->failures))
        report->failures[report->failure_count++] = (struct hf__backfill_failure){range, *why};
}

void backfill_fail(struct backfill *fill, hf_range range, const hf_error *why)
{
    if (range.from > range.to)
        return;
    pthread_mutex_lock(&fill->mutex);
    add_failure(fill, range, why);
    pthread_mutex_unlock(&fill->mutex);
}

size_t backfill_find_missing(const struct backfill *fill, int64_t sequence)
{
    size_t low = 0, high = fill->missing.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fill->missing.items[middle].to < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int by_start(const void *a, const void *b)
{
    const hf_range *first = a, *second = b; /* the first member of a failure too */
    return first->from < second->from ? -1 : first->from > second->from;
}

/* After giving up: reports what was not even tried as failed. */
static void report_left(struct backfill *fill)
{
    for (size_t i = 0; fill->gave_up && i < fill->plan.count; i++) {
        struct job job = {.first = i, .count = 1};
        hf_range cell = plan_range(&fill->plan, &job);
        if (fill->plan.cells[i].state == CELL_DONE)
            continue;
        for (size_t r = backfill_find_missing(fill, cell.from);
             r < fill->missing.count && fill->missing.items[r].from <= cell.to; r++) {
            const hf_range *range = &fill->missing.items[r];
            backfill_fail(fill,
                          (hf_range){range->from > cell.from ? range->from : cell.from,
                                     range->to < cell.to ? range->to : cell.to},
                          &fill->why);
        }
    }
}

/* Sorts the failures, and joins neighbours that failed for the same reason. */
static void join_failures(struct hf__backfill_report *report)
{
    size_t kept = 0;
    qsort(report->failures, report->failure_count, sizeof *report->failures, by_start);
    for (size_t i = 0; i < report->failure_count; i++) {
        const struct hf__backfill_failure *next = &report->failures[i];
        if (kept == 0 || !join(&report->failures[kept - 1], next->range, &next->why))
            report->failures[kept++] = *next;
    }
    report->failure_count = kept;
}

/* When all workers have ended: commits and failures came in any order. */
static void backfill_complete_report(struct backfill *fill)
{
    struct hf__backfill_report *report = fill->report;
    report_left(fill);
    if (report->failure_count > 0)
        join_failures(report);
    if (fill->filled_count > 0)
        qsort(fill->filled, fill->filled_count, sizeof *fill->filled, by_start);
    for (size_t i = 0; i < fill->filled_count; i++)
        if (!hf__ranges_add(&report->filled, fill->filled[i].from, fill->filled[i].to))
            break; /* out of memory: the counts are right without the ranges */
}

void hf__backfill_report_free(struct hf__backfill_report *report)
{
    hf__ranges_free(&report->filled);
    free(report->failures);
    *report = (struct hf__backfill_report){0};
}

/* ---- which ledgers are missing --------------------------------------------------------------- */

struct beginning {
    struct backfill *fill;
    bool started;
    bool disagrees;
    int64_t latest;
    int64_t floor;
    int64_t wanted; /* the first ledger that is wanted */
};

static hf_status read_beginning(hf_tx *tx, void *arg, hf_error *err)
{
    struct beginning *begin = arg;
    const hf_network *network = begin->fill->network;
    bool has_latest = false, has_floor = false, has_wanted = false, covered = false;
    int64_t row_from = 0;
    hf_range last = {0};
    hf_status status =
        hf__cursor_read(tx, network, network->latest, false, &has_latest, &begin->latest, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, HF__RETENTION_FLOOR, false, &has_floor, &begin->floor,
                                 err);
    if (status == HF_OK)
        status =
            hf__cursor_read(tx, network, HF__WANTED_FROM, false, &has_wanted, &begin->wanted, err);
    if (status == HF_OK)
        status = hf__coverage_last(tx, network, &covered, &last, &row_from, err);
    begin->started = has_latest;
    begin->disagrees = has_latest && (!covered || last.to != begin->latest);
    begin->floor = has_floor ? begin->floor : 0;
    begin->wanted = has_wanted && begin->wanted > 0 ? begin->wanted : 1;
    return status;
}

static hf_status refuse_to_begin(const struct beginning *begin, hf_error *err)
{
    const char *name = begin->fill->network->name;
    hf_status status = HF_OK;
    if (!begin->started) {
        status = hf__fail(err, HF_CONFIG, "network %s has no latest ledger to fill up to", name);
        hf__hint(err, "start the live ingester first: 'holdfast ingest --network %s --source …'",
                 name);
    } else if (begin->disagrees) {
        status = hf__fail(err, HF_CONFIG,
                          "the cursor %s of network %s is at %" PRId64
                          ", but coverage does not end there",
                          begin->fill->network->latest, name, begin->latest);
        hf__hint(err, "'holdfast ingest adopt --network %s' builds coverage from the data", name);
    }
    return status;
}

static hf_status look_at_store(struct backfill *fill, struct beginning *begin, hf_error *err)
{
    bool there = false;
    hf_status status = hf__tables_check(fill->network, &there, err);
    if (status == HF_OK && there)
        status = hf__network_read(fill->network, read_beginning, begin, &there, err);
    return status == HF_OK ? refuse_to_begin(begin, err) : status;
}

static hf_status widen_wanted(hf_tx *tx, void *arg, hf_error *err)
{
    const struct backfill *fill = arg;
    int64_t wanted = 0, from = fill->options->window.from;
    bool found = false;
    hf_status status =
        hf__cursor_read(tx, fill->network, HF__WANTED_FROM, true, &found, &wanted, err);
    if (status == HF_OK && (!found || from < wanted))
        status = hf__cursor_write(tx, fill->network, HF__WANTED_FROM, from, err);
    return status;
}

static int64_t count_ledgers(const hf__ranges *ranges)
{
    int64_t count = 0;
    for (size_t i = 0; i < ranges->count; i++)
        count += ranges->items[i].to - ranges->items[i].from + 1;
    return count;
}

static hf_status find_missing(struct backfill *fill, hf_error *err)
{
    hf_range *gaps = NULL;
    size_t count = 0;
    if (fill->window.from > fill->window.to)
        return HF_OK;
    hf_status status =
        hf_network_gaps(fill->network, fill->window.from, fill->window.to, &gaps, &count, err);
    for (size_t i = 0; status == HF_OK && i < count; i++)
        if (!hf__ranges_add(&fill->missing, gaps[i].from, gaps[i].to))
            status = hf__no_memory(err);
    free(gaps);
    fill->report->missing = count_ledgers(&fill->missing);
    return status;
}

static hf_status choose_window(struct backfill *fill, hf_error *err)
{
    const struct hf__backfill_options *options = fill->options;
    struct beginning begin = {.fill = fill};
    hf_status status = look_at_store(fill, &begin, err);
    if (status != HF_OK)
        return status;
    fill->window = options->all_gaps ? (hf_range){begin.wanted, begin.latest} : options->window;
    if (fill->window.from < 1 || (!options->all_gaps && fill->window.from > fill->window.to))
        return hf__fail(err, HF_INVALID, "%" PRId64 "-%" PRId64 " is no range of ledgers",
                        fill->window.from, fill->window.to);
    if (fill->window.from < begin.floor)
        fill->window.from = begin.floor;
    if (fill->window.to > begin.latest)
        fill->window.to = begin.latest;
    fill->report->window = fill->window;
    return find_missing(fill, err);
}

/* A store that went back, to a standby that lagged or in a crash, has lost what was filled. */
static hf_status look_again(struct backfill *fill, hf_error *err)
{
    struct beginning begin = {.fill = fill};
    const hf__ranges *filled = &fill->report->filled;
    hf_error why = {.code = HF_LOST, .message = "they were filled, and the store has lost them"};
    hf__ranges before = {0};
    bool there = filled->count > 0;
    hf_status status =
        there ? hf__network_read(fill->network, read_beginning, &begin, &there, err) : HF_OK;
    if (status != HF_OK || filled->count == 0)
        return status;
    fill->window.from = fill->window.from > begin.floor ? fill->window.from : begin.floor;
    before = fill->missing;
    fill->missing = (hf__ranges){0};
    status = find_missing(fill, err);
    fill->report->missing = count_ledgers(&before);
    hf__ranges_free(&before);
    for (size_t i = 0; status == HF_OK && i < filled->count; i++)
        for (size_t g = backfill_find_missing(fill, filled->items[i].from);
             g < fill->missing.count && fill->missing.items[g].from <= filled->items[i].to; g++)
            backfill_fail(fill, fill->missing.items[g], &why);
    return status;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static hf_status check_source(struct backfill *fill, const struct hf__backfill_options *options,
                              hf_error *err)
{
    fill->source = options->source;
    fill->source.follow = false;
    if (strcmp(options->source.spec, "-") != 0)
        return HF_OK;
    hf_status status = hf__fail(
        err, HF_CONFIG, "standard input cannot be read from any place: no backfill from it");
    hf__hint(err, "put it into a file, or give a command: exec:COMMAND");
    return status;
}

static hf_status make_plan(struct backfill *fill, hf__stop *stop, hf_error *err)
{
    hf_status status = HF_OK;
    if (fill->missing.count > 0)
        status = backfill_ask_source(fill, stop, err);
    /* Now, and not before: one that is refused leaves no trace of what it wanted. */
    if (status == HF_OK && !fill->options->all_gaps)
        status = hf__network_transact(fill->network, widen_wanted, fill, err);
    if (status != HF_OK || fill->missing.count == 0)
        return status;
    fill->window.from = fill->missing.items[0].from;
    fill->window.to = fill->missing.items[fill->missing.count - 1].to;
    fill->wanted = count_ledgers(&fill->missing);
    if (!plan_make(&fill->plan, &fill->missing))
        status = hf__no_memory(err);
    return status;
}

/* ---- the workers ----------------------------------------------------------------------------- */

static size_t queue_memory(const struct backfill *fill)
{
    size_t memory = fill->options->memory > 0 ? fill->options->memory : (size_t)MEMORY;
    size_t share = memory / fill->workers / 2; /* the other half is for the batch */
    return fill->options->rate > 0 || share < MEMORY_LEAST ? (size_t)MEMORY_LEAST : share;
}

static void set_up(struct worker *worker, struct backfill *fill)
{
    *worker = (struct worker){.fill = fill, .at = PLAN_NOWHERE, .anchor = fill->anchor};
    worker->stream = (struct stream){.options = &fill->source,
                                     .stop = &fill->halt,
                                     .memory = queue_memory(fill),
                                     .seeks = stream_spec_seeks(fill->source.spec)};
}

/* Called without the mutex, because a callback may take long. */
static void pass_on_notes(struct backfill *fill, struct note *notes)
{
    while (notes) {
        struct note *next = notes->next;
        backfill_tell(fill, notes->text);
        free(notes);
        notes = next;
    }
}

static void show_progress(const struct backfill *fill, int64_t ledgers, int64_t transactions)
{
    const hf__ingest_events *events = &fill->options->events;
    int64_t first = fill->missing.items[0].from;
    hf__ingest_progress progress = {.first = first,
                                    .latest = first - 1 + ledgers,
                                    .tip = first - 1 + fill->wanted,
                                    .ledgers = ledgers,
                                    .transactions = transactions};
    if (events->progress)
        events->progress(events->arg, &progress);
}

/* The mutex is held on entry and on return, but not while the callbacks run. */
static void pass_on_news(struct backfill *fill)
{
    struct note *notes = fill->notes;
    bool progressed = fill->progressed;
    int64_t ledgers = fill->report->ledgers + fill->report->known;
    int64_t transactions = fill->report->transactions;
    fill->notes = NULL;
    fill->last_note = &fill->notes;
    fill->progressed = false;
    pthread_mutex_unlock(&fill->mutex);
    pass_on_notes(fill, notes);
    if (progressed)
        show_progress(fill, ledgers, transactions);
    pthread_mutex_lock(&fill->mutex);
}

static void attend(struct backfill *fill, const hf__stop *stop)
{
    pthread_mutex_lock(&fill->mutex);
    while (fill->running > 0) {
        struct timespec until = hf__timespec(hf__deadline(LOOK_MS));
        if (!fill->notes && !fill->progressed)
            (void)pthread_cond_clockwait(&fill->changed, &fill->mutex, CLOCK_MONOTONIC, &until);
        if (hf__stop_is_set(stop) && !backfill_is_halted(fill)) {
            hf__stop_set(&fill->halt, HF__STOP_ASKED);
            pthread_cond_broadcast(&fill->changed);
        }
        pass_on_news(fill);
    }
    pass_on_news(fill);
    pthread_mutex_unlock(&fill->mutex);
}

static hf_status run_workers(struct backfill *fill, const hf__stop *stop, hf_error *err)
{
    struct worker *workers = calloc(fill->workers, sizeof *workers);
    unsigned started = 0;
    if (!workers)
        return hf__no_memory(err);
    fill->running = fill->workers;
    for (; started < fill->workers; started++) {
        set_up(&workers[started], fill);
        if (pthread_create(&workers[started].thread, NULL, backfill_work, &workers[started]) != 0)
            break;
    }
    if (started < fill->workers) {
        hf_error why = {0};
        hf_status status = hf__fail(&why, HF_SYSTEM, "cannot start %u threads", fill->workers);
        backfill_end(fill, status, &why);
        pthread_mutex_lock(&fill->mutex);
        fill->running -= fill->workers - started;
        pthread_mutex_unlock(&fill->mutex);
    }
    attend(fill, stop);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    free(workers);
    return HF_OK;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

static hf_status say_failures(const struct backfill *fill, hf_error *err)
{
    enum { SHOWN = 5 };
    const struct hf__backfill_report *report = fill->report;
    hf__buf list = {0};
    for (size_t i = 0; i < report->failure_count && i < SHOWN; i++)
        hf__buf_printf(&list, "%s%" PRId64 "-%" PRId64, i > 0 ? ", " : "",
                       report->failures[i].range.from, report->failures[i].range.to);
    if (report->failure_count > SHOWN)
        hf__buf_printf(&list, " and %zu more", report->failure_count - SHOWN);
    hf_status status =
        hf__fail(err, HF_UNREACHABLE, "%zu range%s of network %s could not be filled: %s (%.300s)",
                 report->failure_count, report->failure_count == 1 ? "" : "s", fill->network->name,
                 list.data ? list.data : "", report->failures[0].why.message);
    hf__hint(err, "run it again: what is there is not fetched twice");
    hf__buf_free(&list);
    return status;
}

static hf_status conclude(const struct backfill *fill, const hf__stop *stop, hf_status status,
                          hf_error *err)
{
    bool stopped = hf__stop_is_set(stop);
    fill->report->stopped = stopped && (status != HF_OK || !plan_is_over(&fill->plan));
    if (stopped && (status == HF_OK || status == HF_INTERRUPTED) &&
        (fill->ended == HF_OK || fill->ended == HF_INTERRUPTED))
        return HF_OK;
    if (status != HF_OK)
        return status;
    if (fill->ended != HF_OK && !fill->gave_up) {
        if (err)
            *err = fill->why;
        return fill->ended;
    }
    return fill->report->failure_count > 0 ? say_failures(fill, err) : HF_OK;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static hf_status set_up_run(struct backfill *fill, hf_error *err)
{
    fill->workers = fill->options->workers > 0 ? fill->options->workers : WORKERS;
    fill->last_note = &fill->notes;
    fill->halt.fd = -1;
    pthread_mutex_init(&fill->mutex, NULL);
    pthread_cond_init(&fill->changed, NULL);
    hf__rate_init(&fill->rate, fill->options->rate, hf__now_ms());
    return hf__stop_init(&fill->halt, err);
}

static void tear_down(struct backfill *fill)
{
    plan_free(&fill->plan);
    hf__ranges_free(&fill->missing);
    free(fill->filled);
    hf__rate_destroy(&fill->rate);
    hf__stop_destroy(&fill->halt);
    pthread_cond_destroy(&fill->changed);
    pthread_mutex_destroy(&fill->mutex);
}

hf_status hf__backfill_run(hf_store *store, hf_network *network,
                           const struct hf__backfill_options *options, hf__stop *stop,
                           struct hf__backfill_report *report, hf_error *err)
{
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;
    struct backfill fill = {
        .store = store, .network = network, .options = options, .report = report};
    *report = (struct hf__backfill_report){0};
    hf_status status = set_up_run(&fill, where);
    if (status == HF_OK)
        status = check_source(&fill, options, where);
    if (status == HF_OK)
        status = choose_window(&fill, where);
    if (status == HF_OK)
        status = make_plan(&fill, stop, where);
    if (status == HF_OK && fill.plan.count > 0)
        status = run_workers(&fill, stop, where);
    backfill_complete_report(&fill);
    if (status == HF_OK && fill.ended == HF_OK)
        status = look_again(&fill, where);
    status = conclude(&fill, stop, status, where);
    tear_down(&fill);
    return status;
}
