/* The life of a lock once it is held: its events, its release, its loss. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "lib/locks/engine.h"

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
    if (kind == HF__EVENT_ACQUIRED && lock->lifetime == HF_LEASE)
        (void)snprintf(event.detail, sizeof event.detail, "lease");
    add_note(lock, &event);
}

void hf__note_loss(const struct hf_lock *lock, const char *reason)
{
    hf__event event = event_of(lock, HF__EVENT_LOST);
    event.hold_ms = hf__now_ms() - lock->acquired_ms;
    (void)snprintf(event.detail, sizeof event.detail, "%s", reason);
    add_note(lock, &event);
}

void hf__note_deadlock(const struct hf_lock *lock, int64_t wait_ms, const char *how)
{
    hf__event event = event_of(lock, HF__EVENT_DEADLOCK);
    event.wait_ms = wait_ms;
    (void)hf__show(event.detail, sizeof event.detail, how, strlen(how));
    add_note(lock, &event);
}

void hf__note_asked(const struct hf_lock *lock, const char *who)
{
    hf__event event = event_of(lock, HF__EVENT_NOTED);
    (void)snprintf(event.name, sizeof event.name, "asked");
    (void)hf__show(event.detail, sizeof event.detail, who, strlen(who));
    add_note(lock, &event);
}

/*
 * Replaces everything but small letters by '_': the word goes into an array literal of PostgreSQL
 * and into labels of metrics, without quotes.
 */
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

void hf__lock_forget(struct hf_lock *lock)
{
    if (!lock)
        return;
    free(lock->grants);
    free(lock->labels);
    free(lock->asker);
    free(lock->trace);
    free(lock);
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

/* One more hold keeps the session from being freed after a loss while the caller uses it. */
/* Mutex held. The transaction has the session to itself until its callback has returned. */
static bool is_in_own_transaction(const struct hf_lock *lock)
{
    int64_t me = hf__me();
    for (size_t i = 0; i < lock->count; i++)
        if (lock->grants[i].hold && atomic_load(&lock->grants[i].hold->session->transacts) == me)
            return true;
    return false;
}

static hf_status refuse_within(hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_ORDER, "the caller is in a transaction on the session of the lock");
    hf__hint(err, "end that transaction first");
    return status;
}

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
    else if (is_in_own_transaction(lock))
        status = refuse_within(err);
    if (status == HF_OK) {
        *session = lock->grants[0].hold->session;
        atomic_fetch_add(&(*session)->holds, 1);
    }
    pthread_mutex_unlock(&lock->store->mutex);
    return status;
}

hf_status hf__lock_use_lease(struct hf_lock *lock, hf__session **lease, const hf__claim **claims,
                             size_t *count, hf_error *err)
{
    hf__claim *copies = calloc(lock->count, sizeof *copies);
    if (!copies)
        return hf__no_memory(err);
    hf_status status = hf__lock_use_session(lock, lease, err);
    if (status != HF_OK) {
        free(copies);
        return status;
    }
    pthread_mutex_lock(&lock->store->mutex);
    for (size_t i = 0; i < lock->count; i++)
        if (lock->grants[i].hold) /* the gate of a semaphore has none */
            copies[(*count)++] = lock->grants[i].claim;
    pthread_mutex_unlock(&lock->store->mutex);
    *claims = copies;
    return HF_OK;
}

void hf__session_leave(hf__session *session, unsigned keys)
{
    if (session->backend->ops->leave_session)
        session->backend->ops->leave_session(session, keys);
    else
        atomic_fetch_sub(&session->holds, keys);
}

hf_lock_state hf_lock_get_state(const hf_lock *lock)
{
    if (!lock)
        return HF_STATE_RELEASED;
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
    if (lock->trace)
        lock->trace->lost_ns = hf__now_ns();
}

static hf_status release(hf_lock *lock, bool is_free, hf_error *err)
{
    if (!lock)
        return hf__fail(err, HF_INVALID, "no lock to release");
    hf_store *store = lock->store;
    hf_status status = hf__check_process(store, err);
    if (status != HF_OK)
        return status;

    pthread_mutex_lock(&store->mutex);
    if (is_in_own_transaction(lock)) {
        pthread_mutex_unlock(&store->mutex);
        return refuse_within(err);
    }
    const hf__session *dead = hf__lost_session(lock);
    if (dead && hf__life_step(lock, LIFE_LOSE))
        hf__name_loss(lock, &dead->why);
    bool lost = lock->state == HF_STATE_LOST, first = hf__life_step(lock, LIFE_RELEASE);
    hf__forget_due(store, lock);
    hf__attention_end(store, lock);
    if (first && store->backend->borrowed)
        hf__order_remove(store, lock);
    else if (first)
        unpublish(store, lock);
    pthread_mutex_unlock(&store->mutex);

    if (!first)
        return hf__fail(err, HF_INVALID, "the lock was released before");
    if (is_free)
        hf__claims_leave(lock);
    else
        status = hf__claims_release(lock, 0, err);
    hf__tell_hold(lock, lost ? HF_LOST : status);
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

hf_status hf__lock_end(hf_lock *lock, bool is_free, hf_error *err)
{
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    hf_status status = release(lock, is_free, err);
    (void)pthread_setcancelstate(before, NULL);
    return status;
}

hf_status hf_lock_release(hf_lock *lock, hf_error *err)
{
    return lock ? hf__lock_end(lock, false, err) : hf__fail(err, HF_INVALID, "there is no lock");
}

static void release_and_free(hf_lock *lock)
{
    hf_store *store = lock->store;
    if (hf__check_process(store, NULL) != HF_OK)
        return; /* a copy of the parent's lock: it is not for this process to end it */
    pthread_mutex_lock(&store->mutex);
    bool released = lock->state == HF_STATE_RELEASED, in_use = is_in_own_transaction(lock);
    pthread_mutex_unlock(&store->mutex);
    if (in_use) {
        hf__log(
            store->backend, HF_LOG_WARNING,
            "hf_lock_free was called by a transaction on the lock's own session: it stays held");
        return;
    }
    if (!released)
        (void)!release(lock, false, NULL);
    pthread_mutex_lock(&store->mutex);
    while (lock->delivering && !pthread_equal(lock->deliverer, pthread_self()))
        (void)hf__cond_wait(&store->changed, &store->mutex, HF__FOREVER);
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
    if (!lock || !token)
        return hf__fail(err, HF_INVALID, "hf_lock_token needs a lock and a place for its token");
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
    if (hf_lock_get_state(lock) != HF_STATE_RELEASED) /* fn may have released it */
        released = hf_lock_release(lock, status == HF_OK ? err : NULL);
    pthread_cleanup_pop(1);
    return status == HF_OK ? released : status;
}

/* ---- the steps of a lock's life ----------------------------------------------------------- */

/* There is no row for acquiring: a lock has no state before it is held. */
static const struct {
    hf_lock_state from;
    enum life_event event;
    hf_lock_state to;
} lock_life[] = {
    {HF_STATE_HELD, LIFE_LOSE, HF_STATE_LOST},        /* its session was found dead */
    {HF_STATE_HELD, LIFE_RELEASE, HF_STATE_RELEASED}, /* by the owner */
    {HF_STATE_LOST, LIFE_RELEASE, HF_STATE_RELEASED}, /* by the owner, who gets HF_LOST */
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
