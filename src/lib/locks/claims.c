/*
 * Acquiring keys: first a thread queues among those of its process, then it asks the store.
 */
#include "lib/locks/engine.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

/* After so many joins of a shared key, somebody asks the store whether other processes wait. */
enum { LOOK_OUTSIDE_EVERY = 16 };

/* Is a request that will soon be decided the only thing in the way? */
static bool only_busy(const struct key_state *key_state, hf_mode mode)
{
    struct key_state idle = *key_state;
    idle.busy = 0;
    return key_state->busy && !key_state->waiting && !key_state->first &&
           hf__key_state_is_free_for(&idle, mode);
}

static bool reenter(const struct acquiring *acquiring, struct waiter *waiter)
{
    if (!(acquiring->spec->flags & HF_REENTRANT))
        return false;
    waiter->hold = hf__key_state_held_by_me(waiter->key_state, waiter->mode);
    if (!waiter->hold)
        return false;
    waiter->state = WAITER_JOINS;
    waiter->reenters = true;
    waiter->mode = waiter->hold->mode;
    waiter->hold->refs++;
    waiter->key_state->holders[waiter->mode]++;
    return true;
}

static void list_waiting(hf_store *store, struct waiter *waiter)
{
    waiter->owner = hf__me();
    waiter->next_queued = store->queued;
    store->queued = waiter;
}

static void unlist_waiting(hf_store *store, struct waiter *waiter)
{
    struct waiter **at = &store->queued;
    while (*at != waiter)
        at = &(*at)->next_queued;
    *at = waiter->next_queued;
}

/* Mutex held. HF_OK: the waiter has been assigned. Otherwise it has left the queue. */
static hf_status queue_up(const struct acquiring *acquiring, struct waiter *waiter)
{
    hf_store *store = acquiring->store;
    bool in_time = true;

    hf__waiter_queue(waiter);
    list_waiting(store, waiter);
    bool deadlock = hf__closes_cycle(store, waiter);
    while (!deadlock && waiter->state == WAITER_QUEUED && in_time && !hf__is_stopped(acquiring))
        in_time = hf__cond_wait(waiter->cond, &store->mutex, acquiring->deadline);
    unlist_waiting(store, waiter);
    if (waiter->state != WAITER_QUEUED)
        return HF_OK;
    hf__waiter_abandon(waiter);
    hf__key_state_admit(store, waiter->key_state);
    if (deadlock)
        return HF_DEADLOCK;
    return hf__is_stopped(acquiring) ? HF_INTERRUPTED : HF_NOT_ACQUIRED;
}

/*
 * HF_OK: the waiter joins a hold or asks the store. HF_NOT_ACQUIRED, HF_INTERRUPTED and HF_DEADLOCK
 * leave err alone. The key state is looked up again after each unlock: it may have been freed.
 */
static hf_status await_key(struct acquiring *acquiring, const hf__claim *claim,
                           struct waiter *waiter, bool patient, hf_error *err)
{
    hf_store *store = acquiring->store;
    /* A call that waits may be old already, and still leaves others the time of a round trip. */
    int64_t from = acquiring->spec->wait_ms != 0 ? hf__now_ms() : acquiring->began;
    int64_t latest = from + store->ping_deadline_ms;
    hf_status status = HF_OK;
    bool in_time = true;

    pthread_mutex_lock(&store->mutex);
    for (;;) {
        waiter->key_state = hf__key_state_get(store, claim);
        if (!waiter->key_state) {
            status = hf__no_memory(err);
            break;
        }
        if (reenter(acquiring, waiter))
            break;
        if (!waiter->key_state->first &&
            hf__key_state_is_free_for(waiter->key_state, waiter->mode)) {
            hf__waiter_assign(waiter);
            break;
        }
        if (!patient && in_time && !hf__is_stopped(acquiring) &&
            only_busy(waiter->key_state, waiter->mode)) {
            /* For one round trip, unless the store is silent and others are always first. */
            in_time = hf__cond_wait(&store->changed, &store->mutex, latest);
            continue;
        }
        if (patient && !acquiring->told) {
            pthread_mutex_unlock(&store->mutex);
            hf__tell_waiting(acquiring, claim);
            pthread_mutex_lock(&store->mutex);
            continue;
        }
        status = patient ? queue_up(acquiring, waiter) : HF_NOT_ACQUIRED;
        break;
    }
    pthread_mutex_unlock(&store->mutex);
    return status;
}

/* Mutex held. */
static void attach(struct grant *grant, struct hf_lock *lock, struct key_state *key_state,
                   struct hold *hold, const hf__claim *claim)
{
    grant->lock = lock;
    grant->key_state = key_state;
    grant->hold = hold;
    grant->claim = *claim;
    grant->claim.mode = hold->mode;
    grant->claim.term = hold->token;
    grant->next = key_state->grants;
    key_state->grants = grant;
}

hf_status hf__quota_check(hf_store *store, size_t wanted, hf_error *err)
{
    int held = store->keys_held;
    if (wanted <= (size_t)store->backend->max_keys &&
        held <= store->backend->max_keys - (int)wanted)
        return HF_OK;
    hf_status status =
        hf__fail(err, HF_QUOTA, "%zu more keys would exceed this store's quota: %d of %d are held",
                 wanted, held, store->backend->max_keys);
    hf__hint(err, "a full lock table breaks every session of the server; hold fewer keys, or raise "
                  "max_locks_per_transaction there and max_keys here");
    return status;
}

static void mark_waiting(hf_store *store, struct waiter *waiters, size_t count, bool waiting)
{
    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < count; i++)
        if (waiters[i].state == WAITER_ASKS)
            waiters[i].key_state->waiting = waiting;
    hf__cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
}

static hf_status wait_at_store(hf_store *store, hf__request *request, hf_error *err)
{
    hf__key *held = NULL;
    const hf__claim *before = request->ask, ask = hf__ask_claim(request->claims, HF_SHARED);
    pthread_mutex_lock(&store->mutex);
    request->held_count = hf__order_held(store, &held);
    pthread_mutex_unlock(&store->mutex);
    request->held = held;
    request->ask = request->count == 1 ? &ask : NULL;
    hf_status status = store->backend->ops->wait_claims(store->backend, request, err);
    request->ask = before;
    request->held = NULL;
    request->held_count = 0;
    free(held);
    return status;
}

static hf_status ask_once(struct acquiring *acquiring, hf__request *request, struct waiter *waiters,
                          size_t count, bool patient, hf_error *err)
{
    hf_store *store = acquiring->store;
    const hf__backend_ops *ops = store->backend->ops;
    pthread_mutex_lock(&store->mutex);
    hf_status status = hf__quota_check(store, request->count, err);
    pthread_mutex_unlock(&store->mutex);
    request->deadline = hf__patience_end(acquiring);
    if (status == HF_OK)
        status = ops->try_claims(store->backend, request, err);
    if (status == HF_OK || status == HF_NOT_ACQUIRED)
        hf__is_back(acquiring);
    request->deadline = acquiring->deadline;
    if (status == HF_NOT_ACQUIRED && patient && hf__left_ms(acquiring->deadline) != 0) {
        mark_waiting(store, waiters, count, true);
        hf__tell_waiting(acquiring, &request->claims[request->blocked]);
        status = wait_at_store(store, request, err);
        mark_waiting(store, waiters, count, false);
    }
    return status;
}

/* Keeps its place in the line of the process meanwhile. err is not NULL. */
static hf_status ask_store(struct acquiring *acquiring, hf__request *request,
                           struct waiter *waiters, size_t count, bool patient, hf_error *err)
{
    hf_status status;
    do {
        status = ask_once(acquiring, request, waiters, count, patient, err);
        if (status == HF_UNREACHABLE || status == HF_CONFIG)
            mark_waiting(acquiring->store, waiters, count, patient);
    } while (patient && (status == HF_UNREACHABLE || status == HF_CONFIG) &&
             hf__outlast(acquiring, err));
    if (status != HF_UNREACHABLE && status != HF_CONFIG)
        hf__is_back(acquiring);
    return status;
}

/*
 * Mutex held: the store has granted the key to this process. A private hold stays out of
 * key_state->hold, so nobody joins it.
 */
static void attach_granted(struct acquiring *acquiring, struct waiter *waiter,
                           const hf__claim *claim, struct hold *hold, struct grant *grant)
{
    struct key_state *key_state = waiter->key_state;
    key_state->busy--;
    key_state->waiting = false;
    key_state->holders[hold->mode]++;
    if (!waiter->alone || (!key_state->hold && !hf__is_alone(acquiring->spec)))
        key_state->hold = hold;
    acquiring->store->keys_held++;
    attach(grant, acquiring->lock, key_state, hold, claim);
    hf__key_state_admit(acquiring->store, key_state);
}

/* Those that were to ask the store have got nothing: lets the next waiters in. */
static void leave_refused(hf_store *store, struct waiter *waiters, size_t count)
{
    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < count; i++) {
        if (waiters[i].state != WAITER_ASKS)
            continue;
        waiters[i].key_state->busy--;
        waiters[i].key_state->waiting = false;
        hf__key_state_admit(store, waiters[i].key_state);
    }
    pthread_mutex_unlock(&store->mutex);
}

static bool make_holds(struct waiter *waiters, size_t count, const hf__request *request)
{
    for (size_t i = 0; i < count; i++) {
        if (waiters[i].state != WAITER_ASKS)
            continue;
        if (!(waiters[i].hold = malloc(sizeof *waiters[i].hold))) {
            while (i-- > 0)
                if (waiters[i].state == WAITER_ASKS)
                    free(waiters[i].hold);
            return false;
        }
        *waiters[i].hold = (struct hold){.session = request->session,
                                         .mode = request->claims->mode,
                                         .refs = 1,
                                         .token = request->token};
    }
    return true;
}

static hf_status acquire_at_store(struct acquiring *acquiring, const hf__claim *claims,
                                  size_t count, struct waiter *waiters, bool patient, hf_error *err)
{
    hf_store *store = acquiring->store;
    hf__claim single, ask, *wanted = &single;
    bool traced = acquiring->lock->trace && acquiring->lock->trace->told;
    hf__request request = {.lifetime = acquiring->spec->lifetime,
                           .lease_ms = acquiring->spec->lease_ms,
                           .private_session = acquiring->spec->flags & HF_PRIVATE,
                           .any_order = acquiring->spec->flags & HF_ANY_ORDER,
                           .began = acquiring->began,
                           .deadline = acquiring->deadline,
                           .give_up = traced ? hf__trace_look : acquiring->give_up,
                           .give_up_arg = traced ? acquiring : acquiring->give_up_arg,
                           .cancel = acquiring->spec->cancel,
                           .asks = acquiring->asks,
                           .holds_ask = hf__holds_ask,
                           .holds_ask_arg = store,
                           .session = acquiring->on};

    hf__lookup_attach(acquiring, &request);
    if (count > 1 && !(wanted = calloc(count, sizeof *wanted))) {
        leave_refused(store, waiters, count);
        return hf__no_memory(err);
    }
    for (size_t i = 0; i < count; i++)
        if (waiters[i].state == WAITER_ASKS)
            wanted[request.count++] = claims[i];
    request.claims = wanted;
    /* Whoever tries first after a release gets a lease: the server looks for asks at every try. */
    if (request.lifetime == HF_LEASE && request.count == 1) {
        ask = hf__ask_claim(wanted, HF_SHARED);
        request.ask = &ask;
    }
    hf_status status =
        request.count > 0 ? ask_store(acquiring, &request, waiters, count, patient, err) : HF_OK;
    if (status == HF_NOT_ACQUIRED) {
        acquiring->blocked = request.count == count ? request.blocked : 0;
        status = hf__refused(acquiring, &wanted[request.blocked], err);
    }
    if (status == HF_OK && !make_holds(waiters, count, &request)) {
        for (size_t i = 0; i < request.count; i++)
            wanted[i].term = request.token;
        (void)!store->backend->ops->release_claims(request.session, wanted, request.count, true,
                                                   NULL);
        hf__session_leave(request.session, (unsigned)request.count);
        status = hf__no_memory(err);
    }
    if (status != HF_OK) {
        leave_refused(store, waiters, count);
        goto out;
    }
    pthread_mutex_lock(&store->mutex);
    struct grant *grants = acquiring->lock->grants + acquiring->lock->count - count;
    for (size_t i = 0; i < count; i++)
        if (waiters[i].state == WAITER_ASKS)
            attach_granted(acquiring, &waiters[i], &claims[i], waiters[i].hold, &grants[i]);
    pthread_mutex_unlock(&store->mutex);
    if (request.token > acquiring->lock->token)
        acquiring->lock->token = request.token;
    acquiring->lock->snapshot_stale |= request.snapshot_stale;
out:
    if (wanted != &single)
        free(wanted);
    return status;
}

static void attach_joined(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                          struct waiter *waiters)
{
    struct hf_lock *lock = acquiring->lock;
    pthread_mutex_lock(&acquiring->store->mutex);
    for (size_t i = 0; i < count; i++) {
        lock->grants[lock->count + i].hold = NULL;
        if (waiters[i].state == WAITER_JOINS)
            attach(&lock->grants[lock->count + i], lock, waiters[i].key_state, waiters[i].hold,
                   &claims[i]);
    }
    pthread_mutex_unlock(&acquiring->store->mutex);
    lock->count += count;
}

/*
 * A lock that joined a hold gets a token of its own. Now and then a joiner also asks whether other
 * processes wait, so that an endless chain of shared holders does not keep them out.
 */
static hf_status renew_joined(struct acquiring *acquiring, size_t from, struct waiter *waiters,
                              hf_error *err)
{
    hf_store *store = acquiring->store;
    const hf__backend_ops *ops = store->backend->ops;
    hf_status status = HF_OK;

    for (size_t i = from; status == HF_OK && i < acquiring->lock->count; i++) {
        struct grant *grant = &acquiring->lock->grants[i];
        struct waiter *waiter = &waiters[i - from];
        hf__request request = {.claims = &grant->claim,
                               .count = 1,
                               .began = acquiring->began,
                               .deadline = acquiring->deadline,
                               .cancel = acquiring->spec->cancel};
        bool contended = false;
        if (waiter->state != WAITER_JOINS)
            continue;
        if (waiter->reenters) {
            request.token = grant->hold->token;
        } else {
            status = ops->renew_claims(grant->hold->session, &request, err);
            if (status == HF_OK && waiter->mode == HF_SHARED &&
                waiter->handover % LOOK_OUTSIDE_EVERY == 0)
                status = ops->is_contended(store->backend, &grant->claim, &contended, err);
        }
        pthread_mutex_lock(&store->mutex);
        grant->hold->token = request.token;
        grant->key_state->draining |= contended;
        pthread_mutex_unlock(&store->mutex);
        if (request.token > acquiring->lock->token)
            acquiring->lock->token = request.token;
    }
    return status;
}

static hf_status await_keys(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                            struct waiter *waiters, bool patient, hf_error *err)
{
    hf__cond cond = HF__COND_INITIALIZER;
    hf_status status = HF_OK;
    size_t got = 0;

    for (; got < count; got++) {
        waiters[got] = (struct waiter){.mode = claims[got].mode,
                                       .alone = hf__is_alone(acquiring->spec),
                                       .asks = acquiring->asks,
                                       .cond = &cond};
        status = await_key(acquiring, &claims[got], &waiters[got], patient, err);
        if (status != HF_OK)
            break;
    }
    hf__cond_destroy(&cond);
    if (status == HF_OK)
        return HF_OK;
    acquiring->blocked = got;
    leave_refused(acquiring->store, waiters, got);
    attach_joined(acquiring, claims, got, waiters);
    (void)!hf__claims_release(acquiring->lock, acquiring->lock->count - got, NULL);
    if (status == HF_NOT_ACQUIRED)
        status = hf__refused(acquiring, &claims[got], err);
    else if (status == HF_INTERRUPTED)
        status = hf__interrupted(err);
    else if (status == HF_DEADLOCK)
        status = hf__say_deadlock(&claims[got], err);
    return status;
}

static hf_status acquire_once(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                              bool patient, hf_error *err)
{
    struct waiter single = {0}, *waiters = &single;
    size_t from = acquiring->lock->count;

    if (count > 1 && !(waiters = calloc(count, sizeof *waiters)))
        return hf__no_memory(err);
    hf_status status = await_keys(acquiring, claims, count, waiters, patient, err);
    if (status == HF_OK) {
        attach_joined(acquiring, claims, count, waiters);
        status = acquire_at_store(acquiring, claims, count, waiters, patient, err);
        if (status == HF_OK)
            status = renew_joined(acquiring, from, waiters, err);
        if (status != HF_OK)
            (void)!hf__claims_release(acquiring->lock, from, NULL);
    }
    if (waiters != &single)
        free(waiters);
    return status;
}

/* A session that was joined, or had been idle, may turn out dead: tries again on a new one. */
static hf_status acquire_at_once(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                                 bool patient, hf_error *err)
{
    hf_status status = acquire_once(acquiring, claims, count, patient, err);
    return status == HF_UNREACHABLE ? acquire_once(acquiring, claims, count, patient, err) : status;
}

/*
 * Are the keys that were acquired first still held, behind the token of the last? Then whoever gets
 * one of them later has a greater token.
 */
static hf_status confirm_all(struct hf_lock *lock, size_t from, hf_error *err)
{
    const hf__backend_ops *ops = lock->store->backend->ops;
    hf_status status = HF_OK;
    for (size_t i = from; ops->confirm_claims && i < lock->count && status == HF_OK; i++) {
        const struct grant *grant = &lock->grants[i];
        status = ops->confirm_claims(grant->hold->session, &grant->claim, 1, err);
    }
    return status;
}

/*
 * Those of a private lock are on one session, so that its loss is the loss of all. HF_LOST: a key
 * was lost while the wait for a later one went on.
 */
static hf_status acquire_one_by_one(struct acquiring *acquiring, const hf__claim *claims,
                                    size_t count, hf_error *err)
{
    struct hf_lock *lock = acquiring->lock;
    hf__session *on = acquiring->on;
    size_t from = lock->count;
    hf_status status = HF_OK;

    for (size_t i = 0; i < count && status == HF_OK; i++) {
        status = acquire_at_once(acquiring, &claims[i], 1, true, err);
        acquiring->blocked = i;
        if (status == HF_OK && (acquiring->spec->flags & HF_PRIVATE))
            acquiring->on = lock->grants[from].hold->session;
    }
    acquiring->on = on;
    if (status == HF_OK)
        status = confirm_all(lock, from, err);
    if (status != HF_OK)
        (void)!hf__claims_release(lock, from, NULL);
    return status;
}

/*
 * A set is first tried as a whole. If it has to wait, it acquires its keys one after the other, in
 * the order that all keep to, and holds those that it has. To stand in line for a later key while
 * it waits for an earlier one would keep out a thread that has to go on for the earlier one to come
 * free. Leases are taken together all the same, since one term stands for the whole set.
 */
static hf_status acquire_claims(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                                bool patient, hf_error *err)
{
    hf_status status;
    if (count == 1 || !patient || acquiring->spec->lifetime == HF_LEASE)
        return acquire_at_once(acquiring, claims, count, patient, err);
    acquiring->quiet = true;
    status = acquire_once(acquiring, claims, count, false, err);
    acquiring->quiet = false;
    bool outlasts =
        (status == HF_UNREACHABLE || status == HF_CONFIG) && hf__outlast(acquiring, err);
    if (status != HF_NOT_ACQUIRED && !outlasts)
        return status;
    if (status == HF_NOT_ACQUIRED)
        hf__tell_waiting(acquiring, &claims[acquiring->blocked]);
    do
        status = acquire_one_by_one(acquiring, claims, count, err);
    while (status == HF_LOST && !acquiring->on);
    return status;
}

/* An error is large: it is only made here if the caller has none. */
hf_status hf__claims_acquire(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             bool patient, hf_error *err)
{
    if (err)
        return acquire_claims(acquiring, claims, count, patient, err);
    hf_error local_error = {0};
    return acquire_claims(acquiring, claims, count, patient, &local_error);
}
