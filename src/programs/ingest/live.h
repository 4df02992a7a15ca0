#ifndef HF_INGEST_LIVE_H
#define HF_INGEST_LIVE_H

#include "base/stop.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/ingest.h"
#include "programs/ingest/reader.h"
#include "programs/ingest/sources/source.h"
#include "programs/ingest/status.h"
#include "programs/ingest/writer.h"

/* The live ingester: alone on its network, one transaction for rows, coverage and cursor. */

/*
 * Runs until the source ends, for good or for ever, or until the stop: all HF_OK. HF_NOT_ACQUIRED:
 * somebody else ingests the network, and err names who. HF_BAD_DATA: a ledger that cannot be taken,
 * nothing of which was written. HF_CONFIG: cursor and coverage disagree, the source is of another
 * network or has forgotten what is needed. After a lost session it comes back by itself, with
 * pauses of 1 to 10 s.
 */
HF_MUST_CHECK hf_status hf__live_run(hf_store *store, hf_network *network,
                                     const hf__ingest_options *options, hf__stop *stop,
                                     hf__ingest_progress *progress, hf_error *err);

/* Where a network stands, read from the store, which is the only truth. */

typedef struct hf__ingest_state {
    bool started;                    /* at least one ledger has been ingested */
    int64_t latest;                  /* the cursor, which is the end of coverage */
    int64_t oldest;                  /* the start of coverage's last run */
    int64_t row_from;                /* where coverage's last row begins */
    char tip_hash[HF__HASH_MAX + 1]; /* of the latest ledger; "": not known */
} hf__ingest_state;

/*
 * In one transaction. HF_CONFIG where cursor and coverage disagree, with the way on: what the
 * cursor claims and the data lacks must not be built upon.
 */
HF_MUST_CHECK hf_status hf__state_read(hf_network *network, hf__ingest_state *state, hf_error *err);

/* The parts of the live ingester; only live*.c include it. */

struct live {
    hf_store *store;
    hf_network *network;
    const hf__ingest_options *options;
    hf__stop *stop;
    hf__ingest_progress *progress;

    hf_lock *lock;
    hf__ingest_state state;
    hf__reader *reader;
    struct batch batch;
    int64_t ensured_to;   /* partitions are there up to this ledger */
    int64_t guessed_bad;  /* ledgers that could not even be numbered, since the last good one */
    bool link_is_unknown; /* the ledger before the next one was quarantined */
    bool ended;
    bool one_by_one; /* a batch was refused: which ledger is to blame? */
    unsigned failures;

    hf__activity activity; /* up to the last commit */
    hf__activity written;  /* what the store has of it */
    hf__activity next;     /* once the batch is committed */
    bool is_told;          /* in the batch's transaction */
    int64_t written_at_ms; /* monotonic; 0: not in this session */
};

static inline bool hf__live_is_stopped(const struct live *live)
{
    return hf__stop_is_set(live->stop);
}

/* live_write.c */
void hf__live_note(const struct live *live, const char *text);
/* One transaction: rows, coverage, cursor. An empty batch is committed already. */
HF_MUST_CHECK hf_status hf__live_commit(struct live *live, hf_error *err);

/*
 * The numbers for those who look on, around the commit of a batch: are they part of it, and now
 * they are as they shall be.
 */
void hf__live_prepare_telling(struct live *live);
void hf__live_has_told(struct live *live);

/* live_check.c: ledgers that are not as they should be */
/* Keeps a ledger apart or stops. Whatever came before it has been committed. */
HF_MUST_CHECK hf_status hf__live_bad(struct live *live, const hf__bad_ledger *bad,
                                     const hf_error *why, hf_error *err);
/* A ledger that came before: skipped if it is the one that is there. */
HF_MUST_CHECK hf_status hf__live_compare_known(struct live *live, const hf__ledger *ledger,
                                               hf_error *err);
/* The same for one that is about to be written. */
HF_MUST_CHECK hf_status hf__live_compare_pending(struct live *live, const hf__ledger *ledger,
                                                 hf_error *err);
/* Is it the one that comes next, and does it follow from the one before? */
HF_MUST_CHECK hf_status hf__live_check_link(const struct live *live, const hf__ledger *ledger,
                                            hf_error *err);
/* The store refused the only ledger of the batch. HF_OK: it is out of the way. */
HF_MUST_CHECK hf_status hf__live_blame(struct live *live, const hf_error *why, hf_error *err);
bool hf__live_is_class(const hf_error *err, const char *class_name);
/* The store did not like what it was given, and will not like it any better later. */
bool hf__live_is_about_data(const hf_error *err);

#endif
