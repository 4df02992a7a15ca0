/* Takes over a schema that another ingester has filled: builds coverage from its data. */
#ifndef HF_INGEST_ADOPT_H
#define HF_INGEST_ADOPT_H

#include "lib/ledgers/ledgers.h"

typedef struct hf__adopt_report {
    bool had_latest, had_oldest;            /* the cursors existed */
    int64_t claimed_latest, claimed_oldest; /* where they stood before */
    int64_t latest, oldest;                 /* where the data puts them, and where they are now */
    /* The table ledgers had no rows, so a ledger without transactions looks missing. */
    bool by_transactions;
    int64_t incomplete; /* ledgers without the number of transactions that they state */
    hf__ranges covered;
    hf__ranges lacking; /* claimed by the cursors, but not in the tables */
    char misfit[1024];  /* why the ingester cannot write into these tables, or "" */
} hf__adopt_report;

/* Frees what the report holds, not the report itself. Safe on a zeroed one. */
void hf__adopt_report_free(hf__adopt_report *report);

/*
 * Works under the network's lock. Creates the tables that are missing. Then, in one transaction,
 * replaces coverage by what the data shows (not below the retention floor), moves latest and oldest
 * to the ends of coverage's last run, and marks what the cursors claimed as wanted, so that
 * 'holdfast gaps' lists what is missing of it. Touches no other row, and may be repeated. The
 * caller frees the report, also after a failure. HF_CONFIG: there is nothing to adopt.
 * HF_NOT_ACQUIRED: an ingester is running.
 */
HF_MUST_CHECK hf_status hf__adopt(hf_store *store, hf_network *network, hf__adopt_report *report,
                                  hf_error *err);

#endif
