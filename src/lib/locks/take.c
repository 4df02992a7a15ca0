/* Taking and giving up keys: first a turn among the threads of the process, then the store. */
#include "lib/locks/engine.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

/* How many joins of a shared key go by before somebody looks whether others wait outside. */
enum { LOOK_OUTSIDE_EVERY = 16 };

static bool only_busy(const struct entry *entry, hf_mode mode)
{
    struct entry idle = *entry;
    idle.busy = 0;
    return entry->busy && !entry->waiting && !entry->first && hf__entry_is_free_for(&idle, mode);
}

static bool reenter(const struct attempt *attempt, struct turn *turn)
{
    if (!(attempt->spec->flags & HF_REENTRANT))
        return false;
    turn->hold = hf__entry_held_by_me(turn->entry, turn->mode);
    if (!turn->hold)
        return false;
    turn->state = TURN_JOINS;
    turn->reenters = true;
    turn->mode = turn->hold->mode;
    turn->hold->refs++;
    turn->entry->holders[turn->mode]++;
    return true;
}

static void list_waiting(hf_store *store, struct turn *turn)
{
    turn->owner = gettid();
    turn->next_queued = store->queued;
    store->queued = turn;
}

static void unlist_waiting(hf_store *store, struct turn *turn)
{
    struct turn **at = &store->queued;
    while (*at != turn)
        at = &(*at)->next_queued;
    *at = turn->next_queued;
}

/* Mutex held. HF_OK once it is our turn. */
static hf_status queue_up(const struct attempt *attempt, struct turn *turn)
{
    hf_store *store = attempt->store;
    struct timespec until = hf__timespec(attempt->deadline);
    int timed_out = 0;

    hf__turn_queue(turn);
    list_waiting(store, turn);
    bool deadlock = (attempt->spec->flags & HF_ANY_ORDER) && hf__closes_cycle(store, turn);
    while (!deadlock && turn->state == TURN_QUEUED && !timed_out && !store->interrupted)
        timed_out = pthread_cond_clockwait(turn->cond, &store->mutex, CLOCK_MONOTONIC, &until);
    unlist_waiting(store, turn);
    if (turn->state != TURN_QUEUED)
        return HF_OK;
    hf__turn_abandon(turn);
    hf__entry_settle(store, turn->entry);
    if (deadlock)
        return HF_DEADLOCK;
    return store->interrupted ? HF_INTERRUPTED : HF_NOT_ACQUIRED;
}

/* HF_NOT_ACQUIRED, HF_INTERRUPTED and HF_DEADLOCK leave err alone. */
static hf_status get_turn(struct attempt *attempt, const hf__claim *claim, struct turn *turn,
                          bool patient, hf_error *err)
{
    hf_store *store = attempt->store;
    hf_status status = HF_OK;

    pthread_mutex_lock(&store->mutex);
    for (;;) {
        turn->entry = hf__entry_get(store, claim);
        if (!turn->entry) {
            status = hf__no_memory(err);
            break;
        }
        if (reenter(attempt, turn))
            break;
        if (!turn->entry->first && hf__entry_is_free_for(turn->entry, turn->mode)) {
            hf__turn_assign(turn);
            break;
        }
        if (!patient && only_busy(turn->entry, turn->mode)) {
            pthread_cond_wait(&store->settled, &store->mutex); /* a round trip at most */
            continue;
        }
        if (patient && !attempt->told) {
            pthread_mutex_unlock(&store->mutex);
            hf__tell_waiting(attempt, claim);
            pthread_mutex_lock(&store->mutex);
            continue;
        }
        status = patient ? queue_up(attempt, turn) : HF_NOT_ACQUIRED;
        break;
    }
    pthread_mutex_unlock(&store->mutex);
    return status;
}

/* Mutex held. */
static void attach(struct grant *grant, struct hf_lock *lock, struct entry *entry,
                   struct hold *hold, const hf__claim *claim)
{
    grant->lock = lock;
    grant->entry = entry;
    grant->hold = hold;
    grant->claim = *claim;
    grant->claim.mode = hold->mode;
    grant->next = entry->grants;
    entry->grants = grant;
}

static void detach(struct grant *grant)
{
    struct grant **at = &grant->entry->grants;
    while (*at != grant)
        at = &(*at)->next;
    *at = grant->next;
    grant->entry->holders[grant->claim.mode]--;
    grant->hold->refs--;
}

void hf__drop_grant(hf_store *store, struct grant *grant, bool lost)
{
    struct entry *entry = grant->entry;
    struct hold *hold = grant->hold;
    detach(grant);
    grant->hold = NULL;
    if (hold->refs == 0 && lost) {
        if (entry->hold == hold)
            entry->hold = NULL;
        store->keys_held--;
        hf__session_leave(hold->session, 1);
        free(hold);
    }
    hf__entry_settle(store, entry);
}

/* ---- giving up ---------------------------------------------------------------------------------- */

/* Mutex held. True when the store has to be told; the entry is busy until then. */
static bool pass_on(hf_store *store, struct grant *grant)
{
    struct entry *entry = grant->entry;
    struct hold *hold = grant->hold;
    bool lost = atomic_load(&hold->session->lost);

    if (lost || hold->refs > 1) {
        hf__drop_grant(store, grant, lost);
        return false;
    }
    detach(grant);
    if (hf__may_pass_on(entry, hold)) {
        grant->hold = NULL;
        hf__entry_settle(store, entry);
        return false;
    }
    if (entry->hold == hold)
        entry->hold = NULL;
    entry->busy++;
    return true;
}

/* Short of memory the keys go one by one. */
static hf_status release_group(hf_store *store, struct grant *grants, size_t count, hf_error *err)
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
        hf_status status = store->backend->ops->release_claims(session, claims, step, err);
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
        struct entry *entry = grants[i].entry;
        free(grants[i].hold);
        grants[i].hold = NULL;
        entry->busy--;
        hf__entry_settle(store, entry);
    }
    store->keys_held -= (int)count;
    pthread_mutex_unlock(&store->mutex);
    hf__session_leave(session, (unsigned)count);
}

static bool same_group(const struct grant *a, const struct grant *b)
{
    return b->hold && a->hold->session == b->hold->session && a->claim.mode == b->claim.mode;
}

hf_status hf__give_up(struct hf_lock *lock, size_t from, hf_error *err)
{
    hf_store *store = lock->store;
    size_t until = lock->count;
    hf_status result = HF_OK;

    pthread_mutex_lock(&store->mutex);
    for (size_t i = from; i < until; i++)
        if (lock->grants[i].hold && !pass_on(store, &lock->grants[i]))
            lock->grants[i].hold = NULL;
    pthread_mutex_unlock(&store->mutex);
    for (size_t start = from, end; start < until; start = end) {
        end = start + 1;
        if (!lock->grants[start].hold)
            continue;
        while (end < until && same_group(&lock->grants[start], &lock->grants[end]))
            end++;
        hf_status status = HF_OK;
        if (!lock->is_unlocked)
            status = release_group(store, &lock->grants[start], end - start, err);
        if (status != HF_OK)
            result = status;
        finish_release(store, &lock->grants[start], end - start);
    }
    lock->count = from;
    return result;
}

/* ---- taking ------------------------------------------------------------------------------------- */

static hf_status check_quota(hf_store *store, size_t wanted, hf_error *err)
{
    pthread_mutex_lock(&store->mutex);
    int held = store->keys_held;
    pthread_mutex_unlock(&store->mutex);
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

static void mark_waiting(hf_store *store, struct turn *turns, size_t count, bool waiting)
{
    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < count; i++)
        if (turns[i].state == TURN_CLAIMS)
            turns[i].entry->waiting = waiting;
    pthread_cond_broadcast(&store->settled);
    pthread_mutex_unlock(&store->mutex);
}

static hf_status wait_at_store(hf_store *store, hf__request *request, hf_error *err)
{
    hf__key *held = NULL;
    pthread_mutex_lock(&store->mutex);
    request->held_count = hf__order_held(store, &held);
    pthread_mutex_unlock(&store->mutex);
    request->held = held;
    hf_status status = store->backend->ops->wait_claims(store->backend, request, err);
    request->held = NULL;
    request->held_count = 0;
    free(held);
    return status;
}

static hf_status ask_store(struct attempt *attempt, hf__request *request, struct turn *turns,
                           size_t count, bool patient, hf_error *err)
{
    hf_store *store = attempt->store;
    const hf__backend_ops *ops = store->backend->ops;
    hf_status status = check_quota(store, request->count, err);
    if (status == HF_OK && attempt->alone)
        status = HF_NOT_ACQUIRED; /* it was tried before */
    else if (status == HF_OK)
        status = ops->try_claims(store->backend, request, err);
    if (status == HF_NOT_ACQUIRED && patient && hf__left_ms(attempt->deadline) != 0) {
        mark_waiting(store, turns, count, true);
        hf__tell_waiting(attempt, &request->claims[request->blocked]);
        status = wait_at_store(store, request, err);
        mark_waiting(store, turns, count, false);
    }
    return status;
}

/* Mutex held: the store has granted the key to this process. */
static void settle_claimed(struct attempt *attempt, struct turn *turn, const hf__claim *claim,
                           struct hold *hold, struct grant *grant)
{
    struct entry *entry = turn->entry;
    entry->busy--;
    entry->waiting = false;
    entry->holders[hold->mode]++;
    if (!turn->alone || (!entry->hold && !(attempt->spec->flags & HF_PRIVATE)))
        entry->hold = hold;
    attempt->store->keys_held++;
    attach(grant, attempt->lock, entry, hold, claim);
    hf__entry_settle(attempt->store, entry);
}

static void settle_refused(hf_store *store, struct turn *turns, size_t count)
{
    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < count; i++) {
        if (turns[i].state != TURN_CLAIMS)
            continue;
        turns[i].entry->busy--;
        turns[i].entry->waiting = false;
        hf__entry_settle(store, turns[i].entry);
    }
    pthread_mutex_unlock(&store->mutex);
}

static bool make_holds(struct turn *turns, size_t count, const hf__request *request)
{
    for (size_t i = 0; i < count; i++) {
        if (turns[i].state != TURN_CLAIMS)
            continue;
        if (!(turns[i].hold = malloc(sizeof *turns[i].hold)))
            return false;
        *turns[i].hold = (struct hold){.session = request->session,
                                       .mode = request->claims->mode,
                                       .refs = 1,
                                       .token = request->token};
    }
    return true;
}

static hf_status claim_at_store(struct attempt *attempt, const hf__claim *claims, size_t count,
                                struct turn *turns, bool patient, hf_error *err)
{
    hf_store *store = attempt->store;
    hf__claim single, *wanted = &single;
    hf__request request = {.lifetime = attempt->spec->lifetime,
                           .private_session = attempt->spec->flags & HF_PRIVATE,
                           .any_order = attempt->spec->flags & HF_ANY_ORDER,
                           .deadline = attempt->deadline,
                           .beside = attempt->beside};
    if (attempt->extra) {
        request.riders = attempt->extra->riders;
        request.rider_count = attempt->extra->rider_count;
    }

    if (count > 1 && !(wanted = calloc(count, sizeof *wanted))) {
        settle_refused(store, turns, count);
        return hf__no_memory(err);
    }
    for (size_t i = 0; i < count; i++)
        if (turns[i].state == TURN_CLAIMS)
            wanted[request.count++] = claims[i];
    request.claims = wanted;
    hf_status status =
        request.count > 0 ? ask_store(attempt, &request, turns, count, patient, err) : HF_OK;
    if (status == HF_NOT_ACQUIRED) {
        attempt->blocked = request.count == count ? request.blocked : 0;
        status = hf__refused(attempt, &wanted[request.blocked], err);
    }
    if (status == HF_OK && !make_holds(turns, count, &request)) {
        (void)!store->backend->ops->release_claims(request.session, wanted, request.count, NULL);
        hf__session_leave(request.session, (unsigned)request.count);
        status = hf__no_memory(err);
    }
    if (status != HF_OK) {
        settle_refused(store, turns, count);
        goto out;
    }
    pthread_mutex_lock(&store->mutex);
    struct grant *grants = attempt->lock->grants + attempt->lock->count - count;
    for (size_t i = 0; i < count; i++)
        if (turns[i].state == TURN_CLAIMS)
            settle_claimed(attempt, &turns[i], &claims[i], turns[i].hold, &grants[i]);
    pthread_mutex_unlock(&store->mutex);
    if (request.token > attempt->lock->token)
        attempt->lock->token = request.token;
    attempt->lock->snapshot_stale |= request.snapshot_stale;
    attempt->has_looked = request.has_looked;
    attempt->minted_id = request.minted_id;
out:
    if (wanted != &single)
        free(wanted);
    return status;
}

static void attach_joined(struct attempt *attempt, const hf__claim *claims, size_t count,
                          struct turn *turns)
{
    struct hf_lock *lock = attempt->lock;
    pthread_mutex_lock(&attempt->store->mutex);
    for (size_t i = 0; i < count; i++) {
        lock->grants[lock->count + i].hold = NULL;
        if (turns[i].state == TURN_JOINS)
            attach(&lock->grants[lock->count + i], lock, turns[i].entry, turns[i].hold, &claims[i]);
    }
    pthread_mutex_unlock(&attempt->store->mutex);
    lock->count += count;
}

/* Who joins holds because another thread did: with a token of its own, and not for ever while
 * others wait outside. */
static hf_status renew_joined(struct attempt *attempt, size_t from, struct turn *turns,
                              hf_error *err)
{
    hf_store *store = attempt->store;
    const hf__backend_ops *ops = store->backend->ops;
    hf_status status = HF_OK;

    for (size_t i = from; status == HF_OK && i < attempt->lock->count; i++) {
        struct grant *grant = &attempt->lock->grants[i];
        struct turn *turn = &turns[i - from];
        bool contended = false;
        int64_t token = 0;
        if (turn->state != TURN_JOINS)
            continue;
        if (turn->reenters) {
            token = grant->hold->token;
        } else {
            status = ops->renew_claims(grant->hold->session, &grant->claim, 1, &token, err);
            if (status == HF_OK && turn->mode == HF_SHARED && turn->pass % LOOK_OUTSIDE_EVERY == 0)
                status = ops->is_contended(store->backend, &grant->claim, &contended, err);
        }
        pthread_mutex_lock(&store->mutex);
        grant->hold->token = token;
        grant->entry->draining |= contended;
        pthread_mutex_unlock(&store->mutex);
        if (token > attempt->lock->token)
            attempt->lock->token = token;
    }
    return status;
}

static hf_status get_turns(struct attempt *attempt, const hf__claim *claims, size_t count,
                           struct turn *turns, bool patient, hf_error *err)
{
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    hf_status status = HF_OK;
    size_t got = 0;

    for (; got < count; got++) {
        turns[got] = (struct turn){.mode = claims[got].mode,
                                   .alone = attempt->alone || (attempt->spec->flags & HF_PRIVATE),
                                   .cond = &cond};
        status = get_turn(attempt, &claims[got], &turns[got], patient, err);
        if (status != HF_OK)
            break;
        if (attempt->alone)
            mark_waiting(attempt->store, &turns[got], 1,
                         true); /* the next turn may take its time */
    }
    pthread_cond_destroy(&cond);
    if (status == HF_OK)
        return HF_OK;
    attempt->blocked = got;
    settle_refused(attempt->store, turns, got);
    attach_joined(attempt, claims, got, turns);
    (void)!hf__give_up(attempt->lock, attempt->lock->count - got, NULL);
    if (status == HF_NOT_ACQUIRED)
        status = hf__refused(attempt, &claims[got], err);
    else if (status == HF_INTERRUPTED)
        status = hf__fail(err, HF_INTERRUPTED, "the wait was interrupted");
    else if (status == HF_DEADLOCK)
        status = hf__say_deadlock(&claims[got], err);
    return status;
}

static hf_status take_once(struct attempt *attempt, const hf__claim *claims, size_t count,
                           bool patient, hf_error *err)
{
    struct turn single, *turns = &single;
    size_t from = attempt->lock->count;

    if (count > 1 && !(turns = calloc(count, sizeof *turns)))
        return hf__no_memory(err);
    hf_status status = get_turns(attempt, claims, count, turns, patient, err);
    if (status == HF_OK) {
        attach_joined(attempt, claims, count, turns);
        status = claim_at_store(attempt, claims, count, turns, patient, err);
        if (status == HF_OK)
            status = renew_joined(attempt, from, turns, err);
        if (status != HF_OK)
            (void)!hf__give_up(attempt->lock, from, NULL);
    }
    if (turns != &single)
        free(turns);
    return status;
}

/*
 * A set is first tried as a whole. If it has to wait it starts over and joins nobody: a key that the
 * process passed on to it, held while it waits for a smaller one, would be a deadlock with whoever
 * takes them in their order.
 */
hf_status hf__take(struct attempt *attempt, const hf__claim *claims, size_t count, bool patient,
                   hf_error *err)
{
    if (count == 1 || !patient) {
        hf_status once = take_once(attempt, claims, count, patient, err);
        /* The session that was joined, or idled, has died: that is not this caller's loss. */
        return once == HF_UNREACHABLE ? take_once(attempt, claims, count, patient, err) : once;
    }
    attempt->quiet = true;
    hf_status status = take_once(attempt, claims, count, false, err);
    attempt->quiet = false;
    if (status != HF_NOT_ACQUIRED)
        return status;
    hf__tell_waiting(attempt, &claims[attempt->blocked]);
    attempt->alone = true;
    status = take_once(attempt, claims, count, true, err);
    attempt->alone = false;
    return status;
}
