/* What --backfill and --gaps do, and what they say at the end. */
#ifndef HF_CLI_INGEST_BACKFILLING_H
#define HF_CLI_INGEST_BACKFILLING_H

#include "base/stop.h"
#include "cli/options.h"
#include "programs/ingest/ingest.h"

struct backfilling {
    const char *range; /* "FROM-TO", or NULL */
    bool all_gaps;
    unsigned workers;
    double rate; /* 0: none */
    const hf__ingest_options *options;
};

/* Returns the exit code. */
int backfill(const struct invocation *in, hf_store *store, hf_network *network,
             const struct backfilling *backfilling, hf__stop *stop);

#endif
