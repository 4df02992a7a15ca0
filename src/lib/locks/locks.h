/* What an acquire may take along to the store, so that one message does. */
#ifndef HF_LOCK_EXTRA_H
#define HF_LOCK_EXTRA_H

#include "lib/backend/backend.h"

typedef struct hf__lock_extra {
    hf_lock *beside; /* HF_PRIVATE both: on the same session, where the store has sessions */
    hf__rider *riders;
    size_t rider_count;
} hf__lock_extra;

/* hf_lock_acquire; extra may be NULL. The riders' rows are the caller's, whatever the outcome. */
HF_MUST_CHECK hf_status hf__lock_acquire_with(hf_store *store, const hf_lock_spec *spec,
                                              const hf__lock_extra *extra, hf_lock **lock,
                                              hf_error *err);

#endif
