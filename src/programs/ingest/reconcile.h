/*
 * For stores where something else drops data: what the data begins with is found out and claimed.
 */
#ifndef HF_INGEST_RECONCILE_H
#define HF_INGEST_RECONCILE_H

#include "lib/ledgers/ledgers.h"

typedef struct hf__reconcile_report {
    int64_t data_from; /* the first ledger whose rows are all there */
    int64_t oldest_before;
    int64_t oldest;
    int64_t uncovered; /* ledgers that coverage claimed and the data lacks */
} hf__reconcile_report;

/*
 * In one transaction: coverage is clipped to the data, and the oldest cursor raised or lowered to
 * where coverage's last run begins (without coverage: to where the data does). That is looked up
 * under the lock of the cursor's row, so a set-min before it is seen with its data, and one after
 * it is applied to the result. HF_CONFIG: there is no data, or no cursor.
 */
HF_MUST_CHECK hf_status hf__reconcile(hf_network *network, hf__reconcile_report *report,
                                      hf_error *err);

/* Does a table of the network have that column? */
HF_MUST_CHECK hf_status hf__has_column(hf_tx *tx, const hf_network *network, const char *table,
                                       const char *column, bool *has, hf_error *err);

/* The first number of the first row; *found false: no row, or NULL. */
HF_MUST_CHECK hf_status hf__query_number(hf_tx *tx, const hf_network *network, const hf__sql *sql,
                                         size_t count, const hf_value *values, bool *found,
                                         int64_t *number, hf_error *err);

#endif
