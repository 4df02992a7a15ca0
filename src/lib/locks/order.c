/*
 * The order rule. Two processes that each hold one lock and wait for the other's are deadlocked,
 * and PostgreSQL cannot see it, because holding and waiting happen on different sessions. This
 * cannot happen if a thread only waits for keys greater than all that it holds. A registry may
 * define an order that comes before that of the keys. It is checked at every acquire, contended or
 * not, so that a test finds a mistake.
 */
#include "lib/locks/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/vec.h"

static struct hf_lock **thread_list(hf_store *store, int64_t owner)
{
    return &store->threads[hf__hash_int((uint64_t)owner) % THREAD_BUCKETS];
}

static int compare_order(const hf__claim *a, const hf__claim *b)
{
    if (a->has_order != b->has_order)
        return a->has_order ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

int hf__compare_claims(const hf__claim *a, const hf__claim *b)
{
    int order = compare_order(a, b);
    if (order != 0)
        return order;
    if (a->space != b->space)
        return a->space < b->space ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

static const char *show_order(char out[48], const hf__claim *claim)
{
    if (claim->has_order)
        (void)snprintf(out, 48, "order %lld", (long long)claim->order);
    else
        (void)snprintf(out, 48, "no order, so it comes last");
    return out;
}

static hf_status refuse_by_registry(const hf__claim *first, const hf__claim *held, hf_error *err)
{
    char wanted[200], has[200], wanted_order[48], held_order[48];
    hf_status status =
        hf__fail(err, HF_ORDER, "%s (%s) may not be taken while the caller holds %s (%s)",
                 hf__claim_name(wanted, sizeof wanted, first), show_order(wanted_order, first),
                 hf__claim_name(has, sizeof has, held), show_order(held_order, held));
    hf__hint(err, "take them in the order of the registry, or both as one set; HF_ANY_ORDER makes "
                  "this a warning");
    return status;
}

static hf_status refuse_own(const hf__claim *claim, hf_error *err)
{
    char name[200];
    hf_status status =
        hf__fail(err, HF_ORDER, "%s may not be waited for: the caller holds it on another session",
                 hf__claim_name(name, sizeof name, claim));
    hf__hint(err, "it would wait for itself; for a transaction under a lock, hold the lock with "
                  "HF_PRIVATE and use hf_lock_transact");
    return status;
}

hf_status hf__order_check(hf_store *store, const hf__claim *first, hf_lifetime lifetime,
                          bool *by_registry, hf_error *err)
{
    int64_t me = hf__me();
    struct hf_lock *held = *thread_list(store, me);
    while (held && held->owner != me)
        held = held->next_of_thread;
    *by_registry = held && compare_order(first, &held->last) < 0;
    int compared = held ? hf__compare_claims(first, &held->last) : 1;
    if (compared == 0 && (lifetime == HF_TRANSACTION || held->lifetime == HF_TRANSACTION))
        return refuse_own(first, err);
    if (compared >= 0)
        return HF_OK;
    if (*by_registry)
        return refuse_by_registry(first, &held->last, err);
    char wanted[200], has[200];
    hf_status status = hf__fail(
        err, HF_ORDER, "%s (key %lld) may not be waited for while the caller holds %s (key %lld)",
        hf__claim_name(wanted, sizeof wanted, first), (long long)first->key,
        hf__claim_name(has, sizeof has, &held->last), (long long)held->last.key);
    hf__hint(err, "take both as one set, take the smaller key first, try without waiting, or pass "
                  "HF_ANY_ORDER and bound the wait");
    return status;
}

void hf__order_add(hf_store *store, struct hf_lock *lock)
{
    struct hf_lock **head = thread_list(store, lock->owner), *previous = NULL, *at = *head;
    while (at && hf__compare_claims(&at->last, &lock->last) > 0) {
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
    int64_t me = hf__me();
    size_t count = 0, room = 0;
    *keys = NULL;
    for (struct hf_lock *held = *thread_list(store, me); held; held = held->next_of_thread) {
        if (held->owner != me)
            continue;
        if (!hf__grow(keys, &room, count + held->count, sizeof **keys))
            break;
        for (size_t i = 0; i < held->count; i++)
            (*keys)[count++] = (hf__key){held->grants[i].claim.key, held->grants[i].claim.space};
    }
    return count;
}
