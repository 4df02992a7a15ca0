/* The life of a lock: acquire → held → released | lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "lib/locks/engine.h"

enum { SLOT_GRANTS = 64 }; /* what a semaphore takes on its way, at most */

static hf__event event_of(const struct hf_lock *lock, hf__event_kind kind)
{
    return (hf__event){.kind = kind,
                       .at_ms = hf__wall_ms(),
                       .key = lock->name.key,
                       .space = lock->name.space,
                       .mode = lock->name.mode,
                       .token = lock->token,
                       .wait_ms = -1,
                       .hold_ms = -1};
}

static void add_note(const struct hf_lock *lock, const hf__event *event)
{
    hf__backend *backend = lock->store->backend;
    backend->ops->note(backend, event);
}

void hf__note(const struct hf_lock *lock, hf__event_kind kind, int64_t wait_ms, int64_t hold_ms)
{
    hf__event event = event_of(lock, kind);
    event.wait_ms = wait_ms;
    event.hold_ms = hold_ms;
    add_note(lock, &event);
}

void hf__note_loss(const struct hf_lock *lock, const char *reason)
{
    hf__event event = event_of(lock, HF__EVENT_LOST);
    event.hold_ms = hf__now_ms() - lock->acquired_ms;
    (void)snprintf(event.detail, sizeof event.detail, "%s", reason);
    add_note(lock, &event);
}

/* Anything but a word becomes '_': it goes between the braces of an array, and into labels of metrics. */
static void copy_word(char *out, size_t size, const char *word)
{
    size_t length = 0;
    for (; length < size - 1 && word[length] != '\0'; length++)
        out[length] = word[length] >= 'a' && word[length] <= 'z' ? word[length] : '_';
    out[length] = '\0';
}

void hf_lock_note(const hf_lock *lock, const char *name, const char *detail)
{
    hf__event event = event_of(lock, HF__EVENT_NOTED);
    if (name == NULL || name[0] == '\0' || hf__check_process(lock->store, NULL) != HF_OK)
        return;
    copy_word(event.name, sizeof event.name, name);
    if (detail != NULL)
        (void)hf__show(event.detail, sizeof event.detail, detail, strlen(detail));
    add_note(lock, &event);
}

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
    if (spec->size < offsetof(hf_lock_spec, arg) + sizeof spec->arg)
        return hf__fail(err, HF_INVALID,
                        "hf_lock_spec.size is not set: start from HF_LOCK_SPEC_INIT");
    if (spec->mode != HF_EXCLUSIVE && spec->mode != HF_SHARED)
        return hf__fail(err, HF_INVALID, "unknown lock mode %d", (int)spec->mode);
    if (spec->wait_ms < -1)
        return hf__fail(err, HF_INVALID, "a wait of %lld ms is negative", (long long)spec->wait_ms);
    if (spec->slots > HF_SLOTS_MAX)
        return hf__fail(err, HF_INVALID, "%u slots are more than %d", spec->slots, HF_SLOTS_MAX);
    if (spec->slots > 0 && (spec->target_count != 1 || spec->mode == HF_SHARED))
        return hf__fail(err, HF_INVALID, "slots go with one exclusive target");
    if (spec->slots > 0 && (spec->flags & (HF_REENTRANT | HF_PRIVATE)))
        return hf__fail(err, HF_INVALID, "slots go with neither HF_REENTRANT nor HF_PRIVATE");
    if (spec->lifetime == HF_TRANSACTION && !store->backend->borrowed) {
        status =
            hf__fail(err, HF_INVALID, "a transaction lock needs the connection of its transaction");
        hf__hint(err, "lend that connection with hf_store_borrow");
    } else if (spec->lifetime == HF_SESSION && store->backend->borrowed) {
        status = hf__fail(err, HF_INVALID, "a borrowed connection serves transaction locks only");
        hf__hint(err, "open a store of its own for session locks: its session can be watched");
    } else if (spec->lifetime == HF_TRANSACTION && spec->slots > 0) {
        status = hf__fail(err, HF_INVALID, "slots go with session locks");
    } else if ((spec->flags & HF_NEED_TOKEN) && !atomic_load(&store->backend->records)) {
        status = no_token(store, err);
    }
    return status;
}

void hf__lock_forget(struct hf_lock *lock)
{
    if (!lock)
        return;
    free(lock->grants);
    free(lock->labels);
    free(lock);
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
    lock->owner = gettid();
    lock->on_lost = spec->on_lost;
    lock->arg = spec->arg;
    return lock;
}

/* Once it is in the list, the watcher may find it lost and the callback may free it. */
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
    if (lock->token)
        hf__scribe_soon(store);
    bool lost = hf__lost_session(lock) != NULL;
    pthread_mutex_unlock(&store->mutex);
    if (lost) /* between the grant and here: nobody was looking for this lock */
        store->backend->ops->wake(store->backend);
}

/* The server ends a transaction's lock without telling: its place in the order goes with the handle. */
static void remember_order(struct hf_lock *lock)
{
    hf_store *store = lock->store;
    if (!store->registry)
        return;
    pthread_mutex_lock(&store->mutex);
    hf__order_add(store, lock);
    pthread_mutex_unlock(&store->mutex);
}

/* Mutex held. */
static void unpublish(hf_store *store, struct hf_lock *lock)
{
    hf__order_remove(store, lock);
    if (lock->previous)
        lock->previous->next = lock->next;
    else if (store->locks == lock)
        store->locks = lock->next;
    if (lock->next)
        lock->next->previous = lock->previous;
    lock->next = lock->previous = NULL;
}

static hf_status check_order(hf_store *store, const hf_lock_spec *spec, const hf__claim *claims,
                             size_t count, hf_error *err)
{
    /* Who does not wait cannot be part of a deadlock that we hide. */
    bool may_hide = spec->wait_ms != 0 && !store->backend->borrowed;
    if (!may_hide && !store->registry)
        return HF_OK;
    hf_error order;
    hf_status status = HF_OK;
    bool by_registry = false;
    size_t first = 0;
    pthread_mutex_lock(&store->mutex);
    while (first < count && (spec->flags & HF_REENTRANT) && hf__held_by_me(store, &claims[first]))
        first++; /* entered again at once, without a wait */
    if (first < count)
        status = hf__order_check(store, &claims[first], &by_registry, &order);
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

static hf_status acquire_borrowed(struct acquiring *acquiring, const hf__claim *claims,
                                  size_t count, hf_error *err)
{
    hf__backend *backend = acquiring->store->backend;
    hf__request request = {.claims = claims,
                           .count = count,
                           .lifetime = HF_TRANSACTION,
                           .deadline = acquiring->deadline};
    hf_status status = backend->ops->try_claims(backend, &request, err);
    if (status == HF_NOT_ACQUIRED && acquiring->spec->wait_ms != 0) {
        hf__tell_waiting(acquiring, &claims[request.blocked]);
        status = backend->ops->wait_claims(backend, &request, err);
    }
    if (status == HF_NOT_ACQUIRED)
        status = hf__not_acquired(acquiring->store, &claims[request.blocked], err);
    acquiring->lock->snapshot_stale = request.snapshot_stale;
    if (request.snapshot_stale)
        hf__log(
            backend, HF_LOG_WARNING,
            "the transaction's snapshot is older than the lock it waited for: it cannot see what "
            "the last holder committed; lock first, then begin, or use READ COMMITTED");
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
    return hf__claims_acquire(acquiring, claims, count, patient, err);
}

static hf_status acquire(hf_store *store, const hf_lock_spec *spec, const hf__lock_extra *extra,
                         hf__session *beside, hf_lock **out, bool *stale, hf_error *err)
{
    hf__claim *claims = NULL;
    char *labels = NULL;
    size_t count = 0;

    *stale = false;
    if (!store || !spec || !out)
        return hf__fail(err, HF_INVALID,
                        "hf_lock_acquire needs a store, a spec and a place for the lock");
    *out = NULL;
    hf_status status = hf__check_process(store, err);
    hf_lock_spec for_transaction;
    if (store->backend->borrowed && spec->lifetime == HF_SESSION &&
        hf__are_for_transactions(store, spec)) {
        for_transaction = *spec;
        for_transaction.lifetime = HF_TRANSACTION;
        spec = &for_transaction;
    }
    if (status == HF_OK)
        status = check_spec(store, spec, err);
    if (status == HF_OK)
        status = hf__resolve(store, spec, &claims, &count, &labels, err);
    if (status == HF_OK)
        status = check_order(store, spec, claims, count, err);
    if (status == HF_OK && !store->backend->borrowed)
        status = hf__watch_start(store, err);
    if (status != HF_OK)
        goto out;

    struct acquiring acquiring = {.store = store,
                                  .spec = spec,
                                  .extra = extra,
                                  .beside = beside,
                                  .began = hf__now_ms(),
                                  .deadline = hf__deadline(spec->wait_ms),
                                  .lock = new_lock(store, spec, count)};
    if (!acquiring.lock) {
        status = hf__no_memory(err);
        goto out;
    }
    acquiring.lock->labels = labels;
    acquiring.lock->name = claims[0];
    acquiring.lock->last = claims[count - 1];
    labels = NULL;
    status = acquire_all(&acquiring, claims, count, err);
    if (status == HF_OK && (spec->flags & HF_NEED_TOKEN) && !acquiring.lock->token) {
        (void)!hf__claims_release(acquiring.lock, 0, NULL);
        status = no_token(store, err);
    }
    if (status == HF_OK) {
        status = hf__minted_confirm(&acquiring, claims, count, stale, err);
        if (status != HF_OK || *stale)
            (void)!hf__claims_release(acquiring.lock, 0, NULL);
    }
    if (*stale) {
        hf__lock_forget(acquiring.lock);
    } else if (status == HF_OK) {
        if (store->backend->borrowed)
            remember_order(acquiring.lock);
        else
            publish(&acquiring);
        *out = acquiring.lock;
    } else {
        if (status == HF_NOT_ACQUIRED)
            hf__note(acquiring.lock, acquiring.told ? HF__EVENT_TIMEOUT : HF__EVENT_CONFLICT,
                     hf__now_ms() - acquiring.began, -1);
        hf__lock_forget(acquiring.lock);
    }
out:
    free(claims);
    free(labels);
    return status;
}

/* A shared table was dropped and made anew, and has another key: the same again with that one. */
static hf_status acquire_current(hf_store *store, const hf_lock_spec *spec,
                                 const hf__lock_extra *extra, hf__session *beside, hf_lock **out,
                                 hf_error *err)
{
    bool stale = false;
    int64_t began = hf__now_ms();
    hf_status status = acquire(store, spec, extra, beside, out, &stale, err);
    while (stale) {
        hf_lock_spec again = *spec;
        int64_t spent = hf__now_ms() - began;
        if (spec->wait_ms > 0)
            again.wait_ms = spent < spec->wait_ms ? spec->wait_ms - spent : 0;
        status = acquire(store, &again, extra, beside, out, &stale, err);
    }
    return status;
}

/* The session counts one more hold meanwhile, so that a loss does not free it under the caller's hands. */
hf_status hf__lock_use_session(struct hf_lock *lock, hf__session **session, hf_error *err)
{
    hf_status status = HF_OK;
    pthread_mutex_lock(&lock->store->mutex);
    const hf__session *dead = hf__lost_session(lock);
    if (lock->state == HF_STATE_LOST && err)
        *err = lock->why;
    else if (dead && err)
        *err = dead->why;
    if (lock->state == HF_STATE_LOST || dead)
        status = HF_LOST;
    else if (lock->state == HF_STATE_RELEASED)
        status = hf__fail(err, HF_INVALID, "the lock was released before");
    if (status == HF_OK) {
        *session = lock->grants[0].hold->session;
        atomic_fetch_add(&(*session)->holds, 1);
    }
    pthread_mutex_unlock(&lock->store->mutex);
    return status;
}

void hf__session_leave(hf__session *session, unsigned keys)
{
    if (session->backend->ops->leave_session)
        session->backend->ops->leave_session(session, keys);
    else
        atomic_fetch_sub(&session->holds, keys);
}

/* A thread that is cancelled in the middle would leave the engine's mutex locked: it goes on to the
 * end of the call, and hf_store_interrupt is what ends a wait. */
hf_status hf__lock_acquire_with(hf_store *store, const hf_lock_spec *spec,
                                const hf__lock_extra *extra, hf_lock **out, hf_error *err)
{
    int before;
    hf__session *beside = NULL;
    hf_status status = HF_OK;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (extra && extra->beside)
        status = hf__lock_use_session(extra->beside, &beside, err);
    if (status == HF_OK)
        status = acquire_current(store, spec, extra, beside, out, err);
    if (beside)
        hf__session_leave(beside, 1);
    (void)pthread_setcancelstate(before, NULL);
    return status;
}

hf_status hf_lock_acquire(hf_store *store, const hf_lock_spec *spec, hf_lock **out, hf_error *err)
{
    return hf__lock_acquire_with(store, spec, NULL, out, err);
}

hf_lock_state hf_lock_get_state(const hf_lock *lock)
{
    hf_store *store = lock->store;
    pthread_mutex_lock(&store->mutex);
    hf_lock_state state = lock->state;
    if (state == HF_STATE_HELD && hf__lost_session(lock))
        state = HF_STATE_LOST;
    pthread_mutex_unlock(&store->mutex);
    return state;
}

void hf__name_loss(struct hf_lock *lock, const hf_error *why)
{
    char name[200];
    (void)!hf__fail(&lock->why, HF_LOST, "%s was lost: %s",
                    hf__claim_name(name, sizeof name, &lock->name), why->message);
    hf__hint(&lock->why, "%s", why->hint);
}

static hf_status release(hf_lock *lock, hf_error *err)
{
    if (!lock)
        return hf__fail(err, HF_INVALID, "no lock to release");
    hf_store *store = lock->store;
    hf_status status = hf__check_process(store, err);
    if (status != HF_OK)
        return status;

    pthread_mutex_lock(&store->mutex);
    const hf__session *dead = hf__lost_session(lock);
    if (dead && hf__life_step(lock, LIFE_LOSE))
        hf__name_loss(lock, &dead->why);
    bool lost = lock->state == HF_STATE_LOST, first = hf__life_step(lock, LIFE_RELEASE);
    hf__forget_loss(store, lock);
    if (first && store->backend->borrowed)
        hf__order_remove(store, lock);
    else if (first)
        unpublish(store, lock);
    pthread_mutex_unlock(&store->mutex);

    if (!first)
        return hf__fail(err, HF_INVALID, "the lock was released before");
    status = hf__claims_release(lock, 0, err);
    if (lost) {
        if (err)
            *err = lock->why;
        return HF_LOST;
    }
    if (status == HF_OK)
        hf__note(lock, HF__EVENT_RELEASED, -1, hf__now_ms() - lock->acquired_ms);
    else
        hf__note_loss(lock, "release");
    return status;
}

hf_status hf_lock_release(hf_lock *lock, hf_error *err)
{
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    hf_status status = release(lock, err);
    (void)pthread_setcancelstate(before, NULL);
    return status;
}

static void release_and_free(hf_lock *lock)
{
    hf_store *store = lock->store;
    if (hf__check_process(store, NULL) != HF_OK)
        return; /* the parent's memory, copied: nothing here is ours to end */
    pthread_mutex_lock(&store->mutex);
    bool released = lock->state == HF_STATE_RELEASED;
    pthread_mutex_unlock(&store->mutex);
    if (!released)
        (void)!release(lock, NULL);
    pthread_mutex_lock(&store->mutex);
    while (lock->delivering && !pthread_equal(lock->deliverer, pthread_self()))
        pthread_cond_wait(&store->changed, &store->mutex);
    bool later = lock->delivering;
    lock->free_after = later;
    pthread_mutex_unlock(&store->mutex);
    if (!later)
        hf__lock_forget(lock);
}

void hf_lock_free(hf_lock *lock)
{
    int before;
    if (!lock)
        return;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    release_and_free(lock);
    (void)pthread_setcancelstate(before, NULL);
}

hf_status hf_lock_token(const hf_lock *lock, int64_t *token, hf_error *err)
{
    if (lock->token) {
        *token = lock->token;
        return HF_OK;
    }
    hf_status status =
        hf__fail(err, HF_NO_SCHEMA, "this lock has no fencing token: %s keeps no records",
                 lock->store->backend->name);
    hf__hint(err, lock->lifetime == HF_TRANSACTION
                      ? "a transaction lock needs none: its writes go with it"
                      : "run 'holdfast init' once on that database");
    return status;
}

int64_t hf_lock_key(const hf_lock *lock)
{
    return lock->name.key;
}

unsigned hf_lock_slot(const hf_lock *lock)
{
    return lock->slot;
}

bool hf_lock_snapshot_is_stale(const hf_lock *lock)
{
    return lock->snapshot_stale;
}

static void free_lock(void *lock)
{
    hf_lock_free(lock);
}

hf_status hf_lock_with(hf_store *store, const hf_lock_spec *spec, hf_locked_fn *fn, void *arg,
                       hf_error *err)
{
    hf_lock *lock = NULL;
    hf_status status = hf_lock_acquire(store, spec, &lock, err);
    if (status != HF_OK)
        return status;
    hf_status released = HF_OK;
    pthread_cleanup_push(free_lock, lock);
    status = fn(lock, arg, err);
    if (hf_lock_get_state(lock) != HF_STATE_RELEASED) /* fn may have done it */
        released = hf_lock_release(lock, status == HF_OK ? err : NULL);
    pthread_cleanup_pop(1);
    return status == HF_OK ? released : status;
}

/* --- life ------------------------------------------------------------------------------------- */

/* The life of a lock, as one table. Acquiring has no row: a lock that is not held yet is nobody's. */

static const struct {
    hf_lock_state from;
    enum life_event event;
    hf_lock_state to;
} lock_life[] = {
    {HF_STATE_HELD, LIFE_LOSE, HF_STATE_LOST},        /* the watcher found its session dead */
    {HF_STATE_HELD, LIFE_RELEASE, HF_STATE_RELEASED}, /* by the owner, in time */
    {HF_STATE_LOST, LIFE_RELEASE,
     HF_STATE_RELEASED}, /* by the owner, who is told that it is late */
};

bool hf__life_step(struct hf_lock *lock, enum life_event event)
{
    for (size_t i = 0; i < sizeof lock_life / sizeof *lock_life; i++)
        if (lock_life[i].from == lock->state && lock_life[i].event == event) {
            lock->state = lock_life[i].to;
            return true;
        }
    return false;
}
