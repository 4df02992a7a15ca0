/* What ends or wakes waits from outside: interrupts, and releases that waits listen for. */
#include "lib/local/local.h"

#include "base/clock.h"
#include "base/hash.h"

enum { WAKE_MS = 20 }; /* releases of other processes are not signalled: look this often */

void hf__local_enlist(hf__local_wait *wait)
{
    hf__local *local = wait->local;

    pthread_mutex_lock(&local->mutex);
    wait->interrupted = local->interrupted || hf__is_cancelled(wait->request->cancel);
    wait->next = local->waits;
    local->waits = wait;
    pthread_mutex_unlock(&local->mutex);
}

void hf__local_delist(hf__local_wait *wait)
{
    hf__local *local = wait->local;

    pthread_mutex_lock(&local->mutex);
    for (hf__local_wait **link = &local->waits; *link != NULL; link = &(*link)->next) {
        if (*link == wait) {
            *link = wait->next;
            break;
        }
    }
    pthread_mutex_unlock(&local->mutex);
}

void hf__local_interrupt(hf__backend *backend, bool all)
{
    hf__local *local = (hf__local *)backend;

    pthread_mutex_lock(&local->mutex);
    local->interrupted = local->interrupted || all;
    for (hf__local_wait *wait = local->waits; wait != NULL; wait = wait->next) {
        pthread_mutex_lock(&wait->mutex);
        wait->interrupted = local->interrupted || hf__is_cancelled(wait->request->cancel);
        hf__cond_signal(&wait->changed);
        pthread_mutex_unlock(&wait->mutex);
    }
    hf__cond_broadcast(&local->released);
    pthread_mutex_unlock(&local->mutex);
}

bool hf__local_is_interrupted(hf__local *local, const hf_cancel *cancel)
{
    return atomic_load(&local->interrupted) || hf__is_cancelled(cancel);
}

/* ---- waits that no queue serves -------------------------------------------------------------- */

static uint64_t *releases_of(hf__local *local, int64_t wake)
{
    return &local->releases[hf__hash_int((uint64_t)wake) % HF__LOCAL_WAKES];
}

void hf__local_count_releases(hf__local *local, const hf__claim *claims, size_t count)
{
    pthread_mutex_lock(&local->mutex);
    for (size_t i = 0; i < count; i++)
        ++*releases_of(local, claims[i].wake);
    if (local->awaiting > 0)
        hf__cond_broadcast(&local->released);
    pthread_mutex_unlock(&local->mutex);
}

hf_status hf__local_listen(hf__backend *backend, int64_t wake, const hf__request *request,
                           uint64_t *ticket, hf_error *err)
{
    hf__local *local = (hf__local *)backend;

    (void)request, (void)err;
    pthread_mutex_lock(&local->mutex);
    *ticket = *releases_of(local, wake);
    pthread_mutex_unlock(&local->mutex);
    return HF_OK;
}

/* A release in this process wakes it at once. It does not hear of others, hence WAKE_MS. */
hf_status hf__local_await_wake(hf__backend *backend, int64_t wake, const hf_cancel *cancel,
                               uint64_t *ticket, int ms, hf_error *err)
{
    hf__local *local = (hf__local *)backend;
    int64_t until = hf__deadline(ms >= 0 && ms < WAKE_MS ? ms : WAKE_MS);
    hf_status status = HF_OK;
    int cancel_state = 0;
    bool in_time = true;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&local->mutex);
    const uint64_t *releases = releases_of(local, wake);
    local->awaiting++;
    while (!local->interrupted && !hf__is_cancelled(cancel) && *releases == *ticket && in_time)
        in_time = hf__cond_wait(&local->released, &local->mutex, until);
    local->awaiting--;
    *ticket = *releases;
    if (local->interrupted || hf__is_cancelled(cancel))
        status = hf__interrupted(err);
    pthread_mutex_unlock(&local->mutex);
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}
