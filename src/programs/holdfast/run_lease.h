#ifndef HF_PROGRAMS_HOLDFAST_RUN_LEASE_H
#define HF_PROGRAMS_HOLDFAST_RUN_LEASE_H

#include "cli/command.h"
#include "programs/holdfast/supervise.h"

/* Of the lease that an option, or the lock's entry (may be NULL), asks for, in ms; 0: none does. */
int lease_length(const struct number *given, const hf_registry_entry *entry);

struct lease_acquire {
    struct signals signals;
    int interrupted_by; /* the signal that must end us visibly, or 0 */
};

/*
 * hf_lock_acquire for a lease. A signal would leave one behind that is just being granted, until
 * its time is over: so it ends the acquire, and what was granted is given back. Then the status is
 * HF_INTERRUPTED, and interrupted_by has the signal. Signals stay caught.
 */
HF_MUST_CHECK hf_status acquire_lease(hf_store *store, struct lease_acquire *acquire,
                                      hf_lock_spec *spec, hf_lock **lock, hf_error *err);

#endif
