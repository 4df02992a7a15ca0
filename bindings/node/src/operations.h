/* What operations share: targets and specs as JavaScript sends them. */
#ifndef HOLDFAST_NODE_OPERATIONS_H
#define HOLDFAST_NODE_OPERATIONS_H

#include "calls.h"

enum {
    /* event, mode, wait_ms, flags, slots, owner, wants_wait, lease_ms, wants_asks */
    HFN_SPEC_NUMBERS = 9,
    HFN_TARGET_NUMBERS = 5, /* derivation, space, key, pair[0], pair[1]; its text is the label */
};

/* A number for a call that gave none: above those that callers are told to use. */
int64_t hfn_fresh_owner(void);

/* Those behind the first `numbers` and `texts`, one text for each. The call owns *targets. */
hf_status hfn_read_targets(struct hfn_call *call, size_t numbers, size_t texts, hf_target **targets,
                           size_t *count);

/* From the first numbers; its callbacks tell JavaScript. handles[1] cancels. traceparent is a text. */
void hfn_read_spec(struct hfn_call *call, size_t traceparent, hf_lock_spec *spec);

/* Ends the call that hfn_read_spec was for. */
void hfn_lock_ended(hf_lock *lock, hf_status status, const hf_error *why, void *arg);

#endif
