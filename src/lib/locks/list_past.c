/*
 * The keys of a semaphore's slots are recorded under its label (slots.c), so that collisions are found;
 * they are no locks of their own, and a list of what was locked leaves them out.
 */
#include "lib/locks/list.h"

#include <stdlib.h>
#include <string.h>

#include "lib/locks/engine.h"

/* What is in the history comes first: that is always the label's own key. */
static int by_label(const void *a, const void *b)
{
    const hf_lock_view *left = *(hf_lock_view *const *)a, *right = *(hf_lock_view *const *)b;
    int order = strcmp(left->label, right->label);
    if (order != 0)
        return order;
    if (left->times != right->times)
        return left->times > right->times ? -1 : 1;
    return left < right ? -1 : left > right;
}

static bool is_hidden(const hf_lock_list *list, const hf_lock_view *view)
{
    return list->hidden[view - list->views];
}

static void hide_key(hf_lock_list *list, hf_lock_view *const *group, size_t count, int64_t key)
{
    for (size_t i = 0; i < count; i++)
        if (group[i]->key == key && group[i]->space == HF_BIGINT)
            hf__lock_list_hide(list, group[i]);
}

/* The views have one label: those that are slots of another are hidden. */
static void hide_slots(hf_lock_list *list, hf_lock_view *const *group, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf__claim base = {.key = group[i]->key, .space = group[i]->space};
        if (is_hidden(list, group[i]))
            continue;
        for (unsigned slot = 1; slot <= HF_SLOTS_MAX; slot++)
            hide_key(list, group, count, hf__slot_key(&base, slot));
    }
}

hf_status hf__lock_list_drop_slots(hf_lock_list *list, hf_error *err)
{
    size_t end = 0;
    hf_lock_view **sorted = calloc(list->count ? list->count : 1, sizeof(hf_lock_view *));
    if (!sorted)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < list->count; i++)
        sorted[i] = &list->views[i];
    qsort((void *)sorted, list->count, sizeof(hf_lock_view *), by_label);
    for (size_t first = 0; first < list->count; first = end) {
        for (end = first + 1; end < list->count; end++)
            if (strcmp(sorted[end]->label, sorted[first]->label) != 0)
                break;
        if (end - first > 1 && sorted[first]->label[0])
            hide_slots(list, &sorted[first], end - first);
    }
    free((void *)sorted);
    hf__lock_list_compact(list);
    return HF_OK;
}
