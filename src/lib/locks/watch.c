/*
 * The watcher: one thread per store lets the backend look after its sessions. It marks the locks of
 * a lost session as lost. Their callbacks run exactly once, in a thread of their own or in
 * hf_store_dispatch.
 */
#include "lib/locks/engine.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

enum { ROUND_MS = 1000 };

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

static void lose(hf_store *store, struct hf_lock *lock, const char *reason, const hf_error *why)
{
    if (!hf__life_step(lock, LIFE_LOSE))
        return;
    hf__name_loss(lock, why);
    for (size_t i = 0; i < lock->count; i++)
        if (lock->grants[i].hold && atomic_load(&lock->grants[i].hold->session->lost))
            hf__drop_grant(store, &lock->grants[i], true);
    hf__order_remove(store, lock);
    hf__note_loss(lock, reason);
    if (lock->on_lost)
        queue_loss(store, lock);
}

const hf__session *hf__lost_session(const struct hf_lock *lock)
{
    for (size_t i = 0; i < lock->count; i++)
        if (lock->grants[i].hold && atomic_load(&lock->grants[i].hold->session->lost))
            return lock->grants[i].hold->session;
    return NULL;
}

static void find_losses(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    for (struct hf_lock *lock = store->locks; lock; lock = lock->next) {
        const hf__session *session = hf__lost_session(lock);
        if (!session)
            continue;
        hf_error why = session->why; /* a copy: dropping the last grant may free the session */
        lose(store, lock, session->reason, &why);
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
        pthread_cond_broadcast(&store->changed);
        if (lock->free_after)
            hf__lock_forget(lock);
    }
    pthread_mutex_unlock(&store->mutex);
    return delivered;
}

/* The next loss starts a delivery of its own. */
static bool stops_delivering(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool done = !store->lost_first;
    store->delivering = !done;
    pthread_mutex_unlock(&store->mutex);
    return done;
}

static bool stopping(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool stop = store->stopping;
    pthread_mutex_unlock(&store->mutex);
    return stop;
}

static void *deliver(void *arg)
{
    hf_store *store = arg;
    do
        hf__deliver_losses(store);
    while (!stops_delivering(store));
    return NULL;
}

/* Callbacks have a thread of their own: one that takes its time must not stop the watching. */
static void start_delivery(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool due = store->lost_first && !store->delivering;
    bool ended = due && store->delivers;
    store->delivering |= due;
    pthread_mutex_unlock(&store->mutex);
    if (ended)
        (void)pthread_join(store->deliverer, NULL);
    if (!due)
        return;
    store->delivers = hf__thread_start(&store->deliverer, 0, deliver, store) == 0;
    if (!store->delivers)
        (void)deliver(store);
}

static void *watch(void *arg)
{
    hf_store *store = arg;
    while (!stopping(store)) {
        store->backend->ops->watch(store->backend, ROUND_MS);
        find_losses(store);
        if (!store->dispatch)
            start_delivery(store);
    }
    return NULL;
}

hf_status hf__watch_start(hf_store *store, hf_error *err)
{
    int failed = 0;
    pthread_mutex_lock(&store->mutex);
    if (!store->watching) {
        failed = hf__thread_start(&store->watcher, 0, watch, store);
        store->watching = failed == 0;
    }
    hf_status scribing = failed ? HF_OK : hf__scribe_start(store, err);
    pthread_mutex_unlock(&store->mutex);
    if (scribing != HF_OK)
        return scribing;
    return failed ? hf__fail_errno(err, HF_SYSTEM, failed, "cannot start the watcher's thread")
                  : HF_OK;
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
    if (store->delivers)
        (void)pthread_join(store->deliverer, NULL);
    store->delivers = store->watching = false;
}
