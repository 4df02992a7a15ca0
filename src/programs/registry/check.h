/* What may be wrong with a registry that can be read. */
#ifndef HF_PROGRAMS_REGISTRY_CHECK_H
#define HF_PROGRAMS_REGISTRY_CHECK_H

#include "lib/registry/registry.h"

/* The rules of the check; the last one has no id. */
extern const hf__rule hf__check_rules[];

/*
 * Adds what is wrong to findings, and sorts them. A max_risk below 0 means that of the registry's
 * conventions. Fails only for want of memory: what it finds is no failure.
 */
HF_MUST_CHECK hf_status hf__check_registry(const hf_registry *registry, double max_risk,
                                           hf__findings *findings, hf_error *err);

#endif
