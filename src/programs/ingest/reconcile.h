/* For stores where something else drops data: makes coverage and the oldest cursor follow it. */
#ifndef HF_INGEST_RECONCILE_H
#define HF_INGEST_RECONCILE_H

#include "lib/ledgers/ledgers.h"

typedef struct hf__reconcile_report {
    int64_t data_from; /* the first ledger whose rows are all there */
    int64_t oldest_before;
    int64_t oldest;
    int64_t uncovered; /* ledgers that coverage claimed but whose data is gone */
} hf__reconcile_report;

/*
 * In one transaction, clips coverage to the data and moves the oldest cursor, up or down, to where
 * coverage's last run begins (without coverage: to where the data begins). It looks that up while
 * it holds the cursor's row lock: a set-min that committed before is seen with its data, and one
 * that comes after is applied to the result. HF_CONFIG: there is no data, or no cursor.
 */
HF_MUST_CHECK hf_status hf__reconcile(hf_network *network, hf__reconcile_report *report,
                                      hf_error *err);

/* Does a table of the network have that column? */
HF_MUST_CHECK hf_status hf__has_column(hf_tx *tx, const hf_network *network, const char *table,
                                       const char *column, bool *has, hf_error *err);

/* Reads the first column of the first row. *found is false if there is no row, or it is NULL. */
HF_MUST_CHECK hf_status hf__query_number(hf_tx *tx, const hf_network *network, const hf__sql *sql,
                                         size_t count, const hf_value *values, bool *found,
                                         int64_t *number, hf_error *err);

#endif
