#include "programs/ingest/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "programs/ingest/retention.h"

enum {
    MOST_PAUSE_MS = 10000,
    COMMIT_EVERY = 1000,
    MEMORY = 64 * 1024 * 1024,
    LOCAL_BATCH = 200, /* ledgers: while SQLite commits them, no other process can write */
};

/* ---- the activity rows ----------------------------------------------------------------------- */

/*
 * The activity rows (status.h). A commit writes them too if that was last done a second ago or
 * longer, so that they cost no round trip at the tip and next to nothing behind it. They get a
 * transaction of their own in three cases only: when a burst of ledgers was followed by silence,
 * when the source tells of ledgers that do not come, and at the end of the run.
 */

enum {
    TELL_MS = 1000,
    TELL_TIP_MS = 5000, /* when only the source's tip has changed */
};

static hf_status resume_telling(struct live *live, const hf__ingest_state *found, hf_error *err)
{
    int64_t latest = found->started ? found->latest : 0;
    live->written_at_ms = 0;
    return hf__activity_resume(live->network, latest, &live->written, &live->activity, err);
}

static bool has_caught_up(const hf__activity *activity)
{
    return activity->source_tip > 0 && activity->counted_to >= activity->source_tip;
}

void hf__live_prepare_telling(struct live *live)
{
    int64_t tip = hf__reader_tip(live->reader);
    int64_t latest = batch_last(&live->batch);
    live->next = (hf__activity){
        .source_tip = tip > 0 && tip < latest ? latest : tip,
        .last_success_ms = hf__wall_ms(),
        .ledgers = live->activity.ledgers + (int64_t)live->batch.count,
        .counted_to = latest,
    };
    live->is_told = live->written_at_ms == 0 || live->ended ||
                    hf__now_ms() - live->written_at_ms >= TELL_MS ||
                    (has_caught_up(&live->next) && !has_caught_up(&live->written));
}

static void note_written(struct live *live)
{
    live->written = live->activity;
    live->written_at_ms = hf__now_ms();
}

void hf__live_has_told(struct live *live)
{
    live->activity = live->next;
    if (live->is_told)
        note_written(live);
}

static bool lacks_count(const struct live *live)
{
    return live->written.ledgers != live->activity.ledgers;
}

/* How long to wait for a ledger before the rows must be written without one. */
static int silence_ms(const struct live *live)
{
    int64_t due = live->written_at_ms + (lacks_count(live) ? TELL_MS : TELL_TIP_MS);
    int left = hf__left_ms(due);
    return left > 0 ? left : TELL_TIP_MS;
}

static hf_status tell(hf_tx *tx, void *arg, hf_error *err)
{
    const struct live *live = arg;
    return hf__activity_write(tx, live->network, &live->activity, err);
}

static hf_status tell_alone(struct live *live, hf_error *err)
{
    hf_tx_options options = hf__live_tx_options(live);
    hf_status status = hf_lock_transact(live->lock, &options, tell, live, err);
    if (status == HF_OK)
        note_written(live);
    return status;
}

/* No ledger came within silence_ms: writes the rows by themselves, if they have changed. */
static hf_status tell_idle(struct live *live, hf_error *err)
{
    int64_t tip = hf__reader_tip(live->reader);
    if (tip > 0)
        live->activity.source_tip = tip;
    if (hf__live_is_stopped(live) ||
        (!lacks_count(live) && live->activity.source_tip == live->written.source_tip))
        return HF_OK;
    return tell_alone(live, err);
}

/* A failure is ignored: the next session counts the ledgers that the rows miss. */
static void tell_last(struct live *live)
{
    if (live->lock && lacks_count(live))
        (void)!tell_alone(live, NULL);
}

/* ---- the lock -------------------------------------------------------------------------------- */

static void tell_wait(const hf_error *why, void *arg)
{
    hf__live_note(arg, why->message);
}

/* In a thread of the library. What is being committed is, and then the lock goes to who asked. */
static void on_yield(hf_lock *lock, const hf_error *who, void *arg)
{
    struct live *live = arg;
    (void)lock;
    live->successor = *who;
    hf__stop_set(live->stop, HF__STOP_ASKED);
}

static void tell_yielded(const struct live *live)
{
    char text[sizeof live->successor.message + 16];
    if (live->successor.code == HF_OK)
        return;
    (void)snprintf(text, sizeof text, "%s: yielded", live->successor.message);
    hf__live_note(live, text);
}

static hf_status name_network(const struct live *live, hf_status status, hf_error *err)
{
    if (status != HF_NOT_ACQUIRED || !err)
        return status;
    const hf_error found = *err;
    status = hf__fail(err, HF_NOT_ACQUIRED, "network %s (key %" PRId64 ") is ingested already: %s",
                      live->network->name, live->network->lock_key, hf__error_detail(&found));
    hf__hint(err, "one ingester per network; --standby waits to take over");
    return status;
}

static hf_status take_lock(struct live *live, hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_target target = {.label = live->network->label, .derivation = HF_FNV1A64};
    spec.targets = &target;
    spec.target_count = 1;
    spec.flags = HF_PRIVATE;
    spec.wait_ms = live->options->standby ? -1 : 0;
    if (live->options->ask && !live->was_alone)
        spec.flags |= HF_ASK;
    spec.on_yield = live->options->refuses ? NULL : on_yield;
    spec.on_wait = tell_wait;
    spec.arg = live;
    return name_network(live, hf_lock_acquire(live->store, &spec, &live->lock, err), err);
}

static void leave_lock(struct live *live)
{
    hf_lock_free(live->lock);
    live->lock = NULL;
}

/* ---- batches --------------------------------------------------------------------------------- */

static size_t batch_room(const struct live *live)
{
    size_t most = live->options->commit_every > 0 ? (size_t)live->options->commit_every
                                                  : (size_t)COMMIT_EVERY;
    if (live->network->local && most > LOCAL_BATCH)
        most = LOCAL_BATCH;
    return live->one_by_one ? 1 : most;
}

static size_t memory(const struct live *live)
{
    return live->options->memory > 0 ? live->options->memory : (size_t)MEMORY;
}

static bool is_at_tip(const hf__ledger *ledger)
{
    return ledger->tip > 0 && ledger->sequence >= ledger->tip;
}

static bool is_pending(const struct batch *batch, int64_t sequence)
{
    return batch->count > 0 && sequence >= batch_first(batch) && sequence <= batch_last(batch);
}

/* A server that lags gives its newest ledger once more: that is no matter of order. */
static bool is_rpc(const struct live *live)
{
    return strncmp(live->options->source.spec, "rpc", 3) == 0;
}

/* Owns the ledger from here on. Sets *full if the batch should be committed now. */
static hf_status add_ledger(struct live *live, hf__ledger *ledger, bool *full, hf_error *err)
{
    hf_status status = HF_OK;
    bool pending = is_pending(&live->batch, ledger->sequence);
    bool known = pending || (live->state.started && ledger->sequence <= live->state.latest);
    if (pending)
        status = hf__live_compare_pending(live, ledger, err);
    else if (known)
        status = hf__live_compare_known(live, ledger, err);
    else
        status = hf__live_check_link(live, ledger, err);
    if (status == HF_OK && known && !pending && !is_rpc(live))
        status = hf__live_check_order(live, ledger, err);
    if (status == HF_OK && !known && !batch_add(&live->batch, ledger))
        status = hf__no_memory(err);
    if (status != HF_OK || known) {
        hf__ledger_free(ledger);
        return status;
    }
    live->guessed_bad = 0;
    live->link_is_unknown = false;
    live->source_is_known = true;
    *full = live->batch.count >= batch_room(live) || live->batch.weight >= memory(live) / 2 ||
            is_at_tip(ledger);
    return HF_OK;
}

static hf_status take_one(struct live *live, hf__read *read, bool *full, hf_error *err)
{
    hf__ledger *ledger = read->ledger;
    hf_status status = HF_OK;
    switch (read->kind) {
    case HF__READ_LEDGER: read->ledger = NULL; return add_ledger(live, ledger, full, err);
    case HF__READ_BAD:
        status = hf__live_commit(live, err); /* the ledgers before the bad one */
        return status == HF_OK ? hf__live_bad(live, &read->bad, &read->why, err) : status;
    case HF__READ_NOTE: hf__live_note(live, read->why.message); return HF_OK;
    case HF__READ_FAILED:
        live->end = read->why; /* told when all before it is committed */
        /* fall through */
    case HF__READ_END: live->ended = true; return HF_OK;
    case HF__READ_NOTHING: break;
    }
    return HF_OK;
}

/*
 * Takes what the queue has, and waits only for the first ledger. Behind the tip the reader fills
 * the queue while a batch commits, so the next batch is large.
 */
static hf_status fill_batch(struct live *live, hf_error *err)
{
    bool full = live->one_by_one && live->batch.count > 0;
    hf_status status = HF_OK;
    while (status == HF_OK && !full && !live->ended && !hf__live_is_stopped(live)) {
        bool idle = live->batch.count == 0;
        if (live->read.kind == HF__READ_NOTHING)
            live->read = hf__reader_take(live->reader, idle ? silence_ms(live) : 0);
        if (live->read.kind == HF__READ_NOTHING)
            return idle ? tell_idle(live, err) : HF_OK;
        status = take_one(live, &live->read, &full, err);
        if (status == HF_OK || live->read.kind != HF__READ_BAD)
            hf__read_free(&live->read); /* a bad ledger stays until the store knows of it */
    }
    return status;
}

/* ---- when a write fails ---------------------------------------------------------------------- */

hf_status hf__live_check_again(struct live *live, hf_error *err)
{
    struct batch before = live->batch;
    hf_status status = HF_OK;
    bool full = false;
    live->batch = (struct batch){0};
    live->one_by_one = false;
    for (size_t i = 0; i < before.count + before.hidden; i++) {
        if (status == HF_OK)
            status = add_ledger(live, before.ledgers[i], &full, err);
        else
            hf__ledger_free(before.ledgers[i]);
    }
    free(before.items);
    return status;
}

static bool is_same(const hf__ingest_state *a, const hf__ingest_state *b)
{
    return a->started == b->started && a->latest == b->latest &&
           strcmp(a->tip_hash, b->tip_hash) == 0;
}

/* Is the store's latest ledger one of the batch, so that the commit has succeeded after all? */
static bool was_committed(const struct live *live, const hf__ingest_state *found)
{
    const struct batch *batch = &live->batch;
    for (size_t i = 0; found->started && i < batch->count + batch->hidden; i++)
        if (batch->ledgers[i]->sequence == found->latest)
            return hf__slice_is(batch->ledgers[i]->hash, found->tip_hash);
    return false;
}

static hf_status begin_session(struct live *live, hf__ingest_state *found, hf_error *err);
static hf_status start_reading(struct live *live, hf_error *err);
static bool can_be_repeated(const char *spec);

/* Forgets all that was read, and reads again from where the store stands. */
static hf_status read_again(struct live *live, hf_error *err)
{
    hf__reader_stop(live->reader);
    live->reader = NULL;
    batch_free(&live->batch);
    hf__read_free(&live->read);
    live->guessed_bad = 0;
    live->link_is_unknown = live->ended = live->one_by_one = false;
    return start_reading(live, err);
}

/*
 * A new session has found the store at a place that is not the one that the ledgers in memory were
 * checked against: it was reset, is another server that knows less, or another ingester has run.
 */
static hf_status follow_store(struct live *live, hf_error *err)
{
    bool repeats = can_be_repeated(live->options->source.spec);
    char text[160];
    (void)snprintf(
        text, sizeof text, "the store stands at ledger %" PRId64 " now%s", live->state.latest,
        repeats ? ": reading again from there" : ", and the source can be read once only");
    hf__live_note(live, text);
    return repeats ? read_again(live, err) : hf__live_check_again(live, err);
}

/* The session is lost, or the store is away: starts a new session after a pause. */
static hf_status come_back(struct live *live, const hf_error *why, hf_error *err)
{
    hf__ingest_state found = {0};
    char text[512];
    int ms = hf__backoff_ms(++live->failures, MOST_PAUSE_MS);
    (void)snprintf(text, sizeof text, "%.400s; trying again in %d s", why->message, ms / 1000);
    hf__live_note(live, text);
    leave_lock(live);
    if (hf__stop_pause(live->stop, ms))
        return HF_OK;
    hf_status status = begin_session(live, &found, err);
    if (status != HF_OK)
        return status;
    bool committed = was_committed(live, &found), same = is_same(&found, &live->state);
    live->state = found;
    if (committed)
        batch_drop_known(&live->batch, found.latest);
    return committed || same ? HF_OK : follow_store(live, err);
}

/* SQLSTATE classes 53, 57 and 58: no resources, operator intervention, system error. */
static bool may_pass(const hf_error *err)
{
    switch (err->code) {
    case HF_UNREACHABLE:
    case HF_LOST:
    case HF_IN_DOUBT:
    case HF_EXHAUSTED: return true;
    case HF_DATABASE:
        return hf__live_is_class(err, "53") || hf__live_is_class(err, "57") ||
               hf__live_is_class(err, "58");
    default: return false;
    }
}

/*
 * Begins a new session if the failure may pass. HF_OK: the run can go on, or was stopped. Otherwise
 * *err says what is in the way.
 */
static hf_status recover(struct live *live, hf_error *err)
{
    hf_status status = err->code;
    while (status != HF_OK && may_pass(err) && !hf__live_is_stopped(live)) {
        hf_error why = *err;
        status = come_back(live, &why, err);
    }
    bool passes = may_pass(err) || err->code == HF_INTERRUPTED || err->code == HF_NOT_ACQUIRED;
    return hf__live_is_stopped(live) && passes ? HF_OK : status;
}

/* HF_OK: the run can go on, or was stopped. */
static hf_status handle_failure(struct live *live, hf_error *err)
{
    hf_error why = *err;
    hf_status status = why.code;
    if (hf__live_is_about_data(&why) && live->batch.count > 1) {
        live->one_by_one = true;
        batch_split(&live->batch);
        return HF_OK;
    }
    if (hf__live_is_about_data(&why) && live->batch.count == 1)
        status = hf__live_blame(live, &why, err);
    return status == HF_OK ? HF_OK : recover(live, err);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static hf_status begin_session(struct live *live, hf__ingest_state *found, hf_error *err)
{
    hf_status status = take_lock(live, err);
    live->was_alone = live->was_alone || status == HF_OK;
    live->ensured_to = 0;
    live->is_linked = false;
    if (status == HF_OK)
        status = hf__tables_install(live->network, err);
    if (status == HF_OK)
        status = hf__state_read(live->lock, live->network, found, err);
    if (status == HF_OK)
        status = resume_telling(live, found, err);
    if (status != HF_OK)
        leave_lock(live);
    return status;
}

/* Standard input and a pipe give each ledger once: opening them only to look uses ledgers up. */
static bool can_be_repeated(const char *spec)
{
    struct stat found;
    if (strcmp(spec, "-") == 0)
        return false;
    return stat(spec, &found) != 0 || S_ISREG(found.st_mode) || S_ISDIR(found.st_mode);
}

/* A command can be run again, but only to read from a ledger that we name. */
static bool can_be_asked(const char *spec)
{
    return can_be_repeated(spec) && strncmp(spec, "exec:", 5) != 0;
}

/* The source ends before the latest ledger: it lags, or is of another chain. Its end tells. */
static hf_status compare_newest(struct live *live, hf__source *source, int64_t newest,
                                hf_error *err)
{
    hf__ledger *ledger = NULL;
    hf_status status = source->ops->seek(source, newest, err);
    if (status == HF_OK)
        status = source->ops->next(source, &ledger, NULL, err);
    if (status == HF_OK && ledger && ledger->sequence <= live->state.latest)
        status = hf__live_compare_known(live, ledger, err);
    else if (status == HF_BAD_DATA)
        status = HF_OK; /* it cannot be compared; when it is read, it will be told */
    hf__ledger_free(ledger);
    return status;
}

/*
 * Reading begins with the latest ledger that is stored, to check that the source is still of the
 * same chain; or with the one after it, if the source begins there.
 */
static hf_status choose_start(struct live *live, int64_t *from, hf_error *err)
{
    const hf__source_options *options = &live->options->source;
    hf__source_options with_stop = *options;
    hf__source *source = NULL;
    int64_t oldest = 0, latest = 0;
    *from = live->state.started ? live->state.latest : live->options->start_ledger;
    if (*from > 0 && !live->state.started)
        return HF_OK;
    if (!can_be_asked(options->spec)) {
        *from = *from > 0 ? *from : 1;
        return HF_OK;
    }
    with_stop.stop_fd = live->stop->fd;
    with_stop.is_known = live->source_is_known;
    hf_status status = hf__source_open(&with_stop, &source, err);
    if (status == HF_OK)
        status = source->ops->extent(source, &oldest, &latest, err);
    if (status == HF_OK && live->state.started && latest > 0 && latest < live->state.latest)
        status = compare_newest(live, source, latest, err);
    hf__source_close(source);
    if (status != HF_OK)
        return status;
    live->source_is_known = true;
    if (live->state.started && oldest == live->state.latest + 1)
        *from = oldest;
    if (!live->state.started)
        live->wanted = *from = is_rpc(live) ? latest : oldest;
    if (*from <= 0)
        *from = 1;
    return HF_OK;
}

static hf_status start_reading(struct live *live, hf_error *err)
{
    int64_t from = 0;
    unsigned failures = 0;
    hf_status status = choose_start(live, &from, err);
    while (status == HF_UNREACHABLE && !hf__live_is_stopped(live)) {
        hf__live_note(live, err->message);
        if (hf__stop_pause(live->stop, hf__backoff_ms(++failures, 30000)))
            return HF_INTERRUPTED;
        status = choose_start(live, &from, err);
    }
    hf__source_options options = live->options->source;
    options.gives_back = true;
    options.is_known = live->source_is_known;
    if (status == HF_OK)
        status =
            hf__reader_start(&options, from, 0, memory(live) / 2, live->stop, &live->reader, err);
    return status;
}

/* Commits the good ledgers before one that cannot be taken. */
static hf_status commit_before(struct live *live, hf_status status, hf_error *failure)
{
    hf_error other = {0};
    if (status != HF_BAD_DATA || live->batch.count == 0)
        return status;
    hf_status committed = hf__live_commit(live, &other);
    if (committed == HF_OK)
        return status;
    *failure = other;
    return committed;
}

static hf_status work(struct live *live, hf_error *err)
{
    hf_error failure = {0};
    hf_status status = HF_OK;
    while (status == HF_OK && !hf__live_is_stopped(live) &&
           !(live->ended && live->batch.count == 0)) {
        status = commit_before(live, fill_batch(live, &failure), &failure);
        if (status == HF_OK && !hf__live_is_stopped(live))
            status = hf__live_commit(live, &failure);
        if (status != HF_OK) {
            failure.code = status;
            status = handle_failure(live, &failure);
        }
    }
    if (status == HF_OK && live->ended && live->end.code != HF_OK && !hf__live_is_stopped(live)) {
        failure = live->end;
        status = failure.code;
    }
    if (status != HF_OK && err)
        *err = failure;
    return status;
}

hf_status hf__live_run(hf_store *store, hf_network *network, const hf__ingest_options *options,
                       hf__stop *stop, hf__ingest_progress *progress, hf_error *err)
{
    hf_error local_error = {0};
    struct live live = {
        .store = store, .network = network, .options = options, .stop = stop, .progress = progress};
    hf_error *where = err ? err : &local_error;
    hf__keeper *keeper = NULL;
    *progress = (hf__ingest_progress){0};
    hf_status status = begin_session(&live, &live.state, where);
    if (status != HF_OK && live.was_alone) /* a standby's turn comes when servers change */
        status = recover(&live, where);
    live.is_first_run = !live.state.started;
    live.wanted = live.is_first_run ? options->start_ledger : 0;
    if (status == HF_OK && (options->keep.age_ms > 0 || options->keep.ledgers > 0))
        status = hf__keeper_start(store, network, &options->keep, &keeper, where);
    if (status == HF_OK && live.reader == NULL && !hf__live_is_stopped(&live))
        status = start_reading(&live, where);
    if (status == HF_OK)
        status = work(&live, where);
    tell_last(&live);
    hf__keeper_stop(keeper, status == HF_OK && !hf__live_is_stopped(&live));
    leave_lock(&live); /* a successor may wait for it, and ending the reader can take a while */
    tell_yielded(&live);
    hf__reader_stop(live.reader);
    hf__read_free(&live.read);
    batch_free(&live.batch);
    return hf__live_is_stopped(&live) && (status == HF_INTERRUPTED || status == HF_NOT_ACQUIRED)
               ? HF_OK
               : status;
}
