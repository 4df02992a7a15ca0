#ifndef HF_TX_TRANSACT_H
#define HF_TX_TRANSACT_H

#include "base/error.h"
#include "base/sqltext.h"
#include "lib/backend/attempt.h"
#include "lib/locks/locks.h"

/*
 * Transactions elsewhere than in the caller's database of the local store; on PostgreSQL like any.
 */

/*
 * As hf_transact. HF__PLACE_FILE takes options->database as the path of a file that must be there.
 */
HF_MUST_CHECK hf_status hf__transact_at(hf_store *store, hf__attempt_place place,
                                        const hf_tx_options *options, hf_tx_fn *fn, void *arg,
                                        hf_error *err);

/* As hf_lock_transact. */
HF_MUST_CHECK hf_status hf__lock_transact_at(hf_lock *lock, hf__attempt_place place,
                                             const hf_tx_options *options, hf_tx_fn *fn, void *arg,
                                             hf_error *err);

/* The last transaction under two locks. */

/*
 * As hf_lock_transact on the first lock's session, and releases both locks: in the message of the
 * commit where they share a session. After HF_OK they are released, else held as before.
 */
HF_MUST_CHECK hf_status hf__lock_transact_last(hf_lock *const locks[2],
                                               const hf_tx_options *options, hf_tx_fn *fn,
                                               void *arg, hf_error *err);

/* ---- statement.c: named statements ----------------------------------------------------------- */

/* The dialect of the store that the transaction runs on. */
hf__dialect hf__tx_dialect(const hf_tx *tx);

/*
 * As hf_tx_query, with the statement's text for the store's dialect and its @words@ replaced by
 * parts, which may be NULL. A dialect that uses fewer parameters gets the first of the values. Rows
 * are text; the caller frees them. rows may be NULL.
 */
HF_MUST_CHECK hf_status hf__tx_query_sql(hf_tx *tx, const hf__sql *sql, const hf__sql_part *parts,
                                         size_t count, const hf_value *values, hf_rows **rows,
                                         hf_error *err);
/* As hf_tx_queue, likewise: it goes with the next query or the commit. */
HF_MUST_CHECK hf_status hf__tx_queue_sql(hf_tx *tx, const hf__sql *sql, const hf__sql_part *parts,
                                         size_t count, const hf_value *values, hf_error *err);

/* ---- rows.c: values in and out --------------------------------------------------------------- */

/* A number as a parameter, in a buffer of the caller's. */
hf_value hf__number_value(char out[24], int64_t number);
/* A cell as a number; fails with HF_BAD_DATA, calling the cell what. */
HF_MUST_CHECK hf_status hf__row_number(const hf_rows *rows, size_t row, size_t column,
                                       const char *what, int64_t *number, hf_error *err);

/* Cells that the store itself has typed. The text is the rows' own. */
int64_t hf__row_int(const hf_rows *rows, size_t row, size_t column, int64_t none);
const char *hf__row_text(const hf_rows *rows, size_t row, size_t column); /* "" for NULL */
bool hf__row_bool(const hf_rows *rows, size_t row, size_t column);        /* t or 1 */

#endif
