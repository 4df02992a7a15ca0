/* The spans of a command, in a file that OpenTelemetry's collector reads. */
#ifndef HF_CLI_SPANS_H
#define HF_CLI_SPANS_H

#include "cli/report.h"
#include "holdfast/holdfast.h"

struct span_file {
    const char *path; /* NULL: nobody asked for it */
    const struct report *report;
    int fd;
};

/* Opens the file, if there is one, and lets the store tell of its spans. */
HF_MUST_CHECK hf_status span_file_open(struct span_file *file, const char *path,
                                       const struct report *report, hf_store_options *options,
                                       hf_error *err);
void span_file_close(struct span_file *file);

#endif
