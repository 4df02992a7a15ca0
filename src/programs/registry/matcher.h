#ifndef HF_PROGRAMS_REGISTRY_MATCHER_H
#define HF_PROGRAMS_REGISTRY_MATCHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "lib/registry/registry.h"

/* Finds the entry of each of very many labels: hf_registry_resolve with an index. */

typedef struct hf__matcher hf__matcher;

/* The registry must outlive the matcher, which the caller frees. Any thread may ask it. */
HF_MUST_CHECK hf_status hf__matcher_new(const hf_registry *registry, hf__matcher **matcher,
                                        hf_error *err);
void hf__matcher_free(hf__matcher *matcher);

/* Answers and fails like hf_registry_resolve. size must not be 0. */
HF_MUST_CHECK hf_status hf__matcher_resolve(const hf__matcher *matcher, const char *label,
                                            size_t size, hf_target *target,
                                            const hf_registry_entry **entry, hf_error *err);

/* Compares bytes like memcmp; of two texts that begin alike the shorter comes first. */
int hf__compare_text(hf__slice a, hf__slice b);

/* A key, and the place that it comes from. */

typedef struct hf__keyed {
    uint64_t key;
    uint64_t place;
} hf__keyed;

/*
 * By key, in place and without further memory; of equal keys in any order. Fast for keys that
 * spread over the high bits.
 */
void hf__keyed_sort(hf__keyed *items, size_t count);

#endif
