/* What may be wrong with a registry that can be read. */
#ifndef HF_PROGRAMS_REGISTRY_CHECK_H
#define HF_PROGRAMS_REGISTRY_CHECK_H

#include "lib/registry/registry.h"

/* The rules of the check; the last one has no id. */
extern const hf__rule hf__check_rules[];

/* Which keys the check has compared one by one, and how likely the others meet. */
struct hf__compared {
    uint64_t keys;
    size_t not_enumerated; /* patterns with more labels than can be compared */
    size_t unknown;        /* of these, say nothing of how many they expect */
    double probability;    /* that two locks share a key, as far as it is known */
};

/*
 * Adds what is wrong to findings, and sorts them. A max_risk below 0 means that of the registry's
 * conventions; compared may be NULL. Fails only for want of memory: what it finds is no failure.
 */
HF_MUST_CHECK hf_status hf__check_registry(const hf_registry *registry, double max_risk,
                                           hf__findings *findings, struct hf__compared *compared,
                                           hf_error *err);

#endif
