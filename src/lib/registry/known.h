/*
 * Whose key is it? By the label where one is recorded, else by what the registry lets know: every label
 * of a pattern whose placeholders have few values. A map of these is built once; any thread may ask it.
 */
#ifndef HF_REGISTRY_KNOWN_H
#define HF_REGISTRY_KNOWN_H

#include "lib/registry/registry.h"

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
