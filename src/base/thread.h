#ifndef HF_BASE_THREAD_H
#define HF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fibers/fiber.h"

/*
 * Starts a thread in which all signals are blocked from its first instruction on: signals are for
 * the program's own threads. stack_size 0 means the system's default. Returns 0 or an errno. The
 * caller joins the thread.
 */
int hf__thread_start(pthread_t *thread, size_t stack_size, void *(*run)(void *), void *arg);

/*
 * One at a time, like a mutex, but whoever has the baton is not a thread: another one may give it
 * back. Between taking and giving there is a whole transaction, whose caller may move.
 */
typedef struct hf__baton {
    pthread_mutex_t mutex;
    hf__cond free;
    bool is_taken;
} hf__baton;

void hf__baton_init(hf__baton *baton);
void hf__baton_destroy(hf__baton *baton);
void hf__baton_take(hf__baton *baton);
bool hf__baton_try(hf__baton *baton);
/* until_ms is of hf__deadline(). False: it was not free until then. */
bool hf__baton_take_until(hf__baton *baton, int64_t until_ms);
void hf__baton_give(hf__baton *baton);

#endif
