/*
 * Fibers: calls that wait without a thread each. A fiber runs a function on a stack of its own, in
 * the one thread of its runner. Where it waits, by hf__cond_wait or hf__poll, the runner goes on
 * with another one. In a plain thread the same functions wait as ever, so that a call which waits
 * is written once. A fiber waits for nothing with a mutex held, but the one of its condition.
 */
#ifndef HF_BASE_FIBERS_FIBER_H
#define HF_BASE_FIBERS_FIBER_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hf__fiber hf__fiber;
typedef struct hf__fibers hf__fibers; /* the runner */

/* Starts the runner's thread. Returns 0 or an errno. The caller ends it. */
int hf__fibers_new(hf__fibers **fibers);

/* Runs run(arg) behind those that were started before. Any thread. Returns 0 or an errno. */
int hf__fiber_start(hf__fibers *fibers, void (*run)(void *arg), void *arg);

/* Waits until all have returned, and frees the runner; NULL is safe. */
void hf__fibers_end(hf__fibers *fibers);

/* What belongs to the fiber that calls, as a thread-local variable to a thread; NULL: a thread. */
int64_t *hf__fiber_local(void);

/*
 * Makes the call on the stack that its thread came with. Others' functions get no less: they may
 * need more than a fiber has, and languages look where a thread's stack ends.
 */
void hf__call_outside(void (*call)(void *arg), void *arg);

/* ---- waiting --------------------------------------------------------------------------------- */

/* A condition for threads and fibers. It is signalled with its mutex held. */
typedef struct hf__cond {
    pthread_cond_t threads;
    hf__fiber *first, *last;
} hf__cond;

#define HF__COND_INITIALIZER                                                                       \
    {                                                                                              \
        .threads = PTHREAD_COND_INITIALIZER                                                        \
    }

void hf__cond_init(hf__cond *cond);
void hf__cond_destroy(hf__cond *cond);
void hf__cond_signal(hf__cond *cond); /* one thread and one fiber */
void hf__cond_broadcast(hf__cond *cond);
/* until is of hf__deadline(). False: it is over. Otherwise perhaps somebody has signalled. */
bool hf__cond_wait(hf__cond *cond, pthread_mutex_t *mutex, int64_t until);

/* As poll(), for at most HF__FIBER_FDS descriptors. */
enum { HF__FIBER_FDS = 3 };
int hf__poll(struct pollfd *fds, nfds_t count, int timeout_ms);

#endif
