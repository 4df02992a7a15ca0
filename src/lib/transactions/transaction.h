/* One call of hf_transact, or from hf_tx_begin to hf_tx_free; used by one thread at a time. */
#ifndef HF_LIB_TRANSACTIONS_TRANSACTION_H
#define HF_LIB_TRANSACTIONS_TRANSACTION_H

#include "lib/locks/engine.h"
#include "lib/transactions/transactions.h"

/* What a call on a transaction changes in its thread, and puts back. */
struct hf__tx_use {
    int cancel_state;
    int64_t acted_as;
};

struct hf_tx {
    hf_store *store;
    hf_tx_options options; /* complete */
    const hf__attempt_ops *ops;
    hf__attempt *attempt;
    hf__attempt_plan plan;

    hf_target *targets; /* labels of the options and of hf_tx_serialize, with copied bytes */
    size_t target_count, target_room;
    hf__claim *claims;
    char *labels;
    hf__session *lease;   /* what holds plan.leases, or NULL */
    bool waits_for_lease; /* a label was leased at the last attempt */
    size_t fixed; /* how many of the targets are the options'; the others last for one attempt */

    hf_lock *lock;        /* holds the labels, if the backend does not lock them itself */
    size_t counted;       /* how many of the store's keys are these labels */
    struct hf_lock place; /* else: stands for the labels in the list of the order rule */
    int64_t owner;        /* hf__me() of who runs it */
    struct hf_tx *next;   /* in a bucket of store->transactions */
    hf__cancellable call;
    struct hf__tx_use use;   /* what hf_transact puts back in its thread */
    bool lent;               /* the callback has asked for the connection */
    bool released;           /* the commit has released plan.release */
    bool reached;            /* an attempt was open: the store was there */
    struct hf__trace *trace; /* NULL: it is not traced */
    unsigned attempts;
    int64_t wait_ms;
    int64_t hold_ms;
    int64_t opened_ms;
};

/*
 * Every call on a transaction enters and leaves. A thread may be cancelled in the caller's code,
 * not in ours: that would leave a message half sent, or a mutex locked. HF_INVALID, and nothing to
 * leave: the transaction has ended.
 */
HF_MUST_CHECK hf_status hf__tx_enter(const struct hf_tx *tx, struct hf__tx_use *use, hf_error *err);
void hf__tx_leave(const struct hf__tx_use *use);
void hf__tx_use_thread(int64_t me, struct hf__tx_use *use); /* as enter, before it has begun */

/* Acquires the labels, where the backend does not do it with the first statement. */
HF_MUST_CHECK hf_status hf__tx_lock_around(struct hf_tx *tx, hf_error *err);

/* labels.c */

/* Adds a target with a copy of its label; false: no memory. Drops all but the first `keep`. */
bool hf__tx_add_label(struct hf_tx *tx, const hf_target *target);
void hf__tx_drop_labels(struct hf_tx *tx, size_t keep);

/*
 * Makes the plan's claims of the targets and gives them their place in the order of what the thread
 * holds; HF_ORDER where they have none, HF_QUOTA where they are too many. The tx owns the claims.
 */
HF_MUST_CHECK hf_status hf__tx_resolve_labels(struct hf_tx *tx, hf_error *err);
void hf__tx_leave_order(struct hf_tx *tx);

/* Warns in the log if unrelated work would wait for the label. */
void hf__tx_warn_if_generic(const struct hf_tx *tx, const hf_target *target);

#endif
