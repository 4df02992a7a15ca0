/* What a registry that can be read may still have wrong. */
#ifndef HF_AUDIT_CHECK_H
#define HF_AUDIT_CHECK_H

#include "lib/registry/registry.h"

/* Ended by one without an id. */
extern const hf__rule hf__check_rules[];

/* max_risk below 0: what the file's conventions say. */
HF_MUST_CHECK hf_status hf__check_registry(const hf_registry *registry, double max_risk,
                                           hf__findings *findings, hf_error *err);

#endif
