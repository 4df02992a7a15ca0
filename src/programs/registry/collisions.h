/* Real collisions in a list of labels: different labels that lock each other out. */
#ifndef HF_AUDIT_COLLISIONS_H
#define HF_AUDIT_COLLISIONS_H

#include "lib/registry/registry.h"

/* One label a line; empty lines do not count, nor does a carriage return at the end of one. */
struct hf__label_list {
    const char *name; /* of the file, for messages */
    const char *text;
    size_t size;
    char separator; /* '\n', or '\0' for lists that find and xargs know */
};

/* One of the labels that share a key. */
struct hf__collider {
    const char *label; /* not NUL-terminated */
    size_t size;
    uint64_t line;               /* where it stands first; 0: only the registry has it */
    uint64_t times;              /* how often the list has it */
    const hf__lock_entry *entry; /* that the registry has under this very label or id, or NULL */
};

struct hf__collision {
    int64_t key; /* in HF_PAIR the class in the high half */
    hf_space space;
    size_t count; /* of different labels */
    struct hf__collider
        *colliders; /* at most HF__COLLIDERS_MAX of them, the first ones of the file */
    size_t kept;
};

enum { HF__COLLISIONS_MAX = 1000, HF__COLLIDERS_MAX = 100 };

/* Points into the list and the registry. */
struct hf__collisions {
    uint64_t labels;
    uint64_t duplicates;         /* of these, as often as they are repeated */
    uint64_t minted;             /* of these, whose keys are not computed */
    uint64_t count;              /* keys that different labels share */
    struct hf__collision *items; /* at most HF__COLLISIONS_MAX of them, by line */
    size_t kept;
};

/*
 * Derives each label as `as` says, else as the registry says, else (registry NULL or ignorant of it) by
 * the default. Fixed ids and labels of the registry take part. Takes 16 bytes for each label beside
 * the list. HF_BAD_DATA names the line of a label that cannot be one.
 */
HF_MUST_CHECK hf_status hf__collisions_find(const struct hf__label_list *list,
                                            const hf_registry *registry, const hf_derivation *as,
                                            struct hf__collisions *collisions, hf_error *err);
void hf__collisions_free(struct hf__collisions *collisions);

#endif
