/* What nobody may do while the network is ingested: adopting and resetting. */
#ifndef HF_INGEST_EXCLUSIVE_H
#define HF_INGEST_EXCLUSIVE_H

#include "lib/ledgers/ledgers.h"

/*
 * Takes the network's lock at once, as the ingester does, for hf_lock_transact. HF_NOT_ACQUIRED names who
 * ingests.
 */
HF_MUST_CHECK hf_status hf__take_network(hf_store *store, const hf_network *network, hf_lock **lock,
                                         hf_error *err);

#endif
