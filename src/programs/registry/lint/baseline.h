/*
 * A baseline: findings of lint that a team has accepted, one line for each: rule, file, message.
 * Lines of the source do not count, so that a change elsewhere in a file does not bring one back.
 */
#ifndef HF_LINT_BASELINE_H
#define HF_LINT_BASELINE_H

#include "base/error.h"
#include "lib/registry/finding.h"

struct baseline_entry {
    char *text;
    bool used;
};

/* Zero-initialise it. */
struct baseline {
    struct baseline_entry *entries; /* sorted by text */
    size_t count, room;
    size_t accepted; /* findings that it took away */
    size_t gone;     /* entries that no finding has any more */
};

/* HF_BAD_DATA: the file cannot be read, or is none; its line is told. */
HF_MUST_CHECK hf_status baseline_read(struct baseline *baseline, const char *path, hf_error *err);
void baseline_free(struct baseline *baseline);

/* Removes the findings that the baseline has: as many of each as it lists. */
HF_MUST_CHECK hf_status baseline_apply(struct baseline *baseline, hf__findings *findings,
                                       hf_error *err);

/* Writes all findings, sorted. */
HF_MUST_CHECK hf_status baseline_write(const char *path, const hf__findings *findings,
                                       hf_error *err);

#endif
