/*
 * Signals as a descriptor to poll. A thread of its own awaits them, so that they never interrupt a
 * write to the terminal. Before hf__signals_work, a signal that stops a program ends this one at
 * once: there is nothing to restore yet.
 */
#ifndef HF_TOP_SIGNALS_H
#define HF_TOP_SIGNALS_H

#include <pthread.h>
#include <stdatomic.h>

#include "holdfast/holdfast.h"

typedef struct hf__signals {
    int fd; /* readable: hf__signals_next has one */
    int write_fd;
    pthread_t thread;
    atomic_bool works, over;
} hf__signals;

/* Call it before any other thread is started: threads inherit that these signals are blocked. */
HF_MUST_CHECK hf_status hf__signals_start(hf__signals *signals, hf_error *err);
void hf__signals_work(hf__signals *signals);
void hf__signals_end(hf__signals *signals);

int hf__signals_next(hf__signals *signals); /* 0: none */

/* Stops the process as SIGTSTP does by default, and returns when it is continued. */
void hf__signals_stop_here(void);

#endif
