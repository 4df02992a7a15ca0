/*
 * The labels that a registry itself tells: fixed ids, labels without placeholders, and every label
 * of a pattern that has an end. Their keys can be compared one by one instead of by odds.
 */
#ifndef HF_PROGRAMS_REGISTRY_OWN_LABELS_H
#define HF_PROGRAMS_REGISTRY_OWN_LABELS_H

#include "base/text.h"
#include "lib/registry/registry.h"

enum { HF__OWN_LABELS_MAX = 2000000 }; /* of all patterns together; the smallest come first */

struct hf__own_label {
    const hf__lock_entry *entry;
    size_t at; /* in text */
    uint32_t size;
    bool is_sample; /* of a pattern that is not enumerated */
    int64_t key;
};

/* What became of one entry. */
struct hf__own_count {
    uint64_t most;   /* no more labels than this; UINT64_MAX: without end, or beyond counting */
    uint64_t labels; /* that have a key, if it is enumerated */
    bool enumerated;
};

/* Points into the registry. */
struct hf__own_labels {
    struct hf__own_label *items;
    size_t count, capacity;
    hf__buf text;
    struct hf__own_count *counts; /* for each entry of the registry */
};

/*
 * With `samples`, adds the first labels of patterns that are not enumerated. Fails only without
 * memory. The caller frees it, in any case.
 */
HF_MUST_CHECK hf_status hf__own_labels_list(const hf_registry *registry, bool samples,
                                            struct hf__own_labels *own, hf_error *err);
void hf__own_labels_free(struct hf__own_labels *own);

static inline hf__slice hf__own_text(const struct hf__own_labels *own, size_t index)
{
    const struct hf__own_label *label = &own->items[index];

    return (hf__slice){own->text.data + label->at, label->size};
}

#endif
