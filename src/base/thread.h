#ifndef HF_BASE_THREAD_H
#define HF_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * Starts a thread in which all signals are blocked from its first instruction on: signals are for
 * the program's own threads. stack_size 0 means the system's default. Returns 0 or an errno. The
 * caller joins the thread.
 */
int hf__thread_start(pthread_t *thread, size_t stack_size, void *(*run)(void *), void *arg);

#endif
