#ifndef HF_INGEST_BACKFILL_PARTS_H
#define HF_INGEST_BACKFILL_PARTS_H

#include <pthread.h>
#include <stdint.h>

#include "programs/ingest/backfill/backfill.h"
#include "programs/ingest/backfill/plan.h"
#include "programs/ingest/reader.h"
#include "programs/ingest/writer.h"

/*
 * Ledgers from the source, by ranges that mostly follow upon each other: then one reader serves
 * them.
 */

struct stream {
    const hf__source_options *options;
    hf__stop *stop;
    size_t memory;
    bool seeks; /* to begin anywhere costs little */
    hf__reader *reader;
    int64_t from; /* wanted: what comes before is dropped */
    int64_t next; /* where the reader is */
    int64_t to;   /* where it ends */
};

/* Compressed files and commands must be read from their start. */
bool stream_spec_seeks(const char *spec);

void stream_close(struct stream *stream);

/* A token bucket: so many a second, whoever takes them. */

typedef struct hf__rate {
    pthread_mutex_t mutex;
    double per_second; /* 0: no limit */
    double burst;      /* tokens that may be saved up */
    double tokens;     /* below 0: promised to those who wait */
    int64_t at_ms;     /* when tokens were counted */
} hf__rate;

/* The bucket is full at first: a tenth of a second's worth, and one at least. */
void hf__rate_init(hf__rate *rate, double per_second, int64_t now_ms);
void hf__rate_destroy(hf__rate *rate);

/* Takes one token, and says how many ms to wait before it may be used. Any thread. */
int64_t hf__rate_take(hf__rate *rate, int64_t now_ms);

/* What the files of the backfill share. */

struct note {
    struct note *next;
    char text[512];
};

/* One run. Below the mutex all belongs to it. */
struct backfill {
    hf_store *store;
    hf_network *network;
    const struct hf__backfill_options *options;
    hf__source_options source;
    unsigned workers;
    hf__stop halt; /* of the workers: the caller's stop, or a failure that ends the run */
    hf__rate rate;
    hf_range window;
    hf__ranges missing; /* when it began, as far as the source may have it */
    int64_t wanted;     /* ledgers in missing */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct plan plan;
    struct hf__backfill_report *report;
    hf_range *filled; /* in the order of commits */
    size_t filled_count;
    size_t filled_room;
    size_t failure_room;
    struct note *notes; /* for the thread that runs the backfill, in their order */
    struct note **last_note;
    bool progressed;
    unsigned running;
    unsigned failed_in_a_row; /* cells for which source or store were away */
    bool gave_up;
    hf_status ended; /* by a failure that no other cell could escape */
    hf_error why;
};

struct worker {
    struct backfill *fill;
    pthread_t thread;
    size_t at; /* in the plan */
    struct job job;
    hf_lock *lock;      /* of all cells of the job, on one session */
    hf__ranges missing; /* of the job, under the lock; the first range shrinks as it is filled */
    size_t range;       /* of missing, in hand */
    struct stream stream;
    struct batch batch;
    int64_t batch_since_ms;
    bool *is_there;     /* of the batch's ledgers: rows were found, only coverage lacks */
    int64_t live_at;    /* the latest ledger when it last wrote */
    unsigned troubles;  /* of the source, since the last ledger */
    bool source_failed; /* for good */
    hf__ranges lacking; /* the source does not have them */
    int64_t quarantined;
};

/* backfill.c: any thread */
void backfill_note(struct backfill *fill, const char *text);
void backfill_end(struct backfill *fill, hf_status status, const hf_error *why);
bool backfill_is_halted(const struct backfill *fill);

/* backfill.c, for the report: any thread; an empty range is none */
void backfill_count(struct backfill *fill, hf_range range, int64_t transactions, int64_t known);
void backfill_fail(struct backfill *fill, hf_range range, const hf_error *why);
/* The first of the ranges missing at the start that ends at `sequence` or behind it. */
size_t backfill_find_missing(const struct backfill *fill, int64_t sequence);

/* worker.c: a thread; its argument is a struct worker */
void *backfill_work(void *worker);

/* range.c: reads what the job's range lacks, and commits it in batches */
HF_MUST_CHECK hf_status backfill_range(struct worker *worker, hf_error *err);

/* write.c: what retention and a reset have left of the network by now. 0: there is none. */
struct bounds {
    bool has_floor, has_latest;
    int64_t floor;  /* retention keeps nothing below it */
    int64_t latest; /* the cursor of the live ingester */
};
HF_MUST_CHECK hf_status backfill_read_bounds(hf_tx *tx, const hf_network *network,
                                             struct bounds *bounds, hf_error *err);

/*
 * write.c: one transaction of rows, coverage and oldest cursor. HF_CURSOR: retention or a
 * reset went over the range meanwhile. HF_BAD_DATA: it does not fit to its neighbours.
 */
HF_MUST_CHECK hf_status backfill_write(struct worker *worker, hf_error *err);
/*
 * After 23505: which of the batch's ledgers are there, the same and complete? HF_BAD_DATA: they are
 * not.
 */
HF_MUST_CHECK hf_status backfill_look(struct worker *worker, hf_error *err);
HF_MUST_CHECK hf_status backfill_quarantine(struct worker *worker, int64_t sequence,
                                            const char *reason, const hf__bad_ledger *bad,
                                            hf_error *err);

#endif
