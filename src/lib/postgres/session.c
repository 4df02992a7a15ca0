/* Sessions: opening connections, their settings, their loss, and the shared session. */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/*
 * When the server ends the session, it says why: in a notice if the session is idle, else in place
 * of the answer.
 */
static void keep_goodbye(pg_session *session, const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (severity && message && strcmp(severity, "FATAL") == 0)
        (void)snprintf(session->goodbye, sizeof session->goodbye, "%s", message);
}

/* A commit whose wait for the standby was cancelled is answered like any other, after a warning.
 * Its text is translated; the function that gives it is not. */
static void note_unreplicated(pg_session *session, const PGresult *result)
{
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    if (function && strcmp(function, "SyncRepWaitForLSN") == 0)
        session->unreplicated = true;
}

static void take_notice(void *arg, const PGresult *result)
{
    keep_goodbye(arg, result);
    note_unreplicated(arg, result);
}

PGresult *hf__pg_next_result(pg_session *session)
{
    PGresult *result = PQgetResult(session->conn);
    keep_goodbye(session, result);
    return result;
}

static void keep_address(pg_session *session)
{
    const char *host = PQhost(session->conn), *address = PQhostaddr(session->conn),
               *port = PQport(session->conn);
    (void)snprintf(session->host, sizeof session->host, "%s", host ? host : "");
    (void)snprintf(session->address, sizeof session->address, "%s", address ? address : "");
    (void)snprintf(session->port, sizeof session->port, "%s", port ? port : "");
}

/* One host after the other: one may accept and fail for a reason that the next does not have. */
static hf_status connect_to_one(pg_session *session, pg_backend *backend,
                                const pg_patience *patience, hf_error *err)
{
    for (size_t left = backend->hosts;; left--) {
        hf_status status = hf__pg_connect(backend, patience, &session->conn, err);
        if (status != HF_OK || PQstatus(session->conn) == CONNECTION_OK)
            return status;
        status = hf__pg_cannot_connect(backend, session->conn, err);
        bool final = err->sqlstate[0] && strcmp(err->sqlstate, "57P03") != 0;
        if (final || left <= 1 || !hf__pg_skip_host(backend, session->conn))
            return status;
        PQfinish(session->conn);
        session->conn = NULL;
    }
}

hf_status hf__pg_session_connect(pg_backend *backend, pg_purpose purpose,
                                 const pg_patience *patience, pg_session **out, hf_error *err)
{
    pg_session *session = calloc(1, sizeof *session);

    if (!session)
        return hf__no_memory(err);
    session->base.backend = &backend->base;
    session->purpose = purpose;
    hf__baton_init(&session->baton);
    session->patience = patience;
    hf_error local_error = {0};
    hf_status status = connect_to_one(session, backend, patience, err ? err : &local_error);
    if (status != HF_OK) {
        hf__pg_session_free(session);
        return status;
    }
    PQsetNoticeReceiver(session->conn, take_notice, session);
    (void)PQsetnonblocking(session->conn, 1);
    *out = session;
    return HF_OK;
}

static const char no_answer[] = "no_answer"; /* why a session was lost: nothing came in time */

/* *ended: the connection was there, and then no more; nobody was waited for. */
static hf_status connect_and_check(pg_backend *backend, pg_purpose purpose,
                                   const pg_patience *patience, pg_session **session, bool *ended,
                                   hf_error *err)
{
    hf_status status = hf__pg_session_connect(backend, purpose, patience, session, err);
    if (status != HF_OK)
        return status;
    status = hf__pg_check_server(*session, err);
    hf__pg_prefer_host(backend, (*session)->conn, status == HF_OK);
    if (status != HF_OK) {
        *ended = atomic_load(&(*session)->base.lost) && (*session)->base.reason != no_answer;
        hf__pg_session_free(*session);
        *session = NULL;
    }
    return status;
}

/*
 * A pooler may hand out a connection whose server is just about to end it, as after a failover: the
 * next one is another.
 */
hf_status hf__pg_session_open_for(pg_backend *backend, pg_purpose purpose,
                                  const pg_patience *patience, pg_session **out, hf_error *err)
{
    pg_session *session = NULL;
    bool ended = false;
    hf_status status = connect_and_check(backend, purpose, patience, &session, &ended, err);
    if (status == HF_UNREACHABLE && ended)
        status = connect_and_check(backend, purpose, patience, &session, &ended, err);
    if (status != HF_OK)
        return status;
    session->patience = NULL;
    keep_address(session);
    atomic_store(&session->used_ms, hf__now_ms());
    pthread_mutex_lock(&backend->mutex);
    session->pins = 1;
    session->serial = ++backend->serials;
    session->next = backend->sessions;
    backend->sessions = session;
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_wake(&backend->base); /* the watcher must poll one more socket */
    *out = session;
    return HF_OK;
}

hf_status hf__pg_session_open(pg_backend *backend, pg_purpose purpose, pg_session **session,
                              hf_error *err)
{
    return hf__pg_session_open_for(backend, purpose, NULL, session, err);
}

void hf__pg_session_free(pg_session *session)
{
    if (!session)
        return;
    hf__buf_free(&session->errands);
    hf__pg_known_forget(session);
    PQfinish(session->conn);
    hf__baton_destroy(&session->baton);
    free(session);
}

/*
 * backend->mutex is held. Takes a session that is lost, or private and not checked out, out of the
 * list, unless it is pinned or has holds. The caller frees the result, without the mutex.
 */
static pg_session *unlink_if_useless(pg_backend *backend, pg_session *session)
{
    bool useless =
        atomic_load(&session->base.lost) || (session->private_session && !session->checked_out);
    if (!useless || session->pins > 0 || atomic_load(&session->base.holds) > 0)
        return NULL;
    pg_session **at = &backend->sessions;
    while (*at && *at != session)
        at = &(*at)->next;
    if (!*at)
        return NULL;
    *at = session->next;
    if (backend->shared_session == session)
        backend->shared_session = NULL;
    if (backend->listening == session)
        backend->listening = NULL;
    if (backend->writing == session)
        backend->writing = NULL;
    if (backend->leasing == session)
        backend->leasing = NULL;
    if (session->waiting_session)
        backend->wait_sessions--;
    if (session->tx_session)
        backend->tx_sessions--;
    hf__cond_broadcast(&backend->changed);
    return session;
}

void hf__pg_unpin(pg_session *session)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    pthread_mutex_lock(&backend->mutex);
    session->pins--;
    pg_session *useless = unlink_if_useless(backend, session);
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_session_free(useless);
}

void hf__pg_discard(pg_session *session)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    pthread_mutex_lock(&backend->mutex);
    session->private_session = true; /* so that unpinning frees it */
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_unpin(session);
}

void hf__pg_leave_session(hf__session *session, unsigned keys)
{
    pg_backend *backend = pg_backend_of(session->backend);
    if (session->lifetime == HF_LEASE) {
        hf__pg_leave_tenure(session, keys);
        return;
    }
    pthread_mutex_lock(&backend->mutex);
    /* Under the mutex, because a thread that sees 0 may free the session. */
    atomic_fetch_sub(&session->holds, keys);
    pg_session *useless = unlink_if_useless(backend, pg_session_of(session));
    if (!useless)
        hf__cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_session_free(useless);
}

static pg_session *pin_shared_session(pg_backend *backend)
{
    pthread_mutex_lock(&backend->mutex);
    pg_session *shared_session = backend->shared_session;
    if (shared_session && atomic_load(&shared_session->base.lost))
        shared_session = backend->shared_session = NULL;
    if (shared_session)
        shared_session->pins++;
    pthread_mutex_unlock(&backend->mutex);
    return shared_session;
}

/*
 * A thread that waited while another one failed to open the session returns the same failure, so
 * that a thousand threads do not wait for a thousand timeouts, one after the other.
 */
static hf_status open_shared_session(pg_backend *backend, int64_t queued_ms,
                                     const pg_patience *patience, pg_session **session,
                                     hf_error *err)
{
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;
    if (backend->shared_session_failed_ms > queued_ms) {
        *where = backend->shared_session_failure;
        return backend->shared_session_failure.code;
    }
    hf_status status = hf__pg_session_open_for(backend, PG_FOR_LOCKS, patience, session, where);
    if (status != HF_OK && hf__pg_patience_check(backend, patience, NULL) != HF_OK)
        return status; /* another may be more patient */
    if (status != HF_OK) {
        backend->shared_session_failure = *where;
        backend->shared_session_failed_ms = hf__now_ms();
        return status;
    }
    pthread_mutex_lock(&backend->mutex);
    backend->shared_session = *session;
    pthread_mutex_unlock(&backend->mutex);
    return HF_OK;
}

hf_status hf__pg_shared_session_for(pg_backend *backend, const pg_patience *patience,
                                    pg_session **session, hf_error *err)
{
    int64_t queued_ms = hf__now_ms();
    *session = pin_shared_session(backend);
    if (*session)
        return HF_OK;
    hf_status status = hf__pg_take_baton(backend, &backend->shared_session_baton, patience, err);
    if (status != HF_OK)
        return status;
    *session = pin_shared_session(backend);
    if (!*session)
        status = open_shared_session(backend, queued_ms, patience, session, err);
    hf__baton_give(&backend->shared_session_baton);
    return status;
}

hf_status hf__pg_shared_session(pg_backend *backend, pg_session **session, hf_error *err)
{
    return hf__pg_shared_session_for(backend, NULL, session, err);
}

/* If a statement could not be sent, the server's message may still be unread. */
static void hear_goodbye(pg_session *session)
{
    if (!PQisBusy(session->conn))
        PQclear(hf__pg_next_result(session));
}

/* A server that ends a session says why; a connection that breaks does not. */
static const char *loss_reason(const pg_session *session, const char *what)
{
    return what ? no_answer : session->goodbye[0] ? "server" : "connection";
}

void hf__pg_session_fail(pg_session *session, const char *what)
{
    hf_error why;
    char text[512];
    const char *reason = what;
    if (!reason) {
        hear_goodbye(session);
        reason = session->goodbye[0]
                     ? session->goodbye
                     : hf__pg_one_line(text, sizeof text, PQerrorMessage(session->conn));
    }
    (void)!hf__fail(&why, HF_LOST, "the session with %s ended: %s", session->base.backend->name,
                    reason && *reason ? reason : "the server closed the connection");
    hf__hint(&why,
             "what was locked through it may be held by another by now; stop, then acquire again");
    if (!hf__session_lose(&session->base, loss_reason(session, what), &why))
        return;
    /* If the server is still there, closing the connection releases the locks. */
    PQfinish(session->conn);
    session->conn = NULL;
}

static void take_notifications(pg_session *session)
{
    PGnotify *notify;
    while ((notify = PQnotifies(session->conn))) {
        hf__pg_notified(pg_backend_of(session->base.backend), notify->relname);
        PQfreemem(notify);
    }
}

void hf__pg_session_readable(pg_session *session)
{
    if (atomic_load(&session->base.lost))
        return;
    bool alive = PQconsumeInput(session->conn) && PQstatus(session->conn) == CONNECTION_OK;
    const char *what = NULL;
    while (alive && !what && session->answer_due && !PQisBusy(session->conn)) {
        PGresult *answer = hf__pg_next_result(session);
        if (answer && session->on_errand && hf__pg_is_error(answer))
            what = "it could not be cleaned up after an error";
        if (!answer) {
            session->answer_due = 0;
            session->on_errand = false;
            atomic_store(&session->used_ms, hf__now_ms());
        }
        PQclear(answer);
        alive = PQstatus(session->conn) == CONNECTION_OK;
    }
    if (alive && !what)
        take_notifications(session);
    else
        hf__pg_session_fail(session, alive ? what : NULL);
}

void hf__pg_session_ping(pg_session *session)
{
    const pg_backend *backend = pg_backend_of(session->base.backend);
    if (!PQsendQuery(session->conn, "") || PQflush(session->conn) < 0) {
        hf__pg_session_fail(session, NULL);
        return;
    }
    session->answer_due = hf__deadline(backend->ping_deadline_ms);
}
