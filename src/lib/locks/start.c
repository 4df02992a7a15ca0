/*
 * Acquires that do not keep their caller: each runs as a fiber, all of a store in one thread. What
 * waits in it is the code of hf_lock_acquire. The callbacks run where those of losses do.
 */
#include "lib/locks/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

/* One hf_lock_start, until its end has been told. */
struct hf__started {
    hf_store *store;
    hf_lock_spec spec; /* its targets and their labels are copies, in memory */
    char traceparent[HF_TRACEPARENT_SIZE + 1]; /* of a longer one what tells whether it is valid */
    void *memory;
    hf_started_fn *done;
    hf__acquire_fn *acquire;
    void *what;
    int64_t me; /* who has started it */

    /* the outcome */
    hf_status status;
    hf_lock *lock;
    hf_error err;
    struct hf__told *span; /* of its wait, or NULL */

    /* the store's mutex */
    hf_error why_waits;
    bool waits;   /* on_wait is due */
    bool telling; /* on_wait runs */
    bool ended;
    bool queued;
    struct hf__started *next; /* in store->told_first … told_last */
};

static void free_started(struct hf__started *started)
{
    free(started->memory);
    free(started->what);
    free(started);
}

/* ---- callbacks: the mutex is held, and unlocked while one runs ------------------------------- */

static void queue(struct hf__started *started)
{
    hf_store *store = started->store;
    if (started->queued || started->telling)
        return;
    started->queued = true;
    started->next = NULL;
    if (store->told_last)
        store->told_last->next = started;
    else
        store->told_first = started;
    store->told_last = started;
    hf__callback_due(store);
}

static struct hf__started *take_first(hf_store *store)
{
    struct hf__started *started = store->told_first;
    store->told_first = started->next;
    if (!store->told_first)
        store->told_last = NULL;
    started->queued = false;
    return started;
}

void hf__started_tell(hf_store *store)
{
    struct hf__started *started = take_first(store);
    if (started->waits) {
        started->waits = false;
        started->telling = true;
        pthread_mutex_unlock(&store->mutex);
        started->spec.on_wait(&started->why_waits, started->spec.arg);
        pthread_mutex_lock(&store->mutex);
        started->telling = false;
        if (started->ended)
            queue(started);
        return;
    }
    if (started->lock)
        hf__loss_may_be_told(store, started->lock);
    pthread_mutex_unlock(&store->mutex);
    hf__tell_span(store, started->span);
    started->done(started->lock, started->status, &started->err, started->spec.arg);
    free_started(started);
    pthread_mutex_lock(&store->mutex);
}

void hf__started_waits(struct hf__started *started, const hf_error *why)
{
    pthread_mutex_lock(&started->store->mutex);
    started->why_waits = *why;
    started->waits = true;
    queue(started);
    pthread_mutex_unlock(&started->store->mutex);
}

/* Its fiber is the only one that knows of it until it has ended. */
void hf__started_span(struct hf__started *started, struct hf__told *told)
{
    started->span = told;
}

/* ---- starting -------------------------------------------------------------------------------- */

static void run(void *arg)
{
    struct hf__started *started = arg;
    hf_store *store = started->store;
    const hf__lock_extra extra = {.started = started};
    hf__act_as(started->me);
    hf_status status = started->acquire(store, started->what, &started->spec, &extra,
                                        &started->lock, &started->err);
    pthread_mutex_lock(&store->mutex);
    started->status = status;
    started->ended = true;
    store->started--;
    queue(started);
    pthread_mutex_unlock(&store->mutex);
}

static size_t label_size(const hf_target *target)
{
    enum { TOO_LONG = HF_LABEL_MAX + 1 }; /* to be refused */
    size_t size = target->label_size;
    if (!target->label)
        return 0;
    if (!size)
        size = strnlen(target->label, TOO_LONG);
    return size < TOO_LONG ? size : TOO_LONG;
}

static bool copy_targets(struct hf__started *started)
{
    hf_lock_spec *spec = &started->spec;
    size_t count = spec->targets ? spec->target_count : 0, bytes = 0;
    if (count == 0)
        return true;
    for (size_t i = 0; i < count; i++)
        bytes += label_size(&spec->targets[i]) + 1;
    hf_target *targets = started->memory = malloc(count * sizeof *targets + bytes);
    if (!targets)
        return false;
    char *labels = (char *)(targets + count);
    for (size_t i = 0; i < count; i++) {
        size_t size = label_size(&spec->targets[i]);
        targets[i] = spec->targets[i];
        if (!targets[i].label)
            continue;
        targets[i].label = memcpy(labels, targets[i].label, size);
        targets[i].label_size = size;
        labels += size;
        *labels++ = '\0';
    }
    spec->targets = targets;
    return true;
}

int hf__runner_start(hf_store *store)
{
    int failed = store->fibers ? 0 : hf__fibers_new(&store->fibers);
    return failed ? failed : hf__deliverer_start(store);
}

hf_status hf__lock_start_with(hf_store *store, const hf_lock_spec *given, hf_started_fn *done,
                              hf__acquire_fn *acquire, const void *what, size_t what_size,
                              hf_error *err)
{
    hf_lock_spec spec;
    if (!store || !given || !done)
        return hf__fail(err, HF_INVALID, "hf_lock_start needs a store, a spec and a callback");
    hf_status status = hf__options_copy(&spec, sizeof spec, given, offsetof(hf_lock_spec, cancel),
                                        "hf_lock_spec", "HF_LOCK_SPEC_INIT", err);
    if (status == HF_OK)
        status = hf__check_process(store, err);
    if (status == HF_OK && store->backend->borrowed)
        status = hf__fail(err, HF_INVALID, "a borrowed connection is used in the caller's thread");
    if (status != HF_OK)
        return status;
    struct hf__started *started = calloc(1, sizeof *started);
    if (!started)
        return hf__no_memory(err);
    started->store = store;
    started->spec = spec;
    started->done = done;
    started->acquire = acquire;
    started->me = hf__me();
    if (spec.traceparent) {
        (void)snprintf(started->traceparent, sizeof started->traceparent, "%s", spec.traceparent);
        started->spec.traceparent = started->traceparent;
    }
    if (!copy_targets(started) || (what && !(started->what = malloc(what_size)))) {
        free_started(started);
        return hf__no_memory(err);
    }
    if (what)
        memcpy(started->what, what, what_size);
    pthread_mutex_lock(&store->mutex);
    int failed = hf__runner_start(store);
    if (!failed)
        failed = hf__fiber_start(store->fibers, run, started);
    store->started += !failed;
    pthread_mutex_unlock(&store->mutex);
    if (failed) {
        free_started(started);
        return hf__fail_errno(err, HF_SYSTEM, failed, "cannot start to acquire a lock");
    }
    return HF_OK;
}

static hf_status acquire_lock(hf_store *store, const void *what, const hf_lock_spec *spec,
                              const hf__lock_extra *extra, hf_lock **lock, hf_error *err)
{
    (void)what;
    return hf__lock_acquire_with(store, spec, extra, lock, err);
}

hf_status hf_lock_start(hf_store *store, const hf_lock_spec *spec, hf_started_fn *done,
                        hf_error *err)
{
    return hf__lock_start_with(store, spec, done, acquire_lock, NULL, 0, err);
}

/* ---- the end of the store -------------------------------------------------------------------- */

void hf__started_stop(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool runs = store->started > 0;
    pthread_mutex_unlock(&store->mutex);
    if (runs)
        hf__interrupt_waits(store, true);
    hf__fibers_end(store->fibers);
    store->fibers = NULL;
}

void hf__started_drop(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    for (struct hf__started *started = store->told_first; started; started = started->next) {
        if (!started->lock)
            continue;
        pthread_mutex_unlock(&store->mutex);
        hf_lock_free(started->lock);
        pthread_mutex_lock(&store->mutex);
        started->lock = NULL;
        started->status = hf__interrupted(&started->err);
    }
    while (store->told_first)
        hf__started_tell(store);
    pthread_mutex_unlock(&store->mutex);
}
