/* Sessions for transactions: a bounded pool, separate from the sessions that hold locks. */
#include "lib/postgres/postgres.h"

#include <poll.h>
#include <stdio.h>

#include "base/clock.h"

bool hf__pg_tx_prepares(const pg_backend *backend)
{
    return !backend->pooled || backend->session_pool;
}

static pg_session *idle_tx_session(pg_backend *backend)
{
    for (pg_session *session = backend->sessions; session; session = session->next)
        if (session->tx_session && !session->checked_out && !atomic_load(&session->base.lost))
            return session;
    return NULL;
}

void hf__pg_keep_generation(pg_session *session, const PGresult *result)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    (void)snprintf(session->generation, sizeof session->generation, "%s",
                   hf__pg_text(result, 0, 0));
    pthread_mutex_lock(&backend->mutex); /* who probes a busy session reads these two */
    (void)snprintf(session->backend_pid, sizeof session->backend_pid, "%s",
                   hf__pg_text(result, 0, 1));
    (void)snprintf(session->backend_start, sizeof session->backend_start, "%s",
                   hf__pg_text(result, 0, 2));
    pthread_mutex_unlock(&backend->mutex);
}

static hf_status learn_generation(pg_session *session, hf_error *err)
{
    PGresult *result = NULL;
    hf_status status =
        hf__pg_query(session, pg_sql(&hf__sql_postgres_tx_generation), 0, NULL, &result, err);
    if (status == HF_OK)
        hf__pg_keep_generation(session, result);
    PQclear(result);
    return status;
}

const hf__sql *hf__pg_tx_keep(const pg_backend *backend)
{
    return hf__pg_may_be_leased(backend) ? &hf__sql_postgres_tx_keep_unleased
                                         : &hf__sql_postgres_tx_keep_one;
}

const hf__sql *hf__pg_tx_prepared(const pg_backend *backend, size_t index)
{
    const hf__sql *const prepared[PG_TX_PREPARED] = {
        &hf__sql_postgres_tx_lock_one, hf__pg_tx_keep(backend), &hf__sql_postgres_tx_hand_over_one};
    return prepared[index];
}

static hf_status prepare_all(pg_session *session, hf_error *err)
{
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < PG_TX_PREPARED; i++)
        status = hf__pg_prepare(session,
                                hf__pg_tx_prepared(pg_backend_of(session->base.backend), i), err);
    return status;
}

static hf_status open_tx_session(pg_backend *backend, const hf__attempt_plan *plan,
                                 pg_session **session, hf_error *err)
{
    enum { LEAST_MS = 1000 }; /* a healthy server that is busy answers within that */
    int64_t least = hf__deadline(LEAST_MS);
    const pg_patience patience = {.until = plan->deadline > least ? plan->deadline : least,
                                  .cancel = plan->cancel};
    bool is_bounded = plan->cancel || plan->deadline != HF__FOREVER;
    hf_status status = hf__pg_session_open_for(backend, PG_FOR_TRANSACTIONS,
                                               is_bounded ? &patience : NULL, session, err);
    pthread_mutex_lock(&backend->mutex);
    if (status == HF_OK) {
        (*session)->checked_out = true;
        (*session)->tx_session = true;
    } else {
        backend->tx_sessions--;
        hf__cond_broadcast(&backend->changed);
    }
    pthread_mutex_unlock(&backend->mutex);
    if (status != HF_OK)
        return status;
    hf__baton_take(&(*session)->baton);
    (*session)->patience = &patience;
    status = learn_generation(*session, err);
    if (status == HF_OK && hf__pg_tx_prepares(backend))
        status = prepare_all(*session, err);
    (*session)->patience = NULL;
    if (status != HF_OK) {
        /* Lost, because the next transaction must not get a session that is half set up. */
        hf__pg_session_fail(*session, "it could not be prepared");
        hf__pg_checkin(*session);
    }
    return status;
}

static hf_status no_session(const pg_backend *backend, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_EXHAUSTED, "no connection came free in time: %d transactions are running",
                 backend->max_transactions);
    hf__hint(err, "raise max_transactions, or the deadline");
    return status;
}

/*
 * With the session's baton. After a restart of the server its idle connections are dead: finds
 * out before an attempt is wasted on one. A server that ends a session says why first: only the
 * look behind that finds the end.
 */
static bool is_alive(pg_session *session)
{
    struct pollfd pollfd = {.fd = PQsocket(session->conn), .events = POLLIN};
    while (!atomic_load(&session->base.lost) && poll(&pollfd, 1, 0) > 0)
        hf__pg_session_readable(session);
    return !atomic_load(&session->base.lost);
}

static hf_status refuse_nested(const pg_backend *backend, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_ORDER,
                 "a transaction within another does not wait for a connection: all %d are "
                 "in use",
                 backend->max_transactions);
    hf__hint(err, "threads that hold one connection and wait for another wait for each other; "
                  "raise max_transactions, or do it in one transaction");
    return status;
}

static hf_status pick_session(pg_backend *backend, const hf__attempt_plan *plan, pg_session **out,
                              hf_error *err)
{
    bool may_open = false, in_time = true;

    pthread_mutex_lock(&backend->mutex);
    for (;;) {
        *out = idle_tx_session(backend);
        may_open = !*out && backend->tx_sessions < (unsigned)backend->max_transactions;
        if (*out || may_open || !in_time || backend->interrupted || plan->is_nested ||
            hf__is_cancelled(plan->cancel))
            break;
        in_time = hf__cond_wait(&backend->changed, &backend->mutex, plan->deadline);
    }
    bool stop = backend->interrupted || hf__is_cancelled(plan->cancel);
    if (!stop && *out) {
        (*out)->checked_out = true;
        (*out)->pins++;
    } else if (!stop && may_open) {
        backend->tx_sessions++;
    }
    pthread_mutex_unlock(&backend->mutex);

    if (stop)
        return hf__interrupted(err);
    if (may_open)
        return open_tx_session(backend, plan, out, err);
    if (!*out)
        return plan->is_nested ? refuse_nested(backend, err) : no_session(backend, err);
    hf__baton_take(&(*out)->baton);
    return HF_OK;
}

hf_status hf__pg_tx_checkout(pg_backend *backend, const hf__attempt_plan *plan,
                             pg_session **session, hf_error *err)
{
    for (;;) {
        hf_status status = pick_session(backend, plan, session, err);
        if (status != HF_OK || is_alive(*session))
            return status;
        hf__pg_checkin(*session);
    }
}

static hf_status session_in_use(hf_error *err)
{
    hf_status status = hf__fail(err, HF_EXHAUSTED, "the lock's session did not come free in time");
    hf__hint(err, "another transaction runs on it; allow more time, or end that one sooner");
    return status;
}

hf_status hf__pg_tx_checkout_held(const hf__attempt_plan *plan, pg_session **out, hf_error *err)
{
    pg_session *session = NULL;
    const pg_patience patience = {
        .until = plan->deadline, .interruptible = true, .cancel = plan->cancel};
    hf_status status = hf__pg_checkout_held(plan->session, &patience, &session, err);
    if (status == HF_UNREACHABLE)
        return session_in_use(err);
    if (status != HF_OK)
        return status;
    session->patience = &patience;
    if (!session->generation[0])
        status = learn_generation(session, err);
    session->patience = NULL;
    if (status != HF_OK) {
        if (atomic_load(&session->base.lost)) {
            status = HF_LOST;
            if (err)
                *err = session->base.why;
        }
        hf__pg_checkin(session);
        return status;
    }
    *out = session;
    return HF_OK;
}
