/* Takes over a schema that another ingester has filled: builds coverage from its data. */
#ifndef HF_INGEST_ADOPT_H
#define HF_INGEST_ADOPT_H

#include "lib/ledgers/ledgers.h"

typedef struct hf__adopt_report {
    bool had_latest, had_oldest;            /* the cursors existed */
    int64_t claimed_latest, claimed_oldest; /* where they stood before */
    int64_t latest, oldest;                 /* where the data puts them */
    bool moves_cursors; /* they are there now; false: the tables are another program's to write */
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
 * Replaces coverage by what the data shows (not below the retention floor), and marks what the
 * cursors claimed as wanted, so that 'holdfast gaps' lists what is missing of it.
 *
 * Tables that the ingester can write to: under the network's lock. Creates the tables that are
 * missing, and moves latest and oldest to the ends of coverage's last run. HF_NOT_ACQUIRED: an
 * ingester is running.
 *
 * Tables of another shape are another program's, which may go on meanwhile: creates coverage, and
 * leaves its cursors alone.
 *
 * With dry_run it only reads, and needs neither the lock nor the right to write. May be repeated.
 * The caller frees the report, also after a failure. HF_CONFIG: there is nothing to adopt.
 */
HF_MUST_CHECK hf_status hf__adopt(hf_store *store, hf_network *network, bool dry_run,
                                  hf__adopt_report *report, hf_error *err);

/*
 * The way back: drops coverage, an empty quarantine and the rows of our own in ingest_store. Data
 * and cursors stay as they are. HF_CONFIG: the network has no coverage.
 */
HF_MUST_CHECK hf_status hf__adopt_leave(hf_store *store, hf_network *network, hf_error *err);

#endif
