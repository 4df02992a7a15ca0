/*
 * Fills gaps in coverage, beside the live ingester. The work is cut into cells of one fixed grid. A
 * worker holds the locks of the cells that it fills, so that the workers of several processes can
 * share the work. While the live ingester commits, a worker rests after each of its transactions
 * for as long as that took.
 */
#ifndef HF_INGEST_BACKFILL_BACKFILL_H
#define HF_INGEST_BACKFILL_BACKFILL_H

#include "base/stop.h"
#include "programs/ingest/ingest.h"

enum { HF__CELL_LEDGERS = 256 }; /* cell = sequence / 256, whatever the window */

struct hf__backfill_options {
    hf__source_options source; /* follow and stop_fd are ignored: the backfill sets its own */
    hf_range window;           /* clipped to the retention floor and to the latest ledger */
    bool all_gaps;             /* instead of window: all that `holdfast gaps` lists */
    unsigned workers;          /* 0: 2 */
    double rate;               /* ledgers a second, all workers together; 0: no limit */
    int64_t commit_every;      /* at most this many ledgers in one transaction; 0: 1000 */
    size_t memory;             /* bytes of ledgers in flight, all workers together; 0: 64 MB */
    int64_t partition_ledgers; /* 0: HF__PARTITION_LEDGERS */
    hf__on_bad on_bad;
    /*
     * Progress counts as if the missing ledgers followed each other without holes: first is the
     * first of them, latest is as far after it as ledgers were filled, tip is where the last one
     * would stand.
     */
    hf__ingest_events events;
};

/* Ledgers that could not be filled. */
struct hf__backfill_failure {
    hf_range range;
    hf_error why;
};

struct hf__backfill_report {
    hf_range window;      /* after clipping; from > to: it was empty */
    int64_t missing;      /* ledgers that were not covered at the start */
    int64_t ledgers;      /* written in this run */
    int64_t transactions; /* written in this run */
    int64_t known;        /* ledgers whose rows existed already: only coverage was added */
    int64_t quarantined;
    int64_t cells_elsewhere;               /* that another process had filled meanwhile */
    hf__ranges filled;                     /* ascending */
    struct hf__backfill_failure *failures; /* ascending */
    size_t failure_count;
    bool stopped; /* by the caller's stop, before all was done */
};

/*
 * Fills the gaps with threads of its own; events are called on the caller's thread. Whatever it
 * returns, all that was committed is covered, and the rest is a gap as before. The caller frees the
 * report, also after a failure.
 *
 * HF_OK: nothing is missing any more, or stop was set (report->stopped). HF_UNREACHABLE: some
 * ranges could not be filled after three attempts each; the report lists them. HF_BAD_DATA: a
 * ledger that cannot be taken, or does not fit its neighbours, ended the run. HF_CONFIG: the
 * network has no latest ledger yet, cursor and coverage disagree, the source cannot be read from a
 * given ledger on, or nothing proves that it is of the stored chain. HF_INVALID: the window is not
 * a range of ledgers.
 */
HF_MUST_CHECK hf_status hf__backfill_run(hf_store *store, hf_network *network,
                                         const struct hf__backfill_options *options, hf__stop *stop,
                                         struct hf__backfill_report *report, hf_error *err);
/* Frees what the report holds, and empties it. */
void hf__backfill_report_free(struct hf__backfill_report *report);

#endif
