/*
 * SIGTERM, SIGINT and SIGHUP as a wish to stop, for programs that run for long.
 *
 * block_stop_signals blocks the signals in every thread; a separate thread then waits for them. A
 * signal that comes before the work begins ends the process at once, with 128 plus its number:
 * there is nothing to undo. After stopping_work it sets the flag that the work looks at, and ends
 * waits in the store. The functions are for the main thread; any thread may read stop and signal.
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
    int grace_ms;     /* after a signal, work that takes longer is cut off with EXIT_OK; 0: never */
    bool second_ends; /* a second signal ends the process at once */
    const struct report *report; /* if second_ends, gets a note at the first signal; borrowed */
};

struct stopping {
    hf__stop stop;     /* for the work */
    atomic_int signal; /* the first that came, or 0 */

    /* For stopping.c only. */
    struct stopping_options options;
    pthread_t thread;
    hf_store *store;
    atomic_bool works;   /* the work has begun */
    atomic_bool is_over; /* the thread must end */
    int64_t told_ms;     /* when the first signal came; only the thread uses it */
};

/*
 * Call it before any other thread is started, because threads inherit the signal mask. It also
 * ignores SIGPIPE, so that writing to a closed pipe or socket fails instead of ending the process.
 */
void block_stop_signals(void);

/*
 * Makes the flag but not the thread, so that what is opened before the start can look at the flag.
 * Fails as hf__stop_init.
 */
HF_MUST_CHECK hf_status stopping_init(struct stopping *stopping,
                                      const struct stopping_options *options, hf_error *err);

/* Starts the thread. *stopping must not move until stopping_end. HF_NO_MEMORY: no thread. */
HF_MUST_CHECK hf_status stopping_start(struct stopping *stopping, hf_error *err);

/* The work begins; this may be before the start. store may be NULL; borrowed until stopping_end. */
void stopping_work(struct stopping *stopping, hf_store *store);

/* Ends the thread. Later signals have no effect: the process is about to end anyway. */
void stopping_end(struct stopping *stopping);

/* Frees the flag, when nothing looks at it any more. Safe when stop.fd is -1. */
void stopping_destroy(struct stopping *stopping);

#endif
