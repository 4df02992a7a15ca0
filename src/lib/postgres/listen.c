/*
 * Wake-ups, without missing one. A listener locks the companion key shared, runs LISTEN, which
 * commits, and only then tries the key. A releaser unlocks the key and then tries the companion
 * exclusively: if that fails, somebody listens, and it sends NOTIFY. One connection listens for the
 * whole process.
 */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct listener {
    struct listener *next;
    int64_t wake;
    unsigned users;
    uint64_t releases; /* counts notifications; a ticket is the last count that its user saw */
    uint64_t serial;   /* of the session that ran LISTEN; a new session has to run it again */
};

static struct listener *find(pg_backend *backend, int64_t wake)
{
    struct listener *at = backend->listeners;
    while (at && at->wake != wake)
        at = at->next;
    return at;
}

static pg_session *pin_listening(pg_backend *backend)
{
    pthread_mutex_lock(&backend->mutex);
    pg_session *session = backend->listening;
    if (session && atomic_load(&session->base.lost))
        session = backend->listening = NULL;
    if (session)
        session->pins++;
    pthread_mutex_unlock(&backend->mutex);
    return session;
}

/* listen_mutex is held. The session is pinned. */
static hf_status listening_session(pg_backend *backend, pg_session **session, hf_error *err)
{
    *session = pin_listening(backend);
    if (*session)
        return HF_OK;
    hf_status status = hf__pg_session_open(backend, PG_FOR_LOCKS, session, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&backend->mutex);
    (*session)->listens = true;
    backend->listening = *session;
    pthread_mutex_unlock(&backend->mutex);
    return HF_OK;
}

static hf_status say(pg_session *session, const char *function, const char *verb, int64_t wake,
                     hf_error *err)
{
    char sql[200], channel[24];
    hf__pg_channel(channel, wake);
    (void)snprintf(sql, sizeof sql, "SELECT pg_catalog.%s(%d, %d), pg_catalog.%s(%d, %d)", function,
                   PG_COMPANION_CLASS, PG_ANY_LISTENER, function, PG_COMPANION_CLASS,
                   hf__pg_companion(wake));
    pthread_mutex_lock(&session->mutex);
    hf_status status = hf__pg_query(session, sql, 0, NULL, NULL, err);
    if (status == HF_OK) {
        (void)snprintf(sql, sizeof sql, "%s %s", verb, channel);
        status = hf__pg_query(session, sql, 0, NULL, NULL, err);
    }
    pthread_mutex_unlock(&session->mutex);
    return status;
}

static hf_status subscribe(pg_session *session, int64_t wake, hf_error *err)
{
    return say(session, "pg_advisory_lock_shared", "LISTEN", wake, err);
}

static void unsubscribe(pg_session *session, int64_t wake)
{
    hf_error ignored;
    (void)!say(session, "pg_advisory_unlock_shared", "UNLISTEN", wake, &ignored);
}

static struct listener *add(pg_backend *backend, int64_t wake)
{
    struct listener *listener = find(backend, wake);
    if (!listener && (listener = calloc(1, sizeof *listener))) {
        listener->wake = wake;
        listener->next = backend->listeners;
        backend->listeners = listener;
    }
    if (listener)
        listener->users++;
    return listener;
}

/* backend->mutex is held. True: it had no other users, and has been freed. */
static bool drop(pg_backend *backend, struct listener *listener)
{
    if (--listener->users > 0)
        return false;
    struct listener **at = &backend->listeners;
    while (*at != listener)
        at = &(*at)->next;
    *at = listener->next;
    free(listener);
    return true;
}

static hf_status listen_once(hf__backend *base, int64_t wake, uint64_t *ticket, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    pg_session *session = NULL;

    pthread_mutex_lock(&backend->listen_mutex);
    hf_status status = listening_session(backend, &session, err);
    if (status != HF_OK) {
        pthread_mutex_unlock(&backend->listen_mutex);
        return status;
    }
    pthread_mutex_lock(&backend->mutex);
    struct listener *listener = add(backend, wake);
    bool subscribed = listener && listener->serial == session->serial;
    if (listener)
        *ticket = listener->releases;
    pthread_mutex_unlock(&backend->mutex);

    if (!listener)
        status = hf__no_memory(err);
    else if (!subscribed)
        status = subscribe(session, wake, err);
    if (listener) {
        pthread_mutex_lock(&backend->mutex);
        if (status == HF_OK)
            listener->serial = session->serial;
        else
            drop(backend, listener);
        pthread_mutex_unlock(&backend->mutex);
    }
    pthread_mutex_unlock(&backend->listen_mutex);
    hf__pg_unpin(session);
    return status;
}

/* The listening connection may have died unnoticed. That must not fail the wait: try once more. */
hf_status hf__pg_listen(hf__backend *base, int64_t wake, uint64_t *ticket, hf_error *err)
{
    hf_status status = listen_once(base, wake, ticket, err);
    return status == HF_UNREACHABLE ? listen_once(base, wake, ticket, err) : status;
}

void hf__pg_unlisten(hf__backend *base, int64_t wake)
{
    pg_backend *backend = pg_backend_of(base);
    pthread_mutex_lock(&backend->listen_mutex);
    pg_session *session = pin_listening(backend);
    pthread_mutex_lock(&backend->mutex);
    struct listener *listener = find(backend, wake);
    bool was_ours = listener && session && listener->serial == session->serial;
    bool last = listener && drop(backend, listener);
    pthread_mutex_unlock(&backend->mutex);
    if (session && last && was_ours)
        unsubscribe(session, wake);
    pthread_mutex_unlock(&backend->listen_mutex);
    if (session)
        hf__pg_unpin(session);
}

hf_status hf__pg_await_wake(hf__backend *base, int64_t wake, uint64_t *ticket, int ms,
                            hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    struct timespec until = hf__timespec(hf__deadline(ms));
    int timed_out = 0;

    pthread_mutex_lock(&backend->mutex);
    struct listener *listener = find(backend, wake);
    while (listener && !backend->interrupted && listener->releases == *ticket &&
           backend->listening && backend->listening->serial == listener->serial && !timed_out)
        timed_out =
            pthread_cond_clockwait(&backend->changed, &backend->mutex, CLOCK_MONOTONIC, &until);
    bool stop = backend->interrupted;
    if (listener)
        *ticket = listener->releases;
    pthread_mutex_unlock(&backend->mutex);
    return stop ? hf__fail(err, HF_INTERRUPTED, "the wait was interrupted") : HF_OK;
}

void hf__pg_notified(pg_backend *backend, const char *channel)
{
    if (strncmp(channel, "hf_", 3) != 0)
        return;
    int64_t wake = (int64_t)strtoull(channel + 3, NULL, 16);
    pthread_mutex_lock(&backend->mutex);
    struct listener *listener = find(backend, wake);
    if (listener) {
        listener->releases++;
        pthread_cond_broadcast(&backend->changed);
    }
    pthread_mutex_unlock(&backend->mutex);
}

void hf__pg_listeners_wake_all(pg_backend *backend)
{
    pthread_mutex_lock(&backend->mutex);
    for (struct listener *at = backend->listeners; at; at = at->next)
        at->releases++;
    pthread_cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->mutex);
}

void hf__pg_on_listening(pg_backend *backend, const char *sql, hf_error *err)
{
    pg_session *session = NULL;
    pthread_mutex_lock(&backend->listen_mutex);
    hf_status status = listening_session(backend, &session, err);
    pthread_mutex_unlock(&backend->listen_mutex);
    if (status != HF_OK)
        return;
    pthread_mutex_lock(&session->mutex);
    (void)!hf__pg_query(session, sql, 0, NULL, NULL, err);
    pthread_mutex_unlock(&session->mutex);
    hf__pg_unpin(session);
}

/* Failures are ignored: without its record a wait only does not show in lists. */
static void on_listening_session(pg_backend *backend, const hf__sql *statement, int count,
                                 const char *const *params)
{
    hf_error ignored;
    pg_session *session = NULL;
    if (!atomic_load(&backend->base.records))
        return;
    pthread_mutex_lock(&backend->listen_mutex);
    hf_status status = listening_session(backend, &session, &ignored);
    pthread_mutex_unlock(&backend->listen_mutex);
    if (status != HF_OK)
        return;
    pthread_mutex_lock(&session->mutex);
    (void)!hf__pg_run(session, statement, count, params, NULL, &ignored);
    pthread_mutex_unlock(&session->mutex);
    hf__pg_unpin(session);
}

void hf__pg_record_waiter(pg_backend *backend, const hf__claim *claim, int64_t waited_ms)
{
    char key[24], space[8], waited[24];
    (void)snprintf(key, sizeof key, "%lld", (long long)claim->key);
    (void)snprintf(space, sizeof space, "%d", (int)claim->space);
    (void)snprintf(waited, sizeof waited, "%lld", (long long)waited_ms);
    const char *params[] = {key, space, claim->mode == HF_SHARED ? "t" : "f", waited};
    on_listening_session(backend, &hf__sql_postgres_add_waiter, 4, params);
}

void hf__pg_forget_waiter(pg_backend *backend, const hf__claim *claim)
{
    char key[24], space[8];
    (void)snprintf(key, sizeof key, "%lld", (long long)claim->key);
    (void)snprintf(space, sizeof space, "%d", (int)claim->space);
    const char *params[] = {key, space};
    on_listening_session(backend, &hf__sql_postgres_drop_waiter, 2, params);
}
