#ifndef HF_TABLE_TABLE_H
#define HF_TABLE_TABLE_H

#include "lib/locks/locks.h"
#include "lib/tables/name.h"
#include "lib/transactions/transactions.h"

/*
 * The registry of shared tables, on the store's own database. Ids are minted here and change only under
 * the table's lock, so that whoever holds it knows that the id is the table's.
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

/* lock_table.c: does not register; extra may be NULL */
HF_MUST_CHECK hf_status hf__table_lock_live(hf_store *store, const hf__table_name *name,
                                            const hf_lock_spec *spec, const hf__lock_extra *extra,
                                            hf_lock **lock, hf_error *err);

/* Locking a shared table along with something else. */

/* As hf_table_lock. */
HF_MUST_CHECK hf_status hf__table_lock_with(hf_store *store, const hf_table_name *name,
                                            const hf_lock_spec *spec, const hf__lock_extra *extra,
                                            hf_lock **lock, hf_error *err);
/* Asks for the table's id in the message of another lock, and keeps it for hf__table_lock_with. */
void hf__table_look(const hf__table_name *name, hf_value values[3], hf__rider *rider);
void hf__table_looked(hf_store *store, const hf__table_name *name, const hf_rows *rows);

#endif
