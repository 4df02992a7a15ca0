/*
 * The live ingester: the only one on its network. It writes rows, coverage and cursor in one
 * transaction.
 */
#ifndef HF_INGEST_LIVE_H
#define HF_INGEST_LIVE_H

#include "base/stop.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/ingest.h"
#include "programs/ingest/reader.h"
#include "programs/ingest/sources/source.h"
#include "programs/ingest/status.h"
#include "programs/ingest/writer.h"

/*
 * Runs until the source ends or stop is set; both are HF_OK. When the session is lost or the store
 * is away, it acquires the lock again, with pauses of 1 to 10 s, and goes on from where the store
 * stands then: what it has read is kept only if it follows that ledger, by number and hash, and is
 * read again otherwise. Events are called on the caller's thread. *progress is filled, also after
 * a failure.
 *
 * HF_NOT_ACQUIRED: another ingester holds the network's lock, and err names it. HF_BAD_DATA: a
 * ledger cannot be taken; nothing of it was written. HF_CONFIG: cursor and coverage disagree, or
 * the source is of another network, or no longer has the ledgers that are needed.
 */
HF_MUST_CHECK hf_status hf__live_run(hf_store *store, hf_network *network,
                                     const hf__ingest_options *options, hf__stop *stop,
                                     hf__ingest_progress *progress, hf_error *err);

/* Where a network stands. Every session reads it from the store, which alone is right. */
typedef struct hf__ingest_state {
    bool started;                    /* at least one ledger has been ingested */
    int64_t latest;                  /* the cursor, which is also the end of coverage */
    int64_t oldest;                  /* the start of coverage's last run */
    int64_t row_from;                /* where coverage's last row begins */
    int64_t quarantined_to;          /* the last ledger in quarantine; 0: none is */
    char tip_hash[HF__HASH_MAX + 1]; /* of the latest ledger; "": unknown */
} hf__ingest_state;

/*
 * Reads the state on the session that holds the network's lock. HF_CONFIG: cursor and coverage
 * disagree, or the latest ledger has no row, so that data is missing; err says how to repair it.
 */
HF_MUST_CHECK hf_status hf__state_read(hf_lock *lock, hf_network *network, hf__ingest_state *state,
                                       hf_error *err);

/* One run. Only live*.c use it, on the thread of the run. */
struct live {
    hf_store *store;
    hf_network *network;
    const hf__ingest_options *options;
    hf__stop *stop;
    hf__ingest_progress *progress;

    hf_lock *lock;
    hf_error successor;     /* who has asked for the lock; set before stop is, else HF_OK */
    bool was_alone;         /* has held the lock: from now on it comes back after a loss */
    hf__ingest_state state; /* the ledgers in memory are checked against it */
    bool is_linked;         /* a commit of this session has found the store in that state */
    bool is_first_run;      /* it began with a network that had no ledger */
    int64_t wanted;         /* of a first run: from here on; 0: from what the source gives first */
    hf__reader *reader;
    hf__read read; /* taken from the reader, and not done with yet */
    struct batch batch;
    int64_t ensured_to;   /* partitions exist up to this ledger */
    int64_t guessed_bad;  /* ledgers quarantined since the last good one */
    bool link_is_unknown; /* the ledger before the next one was quarantined */
    bool source_is_known; /* it has given something */
    bool ended;           /* the source */
    hf_error end;         /* why it ended; code HF_OK: it has no more */
    bool one_by_one;      /* a batch was refused: one ledger per transaction, to find the bad one */
    unsigned failures;    /* of the store, since the last commit */

    hf__activity activity; /* up to the last commit */
    hf__activity written;  /* what the store has of it */
    hf__activity next;     /* what it becomes when the batch is committed */
    bool is_told;          /* the batch's transaction writes it */
    int64_t written_at_ms; /* monotonic clock; 0: not yet in this session */
};

static inline bool hf__live_is_stopped(const struct live *live)
{
    return hf__stop_is_set(live->stop);
}

/* live_write.c: calls the note event, if there is one. */
void hf__live_note(const struct live *live, const char *text);

/*
 * live_write.c: writes down that a first run wants ledgers from this one on, unless it wants
 * earlier ones already.
 */
HF_MUST_CHECK hf_status hf__live_want(hf_tx *tx, const struct live *live, int64_t from,
                                      hf_error *err);

/* live_write.c: for a transaction on the session of the lock, with a deadline. */
hf_tx_options hf__live_tx_options(const struct live *live);

/* live_write.c: commits the batch in one transaction and empties it. An empty batch is HF_OK. */
HF_MUST_CHECK hf_status hf__live_commit(struct live *live, hf_error *err);

/*
 * live.c: the activity rows of a batch. The first call computes live->next, and whether the batch's
 * transaction writes it (is_told); the second follows when that transaction has committed.
 */
void hf__live_prepare_telling(struct live *live);
void hf__live_has_told(struct live *live);

/*
 * live.c: takes all ledgers of the batch as if they came now, after the state has changed. Fails as
 * the functions below do.
 */
HF_MUST_CHECK hf_status hf__live_check_again(struct live *live, hf_error *err);

/* live_check.c: ledgers that do not fit, or that the store refuses. */

/*
 * Puts a bad ledger into quarantine, or returns HF_BAD_DATA if bad ledgers stop the run. The caller
 * has committed all ledgers before it.
 */
HF_MUST_CHECK hf_status hf__live_bad(struct live *live, const hf__bad_ledger *bad,
                                     const hf_error *why, hf_error *err);
/* A ledger that is stored already came again: skips it. HF_BAD_DATA: it has another hash. */
HF_MUST_CHECK hf_status hf__live_compare_known(struct live *live, const hf__ledger *ledger,
                                               hf_error *err);
/*
 * A ledger below the latest came, as a file or a command gave it. HF_BAD_DATA: it is wanted, and
 * the store does not have it, so it came out of order; it is on record as a gap.
 */
HF_MUST_CHECK hf_status hf__live_check_order(struct live *live, const hf__ledger *ledger,
                                             hf_error *err);
/* The same for a ledger that is still in the batch. */
HF_MUST_CHECK hf_status hf__live_compare_pending(struct live *live, const hf__ledger *ledger,
                                                 hf_error *err);
/* HF_BAD_DATA: it is not the next ledger, or its previous_hash is not that of the one before. */
HF_MUST_CHECK hf_status hf__live_check_link(struct live *live, const hf__ledger *ledger,
                                            hf_error *err);
/*
 * In the transaction that writes: does the store stand at the ledger, by number and hash, that the
 * batch was checked against? HF_CURSOR: it does not. The first commit of a session asks; from then
 * on the cursor, which moves from exactly that ledger, is enough.
 */
HF_MUST_CHECK hf_status hf__live_check_predecessor(const struct live *live, hf_tx *tx,
                                                   hf_error *err);
/*
 * The store refused the only ledger of the batch, for the reason `why`. HF_OK: the ledger is out of
 * the batch, in quarantine or because it was stored already.
 */
HF_MUST_CHECK hf_status hf__live_blame(struct live *live, const hf_error *why, hf_error *err);
/* Does the SQLSTATE begin with these two characters? */
bool hf__live_is_class(const hf_error *err, const char *class_name);
/* Did the store refuse the data itself, so that trying again is of no use? */
bool hf__live_is_about_data(const hf_error *err);

#endif
