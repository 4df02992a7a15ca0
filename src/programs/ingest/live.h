/* The live ingester: alone on its network, one transaction for rows, coverage and cursor. */
#ifndef HF_INGEST_LIVE_H
#define HF_INGEST_LIVE_H

#include "base/stop.h"
#include "programs/ingest/ingest.h"

/*
 * Runs until the source ends, for good or for ever, or until the stop: all HF_OK. HF_NOT_ACQUIRED:
 * somebody else ingests the network, and err names who. HF_BAD_DATA: a ledger that cannot be taken,
 * nothing of which was written. HF_CONFIG: cursor and coverage disagree, the source is of another network
 * or has forgotten what is needed. After a lost session it comes back by itself, with pauses of 1 to 10 s.
 */
HF_MUST_CHECK hf_status hf__live_run(hf_store *store, hf_network *network,
                                     const hf__ingest_options *options, hf__stop *stop,
                                     hf__ingest_progress *progress, hf_error *err);

#endif
