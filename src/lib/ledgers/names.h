/* What the files of this folder share besides the contract of cursor.h. */
#ifndef HF_CURSOR_NAMES_H
#define HF_CURSOR_NAMES_H

#include "lib/ledgers/ledgers.h"

#define HF__OWN_ROWS "holdfast." /* how the keys of our own rows begin */

/* network.c */
HF_MUST_CHECK hf_status hf__cursor_check_name(const char *name, hf_error *err);
/* Queues a transaction-level lock; the statement after it sees what the last holder committed. */
HF_MUST_CHECK hf_status hf__network_lock(hf_tx *tx, const hf_network *network, int64_t key,
                                         hf_error *err);
bool hf__is_missing_table(const hf_error *err); /* or its schema */

/* cursor.c */
bool hf__cursor_is_own(const char *name);

/* tables.c: only ingest_store, for a cursor that is set before anything is ingested */
HF_MUST_CHECK hf_status hf__tables_install_store(hf_network *network, hf_error *err);
/* That and ingest_coverage, beside tables that may have any shape: for adopting them. */
HF_MUST_CHECK hf_status hf__tables_install_coverage(hf_network *network, hf_error *err);
/* Of all tables, which are there? In a transaction of the caller's. */
typedef struct hf__tables_there {
    bool store, coverage, ledgers, transactions, quarantine;
} hf__tables_there;
HF_MUST_CHECK hf_status hf__tables_look(hf_tx *tx, const hf_network *network,
                                        hf__tables_there *there, hf_error *err);

#endif
