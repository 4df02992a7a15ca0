/* How far the ingester has come: a bar on a terminal, a line now and then elsewhere. */
#ifndef HF_CLI_INGEST_PROGRESS_H
#define HF_CLI_INGEST_PROGRESS_H

#include "cli/report.h"
#include "ingest/ingest.h"

struct progress {
    const struct report *report;
    const char *network;
    bool bar; /* standard error is a terminal */
    bool drawn;
    int64_t began_ms;
    int64_t shown_ms;
    int64_t shown_ledgers;
    double rate; /* ledgers a second, of late */
};

void progress_begin(struct progress *progress, const struct report *report, const char *network);
void progress_show(struct progress *progress, const hf__ingest_progress *now);
void progress_note(struct progress *progress, const char *text);
void progress_end(struct progress *progress, const hf__ingest_progress *now);

#endif
