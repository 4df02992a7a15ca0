/* Acquiring a lock: check the spec, resolve targets, check the order, acquire, publish. */
#include "lib/locks/engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { SLOT_GRANTS = 8 }; /* enough for all keys that acquiring a slot holds at one time */

static hf_status no_token(const hf_store *store, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_NO_SCHEMA, "a fencing token needs the schema 'holdfast' on %s",
                 store->backend->name);
    hf__hint(err, "run 'holdfast init' once on that database");
    return status;
}

static hf_status check_spec(const hf_store *store, const hf_lock_spec *spec, hf_error *err)
{
    hf_status status = HF_OK;
    if (spec->mode != HF_EXCLUSIVE && spec->mode != HF_SHARED)
        return hf__fail(err, HF_INVALID, "unknown lock mode %d", (int)spec->mode);
    const unsigned known = HF_REENTRANT | HF_ANY_ORDER | HF_PRIVATE | HF_NEED_TOKEN | HF_ASK;
    if (spec->flags & ~known)
        return hf__fail(err, HF_INVALID, "unknown flags among 0x%x", spec->flags);
    if (spec->wait_ms < -1)
        return hf__fail(err, HF_INVALID, "a wait of %lld ms is negative", (long long)spec->wait_ms);
    if (spec->slots > HF_SLOTS_MAX)
        return hf__fail(err, HF_INVALID, "%u slots are more than %d", spec->slots, HF_SLOTS_MAX);
    if (spec->slots > 0 && (spec->target_count != 1 || spec->mode == HF_SHARED))
        return hf__fail(err, HF_INVALID, "slots go with one exclusive target");
    if (spec->slots > 0 && (spec->flags & (HF_REENTRANT | HF_PRIVATE)))
        return hf__fail(err, HF_INVALID, "slots go with neither HF_REENTRANT nor HF_PRIVATE");
    bool is_single = spec->target_count == 1 && spec->slots == 0;
    if ((spec->on_yield || (spec->flags & HF_ASK)) && (!is_single || store->backend->borrowed))
        return hf__fail(err, HF_INVALID,
                        "HF_ASK and on_yield go with one target, without slots, and not with a "
                        "borrowed connection");
    if ((spec->flags & HF_ASK) && spec->wait_ms == 0)
        return hf__fail(err, HF_INVALID, "HF_ASK needs a wait: the holder has to be asked first");
    if (spec->lifetime > HF_LEASE)
        return hf__fail(err, HF_INVALID, "unknown lifetime %d", (int)spec->lifetime);
    if (spec->lease_ms && (spec->lifetime != HF_LEASE || spec->lease_ms < HF_LEASE_MIN_MS ||
                           spec->lease_ms > HF_LEASE_MAX_MS))
        return hf__fail(err, HF_INVALID,
                        "lease_ms goes with HF_LEASE, and is from %d to %d; it is %d",
                        HF_LEASE_MIN_MS, HF_LEASE_MAX_MS, spec->lease_ms);
    if (spec->lifetime == HF_TRANSACTION && !store->backend->borrowed) {
        status =
            hf__fail(err, HF_INVALID, "a transaction lock needs the connection of its transaction");
        hf__hint(err, "lend that connection with hf_store_borrow");
    } else if (spec->lifetime != HF_TRANSACTION && store->backend->borrowed) {
        status = hf__fail(err, HF_INVALID, "a borrowed connection serves transaction locks only");
        hf__hint(err, "open a store of its own for other locks: its session can be watched");
    } else if (spec->lifetime == HF_TRANSACTION && spec->slots > 0) {
        status = hf__fail(err, HF_INVALID, "slots go with session locks and leases");
    } else if ((spec->flags & HF_NEED_TOKEN) && spec->lifetime != HF_LEASE &&
               !atomic_load(&store->backend->records)) {
        status = no_token(store, err);
    }
    return status;
}

static struct hf_lock *new_lock(hf_store *store, const hf_lock_spec *spec, size_t count)
{
    struct hf_lock *lock = calloc(1, sizeof *lock);
    if (!lock)
        return NULL;
    lock->room = spec->slots > 0 ? SLOT_GRANTS : count;
    lock->grants = calloc(lock->room, sizeof *lock->grants);
    if (!lock->grants) {
        free(lock);
        return NULL;
    }
    lock->store = store;
    lock->flags = spec->flags;
    lock->lifetime = spec->lifetime;
    lock->owner = hf__me();
    lock->on_lost = spec->on_lost;
    lock->arg = spec->arg;
    return lock;
}

/*
 * From the moment the lock is in the list, the watcher may find it lost and its callback may free
 * it, so nothing touches the lock after the mutex is unlocked.
 */
static void publish(struct acquiring *acquiring)
{
    struct hf_lock *lock = acquiring->lock;
    hf_store *store = acquiring->store;
    pthread_mutex_lock(&store->mutex);
    lock->acquired_ms = hf__now_ms();
    lock->acquired_wall = hf__wall_ms();
    hf__note(lock, HF__EVENT_ACQUIRED, lock->acquired_ms - acquiring->began, -1);
    lock->next = store->locks;
    if (store->locks)
        store->locks->previous = lock;
    store->locks = lock;
    hf__order_add(store, lock);
    int deaf = hf__attention_start(store, lock, acquiring->spec->on_yield);
    if (lock->token)
        hf__scribe_soon(store);
    bool lost = hf__lost_session(lock) != NULL;
    pthread_mutex_unlock(&store->mutex);
    if (deaf)
        hf__log(store->backend, HF_LOG_WARNING, "asks for a lock are not heard: %s",
                strerror(deaf));
    if (lost) /* between the grant and here, when the watcher did not know this lock */
        store->backend->ops->wake(store->backend);
}

/*
 * A transaction lock ends with its transaction, and we are not told when that is: it stays in the
 * order until its handle is released.
 */
static void remember_order(struct hf_lock *lock)
{
    hf_store *store = lock->store;
    if (!store->registry)
        return;
    pthread_mutex_lock(&store->mutex);
    hf__order_add(store, lock);
    pthread_mutex_unlock(&store->mutex);
}

static hf_status check_order(hf_store *store, const hf_lock_spec *spec, const hf__claim *claims,
                             size_t count, hf_error *err)
{
    /*
     * A deadlock needs a wait. One on a borrowed connection holds and waits on the same session, so
     * PostgreSQL sees it.
     */
    bool may_hide = spec->wait_ms != 0 && !store->backend->borrowed;
    if (!may_hide && !store->registry)
        return HF_OK;
    hf_error order;
    hf_status status = HF_OK;
    bool by_registry = false;
    size_t first = 0;
    pthread_mutex_lock(&store->mutex);
    while (first < count && (spec->flags & HF_REENTRANT) && hf__held_by_me(store, &claims[first]))
        first++; /* these are entered again without a wait */
    if (first < count)
        status = hf__order_check(store, &claims[first], spec->lifetime, &by_registry, &order);
    pthread_mutex_unlock(&store->mutex);
    if (!may_hide && !by_registry)
        return HF_OK;
    if (status == HF_ORDER && (spec->flags & HF_ANY_ORDER)) {
        hf__log(store->backend, HF_LOG_WARNING, "%s", order.message);
        return HF_OK;
    }
    if (status != HF_OK && err)
        *err = order;
    return status;
}

int64_t hf__patience_end(const struct acquiring *acquiring)
{
    int64_t patience = acquiring->store->patience_ms;
    bool ends = acquiring->away_since && patience >= 0;
    int64_t end = ends ? acquiring->away_since + patience : HF__FOREVER;
    return end < acquiring->deadline ? end : acquiring->deadline;
}

bool hf__outlast(struct acquiring *acquiring, const hf_error *failure)
{
    enum { PAUSE_LOW_MS = 200, PAUSE_HIGH_MS = 600 };
    hf_store *store = acquiring->store;
    int64_t pause = hf__deadline(hf__jitter_ms(PAUSE_LOW_MS, PAUSE_HIGH_MS));
    if (!hf__may_pass(failure) || hf__left_ms(acquiring->deadline) == 0)
        return false;
    if (!acquiring->away_since) {
        hf__log(store->backend, HF_LOG_WARNING, "%s; the wait goes on", failure->message);
        acquiring->away_since = hf__now_ms();
    }
    int64_t end = hf__patience_end(acquiring);
    if (hf__left_ms(end) == 0)
        return false;
    int64_t until = pause < end ? pause : end;
    if (acquiring->lock->trace)
        acquiring->lock->trace->waited = true;
    pthread_mutex_lock(&store->mutex);
    while (!hf__is_stopped(acquiring) && hf__cond_wait(&store->changed, &store->mutex, until))
        ;
    bool goes_on = !hf__is_stopped(acquiring) && hf__left_ms(end) != 0;
    pthread_mutex_unlock(&store->mutex);
    return goes_on;
}

void hf__is_back(struct acquiring *acquiring)
{
    const hf__backend *backend = acquiring->store->backend;
    if (acquiring->away_since)
        hf__log(backend, HF_LOG_WARNING, "%s answers again", backend->name);
    acquiring->away_since = 0;
}

static hf_status acquire_borrowed(struct acquiring *acquiring, const hf__claim *claims,
                                  size_t count, hf_error *err)
{
    hf__backend *backend = acquiring->store->backend;
    hf__request request = {.claims = claims,
                           .count = count,
                           .lifetime = HF_TRANSACTION,
                           .began = acquiring->began,
                           .deadline = acquiring->deadline,
                           .cancel = acquiring->spec->cancel};
    hf_status status = backend->ops->try_claims(backend, &request, err);
    if (status == HF_NOT_ACQUIRED && acquiring->spec->wait_ms != 0) {
        hf__tell_waiting(acquiring, &claims[request.blocked]);
        status = backend->ops->wait_claims(backend, &request, err);
    }
    if (status == HF_NOT_ACQUIRED)
        status = hf__refused(acquiring, &claims[request.blocked], err);
    acquiring->lock->snapshot_stale = request.snapshot_stale;
    if (request.snapshot_stale)
        hf__log(backend, HF_LOG_WARNING,
                "the transaction's snapshot is older than the lock: it may not show what the last "
                "holder committed; lock first, then begin, or use READ COMMITTED");
    return status;
}

static hf_status acquire_all(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             hf_error *err)
{
    bool patient = acquiring->spec->wait_ms != 0;
    if (acquiring->store->backend->borrowed)
        return acquire_borrowed(acquiring, claims, count, err);
    if (acquiring->spec->slots > 0)
        return hf__slot_acquire(acquiring, claims, err);
    if (acquiring->spec->flags & HF_ASK)
        return hf__ask_acquire(acquiring, claims, err);
    return hf__claims_acquire(acquiring, claims, count, patient, err);
}

/* While the call waits, the store may be out of reach, or another may be faster to refuse it. */
static hf_status say_cancelled(const hf_lock_spec *spec, hf_status status, hf_error *err)
{
    bool is_of_the_wait = status == HF_NOT_ACQUIRED || status == HF_UNREACHABLE;
    return is_of_the_wait && hf__is_cancelled(spec->cancel) ? hf__interrupted(err) : status;
}

/* Publishes the lock, or forgets it and says why in the history. */
static void conclude(struct acquiring *acquiring, hf_status status, hf_lock **out,
                     const hf_error *err)
{
    hf_store *store = acquiring->store;
    struct hf_lock *lock = acquiring->lock;
    struct hf__told *wait = hf__wait_span(acquiring, say_cancelled(acquiring->spec, status, NULL));
    if (status == HF_OK) {
        if (store->backend->borrowed)
            remember_order(lock);
        else
            publish(acquiring);
        *out = lock;
    } else {
        if (status == HF_NOT_ACQUIRED)
            hf__note(lock, acquiring->told ? HF__EVENT_TIMEOUT : HF__EVENT_CONFLICT,
                     hf__now_ms() - acquiring->began, -1);
        else if (status == HF_DEADLOCK)
            hf__note_deadlock(lock, hf__now_ms() - acquiring->began, err ? err->message : "");
        hf__lock_forget(lock);
    }
    if (wait && acquiring->extra && acquiring->extra->started)
        hf__started_span(acquiring->extra->started, wait);
    else
        hf__tell_span(store, wait);
}

static hf_status acquire(hf_store *store, const hf_lock_spec *spec, const hf__lock_extra *extra,
                         hf__session *on, hf_lock **out, bool *stale, hf_error *err)
{
    hf__claim *claims = NULL;
    char *labels = NULL;
    size_t count = 0;

    *stale = false;
    hf_status status = hf__check_process(store, err);
    hf_lock_spec registered;
    bool is_default = spec->lifetime == HF_SESSION;
    hf_lifetime other = store->backend->borrowed ? HF_TRANSACTION : HF_LEASE;
    if (is_default && hf__are_registered_as(store, spec, other)) {
        registered = *spec;
        registered.lifetime = other;
        spec = &registered;
    }
    if (spec->lifetime == HF_LEASE && !spec->lease_ms) {
        registered = *spec;
        registered.lease_ms = hf__registered_lease_ms(store, spec);
        spec = &registered;
    }
    if (status == HF_OK)
        status = check_spec(store, spec, err);
    if (status == HF_OK)
        status = hf__resolve(store, spec, &claims, &count, &labels, err);
    for (size_t i = 0;
         status == HF_OK && spec->lifetime == HF_TRANSACTION && i < spec->target_count; i++)
        hf__warn_of_lifetime(store, &spec->targets[i]);
    if (status == HF_OK)
        status = check_order(store, spec, claims, count, err);
    if (status == HF_OK && !store->backend->borrowed)
        status = hf__watch_start(store, err);
    if (status != HF_OK)
        goto out;

    struct acquiring acquiring = {.store = store,
                                  .spec = spec,
                                  .extra = extra,
                                  .on = on,
                                  .began = hf__now_ms(),
                                  .deadline = hf__deadline(spec->wait_ms),
                                  .lock = new_lock(store, spec, count)};
    if (!acquiring.lock) {
        status = hf__no_memory(err);
        goto out;
    }
    acquiring.lock->untold = extra && extra->started;
    acquiring.lock->labels = labels;
    acquiring.lock->trace = hf__trace_start(store, spec->traceparent);
    for (size_t i = 0; acquiring.lock->trace && i < count; i++)
        claims[i].traceparent = acquiring.lock->trace->own;
    acquiring.lock->name = claims[0];
    acquiring.lock->last = claims[count - 1];
    labels = NULL;
    status = hf__lookup_prepare(&acquiring, claims, count, err);
    if (status == HF_OK)
        status = acquire_all(&acquiring, claims, count, err);
    if (status == HF_OK && (spec->flags & HF_NEED_TOKEN) && !acquiring.lock->token) {
        (void)!hf__claims_release(acquiring.lock, 0, NULL);
        status = no_token(store, err);
    }
    if (status == HF_OK) {
        status = hf__lookup_confirm(&acquiring, claims, count, stale, err);
        if (status != HF_OK || *stale)
            (void)!hf__claims_release(acquiring.lock, 0, NULL);
    }
    hf__lookup_finish(&acquiring);
    if (*stale)
        hf__lock_forget(acquiring.lock);
    else
        conclude(&acquiring, status, out, err);
out:
    free(claims);
    free(labels);
    return status;
}

/* If a label got another key while we waited for the old one, starts over with the new key. */
static hf_status acquire_current(hf_store *store, const hf_lock_spec *spec,
                                 const hf__lock_extra *extra, hf__session *on, hf_lock **out,
                                 hf_error *err)
{
    bool stale = false;
    int64_t began = hf__now_ms();
    hf_status status = acquire(store, spec, extra, on, out, &stale, err);
    while (stale) {
        hf_lock_spec again = *spec;
        int64_t spent = hf__now_ms() - began;
        if (spec->wait_ms > 0)
            again.wait_ms = spent < spec->wait_ms ? spec->wait_ms - spent : 0;
        status = acquire(store, &again, extra, on, out, &stale, err);
    }
    return status;
}

static hf_status acquire_cancellably(hf_store *store, const hf_lock_spec *spec,
                                     const hf__lock_extra *extra, hf_lock **out, hf_error *err)
{
    hf__cancellable call = {.wake = hf__interrupt_cancelled, .arg = store};
    hf__session *on = NULL;
    hf_status status = HF_OK;
    if (hf__is_cancelled(spec->cancel))
        return hf__interrupted(err);
    hf__cancel_enter(spec->cancel, &call);
    if (extra && extra->on)
        status = hf__lock_use_session(extra->on, &on, err);
    if (status == HF_OK)
        status = acquire_current(store, spec, extra, on, out, err);
    if (on)
        hf__session_leave(on, 1);
    hf__cancel_leave(spec->cancel, &call);
    return say_cancelled(spec, status, err);
}

/*
 * Cancelling a thread inside the call would leave the engine's mutex locked, so cancellation waits
 * for the end of the call. The handle of the spec ends a wait.
 */
hf_status hf__lock_acquire_with(hf_store *store, const hf_lock_spec *given,
                                const hf__lock_extra *extra, hf_lock **out, hf_error *err)
{
    hf_lock_spec spec;
    int before;
    if (!store || !given || !out)
        return hf__fail(err, HF_INVALID,
                        "hf_lock_acquire needs a store, a spec and a place for the lock");
    *out = NULL;
    hf_status status = hf__options_copy(&spec, sizeof spec, given, offsetof(hf_lock_spec, cancel),
                                        "hf_lock_spec", "HF_LOCK_SPEC_INIT", err);
    if (status == HF_OK)
        status = hf__check_task(spec.owner, err);
    if (status != HF_OK)
        return status;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    int64_t acted_as = hf__act_as(hf__me_or(spec.owner));
    status = acquire_cancellably(store, &spec, extra, out, err);
    hf__act_as(acted_as);
    (void)pthread_setcancelstate(before, NULL);
    return status;
}

hf_status hf_lock_acquire(hf_store *store, const hf_lock_spec *spec, hf_lock **out, hf_error *err)
{
    return hf__lock_acquire_with(store, spec, NULL, out, err);
}
