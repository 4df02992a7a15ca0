#ifndef HF_TABLES_TABLES_H
#define HF_TABLES_TABLES_H

#include "lib/locks/locks.h"
#include "lib/tables/name.h"
#include "lib/tables/snowflake.h"
#include "lib/transactions/transactions.h"

/*
 * The registry of shared tables, on the store's own database. Ids are minted here and change only
 * under the table's lock, so that whoever holds it knows that the id is the table's.
 */

enum { HF__CONTEXT_MAX = 1000 };

/* mint.c: ids that nobody has, ascending */
HF_MUST_CHECK hf_status hf__table_mint(hf_store *store, size_t count, int64_t *ids, hf_error *err);

/* register.c */
HF_MUST_CHECK hf_status hf__table_register(hf_store *store, const hf__table_name *name, int64_t *id,
                                           bool *created, hf_error *err);
/* The id as last seen, or registered: whoever locks by it looks again. */
HF_MUST_CHECK hf_status hf__table_ensure(hf_store *store, const hf__table_name *name, int64_t *id,
                                         hf_error *err);
/* A read-committed transaction; HF_NO_SCHEMA where the tables are missing. */
HF_MUST_CHECK hf_status hf__table_transact(hf_store *store, bool read_only, hf_tx_fn *fn, void *arg,
                                           hf_error *err);
/* The live id, locked against changes until the transaction ends; 0: none. */
HF_MUST_CHECK hf_status hf__table_live(hf_tx *tx, const hf__table_name *name, int64_t *id,
                                       hf_error *err);
HF_MUST_CHECK hf_status hf__table_start(hf_store *store, const hf_table_name *given,
                                        hf__table_name *name, hf_error *err);

/* lock.c: does not register; extra may be NULL */
HF_MUST_CHECK hf_status hf__table_lock_live(hf_store *store, const hf__table_name *name,
                                            const hf_lock_spec *spec, const hf__lock_extra *extra,
                                            hf_lock **lock, hf_error *err);

/* Locking a shared table along with something else. */

/* As hf_table_lock. */
HF_MUST_CHECK hf_status hf__table_lock_with(hf_store *store, const hf_table_name *name,
                                            const hf_lock_spec *spec, const hf__lock_extra *extra,
                                            hf_lock **lock, hf_error *err);
/*
 * Asks for the table's id in the message of another lock. finish keeps the answer for
 * hf__table_lock_with, if there is one, and frees the rows. It points into itself: not to be
 * copied.
 */
typedef struct hf__table_question {
    hf__question base;
    hf__table_name name;
    hf_value values[3];
} hf__table_question;

void hf__table_question_init(hf__table_question *question, const hf_store *store,
                             const hf__table_name *name);
void hf__table_question_finish(hf__table_question *question, const hf_store *store);

/* What looks up the keys of shared tables for the lock engine; NULL: out of memory. machine is the
 * number that ids are minted with, 0: leased. */
hf__lookup *hf__tables_new(int machine);

#endif
