/*
 * Transactions on FOLDER/data.db, or another file that the caller names: the caller's tables, apart
 * from the records in holdfast.db.
 * A connection belongs to one transaction at a time, and so to one thread.
 */
#ifndef HF_STORE_LOCAL_TX_H
#define HF_STORE_LOCAL_TX_H

#include "lib/local/local.h"

/* ---- connection.c ------------------------------------------------------------------------ */

struct hf__local_connection {
    hf__local *local;
    char database[64]; /* the name of its file, without ".db" */
    char *file;        /* the path of somebody else's; NULL: a file of the folder */
    sqlite3 *handle;
    dev_t device;
    ino_t inode;
    int64_t deadline;    /* of the transaction: nothing waits longer */
    int64_t busy_until;  /* the end of the wait that goes on */
    bool read_only;      /* PRAGMA query_only is on */
    bool trusted;        /* the statement is Holdfast's own */
    bool altered;        /* it keeps what the next transaction must not see: not for reuse */
    const char *refused; /* why the guard let a statement not pass, or NULL */
    struct hf__local_connection *next;
};

HF_MUST_CHECK hf_status hf__local_connection_get(hf__local *local, const hf__attempt_plan *plan,
                                                 hf__local_connection **connection, hf_error *err);

/* Rolls back what is open; keeps the connection for the next transaction or closes it. */
void hf__local_connection_put(hf__local_connection *connection);

/* One of Holdfast's own statements; returns SQLite's extended result code. */
HF_MUST_CHECK int hf__local_connection_run(hf__local_connection *connection, const char *sql);

/*
 * Writes something else to where a COMMIT that failed may have left its transaction in the log, and
 * syncs it. True: that transaction is gone for good. False: it may come back when the file is
 * recovered after a crash.
 */
HF_MUST_CHECK bool hf__local_connection_seal(hf__local_connection *connection);

/* The failure that SQLite has just reported. */
HF_MUST_CHECK hf_status hf__local_connection_fail(const hf__local_connection *connection, int code,
                                                  hf__attempt_fault *fault, hf_error *err);

/* ---- statement.c -------------------------------------------------------------------------- */

typedef struct hf__local_statement {
    const char *sql;
    size_t count;
    const hf_value *values;
} hf__local_statement;

/* rows may be NULL; err may not. */
HF_MUST_CHECK hf_status hf__local_statement_run(hf__local_connection *connection,
                                                const hf__local_statement *statement,
                                                bool binary_rows, hf_rows **rows,
                                                hf__attempt_fault *fault, hf_error *err);

/* ---- statement.c: rows -------------------------------------------------------------------- */

/* Rows without any values yet; NULL when out of memory. */
hf_rows *hf__local_rows_new(sqlite3_stmt *statement);

/* Copies the row that the statement stands on; false when out of memory. */
HF_MUST_CHECK bool hf__local_rows_add(hf_rows *rows, sqlite3_stmt *statement, bool binary);
void hf__local_rows_finish(hf_rows *rows, int64_t affected);
void hf__local_rows_free(hf_rows *rows); /* NULL is fine */

#endif
