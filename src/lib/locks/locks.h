/* The front door of the lock engine: what rooms above it may use besides the public header. */
#ifndef HF_LOCKS_LOCKS_H
#define HF_LOCKS_LOCKS_H

#include "holdfast/holdfast.h"
#include "lib/backend/backend.h"
#include "lib/registry/registry.h"

/* What an acquire may send to the store in the same message. */
typedef struct hf__lock_extra {
    /* acquire on the session of this lock, where the backend can; both locks are HF_PRIVATE */
    hf_lock *on;
    hf__question *const *questions; /* without rows afterwards: it was not asked in the message */
    size_t question_count;
    struct hf__started *started; /* NULL: somebody waits for the call to return */
} hf__lock_extra;

/*
 * As hf_lock_acquire; extra may be NULL. The caller frees the rows of its questions, whatever the
 * outcome. HF_LOST: the session of extra->on is gone.
 */
HF_MUST_CHECK hf_status hf__lock_acquire_with(hf_store *store, const hf_lock_spec *spec,
                                              const hf__lock_extra *extra, hf_lock **lock,
                                              hf_error *err);

/*
 * As hf_lock_start; acquire(store, copy of what, …) is what acquires the lock, as a fiber. what may
 * be NULL.
 */
typedef hf_status hf__acquire_fn(hf_store *store, const void *what, const hf_lock_spec *spec,
                                 const hf__lock_extra *extra, hf_lock **lock, hf_error *err);
HF_MUST_CHECK hf_status hf__lock_start_with(hf_store *store, const hf_lock_spec *spec,
                                            hf_started_fn *done, hf__acquire_fn *acquire,
                                            const void *what, size_t what_size, hf_error *err);

/* ---- keys that are looked up ----------------------------------------------------------------- */

typedef struct hf__lookup hf__lookup;

/*
 * A key of the derivation HF_MINTED is not computed from the label but found in the store's
 * records. The room tables provides that, and store.c connects it with the engine. The engine calls
 * these from any thread, never with its mutex held.
 */
typedef struct hf__lookup_ops {
    /* Finds the key of the label, in memory if it was seen before, else in the store. *text is the
     * one spelling of the label, and lives as long as the store. HF_INVALID: there is no such key.
     */
    hf_status (*find)(hf__lookup *lookup, hf_store *store, const char *label, size_t size,
                      const char **text, int64_t *key, hf_error *err);

    /* Makes the question to ask once the lock is held. The engine frees its rows, and then
     * *question with free(): it is one allocation. */
    hf_status (*question)(hf__lookup *lookup, const hf_store *store, const char *label, size_t size,
                          hf__question **question, hf_error *err);

    /* Reads the answer, which was given while key was locked. *stale: the label has another key
     * now. */
    hf_status (*judge)(hf__lookup *lookup, hf_store *store, const char *label, size_t size,
                       const hf__question *question, int64_t key, bool *stale, hf_error *err);

    /* The question failed: returns a failure that explains it to people. */
    hf_status (*explain)(hf__lookup *lookup, const hf_store *store, const hf_error *failure,
                         hf_error *err);

    void (*free)(hf__lookup *lookup);
} hf__lookup_ops;

/* The first member of the provider's own struct. */
struct hf__lookup {
    const hf__lookup_ops *ops;
};

/* Facts about a store that do not change; any thread may ask. The store owns what is returned. */
hf__lookup *hf__store_lookup(const hf_store *store);
const char *hf__store_application(const hf_store *store); /* as records name this process */
const char *hf__store_host(const hf_store *store);        /* likewise */
bool hf__store_reads_records(const hf_store *store);      /* those of others, at least */
bool hf__store_is_borrowed(const hf_store *store); /* the caller's connection: no questions */

/*
 * Asks one question in a message of its own. The caller frees the rows. HF_INVALID on a borrowed
 * store.
 */
HF_MUST_CHECK hf_status hf__store_ask(hf_store *store, hf__question *question, hf_error *err);

/* HF_FORKED when the calling process is not the one that opened the store. */
HF_MUST_CHECK hf_status hf__check_process(const hf_store *store, hf_error *err);

/*
 * Ends the waits of the store: all of them, now and later, or those whose handle was triggered. The
 * second form is for hf__cancellable.
 */
void hf__interrupt_waits(hf_store *store, bool all);
void hf__interrupt_cancelled(void *store);

/* ---- lists ----------------------------------------------------------------------------------- */

struct hf_lock_list {
    hf_lock_view *views; /* with their strings */
    bool *hidden;        /* for each view: to be dropped when the list is complete */
    size_t count;
    size_t view_room, hidden_room;
};

/*
 * As hf_lock_list_read, on the caller's connection and inside its transaction; conn NULL: on one of
 * the store's own.
 */
HF_MUST_CHECK hf_status hf__lock_list_read_on(hf_store *store, struct pg_conn *conn,
                                              hf_lock_list **list, hf_error *err);

/*
 * Finds the registry's entry for the key and the label (or "") of a view; *entry is NULL if there
 * is none. *label is the label that the registry knows for a key without one, or NULL; it lives as
 * long as the store. Any thread.
 */
HF_MUST_CHECK hf_status hf__lock_owner(hf_store *store, const hf_lock_view *view,
                                       const hf__lock_entry **entry, const char **label,
                                       hf_error *err);

#endif
