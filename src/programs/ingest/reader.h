/*
 * Fetching and parsing, in a thread of their own ahead of the writer. What has been read waits in a
 * queue that is bounded by its bytes.
 */
#ifndef HF_INGEST_READER_H
#define HF_INGEST_READER_H

#include "base/stop.h"
#include "programs/ingest/sources/source.h"

typedef enum hf__read_kind {
    HF__READ_NOTHING, /* within the time */
    HF__READ_LEDGER,
    HF__READ_BAD,  /* why and what are filled */
    HF__READ_NOTE, /* why.message is for people: the source is away, or back */
    HF__READ_END,
    HF__READ_FAILED, /* for good: why says it */
} hf__read_kind;

typedef struct hf__read {
    hf__read_kind kind;
    hf__ledger *ledger;
    hf__bad_ledger bad;
    hf_error why;
} hf__read;

typedef struct hf__reader hf__reader;

/*
 * Opens the source and reads from ledger `from` on, to `to` (0: without end). Tries again after
 * HF_UNREACHABLE, with pauses of 1 to 30 s. options->stop_fd is replaced by the stop's.
 */
HF_MUST_CHECK hf_status hf__reader_start(const hf__source_options *options, int64_t from,
                                         int64_t to, size_t memory, hf__stop *stop,
                                         hf__reader **reader, hf_error *err);

/* The next, in order; waits at most ms (-1: for ever, or until the stop). The caller frees it. */
hf__read hf__reader_take(hf__reader *reader, int ms);
void hf__read_free(hf__read *read);

/* The newest ledger that the source spoke of, as last heard; 0: it cannot tell, or has not yet. */
int64_t hf__reader_tip(const hf__reader *reader);

/* Ends the thread and frees what is queued. */
void hf__reader_stop(hf__reader *reader);

#endif
