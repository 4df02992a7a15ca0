/* A schema that another ingester has filled: coverage is built from its data. */
#ifndef HF_INGEST_ADOPT_H
#define HF_INGEST_ADOPT_H

#include "lib/ledgers/ledgers.h"

typedef struct hf__adopt_report {
    bool had_latest, had_oldest;
    int64_t claimed_latest, claimed_oldest; /* by the cursors as they were */
    int64_t latest, oldest;                 /* as the data says, and the cursors now */
    /* There were no ledger rows to go by: ledgers without transactions look missing. */
    bool by_transactions;
    int64_t incomplete; /* ledgers that have not as many transactions as they should */
    hf__ranges covered;
    hf__ranges lacking; /* claimed, and not there */
    char misfit[1024];  /* why the ingester cannot write into these tables, or "" */
} hf__adopt_report;

void hf__adopt_report_free(hf__adopt_report *report);

/*
 * Under the network's lock: creates the tables that are missing, and in one transaction replaces
 * coverage by what the data shows (not below the retention floor), moves latest and oldest to its
 * last run, and makes wanted what the cursors claimed. Touches no other row. It may be repeated.
 * HF_CONFIG: there is nothing to adopt. HF_NOT_ACQUIRED: somebody ingests.
 */
HF_MUST_CHECK hf_status hf__adopt(hf_store *store, hf_network *network, hf__adopt_report *report,
                                  hf_error *err);

#endif
