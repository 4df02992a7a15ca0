/*
 * SIGTERM, SIGINT and SIGHUP as a wish to stop, for programs that go on for long.
 *
 * block_stop_signals keeps the signals from every thread; one thread of its own then awaits them. A
 * signal that comes before the work begins ends the process at once, with 128 and its number: there
 * is nothing to undo. From stopping_work on it sets the flag that the work looks at, and ends waits
 * in the store.
 */
#ifndef HF_CLI_STOPPING_H
#define HF_CLI_STOPPING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stop.h"
#include "cli/report.h"
#include "holdfast/holdfast.h"

struct stopping_options {
    int grace_ms;     /* work that has not ended by then is cut off, with EXIT_OK; 0: no limit */
    bool second_ends; /* a second signal ends the process at once */
    const struct report *report; /* told about the first signal when second_ends; borrowed */
};

struct stopping {
    hf__stop stop;     /* for the work */
    atomic_int signal; /* the first that came, or 0 */

    /* Of stopping.c alone. */
    struct stopping_options options;
    pthread_t thread;
    hf_store *store;
    atomic_bool works;
    atomic_bool is_over;
    int64_t told_ms; /* when the first signal came; of the thread */
};

/*
 * Before any other thread is started: they inherit that the signals are not theirs. Ignores SIGPIPE
 * too, so that writing to a closed pipe or socket fails instead of ending the process.
 */
void block_stop_signals(void);

/* The flag, not yet the thread, so that what is opened first can look at it. */
HF_MUST_CHECK hf_status stopping_init(struct stopping *stopping,
                                      const struct stopping_options *options, hf_error *err);

/* Starts the thread. stopping must stay where it is until stopping_end. */
HF_MUST_CHECK hf_status stopping_start(struct stopping *stopping, hf_error *err);

/*
 * The work begins. store (may be NULL) is borrowed until stopping_end. May be called before the
 * start.
 */
void stopping_work(struct stopping *stopping, hf_store *store);

/* Ends the thread; signals that come later change nothing, because the process ends by itself. */
void stopping_end(struct stopping *stopping);

/* Frees the flag, when no one looks at it any more. Safe where stop.fd is -1. */
void stopping_destroy(struct stopping *stopping);

#endif
