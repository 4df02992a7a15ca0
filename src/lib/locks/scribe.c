/*
 * The scribe: one thread per store writes records and events in the background. It is not the
 * watcher, because a write has to wait when somebody locks a table, and a loss must be reported in
 * time all the same.
 */
#include "lib/locks/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

enum {
    ROUND_MS = 1000,
    SOON_MS = 20,        /* instead of ROUND_MS, while something is not recorded yet */
    RECORD_AFTER_MS = 5, /* a lock that is held for less gets no row */
};

/* Mutex held. */
static size_t copy_records(struct hf_lock *lock, hf__record *records, int64_t age_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < lock->count; i++) {
        const struct grant *grant = &lock->grants[i];
        if (!grant->hold || grant->hold->session->lifetime == HF_LEASE) /* it is on record itself */
            continue;
        records[count] = (hf__record){.session_id = grant->hold->session->session_id,
                                      .key = grant->claim.key,
                                      .space = grant->claim.space,
                                      .mode = grant->claim.mode,
                                      .slot = grant->claim.slot,
                                      .age_ms = age_ms,
                                      .token = lock->token};
        if (grant->claim.traceparent)
            memcpy(records[count].traceparent, grant->claim.traceparent, HF_TRACEPARENT_SIZE);
        count++;
    }
    lock->recorded = true;
    return count;
}

static bool is_due(const struct hf_lock *lock, int64_t now)
{
    return lock->state == HF_STATE_HELD && lock->token &&
           now - lock->acquired_ms >= RECORD_AFTER_MS;
}

/* The newest locks come first in the list, so the search ends at the first recorded one. */
static size_t find_unrecorded(hf_store *store, hf__record **records)
{
    size_t wanted = 0, count = 0;
    int64_t now = hf__now_ms();
    pthread_mutex_lock(&store->mutex);
    store->record_soon = false;
    for (struct hf_lock *lock = store->locks; lock && !lock->recorded; lock = lock->next) {
        bool due = is_due(lock, now);
        wanted += due ? lock->count : 0;
        store->record_soon |= !due && lock->token;
    }
    if (wanted > 0 && (*records = malloc(wanted * sizeof **records)))
        for (struct hf_lock *lock = store->locks; lock && !lock->recorded; lock = lock->next)
            if (is_due(lock, now))
                count += copy_records(lock, *records + count, now - lock->acquired_ms);
    pthread_mutex_unlock(&store->mutex);
    return count;
}

/* Writing failed. Marks all locks, because the search ends at the first recorded one. */
static void record_again(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    for (struct hf_lock *lock = store->locks; lock; lock = lock->next)
        lock->recorded = false;
    pthread_mutex_unlock(&store->mutex);
}

static void write_down(hf_store *store)
{
    hf__backend *backend = store->backend;
    hf__record *records = NULL;
    size_t count = find_unrecorded(store, &records);
    if (count > 0 && !backend->ops->record(backend, records, count))
        record_again(store);
    free(records);
    backend->ops->flush(backend);
}

static void *scribe(void *arg)
{
    hf_store *store = arg;
    pthread_mutex_lock(&store->mutex);
    while (!store->stopping) {
        struct timespec until = hf__timespec(hf__deadline(store->record_soon ? SOON_MS : ROUND_MS));
        (void)pthread_cond_clockwait(&store->scribe_due, &store->mutex, CLOCK_MONOTONIC, &until);
        if (store->stopping)
            break;
        pthread_mutex_unlock(&store->mutex);
        write_down(store);
        pthread_mutex_lock(&store->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}

void hf__scribe_soon(hf_store *store)
{
    if (store->record_soon || !store->scribing)
        return;
    store->record_soon = true;
    pthread_cond_signal(&store->scribe_due);
}

hf_status hf__scribe_start(hf_store *store, hf_error *err)
{
    if (store->scribing || !store->backend->ops->record || !atomic_load(&store->backend->history))
        return HF_OK;
    int failed = hf__thread_start(&store->scribe, 0, scribe, store);
    store->scribing = failed == 0;
    return failed ? hf__fail_errno(err, HF_SYSTEM, failed, "cannot start the scribe's thread")
                  : HF_OK;
}

void hf__scribe_stop(hf_store *store)
{
    if (!store->scribing)
        return;
    pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    pthread_cond_signal(&store->scribe_due);
    pthread_mutex_unlock(&store->mutex);
    (void)pthread_join(store->scribe, NULL);
    store->scribing = false;
}
