/*
 * The watcher: one thread per store lets the backend look after its sessions. It marks the locks of
 * a lost session as lost. Their callbacks run exactly once, in a thread of their own or in
 * hf_store_dispatch.
 */
#include "lib/locks/engine.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

enum { ROUND_MS = 1000 };

void hf__forget_due(hf_store *store, struct hf_lock *lock)
{
    struct hf_lock **at = &store->due_first, *previous = NULL;
    if (!lock->queued_due)
        return;
    while (*at != lock) {
        previous = *at;
        at = &(*at)->next_due;
    }
    *at = lock->next_due;
    if (store->due_last == lock)
        store->due_last = previous;
    lock->queued_due = false;
}

void hf__callback_due(hf_store *store)
{
    uint64_t one = 1;
    (void)!write(store->event_fd, &one, sizeof one);
    pthread_cond_signal(&store->due);
}

void hf__lock_due(hf_store *store, struct hf_lock *lock)
{
    if (lock->queued_due)
        return;
    lock->next_due = NULL;
    if (store->due_last)
        store->due_last->next_due = lock;
    else
        store->due_first = lock;
    store->due_last = lock;
    lock->queued_due = true;
    hf__callback_due(store);
}

static void queue_loss(hf_store *store, struct hf_lock *lock)
{
    lock->loss_due = true;
    hf__lock_due(store, lock);
}

void hf__loss_may_be_told(hf_store *store, struct hf_lock *lock)
{
    lock->untold = false;
    if (lock->state == HF_STATE_LOST && lock->on_lost)
        queue_loss(store, lock);
}

static void lose(hf_store *store, struct hf_lock *lock, const char *reason, const hf_error *why)
{
    if (!hf__life_step(lock, LIFE_LOSE))
        return;
    hf__name_loss(lock, why);
    for (size_t i = 0; i < lock->count; i++)
        if (lock->grants[i].hold && hf__session_is_lost(lock->grants[i].hold->session))
            hf__drop_grant(store, &lock->grants[i], true);
    hf__order_remove(store, lock);
    hf__attention_end(store, lock);
    hf__note_loss(lock, reason);
    if (lock->on_lost && !lock->untold)
        queue_loss(store, lock);
}

const hf__session *hf__lost_session(const struct hf_lock *lock)
{
    for (size_t i = 0; i < lock->count; i++)
        if (lock->grants[i].hold && hf__session_is_lost(lock->grants[i].hold->session))
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

/* A loss makes an ask pointless. */
static void call_back(struct hf_lock *lock, hf_yield_fn *on_yield, const hf_error *asker)
{
    if (!asker)
        lock->on_lost(lock, &lock->why, lock->arg);
    else
        on_yield(lock, asker, lock->arg);
}

static void deliver_first(hf_store *store)
{
    struct hf_lock *lock = store->due_first;
    hf__forget_due(store, lock);
    hf_yield_fn *on_yield = lock->on_yield;
    hf_error *asker = lock->loss_due ? NULL : lock->asker;
    if (asker)
        lock->asker = NULL; /* ours now: the callback may free the lock */
    lock->loss_due = false;
    lock->delivering = true;
    lock->deliverer = pthread_self();
    pthread_mutex_unlock(&store->mutex);
    call_back(lock, on_yield, asker);
    free(asker);
    pthread_mutex_lock(&store->mutex);
    lock->delivering = false;
    hf__cond_broadcast(&store->changed);
    if (lock->free_after)
        hf__lock_forget(lock);
}

static bool is_due(const hf_store *store)
{
    return store->told_first || store->due_first;
}

int hf__deliver(hf_store *store)
{
    int delivered = 0;
    uint64_t ignored;
    pthread_mutex_lock(&store->mutex);
    (void)!read(store->event_fd, &ignored, sizeof ignored);
    for (; is_due(store); delivered++) {
        if (store->told_first)
            hf__started_tell(store);
        else
            deliver_first(store);
    }
    pthread_mutex_unlock(&store->mutex);
    return delivered;
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
    pthread_mutex_lock(&store->mutex);
    while (is_due(store) || !store->delivery_ends) {
        while (!is_due(store) && !store->delivery_ends)
            pthread_cond_wait(&store->due, &store->mutex);
        pthread_mutex_unlock(&store->mutex);
        hf__deliver(store);
        pthread_mutex_lock(&store->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}

/* Callbacks have a thread of their own: one that takes its time must not stop the watching. */
int hf__deliverer_start(hf_store *store)
{
    if (store->dispatch || store->delivers)
        return 0;
    int failed = hf__thread_start(&store->deliverer, 0, deliver, store);
    store->delivers = failed == 0;
    return failed;
}

static void start_delivery(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool failed = is_due(store) && hf__deliverer_start(store) != 0;
    pthread_mutex_unlock(&store->mutex);
    if (failed)
        hf__deliver(store);
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
    bool watching = store->watching;
    store->stopping = true;
    pthread_mutex_unlock(&store->mutex);
    if (watching) {
        store->backend->ops->wake(store->backend);
        (void)pthread_join(store->watcher, NULL);
    }
    pthread_mutex_lock(&store->mutex);
    bool delivers = store->delivers;
    store->delivery_ends = true;
    pthread_cond_signal(&store->due);
    pthread_mutex_unlock(&store->mutex);
    if (delivers)
        (void)pthread_join(store->deliverer, NULL);
    store->delivers = store->watching = false;
}
