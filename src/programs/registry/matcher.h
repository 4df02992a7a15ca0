#ifndef HF_AUDIT_MATCHER_H
#define HF_AUDIT_MATCHER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/registry/registry.h"

/* Which entry a label belongs to, for very many labels: hf_registry_resolve with an index. */

typedef struct hf__matcher hf__matcher;

/* The registry must outlive it. */
HF_MUST_CHECK hf_status hf__matcher_new(const hf_registry *registry, hf__matcher **matcher,
                                        hf_error *err);
void hf__matcher_free(hf__matcher *matcher);

/* The answer and the failures of hf_registry_resolve; size is never 0. */
HF_MUST_CHECK hf_status hf__matcher_resolve(const hf__matcher *matcher, const char *label,
                                            size_t size, hf_target *target,
                                            const hf_registry_entry **entry, hf_error *err);

/* Many keys, each with the place that it comes from. */

typedef struct hf__keyed {
    uint64_t key;
    uint64_t place;
} hf__keyed;

/* By key, in place and without further memory; of equal keys in any order. Fast for keys that spread
 * over the high bits. */
void hf__keyed_sort(hf__keyed *items, size_t count);

#endif
