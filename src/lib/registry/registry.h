#ifndef HF_REGISTRY_REGISTRY_H
#define HF_REGISTRY_REGISTRY_H

#include "lib/patterns/patterns.h"
#include "lib/registry/finding.h"

/*
 * The registry: what locks.yaml says, checked and ready to be asked. Immutable once read; any thread
 * may ask it.
 */

typedef struct hf__place {
    unsigned line; /* from 1; 0: not given */
    unsigned column;
} hf__place;

typedef struct hf__placeholder {
    char *name;
    char *regex;   /* as written; NULL: the default, anything but ':' */
    char **values; /* written as a list instead of an expression; NULL otherwise */
    size_t value_count;
    hf__language *language;
    hf__place at;
} hf__placeholder;

typedef struct hf__source_file {
    char *path; /* as written: relative to the folder of the registry */
    hf__place at;
} hf__source_file;

/* One entry of locks:, and where each part of it stands. */
typedef struct hf__lock_entry {
    hf_registry_entry view;        /* strings are owned by the entry */
    hf__placeholder *placeholders; /* in the order of the pattern */
    size_t placeholder_count;
    hf__language *language; /* of the whole pattern; NULL without one */
    char *literal_prefix;   /* what every label of the pattern begins with */
    size_t literal_prefix_size;
    hf__source_file *sources;
    size_t source_count;
    size_t source_room;
    hf__place at, name_at, key_at, lifetime_at, order_at, expected_at;
} hf__lock_entry;

typedef struct hf__conventions {
    bool operation_labels; /* label: "Operation:resource" */
    char *label;           /* as written, or NULL */
    int64_t min_fixed;     /* fixed ids below it (and above its negative) are too common; 1000 */
    char **generic;  /* labels that say nothing; NULL-terminated; the built-in list by default */
    double max_risk; /* 0.01 */
    hf__place at;
} hf__conventions;

struct hf_registry {
    char *path;
    hf__lock_entry *entries; /* in the order of the file */
    size_t count;
    hf__conventions conventions;
    struct hf__names *names; /* by name and by fixed key: see names.c */
};

/*
 * Reads as much as can be read and reports every fault; *registry is NULL when nothing could be.
 * Returns HF_OK unless the system failed (no such file, no memory): faults are findings.
 */
HF_MUST_CHECK hf_status hf__registry_examine(const char *path, hf_registry **registry,
                                             hf__findings *findings, hf_error *err);

/* The same from memory; path is for messages. */
HF_MUST_CHECK hf_status hf__registry_examine_text(const char *path, const char *text, size_t size,
                                                  hf_registry **registry, hf__findings *findings,
                                                  hf_error *err);

/* The entry with this fixed key (for a pair: the first int4 in the high half), or NULL. */
const hf__lock_entry *hf__registry_by_key(const hf_registry *registry, hf_space space, int64_t key);
const hf__lock_entry *hf__registry_by_name(const hf_registry *registry, const char *name,
                                           size_t size);

/*
 * What a label is: the entry of that name, else the entries whose pattern it matches. *second is a
 * further entry that it matches under another key, or NULL.
 */
HF_MUST_CHECK hf_status hf__registry_match(const hf_registry *registry, const char *label,
                                           size_t size, const hf__lock_entry **first,
                                           const hf__lock_entry **second, hf_error *err);

/* The key of a label under the entry's derivation. HF_MINTED fails: such keys are not computed. */
HF_MUST_CHECK hf_status hf__entry_key(const hf__lock_entry *entry, const char *label, size_t size,
                                      int64_t *key, hf_error *err);

static inline const hf__lock_entry *hf__entry_of(const hf_registry_entry *view)
{
    return (const hf__lock_entry *)(const void *)view; /* its first member */
}

bool hf__registry_is_generic(const hf_registry *registry, const char *label, size_t size);

/*
 * Whose key is it? By the label where one is recorded, else by what the registry lets know: every label
 * of a pattern whose placeholders have few values. A map of these is built once; any thread may ask it.
 */

typedef struct hf__known hf__known;

/* Patterns with too many labels, or endlessly many, are left out. */
HF_MUST_CHECK hf_status hf__known_build(const hf_registry *registry, hf__known **known,
                                        hf_error *err);
void hf__known_free(hf__known *known);

/*
 * The entry one of whose labels has this key, or NULL. *label lives as long as known, and is NULL when
 * several labels share the key.
 */
const hf__lock_entry *hf__known_find(const hf__known *known, hf_space space, int64_t key,
                                     const char **label);

/* *entry is the one that label matches with exactly this key, or NULL. */
HF_MUST_CHECK hf_status hf__registry_owner(const hf_registry *registry, hf_space space, int64_t key,
                                           const char *label, size_t size,
                                           const hf__lock_entry **entry, hf_error *err);

#endif
