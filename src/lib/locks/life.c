/* The life of a lock, as one table. Acquiring has no row: a lock that is not held yet is nobody's. */
#include "lib/locks/engine.h"

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
