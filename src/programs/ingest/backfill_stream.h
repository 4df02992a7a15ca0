/* Ledgers from the source, by ranges that mostly follow upon each other: then one reader serves them. */
#ifndef HF_INGEST_BACKFILL_STREAM_H
#define HF_INGEST_BACKFILL_STREAM_H

#include "programs/ingest/reader.h"

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

/* What is taken next is ledger `from`, or what the source has behind it; `until` may be needed later. */
HF_MUST_CHECK hf_status stream_aim(struct stream *stream, int64_t from, int64_t until,
                                   hf_error *err);
hf__read stream_take(struct stream *stream, int ms);
void stream_close(struct stream *stream);

#endif
