#include "programs/registry/collisions.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum {
    SAMPLE = 10000,        /* labels of a pattern that is not enumerated */
    SAMPLES_MAX = 2000000, /* of all such patterns */
};

struct adding {
    struct hf__own_labels *own;
    const hf__lock_entry *entry;
    bool is_sample;
    uint64_t added;
    bool no_memory;
};

static bool add_label(void *arg, const char *label, size_t size)
{
    struct adding *adding = arg;
    struct hf__own_labels *own = adding->own;
    struct hf__own_label *item = NULL;
    int64_t key = 0;

    if (size == 0 || hf__entry_key(adding->entry, label, size, &key, NULL) != HF_OK)
        return true; /* a word that is no label, or that the derivation refuses, has no key */
    if (hf__grow(&own->items, &own->capacity, own->count + 1, sizeof *own->items))
        item = &own->items[own->count++];
    else
        adding->no_memory = true;
    if (item != NULL)
        *item = (struct hf__own_label){
            .entry = adding->entry,
            .at = own->text.length,
            .size = (uint32_t)size,
            .is_sample = adding->is_sample,
            .key = key,
        };
    hf__buf_add(&own->text, label, size);
    adding->no_memory = adding->no_memory || own->text.broken;
    adding->added++;
    return !adding->no_memory;
}

/* An id goes by its name. */
static hf_status add_id(struct hf__own_labels *own, const hf__lock_entry *entry, hf_error *err)
{
    struct adding adding = {.own = own, .entry = entry};

    (void)add_label(&adding, entry->view.name, strlen(entry->view.name));
    return adding.no_memory ? hf__no_memory(err) : HF_OK;
}

static hf_status add_words(struct hf__own_labels *own, const hf__lock_entry *entry, bool is_sample,
                           size_t most, bool *complete, hf_error *err)
{
    struct adding adding = {.own = own, .entry = entry, .is_sample = is_sample};
    size_t before = own->count, text_before = own->text.length;
    hf_status status = hf__language_words(entry->language, most, add_label, &adding, complete, err);

    if (status == HF_OK && adding.no_memory)
        status = hf__no_memory(err);
    if (status == HF_OK && !is_sample && !*complete) { /* half of the labels prove nothing */
        own->count = before;
        own->text.length = text_before;
    }
    return status;
}

static bool has_keys(const hf__lock_entry *entry)
{
    return entry->view.name != NULL && entry->language != NULL &&
           entry->view.derivation != HF_MINTED;
}

struct candidate {
    size_t index;
    uint64_t most;
};

static int fewest_first(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    if (a->most != b->most)
        return a->most < b->most ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static hf_status add_patterns(const hf_registry *registry, struct hf__own_labels *own,
                              const struct candidate *candidates, size_t count, hf_error *err)
{
    hf_status status = HF_OK;
    size_t left = HF__OWN_LABELS_MAX;

    for (size_t i = 0; status == HF_OK && i < count && candidates[i].most <= left; i++) {
        const hf__lock_entry *entry = &registry->entries[candidates[i].index];
        struct hf__own_count *counts = &own->counts[candidates[i].index];
        size_t before = own->count;
        status = add_words(own, entry, false, left, &counts->enumerated, err);
        counts->labels = own->count - before;
        left -= own->count - before;
    }
    return status;
}

static hf_status add_samples(const hf_registry *registry, struct hf__own_labels *own,
                             const struct candidate *candidates, size_t count, hf_error *err)
{
    hf_status status = HF_OK;
    size_t open = 0;
    bool complete = false;

    for (size_t i = 0; i < count; i++)
        open += own->counts[candidates[i].index].enumerated ? 0 : 1;
    size_t most = open > 0 && SAMPLES_MAX / open < SAMPLE ? SAMPLES_MAX / open : SAMPLE;
    for (size_t i = 0; status == HF_OK && own->count > 0 && i < count; i++)
        if (!own->counts[candidates[i].index].enumerated)
            status =
                add_words(own, &registry->entries[candidates[i].index], true, most, &complete, err);
    return status;
}

static hf_status list(const hf_registry *registry, bool samples, struct hf__own_labels *own,
                      struct candidate *candidates, hf_error *err)
{
    hf_status status = HF_OK;
    size_t count = 0;

    for (size_t i = 0; status == HF_OK && i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        if (hf__entry_is_id(entry) && entry->view.name != NULL) {
            own->counts[i] = (struct hf__own_count){.most = 1, .labels = 1, .enumerated = true};
            status = add_id(own, entry, err);
        } else if (has_keys(entry)) {
            own->counts[i].most = hf__language_most(entry->language);
            candidates[count++] = (struct candidate){i, own->counts[i].most};
        }
    }
    qsort(candidates, count, sizeof *candidates, fewest_first);
    if (status == HF_OK)
        status = add_patterns(registry, own, candidates, count, err);
    if (status == HF_OK && samples)
        status = add_samples(registry, own, candidates, count, err);
    return status;
}

hf_status hf__own_labels_list(const hf_registry *registry, bool samples, struct hf__own_labels *own,
                              hf_error *err)
{
    struct candidate *candidates = calloc(registry->count + 1, sizeof *candidates);

    *own = (struct hf__own_labels){0};
    own->counts = calloc(registry->count + 1, sizeof *own->counts);
    hf_status status = candidates != NULL && own->counts != NULL
                           ? list(registry, samples, own, candidates, err)
                           : hf__no_memory(err);
    free(candidates);
    return status;
}

void hf__own_labels_free(struct hf__own_labels *own)
{
    free(own->items);
    free(own->counts);
    hf__buf_free(&own->text);
    *own = (struct hf__own_labels){0};
}
