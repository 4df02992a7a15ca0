/* Finds different labels of a list that get the same key, and so lock each other out. */
#ifndef HF_PROGRAMS_REGISTRY_COLLISIONS_H
#define HF_PROGRAMS_REGISTRY_COLLISIONS_H

#include "base/text.h"
#include "lib/registry/registry.h"

/*
 * The labels that a registry itself tells: fixed ids, labels without placeholders, and every label
 * of a pattern that has an end. Their keys can be compared one by one instead of by odds.
 */

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

/* One label a line. Empty lines do not count, nor do carriage returns at the end of a line. */
struct hf__label_list {
    const char *name; /* of the file, for messages */
    const char *text;
    size_t size;
    char separator; /* '\n', or '\0' as find -print0 writes it */
};

/* One of the labels that share a key. */
struct hf__collider {
    const char *label; /* not NUL-terminated */
    size_t size;
    uint64_t line;               /* the first that has it; 0: only the registry does */
    uint64_t times;              /* how often the list has it */
    const hf__lock_entry *entry; /* of the registry, for this label or id; NULL: none */
    bool is_sample;              /* of a pattern that is not enumerated */
};

struct hf__collision {
    int64_t key; /* in HF_PAIR the class in the high half */
    hf_space space;
    size_t count;                   /* of different labels */
    struct hf__collider *colliders; /* the first HF__COLLIDERS_MAX of them in the file */
    size_t kept;
};

enum { HF__COLLISIONS_MAX = 1000, /* of a list */ HF__COLLIDERS_MAX = 100 };

/* Points into the list and the registry. */
struct hf__collisions {
    uint64_t labels;
    uint64_t duplicates;         /* of these, repeat another one */
    uint64_t minted;             /* of these, have keys that are not computed */
    uint64_t count;              /* keys that different labels share */
    struct hf__collision *items; /* the first ones, by line */
    size_t kept, capacity;
};

/*
 * Derives each label as `as` says, else as the registry says, else (registry is NULL or does not
 * know the label) by the default. The registry's own labels (NULL: none) take part. Needs 16 bytes
 * for each label besides the list. Returns HF_BAD_DATA, with the line, for text that cannot be a
 * label. The caller frees the collisions, which point into all that was given.
 */
HF_MUST_CHECK hf_status hf__collisions_find(const struct hf__label_list *list,
                                            const hf_registry *registry,
                                            const struct hf__own_labels *own,
                                            const hf_derivation *as,
                                            struct hf__collisions *collisions, hf_error *err);

/*
 * Finds different labels and ids of a registry that get the same key. Samples count only where
 * they meet what is no sample.
 */
HF_MUST_CHECK hf_status hf__collisions_among(const struct hf__own_labels *own,
                                             struct hf__collisions *collisions, hf_error *err);
void hf__collisions_free(struct hf__collisions *collisions);

#endif
