/*
 * What a backend provides for transactions: single attempts, which lib/transactions runs, repeats
 * and reports, and the rows that statements return. One thread at a time uses an attempt.
 */
#ifndef HF_BACKEND_ATTEMPT_H
#define HF_BACKEND_ATTEMPT_H

#include "lib/backend/backend.h"

/* As the functions hf_rows_… of the public header. */
typedef struct hf__rows_ops {
    size_t (*count)(const hf_rows *rows);
    size_t (*columns)(const hf_rows *rows);
    const char *(*column)(const hf_rows *rows, size_t column);
    const char *(*value)(const hf_rows *rows, size_t row, size_t column, size_t *size);
    int64_t (*affected)(const hf_rows *rows);
    void (*free)(hf_rows *rows);
} hf__rows_ops;

/* The first member of every backend's rows. */
struct hf_rows {
    const hf__rows_ops *ops;
};

/* Why an attempt failed; it decides whether there is another one. */
typedef enum hf__attempt_fault {
    HF__FAULT_FINAL,  /* do not try again */
    HF__FAULT_RETRY,  /* the store rolled it back for a reason that passes, such as a deadlock */
    HF__FAULT_UNIQUE, /* a unique violation: tried again if the caller asked for that */
    HF__FAULT_LOCKED, /* a label was not free in time */
    HF__FAULT_LEASED, /* a label is leased: tried again until the deadline */
    HF__FAULT_BROKEN, /* the connection is gone: call outcome to learn whether it committed */
} hf__attempt_fault;

/* One attempt; the first member of every backend's own. */
typedef struct hf__attempt {
    hf__backend *backend;
    hf__attempt_fault fault; /* of the last call that failed */
    bool started;            /* the first statement has been sent: the snapshot is taken */
    bool cancelled;          /* the deadline passed and the statement was cancelled */
    int64_t locked_ms;       /* hf__now_ms() when the labels were acquired, 0 before */
    bool released;           /* the commit has also released plan->release */
} hf__attempt;

/* Which file of the local store. PostgreSQL has one database for all. */
typedef enum hf__attempt_place {
    HF__PLACE_DATA, /* FOLDER/<database>.db, for the caller's tables */
    HF__PLACE_OWN,  /* holdfast.db, the store's records */
    HF__PLACE_FILE, /* a file outside of the folder: database is its path */
} hf__attempt_place;

/* How to run an attempt. It belongs to the caller, who may add claims until the attempt started. */
typedef struct hf__attempt_plan {
    const hf__claim *claims; /* exclusive, sorted by (order, space, key), without repeats */
    size_t count;
    hf_isolation isolation;
    bool read_only;
    int64_t deadline;
    const hf_cancel *cancel; /* ends waits and statements, but never COMMIT; may be NULL */
    hf__session *session;    /* run on this one, which holds a lock; NULL: the backend chooses */
    /* claims held on that session, to be released by the commit, where the backend can do it */
    const hf__claim *release;
    size_t release_count;
    /* leases, each with its term: the transaction fails unless they are held, and keeps them so */
    const hf__claim *leases;
    size_t lease_count;
    bool is_nested;       /* the thread is in a transaction on the same store already */
    bool trusts_callback; /* with the connection: it ends nothing, and leaves nothing behind */
    bool repeats;         /* the callback's statements come again and again: prepare them */
    hf__attempt_place place;
    const char *database; /* the local store's file, see hf__attempt_place */
} hf__attempt_plan;

/* What became of a transaction whose connection broke. */
typedef enum hf__attempt_outcome {
    HF__OUTCOME_COMMITTED,
    HF__OUTCOME_NOT_COMMITTED,
    HF__OUTCOME_IN_DOUBT
} hf__attempt_outcome;

typedef struct hf__attempt_ops {
    /* false: lib/transactions holds the claims as session locks around the attempt */
    bool locks_labels;

    /* Gets a session for the attempt, and waits for a free one if need be. The caller closes
     * *attempt. HF_UNREACHABLE, HF_CONFIG and others; there is no fault to look at yet. */
    hf_status (*open)(hf__backend *backend, const hf__attempt_plan *plan, hf__attempt **attempt,
                      hf_error *err);

    /*
     * As hf_tx_query, hf_tx_queue and hf_tx_connection. Whichever comes first to the store acquires
     * the claims, then begins the transaction: in the same message, where the backend can. A
     * failure sets attempt->fault.
     */
    hf_status (*query)(hf__attempt *attempt, const hf__attempt_plan *plan, const char *sql,
                       size_t count, const hf_value *values, bool binary_rows, hf_rows **rows,
                       hf_error *err);
    hf_status (*queue)(hf__attempt *attempt, const char *sql, size_t count, const hf_value *values,
                       hf_error *err);
    struct pg_conn *(*connection)(hf__attempt *attempt, const hf__attempt_plan *plan,
                                  hf_error *err);

    /* Sends what is queued, and commits. A failure sets attempt->fault. */
    hf_status (*commit)(hf__attempt *attempt, const hf__attempt_plan *plan, hf_error *err);

    /*
     * What has become of the transaction, asked after the callback used the connection directly and
     * failed. HF_OK: it is open still. HF_INVALID: the callback has ended it. May be NULL.
     */
    hf_status (*inspect)(hf__attempt *attempt, hf_error *err);

    /* After HF__FAULT_BROKEN: finds out on another connection whether it committed. err says why
     * when the outcome is in doubt. */
    hf__attempt_outcome (*outcome)(hf__attempt *attempt, const hf__attempt_plan *plan,
                                   hf_error *err);

    /* Rolls back what is not committed, returns the session and frees the attempt. */
    void (*close)(hf__attempt *attempt, const hf__attempt_plan *plan);
} hf__attempt_ops;

#endif
