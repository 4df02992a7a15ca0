/*
 * Yielding: a successor asks, and the holder hands over to it when it has finished what it is at.
 *
 * Who asks for a key first acquires another one beside it, the ask. While somebody holds that, all
 * others who wait for the key stand aside (wait_claims of the backends), so that the next release
 * goes to the one that asked. Several who ask come one after the other, since the ask is a lock as
 * any other. Nothing has to be said to the holder: it looks for the ask once a second, and believes
 * it when it is there twice in a row, because those in the queue of the store need a moment to
 * stand aside. So an ask works through any pooler, outlasts any restart, and ends with its process.
 */
#include "lib/locks/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

enum { ROUND_MS = 1000 };

hf__claim hf__ask_claim(const hf__claim *claim, hf_mode mode)
{
    return hf__inner_claim(hf__inner_key("yield", claim, 'a', 0), mode);
}

bool hf__holds_ask(void *arg, const hf__claim *ask)
{
    hf_store *store = arg;
    pthread_mutex_lock(&store->mutex);
    bool holds = hf__is_held(store, ask);
    pthread_mutex_unlock(&store->mutex);
    return holds;
}

/* ---- who asks -------------------------------------------------------------------------------- */

static hf_status acquire_asking(struct acquiring *acquiring, const hf__claim *claim, hf_error *err)
{
    hf__claim ask = hf__ask_claim(claim, HF_EXCLUSIVE);
    struct grant grant = {0};
    struct hf_lock asking = {.store = acquiring->store,
                             .grants = &grant,
                             .room = 1,
                             .owner = hf__me(),
                             .lifetime = acquiring->spec->lifetime};
    struct acquiring first = *acquiring;
    hf_lock_spec as_session = *acquiring->spec;

    if (acquiring->store->backend->local) { /* others wait for the ask in the kernel */
        as_session.lifetime = asking.lifetime = HF_SESSION;
        as_session.lease_ms = 0;
        first.spec = &as_session;
    }
    first.lock = &asking;
    first.quiet = true;
    hf_status status = hf__claims_acquire(&first, &ask, 1, true, err);
    if (status == HF_OK) {
        acquiring->asks = true;
        status = hf__claims_acquire(acquiring, claim, 1, true, err);
        (void)!hf__claims_release(&asking, 0, NULL);
    } else if (status == HF_NOT_ACQUIRED) {
        status = hf__refused(acquiring, claim, err);
    }
    return status;
}

hf_status hf__ask_acquire(struct acquiring *acquiring, const hf__claim *claim, hf_error *err)
{
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;
    acquiring->quiet = true;
    hf_status status = hf__claims_acquire(acquiring, claim, 1, false, where);
    acquiring->quiet = false;
    bool outlasts =
        (status == HF_UNREACHABLE || status == HF_CONFIG) && hf__outlast(acquiring, where);
    if (status != HF_NOT_ACQUIRED && !outlasts)
        return status;
    if (status == HF_NOT_ACQUIRED)
        hf__tell_waiting(acquiring, claim);
    return acquire_asking(acquiring, claim, where);
}

/* ---- who is asked ---------------------------------------------------------------------------- */

/* Mutex held. The asks of all locks that can be asked for; the caller frees them. */
static hf__claim *list_asks(const hf_store *store, size_t *count)
{
    hf__claim *asks = calloc(store->attended, sizeof *asks);
    *count = 0;
    for (const struct hf_lock *lock = store->locks; asks && lock; lock = lock->next)
        if (lock->on_yield && *count < store->attended)
            asks[(*count)++] = lock->ask;
    return asks;
}

/* Mutex held. Nobody of the process gets or joins the key before one outside who has asked. */
static void let_go_outside(const struct hf_lock *lock, bool inside)
{
    if (lock->count == 0 || !lock->grants[0].hold)
        return;
    lock->grants[0].key_state->yields = !inside;
    lock->grants[0].key_state->draining |= !inside;
}

/* Mutex held. */
static void hear(hf_store *store, struct hf_lock *lock, const hf_error *who)
{
    uint64_t name = hf__hash_bytes(who->message, strlen(who->message));
    lock->heard = store->round;
    if (lock->asked == ASKED_BY_NOBODY || lock->asker_name != name) /* or by another one now */
        lock->asked = ASKED_JUST_NOW;
    else if (lock->asked == ASKED_JUST_NOW && !lock->untold &&
             (lock->asker || (lock->asker = malloc(sizeof *lock->asker)))) {
        *lock->asker = *who;
        lock->asked = ASKED_AND_TOLD;
        let_go_outside(lock, hf__is_held(store, &lock->ask));
        hf__note_asked(lock, who->message);
        hf__lock_due(store, lock);
    }
    lock->asker_name = name;
}

/* Mutex held. */
static struct hf_lock *find_asked(struct hf_lock *from, const hf__claim *ask)
{
    while (from && !(from->on_yield && from->ask.key == ask->key))
        from = from->next;
    return from;
}

/* Mutex held. The caller frees the label of the copy. */
static hf__claim copy_name(const struct hf_lock *lock)
{
    hf__claim claim = lock->name;
    char *label = claim.label ? malloc(claim.label_size + 1) : NULL;
    claim.label = label ? memcpy(label, claim.label, claim.label_size) : NULL;
    return claim;
}

/* The mutex is not held. The lock may be gone by now; then nobody is told. */
static void name_and_tell(hf_store *store, const hf__claim *ask)
{
    hf_error who = {0};
    pthread_mutex_lock(&store->mutex);
    const struct hf_lock *asked = find_asked(store->locks, ask);
    hf__claim claim = asked ? copy_name(asked) : (hf__claim){0};
    pthread_mutex_unlock(&store->mutex);
    hf__name_asker(store, &claim, ask, &who);
    pthread_mutex_lock(&store->mutex);
    struct hf_lock *lock = find_asked(store->locks, ask);
    for (; lock; lock = find_asked(lock->next, ask))
        hear(store, lock, &who);
    pthread_mutex_unlock(&store->mutex);
    free((void *)(uintptr_t)claim.label);
}

/* Mutex held. Who asked before has got another lock of the key, or given up. */
static void forget_unheard(hf_store *store)
{
    for (struct hf_lock *lock = store->locks; lock; lock = lock->next)
        if (lock->on_yield && lock->heard != store->round && lock->asked != ASKED_BY_NOBODY) {
            lock->asked = ASKED_BY_NOBODY;
            let_go_outside(lock, true);
        }
    store->round++;
}

/* The mutex is not held. One of this process may look free at the store. */
static void look_inside(hf_store *store, const hf__claim *asks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hf__holds_ask(store, &asks[i]))
            name_and_tell(store, &asks[i]);
}

/* The mutex is not held. A store that does not answer is asked again in the next round. */
static void look_for(hf_store *store, const hf__claim *asks, size_t count)
{
    hf__backend *backend = store->backend;
    hf_error ignored;
    for (size_t from = 0, free_count = 0; from < count; from += free_count + 1) {
        int64_t now = hf__now_ms();
        const hf__request request = {
            .claims = asks + from, .count = count - from, .began = now, .deadline = now};
        if (backend->ops->probe_claims(backend, &request, true, &free_count, &ignored) != HF_OK)
            return;
        look_inside(store, asks + from, free_count);
        if (from + free_count < count)
            name_and_tell(store, &asks[from + free_count]);
    }
    pthread_mutex_lock(&store->mutex);
    forget_unheard(store);
    pthread_mutex_unlock(&store->mutex);
}

static void attend(void *arg)
{
    hf_store *store = arg;
    int64_t next = hf__deadline(ROUND_MS);
    pthread_mutex_lock(&store->mutex);
    while (store->attended > 0) {
        if (hf__cond_wait(&store->attended_end, &store->mutex, next))
            continue;
        size_t count = 0;
        hf__claim *asks = list_asks(store, &count);
        pthread_mutex_unlock(&store->mutex);
        look_for(store, asks, count);
        free(asks);
        next = hf__deadline(ROUND_MS);
        pthread_mutex_lock(&store->mutex);
    }
    store->attends = false;
    pthread_mutex_unlock(&store->mutex);
}

int hf__attention_start(hf_store *store, struct hf_lock *lock, hf_yield_fn *on_yield)
{
    int failed = 0;
    if (!on_yield)
        return 0;
    if (!store->attends) {
        failed = hf__runner_start(store);
        if (!failed)
            failed = hf__fiber_start(store->fibers, attend, store);
        if (failed)
            return failed;
        store->attends = true;
    }
    lock->on_yield = on_yield;
    lock->ask = hf__ask_claim(&lock->name, HF_SHARED);
    store->attended++;
    return 0;
}

void hf__attention_end(hf_store *store, struct hf_lock *lock)
{
    if (!lock->on_yield)
        return;
    lock->on_yield = NULL;
    if (!lock->loss_due)
        hf__forget_due(store, lock);
    if (--store->attended == 0)
        hf__cond_broadcast(&store->attended_end);
}

void hf__attention_stop(hf_store *store)
{
    pthread_mutex_lock(&store->mutex);
    for (struct hf_lock *lock = store->locks; lock; lock = lock->next)
        hf__attention_end(store, lock);
    pthread_mutex_unlock(&store->mutex);
}
