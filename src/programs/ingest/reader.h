/*
 * A thread that fetches and parses ledgers ahead of the writer. What it has read waits in a queue
 * that is bounded by its bytes.
 */
#ifndef HF_INGEST_READER_H
#define HF_INGEST_READER_H

#include "base/stop.h"
#include "programs/ingest/sources/source.h"

typedef enum hf__read_kind {
    HF__READ_NOTHING, /* the time is over, or the stop was set */
    HF__READ_LEDGER,
    HF__READ_BAD,    /* bad holds what came, why says what is wrong with it */
    HF__READ_NOTE,   /* why.message is for people; unless why.code is HF_OK, the source is away, and
                      * is tried again */
    HF__READ_END,    /* the source, or the range asked for, has ended */
    HF__READ_FAILED, /* why says why; nothing more comes */
} hf__read_kind;

/* One step of the reader. Free it with hf__read_free. */
typedef struct hf__read {
    hf__read_kind kind;
    hf__ledger *ledger;
    hf__bad_ledger bad;
    hf_error why;
} hf__read;

typedef struct hf__reader hf__reader;

/*
 * Starts a thread that opens the source and reads ledgers from `from` to `to` (0: without end). It
 * tries again after HF_UNREACHABLE, with pauses of 1 to 30 s. The queue holds at most `memory`
 * bytes, but always one ledger. The options are copied, with a stop_fd of the reader's own; stop
 * must outlive the reader. End it with hf__reader_stop. Fails only without memory or descriptors.
 */
HF_MUST_CHECK hf_status hf__reader_start(const hf__source_options *options, int64_t from,
                                         int64_t to, size_t memory, hf__stop *stop,
                                         hf__reader **reader, hf_error *err);

/*
 * Takes the next item of the queue. Waits for it at most ms (-1: for ever), and no longer than
 * until the stop. The caller frees it.
 */
hf__read hf__reader_take(hf__reader *reader, int ms);

/* Frees what the read holds, and empties it. */
void hf__read_free(hf__read *read);

/* The newest ledger that the source is known to have; 0: it cannot tell, or has not yet. */
int64_t hf__reader_tip(const hf__reader *reader);

/* Ends the thread, and frees the reader with all that is queued. NULL is safe. */
void hf__reader_stop(hf__reader *reader);

#endif
