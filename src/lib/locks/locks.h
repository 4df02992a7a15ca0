#ifndef HF_LOCK_EXTRA_H
#define HF_LOCK_EXTRA_H

#include "holdfast/holdfast.h"
#include "lib/backend/backend.h"
#include "lib/registry/registry.h"

/* What an acquire may take along to the store, so that one message does. */

typedef struct hf__lock_extra {
    hf_lock *beside; /* HF_PRIVATE both: on the same session, where the store has sessions */
    hf__rider *riders;
    size_t rider_count;
} hf__lock_extra;

/* hf_lock_acquire; extra may be NULL. The riders' rows are the caller's, whatever the outcome. */
HF_MUST_CHECK hf_status hf__lock_acquire_with(hf_store *store, const hf_lock_spec *spec,
                                              const hf__lock_extra *extra, hf_lock **lock,
                                              hf_error *err);

struct hf_lock_list {
    hf_lock_view *views; /* strings are owned */
    bool *hidden;
    size_t count;
    size_t view_room, hidden_room;
};

/* hf_lock_list_read on a connection of the caller's, inside of its transaction; NULL: the store's. */
HF_MUST_CHECK hf_status hf__lock_list_read_on(hf_store *store, struct pg_conn *conn,
                                              hf_lock_list **list, hf_error *err);

void hf__lock_list_hide(hf_lock_list *list, const hf_lock_view *view);
void hf__lock_list_compact(hf_lock_list *list); /* drops what is hidden */

/* Makes one row of the many keys that a holder of a semaphore has. */
HF_MUST_CHECK hf_status hf__lock_list_fold_slots(hf_lock_list *list, hf_error *err);

/* list_past.c: drops the keys of slots, which are recorded under the label of their semaphore. */
HF_MUST_CHECK hf_status hf__lock_list_drop_slots(hf_lock_list *list, hf_error *err);

/* name_views.c: fills name and pattern, and labels that the registry knows. */
HF_MUST_CHECK hf_status hf__lock_list_name(hf_store *store, hf_lock_list *list, hf_error *err);
/*
 * The registry's entry for the key and the label (or "") of a view; NULL: it knows none. *label is what
 * a key without one turned out to stand for, or NULL; it lives as the store.
 */
HF_MUST_CHECK hf_status hf__lock_owner(hf_store *store, const hf_lock_view *view,
                                       const hf__lock_entry **entry, const char **label,
                                       hf_error *err);

#endif
