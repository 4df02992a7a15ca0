/* Locking a shared table along with something else. */
#ifndef HF_TABLE_LOCK_TABLE_H
#define HF_TABLE_LOCK_TABLE_H

#include "lib/locks/locks.h"
#include "lib/tables/name.h"

/* As hf_table_lock. */
HF_MUST_CHECK hf_status hf__table_lock_with(hf_store *store, const hf_table_name *name,
                                            const hf_lock_spec *spec, const hf__lock_extra *extra,
                                            hf_lock **lock, hf_error *err);
/* Asks for the table's id in the message of another lock, and keeps it for hf__table_lock_with. */
void hf__table_look(const hf__table_name *name, hf_value values[3], hf__rider *rider);
void hf__table_looked(hf_store *store, const hf__table_name *name, const hf_rows *rows);

#endif
