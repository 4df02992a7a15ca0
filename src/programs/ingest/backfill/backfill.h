/*
 * Filling what coverage lacks, beside the live ingester. The work is cut into cells of one fixed
 * grid: whoever fills a cell holds its lock, so that workers and other processes share the work.
 * While the live ingester commits, a worker rests after each transaction for as long as that took.
 */
#ifndef HF_INGEST_BACKFILL_H
#define HF_INGEST_BACKFILL_H

#include "base/stop.h"
#include "programs/ingest/ingest.h"

enum { HF__CELL_LEDGERS = 256 }; /* cell = sequence / 256, whatever the window */

struct hf__backfill_options {
    hf__source_options source; /* follow and stop_fd are the backfill's own */
    hf_range window;      /* what lies beyond latest, or below what retention keeps, is left out */
    bool all_gaps;        /* instead: whatever `holdfast gaps` lists */
    unsigned workers;     /* 0: 2 */
    double rate;          /* ledgers a second, all workers together; 0: no limit */
    int64_t commit_every; /* ledgers in one transaction at most; 0: 1000 */
    size_t memory;        /* bytes of ledgers in flight, all workers together; 0: 64 MB */
    int64_t partition_ledgers; /* 0: HF__PARTITION_LEDGERS */
    hf__on_bad on_bad;
    /*
     * Told from the thread that runs the backfill. Progress counts as if the missing ledgers stood
     * in a row: first is the first of them, latest as many further as are filled, tip the end of
     * the row.
     */
    hf__ingest_events events;
};

/* Ledgers that could not be filled. */
struct hf__backfill_failure {
    hf_range range;
    hf_error why;
};

struct hf__backfill_report {
    hf_range window;      /* as it was after clipping; from > to: there was nothing to look at */
    int64_t missing;      /* ledgers that coverage lacked at the start */
    int64_t ledgers;      /* written in this run */
    int64_t transactions; /* likewise */
    int64_t known;        /* besides: rows were there, only coverage was not */
    int64_t quarantined;
    int64_t cells_elsewhere;               /* found done: another process was faster */
    hf__ranges filled;                     /* ascending */
    struct hf__backfill_failure *failures; /* ascending */
    size_t failure_count;
    bool stopped; /* by the caller's stop, before all was done */
};

/*
 * HF_OK: nothing lacks, or it was stopped (report->stopped). HF_UNREACHABLE: ranges failed after
 * three tries each, and are in the report; all others were filled. HF_BAD_DATA: a ledger that
 * cannot be taken, or that does not fit to its neighbours, stopped the run. HF_CONFIG: the network
 * has no latest ledger yet, its cursor and coverage disagree, or the source cannot be read from any
 * place. Whatever it returns, what was committed is covered and the rest is a gap as before. The
 * caller frees the report.
 */
HF_MUST_CHECK hf_status hf__backfill_run(hf_store *store, hf_network *network,
                                         const struct hf__backfill_options *options, hf__stop *stop,
                                         struct hf__backfill_report *report, hf_error *err);
void hf__backfill_report_free(struct hf__backfill_report *report);

#endif
