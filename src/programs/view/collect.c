/*
 * The thread of the collector: it refreshes, runs jobs between refreshes, and tells the listener.
 */
#include "programs/view/view.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "programs/view/parts.h"

enum {
    REFRESH_MS = 2000,
    REFRESH_MIN_MS = 10,
    REST = 10, /* a pause is at least this many times as long as a refresh usually takes */
    FAILURES_MAX = 30,
    BACKOFF_MAX_MS = 5000, /* who looks at the view wants to see soon that the store is back */
    JOBS_MAX = 64,
};

struct job {
    struct job *next;
    hf__view_job *run;
    hf__view_done *done;
    void *arg;
};

struct hf__view {
    hf__memory memory; /* used by the collector's thread only */
    unsigned failures; /* refreshes that failed in a row; likewise */
    int64_t took_ms;   /* the last refresh that did not fail; likewise */

    pthread_mutex_t mutex;
    pthread_cond_t published; /* there is a new snapshot */
    pthread_cond_t wanted;    /* there is something for the collector to do */
    hf__snapshot *latest;
    int64_t refresh_ms;
    int64_t usual_ms; /* that a refresh takes */
    int64_t ended_ms; /* of the last refresh, monotonic */
    bool paused, closing;
    struct job *first, *last;
    size_t job_count;

    pthread_mutex_t listening; /* held while the listener runs */
    hf__view_listener *listener;
    void *listener_arg;

    pthread_t thread;
};

/* ---- snapshots ------------------------------------------------------------------------------- */

static void tell_listener(hf__view *view, hf__snapshot *snapshot)
{
    pthread_mutex_lock(&view->listening);
    if (view->listener)
        view->listener(view->listener_arg, snapshot);
    pthread_mutex_unlock(&view->listening);
}

/* Takes ownership of the snapshot. */
static void publish(hf__view *view, hf__snapshot *snapshot)
{
    pthread_mutex_lock(&view->mutex);
    hf__snapshot *before = view->latest;
    view->latest = hf__snapshot_hold(snapshot);
    pthread_cond_broadcast(&view->published);
    pthread_mutex_unlock(&view->mutex);
    hf__snapshot_release(before);
    tell_listener(view, snapshot);
    hf__snapshot_release(snapshot);
}

/*
 * The shorter of the last two: a store with many locks makes every refresh slow, and gets its rest.
 * One that hung, while the server was stopped or the network cut, says nothing of the next.
 */
static int64_t usual(hf__view *view, int64_t took_ms)
{
    int64_t before_ms = view->took_ms;
    view->took_ms = took_ms;
    return took_ms < before_ms ? took_ms : before_ms;
}

/* Only this thread replaces the latest snapshot, so it may read it without holding it. */
static void refresh(hf__view *view)
{
    hf_error err = {0};
    hf__snapshot *next = NULL, *before = view->latest;
    uint64_t number = before->number + 1;
    int64_t usual_ms = view->usual_ms;
    if (hf__refresh(&view->memory, number, &next, &err) == HF_OK) {
        view->failures = 0;
        usual_ms = usual(view, next->took_ms);
    } else {
        next = hf__repeat(&view->memory, before, number, &err);
        view->failures += view->failures < FAILURES_MAX;
    }
    pthread_mutex_lock(&view->mutex);
    view->ended_ms = hf__now_ms();
    view->usual_ms = usual_ms;
    pthread_mutex_unlock(&view->mutex);
    if (next)
        publish(view, next);
}

/* Mutex held. */
static int64_t pause_ms(const hf__view *view)
{
    int64_t pause = view->refresh_ms;
    if (view->usual_ms * REST > pause)
        pause = view->usual_ms * REST;
    for (unsigned i = 0; i < view->failures && pause < BACKOFF_MAX_MS; i++)
        pause *= 2;
    if (view->failures > 0 && pause > BACKOFF_MAX_MS)
        pause = BACKOFF_MAX_MS > view->refresh_ms ? BACKOFF_MAX_MS : view->refresh_ms;
    return pause;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Mutex held. */
static struct job *take_job(hf__view *view)
{
    struct job *job = view->first;
    if (!job)
        return NULL;
    view->first = job->next;
    if (!view->first)
        view->last = NULL;
    view->job_count--;
    return job;
}

static void run_job(hf__view *view, struct job *job)
{
    hf_error err = {0};
    hf_status status = job->run(view->memory.store, job->arg, &err);
    job->done(job->arg, status, &err);
    free(job);
}

static void refuse_job(struct job *job)
{
    hf_error err = {0};
    hf_status status = hf__fail(&err, HF_INTERRUPTED, "the program ends");
    job->done(job->arg, status, &err);
    free(job);
}

/* Takes ownership of the job. False: the queue is full, and it does not. */
static bool add_job(hf__view *view, struct job *job)
{
    pthread_mutex_lock(&view->mutex);
    bool fits = view->job_count < JOBS_MAX && !view->closing;
    if (fits) {
        if (view->last)
            view->last->next = job;
        else
            view->first = job;
        view->last = job;
        view->job_count++;
        pthread_cond_signal(&view->wanted);
    }
    pthread_mutex_unlock(&view->mutex);
    return fits;
}

hf_status hf__view_ask(hf__view *view, hf__view_job *run, hf__view_done *done, void *arg,
                       hf_error *err)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return hf__no_memory(err);
    *job = (struct job){.run = run, .done = done, .arg = arg};
    if (add_job(view, job))
        return HF_OK;
    free(job);
    return hf__fail(err, HF_QUOTA, "too many questions wait for the store already");
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Mutex held. Waits for a job, or, with *job NULL, until a refresh is due. False: the end. */
static bool await_work(hf__view *view, struct job **job)
{
    for (;;) {
        *job = NULL;
        if (view->closing)
            return false;
        int64_t due = view->ended_ms + pause_ms(view);
        bool is_due = !view->paused && hf__now_ms() >= due;
        if (!is_due && (*job = take_job(view)))
            return true;
        if (is_due)
            return true;
        struct timespec until = hf__timespec(due);
        if (view->paused)
            pthread_cond_wait(&view->wanted, &view->mutex);
        else
            (void)pthread_cond_clockwait(&view->wanted, &view->mutex, CLOCK_MONOTONIC, &until);
    }
}

static void *collect(void *arg)
{
    hf__view *view = arg;
    struct job *job = NULL;
    pthread_mutex_lock(&view->mutex);
    while (await_work(view, &job)) {
        pthread_mutex_unlock(&view->mutex);
        if (job)
            run_job(view, job);
        else
            refresh(view);
        pthread_mutex_lock(&view->mutex);
    }
    pthread_mutex_unlock(&view->mutex);
    return NULL;
}

static hf_status start_thread(hf__view *view, hf_error *err)
{
    int failure = hf__thread_start(&view->thread, 0, collect, view);
    return failure ? hf__fail_errno(err, HF_SYSTEM, failure, "cannot start the collector's thread")
                   : HF_OK;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static hf__view *new_view(const hf__view_options *options)
{
    hf__view *view = calloc(1, sizeof *view);
    if (!view)
        return NULL;
    pthread_mutex_init(&view->mutex, NULL);
    pthread_mutex_init(&view->listening, NULL);
    pthread_cond_init(&view->published, NULL);
    pthread_cond_init(&view->wanted, NULL);
    view->refresh_ms = options->refresh_ms > 0 ? options->refresh_ms : REFRESH_MS;
    view->memory.options = options->store;
    view->memory.show_queries = options->show_queries;
    view->memory.keep_history = options->keep_history;
    view->memory.max_lag = options->max_lag;
    return view;
}

static void free_view(hf__view *view)
{
    hf__snapshot_release(view->latest);
    hf__memory_clear(&view->memory);
    pthread_cond_destroy(&view->wanted);
    pthread_cond_destroy(&view->published);
    pthread_mutex_destroy(&view->listening);
    pthread_mutex_destroy(&view->mutex);
    free(view);
}

/* Without patience the first refresh is done here; with it, it is due at once. */
static hf_status begin(hf__view *view, bool patient, hf_error *err)
{
    hf_status status = hf__memory_open(&view->memory, err);
    if (status == HF_OK && !patient)
        status = hf__refresh(&view->memory, 1, &view->latest, err);
    else if (status == HF_OK && !(view->latest = hf__blank(&view->memory)))
        status = hf__no_memory(err);
    view->ended_ms = hf__now_ms() - (patient ? view->refresh_ms : 0);
    return status == HF_OK ? start_thread(view, err) : status;
}

hf_status hf__view_open(const hf__view_options *options, hf__view **out, hf_error *err)
{
    hf__view *view = new_view(options);
    if (!view)
        return hf__no_memory(err);
    hf_status status = begin(view, options->patient, err);
    if (status == HF_OK)
        *out = view;
    else
        free_view(view);
    return status;
}

void hf__view_close(hf__view *view)
{
    if (!view)
        return;
    pthread_mutex_lock(&view->mutex);
    view->closing = true;
    pthread_cond_signal(&view->wanted);
    pthread_cond_broadcast(&view->published);
    pthread_mutex_unlock(&view->mutex);
    pthread_join(view->thread, NULL);
    for (struct job *job = take_job(view); job; job = take_job(view))
        refuse_job(job);
    hf__memory_end(&view->memory, view->latest);
    free_view(view);
}

/* ---- for everybody --------------------------------------------------------------------------- */

hf__snapshot *hf__view_latest(hf__view *view)
{
    pthread_mutex_lock(&view->mutex);
    hf__snapshot *latest = hf__snapshot_hold(view->latest);
    pthread_mutex_unlock(&view->mutex);
    return latest;
}

hf__snapshot *hf__view_next(hf__view *view, uint64_t after, int64_t wait_ms)
{
    int64_t deadline = hf__deadline(wait_ms);
    struct timespec until = hf__timespec(deadline);
    int failure = 0;
    pthread_mutex_lock(&view->mutex);
    while (view->latest->number <= after && !view->closing && !failure)
        failure = deadline == HF__FOREVER ? pthread_cond_wait(&view->published, &view->mutex)
                                          : pthread_cond_clockwait(&view->published, &view->mutex,
                                                                   CLOCK_MONOTONIC, &until);
    hf__snapshot *latest = hf__snapshot_hold(view->latest);
    pthread_mutex_unlock(&view->mutex);
    return latest;
}

void hf__view_listen(hf__view *view, hf__view_listener *listener, void *arg)
{
    pthread_mutex_lock(&view->listening);
    view->listener = listener;
    view->listener_arg = arg;
    pthread_mutex_unlock(&view->listening);
}

void hf__view_set_refresh(hf__view *view, int64_t refresh_ms)
{
    pthread_mutex_lock(&view->mutex);
    view->refresh_ms = refresh_ms > REFRESH_MIN_MS ? refresh_ms : REFRESH_MIN_MS;
    pthread_cond_signal(&view->wanted);
    pthread_mutex_unlock(&view->mutex);
}

void hf__view_pause(hf__view *view, bool paused)
{
    pthread_mutex_lock(&view->mutex);
    view->paused = paused;
    pthread_cond_signal(&view->wanted);
    pthread_mutex_unlock(&view->mutex);
}
