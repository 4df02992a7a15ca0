/* Key states: which locks of this process hold a key, and which threads wait for it. */
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "lib/locks/engine.h"

/* A key is handed over at most so often inside the process before other processes get a chance. */
enum { MOST_HANDOVERS = 16 };

static size_t bucket_of(int64_t key)
{
    return (size_t)(hf__hash_int((uint64_t)key) % KEY_BUCKETS);
}

struct key_state *hf__key_state_get(hf_store *store, const hf__claim *claim)
{
    struct key_state **head = &store->key_states[bucket_of(claim->key)];
    for (struct key_state *key_state = *head; key_state; key_state = key_state->next)
        if (key_state->key == claim->key && key_state->space == claim->space)
            return key_state;
    struct key_state *key_state = calloc(1, sizeof *key_state);
    if (!key_state)
        return NULL;
    key_state->key = claim->key;
    key_state->space = claim->space;
    key_state->next = *head;
    *head = key_state;
    return key_state;
}

static bool is_unused(const struct key_state *key_state)
{
    return !key_state->busy && !key_state->first && !key_state->grants &&
           key_state->holders[HF_SHARED] == 0 && key_state->holders[HF_EXCLUSIVE] == 0;
}

static void free_key_state(hf_store *store, struct key_state *key_state)
{
    struct key_state **at = &store->key_states[bucket_of(key_state->key)];
    while (*at != key_state)
        at = &(*at)->next;
    *at = key_state->next;
    free(key_state);
}

bool hf__key_state_is_free_for(const struct key_state *key_state, hf_mode mode)
{
    if (key_state->busy || key_state->holders[HF_EXCLUSIVE] > 0)
        return false;
    if (mode == HF_EXCLUSIVE)
        return key_state->holders[HF_SHARED] == 0;
    return !(key_state->draining && key_state->holders[HF_SHARED] > 0);
}

struct hold *hf__key_state_held_by_me(const struct key_state *key_state, hf_mode mode)
{
    int64_t me = hf__me();
    for (struct grant *grant = key_state->grants; grant; grant = grant->next)
        if (grant->lock->owner == me && grant->lock->state == HF_STATE_HELD &&
            (grant->claim.mode == HF_EXCLUSIVE || mode == HF_SHARED))
            return grant->hold;
    return NULL;
}

static const struct key_state *find_key_state(const hf_store *store, const hf__claim *claim)
{
    const struct key_state *key_state = store->key_states[bucket_of(claim->key)];
    while (key_state && (key_state->key != claim->key || key_state->space != claim->space))
        key_state = key_state->next;
    return key_state;
}

bool hf__held_by_me(const hf_store *store, const hf__claim *claim)
{
    const struct key_state *key_state = find_key_state(store, claim);
    return key_state && hf__key_state_held_by_me(key_state, claim->mode);
}

bool hf__is_held(const hf_store *store, const hf__claim *claim)
{
    const struct key_state *key_state = find_key_state(store, claim);
    return key_state && (key_state->holders[HF_SHARED] > 0 || key_state->holders[HF_EXCLUSIVE] > 0);
}

static bool may_join(const struct key_state *key_state, const struct waiter *waiter)
{
    return key_state->hold && key_state->hold->mode == waiter->mode && !waiter->alone &&
           !atomic_load(&key_state->hold->session->lost);
}

void hf__waiter_assign(struct waiter *waiter)
{
    struct key_state *key_state = waiter->key_state;
    if (may_join(key_state, waiter)) {
        waiter->state = WAITER_JOINS;
        waiter->hold = key_state->hold;
        waiter->hold->refs++;
        key_state->holders[waiter->mode]++;
        waiter->handover = ++key_state->handovers;
    } else {
        waiter->state = WAITER_ASKS;
        key_state->busy++;
        key_state->handovers = 0;
        key_state->yields = false;
    }
}

void hf__waiter_queue(struct waiter *waiter)
{
    struct key_state *key_state = waiter->key_state;
    waiter->next = NULL;
    waiter->state = WAITER_QUEUED;
    if (waiter->asks && key_state->first) {
        waiter->next = key_state->first;
        key_state->first = waiter;
        return;
    }
    if (key_state->last)
        key_state->last->next = waiter;
    else
        key_state->first = waiter;
    key_state->last = waiter;
}

void hf__waiter_abandon(struct waiter *waiter)
{
    struct key_state *key_state = waiter->key_state;
    struct waiter **at = &key_state->first, *previous = NULL;
    while (*at && *at != waiter) {
        previous = *at;
        at = &(*at)->next;
    }
    if (!*at)
        return;
    *at = waiter->next;
    if (key_state->last == waiter)
        key_state->last = previous;
}

bool hf__may_hand_over(const struct key_state *key_state, const struct hold *hold)
{
    const struct waiter *next = key_state->first;
    return next && !key_state->busy && hold == key_state->hold && next->mode == hold->mode &&
           !next->alone && !key_state->yields && key_state->handovers < MOST_HANDOVERS &&
           !atomic_load(&hold->session->lost);
}

void hf__key_state_admit(hf_store *store, struct key_state *key_state)
{
    if (key_state->holders[HF_SHARED] == 0)
        key_state->draining = false;
    while (key_state->first && hf__key_state_is_free_for(key_state, key_state->first->mode)) {
        struct waiter *waiter = key_state->first;
        key_state->first = waiter->next;
        if (!key_state->first)
            key_state->last = NULL;
        hf__waiter_assign(waiter);
        hf__cond_signal(waiter->cond);
    }
    hf__cond_broadcast(&store->changed);
    if (is_unused(key_state))
        free_key_state(store, key_state);
}

void hf__interrupt_waits(hf_store *store, bool all)
{
    if (hf__check_process(store, NULL) != HF_OK)
        return; /* the connections that it would wake are the parent's */
    pthread_mutex_lock(&store->mutex);
    store->interrupted = store->interrupted || all;
    for (size_t i = 0; i < KEY_BUCKETS; i++)
        for (struct key_state *key_state = store->key_states[i]; key_state;
             key_state = key_state->next)
            for (struct waiter *waiter = key_state->first; waiter; waiter = waiter->next)
                hf__cond_signal(waiter->cond);
    hf__cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
    store->backend->ops->interrupt(store->backend, all);
}

void hf__interrupt_cancelled(void *store)
{
    hf__interrupt_waits(store, false);
}

/* ---- deadlocks inside the process --------------------------------------------------------- */

/*
 * HF_ANY_ORDER allows deadlocks among the threads of one process. The engine's own tables have
 * every edge of such a cycle. It is found when its last thread starts to wait, and that thread gets
 * HF_DEADLOCK, though it may be one that keeps the order: the others wait already.
 */

enum { MOST_STEPS = 10000 };

static const struct waiter *wait_of(const hf_store *store, int64_t owner)
{
    for (const struct waiter *waiter = store->queued; waiter; waiter = waiter->next_queued)
        if (waiter->owner == owner)
            return waiter;
    return NULL;
}

static bool leads_to(const hf_store *store, const struct key_state *key_state, int64_t me,
                     int *steps)
{
    for (const struct grant *grant = key_state->grants; grant; grant = grant->next) {
        int64_t owner = grant->lock->owner;
        if (--*steps <= 0)
            return false;
        if (owner == me)
            return true;
        const struct waiter *wait = wait_of(store, owner);
        if (wait && leads_to(store, wait->key_state, me, steps))
            return true;
    }
    return false;
}

/*
 * Any thread may release a lock, so a thread that waits for a key it holds itself is no deadlock:
 * it relies on another thread.
 */
static bool holds(const struct key_state *key_state, int64_t me)
{
    for (const struct grant *grant = key_state->grants; grant; grant = grant->next)
        if (grant->lock->owner == me)
            return true;
    return false;
}

bool hf__closes_cycle(const hf_store *store, const struct waiter *waiter)
{
    int steps = MOST_STEPS;
    return !holds(waiter->key_state, waiter->owner) &&
           leads_to(store, waiter->key_state, waiter->owner, &steps);
}
