#include "base/thread.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"

int hf__thread_start(pthread_t *thread, size_t stack_size, void *(*run)(void *), void *arg)
{
    pthread_attr_t attributes;
    sigset_t all;

    (void)sigfillset(&all);
    int failed = pthread_attr_init(&attributes);
    if (failed)
        return failed;
    failed = pthread_attr_setsigmask_np(&attributes, &all);
    if (!failed && stack_size > 0)
        failed = pthread_attr_setstacksize(&attributes, stack_size);
    if (!failed)
        failed = pthread_create(thread, &attributes, run, arg);
    (void)pthread_attr_destroy(&attributes);
    return failed;
}

void hf__baton_init(hf__baton *baton)
{
    (void)sem_init(&baton->free, 0, 1);
}

void hf__baton_destroy(hf__baton *baton)
{
    (void)sem_destroy(&baton->free);
}

/* A signal of the program may end a wait, which then goes on. */
void hf__baton_take(hf__baton *baton)
{
    while (sem_wait(&baton->free) != 0 && errno == EINTR)
        ;
}

bool hf__baton_try(hf__baton *baton)
{
    int failed;
    while ((failed = sem_trywait(&baton->free)) != 0 && errno == EINTR)
        ;
    return !failed;
}

static int wait_until(sem_t *sem, int64_t until_ms)
{
#ifdef __SANITIZE_THREAD__ /* gcc's race detector does not know sem_clockwait */
    int64_t wait_ns = (int64_t)hf__left_ms(until_ms) * 1000000;
    struct timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_sec += (when.tv_nsec + wait_ns) / 1000000000;
    when.tv_nsec = (when.tv_nsec + wait_ns) % 1000000000;
    return sem_timedwait(sem, &when);
#else
    struct timespec when = hf__timespec(until_ms);
    return sem_clockwait(sem, CLOCK_MONOTONIC, &when);
#endif
}

bool hf__baton_take_until(hf__baton *baton, int64_t until_ms)
{
    int failed;
    while ((failed = wait_until(&baton->free, until_ms)) != 0 && errno == EINTR)
        ;
    return !failed;
}

void hf__baton_give(hf__baton *baton)
{
    (void)sem_post(&baton->free);
}
