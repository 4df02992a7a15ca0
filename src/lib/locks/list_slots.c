/*
 * A semaphore uses several keys per holder (slots.c). People think of it as one lock, so the list
 * shows one row per holder, with its slot, and one per waiter, under the label's own key.
 */
#include "lib/locks/list.h"

#include <stdlib.h>
#include <string.h>

#include "lib/locks/engine.h"

struct place {
    int64_t key;
    size_t view;
};

struct index {
    struct place *places; /* by key; bigint space only, where all inner keys are */
    size_t count;
};

static int by_key(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return left->key < right->key ? -1 : left->key > right->key;
}

static size_t lower_bound(const struct index *index, int64_t key)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (index->places[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool contains(const struct index *index, int64_t key)
{
    size_t at = lower_bound(index, key);
    return at < index->count && index->places[at].key == key;
}

static bool same_owner(const hf_lock_view *a, const hf_lock_view *b)
{
    return a->backend_pid == b->backend_pid && a->pid == b->pid && strcmp(a->host, b->host) == 0;
}

/* The number of slots that the digits spell, 0 when this is no semaphore. */
static unsigned spelled_slots(const struct index *index, const hf__claim *base)
{
    unsigned slots = 0;
    for (unsigned place = 0; place < HF__SLOT_DIGITS; place++) {
        unsigned digit = 0;
        while (digit < HF__SLOT_BASE && !contains(index, hf__slot_digit_key(base, place, digit)))
            digit++;
        if (digit == HF__SLOT_BASE)
            return 0;
        slots += digit << (4 * place);
    }
    return slots;
}

typedef void visit_fn(hf_lock_list *list, hf_lock_view *view, const hf_lock_view *base,
                      unsigned number);

static void visit(hf_lock_list *list, const struct index *index, int64_t key,
                  const hf_lock_view *base, unsigned number, visit_fn *fn)
{
    for (size_t at = lower_bound(index, key); at < index->count && index->places[at].key == key;
         at++)
        fn(list, &list->views[index->places[at].view], base, number);
}

static void take_label(hf_lock_view *view, const hf_lock_view *base)
{
    char *label = strdup(base->label);
    if (!label || view->label[0]) {
        free(label);
        return;
    }
    free((void *)(uintptr_t)view->label);
    view->label = label;
}

static void show_slot(hf_lock_list *list, hf_lock_view *view, const hf_lock_view *base,
                      unsigned slot)
{
    (void)list;
    view->slot = slot;
    view->key = base->key;
    view->space = base->space;
    take_label(view, base);
}

/* Whoever is at the gate waits for a slot, the one who has passed it too. */
static void show_waiter(hf_lock_list *list, hf_lock_view *view, const hf_lock_view *base,
                        unsigned number)
{
    (void)list, (void)number;
    view->waiting = true;
    view->key = base->key;
    view->space = base->space;
    view->token = 0;
    take_label(view, base);
}

static void hide(hf_lock_list *list, hf_lock_view *view, const hf_lock_view *base, unsigned number)
{
    (void)base, (void)number;
    hf__lock_list_hide(list, view);
}

/* The label's own key is what marks a participant; its other rows say more. */
static void hide_base_rows(hf_lock_list *list, const hf_lock_view *base)
{
    hf_lock_view pattern = *base;
    for (size_t i = 0; i < list->count; i++) {
        hf_lock_view *row = &list->views[i];
        if (row->key != pattern.key || row->space != pattern.space || row->waiting ||
            row->mode != HF_SHARED)
            continue;
        for (size_t j = 0; j < list->count; j++) {
            const hf_lock_view *other = &list->views[j];
            if ((other->slot > 0 || (other->waiting && other->key == pattern.key)) &&
                same_owner(row, other)) {
                hf__lock_list_hide(list, row);
                break;
            }
        }
    }
}

static void fold_semaphore(hf_lock_list *list, const struct index *index, const hf_lock_view *base,
                           unsigned slots)
{
    hf__claim claim = {.key = base->key, .space = base->space};
    for (unsigned slot = 1; slot <= slots; slot++)
        visit(list, index, hf__slot_key(&claim, slot), base, slot, show_slot);
    visit(list, index, hf__slot_gate_key(&claim), base, 0, show_waiter);
    for (unsigned place = 0; place < HF__SLOT_DIGITS; place++)
        for (unsigned digit = 0; digit < HF__SLOT_BASE; digit++)
            visit(list, index, hf__slot_digit_key(&claim, place, digit), base, 0, hide);
    hide_base_rows(list, base);
}

static bool build_index(const hf_lock_list *list, struct index *index)
{
    index->places = calloc(list->count ? list->count : 1, sizeof *index->places);
    if (!index->places)
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->views[i].space == HF_BIGINT)
            index->places[index->count++] = (struct place){list->views[i].key, i};
    qsort(index->places, index->count, sizeof *index->places, by_key);
    return true;
}

hf_status hf__lock_list_fold_slots(hf_lock_list *list, hf_error *err)
{
    struct index index = {0};
    if (!build_index(list, &index))
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < list->count; i++) {
        const hf_lock_view *view = &list->views[i];
        hf__claim base = {.key = view->key, .space = view->space};
        bool candidate = view->mode == HF_SHARED && !view->waiting && !view->slot;
        bool first = i == 0 || list->views[i - 1].key != view->key ||
                     list->views[i - 1].space != view->space;
        unsigned slots = candidate && first ? spelled_slots(&index, &base) : 0;
        if (slots > 0)
            fold_semaphore(list, &index, view, slots);
    }
    free(index.places);
    hf__lock_list_compact(list);
    return HF_OK;
}
