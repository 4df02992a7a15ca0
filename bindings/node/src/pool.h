/*
 * Threads for calls that block. Node's own pool has four, which file and DNS work share: four waits
 * would stop that, and a release behind them would never run. Here a task never waits for another:
 * where no thread is free, one is started.
 */
#ifndef HOLDFAST_NODE_POOL_H
#define HOLDFAST_NODE_POOL_H

#include <stdbool.h>

struct hfn_task {
    struct hfn_task *next;
    void (*run)(struct hfn_task *task); /* in a thread of the pool; may free the task */
};

/* False: the system starts no more threads, and the task is still the caller's. */
bool hfn_pool_run(struct hfn_task *task);

/* As above, but waits for a free thread if none can be started: for what must be done at some time. */
void hfn_pool_run_surely(struct hfn_task *task);

#endif
