/*
 * What rooms above may use besides the public header: transactions elsewhere than in the caller's
 * database of a local store, named statements, and cells of rows. A transaction and its rows belong
 * to one thread.
 */
#ifndef HF_TRANSACTIONS_TRANSACTIONS_H
#define HF_TRANSACTIONS_TRANSACTIONS_H

#include "base/error.h"
#include "base/sqltext.h"
#include "lib/backend/attempt.h"
#include "lib/locks/locks.h"

/*
 * As hf_transact, in this file of the local store. With HF__PLACE_FILE options->database is the
 * path of a file that must exist. PostgreSQL has one database and ignores place.
 */
HF_MUST_CHECK hf_status hf__transact_at(hf_store *store, hf__attempt_place place,
                                        const hf_tx_options *options, hf_tx_fn *fn, void *arg,
                                        hf_error *err);

/* As hf_lock_transact, likewise. */
HF_MUST_CHECK hf_status hf__lock_transact_at(hf_lock *lock, hf__attempt_place place,
                                             const hf_tx_options *options, hf_tx_fn *fn, void *arg,
                                             hf_error *err);

/*
 * The last transaction under two locks: as hf_lock_transact on the first one's session, and then
 * releases both, in the message of the commit if they share that session. After HF_OK both are
 * released; after a failure both are held as before. The caller frees the handles in any case.
 */
HF_MUST_CHECK hf_status hf__lock_transact_last(hf_lock *const locks[2],
                                               const hf_tx_options *options, hf_tx_fn *fn,
                                               void *arg, hf_error *err);

/* As hf_tx_connection, for callbacks of ours: they end nothing and leave nothing behind. */
struct pg_conn *hf__tx_connection(hf_tx *tx, hf_error *err);

/*
 * The statements that follow come again in later transactions on the session, which prepares them
 * where that is safe. Not for statements of users: a plan that was made once serves them badly.
 */
void hf__tx_repeats(hf_tx *tx);

/* ---- statement.c: named statements ----------------------------------------------------------- */

/* The dialect of the store that the transaction runs on. */
hf__dialect hf__tx_dialect(const hf_tx *tx);

/*
 * As hf_tx_query, with the statement's text in the store's dialect and its @words@ replaced by
 * parts, which may be NULL. A dialect that uses fewer parameters gets the first of the values. Rows
 * are text; the caller frees them, and rows may be NULL. HF_INVALID: the statement has no text for
 * this kind of store.
 */
HF_MUST_CHECK hf_status hf__tx_query_sql(hf_tx *tx, const hf__sql *sql, const hf__sql_part *parts,
                                         size_t count, const hf_value *values, hf_rows **rows,
                                         hf_error *err);

/* As hf_tx_queue, likewise: it is sent with the next query or the commit. */
HF_MUST_CHECK hf_status hf__tx_queue_sql(hf_tx *tx, const hf__sql *sql, const hf__sql_part *parts,
                                         size_t count, const hf_value *values, hf_error *err);

/*
 * For a transaction on which something outside of the database depends: a crash of the server must
 * not take it back, though the role or the database have synchronous_commit off. Who asks for more
 * than "on" keeps that.
 */
HF_MUST_CHECK hf_status hf__tx_make_durable(hf_tx *tx, hf_error *err);

/* ---- rows.c: values in and out --------------------------------------------------------------- */

/* The number as a parameter, which points to out. */
hf_value hf__number_value(char out[24], int64_t number);

/* Reads a cell as a number. HF_BAD_DATA: it is NULL or no int64; what names it in the message. */
HF_MUST_CHECK hf_status hf__row_number(const hf_rows *rows, size_t row, size_t column,
                                       const char *what, int64_t *number, hf_error *err);

/* Cells whose type the statement guarantees, without a check. The rows own the text. */
int64_t hf__row_int(const hf_rows *rows, size_t row, size_t column, int64_t none); /* none: NULL */
const char *hf__row_text(const hf_rows *rows, size_t row, size_t column);          /* "" for NULL */
bool hf__row_bool(const hf_rows *rows, size_t row, size_t column);                 /* t or 1 */

#endif
