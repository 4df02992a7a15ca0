/*
 * Transactions on FOLDER/data.db, or on another file that the caller names: the caller's tables,
 * apart from the records in holdfast.db. A connection belongs to one transaction at a time, and so
 * to one thread.
 */
#ifndef HF_LOCAL_TRANSACTION_H
#define HF_LOCAL_TRANSACTION_H

#include "lib/local/local.h"

/* ---- connection.c ------------------------------------------------------------------------ */

struct hf__local_connection {
    hf__local *local;
    char database[64]; /* the name of its file, without ".db" */
    char *file;        /* the path of a file outside of the folder; or NULL */
    sqlite3 *handle;
    dev_t device; /* of the open file: has it been replaced? */
    ino_t inode;
    int64_t deadline;                  /* of the transaction: nothing waits longer */
    const hf_cancel *cancel;           /* of the transaction, or NULL */
    int64_t busy_until;                /* when on_busy stops to wait for others */
    bool patient;                      /* on_busy waits until the deadline */
    bool read_only;                    /* PRAGMA query_only is on */
    bool trusted;                      /* the statement is Holdfast's own: the guard lets it pass */
    bool altered;                      /* a statement has changed its settings: not to be reused */
    const char *refused;               /* why the guard refused the last statement, or NULL */
    struct hf__local_connection *next; /* in hf__local.idle */
};

/*
 * Gets an idle connection to the plan's file, or opens one. The caller returns it with
 * hf__local_connection_put. HF_INVALID: the name of the file; HF_CONFIG, HF_UNREACHABLE and others.
 */
HF_MUST_CHECK hf_status hf__local_connection_get(hf__local *local, const hf__attempt_plan *plan,
                                                 hf__local_connection **connection, hf_error *err);

/* The transaction's time is over, or its caller has cancelled it. */
bool hf__local_connection_is_over(const hf__local_connection *connection);

/* Rolls back what is open, and keeps the connection for another transaction or closes it. */
void hf__local_connection_put(hf__local_connection *connection);

/* Runs one of Holdfast's own statements; returns SQLite's extended result code. */
HF_MUST_CHECK int hf__local_connection_run(hf__local_connection *connection, const char *sql);

/*
 * After a COMMIT that failed: commits and syncs a small transaction, which overwrites what the
 * failed one may have left in the log. True: the failed one is gone for good. False: it may come
 * back when the file is recovered after a crash.
 */
HF_MUST_CHECK bool hf__local_connection_seal(hf__local_connection *connection);

/* The failure that SQLite has just reported, with PostgreSQL's SQLSTATE where there is one. */
HF_MUST_CHECK hf_status hf__local_connection_fail(const hf__local_connection *connection, int code,
                                                  hf__attempt_fault *fault, hf_error *err);

/* ---- statement.c -------------------------------------------------------------------------- */

typedef struct hf__local_statement {
    const char *sql;
    size_t count;
    const hf_value *values;
} hf__local_statement;

/*
 * Runs one statement. The caller frees *rows; rows may be NULL, err may not. A failure sets *fault.
 * Statements that would end the transaction are refused with HF_INVALID.
 */
HF_MUST_CHECK hf_status hf__local_statement_run(hf__local_connection *connection,
                                                const hf__local_statement *statement,
                                                bool binary_rows, hf_rows **rows,
                                                hf__attempt_fault *fault, hf_error *err);

/* ---- statement.c: rows -------------------------------------------------------------------- */

/* Makes rows with the columns of the statement and no values yet; NULL: out of memory. */
hf_rows *hf__local_rows_new(sqlite3_stmt *statement);

/* Copies the current row of the statement; false: out of memory, and the rows are to be freed. */
HF_MUST_CHECK bool hf__local_rows_add(hf_rows *rows, sqlite3_stmt *statement, bool binary);

/* After the last row: sets what hf_rows_affected returns. */
void hf__local_rows_finish(hf_rows *rows, int64_t affected);
void hf__local_rows_free(hf_rows *rows); /* NULL is safe */

#endif
