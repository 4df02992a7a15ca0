/*
 * The watcher: one thread per store looks after its sessions. What it finds lost is marked, and
 * told to the owner exactly once, by this thread or by the event loop that dispatches.
 */
#include "lock/engine.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    ROUND_MS = 1000,
    SOON_MS = 20,        /* a round while something is not recorded yet */
    RECORD_AFTER_MS = 5, /* what is held for less is not worth a row */
};

void hf__forget_loss(hf_store *store, struct hf_lock *lock)
{
    struct hf_lock **at = &store->lost_first, *previous = NULL;
    if (!lock->queued_lost)
        return;
    while (*at != lock) {
        previous = *at;
        at = &(*at)->next_lost;
    }
    *at = lock->next_lost;
    if (store->lost_last == lock)
        store->lost_last = previous;
    lock->queued_lost = false;
}

static void queue_loss(hf_store *store, struct hf_lock *lock)
{
    uint64_t one = 1;
    lock->next_lost = NULL;
    if (store->lost_last)
        store->lost_last->next_lost = lock;
    else
        store->lost_first = lock;
    store->lost_last = lock;
    lock->queued_lost = true;
    (void)!write(store->event_fd, &one, sizeof one);
}

void hf__lose(hf_store *store, struct hf_lock *lock, const hf_error *why)
{
    lock->state = HF_STATE_LOST;
    hf__name_loss(lock, why);
    for (size_t i = 0; i < lock->count; i++)
        if (lock->grants[i].hold && atomic_load(&lock->grants[i].hold->seat->lost))
            hf__drop_grant(store, &lock->grants[i], true);
    hf__order_remove(store, lock);
    hf__note(lock, HF__EVENT_LOST, -1, hf__now_ms() - lock->acquired_ms);
    if (lock->on_lost)
        queue_loss(store, lock);
}

static const hf__seat *lost_seat(const struct hf_lock *lock)
{
    for (size_t i = 0; i < lock->count; i++)
        if (lock->grants[i].hold && atomic_load(&lock->grants[i].hold->seat->lost))
            return lock->grants[i].hold->seat;
    return NULL;
}

static void find_losses(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    for (struct hf_lock *lock = store->locks; lock; lock = lock->next) {
        const hf__seat *seat = lock->state == HF_STATE_HELD ? lost_seat(lock) : NULL;
        if (!seat)
            continue;
        hf_error why = seat->why; /* the seat may go with its last grant */
        hf__lose(store, lock, &why);
    }
    pthread_mutex_unlock(&store->mutex);
}

int hf__deliver_losses(hf_store *store)
{
    int delivered = 0;
    uint64_t ignored;
    pthread_mutex_lock(&store->mutex);
    (void)!read(store->event_fd, &ignored, sizeof ignored);
    while (store->lost_first) {
        struct hf_lock *lock = store->lost_first;
        hf__forget_loss(store, lock);
        lock->delivering = true;
        lock->deliverer = pthread_self();
        pthread_mutex_unlock(&store->mutex);
        lock->on_lost(lock, &lock->why, lock->arg);
        delivered++;
        pthread_mutex_lock(&store->mutex);
        lock->delivering = false;
        pthread_cond_broadcast(&store->settled);
        if (lock->free_after)
            hf__lock_forget(lock);
    }
    pthread_mutex_unlock(&store->mutex);
    return delivered;
}

/* Mutex held. */
static size_t copy_held(struct hf_lock *lock, hf__held *held, int64_t age_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < lock->count; i++) {
        const struct grant *grant = &lock->grants[i];
        if (grant->hold)
            held[count++] = (hf__held){.session_id = grant->hold->seat->session_id,
                                       .key = grant->claim.key,
                                       .space = grant->claim.space,
                                       .mode = grant->claim.mode,
                                       .slot = grant->claim.slot,
                                       .age_ms = age_ms,
                                       .token = lock->token};
    }
    lock->recorded = true;
    return count;
}

static bool is_due(const struct hf_lock *lock, int64_t now)
{
    return lock->state == HF_STATE_HELD && lock->token && now - lock->acquired_ms >= RECORD_AFTER_MS;
}

/* The newest locks stand first, so that the first recorded one ends the search. */
static size_t find_unrecorded(hf_store *store, hf__held **held)
{
    size_t wanted = 0, count = 0;
    int64_t now = hf__now_ms();
    pthread_mutex_lock(&store->mutex);
    store->watch_soon = false;
    for (struct hf_lock *lock = store->locks; lock && !lock->recorded; lock = lock->next) {
        bool due = is_due(lock, now);
        wanted += due ? lock->count : 0;
        store->watch_soon |= !due && lock->token;
    }
    if (wanted > 0 && (*held = malloc(wanted * sizeof **held)))
        for (struct hf_lock *lock = store->locks; lock && !lock->recorded; lock = lock->next)
            if (is_due(lock, now))
                count += copy_held(lock, *held + count, now - lock->acquired_ms);
    pthread_mutex_unlock(&store->mutex);
    return count;
}

static int record_held(hf_store *store)
{
    hf__backend *backend = store->backend;
    hf__held *held = NULL;
    if (!backend->ops->record || !atomic_load(&backend->records))
        return ROUND_MS;
    size_t count = find_unrecorded(store, &held);
    if (count > 0)
        backend->ops->record(backend, held, count);
    free(held);
    pthread_mutex_lock(&store->mutex);
    int ms = store->watch_soon ? SOON_MS : ROUND_MS;
    pthread_mutex_unlock(&store->mutex);
    return ms;
}

static bool stopping(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool stop = store->stopping;
    pthread_mutex_unlock(&store->mutex);
    return stop;
}

static void *watch(void *arg)
{
    hf_store *store = arg;
    int ms = ROUND_MS;
    while (!stopping(store)) {
        store->backend->ops->watch(store->backend, ms);
        ms = record_held(store);
        find_losses(store);
        if (!store->dispatch)
            hf__deliver_losses(store);
    }
    return NULL;
}

/* The application's signals are not for this thread. */
static int create_thread(pthread_t *thread, hf_store *store)
{
    sigset_t all;
    pthread_attr_t attributes;
    (void)sigfillset(&all);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setsigmask_np(&attributes, &all);
    int failed = pthread_create(thread, &attributes, watch, store);
    (void)pthread_attr_destroy(&attributes);
    return failed;
}

hf_status hf__watch_start(hf_store *store, hf_error *err)
{
    int failed = 0;
    pthread_mutex_lock(&store->mutex);
    if (!store->watching) {
        failed = create_thread(&store->watcher, store);
        store->watching = failed == 0;
    }
    pthread_mutex_unlock(&store->mutex);
    return failed ? hf__fail_errno(err, HF_SYSTEM, failed, "cannot start the watcher's thread") : HF_OK;
}

void hf__watch_stop(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool running = store->watching;
    store->stopping = true;
    pthread_mutex_unlock(&store->mutex);
    if (!running)
        return;
    store->backend->ops->wake(store->backend);
    (void)pthread_join(store->watcher, NULL);
    store->watching = false;
}
