/* How far an append has come: a bar on a terminal, a line now and then elsewhere. */
#ifndef HF_CLI_APPEND_PROGRESS_H
#define HF_CLI_APPEND_PROGRESS_H

#include "append/append.h"
#include "cli/report.h"

struct progress {
    const struct report *report;
    const char *table;
    bool bar; /* standard error is a terminal */
    bool drawn;
    int64_t began_ms;
    int64_t shown_ms;
    int64_t shown_bytes;
    double rate; /* bytes a second, of late */
};

void progress_begin(struct progress *progress, const struct report *report, const char *table);
void progress_show(struct progress *progress, const hf__append_progress *now);
void progress_note(struct progress *progress, const char *text);
void progress_end(struct progress *progress);

#endif
