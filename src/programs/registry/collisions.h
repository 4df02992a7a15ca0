/* Finds different labels of a list that get the same key, and so lock each other out. */
#ifndef HF_PROGRAMS_REGISTRY_COLLISIONS_H
#define HF_PROGRAMS_REGISTRY_COLLISIONS_H

#include "programs/registry/own_labels.h"

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
