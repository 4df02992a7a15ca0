#ifndef HF_LOCKS_LOCKS_H
#define HF_LOCKS_LOCKS_H

#include "holdfast/holdfast.h"
#include "lib/backend/backend.h"
#include "lib/registry/registry.h"

/* The front door of the lock engine: what rooms above it may use besides the public header. */

/* What an acquire may take along to the store, so that one message does. */
typedef struct hf__lock_extra {
    hf_lock *on; /* HF_PRIVATE both: on its session, where the store has sessions */
    hf__question *const *questions; /* those that could not be asked on the way have no rows */
    size_t question_count;
} hf__lock_extra;

/*
 * hf_lock_acquire; extra may be NULL. The questions' rows are the caller's, whatever the outcome.
 */
HF_MUST_CHECK hf_status hf__lock_acquire_with(hf_store *store, const hf_lock_spec *spec,
                                              const hf__lock_extra *extra, hf_lock **lock,
                                              hf_error *err);

/* ---- keys that are looked up ----------------------------------------------------------------- */

typedef struct hf__lookup hf__lookup;

/*
 * A key of the derivation HF_MINTED is not computed from the label, it is found in the store's
 * records. Another room provides that; store.c sets it. All of it may be called from any thread,
 * and never with the engine's mutex held.
 */
typedef struct hf__lookup_ops {
    /* The key of the label as last seen, or asked for; *text is the label's one spelling and lives
     * as long as the store. HF_INVALID where there is none. */
    hf_status (*find)(hf__lookup *lookup, hf_store *store, const char *label, size_t size,
                      const char **text, int64_t *key, hf_error *err);

    /* What to ask once the lock is held. *question is one allocation: the engine frees its rows,
     * then it. */
    hf_status (*question)(hf__lookup *lookup, const hf_store *store, const char *label, size_t size,
                          hf__question **question, hf_error *err);

    /* The question was answered under the lock of key. *stale: that is not the label's key any
     * more. */
    hf_status (*judge)(hf__lookup *lookup, hf_store *store, const char *label, size_t size,
                       const hf__question *question, int64_t key, bool *stale, hf_error *err);

    /* The question failed: what people are told instead of the bare failure. */
    hf_status (*explain)(hf__lookup *lookup, const hf_store *store, const hf_error *failure,
                         hf_error *err);

    void (*free)(hf__lookup *lookup);
} hf__lookup_ops;

struct hf__lookup { /* the head of what provides it */
    const hf__lookup_ops *ops;
};

hf__lookup *hf__store_lookup(const hf_store *store);
const char *hf__store_application(const hf_store *store); /* as records name this process */
const char *hf__store_host(const hf_store *store);
bool hf__store_is_borrowed(const hf_store *store); /* the caller's connection: no questions */

/* Answers a question by itself, in one trip. The rows are the caller's. */
HF_MUST_CHECK hf_status hf__store_ask(hf_store *store, hf__question *question, hf_error *err);

/* HF_FORKED where the store was opened before a fork. */
HF_MUST_CHECK hf_status hf__check_process(const hf_store *store, hf_error *err);

/* ---- lists ----------------------------------------------------------------------------------- */

struct hf_lock_list {
    hf_lock_view *views; /* strings are owned */
    bool *hidden;
    size_t count;
    size_t view_room, hidden_room;
};

/*
 * hf_lock_list_read on a connection of the caller's, inside of its transaction; NULL: the store's.
 */
HF_MUST_CHECK hf_status hf__lock_list_read_on(hf_store *store, struct pg_conn *conn,
                                              hf_lock_list **list, hf_error *err);

/*
 * The registry's entry for the key and the label (or "") of a view; NULL: it knows none. *label is
 * what a key without one turned out to stand for, or NULL; it lives as the store.
 */
HF_MUST_CHECK hf_status hf__lock_owner(hf_store *store, const hf_lock_view *view,
                                       const hf__lock_entry **entry, const char **label,
                                       hf_error *err);

#endif
