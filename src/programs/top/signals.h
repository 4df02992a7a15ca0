/*
 * Signals as something to poll. A thread awaits them, so that they never interrupt a write to the
 * terminal; up to hf__signals_work those that stop a program end it at once, for there is nothing to
 * restore yet.
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

/* Before any other thread is started: they inherit that the signals are not theirs. */
HF_MUST_CHECK hf_status hf__signals_start(hf__signals *signals, hf_error *err);
void hf__signals_work(hf__signals *signals);
void hf__signals_end(hf__signals *signals);

int hf__signals_next(hf__signals *signals); /* 0: none */

/* Stops the process as its default action does, and returns when it goes on. */
void hf__signals_stop_here(void);

#endif
