/* What the files of the backfill share. */
#ifndef HF_INGEST_BACKFILL_PARTS_H
#define HF_INGEST_BACKFILL_PARTS_H

#include <pthread.h>
#include <stdint.h>

#include "programs/ingest/backfill/backfill.h"
#include "programs/ingest/backfill/plan.h"
#include "programs/ingest/reader.h"
#include "programs/ingest/writer.h"

/*
 * One worker's ledgers from the source, range by range. The ranges mostly follow each other, so
 * that one reader serves many of them.
 */
struct stream {
    const hf__source_options *options;
    hf__stop *stop;
    size_t memory;
    bool seeks; /* the source can start anywhere at little cost */
    hf__reader *reader;
    int64_t from; /* ledgers before this one are dropped */
    int64_t next; /* the next ledger of the reader */
    int64_t to;   /* the last one */
};

/* False for compressed files and commands, which must be read from their start. */
bool stream_spec_seeks(const char *spec);

/* Stops the reader, if there is one. The stream can be aimed again. */
void stream_close(struct stream *stream);

/* A token bucket that all workers share: at most so many ledgers a second. */
typedef struct hf__rate {
    pthread_mutex_t mutex;
    double per_second; /* 0: no limit */
    double burst;      /* tokens that may be saved up */
    double tokens;     /* below 0: those who wait have taken them in advance */
    int64_t at_ms;     /* when tokens was last brought up to date */
} hf__rate;

/* The bucket starts full: with the tokens of a tenth of a second, but at least one. */
void hf__rate_init(hf__rate *rate, double per_second, int64_t now_ms);
void hf__rate_destroy(hf__rate *rate);

/* Takes one token, and returns how many ms to wait before using it. Any thread. */
int64_t hf__rate_take(hf__rate *rate, int64_t now_ms);

/* A stored ledger that proves the source to be of the store's chain. */
struct anchor {
    int64_t sequence;
    char hash[HF__HASH_MAX + 1];
};

/* A line for people, on its way to the thread that runs the backfill. */
struct note {
    struct note *next;
    char text[512];
};

/* One run. What stands below the mutex is guarded by it. */
struct backfill {
    hf_store *store;
    hf_network *network;
    const struct hf__backfill_options *options;
    hf__source_options source;
    unsigned workers;
    hf__stop halt; /* stops the workers: set after the caller's stop, or by a failure */
    hf__rate rate;
    hf_range window;
    hf__ranges missing;   /* at the start, without what the source does not have */
    int64_t wanted;       /* ledgers in missing */
    struct anchor anchor; /* with which each worker begins */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct plan plan;
    struct hf__backfill_report *report;
    hf_range *filled; /* in the order of commits */
    size_t filled_count;
    size_t filled_room;
    size_t failure_room;
    struct note *notes; /* oldest first; the thread that runs the backfill takes them */
    struct note **last_note;
    bool progressed; /* since the progress event was last called */
    unsigned running;
    unsigned failed_in_a_row; /* cells that failed because source or store were away */
    bool gave_up;             /* too many of them */
    hf_status ended;          /* by a failure that every other cell would meet too */
    hf_error why;
};

/* Used by its own thread only. */
struct worker {
    struct backfill *fill;
    pthread_t thread;
    size_t at; /* where its next job would start in the plan */
    struct job job;
    hf_lock *lock;      /* of all cells of the job, on one session */
    hf__ranges missing; /* of the job; read under the lock. What was committed is cut off */
    size_t range;       /* index into missing of the range being read */
    struct stream stream;
    struct anchor anchor; /* all that the stream has given was read after this proof */
    bool is_doubtful;     /* the source or the store was away since: it must be proven again */
    struct batch batch;
    int64_t batch_since_ms;
    bool *is_there;     /* for each ledger of the batch: its rows exist; NULL: not looked */
    int64_t live_at;    /* the latest ledger when this worker last wrote */
    unsigned troubles;  /* of the source, since the last ledger */
    bool source_failed; /* for this attempt: reading cannot go on */
    hf__ranges lacking; /* ledgers that the source does not have */
    int64_t quarantined;
};

/* backfill.c: adds a note for people; without memory it is dropped. Any thread. */
void backfill_note(struct backfill *fill, const char *text);

/* backfill.c: tells people at once. Only on the thread that runs the backfill. */
void backfill_tell(const struct backfill *fill, const char *text);

/* backfill.c: ends the run. The first failure is the one reported. Any thread. */
void backfill_end(struct backfill *fill, hf_status status, const hf_error *why);

/* backfill.c: should the workers stop? Any thread. */
bool backfill_is_halted(const struct backfill *fill);

/*
 * backfill.c: adds a committed range to the report. The rows of `known` of its ledgers existed
 * before. Any thread.
 */
void backfill_count(struct backfill *fill, hf_range range, int64_t transactions, int64_t known);

/* backfill.c: adds a range that failed to the report, unless it is empty. Any thread. */
void backfill_fail(struct backfill *fill, hf_range range, const hf_error *why);

/*
 * backfill.c: the index of the first range of fill->missing that ends at `sequence` or later. Any
 * thread: the ranges do not change while workers run.
 */
size_t backfill_find_missing(const struct backfill *fill, int64_t sequence);

/*
 * proof.c: takes out of fill->missing what the source does not have, reports that as failed, and
 * proves the source to be of the store's chain, unless nothing is left. HF_BAD_DATA: it is of
 * another chain. HF_CONFIG: nothing proves it.
 */
HF_MUST_CHECK hf_status backfill_ask_source(struct backfill *fill, hf__stop *stop, hf_error *err);

/* proof.c: proves it anew, for the worker's next stream. Fails likewise. */
HF_MUST_CHECK hf_status backfill_prove(struct worker *worker, hf_error *err);

/* worker.c: the thread of a worker; takes a struct worker, returns NULL. */
void *backfill_work(void *worker);

/*
 * range.c: reads the worker's current range from the source, and commits in batches that may go on
 * over several ranges; with the job's last range all is committed. Ledgers that the source does not
 * have go to worker->lacking. HF_INTERRUPTED: the run was halted.
 */
HF_MUST_CHECK hf_status backfill_range(struct worker *worker, hf_error *err);

/* write.c: what a backfill may write, which retention and a reset can change at any time. */
struct bounds {
    bool has_floor, has_latest;
    int64_t floor;  /* retention keeps nothing below it; 0: there is none */
    int64_t latest; /* the cursor of the live ingester; 0: there is none */
};
HF_MUST_CHECK hf_status backfill_read_bounds(hf_tx *tx, const hf_network *network,
                                             struct bounds *bounds, hf_error *err);

/* write.c: HF_BAD_DATA: a ledger has two hashes, ours and theirs. */
HF_MUST_CHECK hf_status backfill_refuse_chain(const hf_network *network, int64_t sequence,
                                              const char *ours, hf__slice theirs, hf_error *err);

/* write.c: the index behind the run of successive ledgers that begins at `at`. */
size_t backfill_run_end(const struct batch *batch, size_t at);

/*
 * write.c: writes the batch's rows, coverage and the oldest cursor in one transaction. HF_CURSOR:
 * retention, a reset or a repair has removed the range, ledgers between two runs, or the anchor
 * meanwhile.
 * HF_BAD_DATA: it does not fit its neighbours.
 */
HF_MUST_CHECK hf_status backfill_write(struct worker *worker, hf_error *err);

/*
 * write.c: after SQLSTATE 23505 (unique violation), finds out which ledgers of the batch are stored
 * already, and sets worker->is_there, which the caller frees. On entry *err is that violation.
 * HF_BAD_DATA: what is stored is of another chain, or incomplete.
 */
HF_MUST_CHECK hf_status backfill_look(struct worker *worker, hf_error *err);

/* write.c: puts a ledger into quarantine, in a transaction of its own. */
HF_MUST_CHECK hf_status backfill_quarantine(struct worker *worker, int64_t sequence,
                                            const char *reason, const hf__bad_ledger *bad,
                                            hf_error *err);

#endif
