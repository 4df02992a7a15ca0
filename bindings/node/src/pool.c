/* Threads that come with the work, and leave when there was none for a while. */
#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

enum { IDLE_SECONDS = 10, STACK = 1 << 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct hfn_task *first, **last = &first;
static unsigned queued,
    idle; /* queued <= idle, but for tasks that no thread could be started for */

static void set_up(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&work, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Mutex held. False: there was nothing to do for IDLE_SECONDS. */
static bool await_work(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    idle++;
    int failed = 0;
    while (first == NULL && failed == 0)
        failed = pthread_cond_timedwait(&work, &mutex, &until);
    idle--;
    return first != NULL;
}

static void *serve(void *task)
{
    struct hfn_task *mine = task;
    while (mine != NULL) {
        mine->run(mine);
        mine = NULL;
        pthread_mutex_lock(&mutex);
        if (await_work()) {
            mine = first;
            first = mine->next;
            if (first == NULL)
                last = &first;
            queued--;
        }
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

/* Signals are for the threads of Node. */
static bool start_thread(struct hfn_task *task)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attributes, serve, task);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed == 0;
}

/* Mutex held. */
static void enqueue(struct hfn_task *task)
{
    task->next = NULL;
    *last = task;
    last = &task->next;
    queued++;
    pthread_cond_signal(&work);
}

bool hfn_pool_run(struct hfn_task *task)
{
    pthread_once(&once, set_up);
    pthread_mutex_lock(&mutex);
    bool is_taken = queued < idle;
    if (is_taken)
        enqueue(task);
    pthread_mutex_unlock(&mutex);
    return is_taken || start_thread(task);
}

void hfn_pool_run_surely(struct hfn_task *task)
{
    if (hfn_pool_run(task))
        return;
    pthread_mutex_lock(&mutex);
    enqueue(task);
    pthread_mutex_unlock(&mutex);
}
