/*
 * What a backend provides for transactions: one attempt at a time, which lib/transactions runs,
 * repeats and reports; and the rows that come out of statements.
 */
#ifndef HF_BACKEND_ATTEMPT_H
#define HF_BACKEND_ATTEMPT_H

#include "lib/backend/backend.h"

typedef struct hf__rows_ops {
    size_t (*count)(const hf_rows *rows);
    size_t (*columns)(const hf_rows *rows);
    const char *(*column)(const hf_rows *rows, size_t column);
    const char *(*value)(const hf_rows *rows, size_t row, size_t column, size_t *size);
    int64_t (*affected)(const hf_rows *rows);
    void (*free)(hf_rows *rows);
} hf__rows_ops;

/* The common head of every backend's rows. */
struct hf_rows {
    const hf__rows_ops *ops;
};

/* Why an attempt failed, as the retry loop needs to know it. */
typedef enum hf__attempt_fault {
    HF__FAULT_FINAL,  /* not to be tried again */
    HF__FAULT_RETRY,  /* rolled back by the store for a reason that passes */
    HF__FAULT_UNIQUE, /* a unique violation: tried again on request */
    HF__FAULT_LOCKED, /* a label was not free in time */
    HF__FAULT_BROKEN, /* the connection is gone: outcome finds out what became of it */
} hf__attempt_fault;

/* One attempt; the head of every backend's own. */
typedef struct hf__attempt {
    hf__backend *backend;
    hf__attempt_fault fault; /* of the last call that failed */
    bool started;            /* the first statement has been sent: the snapshot is taken */
    bool cancelled;          /* the deadline passed and the statement was cancelled */
    int64_t locked_ms;       /* hf__now_ms() when the labels were held, 0 before */
    bool released;           /* what the plan releases has been, with the commit */
} hf__attempt;

/* The local store's files. PostgreSQL has one database for all. */
typedef enum hf__attempt_place {
    HF__PLACE_DATA, /* FOLDER/<database>.db, the caller's */
    HF__PLACE_OWN,  /* holdfast.db */
    HF__PLACE_FILE, /* somebody else's, at the path that database is */
} hf__attempt_place;

/* What to run an attempt with; belongs to the caller and may grow until started. */
typedef struct hf__attempt_plan {
    const hf__claim *claims; /* exclusive, sorted by (order, space, key), without repeats */
    size_t count;
    hf_isolation isolation;
    bool read_only;
    int64_t deadline;
    hf__session *session; /* to run on, which holds a lock; NULL: one of the backend's choice */
    /* held on that session: given up once committed, where the backend can */
    const hf__claim *release;
    size_t release_count;
    hf__attempt_place place;
    const char *database; /* the local store's file without ".db" */
} hf__attempt_plan;

typedef enum hf__attempt_outcome {
    HF__OUTCOME_COMMITTED,
    HF__OUTCOME_NOT_COMMITTED,
    HF__OUTCOME_IN_DOUBT
} hf__attempt_outcome;

typedef struct hf__attempt_ops {
    bool locks_labels; /* false: the caller takes the claims as session locks around the attempt */

    hf_status (*open)(hf__backend *backend, const hf__attempt_plan *plan, hf__attempt **attempt,
                      hf_error *err);

    /* The first of these locks the claims, then begins: in the same message where it can. */
    hf_status (*query)(hf__attempt *attempt, const hf__attempt_plan *plan, const char *sql,
                       size_t count, const hf_value *values, bool binary_rows, hf_rows **rows,
                       hf_error *err);
    hf_status (*queue)(hf__attempt *attempt, const char *sql, size_t count, const hf_value *values,
                       hf_error *err);
    struct pg_conn *(*connection)(hf__attempt *attempt, const hf__attempt_plan *plan,
                                  hf_error *err);

    hf_status (*commit)(hf__attempt *attempt, const hf__attempt_plan *plan, hf_error *err);

    /* The callback used the connection and failed: has it gone? May be NULL. */
    bool (*is_broken)(hf__attempt *attempt);

    /* After HF__FAULT_BROKEN, on a connection of its own; err says why when the outcome is in
     * doubt. */
    hf__attempt_outcome (*outcome)(hf__attempt *attempt, const hf__attempt_plan *plan,
                                   hf_error *err);

    void (*close)(hf__attempt *attempt); /* rolls back if not committed; frees */
} hf__attempt_ops;

#endif
