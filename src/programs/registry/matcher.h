/* Which entry a label belongs to, for very many labels: hf_registry_resolve with an index. */
#ifndef HF_AUDIT_MATCHER_H
#define HF_AUDIT_MATCHER_H

#include "lib/registry/registry.h"

typedef struct hf__matcher hf__matcher;

/* The registry must outlive it. */
HF_MUST_CHECK hf_status hf__matcher_new(const hf_registry *registry, hf__matcher **matcher,
                                        hf_error *err);
void hf__matcher_free(hf__matcher *matcher);

/* The answer and the failures of hf_registry_resolve; size is never 0. */
HF_MUST_CHECK hf_status hf__matcher_resolve(const hf__matcher *matcher, const char *label,
                                            size_t size, hf_target *target,
                                            const hf_registry_entry **entry, hf_error *err);

#endif
