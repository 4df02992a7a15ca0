#ifndef HF_INGEST_RESET_H
#define HF_INGEST_RESET_H

#include "lib/ledgers/ledgers.h"

/* The way on after a fork or a network's reset: what is above a ledger goes. */

typedef struct hf__reset_report {
    bool had_latest;
    int64_t latest_before;
    int64_t latest; /* 0: nothing is left, and there are no cursors */
    int64_t oldest;
    int64_t uncovered; /* ledgers that were covered */
} hf__reset_report;

/*
 * Deletes all ledgers above `to` (0: all), with what was quarantined of them, clips coverage and
 * moves the cursors back to what is left, in one transaction under the network's lock.
 * HF_NOT_ACQUIRED: somebody ingests, or reads so long that the tables cannot be had. HF_CONFIG:
 * there is no such network.
 */
HF_MUST_CHECK hf_status hf__reset(hf_store *store, hf_network *network, int64_t to,
                                  hf__reset_report *report, hf_error *err);

/* What nobody may do while the network is ingested: adopting and resetting. */

/*
 * Takes the network's lock at once, as the ingester does, for hf_lock_transact. HF_NOT_ACQUIRED
 * names who ingests.
 */
HF_MUST_CHECK hf_status hf__take_network(hf_store *store, const hf_network *network, hf_lock **lock,
                                         hf_error *err);

#endif
