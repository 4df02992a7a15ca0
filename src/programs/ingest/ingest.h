#ifndef HF_INGEST_INGEST_H
#define HF_INGEST_INGEST_H

#include <stdatomic.h>

#include "cli/command.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/sources/source.h"

/* Single-writer ingestion: what its parts share. */

typedef enum hf__on_bad { HF__BAD_STOPS, HF__BAD_IS_QUARANTINED } hf__on_bad;

/* What ledgers are kept of: by age from the newest one, or by number. Both 0: all. */
typedef struct hf__keep {
    int64_t age_ms;
    int64_t ledgers;
    int64_t every_ms; /* at most one run in so long, over all processes; 0: each time it is asked */
} hf__keep;

typedef struct hf__ingest_progress hf__ingest_progress;

/* Told from the thread that runs the ingester. Any member may be NULL. */
typedef struct hf__ingest_events {
    void (*note)(void *arg, const char *text); /* "waiting for …", "the source is back" */
    void (*progress)(void *arg, const hf__ingest_progress *progress); /* after each commit */
    void *arg;
} hf__ingest_events;

struct hf__ingest_progress {
    int64_t first;        /* ledger of this run */
    int64_t latest;       /* committed */
    int64_t tip;          /* of the source; 0: unknown */
    int64_t ledgers;      /* committed in this run */
    int64_t transactions; /* likewise */
    int64_t skipped;      /* were there already */
    int64_t quarantined;
};

typedef struct hf__ingest_options {
    hf__source_options source; /* stop_fd is the ingester's own */
    int64_t start_ledger;      /* of a first run; 0: the source's tip */
    int64_t commit_every;      /* ledgers in one transaction at most; 0: 1000 */
    size_t memory;             /* bytes of ledgers in flight; 0: 64 MB */
    int64_t partition_ledgers; /* 0: HF__PARTITION_LEDGERS */
    hf__on_bad on_bad;
    bool standby; /* wait for the lock */
    hf__keep keep;
    hf__ingest_events events;
} hf__ingest_options;

/* The commands of `holdfast ingest` and `holdfast retention`. */

extern const struct command cmd_ingest; /* without a word behind it */
extern const struct command cmd_ingest_status;
extern const struct command cmd_ingest_adopt;
extern const struct command cmd_ingest_reset;

extern const struct command cmd_retention; /* without a word behind it */
extern const struct command cmd_retention_reconcile;

#endif
