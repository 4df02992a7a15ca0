/*
 * The registry: what locks.yaml says, checked and ready to be asked. It does not change once it
 * has been read, and any thread may ask it. What the functions return belongs to the registry,
 * unless they say otherwise.
 */
#ifndef HF_REGISTRY_REGISTRY_H
#define HF_REGISTRY_REGISTRY_H

#include "lib/patterns/patterns.h"
#include "lib/registry/finding.h"

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
    bool id_is_read; /* fixed or pair is a number that could be read */
    hf__place at, name_at, key_at, lifetime_at, lease_at, order_at, expected_at;
} hf__lock_entry;

/* One of wrappers: a function of the project that takes a lock, for lint. */
typedef struct hf__declared_wrapper {
    char *call;               /* "Serialize(ctx, {label})": one argument is in braces */
    hf_derivation derivation; /* HF_FIXED: the argument is the number itself */
    bool lifetime_given;
    hf_lifetime lifetime;
    hf__place at;
} hf__declared_wrapper;

#define HF__DEFAULT_MAX_RISK 0.01

typedef struct hf__conventions {
    bool operation_labels; /* label: "Operation:resource" */
    char *label;           /* as written, or NULL */
    int64_t min_fixed;     /* fixed ids nearer to 0 are too common; 1000 by default */
    char **generic;  /* labels that say nothing, NULL-terminated; a built-in list by default */
    double max_risk; /* HF__DEFAULT_MAX_RISK by default */
    hf__place at;
} hf__conventions;

struct hf_registry {
    char *path;
    hf__lock_entry *entries; /* in the order of the file */
    size_t count;
    hf__declared_wrapper *wrappers;
    size_t wrapper_count;
    hf__conventions conventions;
    hf_strictness strictness;
    struct hf__names *names; /* the entries by name and by fixed key */
};

/*
 * Reads as much as can be read, and adds a finding for every fault. *registry is the caller's to
 * free with hf_registry_free, or NULL when nothing could be read. Fails only when the system does
 * (no such file, no memory).
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
 * Finds what a label is: the entry of that name, or else the entry whose pattern it matches.
 * *second is another entry that it matches with another key, or NULL. *first is NULL when there is
 * none. Fails as hf__language_has.
 */
HF_MUST_CHECK hf_status hf__registry_match(const hf_registry *registry, const char *label,
                                           size_t size, const hf__lock_entry **first,
                                           const hf__lock_entry **second, hf_error *err);

/*
 * Computes the key of a label with the entry's derivation. Fails as hf_key_derive, also for
 * HF_MINTED: such keys are looked up.
 */
HF_MUST_CHECK hf_status hf__entry_key(const hf__lock_entry *entry, const char *label, size_t size,
                                      int64_t *key, hf_error *err);

static inline const hf__lock_entry *hf__entry_of(const hf_registry_entry *view)
{
    return (const hf__lock_entry *)(const void *)view; /* its first member */
}

/* Is it a number that is given, not computed? One that could not be read is none. */
static inline bool hf__entry_is_id(const hf__lock_entry *entry)
{
    return entry->view.derivation == HF_FIXED && !entry->view.pattern && entry->id_is_read;
}

/* Does the derivation give keys of 32 bits? Only such a key fits beside a class. */
static inline bool hf__has_32_bits(hf_derivation derivation)
{
    return derivation == HF_FNV1A32 || derivation == HF_FNV1A32_JS || derivation == HF_HASHTEXT ||
           derivation == HF_CRC32 || derivation == HF_JAVA_HASHCODE;
}

/* Is the hash of a label the second int4, beside a class that the entry gives? */
static inline bool hf__entry_has_class(const hf__lock_entry *entry)
{
    return entry->view.space == HF_PAIR && entry->view.derivation != HF_FIXED &&
           hf_derivation_space(entry->view.derivation) == HF_BIGINT;
}

/* Is it one of the labels that say nothing, such as "lock"? */
bool hf__registry_is_generic(const hf_registry *registry, const char *label, size_t size);

/*
 * A map from keys to the labels that the registry lets us know: those of every pattern whose
 * placeholders have few values. It does not change once it is built, and any thread may ask it.
 */
typedef struct hf__known hf__known;

/*
 * Leaves out patterns with too many labels. *known is the caller's to free, and must not outlive
 * the registry. Fails only without memory.
 */
HF_MUST_CHECK hf_status hf__known_build(const hf_registry *registry, hf__known **known,
                                        hf_error *err);
void hf__known_free(hf__known *known);

/*
 * The entry of which a label has this key, or NULL. *label lives as long as known, and is NULL when
 * several labels share the key.
 */
const hf__lock_entry *hf__known_find(const hf__known *known, hf_space space, int64_t key,
                                     const char **label);

/* Calls fn for each label that is the only one with its key. It lives as long as known. */
typedef void hf__known_fn(void *arg, const hf__lock_entry *entry, const char *label, int64_t key);
void hf__known_each(const hf__known *known, hf__known_fn *fn, void *arg);

/*
 * *entry is the one that the label matches with exactly this key, or NULL. Fails only without
 * memory.
 */
HF_MUST_CHECK hf_status hf__registry_owner(const hf_registry *registry, hf_space space, int64_t key,
                                           const char *label, size_t size,
                                           const hf__lock_entry **entry, hf_error *err);

#endif
