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

/* With listen_baton. The session is pinned. */
static hf_status listening_session(pg_backend *backend, const pg_patience *patience,
                                   pg_session **session, hf_error *err)
{
    *session = pin_listening(backend);
    if (*session)
        return HF_OK;
    hf_status status = hf__pg_session_open_for(backend, PG_FOR_LOCKS, patience, session, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&backend->mutex);
    (*session)->listens = true;
    backend->listening = *session;
    pthread_mutex_unlock(&backend->mutex);
    return HF_OK;
}

/* verb: LISTEN or UNLISTEN. */
static void listen_script(hf__buf *sql, const char *function, const char *verb, int64_t wake)
{
    char channel[24];
    hf__pg_channel(channel, wake);
    hf__buf_printf(sql, "SELECT pg_catalog.%s(%d, %d), pg_catalog.%s(%d, %d); %s %s", function,
                   PG_COMPANION_CLASS, PG_ANY_LISTENER, function, PG_COMPANION_CLASS,
                   hf__pg_companion(wake), verb, channel);
}

/* In one message: the locks are there at once, and LISTEN is committed before the answer comes. */
static hf_status subscribe(pg_session *session, int64_t wake, const pg_patience *patience,
                           hf_error *err)
{
    const pg_backend *backend = pg_backend_of(session->base.backend);
    hf__buf sql = {0};
    listen_script(&sql, "pg_advisory_lock_shared", "LISTEN", wake);
    hf_status status =
        sql.broken ? hf__no_memory(err) : hf__pg_session_lock(session, patience, err);
    if (status == HF_OK) {
        status =
            hf__pg_script(session, sql.data, hf__deadline(backend->ping_deadline_ms), NULL, err);
        /* Nobody knows how far it came; nothing but wake-ups is lost with this session. */
        if (status != HF_OK && !atomic_load(&session->base.lost))
            hf__pg_session_fail(session, "it could not listen");
        hf__pg_session_unlock(session);
    }
    hf__buf_free(&sql);
    return status;
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

static hf_status listen_once(pg_backend *backend, int64_t wake, const pg_patience *patience,
                             uint64_t *ticket, hf_error *err)
{
    pg_session *session = NULL;
    hf_status status = hf__pg_take_baton(backend, &backend->listen_baton, patience, err);
    if (status != HF_OK)
        return status;
    status = listening_session(backend, patience, &session, err);
    if (status != HF_OK) {
        hf__baton_give(&backend->listen_baton);
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
        status = subscribe(session, wake, patience, err);
    if (listener) {
        pthread_mutex_lock(&backend->mutex);
        if (status == HF_OK)
            listener->serial = session->serial;
        else
            drop(backend, listener);
        pthread_mutex_unlock(&backend->mutex);
    }
    hf__baton_give(&backend->listen_baton);
    hf__pg_unpin(session);
    return status;
}

/* The listening session may have died unnoticed. That does not fail a wait: open another one. */
hf_status hf__pg_listen_for(pg_backend *backend, int64_t wake, const pg_patience *patience,
                            uint64_t *ticket, hf_error *err)
{
    hf_status status = listen_once(backend, wake, patience, ticket, err);
    if (status == HF_UNREACHABLE && hf__pg_patience_check(backend, patience, NULL) == HF_OK)
        status = listen_once(backend, wake, patience, ticket, err);
    return status;
}

hf_status hf__pg_listen(hf__backend *base, int64_t wake, const hf__request *request,
                        uint64_t *ticket, hf_error *err)
{
    const pg_patience patience = hf__pg_patience(pg_backend_of(base), request);
    if (hf__pg_is_transaction_pooled(pg_backend_of(base)))
        return HF_OK; /* nobody can: await_wake sleeps */
    return hf__pg_listen_for(pg_backend_of(base), wake, &patience, ticket, err);
}

/* The caller does not wait for the server. Who listens again comes after the errand. */
void hf__pg_unlisten(hf__backend *base, int64_t wake)
{
    pg_backend *backend = pg_backend_of(base);
    hf__buf sql = {0};
    listen_script(&sql, "pg_advisory_unlock_shared", "UNLISTEN", wake);
    pthread_mutex_lock(&backend->mutex);
    struct listener *listener = find(backend, wake);
    pg_session *session = backend->listening;
    bool ours = listener && session && listener->serial == session->serial;
    if (listener && drop(backend, listener) && ours) {
        session->errands.broken |= sql.broken;
        if (!sql.broken)
            hf__pg_errand(session, sql.data);
    }
    pthread_mutex_unlock(&backend->mutex);
    hf__buf_free(&sql);
    hf__pg_wake(base);
}

hf_status hf__pg_await_wake(hf__backend *base, int64_t wake, const hf_cancel *cancel,
                            uint64_t *ticket, int ms, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    int64_t until = hf__deadline(ms);
    bool in_time = true;
    if (hf__pg_is_transaction_pooled(backend))
        return hf__pg_pause(backend, cancel, until, err);

    pthread_mutex_lock(&backend->mutex);
    struct listener *listener = find(backend, wake);
    while (listener && !backend->interrupted && !hf__is_cancelled(cancel) &&
           listener->releases == *ticket && backend->listening &&
           backend->listening->serial == listener->serial && in_time)
        in_time = hf__cond_wait(&backend->changed, &backend->mutex, until);
    bool stop = backend->interrupted || hf__is_cancelled(cancel);
    if (listener)
        *ticket = listener->releases;
    pthread_mutex_unlock(&backend->mutex);
    return stop ? hf__interrupted(err) : HF_OK;
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
        hf__cond_broadcast(&backend->changed);
    }
    pthread_mutex_unlock(&backend->mutex);
}

void hf__pg_listeners_wake_all(pg_backend *backend)
{
    pthread_mutex_lock(&backend->mutex);
    for (struct listener *at = backend->listeners; at; at = at->next)
        at->releases++;
    hf__cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->mutex);
}

/* ---- what else is said there ----------------------------------------------------------------- */

hf_status hf__pg_on_listening(pg_backend *backend, const pg_patience *patience, uint64_t *serial,
                              const char *sql, int count, const char *const *values,
                              PGresult **result, hf_error *err)
{
    pg_session *session = NULL;
    hf_status status = hf__pg_take_baton(backend, &backend->listen_baton, patience, err);
    if (status != HF_OK)
        return status;
    status = listening_session(backend, patience, &session, err);
    hf__baton_give(&backend->listen_baton);
    if (status != HF_OK)
        return status;
    bool gone = *serial && *serial != session->serial;
    *serial = gone ? 0 : session->serial;
    if (!gone)
        status = hf__pg_session_lock(session, patience, err);
    if (!gone && status == HF_OK) {
        status = hf__pg_query(session, sql, count, values, result, err);
        hf__pg_session_unlock(session);
    }
    hf__pg_unpin(session);
    return status;
}

void hf__pg_errand_on_listening(pg_backend *backend, uint64_t serial, const char *sql)
{
    pthread_mutex_lock(&backend->mutex);
    if (backend->listening && backend->listening->serial == serial)
        hf__pg_errand(backend->listening, sql);
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_wake(&backend->base);
}

/* Best effort: a wait that no list shows is still a wait. */
void hf__pg_record_waiter(pg_backend *backend, const hf__claim *claim, int64_t waited_ms,
                          const pg_patience *patience, uint64_t *serial)
{
    char key[24], space[8], waited[24];
    hf_error ignored;
    *serial = 0;
    if (!atomic_load(&backend->base.records))
        return;
    (void)snprintf(key, sizeof key, "%lld", (long long)claim->key);
    (void)snprintf(space, sizeof space, "%d", (int)claim->space);
    (void)snprintf(waited, sizeof waited, "%lld", (long long)waited_ms);
    const char *params[] = {key, space, claim->mode == HF_SHARED ? "t" : "f", waited};
    (void)!hf__pg_on_listening(backend, patience, serial, pg_sql(&hf__sql_postgres_add_waiter), 4,
                               params, NULL, &ignored);
}

void hf__pg_forget_waiter(pg_backend *backend, const hf__claim *claim, uint64_t serial)
{
    char key[24], space[8];
    hf__buf sql = {0};
    if (!serial)
        return;
    (void)snprintf(key, sizeof key, "%lld", (long long)claim->key);
    (void)snprintf(space, sizeof space, "%d", (int)claim->space);
    const hf__sql_part parts[] = {{"key", key}, {"space", space}, {0}};
    hf__sql_expand(&sql, pg_sql(&hf__sql_postgres_drop_waiter), parts);
    if (!sql.broken)
        hf__pg_errand_on_listening(backend, serial, sql.data);
    hf__buf_free(&sql);
}
