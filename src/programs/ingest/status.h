#ifndef HF_INGEST_STATUS_H
#define HF_INGEST_STATUS_H

#include "lib/ledgers/ledgers.h"

/* How a network stands, from the store alone: for people beside the ingester, or without one. */

/* A number that may not be there. */
typedef struct hf__maybe {
    bool known;
    int64_t value;
} hf__maybe;

typedef struct hf__network_status {
    bool exists; /* there are tables */
    hf__maybe latest, oldest, wanted_from, floor;
    bool has_coverage; /* the table is there */
    size_t ranges;
    int64_t covered;    /* ledgers */
    bool disagrees;     /* what the cursor of the latest ledger claims is not what is covered */
    hf__maybe gaps;     /* how many; not known without coverage */
    int64_t missing;    /* ledgers in them */
    char closed_at[40]; /* of the latest ledger, RFC 3339; "": not known */
    int64_t age_ms;     /* since then, by the store's clock; never negative */
    hf__maybe quarantined;
    hf__maybe transactions; /* about; PostgreSQL's own estimate */
    /* As the ingester wrote it down beside its commits, at most a second ago. */
    hf__maybe source_tip;                     /* the newest ledger that the source spoke of */
    hf__maybe last_success_ms;                /* Unix time of its last commit */
    hf__maybe live_ledgers, backfill_ledgers; /* committed since the network began */
} hf__network_status;

HF_MUST_CHECK hf_status hf__network_status_read(hf_network *network, hf__network_status *status,
                                                hf_error *err);

/*
 * The same in a transaction that sees one moment; coverage and gaps (each may be NULL) are the
 * caller's to free, whatever the outcome. Local: in the network's own file.
 */
HF_MUST_CHECK hf_status hf__network_status_read_in(hf_tx *tx, const hf_network *network,
                                                   hf__network_status *status, hf__ranges *coverage,
                                                   hf__ranges *gaps, hf_error *err);

/*
 * Names of networks in schemas (local: files) called ingest_NAME, ascending. Free each, and the
 * list.
 */
HF_MUST_CHECK hf_status hf__networks_list(hf_store *store, char ***names, size_t *count,
                                          hf_error *err);
/* The same in a transaction; local: tx is NULL. */
HF_MUST_CHECK hf_status hf__networks_list_in(hf_store *store, hf_tx *tx, char ***names,
                                             size_t *count, hf_error *err);
void hf__networks_free(char **names, size_t count);

/*
 * What ingesters write down of themselves in ingest_store, beside their commits, for those who look
 * on. Nothing is decided by it: a row that is missing or holds no number is as good as none.
 */

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
 * because ledgers up to `latest` were committed after the last that was counted. A network that has
 * not started has no latest: 0.
 */
HF_MUST_CHECK hf_status hf__activity_resume(hf_network *network, int64_t latest,
                                            hf__activity *written, hf__activity *actual,
                                            hf_error *err);

/* Queued; for whoever holds the lock of coverage, so that no two wait for each other here. */
HF_MUST_CHECK hf_status hf__activity_add_backfill(hf_tx *tx, const hf_network *network,
                                                  int64_t ledgers, hf_error *err);

#endif
