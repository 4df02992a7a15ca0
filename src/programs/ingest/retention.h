/* Drops old ledgers: first from coverage, then from the tables. */
#ifndef HF_INGEST_RETENTION_H
#define HF_INGEST_RETENTION_H

#include "base/stop.h"
#include "programs/ingest/ingest.h"

enum { HF__RETENTION_EVERY_MS = 60 * 1000 }; /* of a live ingester with --keep */

/* The row of ingest_store that says when a run last finished, by the store's clock. */
#define HF__RETENTION_RAN "holdfast.retentionRan"

typedef struct hf__retention_report {
    bool too_early;       /* a run finished less than keep->every_ms ago: nothing was done */
    int64_t wait_ms;      /* if too_early: how long until the next run is due */
    int64_t latest;       /* 0: nothing has been ingested */
    int64_t floor_before; /* 0: there was none */
    int64_t floor;
    int64_t oldest_before; /* the cursor; 0: there was none */
    int64_t oldest;
    size_t dropped; /* partitions */
    size_t left;    /* partitions below the floor that are still there, for the next run */
    int64_t rows;   /* deleted from a local store */
} hf__retention_report;

/*
 * Runs once, under a lock of its own. One transaction clips coverage below the floor, raises the
 * oldest cursor and stores the floor, which never falls. Then it drops whole partitions below the
 * floor, oldest first; a local store has none, so rows are deleted in short transactions. It may
 * stop at any point: the next run continues. Age counts from the latest ledger's time; the latest
 * ledger always stays. stop may be NULL.
 *
 * HF_NOT_ACQUIRED: another run is going on, or (report->left > 0) a partition is in use.
 * HF_INTERRUPTED: stop was set. HF_CONFIG: there are no ledgers or no coverage, or the tables are
 * not partitioned by ledger. HF_CURSOR: the network was reset meanwhile.
 */
HF_MUST_CHECK hf_status hf__retention_run(hf_store *store, hf_network *network,
                                          const hf__keep *keep, hf__stop *stop,
                                          hf__retention_report *report, hf_error *err);

/*
 * Retention beside the live ingester. It has a thread of its own because it may have to wait, and
 * the live ingester must not.
 */
typedef struct hf__keeper hf__keeper;

/*
 * Starts the thread. It runs retention at once and then every minute, but skips a run if another
 * process finished one within the last minute. Failed runs are not reported. Store and network must
 * outlive the keeper; keep is copied.
 */
HF_MUST_CHECK hf_status hf__keeper_start(hf_store *store, hf_network *network, const hf__keep *keep,
                                         hf__keeper **keeper, hf_error *err);
/*
 * Ends the thread and frees the keeper. With once_more it first runs retention a last time, in the
 * caller's thread, for the ledgers that came since the last run. NULL is safe.
 */
void hf__keeper_stop(hf__keeper *keeper, bool once_more);

/* Parses "30d", "12h" or "1000-ledgers" into *keep. HF_INVALID: it is none of these. */
HF_MUST_CHECK hf_status read_keep(const char *text, hf__keep *keep, hf_error *err);

#endif
