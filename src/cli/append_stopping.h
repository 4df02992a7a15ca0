/* SIGTERM, SIGINT and SIGHUP as a wish to stop; a second one, a second later, ends the process at once. */
#ifndef HF_CLI_APPEND_STOPPING_H
#define HF_CLI_APPEND_STOPPING_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/stop.h"
#include "cli/report.h"
#include "holdfast/holdfast.h"

struct stopping {
    hf__stop stop;
    const struct report *report;
    hf_store *store; /* whose waits end too; may be NULL */
    pthread_t thread;
    atomic_bool over;
    atomic_bool works;
    atomic_int signal; /* that came first, or 0 */
    int64_t told_ms;   /* when it did; of the thread */
};

/* The stop is there before, so that a target can be opened with it. */
HF_MUST_CHECK hf_status stopping_init(struct stopping *stopping, const struct report *report,
                                      hf_error *err);
/* Up to stopping_work a signal ends the process at once. */
HF_MUST_CHECK hf_status stopping_start(struct stopping *stopping, hf_error *err);
void stopping_work(struct stopping *stopping, hf_store *store);

/* From here on the process ends by itself. */
void stopping_end(struct stopping *stopping);

#endif
