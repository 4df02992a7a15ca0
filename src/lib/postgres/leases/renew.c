/*
 * Renewing leases. A thread of its own does it, because a renewal may have to connect first, which
 * blocks: the server may have been restarted, or another one is the primary now. The watcher, which
 * never blocks, tells of the loss when a renewal is late, whatever this thread waits for.
 */
#include "lib/postgres/postgres.h"

#include <stdlib.h>

#include "base/clock.h"

enum {
    TRY_LEAST_MS = 250, /* a renewal without an answer is tried again on another connection */
    PAUSE_LOW_MS = 50,
    PAUSE_HIGH_MS = 250,
};

static int interval(const pg_tenure *tenure)
{
    return tenure->lease_ms / 3;
}

static int try_ms(const pg_tenure *tenure)
{
    int sixth = tenure->lease_ms / 6;
    return sixth > TRY_LEAST_MS ? sixth : TRY_LEAST_MS;
}

static void lose(pg_tenure *tenure)
{
    hf_error why = {0};
    (void)!hf__fail(&why, HF_LOST, "%s has ended the lease: no renewal came in time",
                    tenure->base.backend->name);
    hf__hint(&why, "another may hold it by now; stop, then acquire again");
    (void)hf__session_lose(&tenure->base, "lease", &why);
}

/* What the process holds on the tenure, for the server to delete the rest. False: no memory. */
static bool list_takes(pg_backend *backend, pg_tenure *tenure, hf__buf *held, char up_to[24])
{
    pthread_mutex_lock(&backend->mutex);
    for (size_t i = 0; i < tenure->count; i++)
        hf__pg_array_int(held, tenure->takes[i].number);
    hf__pg_format(up_to, tenure->numbers);
    pthread_mutex_unlock(&backend->mutex);
    hf__buf_puts(held, held->length ? "}" : "{}");
    return !held->broken;
}

static void sweep(pg_session *session, pg_tenure *tenure)
{
    hf__buf held = {0};
    char up_to[24];
    hf_error ignored = {0};
    if (list_takes(pg_backend_of(session->base.backend), tenure, &held, up_to)) {
        const char *params[] = {tenure->id, up_to, held.data};
        (void)!hf__pg_query(session, pg_sql(&hf__sql_postgres_sweep_leases), 3, params, NULL,
                            &ignored);
    }
    hf__buf_free(&held);
}

/*
 * For a take that was given up on this session, whose baton is held: its statement may still be
 * running. The session runs this after it. What the process takes from now on is left alone.
 */
void hf__pg_sweep_later(pg_session *session, pg_tenure *tenure)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    hf__buf held = {0}, sql = {0};
    char up_to[24];
    bool listed = list_takes(backend, tenure, &held, up_to);
    if (listed)
        hf__buf_printf(&sql, "%s('%s', %s, '%s')", pg_sql(&hf__sql_postgres_sweep_behind),
                       tenure->id, up_to, held.data);
    pthread_mutex_lock(&backend->mutex);
    if (listed && !sql.broken)
        hf__pg_errand(session, sql.data);
    pthread_mutex_unlock(&backend->mutex);
    hf__buf_free(&held);
    hf__buf_free(&sql);
}

/* The session holds nothing: one that does not answer in time is given up for another. */
static bool renew_on(pg_session *session, pg_tenure *tenure, uint64_t *last)
{
    PGresult *answer = NULL;
    hf_error ignored = {0};
    const char *params[] = {tenure->id};
    int64_t sent = hf__boot_ms();
    hf_status status =
        hf__pg_run(session, &hf__sql_postgres_renew_tenure, 1, params, &answer, &ignored);
    if (status != HF_OK && !atomic_load(&session->base.lost) && session->answer_due)
        hf__pg_session_fail(session, "no answer to a renewal");
    bool is_over = status == HF_OK && PQgetisnull(answer, 0, 0);
    if (is_over)
        lose(tenure);
    else if (status == HF_OK)
        hf__pg_put_off_loss(tenure, sent, hf__pg_int(answer, 0, 0));
    PQclear(answer);
    /* A crash of the server, which ends connections, forgets releases. */
    if (status == HF_OK && (atomic_load(&tenure->has_strays) || *last != session->serial))
        sweep(session, tenure);
    *last = session->serial;
    return status == HF_OK;
}

static bool renew(pg_backend *backend, pg_tenure *tenure)
{
    const pg_patience patience = {.until = hf__deadline(try_ms(tenure)),
                                  .cancel = backend->renewing_end};
    pg_session *session = NULL;
    hf_error ignored = {0};
    if (hf__pg_leasing_session(backend, &patience, &session, &ignored) != HF_OK)
        return false;
    bool renewed = false;
    if (hf__pg_session_lock(session, &patience, &ignored) == HF_OK) {
        renewed = renew_on(session, tenure, &tenure->renewed_on);
        hf__pg_session_unlock(session);
    }
    hf__pg_unpin(session);
    return renewed;
}

static bool needs_renewal(pg_tenure *tenure)
{
    return atomic_load(&tenure->base.holds) > 0 && !atomic_load(&tenure->base.lost);
}

/* backend->mutex is held. The one that is due first, or NULL. */
static pg_tenure *first_due(pg_backend *backend)
{
    pg_tenure *first = NULL;
    for (pg_tenure *tenure = backend->tenures; tenure; tenure = tenure->next)
        if (needs_renewal(tenure) && (!first || tenure->renew_at < first->renew_at))
            first = tenure;
    return first;
}

static void *renew_all(void *arg)
{
    pg_backend *backend = arg;
    pthread_mutex_lock(&backend->mutex);
    while (!backend->renewing_ends) {
        pg_tenure *tenure = first_due(backend);
        if (!tenure || hf__left_ms(tenure->renew_at) != 0) {
            struct timespec until = hf__timespec(tenure ? tenure->renew_at : HF__FOREVER);
            backend->renewer_idles = !tenure;
            (void)pthread_cond_clockwait(&backend->renewal_due, &backend->mutex, CLOCK_MONOTONIC,
                                         &until);
            continue;
        }
        tenure->pins++;
        pthread_mutex_unlock(&backend->mutex);
        bool renewed = renew(backend, tenure);
        pthread_mutex_lock(&backend->mutex);
        tenure->renew_at =
            hf__deadline(renewed ? interval(tenure) : hf__jitter_ms(PAUSE_LOW_MS, PAUSE_HIGH_MS));
        pthread_mutex_unlock(&backend->mutex);
        hf__pg_unpin_tenure(tenure);
        if (renewed)
            hf__pg_wake(&backend->base); /* the watcher has a new deadline to keep */
        pthread_mutex_lock(&backend->mutex);
    }
    pthread_mutex_unlock(&backend->mutex);
    return NULL;
}

hf_status hf__pg_start_renewing(pg_backend *backend, hf_error *err)
{
    hf_status status = HF_OK;
    int failed = 0;
    pthread_mutex_lock(&backend->mutex);
    if (!backend->renewing_end)
        status = hf_cancel_create(&backend->renewing_end, err);
    if (status == HF_OK && !backend->renews) {
        failed = hf__thread_start(&backend->renewer, 0, renew_all, backend);
        backend->renews = failed == 0;
    }
    pthread_mutex_unlock(&backend->mutex);
    return failed ? hf__fail_errno(err, HF_SYSTEM, failed, "cannot start the renewer's thread")
                  : status;
}

/* Most leases are released before they are renewed: then neither thread has to wake up. */
void hf__pg_renew_later(pg_tenure *tenure)
{
    enum { SOON_MS = 1500 }; /* more than a round of the watcher */
    pg_backend *backend = pg_backend_of(tenure->base.backend);
    pthread_mutex_lock(&backend->mutex);
    int64_t told_in = atomic_load(&tenure->base.lost_at) - hf__boot_ms();
    /* What is left of the tenure may be less than a whole lease. */
    int64_t due = hf__now_ms() + told_in + hf__pg_lease_margin(tenure) -
                  (tenure->lease_ms - interval(tenure));
    bool sooner = !tenure->renew_at || tenure->renew_at > due;
    if (sooner)
        tenure->renew_at = due > 0 ? due : 1;
    if (sooner || backend->renewer_idles)
        pthread_cond_signal(&backend->renewal_due);
    pthread_mutex_unlock(&backend->mutex);
    if (told_in < SOON_MS)
        hf__pg_wake(&backend->base);
}

void hf__pg_stop_renewing(pg_backend *backend)
{
    pthread_mutex_lock(&backend->mutex);
    bool runs = backend->renews;
    backend->renewing_ends = true;
    pthread_cond_signal(&backend->renewal_due);
    pthread_mutex_unlock(&backend->mutex);
    if (runs) {
        hf_cancel_trigger(backend->renewing_end);
        (void)pthread_join(backend->renewer, NULL);
    }
    hf_cancel_free(backend->renewing_end);
    backend->renewing_end = NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A take that was given up may still be running there, and nobody waits for the answer but us. */
static void finish_errands(pg_backend *backend, const pg_patience *patience)
{
    hf_error ignored = {0};
    for (pg_session *session = backend->sessions; session; session = session->next)
        if (session->errands.length && !atomic_load(&session->base.lost) &&
            hf__pg_session_lock(session, patience, &ignored) == HF_OK) {
            (void)!hf__pg_ready(session, &ignored);
            hf__pg_session_unlock(session);
        }
}

void hf__pg_end_tenures(pg_backend *backend, const pg_patience *patience)
{
    pg_session *session = NULL;
    hf__buf ids = {0};
    hf_error ignored = {0};
    for (const pg_tenure *tenure = backend->tenures; tenure; tenure = tenure->next)
        hf__buf_printf(&ids, "%c%s", ids.length ? ',' : '{', tenure->id);
    hf__buf_puts(&ids, "}");
    const char *params[] = {ids.data};
    if (backend->tenures)
        finish_errands(backend, patience);
    if (backend->tenures && !ids.broken &&
        hf__pg_lease_checkout(backend, patience, &session, &ignored) == HF_OK) {
        for (pg_tenure *tenure = backend->tenures; tenure; tenure = tenure->next)
            if (atomic_load(&tenure->has_strays))
                sweep(session, tenure);
        (void)!hf__pg_query(session, pg_sql(&hf__sql_postgres_end_tenures), 1, params, NULL,
                            &ignored);
        hf__pg_lease_checkin(session);
    }
    hf__buf_free(&ids);
    while (backend->tenures) {
        pg_tenure *tenure = backend->tenures;
        backend->tenures = tenure->next;
        hf__pg_free_tenure(tenure);
    }
}
