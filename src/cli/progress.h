/* How far a long job has come: a bar on a terminal, a line now and then elsewhere. */
#ifndef HF_CLI_PROGRESS_H
#define HF_CLI_PROGRESS_H

#include "cli/report.h"

struct progress {
    const struct report *report;
    const char *name; /* of what is worked on */
    bool bar;         /* standard error is a terminal */
    bool drawn;
    int64_t began_ms;
    int64_t shown_ms;
    int64_t shown_amount;
    double rate; /* of the amount a second, of late */
};

void progress_begin(struct progress *progress, const struct report *report, const char *name);

/* Whether it is time to show something; the rate is known then. */
bool progress_is_due(struct progress *progress, int64_t amount);

/* done of whole (0: nobody knows) as a bar, and what stands behind it. */
void progress_draw(struct progress *progress, int64_t done, int64_t whole, const char *text);

void progress_note(struct progress *progress, const char *text); /* in place of the bar */
void progress_clear(struct progress *progress);

#endif
