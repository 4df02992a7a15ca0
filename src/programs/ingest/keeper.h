/* Retention beside the live ingester, in a thread of its own: it may be kept waiting, live may not. */
#ifndef HF_INGEST_KEEPER_H
#define HF_INGEST_KEEPER_H

#include "base/stop.h"
#include "programs/ingest/ingest.h"

typedef struct hf__keeper hf__keeper;

/* Runs at once and then every minute, at most once a minute over the fleet. */
HF_MUST_CHECK hf_status hf__keeper_start(hf_store *store, hf_network *network, const hf__keep *keep,
                                         hf__keeper **keeper, hf_error *err);
/* once_more: what came since the last run is looked at too. NULL is safe. */
void hf__keeper_stop(hf__keeper *keeper, bool once_more);

#endif
