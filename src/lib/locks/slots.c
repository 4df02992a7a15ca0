/*
 * Counting semaphores: at most N holders of one label. Each holder has
 *   the label's key, shared, so that an exclusive lock of the label waits for all slots,
 *   three digit keys, shared, which spell N in base 16, so that another N finds out and fails,
 *   one slot key, exclusive.
 * To acquire a slot, one first acquires a gate key and then looks for a free slot, so the queue for
 * the gate is the queue for the semaphore, and nobody overtakes.
 *
 * The gate is about order alone. Its holder may be stopped (Ctrl-Z) while slots are free: if they
 * stay free for a while, others pass without the gate.
 */
#include "lib/locks/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum {
    TICK_LOW_MS = 200,
    TICK_HIGH_MS = 500,
    GATE_MS = 300,  /* a caller that must not wait still gives the gate's holder this long */
    STALL_MS = 500, /* so long a slot is left to who is at the gate, before others pass */
    PAUSE_MS = 20,
    MOST_TRIES = 16, /* of slots that looked free */
    PROBE_MS = 200,  /* a session that died behind the gate keeps its digits for a moment */
};

int64_t hf__inner_key(const char *kind, const hf__claim *base, char purpose, unsigned number)
{
    char label[64];
    int64_t key = 0;
    size_t size = (size_t)snprintf(label, sizeof label - 2 - sizeof base->key - sizeof number,
                                   "holdfast %s ", kind);
    label[size++] = purpose;
    label[size++] = (char)base->space;
    memcpy(label + size, &base->key, sizeof base->key);
    size += sizeof base->key;
    memcpy(label + size, &number, sizeof number);
    size += sizeof number;
    (void)!hf_key_derive(HF_SHA256, label, size, &key, NULL); /* cannot fail for this length */
    return key;
}

static int64_t inner_key(const hf__claim *base, char purpose, unsigned number)
{
    return hf__inner_key("semaphore", base, purpose, number);
}

int64_t hf__slot_key(const hf__claim *base, unsigned slot)
{
    return inner_key(base, 's', slot);
}

int64_t hf__slot_gate_key(const hf__claim *base)
{
    return inner_key(base, 'g', 0);
}

int64_t hf__slot_digit_key(const hf__claim *base, unsigned place, unsigned digit)
{
    return inner_key(base, 'd', place * HF__SLOT_BASE + digit);
}

static int64_t wake_key(const hf__claim *base)
{
    return inner_key(base, 'w', 0);
}

hf__claim hf__inner_claim(int64_t key, hf_mode mode)
{
    return (hf__claim){.key = key, .space = HF_BIGINT, .mode = mode, .wake = key};
}

static int by_key(const hf__claim *a, const hf__claim *b)
{
    return a->key < b->key ? -1 : a->key > b->key;
}

static void insert_sorted(hf__claim *claims, size_t count, hf__claim claim)
{
    size_t at = count;
    for (; at > 0 && by_key(&claims[at - 1], &claim) > 0; at--)
        claims[at] = claims[at - 1];
    claims[at] = claim;
}

static unsigned digit_of(unsigned slots, unsigned place)
{
    return (slots >> (4 * place)) % HF__SLOT_BASE;
}

/* ours: the digits of slots, shared. Otherwise all other digits, exclusive. */
static void digit_claims(const hf__claim *base, unsigned slots, bool ours, hf__claim *claims,
                         size_t *count)
{
    *count = 0;
    for (unsigned place = 0; place < HF__SLOT_DIGITS; place++)
        for (unsigned digit = 0; digit < HF__SLOT_BASE; digit++)
            if ((digit == digit_of(slots, place)) == ours)
                insert_sorted(claims, (*count)++,
                              hf__inner_claim(hf__slot_digit_key(base, place, digit),
                                              ours ? HF_SHARED : HF_EXCLUSIVE));
}

/* Mutex not held. */
static bool is_held_inside(hf_store *store, const hf__claim *claim)
{
    pthread_mutex_lock(&store->mutex);
    bool held = hf__is_held(store, claim);
    pthread_mutex_unlock(&store->mutex);
    return held;
}

/* Mutex not held. */
static bool is_stopped(const struct acquiring *acquiring)
{
    pthread_mutex_lock(&acquiring->store->mutex);
    bool stopped = hf__is_stopped(acquiring);
    pthread_mutex_unlock(&acquiring->store->mutex);
    return stopped;
}

static hf__request within_limits(const struct acquiring *acquiring, const hf__claim *claims,
                                 size_t count)
{
    return (hf__request){.claims = claims,
                         .count = count,
                         .began = acquiring->began,
                         .deadline = acquiring->deadline,
                         .cancel = acquiring->spec->cancel};
}

/* ---- the number of slots --------------------------------------------------------------------- */

static hf_status is_other_size_used(struct acquiring *acquiring, const hf__claim *base, bool *used,
                                    hf_error *err)
{
    hf__claim claims[HF__SLOT_DIGITS * HF__SLOT_BASE];
    hf__backend *backend = acquiring->store->backend;
    size_t count = 0, first = 0;

    digit_claims(base, acquiring->spec->slots, false, claims, &count);
    *used = true;
    for (size_t i = 0; i < count; i++)
        if (is_held_inside(acquiring->store, &claims[i]))
            return HF_OK;
    const hf__request request = within_limits(acquiring, claims, count);
    hf_status status = backend->ops->probe_claims(backend, &request, true, &first, err);
    *used = first < count;
    return status;
}

/* Another process that looks at this very moment gets in the way, too, hence the patience. */
static hf_status check_other_sizes(struct acquiring *acquiring, const hf__claim *base,
                                   hf_error *err)
{
    int64_t until = hf__deadline(PROBE_MS);
    char name[200];
    bool used = true;

    hf_status status = is_other_size_used(acquiring, base, &used, err);
    while (status == HF_OK && used && hf__left_ms(until) != 0) {
        (void)hf__poll(NULL, 0, PAUSE_MS);
        status = is_other_size_used(acquiring, base, &used, err);
    }
    if (status != HF_OK || !used)
        return status;
    status = hf__fail(err, HF_SLOTS, "%s is in use with another number of slots than %u",
                      hf__claim_name(name, sizeof name, base), acquiring->spec->slots);
    hf__hint(err, "give every user of the label the same number; it can change when none is left");
    return status;
}

/*
 * HF_NOT_ACQUIRED proves no other number, only that somebody has one of our own digits to himself:
 * err says who. A caller that waits waits for that, too.
 */
static hf_status spell_size(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    int64_t least = hf__deadline(PROBE_MS);
    int64_t until = acquiring->deadline > least ? acquiring->deadline : least;
    hf__claim claims[HF__SLOT_DIGITS];
    size_t count = 0;

    digit_claims(base, acquiring->spec->slots, true, claims, &count);
    hf_status status = hf__claims_acquire(acquiring, claims, count, false, err);
    while (status == HF_NOT_ACQUIRED && hf__left_ms(until) != 0 && !is_stopped(acquiring)) {
        (void)hf__poll(NULL, 0, PAUSE_MS);
        status = hf__claims_acquire(acquiring, claims, count, false, err);
    }
    return status == HF_NOT_ACQUIRED && is_stopped(acquiring) ? hf__interrupted(err) : status;
}

/*
 * If nobody holds other digits once its own are held, no two holders have different numbers,
 * whoever else does this at the same time. The look before lets those who are refused disturb
 * nobody.
 */
static hf_status agree_on_size(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    hf_status status = check_other_sizes(acquiring, base, err);
    if (status == HF_OK)
        status = spell_size(acquiring, base, err);
    return status == HF_OK ? check_other_sizes(acquiring, base, err) : status;
}

/* ---- a slot ---------------------------------------------------------------------------------- */

static hf__claim slot_claim(const hf__claim *base, unsigned slot)
{
    hf__claim claim = hf__inner_claim(hf__slot_key(base, slot), HF_EXCLUSIVE);
    claim.wake = wake_key(base);
    claim.label = base->label;
    claim.label_size = base->label_size;
    claim.derivation = base->derivation;
    claim.traceparent = base->traceparent;
    claim.slot = slot;
    return claim;
}

/* *slot: one that nobody holds, or 0. */
static hf_status find_slot(const struct acquiring *acquiring, const hf__claim *base, unsigned *slot,
                           hf_error *err)
{
    hf__backend *backend = acquiring->store->backend;
    unsigned slots = acquiring->spec->slots;
    size_t count = 0, first = 0;

    *slot = 0;
    hf__claim *claims = calloc(slots, sizeof *claims);
    if (!claims)
        return hf__no_memory(err);
    for (unsigned number = 1; number <= slots; number++) {
        claims[count] = slot_claim(base, number);
        if (!is_held_inside(acquiring->store, &claims[count]))
            count++;
    }
    hf_status status = HF_OK;
    const hf__request request = within_limits(acquiring, claims, count);
    if (count > 0)
        status = backend->ops->probe_claims(backend, &request, false, &first, err);
    if (status == HF_OK && first < count)
        *slot = claims[first].slot;
    free(claims);
    return status;
}

static hf_status try_slot(struct acquiring *acquiring, const hf__claim *base, unsigned slot,
                          hf_error *err)
{
    hf__claim claim = slot_claim(base, slot);
    acquiring->quiet = true;
    hf_status status = hf__claims_acquire(acquiring, &claim, 1, false, err);
    acquiring->quiet = false;
    if (status == HF_OK)
        acquiring->lock->slot = slot;
    return status;
}

/* HF_NOT_ACQUIRED: all slots are held. The first is tried without a look: mostly it is free. */
static hf_status try_slots(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    hf__claim last = slot_claim(base, acquiring->spec->slots);
    unsigned slot = 1;

    for (int tries = 0; slot > 0 && tries < MOST_TRIES; tries++) {
        hf_status status = try_slot(acquiring, base, slot, err);
        if (status == HF_NOT_ACQUIRED)
            status = find_slot(acquiring, base, &slot, err);
        else
            return status;
        if (status != HF_OK)
            return status;
    }
    return hf__refused(acquiring, &last, err);
}

static hf_status await_wake_or_tick(const struct acquiring *acquiring, int64_t wake,
                                    uint64_t *ticket, hf_error *err)
{
    hf__backend *backend = acquiring->store->backend;
    int tick = hf__jitter_ms(TICK_LOW_MS, TICK_HIGH_MS), left = hf__left_ms(acquiring->deadline);
    hf_status status = backend->ops->await_wake(backend, wake, acquiring->spec->cancel, ticket,
                                                left >= 0 && left < tick ? left : tick, err);
    return status == HF_OK ? HF_NOT_ACQUIRED : status;
}

/*
 * Calls listen before each try: it replaces a listening connection that has died, and costs nothing
 * while it lives.
 */
static hf_status wait_for_slot(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    hf__backend *backend = acquiring->store->backend;
    const hf__request limits = within_limits(acquiring, NULL, 0);
    int64_t wake = wake_key(base);
    uint64_t ticket = 0;
    unsigned listeners = 0;
    hf_status status = HF_NOT_ACQUIRED;

    while (status == HF_NOT_ACQUIRED) {
        status = backend->ops->listen(backend, wake, &limits, &ticket, err);
        if (status == HF_OK && ++listeners > 1) {
            backend->ops->unlisten(backend, wake);
            listeners--;
        }
        if (status == HF_OK)
            status = try_slots(acquiring, base, err);
        if (status == HF_NOT_ACQUIRED && hf__left_ms(acquiring->deadline) == 0)
            break;
        if (status == HF_NOT_ACQUIRED)
            status = await_wake_or_tick(acquiring, wake, &ticket, err);
    }
    if (listeners > 0)
        backend->ops->unlisten(backend, wake);
    return status;
}

static hf_status all_taken(const struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    char name[200], hint[sizeof err->hint];
    if (!err)
        return HF_NOT_ACQUIRED;
    memcpy(hint, err->hint, sizeof hint); /* keep it: it says how to end the holder */
    hf_status status = hf__fail(err, HF_NOT_ACQUIRED,
                                HF__NOT_ACQUIRED_PREFIX "all %u slots of %s are taken, one by %s",
                                acquiring->spec->slots, hf__claim_name(name, sizeof name, base),
                                acquiring->who[0] ? acquiring->who : "another session");
    hf__hint(err, "%s", hint);
    return status;
}

/* Releases the gate alone. Its grant stays in the list, without a hold, before the later ones. */
static hf_status open_gate(struct hf_lock *lock, size_t gate, hf_error *err)
{
    struct hf_lock behind = *lock;
    behind.grants = &lock->grants[gate];
    behind.count = 1;
    return hf__claims_release(&behind, 0, err);
}

/* ---- the gate -------------------------------------------------------------------------------- */

/* A wait for the gate, whose holder may be stopped while slots are free. */
struct gate_wait {
    const struct acquiring *acquiring;
    const hf__claim *base;
    int64_t look_at;
    bool idle; /* a slot was free at the last look */
};

static bool is_gate_stuck(void *arg)
{
    struct gate_wait *wait = arg;
    unsigned slot = 0;
    if (hf__left_ms(wait->look_at) != 0)
        return false;
    wait->look_at = hf__deadline(STALL_MS);
    bool idle = find_slot(wait->acquiring, wait->base, &slot, NULL) == HF_OK && slot > 0;
    bool stuck = idle && wait->idle;
    wait->idle = idle;
    return stuck;
}

/*
 * HF_NOT_ACQUIRED: the gate stays closed, because the first in line waits for a slot, or because it
 * is stopped. Whoever does not wait looks for a slot all the same.
 */
static hf_status pass_gate(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    hf__claim gate = hf__inner_claim(hf__slot_gate_key(base), HF_EXCLUSIVE);
    hf__claim last = slot_claim(base, acquiring->spec->slots);
    struct gate_wait wait = {
        .acquiring = acquiring, .base = base, .look_at = hf__deadline(STALL_MS)};
    struct acquiring silent = *acquiring;

    silent.quiet = true;
    silent.told = true;
    hf_status status = hf__claims_acquire(&silent, &gate, 1, false, err);
    if (status != HF_NOT_ACQUIRED)
        return status;
    if (acquiring->spec->wait_ms == 0) {
        silent.deadline = hf__deadline(GATE_MS);
    } else {
        hf__tell_waiting(acquiring, &last);
        silent.give_up = is_gate_stuck;
        silent.give_up_arg = &wait;
    }
    return hf__claims_acquire(&silent, &gate, 1, true, err);
}

/* Everything behind the label. *again: a free slot behind a stuck gate went to somebody else. */
static hf_status acquire_slot(struct acquiring *acquiring, const hf__claim *base, bool *again,
                              hf_error *err)
{
    hf__claim last = slot_claim(base, acquiring->spec->slots);
    struct hf_lock *lock = acquiring->lock;
    size_t gate_at = lock->count;

    hf_status status = pass_gate(acquiring, base, err);
    bool first = status == HF_OK;
    if (first || status == HF_NOT_ACQUIRED)
        status = agree_on_size(acquiring, base, err);
    bool agreed = status == HF_OK;
    if (agreed)
        status = try_slots(acquiring, base, err);
    bool patient = acquiring->spec->wait_ms != 0 && hf__left_ms(acquiring->deadline) != 0;
    if (status == HF_NOT_ACQUIRED && agreed && first && patient) {
        hf__tell_waiting(acquiring, &last);
        status = wait_for_slot(acquiring, base, err);
    }
    *again = status == HF_NOT_ACQUIRED && !first && patient;
    if (status == HF_NOT_ACQUIRED && agreed)
        status = all_taken(acquiring, base, err);
    if (status == HF_OK && first)
        status = open_gate(lock, gate_at, err);
    if (status != HF_OK)
        (void)!hf__claims_release(lock, gate_at, NULL);
    return status;
}

static hf_status slot_acquire(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    hf__claim label = *base;
    bool again = true;

    label.mode = HF_SHARED;
    hf_status status = hf__claims_acquire(acquiring, &label, 1, acquiring->spec->wait_ms != 0, err);
    if (status != HF_OK)
        return status;
    while (again)
        status = acquire_slot(acquiring, base, &again, err);
    if (status != HF_OK)
        (void)!hf__claims_release(acquiring->lock, 0, NULL);
    return status;
}

/* What was acquired on the way, the gate and the size, may be lost before the slot comes free. */
static bool was_lost(struct acquiring *acquiring)
{
    pthread_mutex_lock(&acquiring->store->mutex);
    bool lost = hf__lost_session(acquiring->lock) != NULL;
    pthread_mutex_unlock(&acquiring->store->mutex);
    return lost;
}

hf_status hf__slot_acquire(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;
    for (;;) {
        hf_status status = slot_acquire(acquiring, base, where);
        bool lost = status == HF_OK && was_lost(acquiring);
        if (lost) {
            (void)!hf__claims_release(acquiring->lock, 0, NULL);
            status = hf__fail(where, HF_UNREACHABLE, "the session with %s ended meanwhile",
                              acquiring->store->backend->name);
        }
        bool passes = status == HF_UNREACHABLE || status == HF_CONFIG || status == HF_LOST;
        if (status == HF_LOST)
            where->code = HF_UNREACHABLE;
        if (!passes)
            hf__is_back(acquiring);
        if (!passes || acquiring->spec->wait_ms == 0 || !hf__outlast(acquiring, where))
            return passes ? where->code : status;
    }
}
