/* The state of a network, read from the store alone: it works with or without an ingester. */
#ifndef HF_INGEST_STATUS_H
#define HF_INGEST_STATUS_H

#include "lib/ledgers/ledgers.h"

/* A number that may be unknown. */
typedef struct hf__maybe {
    bool known;
    int64_t value;
} hf__maybe;

typedef struct hf__network_status {
    bool exists;                                  /* the network has tables */
    hf__maybe latest, oldest, wanted_from, floor; /* rows of ingest_store */
    bool has_coverage;                            /* the table exists */
    size_t ranges;
    int64_t covered;    /* ledgers */
    bool disagrees;     /* the latest cursor does not stand at the end of coverage */
    hf__maybe gaps;     /* how many; unknown without coverage */
    int64_t missing;    /* ledgers in the gaps */
    char closed_at[40]; /* of the latest ledger, RFC 3339; "": unknown */
    int64_t age_ms;     /* since closed_at, by the store's clock; never negative */
    hf__maybe quarantined;
    hf__maybe transactions; /* PostgreSQL's own estimate */
    /* As the ingester wrote it beside its commits; up to a second behind while it commits. */
    hf__maybe source_tip;                     /* the newest ledger that the source told of */
    hf__maybe last_success_ms;                /* Unix time of its last commit */
    hf__maybe live_ledgers, backfill_ledgers; /* committed since the network began */
} hf__network_status;

/*
 * Reads the state in one read-only transaction. A network without tables is no error: exists is
 * false.
 */
HF_MUST_CHECK hf_status hf__network_status_read(hf_network *network, hf__network_status *status,
                                                hf_error *err);

/*
 * The same in the caller's transaction, which should have one snapshot; of a local network it must
 * be on the network's own file. Adds to coverage and gaps (each may be NULL), which the caller
 * frees, also after a failure.
 */
HF_MUST_CHECK hf_status hf__network_status_read_in(hf_tx *tx, const hf_network *network,
                                                   hf__network_status *status, hf__ranges *coverage,
                                                   hf__ranges *gaps, hf_error *err);

enum { HF__TIP_FRESH_MS = 60 * 1000 }; /* what a source said holds so long after its ingester */

/*
 * How far the source is ahead of the latest ledger; negative: ahead of what it last said. Unknown
 * too if nobody ingests, and the last commit is too long ago: the source has gone on since.
 */
hf__maybe hf__network_lag(const hf__network_status *status, bool is_ingested, int64_t now_ms);

/* A schema (local: a file) that holds the tables of a network. */
typedef struct hf__network_entry {
    char schema[64];
    bool readable; /* false: this role may not read its tables; always true on a local store */
} hf__network_entry;

/*
 * Lists the schemas that have a table of coverage or are called ingest_NAME, ascending; in tx, or
 * in a transaction of its own if that is NULL. On a local store tx is not used. hf__network_find
 * tells which network one holds. The caller frees the list, also after a failure.
 */
HF_MUST_CHECK hf_status hf__networks_list(hf_store *store, hf_tx *tx, hf__network_entry **entries,
                                          size_t *count, hf_error *err);

/*
 * Activity: rows of ingest_store that ingesters write beside their commits, for people and
 * monitoring. No code decides anything by them. A row that does not hold a number counts as
 * missing.
 */

#define HF__SOURCE_TIP "holdfast.sourceTip"       /* 0: the source cannot tell */
#define HF__LAST_SUCCESS "holdfast.lastSuccess"   /* Unix time in ms */
#define HF__LIVE_LEDGERS "holdfast.liveLedgers"   /* committed by the live ingester */
#define HF__LIVE_COUNTED "holdfast.liveCountedTo" /* the latest ledger among them */
#define HF__BACKFILL_LEDGERS "holdfast.backfillLedgers"

/* The rows of the live ingester. It is the only one that writes them, so it knows the totals. */
typedef struct hf__activity {
    int64_t source_tip;
    int64_t last_success_ms;
    int64_t ledgers;
    int64_t counted_to;
} hf__activity;

/* Writes the rows. Queued: sent with the transaction's next statement. */
HF_MUST_CHECK hf_status hf__activity_write(hf_tx *tx, const hf_network *network,
                                           const hf__activity *activity, hf_error *err);

/*
 * Reads the rows at the start of a session. *written is what the store has; *actual also counts the
 * ledgers up to `latest` that were committed after the rows were last written. latest is 0 for a
 * network that has not started.
 */
HF_MUST_CHECK hf_status hf__activity_resume(hf_network *network, int64_t latest,
                                            hf__activity *written, hf__activity *actual,
                                            hf_error *err);

/*
 * Adds to the count of backfilled ledgers. Queued. The transaction must hold the lock of coverage,
 * as hf__coverage_add takes it: then two of them never deadlock on this row.
 */
HF_MUST_CHECK hf_status hf__activity_add_backfill(hf_tx *tx, const hf_network *network,
                                                  int64_t ledgers, hf_error *err);

#endif
