/*
 * The order rule. Two processes that hold one lock each and wait for the other's are a deadlock,
 * and PostgreSQL cannot see it: holding and waiting go over different sessions. Waiting only for
 * keys greater than all that the thread holds rules it out.
 */
#include "lock/engine.h"

#include <stdlib.h>
#include <unistd.h>

static struct hf_lock **thread_list(hf_store *store, pid_t thread)
{
    uint64_t mixed = (uint64_t)thread * UINT64_C(0x9E3779B97F4A7C15);
    return &store->threads[(mixed >> 40) % THREAD_BUCKETS];
}

static int compare(const hf__claim *a, const hf__claim *b)
{
    if (a->space != b->space)
        return a->space < b->space ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* A semaphore takes part with its label's key; what it uses inside has an order of its own. */
static const hf__claim *greatest(const struct hf_lock *lock)
{
    return lock->slot ? &lock->grants[0].claim : &lock->grants[lock->count - 1].claim;
}

hf_status hf__order_check(hf_store *store, const hf__claim *first, hf_error *err)
{
    pid_t me = gettid();
    struct hf_lock *held = *thread_list(store, me);
    while (held && held->owner != me)
        held = held->next_of_thread;
    if (!held || compare(first, greatest(held)) >= 0)
        return HF_OK;
    char wanted[200], has[200];
    hf_status status = hf__fail(
        err, HF_ORDER, "%s (key %lld) may not be waited for while this thread holds %s (key %lld)",
        hf__claim_name(wanted, sizeof wanted, first), (long long)first->key,
        hf__claim_name(has, sizeof has, greatest(held)), (long long)greatest(held)->key);
    hf__hint(err, "take both as one set, take the smaller key first, try without waiting, or pass "
                  "HF_ANY_ORDER and bound the wait");
    return status;
}

void hf__order_add(hf_store *store, struct hf_lock *lock)
{
    struct hf_lock **head = thread_list(store, lock->owner), *previous = NULL, *at = *head;
    while (at && compare(greatest(at), greatest(lock)) > 0) {
        previous = at;
        at = at->next_of_thread;
    }
    lock->previous_of_thread = previous;
    lock->next_of_thread = at;
    if (at)
        at->previous_of_thread = lock;
    if (previous)
        previous->next_of_thread = lock;
    else
        *head = lock;
    lock->in_order_list = true;
}

void hf__order_remove(hf_store *store, struct hf_lock *lock)
{
    if (!lock->in_order_list)
        return;
    if (lock->previous_of_thread)
        lock->previous_of_thread->next_of_thread = lock->next_of_thread;
    else
        *thread_list(store, lock->owner) = lock->next_of_thread;
    if (lock->next_of_thread)
        lock->next_of_thread->previous_of_thread = lock->previous_of_thread;
    lock->in_order_list = false;
}

size_t hf__order_held(hf_store *store, hf__key **keys)
{
    pid_t me = gettid();
    size_t count = 0, room = 0;
    *keys = NULL;
    for (struct hf_lock *held = *thread_list(store, me); held; held = held->next_of_thread) {
        if (held->owner != me)
            continue;
        hf__key *grown = realloc(*keys, (room += held->count) * sizeof **keys);
        if (!grown)
            break;
        *keys = grown;
        for (size_t i = 0; i < held->count; i++)
            grown[count++] = (hf__key){held->grants[i].claim.key, held->grants[i].claim.space};
    }
    return count;
}
