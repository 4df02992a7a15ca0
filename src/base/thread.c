#include "base/thread.h"

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
    pthread_mutex_init(&baton->mutex, NULL);
    hf__cond_init(&baton->free);
    baton->is_taken = false;
}

void hf__baton_destroy(hf__baton *baton)
{
    hf__cond_destroy(&baton->free);
    pthread_mutex_destroy(&baton->mutex);
}

void hf__baton_take(hf__baton *baton)
{
    (void)hf__baton_take_until(baton, HF__FOREVER);
}

bool hf__baton_try(hf__baton *baton)
{
    pthread_mutex_lock(&baton->mutex);
    bool got = !baton->is_taken;
    baton->is_taken = true;
    pthread_mutex_unlock(&baton->mutex);
    return got;
}

bool hf__baton_take_until(hf__baton *baton, int64_t until_ms)
{
    bool in_time = true;
    pthread_mutex_lock(&baton->mutex);
    while (baton->is_taken && in_time)
        in_time = hf__cond_wait(&baton->free, &baton->mutex, until_ms);
    bool got = !baton->is_taken;
    baton->is_taken = true;
    pthread_mutex_unlock(&baton->mutex);
    return got;
}

void hf__baton_give(hf__baton *baton)
{
    pthread_mutex_lock(&baton->mutex);
    baton->is_taken = false;
    hf__cond_signal(&baton->free);
    pthread_mutex_unlock(&baton->mutex);
}
