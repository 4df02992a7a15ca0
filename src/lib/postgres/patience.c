/*
 * How long a caller waits for the server itself. A statement may take as long as a ping, but a
 * caller who said how long to wait, or was interrupted, does not stay for that: the statement is
 * abandoned, its answer is taken in later, and an errand undoes what it may have done.
 */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

enum {
    STEP_MS = 50,          /* how often a wait that no descriptor ends looks for an interrupt */
    PROBE_PAUSE_MS = 1000, /* from one probe that found nothing to the next */
};

pg_patience hf__pg_patience(const pg_backend *backend, const hf__request *request)
{
    return (pg_patience){.until = hf__answer_due(request, backend->ping_deadline_ms),
                         .interruptible = request->deadline > request->began,
                         .cancel = request->cancel};
}

hf_status hf__pg_patience_check(const pg_backend *backend, const pg_patience *patience,
                                hf_error *err)
{
    if (!patience)
        return HF_OK;
    if ((patience->interruptible && atomic_load(&backend->interrupted)) ||
        hf__is_cancelled(patience->cancel))
        return hf__interrupted(err);
    if (hf__left_ms(patience->until) != 0)
        return HF_OK;
    hf_status status =
        hf__fail(err, HF_UNREACHABLE, "%s has not answered in time", backend->base.name);
    hf__hint(err, "the server or the network is silent, or very busy; look at it, or wait longer");
    return status;
}

static int64_t next_look(const pg_patience *patience)
{
    if (!patience)
        return HF__FOREVER;
    int64_t step = hf__deadline(STEP_MS);
    return patience->until < step ? patience->until : step;
}

hf_status hf__pg_take_baton(pg_backend *backend, hf__baton *baton, const pg_patience *patience,
                            hf_error *err)
{
    hf_status status = HF_OK;
    if (!patience) {
        hf__baton_take(baton);
        return HF_OK;
    }
    if (hf__baton_try(baton))
        return HF_OK;
    while (status == HF_OK) {
        if (hf__baton_take_until(baton, next_look(patience)))
            return HF_OK;
        status = hf__pg_patience_check(backend, patience, err);
    }
    return status;
}

hf_status hf__pg_session_lock(pg_session *session, const pg_patience *patience, hf_error *err)
{
    hf_status status =
        hf__pg_take_baton(pg_backend_of(session->base.backend), &session->baton, patience, err);
    if (status == HF_OK)
        session->patience = patience;
    return status;
}

void hf__pg_session_unlock(pg_session *session)
{
    session->patience = NULL;
    hf__baton_give(&session->baton);
}

/* ---- aside ----------------------------------------------------------------------------------- */

/*
 * What libpq does only while it blocks, in a thread of its own: connecting, because it alone knows
 * how to go through hosts and addresses, looking after a session that is busy, and PQcancel. Such a
 * thread owns all that it needs and may be left behind.
 */
struct pg_aside {
    pthread_mutex_t mutex;
    hf__cond changed;
    unsigned users; /* the thread and who started it */
    bool done;
    PGconn *conn;
    char **keywords, **values;

    /* a probe */
    char pid[16], start[32]; /* "": connects only */
    bool is_alive, is_working;

    PGcancel *cancel; /* only this, or NULL */
};

/* more: NULL-terminated; libpq takes the last of several values that are not empty. */
static char **copy_words(const char *const *words, const char *const *more)
{
    size_t count = 0, extra = 0;
    while (words[count])
        count++;
    while (more[extra])
        extra++;
    char **copy = calloc(count + extra + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count + extra; i++)
        if (!(copy[i] = strdup(i < count ? words[i] : more[i - count]))) {
            hf__pg_words_free(copy);
            return NULL;
        }
    return copy;
}

/* mutex held; unlocks it. */
static void leave(struct pg_aside *aside)
{
    bool last = --aside->users == 0;
    pthread_mutex_unlock(&aside->mutex);
    if (!last)
        return;
    PQfinish(aside->conn);
    PQfreeCancel(aside->cancel);
    hf__pg_words_free(aside->keywords);
    hf__pg_words_free(aside->values);
    hf__cond_destroy(&aside->changed);
    pthread_mutex_destroy(&aside->mutex);
    free(aside);
}

/* Also a server that has no connection left for us has answered. */
static void look_at_backend(struct pg_aside *aside, PGconn *conn)
{
    const char *params[] = {aside->pid, aside->start};
    if (PQstatus(conn) != CONNECTION_OK) {
        aside->is_alive = aside->is_working =
            strstr(PQerrorMessage(conn), "too many") || strstr(PQerrorMessage(conn), "slots");
        return;
    }
    PGresult *result = PQexecParams(conn, pg_sql(&hf__sql_postgres_look_at_backend), 2, NULL,
                                    params, NULL, NULL, 0);
    bool answered = PQresultStatus(result) == PGRES_TUPLES_OK;
    aside->is_alive = answered && hf__pg_bool(result, 0, 0);
    aside->is_working = answered && hf__pg_bool(result, 0, 1);
    PQclear(result);
}

static void ignore_notice(void *arg, const PGresult *result)
{
    (void)arg, (void)result;
}

/* Before anybody else looks at it: libpq would print what an idle server says on standard error. */
static PGconn *connect_quietly(char **keywords, const char *const *values)
{
    PGconn *conn = PQconnectdbParams((const char *const *)keywords, values, 0);
    if (conn)
        PQsetNoticeReceiver(conn, ignore_notice, NULL);
    return conn;
}

static void *run_aside(void *arg)
{
    struct pg_aside *aside = arg;
    PGconn *conn = NULL;
    char ignored[256];
    if (aside->cancel)
        (void)PQcancel(aside->cancel, ignored, sizeof ignored);
    else
        conn = connect_quietly(aside->keywords, (const char *const *)aside->values);
    if (conn && aside->pid[0])
        look_at_backend(aside, conn); /* nobody else reads that before it is done */
    pthread_mutex_lock(&aside->mutex);
    aside->conn = conn;
    aside->done = true;
    hf__cond_signal(&aside->changed);
    leave(aside);
    return NULL;
}

static struct pg_aside *new_aside(void)
{
    struct pg_aside *aside = calloc(1, sizeof *aside);
    if (!aside)
        return NULL;
    pthread_mutex_init(&aside->mutex, NULL);
    hf__cond_init(&aside->changed);
    aside->users = 2;
    return aside;
}

/* Returns it, or frees it and returns NULL. */
static struct pg_aside *set_going(struct pg_aside *aside, bool complete)
{
    pthread_t thread;
    if (complete && hf__thread_start(&thread, 0, run_aside, aside) == 0) {
        (void)pthread_detach(thread);
        return aside;
    }
    aside->users = 1;
    pthread_mutex_lock(&aside->mutex);
    leave(aside);
    return NULL;
}

/* busy: the session to look after, or NULL. */
static struct pg_aside *start(pg_backend *backend, const pg_session *busy)
{
    const char *keywords[] = {busy ? "host" : NULL, "hostaddr", "port", NULL};
    const char *values[] = {busy ? busy->host : NULL, busy ? busy->address : NULL,
                            busy ? busy->port : NULL, NULL};
    struct pg_aside *aside = new_aside();
    if (!aside)
        return NULL;
    aside->keywords = copy_words((const char *const *)backend->keywords, keywords);
    aside->values = copy_words(hf__pg_values(backend), values);
    if (busy) {
        pthread_mutex_lock(&backend->mutex);
        (void)snprintf(aside->pid, sizeof aside->pid, "%s", busy->backend_pid);
        (void)snprintf(aside->start, sizeof aside->start, "%s", busy->backend_start);
        pthread_mutex_unlock(&backend->mutex);
    }
    return set_going(aside, aside->keywords && aside->values);
}

hf_status hf__pg_connect(pg_backend *backend, const pg_patience *patience, PGconn **conn,
                         hf_error *err)
{
    hf_status status = HF_OK;
    /* A fiber must not hold up the others, however patient its caller is. */
    struct pg_aside *aside = patience || hf__fiber_local() ? start(backend, NULL) : NULL;
    if (!aside) {
        *conn = connect_quietly(backend->keywords, hf__pg_values(backend));
        return *conn ? HF_OK : hf__no_memory(err);
    }
    pthread_mutex_lock(&aside->mutex);
    while (!aside->done && status == HF_OK)
        if (!hf__cond_wait(&aside->changed, &aside->mutex, next_look(patience)))
            status = hf__pg_patience_check(backend, patience, err);
    if (aside->done) {
        *conn = aside->conn;
        aside->conn = NULL;
        status = *conn ? HF_OK : hf__no_memory(err);
    }
    leave(aside);
    return status;
}

void hf__pg_cancel_aside(PGcancel *cancel, int64_t until)
{
    struct pg_aside *aside = new_aside();
    if (!aside) {
        PQfreeCancel(cancel);
        return;
    }
    aside->cancel = cancel;
    aside = set_going(aside, cancel != NULL);
    if (!aside)
        return;
    pthread_mutex_lock(&aside->mutex);
    while (!aside->done && hf__cond_wait(&aside->changed, &aside->mutex, until))
        ;
    leave(aside);
}

/* ---- probes ---------------------------------------------------------------------------------- */

/* Lets go of it and returns true if it has come back. */
static bool has_come_back(struct pg_aside **probe, bool *is_alive, bool *is_working)
{
    if (!*probe)
        return false;
    pthread_mutex_lock(&(*probe)->mutex);
    if (!(*probe)->done) {
        pthread_mutex_unlock(&(*probe)->mutex);
        return false;
    }
    *is_alive = (*probe)->is_alive;
    *is_working = (*probe)->is_working;
    leave(*probe);
    *probe = NULL;
    return true;
}

static void forget(struct pg_aside **probe)
{
    if (!*probe)
        return;
    pthread_mutex_lock(&(*probe)->mutex);
    leave(*probe);
    *probe = NULL;
}

bool hf__pg_probe(pg_backend *backend, const pg_session *busy)
{
    bool is_alive = false, is_working = false;
    if (!backend->probe && (backend->probe = start(backend, busy)))
        backend->probed = busy->serial;
    if (!backend->probe || backend->probed != busy->serial)
        return false;
    return has_come_back(&backend->probe, &is_alive, &is_working) && is_alive;
}

void hf__pg_forget_probe(pg_backend *backend)
{
    forget(&backend->probe);
}

int64_t hf__pg_vigil_next(const pg_session *session, const pg_vigil *vigil)
{
    const pg_backend *backend = (const pg_backend *)session->base.backend;
    int64_t step = hf__deadline(STEP_MS), first = vigil->heard + backend->ping_interval_ms;
    return backend->pooled ? HF__FOREVER : first > step ? first : step;
}

/* A backend that waits for its client has not got the statement, or its answer was lost: the
 * connection is dead, however alive the server. */
bool hf__pg_vigil_look(const pg_session *session, pg_vigil *vigil)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    int64_t now = hf__now_ms(), silent = now - vigil->heard;
    bool is_alive = false, is_working = false;
    if (has_come_back(&vigil->probe, &is_alive, &is_working) && is_working)
        vigil->heard = now;
    else if (silent >= backend->ping_interval_ms + backend->ping_deadline_ms)
        vigil->is_lost = true;
    else if (!vigil->probe && silent >= backend->ping_interval_ms &&
             now - vigil->asked >= PROBE_PAUSE_MS) {
        vigil->probe = start(backend, session);
        vigil->asked = now;
    }
    return !vigil->is_lost;
}

void hf__pg_vigil_end(pg_vigil *vigil)
{
    forget(&vigil->probe);
}
