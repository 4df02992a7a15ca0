/*
 * What ingesters write down of themselves in ingest_store, beside their commits, for those who look on.
 * Nothing is decided by it: a row that is missing or holds no number is as good as none.
 */
#ifndef HF_INGEST_ACTIVITY_H
#define HF_INGEST_ACTIVITY_H

#include "programs/ingest/status.h"

#define HF__SOURCE_TIP "holdfast.sourceTip"       /* 0: the source cannot tell */
#define HF__LAST_SUCCESS "holdfast.lastSuccess"   /* Unix time in ms */
#define HF__LIVE_LEDGERS "holdfast.liveLedgers"   /* committed by the live ingester */
#define HF__LIVE_COUNTED "holdfast.liveCountedTo" /* the latest ledger among them */
#define HF__BACKFILL_LEDGERS "holdfast.backfillLedgers"

/* Of the live ingester, who is alone and so knows the whole numbers. */
typedef struct hf__activity {
    int64_t source_tip;
    int64_t last_success_ms;
    int64_t ledgers;
    int64_t counted_to;
} hf__activity;

/* Queued: it rides with the transaction's next message. */
HF_MUST_CHECK hf_status hf__activity_write(hf_tx *tx, const hf_network *network,
                                           const hf__activity *activity, hf_error *err);

/*
 * Where to go on counting, at the beginning of a session: what is written down, and what should be,
 * because ledgers up to `latest` were committed after the last that was counted. A network that has not
 * started has no latest: 0.
 */
HF_MUST_CHECK hf_status hf__activity_resume(hf_network *network, int64_t latest,
                                            hf__activity *written, hf__activity *actual,
                                            hf_error *err);

/* Queued; for whoever holds the lock of coverage, so that no two wait for each other here. */
HF_MUST_CHECK hf_status hf__activity_add_backfill(hf_tx *tx, const hf_network *network,
                                                  int64_t ledgers, hf_error *err);

/* Into the last four of status. */
HF_MUST_CHECK hf_status hf__activity_show(hf_tx *tx, const hf_network *network,
                                          hf__network_status *status, hf_error *err);

#endif
