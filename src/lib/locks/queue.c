#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "lib/locks/engine.h"

/* How often a key may change hands inside the process before others get their chance outside. */
enum { MOST_PASSES = 16 };

static size_t bucket_of(int64_t key)
{
    return (size_t)(hf__hash_int((uint64_t)key) % ENTRY_BUCKETS);
}

struct entry *hf__entry_get(hf_store *store, const hf__claim *claim)
{
    struct entry **head = &store->entries[bucket_of(claim->key)];
    for (struct entry *entry = *head; entry; entry = entry->next)
        if (entry->key == claim->key && entry->space == claim->space)
            return entry;
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->key = claim->key;
    entry->space = claim->space;
    entry->next = *head;
    *head = entry;
    return entry;
}

static bool is_unused(const struct entry *entry)
{
    return !entry->busy && !entry->first && !entry->grants && entry->holders[HF_SHARED] == 0 &&
           entry->holders[HF_EXCLUSIVE] == 0;
}

static void free_entry(hf_store *store, struct entry *entry)
{
    struct entry **at = &store->entries[bucket_of(entry->key)];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    free(entry);
}

bool hf__entry_is_free_for(const struct entry *entry, hf_mode mode)
{
    if (entry->busy || entry->holders[HF_EXCLUSIVE] > 0)
        return false;
    if (mode == HF_EXCLUSIVE)
        return entry->holders[HF_SHARED] == 0;
    return !(entry->draining && entry->holders[HF_SHARED] > 0);
}

struct hold *hf__entry_held_by_me(const struct entry *entry, hf_mode mode)
{
    pid_t me = gettid();
    for (struct grant *grant = entry->grants; grant; grant = grant->next)
        if (grant->lock->owner == me && grant->lock->state == HF_STATE_HELD &&
            (grant->claim.mode == HF_EXCLUSIVE || mode == HF_SHARED))
            return grant->hold;
    return NULL;
}

bool hf__held_by_me(const hf_store *store, const hf__claim *claim)
{
    for (const struct entry *entry = store->entries[bucket_of(claim->key)]; entry;
         entry = entry->next)
        if (entry->key == claim->key && entry->space == claim->space)
            return hf__entry_held_by_me(entry, claim->mode) != NULL;
    return false;
}

static bool may_join(const struct entry *entry, const struct turn *turn)
{
    return entry->hold && entry->hold->mode == turn->mode && !turn->alone &&
           !atomic_load(&entry->hold->session->lost);
}

void hf__turn_assign(struct turn *turn)
{
    struct entry *entry = turn->entry;
    if (may_join(entry, turn)) {
        turn->state = TURN_JOINS;
        turn->hold = entry->hold;
        turn->hold->refs++;
        entry->holders[turn->mode]++;
        turn->pass = ++entry->passes;
    } else {
        turn->state = TURN_CLAIMS;
        entry->busy++;
        entry->passes = 0;
    }
}

void hf__turn_queue(struct turn *turn)
{
    struct entry *entry = turn->entry;
    turn->next = NULL;
    turn->state = TURN_QUEUED;
    if (entry->last)
        entry->last->next = turn;
    else
        entry->first = turn;
    entry->last = turn;
}

void hf__turn_abandon(struct turn *turn)
{
    struct entry *entry = turn->entry;
    struct turn **at = &entry->first, *previous = NULL;
    while (*at && *at != turn) {
        previous = *at;
        at = &(*at)->next;
    }
    if (!*at)
        return;
    *at = turn->next;
    if (entry->last == turn)
        entry->last = previous;
}

bool hf__may_pass_on(const struct entry *entry, const struct hold *hold)
{
    const struct turn *next = entry->first;
    return next && !entry->busy && hold == entry->hold && next->mode == hold->mode &&
           !next->alone && entry->passes < MOST_PASSES && !atomic_load(&hold->session->lost);
}

void hf__entry_settle(hf_store *store, struct entry *entry)
{
    if (entry->holders[HF_SHARED] == 0)
        entry->draining = false;
    while (entry->first && hf__entry_is_free_for(entry, entry->first->mode)) {
        struct turn *turn = entry->first;
        entry->first = turn->next;
        if (!entry->first)
            entry->last = NULL;
        hf__turn_assign(turn);
        pthread_cond_signal(turn->cond);
    }
    pthread_cond_broadcast(&store->settled);
    if (is_unused(entry))
        free_entry(store, entry);
}

/* --- cycle ------------------------------------------------------------------------------------ */

/*
 * Deadlocks among the threads of one process, which HF_ANY_ORDER allows: every edge is in the
 * engine's own tables. Found when the last of them starts to wait, which is the one to be told.
 */

enum { MOST_STEPS = 10000 };

static const struct turn *wait_of(const hf_store *store, pid_t thread)
{
    for (const struct turn *turn = store->queued; turn; turn = turn->next_queued)
        if (turn->owner == thread)
            return turn;
    return NULL;
}

static bool leads_to(const hf_store *store, const struct entry *entry, pid_t me, int *steps)
{
    for (const struct grant *grant = entry->grants; grant; grant = grant->next) {
        pid_t owner = grant->lock->owner;
        if (--*steps <= 0)
            return false;
        if (owner == me)
            return true;
        const struct turn *wait = wait_of(store, owner);
        if (wait && leads_to(store, wait->entry, me, steps))
            return true;
    }
    return false;
}

/* A thread that waits for what it holds itself waits for another thread to release it. */
static bool holds(const struct entry *entry, pid_t me)
{
    for (const struct grant *grant = entry->grants; grant; grant = grant->next)
        if (grant->lock->owner == me)
            return true;
    return false;
}

bool hf__closes_cycle(const hf_store *store, const struct turn *turn)
{
    int steps = MOST_STEPS;
    return !holds(turn->entry, turn->owner) && leads_to(store, turn->entry, turn->owner, &steps);
}
