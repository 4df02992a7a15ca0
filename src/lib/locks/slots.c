/*
 * Counting semaphores: at most N holders of one label. Each holder has
 *   the label's key, shared, so that an exclusive lock of the label waits for all slots,
 *   three digit keys, shared, which spell N in base 16, so that another N finds out and fails,
 *   one slot key, exclusive.
 * To acquire a slot, one first acquires a gate key. Only its holder looks for a free slot, so the
 * queue for the gate is the queue for the semaphore, and nobody overtakes.
 */
#include "lib/locks/engine.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

enum {
    TICK_LOW_MS = 200,
    TICK_HIGH_MS = 500,
    GATE_MS = 300,  /* a caller that must not wait still gives the gate's holder this long */
    PROBE_MS = 200, /* a session that died behind the gate keeps its digits for a moment */
};

/* One of the semaphore's own keys: 64 bits of SHA-256, as for any label. */
static int64_t inner_key(const hf__claim *base, char purpose, unsigned number)
{
    char label[64] = "holdfast semaphore ";
    size_t size = strlen(label);
    int64_t key = 0;
    label[size++] = purpose;
    label[size++] = (char)base->space;
    memcpy(label + size, &base->key, sizeof base->key);
    size += sizeof base->key;
    memcpy(label + size, &number, sizeof number);
    size += sizeof number;
    (void)!hf_key_derive(HF_SHA256, label, size, &key, NULL); /* cannot fail for this length */
    return key;
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

static hf__claim inner_claim(int64_t key, hf_mode mode)
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
                              inner_claim(hf__slot_digit_key(base, place, digit),
                                          ours ? HF_SHARED : HF_EXCLUSIVE));
}

static hf_status probe(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                       hf_error *err)
{
    int64_t until = hf__deadline(PROBE_MS);
    struct timespec pause = {.tv_nsec = 20 * 1000000L};
    hf_status status;
    acquiring->quiet = true;
    while ((status = hf__claims_acquire(acquiring, claims, count, false, err)) == HF_NOT_ACQUIRED &&
           hf__left_ms(until) != 0)
        (void)nanosleep(&pause, NULL);
    acquiring->quiet = false;
    return status;
}

/*
 * The gate is held, so nobody else does this at the same time. If all other digits are free, no
 * holder uses another number of slots.
 */
static hf_status agree_on_size(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    hf__claim claims[HF__SLOT_DIGITS * HF__SLOT_BASE];
    size_t count = 0, from = acquiring->lock->count;
    unsigned slots = acquiring->spec->slots;
    char name[200];

    digit_claims(base, slots, false, claims, &count);
    hf_status status = probe(acquiring, claims, count, err);
    if (status == HF_NOT_ACQUIRED) {
        status = hf__fail(err, HF_SLOTS, "%s is in use with another number of slots than %u",
                          hf__claim_name(name, sizeof name, base), slots);
        hf__hint(err,
                 "give every user of the label the same number; it can change when none is left");
        return status;
    }
    if (status == HF_OK)
        status = hf__claims_release(acquiring->lock, from, err);
    if (status != HF_OK)
        return status;
    digit_claims(base, slots, true, claims, &count);
    status = hf__claims_acquire(acquiring, claims, count, false, err);
    return status == HF_NOT_ACQUIRED ? HF_SLOTS : status; /* err names who is in the way */
}

/* HF_NOT_ACQUIRED: all slots are held. */
static hf_status try_slots(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    unsigned slots = acquiring->spec->slots;
    for (unsigned slot = 1; slot <= slots; slot++) {
        hf__claim claim = inner_claim(hf__slot_key(base, slot), HF_EXCLUSIVE);
        claim.wake = wake_key(base);
        claim.label = base->label;
        claim.label_size = base->label_size;
        claim.derivation = base->derivation;
        claim.slot = slot;
        acquiring->quiet = slot < slots; /* the message names the holder of the last slot */
        hf_status status = hf__claims_acquire(acquiring, &claim, 1, false, err);
        acquiring->quiet = false;
        if (status == HF_OK)
            acquiring->lock->slot = slot;
        if (status != HF_NOT_ACQUIRED)
            return status;
    }
    return HF_NOT_ACQUIRED;
}

static hf_status await_wake_or_tick(const struct acquiring *acquiring, int64_t wake,
                                    uint64_t *ticket, hf_error *err)
{
    hf__backend *backend = acquiring->store->backend;
    int tick = hf__jitter_ms(TICK_LOW_MS, TICK_HIGH_MS), left = hf__left_ms(acquiring->deadline);
    hf_status status = backend->ops->await_wake(backend, wake, ticket,
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
    int64_t wake = wake_key(base);
    uint64_t ticket = 0;
    unsigned listeners = 0;
    hf_status status = HF_NOT_ACQUIRED;

    while (status == HF_NOT_ACQUIRED) {
        status = backend->ops->listen(backend, wake, &ticket, err);
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

static hf_status pass_gate(struct acquiring *acquiring, const hf__claim *gate, bool patient,
                           hf_error *err)
{
    if (patient)
        return hf__claims_acquire(acquiring, gate, 1, true, err);
    struct acquiring brief = *acquiring;
    brief.deadline = hf__deadline(GATE_MS);
    brief.told = true;
    hf_status status = hf__claims_acquire(&brief, gate, 1, true, err);
    memcpy(acquiring->who, brief.who, sizeof acquiring->who);
    return status;
}

hf_status hf__slot_acquire(struct acquiring *acquiring, const hf__claim *base, hf_error *err)
{
    struct hf_lock *lock = acquiring->lock;
    bool patient = acquiring->spec->wait_ms != 0;
    hf__claim label = *base, gate = inner_claim(hf__slot_gate_key(base), HF_EXCLUSIVE);

    label.mode = HF_SHARED;
    hf_status status = hf__claims_acquire(acquiring, &label, 1, patient, err);
    if (status != HF_OK)
        return status;
    size_t gate_at = lock->count;
    status = pass_gate(acquiring, &gate, patient, err);
    if (status == HF_OK)
        status = agree_on_size(acquiring, base, err);
    if (status == HF_OK)
        status = try_slots(acquiring, base, err);
    if (status == HF_NOT_ACQUIRED && lock->count > gate_at && patient) {
        hf__tell_waiting(acquiring, &label);
        status = wait_for_slot(acquiring, base, err);
    }
    if (status == HF_NOT_ACQUIRED)
        status = all_taken(acquiring, base, err);
    if (status == HF_OK)
        status = open_gate(lock, gate_at, err);
    if (status != HF_OK)
        (void)!hf__claims_release(lock, 0, NULL);
    return status;
}
