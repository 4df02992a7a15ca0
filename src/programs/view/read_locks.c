/* The rows of the list by lock: holders, then waiters, the oldest first. */
#include "programs/view/parts.h"

#include <stdlib.h>
#include <string.h>

static int compare_numbers(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_key(const void *a, const void *b)
{
    const hf_lock_view *left = *(const hf_lock_view *const *)a,
                       *right = *(const hf_lock_view *const *)b;
    int order = compare_numbers(left->space, right->space);
    if (order == 0)
        order = compare_numbers(left->key, right->key);
    if (order == 0)
        order = compare_numbers(left->waiting, right->waiting);
    if (order == 0)
        order = compare_numbers(right->age_ms, left->age_ms);
    return order ? order : compare_numbers(left->backend_pid, right->backend_pid);
}

static int by_need(const void *a, const void *b)
{
    const hf__seen_lock *left = a, *right = b;
    int order = compare_numbers(right->waiters > 0, left->waiters > 0);
    if (order == 0)
        order = compare_numbers(right->longest_wait_ms, left->longest_wait_ms);
    if (order == 0)
        order = compare_numbers(right->held_ms, left->held_ms);
    if (order == 0)
        order = compare_numbers(left->space, right->space);
    return order ? order : compare_numbers(left->key, right->key);
}

static void add_view(hf__seen_lock *lock, const hf_lock_view *view)
{
    lock->count++;
    if (!lock->label[0])
        lock->label = view->label;
    if (!lock->name[0])
        lock->name = view->name;
    if (view->waiting) {
        lock->waiters++;
        if (view->age_ms > lock->longest_wait_ms)
            lock->longest_wait_ms = view->age_ms;
        if (lock->longest_wait_ms < 0)
            lock->longest_wait_ms = 0;
        return;
    }
    lock->holders++;
    if (view->age_ms > lock->held_ms) {
        lock->held_ms = view->age_ms;
        lock->held_is_bound = view->age_is_bound;
    }
}

static bool is_of(const hf__seen_lock *lock, const hf_lock_view *view)
{
    return lock->key == view->key && lock->space == view->space;
}

static void group(hf__snapshot *seen)
{
    for (size_t i = 0; i < seen->view_count; i++) {
        const hf_lock_view *view = seen->views[i];
        if (i == 0 || !is_of(&seen->locks[seen->lock_count - 1], view))
            seen->locks[seen->lock_count++] = (hf__seen_lock){
                .key = view->key,
                .space = view->space,
                .label = "",
                .name = "",
                .first = i,
                .held_ms = -1,
                .longest_wait_ms = -1,
            };
        add_view(&seen->locks[seen->lock_count - 1], view);
    }
}

static void name(hf__snapshot *seen)
{
    for (size_t i = 0; i < seen->lock_count; i++) {
        hf__seen_lock *lock = &seen->locks[i];
        if (lock->name[0] && seen->registry)
            lock->entry = hf_registry_find(seen->registry, lock->name);
        if (!lock->label[0])
            lock->label = lock->name;
    }
}

/* The rows stand in the order of their locks. */
static void order_views(hf__draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    size_t at = 0;
    const hf_lock_view **views =
        hf__arena_array(&draft->arena, seen->view_count, sizeof(hf_lock_view *));
    if (!views)
        return;
    for (size_t i = 0; i < seen->lock_count; i++) {
        hf__seen_lock *lock = &seen->locks[i];
        memcpy(&views[at], &seen->views[lock->first], lock->count * sizeof(hf_lock_view *));
        lock->first = at;
        at += lock->count;
    }
    seen->views = views;
}

/* ---- by key -------------------------------------------------------------------------------------- */

struct hf__lock_place {
    hf_space space;
    int64_t key;
    size_t lock;
};

static int compare_places(const void *a, const void *b)
{
    const struct hf__lock_place *left = a, *right = b;
    int order = compare_numbers(left->space, right->space);
    return order ? order : compare_numbers(left->key, right->key);
}

static void index_locks(hf__draft *draft)
{
    const hf__snapshot *seen = &draft->seen;
    draft->by_key = hf__arena_array(&draft->arena, seen->lock_count, sizeof *draft->by_key);
    if (!draft->by_key)
        return;
    for (size_t i = 0; i < seen->lock_count; i++)
        draft->by_key[i] = (struct hf__lock_place){seen->locks[i].space, seen->locks[i].key, i};
    qsort(draft->by_key, seen->lock_count, sizeof *draft->by_key, compare_places);
}

size_t hf__locks_find(const hf__draft *draft, hf_space space, int64_t key)
{
    const struct hf__lock_place wanted = {.space = space, .key = key};
    const struct hf__lock_place *found =
        draft->by_key ? bsearch(&wanted, draft->by_key, draft->seen.lock_count,
                                sizeof *draft->by_key, compare_places)
                      : NULL;
    return found ? found->lock : SIZE_MAX;
}

static void count(hf__snapshot *seen)
{
    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        seen->held += lock->holders > 0;
        seen->waiting += lock->waiters;
        seen->unregistered += !lock->entry;
        if (lock->longest_wait_ms > seen->longest_wait_ms)
            seen->longest_wait_ms = lock->longest_wait_ms;
    }
}

void hf__locks_sort(hf__draft *draft, hf_lock_list *list, const hf_registry *registry)
{
    hf__snapshot *seen = &draft->seen;
    size_t size = hf_lock_list_count(list);
    seen->list = list;
    seen->registry = registry;
    seen->views = hf__arena_array(&draft->arena, size, sizeof(hf_lock_view *));
    seen->locks = hf__arena_array(&draft->arena, size, sizeof *seen->locks);
    if (!seen->views || !seen->locks)
        return;
    seen->view_count = size;
    for (size_t i = 0; i < size; i++)
        seen->views[i] = hf_lock_list_at(list, i);
    qsort(seen->views, size, sizeof(hf_lock_view *), by_key);
    group(seen);
    name(seen);
    qsort(seen->locks, seen->lock_count, sizeof *seen->locks, by_need);
    order_views(draft);
    index_locks(draft);
    count(seen);
}
