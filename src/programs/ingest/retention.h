#ifndef HF_INGEST_RETENTION_H
#define HF_INGEST_RETENTION_H

#include "base/stop.h"
#include "programs/ingest/ingest.h"

/* Old ledgers go: first from coverage, then from the tables. */

enum { HF__RETENTION_EVERY_MS = 60 * 1000 }; /* of an ingester that keeps some ledgers only */

/* When it ran last to its end, by the store's clock, in ingest_store. */
#define HF__RETENTION_RAN "holdfast.retentionRan"

typedef struct hf__retention_report {
    bool too_early;       /* it ran less than keep->every_ms ago: nothing was done */
    int64_t wait_ms;      /* then: for so long */
    int64_t latest;       /* 0: nothing has been ingested */
    int64_t floor_before; /* 0: there was none */
    int64_t floor;
    int64_t oldest_before; /* the cursor; 0: there was none */
    int64_t oldest;
    size_t dropped; /* partitions */
    size_t left;    /* partitions below the floor that somebody uses: the next run has them */
    int64_t rows;   /* deleted; local store */
} hf__retention_report;

/*
 * Under a lock of its own. In one transaction: clips coverage below the floor, raises the oldest
 * cursor, stores the floor, which never falls. Then drops whole partitions below it, oldest first,
 * or deletes rows in short transactions where there are no partitions. It may end anywhere: the
 * next run goes on. Age counts from the latest ledger's time; the latest ledger always stays.
 *
 * HF_NOT_ACQUIRED: another run goes on, or (report->left > 0) a partition is in use.
 * HF_INTERRUPTED: stop, which may be NULL. HF_CONFIG: there is nothing to work on, or the tables
 * are not ours to drop.
 */
HF_MUST_CHECK hf_status hf__retention_run(hf_store *store, hf_network *network,
                                          const hf__keep *keep, hf__stop *stop,
                                          hf__retention_report *report, hf_error *err);

/*
 * Retention beside the live ingester, in a thread of its own: it may be kept waiting, live may not.
 */

typedef struct hf__keeper hf__keeper;

/* Runs at once and then every minute, at most once a minute over the fleet. */
HF_MUST_CHECK hf_status hf__keeper_start(hf_store *store, hf_network *network, const hf__keep *keep,
                                         hf__keeper **keeper, hf_error *err);
/* once_more: what came since the last run is looked at too. NULL is safe. */
void hf__keeper_stop(hf__keeper *keeper, bool once_more);

/* "30d", "12h" or "1000-ledgers". */
HF_MUST_CHECK hf_status read_keep(const char *text, hf__keep *keep, hf_error *err);

#endif
