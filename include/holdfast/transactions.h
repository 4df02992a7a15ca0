/* Serialised transactions: the labels are locked, then the transaction takes its snapshot. */
#ifndef HOLDFAST_TRANSACTIONS_H
#define HOLDFAST_TRANSACTIONS_H

#include <holdfast/locks.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hf_isolation {
    HF_SERIALIZABLE = 0,
    HF_REPEATABLE_READ,
    HF_READ_COMMITTED,
} hf_isolation;

/*
 * One transaction. Only the callback of hf_transact may use it, in its thread, until it returns;
 * one from hf_tx_begin is for any thread, one at a time.
 */
typedef struct hf_tx hf_tx;

/* The rows of one statement. */
typedef struct hf_rows hf_rows;

/* A parameter. data NULL is SQL's NULL; size counts for binary only, text ends with NUL. */
typedef struct hf_value {
    const void *data;
    size_t size;
    bool binary;
} hf_value;

#define HF_TEXT(text) ((hf_value){.data = (text)})

/* What became of one hf_transact, reported once for each label (label NULL: it had none). */
typedef struct hf_tx_stats {
    const char *label;
    size_t label_size;
    int64_t key;
    unsigned attempts;
    int64_t wait_ms; /* from asking for the labels to having them, all attempts together */
    int64_t hold_ms; /* from having them to the end */
    hf_status outcome;
} hf_tx_stats;

typedef void hf_tx_stats_fn(const hf_tx_stats *stats, void *arg);

typedef struct hf_tx_options {
    size_t size;
    const hf_target *labels; /* acquired in the order of their keys; may be none */
    size_t label_count;
    hf_isolation isolation;
    bool read_only;        /* needs no transaction id and leaves no marker */
    bool retry_unique;     /* also retry after a unique violation (23505) */
    int64_t deadline_ms;   /* for all attempts together; 0: none */
    unsigned max_attempts; /* 0: 20 */
    int backoff_min_ms;    /* 0: 2; a pause is drawn from [0, min × 2^attempt] */
    int backoff_max_ms;    /* 0: 1 000 */
    hf_tx_stats_fn *on_stats;
    void *stats_arg;
    bool expect_operation; /* warn about a label without an "Operation:" part */
    const char *database;  /* local store: the file of the folder, without ".db"; NULL: "data" */
    hf_cancel *cancel;     /* ends the call, or NULL; COMMIT is only waited for no longer */
    int64_t owner;         /* as in hf_lock_spec */
    /* As in hf_lock_spec. NULL on a lock that is traced: the span of its hold. */
    const char *traceparent;
} hf_tx_options;

#define HF_TX_OPTIONS_INIT                                                                         \
    {                                                                                              \
        .size = sizeof(hf_tx_options)                                                              \
    }

/*
 * Runs the statements of one attempt. It may be called again, so it must have no effect outside of
 * tx. Any status but HF_OK rolls back and is returned to the caller, unless the cause was a
 * serialisation failure, a deadlock or a broken connection: then it is called again. HF_ROLLED_BACK
 * is for reasons of the application's own, and needs no err.
 *
 * It may not begin, end or prepare a transaction: that is HF_INVALID, rolls back, and is not tried
 * again. What it leaves in the session (settings, a role, temporary tables, cursors, prepared
 * statements, session locks) is cleared away before the next transaction. An exception or
 * pthread_cancel that leaves it rolls back.
 */
typedef hf_status hf_tx_fn(hf_tx *tx, void *arg, hf_error *err);

/*
 * Runs fn as one transaction. HF_OK: committed, once. HF_IN_DOUBT: the connection broke during
 * COMMIT and the outcome cannot be found out; err names the transaction id. HF_EXHAUSTED: not
 * committed, no attempts or no time are left. HF_NOT_ACQUIRED: not committed, a label was not free
 * in time. HF_ORDER: a label comes before a lock or label that the thread holds, or is one of them.
 * On the local store the statements are SQLite's, in the file data.db of the folder.
 *
 * What a silent server may cost: past its deadline, or cancelled, a call waits for one second for
 * the answer that is due, and half of one to end what it leaves on the server. If COMMIT was sent,
 * it takes up to five seconds in all to find out what became of it; then it is HF_IN_DOUBT. A
 * statement without a deadline is waited for as long as its backend is at work. If nothing comes
 * from there for ping_interval_ms, and a connection that asks cannot see it at work for
 * ping_deadline_ms, the connection counts as broken. Behind a pooler nobody can ask that: use a
 * deadline.
 */
HF_API HF_MUST_CHECK hf_status hf_transact(hf_store *store, const hf_tx_options *options,
                                           hf_tx_fn *fn, void *arg, hf_error *err);

/*
 * The same on the session that holds the lock, which must be HF_PRIVATE, or under a lease, which
 * nobody takes while the transaction is open; options have no labels.
 * What it writes is written under the lock or not at all. Until fn has returned, its thread can
 * neither use nor release the lock: HF_ORDER. A lease it may release, and others get it once the
 * transaction has ended. HF_LOST: the session has ended, and
 * nothing was committed.
 */
HF_API HF_MUST_CHECK hf_status hf_lock_transact(hf_lock *lock, const hf_tx_options *options,
                                                hf_tx_fn *fn, void *arg, hf_error *err);

/*
 * The same for languages whose code cannot run in a callback of C, and for callers who have a loop
 * of their own. Each attempt is the caller's:
 *
 *     hf_status status = hf_tx_begin(store, &options, &tx, &err);
 *     if (status == HF_OK)
 *         do
 *             status = hf_tx_end(tx, work(tx, &err), &err);
 *         while (status == HF_AGAIN);
 *     hf_tx_free(tx);
 *
 * hf_tx_begin and hf_tx_begin_on (as hf_lock_transact) open the first attempt; its labels are
 * acquired with its first statement, or with the commit. hf_tx_end commits it, or rolls it back for
 * any result but HF_OK; if that is not HF_ROLLED_BACK, *err is the reason. HF_AGAIN: the next
 * attempt is open, after a pause; do the work anew. Anything else is what hf_transact would return,
 * and tx has ended: further calls on it are HF_INVALID. hf_tx_free rolls back what has not ended;
 * NULL is safe. What the options point to, but for labels and traceparent, must last until then.
 */
HF_API HF_MUST_CHECK hf_status hf_tx_begin(hf_store *store, const hf_tx_options *options,
                                           hf_tx **tx, hf_error *err);
HF_API HF_MUST_CHECK hf_status hf_tx_begin_on(hf_lock *lock, const hf_tx_options *options,
                                              hf_tx **tx, hf_error *err);
HF_API HF_MUST_CHECK hf_status hf_tx_end(hf_tx *tx, hf_status result, hf_error *err);
HF_API void hf_tx_free(hf_tx *tx);

/* Acquires one more label. Refused after the first statement, whose snapshot is older. */
HF_API HF_MUST_CHECK hf_status hf_tx_serialize(hf_tx *tx, const hf_target *label, hf_error *err);

/*
 * Runs one statement with parameters $1…; rows may be NULL, else the caller frees *rows.
 * binary_rows asks for binary values (PostgreSQL's wire format; in the local store integers and
 * floats are 8 bytes, big endian).
 */
HF_API HF_MUST_CHECK hf_status hf_tx_query(hf_tx *tx, const char *sql, size_t count,
                                           const hf_value *values, bool binary_rows, hf_rows **rows,
                                           hf_error *err);

/*
 * Queues a statement whose rows are not needed. The queue is sent in one message with the next
 * hf_tx_query or with COMMIT, so that read, compute, write costs two round trips. A failure is
 * reported there.
 */
HF_API HF_MUST_CHECK hf_status hf_tx_queue(hf_tx *tx, const char *sql, size_t count,
                                           const hf_value *values, hf_error *err);

/*
 * The connection with the transaction open on it, for calls that need libpq; NULL on the local
 * store or on failure. A transaction that fn ends on it is told at the next call: HF_INVALID, and
 * what was done until then is as fn's own command left it.
 */
HF_API struct pg_conn *hf_tx_connection(hf_tx *tx, hf_error *err);

HF_API unsigned hf_tx_attempt(const hf_tx *tx); /* 1, 2, … */

HF_API size_t hf_rows_count(const hf_rows *rows);
HF_API size_t hf_rows_columns(const hf_rows *rows);
HF_API const char *hf_rows_column(const hf_rows *rows, size_t column);
/* NULL is SQL's NULL; text ends with NUL. size may be NULL. The rows own the value. */
HF_API const char *hf_rows_value(const hf_rows *rows, size_t row, size_t column, size_t *size);
HF_API int64_t hf_rows_affected(const hf_rows *rows);
HF_API void hf_rows_free(hf_rows *rows);

#ifdef __cplusplus
}
#endif

#endif
