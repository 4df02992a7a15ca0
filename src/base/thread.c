#include "base/thread.h"

#include <signal.h>

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
