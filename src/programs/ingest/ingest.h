/* Options, progress and events that live ingestion and backfill share, and the list of commands. */
#ifndef HF_INGEST_INGEST_H
#define HF_INGEST_INGEST_H

#include <stdatomic.h>

#include "cli/command.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/sources/source.h"

/* A ledger that cannot be read or stored ends the run, or is kept in quarantine. */
typedef enum hf__on_bad { HF__BAD_STOPS, HF__BAD_IS_QUARANTINED } hf__on_bad;

/* Which ledgers to keep: by age, counted back from the latest one, or by number. Both 0: all. */
typedef struct hf__keep {
    int64_t age_ms;
    int64_t ledgers;
    int64_t every_ms; /* skip a run if any process finished one within this time; 0: never skip */
} hf__keep;

typedef struct hf__ingest_progress hf__ingest_progress;

/* Called on the thread that runs the ingester or the backfill. Any member may be NULL. */
typedef struct hf__ingest_events {
    void (*note)(void *arg, const char *text); /* a line for people, such as why it waits */
    void (*progress)(void *arg, const hf__ingest_progress *progress); /* after each commit */
    void *arg;
} hf__ingest_events;

struct hf__ingest_progress {
    int64_t first;        /* the first ledger that this run committed */
    int64_t latest;       /* the last one */
    int64_t tip;          /* the newest ledger of the source; 0: unknown */
    int64_t ledgers;      /* committed in this run */
    int64_t transactions; /* committed in this run */
    int64_t skipped;      /* ledgers that the source gave again */
    int64_t quarantined;
};

typedef struct hf__ingest_options {
    hf__source_options source; /* stop_fd is ignored: the ingester sets its own */
    int64_t start_ledger;      /* of a first run; 0: the tip of RPC, the start of other sources */
    int64_t commit_every;      /* at most this many ledgers in one transaction; 0: 1000 */
    size_t memory;             /* bytes of ledgers in flight; 0: 64 MB */
    int64_t partition_ledgers; /* 0: HF__PARTITION_LEDGERS */
    hf__on_bad on_bad;
    bool standby; /* wait for the network's lock instead of failing */
    bool ask;     /* before all who wait, and ask the holder to yield */
    bool refuses; /* to yield, when it is asked itself */
    hf__keep keep;
    hf__ingest_events events;
} hf__ingest_options;

/* The commands of `holdfast ingest` and `holdfast retention`. */

extern const struct command cmd_ingest; /* `holdfast ingest` without a sub-command */
extern const struct command cmd_ingest_status;
extern const struct command cmd_ingest_adopt;
extern const struct command cmd_ingest_reset;

extern const struct command cmd_retention; /* `holdfast retention` without a sub-command */
extern const struct command cmd_retention_reconcile;

#endif
