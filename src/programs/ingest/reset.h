/* Deletes the ledgers above one, after a fork or a reset of the network. */
#ifndef HF_INGEST_RESET_H
#define HF_INGEST_RESET_H

#include "lib/ledgers/ledgers.h"

typedef struct hf__reset_report {
    bool had_latest;       /* the cursor existed */
    int64_t latest_before; /* where it stood */
    int64_t latest;        /* where it is now; 0: nothing is left, and the cursors are deleted */
    int64_t oldest;
    int64_t uncovered; /* ledgers that were covered and are not any more */
} hf__reset_report;

/*
 * Deletes all ledgers above `to` (0: all) from the tables and from quarantine, clips coverage and
 * moves the cursors back to what is left, in one transaction under the network's lock.
 * HF_INVALID: `to` is not a ledger. HF_NOT_ACQUIRED: an ingester is running, or somebody used the
 * tables for so long that they could not be locked. HF_CONFIG: there is no such network.
 */
HF_MUST_CHECK hf_status hf__reset(hf_store *store, hf_network *network, int64_t to,
                                  hf__reset_report *report, hf_error *err);

/*
 * Acquires the network's lock without waiting, on a session of its own, for hf_lock_transact. Adopt
 * and reset use it so that no ingester runs beside them. The caller frees the lock.
 * HF_NOT_ACQUIRED: err names the ingester that holds it.
 */
HF_MUST_CHECK hf_status hf__take_network(hf_store *store, const hf_network *network, hf_lock **lock,
                                         hf_error *err);

#endif
