#include "programs/registry/sightings.h"

#include <stdlib.h>

#include "base/error.h"

struct piece {
    const hf_lock_view *view;
    bool live;
};

static size_t count_of(const hf_lock_list *list)
{
    return list != NULL ? hf_lock_list_count(list) : 0;
}

/* Of one key those who have it now come first. */
static int by_key(const void *a, const void *b)
{
    const struct piece *left = a, *right = b;

    if (left->view->space != right->view->space)
        return left->view->space < right->view->space ? -1 : 1;
    if (left->view->key != right->view->key)
        return left->view->key < right->view->key ? -1 : 1;
    return right->live - left->live;
}

static bool is_same_key(const hf_lock_view *a, const hf_lock_view *b)
{
    return a->key == b->key && a->space == b->space;
}

static struct piece *gather(const struct sightings *sightings, size_t *count)
{
    size_t live = count_of(sightings->live), past = count_of(sightings->past);
    struct piece *pieces = calloc(live + past + 1, sizeof *pieces);

    if (pieces == NULL)
        return NULL;
    for (size_t i = 0; i < live; i++)
        pieces[i] = (struct piece){hf_lock_list_at(sightings->live, i), true};
    for (size_t i = 0; i < past; i++)
        pieces[live + i] = (struct piece){hf_lock_list_at(sightings->past, i), false};
    *count = live + past;
    qsort(pieces, *count, sizeof *pieces, by_key);
    return pieces;
}

static void add_piece(struct sighting *to, const struct piece *piece, const hf_registry *registry,
                      bool lifetimes_count)
{
    const hf_lock_view *view = piece->view;

    to->times += view->times;
    if (to->label[0] == '\0')
        to->label = view->label;
    if (to->view->application[0] == '\0')
        to->view = view;
    if (to->entry == NULL && view->name[0] != '\0')
        to->entry = hf_registry_find(registry, view->name);
    if (lifetimes_count && to->entry != NULL && to->entry->lifetime_given && view->session_known &&
        view->lifetime != to->entry->lifetime)
        to->wrong_lifetime = true;
}

static void combine(struct sightings *sightings, const struct piece *pieces, size_t count,
                    const hf_registry *registry, bool lifetimes_count)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !is_same_key(pieces[i].view, pieces[i - 1].view))
            sightings->items[sightings->count++] = (struct sighting){
                .view = pieces[i].view,
                .label = "",
                .held = pieces[i].live,
                .seen_ms = pieces[i].view->seen_ms,
            };
        add_piece(&sightings->items[sightings->count - 1], &pieces[i], registry, lifetimes_count);
    }
}

static void mark_used(struct sightings *sightings, const hf_registry *registry)
{
    for (size_t i = 0; i < sightings->count; i++)
        for (size_t j = 0; j < hf_registry_count(registry); j++)
            if (hf_registry_at(registry, j) == sightings->items[i].entry)
                sightings->used[j] = true;
}

hf_status read_sightings(hf_store *store, const hf_registry *registry, int64_t since_ms,
                         struct sightings *out, hf_error *err)
{
    struct piece *pieces = NULL;
    size_t count = 0;
    hf_status status = hf_lock_list_read(store, &out->live, err);

    if (status == HF_OK && hf_store_has_records(store))
        status = hf_lock_list_read_past(store, since_ms, &out->past, err);
    if (status != HF_OK)
        return status;
    pieces = gather(out, &count);
    out->items = calloc(count + 1, sizeof *out->items);
    out->used = calloc(hf_registry_count(registry) + 1, sizeof *out->used);
    if (pieces == NULL || out->items == NULL || out->used == NULL) {
        free(pieces);
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    }
    /* On the local store transactions hold their labels by session locks: a lifetime says nothing. */
    combine(out, pieces, count, registry, !hf_store_is_local(store));
    mark_used(out, registry);
    free(pieces);
    return HF_OK;
}

bool knows_the_past(const struct sightings *sightings)
{
    return count_of(sightings->past) > 0;
}

void sightings_free(struct sightings *sightings)
{
    hf_lock_list_free(sightings->live);
    hf_lock_list_free(sightings->past);
    free(sightings->items);
    free(sightings->used);
    *sightings = (struct sightings){0};
}
