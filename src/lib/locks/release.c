/*
 * Releasing keys: inside the process, if another lock or a waiter keeps the key, or at the store.
 */
#include "lib/locks/engine.h"

#include <stdlib.h>

static void detach(struct grant *grant)
{
    struct grant **at = &grant->key_state->grants;
    while (*at != grant)
        at = &(*at)->next;
    *at = grant->next;
    grant->key_state->holders[grant->claim.mode]--;
    grant->hold->refs--;
}

void hf__drop_grant(hf_store *store, struct grant *grant, bool lost)
{
    struct key_state *key_state = grant->key_state;
    struct hold *hold = grant->hold;
    detach(grant);
    grant->hold = NULL;
    if (hold->refs == 0 && lost) {
        if (key_state->hold == hold)
            key_state->hold = NULL;
        store->keys_held--;
        hf__session_leave(hold->session, 1);
        free(hold);
    }
    hf__key_state_admit(store, key_state);
}

/*
 * Mutex held. Ends the grant inside the process if other locks or a waiter keep the hold. True: the
 * store has to release the key, which is busy until then. *status becomes HF_LOST when the session
 * has been lost.
 */
static bool hand_over(hf_store *store, struct grant *grant, hf_status *status, hf_error *err)
{
    struct key_state *key_state = grant->key_state;
    struct hold *hold = grant->hold;
    bool lost = hf__session_is_lost(hold->session);

    if (lost) {
        *status = HF_LOST;
        if (err != NULL)
            *err = hold->session->why;
    }
    if (lost || hold->refs > 1) {
        hf__drop_grant(store, grant, lost);
        return false;
    }
    detach(grant);
    if (hf__may_hand_over(key_state, hold)) {
        grant->hold = NULL;
        hf__key_state_admit(store, key_state);
        return false;
    }
    if (key_state->hold == hold)
        key_state->hold = NULL;
    key_state->busy++;
    return true;
}

/* Without memory for all claims, they are released one by one. */
static hf_status release_group(hf_store *store, struct grant *grants, size_t count, bool brief,
                               hf_error *err)
{
    hf__session *session = grants[0].hold->session;
    hf__claim single = {0};
    hf__claim *many = count > 1 ? calloc(count, sizeof *many) : NULL;
    hf__claim *claims = many ? many : &single;
    size_t step = many ? count : 1;
    hf_status result = HF_OK;

    for (size_t start = 0; start < count; start += step) {
        for (size_t i = 0; i < step; i++)
            claims[i] = grants[start + i].claim;
        hf_status status = store->backend->ops->release_claims(session, claims, step, brief, err);
        if (status != HF_OK)
            result = status;
    }
    free(many);
    return result;
}

static void finish_release(hf_store *store, struct grant *grants, size_t count)
{
    hf__session *session = grants[0].hold->session;
    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < count; i++) {
        struct key_state *key_state = grants[i].key_state;
        free(grants[i].hold);
        grants[i].hold = NULL;
        key_state->busy--;
        hf__key_state_admit(store, key_state);
    }
    store->keys_held -= (int)count;
    pthread_mutex_unlock(&store->mutex);
    hf__session_leave(session, (unsigned)count);
}

static bool same_group(const struct grant *a, const struct grant *b)
{
    return b->hold && a->hold->session == b->hold->session && a->claim.mode == b->claim.mode;
}

/* Mutex held. */
static bool stays_inside(const struct grant *grant)
{
    return grant->hold->refs > 1 || hf__may_hand_over(grant->key_state, grant->hold);
}

/*
 * Mutex held, but not while the backend looks. The store is not told when a key stays in the
 * process, so nobody else would notice that it was lost before its release. A loss shows in the
 * session.
 */
static void confirm_claims(struct hf_lock *lock, size_t from)
{
    hf_store *store = lock->store;
    const hf__backend_ops *ops = store->backend->ops;
    size_t first = from;

    while (first < lock->count && !(lock->grants[first].hold && stays_inside(&lock->grants[first])))
        first++;
    if (first == lock->count || ops->confirm_claims == NULL)
        return;
    /* All of them, because waiters may queue for others of them while the backend looks. */
    for (size_t i = from; i < lock->count; i++) {
        struct grant *grant = &lock->grants[i];
        if (grant->hold == NULL || atomic_load(&grant->hold->session->lost))
            continue;
        hf__session *session = grant->hold->session;
        atomic_fetch_add(&session->holds, 1); /* so that a loss does not free it meanwhile */
        pthread_mutex_unlock(&store->mutex);
        (void)!ops->confirm_claims(session, &grant->claim, 1, NULL);
        hf__session_leave(session, 1);
        pthread_mutex_lock(&store->mutex);
    }
}

/*
 * is_free: the store has released the keys already. Neighbouring grants of one session and mode go
 * to the store in one call.
 */
static hf_status end_claims(struct hf_lock *lock, size_t from, bool is_free, hf_error *err)
{
    hf_store *store = lock->store;
    bool was_held = lock->acquired_ms != 0; /* otherwise its acquire has failed: nobody is told */
    size_t until = lock->count;
    hf_status result = HF_OK;

    pthread_mutex_lock(&store->mutex);
    if (!is_free && was_held)
        confirm_claims(lock, from);
    for (size_t i = from; i < until; i++)
        if (lock->grants[i].hold && !hand_over(store, &lock->grants[i], &result, err))
            lock->grants[i].hold = NULL;
    pthread_mutex_unlock(&store->mutex);
    for (size_t start = from, end; start < until; start = end) {
        end = start + 1;
        if (!lock->grants[start].hold)
            continue;
        while (end < until && same_group(&lock->grants[start], &lock->grants[end]))
            end++;
        hf_status status = HF_OK;
        if (!is_free)
            status = release_group(store, &lock->grants[start], end - start, !was_held, err);
        if (status != HF_OK)
            result = status;
        finish_release(store, &lock->grants[start], end - start);
    }
    lock->count = from;
    return result;
}

hf_status hf__claims_release(struct hf_lock *lock, size_t from, hf_error *err)
{
    return end_claims(lock, from, false, err);
}

void hf__claims_leave(struct hf_lock *lock)
{
    (void)!end_claims(lock, 0, true, NULL);
}
