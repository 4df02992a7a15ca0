/* Connections for transactions: a bounded pool, apart from the sessions that hold locks. */
#include "lib/postgres/postgres.h"

#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "lib/sql.h"

bool hf__pg_tx_prepares(const pg_backend *backend)
{
    return !backend->pooled || backend->session_pool;
}

static pg_seat *idle_tx_seat(pg_backend *backend)
{
    for (pg_seat *seat = backend->seats; seat; seat = seat->next)
        if (seat->tx_seat && !seat->checked_out && !atomic_load(&seat->base.lost))
            return seat;
    return NULL;
}

void hf__pg_take_generation(pg_seat *seat, const PGresult *result)
{
    (void)snprintf(seat->generation, sizeof seat->generation, "%s", hf__pg_text(result, 0, 0));
    (void)snprintf(seat->backend_pid, sizeof seat->backend_pid, "%s", hf__pg_text(result, 0, 1));
    (void)snprintf(seat->backend_start, sizeof seat->backend_start, "%s",
                   hf__pg_text(result, 0, 2));
}

static hf_status learn_generation(pg_seat *seat, hf_error *err)
{
    PGresult *result = NULL;
    hf_status status = hf__pg_query(seat, hf__sql_postgres_tx_generation, 0, NULL, &result, err);
    if (status == HF_OK)
        hf__pg_take_generation(seat, result);
    PQclear(result);
    return status;
}

static hf_status prepare_all(pg_seat *seat, hf_error *err)
{
    static const pg_statement wanted[] = {PG_TX_LOCK_ONE, PG_TX_KEEP_ONE, PG_TX_HAND_OVER_ONE};
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < sizeof wanted / sizeof *wanted; i++)
        status = hf__pg_prepare(seat, wanted[i], err);
    return status;
}

static hf_status open_tx_seat(pg_backend *backend, pg_seat **seat, hf_error *err)
{
    hf_status status = hf__pg_seat_open(backend, PG_FOR_TRANSACTIONS, seat, err);
    pthread_mutex_lock(&backend->mutex);
    if (status == HF_OK) {
        (*seat)->checked_out = true;
        (*seat)->tx_seat = true;
    } else {
        backend->tx_seats--;
        pthread_cond_broadcast(&backend->changed);
    }
    pthread_mutex_unlock(&backend->mutex);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&(*seat)->mutex);
    status = learn_generation(*seat, err);
    if (status == HF_OK && hf__pg_tx_prepares(backend))
        status = prepare_all(*seat, err);
    if (status != HF_OK) {
        hf__pg_seat_fail(*seat,
                         "it could not be prepared"); /* or the next would get it half ready */
        hf__pg_checkin(*seat);
    }
    return status;
}

static hf_status interrupted(hf_error *err)
{
    return hf__fail(err, HF_INTERRUPTED, "the wait was interrupted");
}

static hf_status no_seat(const pg_backend *backend, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_EXHAUSTED, "no connection came free in time: %d transactions are running",
                 backend->max_transactions);
    hf__hint(err, "raise max_transactions, or the deadline");
    return status;
}

/* Mutex held. A server that restarted has hung up on idle connections: no attempt is wasted on them. */
static bool is_alive(pg_seat *seat)
{
    struct pollfd pollfd = {.fd = PQsocket(seat->conn), .events = POLLIN};
    if (!atomic_load(&seat->base.lost) && poll(&pollfd, 1, 0) > 0)
        hf__pg_seat_readable(seat);
    return !atomic_load(&seat->base.lost);
}

static hf_status pick_seat(pg_backend *backend, int64_t deadline, pg_seat **out, hf_error *err)
{
    struct timespec until = hf__timespec(deadline);
    bool may_open = false;
    int timed_out = 0;

    pthread_mutex_lock(&backend->mutex);
    for (;;) {
        *out = idle_tx_seat(backend);
        may_open = !*out && backend->tx_seats < (unsigned)backend->max_transactions;
        if (*out || may_open || timed_out || backend->interrupted)
            break;
        timed_out =
            pthread_cond_clockwait(&backend->changed, &backend->mutex, CLOCK_MONOTONIC, &until);
    }
    bool stop = backend->interrupted;
    if (!stop && *out) {
        (*out)->checked_out = true;
        (*out)->pins++;
    } else if (!stop && may_open) {
        backend->tx_seats++;
    }
    pthread_mutex_unlock(&backend->mutex);

    if (stop)
        return interrupted(err);
    if (may_open)
        return open_tx_seat(backend, out, err);
    if (!*out)
        return no_seat(backend, err);
    pthread_mutex_lock(&(*out)->mutex);
    return HF_OK;
}

hf_status hf__pg_tx_checkout(pg_backend *backend, int64_t deadline, pg_seat **seat, hf_error *err)
{
    for (;;) {
        hf_status status = pick_seat(backend, deadline, seat, err);
        if (status != HF_OK || is_alive(*seat))
            return status;
        hf__pg_checkin(*seat);
    }
}

hf_status hf__pg_tx_checkout_held(hf__seat *held, pg_seat **out, hf_error *err)
{
    pg_seat *seat = NULL;
    hf_status status = hf__pg_checkout_held(held, &seat, err);
    if (status != HF_OK)
        return status;
    if (!seat->generation[0])
        status = learn_generation(seat, err);
    if (status != HF_OK) {
        if (atomic_load(&seat->base.lost)) {
            status = HF_LOST;
            if (err)
                *err = seat->base.why;
        }
        hf__pg_checkin(seat);
        return status;
    }
    *out = seat;
    return HF_OK;
}
