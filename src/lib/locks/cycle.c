/*
 * Deadlocks among the threads of one process, which HF_ANY_ORDER allows: every edge is in the
 * engine's own tables. Found when the last of them starts to wait, which is the one to be told.
 */
#include "lib/locks/engine.h"

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
