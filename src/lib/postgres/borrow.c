/*
 * Transaction locks on a connection that the caller lends. It is left as it was: no settings, no
 * prepared statements. All statements also work through a pooler in transaction mode.
 */
#include "lib/postgres/postgres.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

typedef struct borrowed {
    hf__backend base;
    hf__session session;
    PGconn *conn;
} borrowed;

static borrowed *borrowed_of(hf__backend *backend)
{
    return (borrowed *)backend;
}

/* Takes the answer over; *result gets it if it is wanted and no failure. */
static hf_status judge(PGconn *conn, PGresult *answer, PGresult **result, hf_error *err)
{
    ExecStatusType state = PQresultStatus(answer);
    hf_status status = HF_OK;
    char text[512];

    if (PQstatus(conn) != CONNECTION_OK)
        status = hf__fail(err, HF_UNREACHABLE, "the borrowed connection broke: %s",
                          hf__pg_one_line(text, sizeof text, PQerrorMessage(conn)));
    else if (state != PGRES_TUPLES_OK && state != PGRES_COMMAND_OK)
        status = hf__pg_fail_result(answer, err);
    if (status == HF_OK && result)
        *result = answer;
    else
        PQclear(answer);
    return status;
}

static hf_status ask(PGconn *conn, const char *sql, int count, const char *const *values,
                     PGresult **result, hf_error *err)
{
    return judge(conn, PQexecParams(conn, sql, count, NULL, values, NULL, NULL, 0), result, err);
}

static hf_status require_transaction(PGconn *conn, hf_error *err)
{
    hf_status status = HF_OK;
    switch (PQtransactionStatus(conn)) {
    case PQTRANS_INTRANS: return HF_OK;
    case PQTRANS_INERROR:
        status = hf__fail(err, HF_NO_TRANSACTION,
                          "the transaction on the borrowed connection has failed");
        hf__hint(err, "roll it back and begin a new one");
        return status;
    case PQTRANS_IDLE:
        status = hf__fail(err, HF_NO_TRANSACTION,
                          "a transaction lock outside a transaction would be gone at once");
        hf__hint(err, "send BEGIN on the borrowed connection first");
        return status;
    case PQTRANS_ACTIVE:
    case PQTRANS_UNKNOWN: break;
    }
    return hf__fail(err, HF_INVALID, "the borrowed connection is busy or broken");
}

/*
 * Does the transaction keep the snapshot of its first statement? That is older than a lock that it
 * takes now, even one that is free: the last holder may have committed in between.
 */
static bool is_frozen(const char *isolation)
{
    return strcmp(isolation, "repeatable read") == 0 || strcmp(isolation, "serializable") == 0;
}

/*
 * Under the lock: is the key leased? A snapshot that is older than the lock cannot tell, so that a
 * lock is refused then wherever leases are used.
 */
static hf_status refuse_leased(PGconn *conn, const pg_arrays *arrays, bool shared, bool frozen,
                               hf__request *request, hf_error *err)
{
    PGresult *result = NULL;
    const char *params[] = {arrays->keys.data, arrays->spaces.data, shared ? "t" : "f"};
    hf_status status =
        ask(conn, pg_sql(&hf__sql_postgres_borrow_may_be_leased), 0, NULL, &result, err);
    bool possible = status == HF_OK && hf__pg_bool(result, 0, 0);
    PQclear(result);
    result = NULL;
    if (!possible)
        return status;
    if (frozen) {
        status = hf__fail(err, HF_INVALID,
                          "the transaction's snapshot is older than the lock: it "
                          "does not show whether the key is leased");
        hf__hint(err, "use READ COMMITTED, or hf_transact, which locks first");
        return status;
    }
    status = ask(conn, pg_sql(&hf__sql_postgres_first_leased), 3, params, &result, err);
    int64_t leased = status == HF_OK ? hf__pg_int(result, 0, 0) : 0;
    PQclear(result);
    if (leased > 0)
        request->blocked = (size_t)leased - 1;
    return leased > 0 ? HF_NOT_ACQUIRED : status;
}

/* The lock is held meanwhile, so that nobody else gets in between. */
static hf_status await_unleased(PGconn *conn, const pg_arrays *arrays, bool shared, bool frozen,
                                hf__request *request, hf_error *err)
{
    enum { LOOK_LOW_MS = 50, LOOK_HIGH_MS = 250 };
    hf_status status = refuse_leased(conn, arrays, shared, frozen, request, err);
    while (status == HF_NOT_ACQUIRED && hf__left_ms(request->deadline) != 0) {
        int64_t next = hf__deadline(hf__jitter_ms(LOOK_LOW_MS, LOOK_HIGH_MS));
        struct pollfd cancel = {.fd = hf__cancel_fd(request->cancel), .events = POLLIN};
        (void)poll(&cancel, 1, hf__left_ms(next < request->deadline ? next : request->deadline));
        status = hf__is_cancelled(request->cancel)
                     ? hf__interrupted(err)
                     : refuse_leased(conn, arrays, shared, frozen, request, err);
    }
    return status;
}

/*
 * When a later key is not free, the keys before it stay locked until the caller rolls back to the
 * savepoint.
 */
static hf_status try_keys(PGconn *conn, const pg_arrays *arrays, bool shared, hf__request *request,
                          hf_error *err)
{
    PGresult *result = NULL;
    const char *params[] = {arrays->keys.data, arrays->spaces.data, shared ? "t" : "f"};
    hf_status status = ask(conn, pg_sql(&hf__sql_postgres_borrow_try), 3, params, &result, err);
    if (status != HF_OK)
        return status;
    int64_t position = hf__pg_int(result, 0, 1);
    bool frozen = is_frozen(hf__pg_text(result, 0, 0));
    request->snapshot_stale = position == 0 && frozen;
    PQclear(result);
    if (position == 0)
        return refuse_leased(conn, arrays, shared, frozen, request, err);
    request->blocked = (size_t)position - 1;
    return HF_NOT_ACQUIRED;
}

/* The server is told to cancel what runs once the handle is triggered; it answers all the same. */
static void cancel_when_told(PGconn *conn, const hf_cancel *cancel)
{
    char ignored[256];
    struct pollfd pollfds[] = {{.fd = PQsocket(conn), .events = POLLIN},
                               {.fd = hf__cancel_fd(cancel), .events = POLLIN}};
    while (PQisBusy(conn)) {
        int ready = poll(pollfds, 2, -1);
        if (ready > 0 && pollfds[1].revents) {
            PGcancel *handle = PQgetCancel(conn);
            if (handle)
                (void)PQcancel(handle, ignored, sizeof ignored);
            PQfreeCancel(handle);
            return;
        }
        if ((ready < 0 && errno != EINTR) || (ready > 0 && !PQconsumeInput(conn)))
            return;
    }
}

static hf_status wait_keys(PGconn *conn, const pg_arrays *arrays, bool shared,
                           const hf_cancel *cancel, hf_error *err)
{
    const char *params[] = {arrays->keys.data, arrays->spaces.data, shared ? "t" : "f"};
    const char *sql = pg_sql(&hf__sql_postgres_borrow_wait);
    if (!cancel)
        return ask(conn, sql, 3, params, NULL, err);
    if (PQsendQueryParams(conn, sql, 3, NULL, params, NULL, NULL, 0))
        cancel_when_told(conn, cancel);
    PGresult *result = NULL, *next = NULL;
    while ((next = PQgetResult(conn))) {
        PQclear(result);
        result = next;
    }
    return judge(conn, result, NULL, err);
}

static bool is_timeout(const hf_error *err)
{
    return strcmp(err->sqlstate, "57014") == 0 || strcmp(err->sqlstate, "55P03") == 0;
}

/*
 * Sets timeouts for the statements up to the end of the savepoint. The caller's come back with
 * restore_timeouts, or with the rollback to the savepoint.
 */
static hf_status bound_wait(PGconn *conn, int64_t deadline, hf_error *err)
{
    char ms[16];
    int left = hf__left_ms(deadline);
    (void)snprintf(ms, sizeof ms, "%d", left < 0 ? 0 : (left > 0 ? left : 1));
    const char *params[] = {ms};
    return ask(conn, pg_sql(&hf__sql_postgres_borrow_bound), 1, params, NULL, err);
}

struct timeouts {
    char statement[32], lock[32];
};

static hf_status read_timeouts(PGconn *conn, struct timeouts *timeouts, bool *frozen, hf_error *err)
{
    PGresult *result = NULL;
    hf_status status = ask(conn, pg_sql(&hf__sql_postgres_borrow_timeouts), 0, NULL, &result, err);
    if (status != HF_OK)
        return status;
    (void)snprintf(timeouts->statement, sizeof timeouts->statement, "%s",
                   hf__pg_text(result, 0, 0));
    (void)snprintf(timeouts->lock, sizeof timeouts->lock, "%s", hf__pg_text(result, 0, 1));
    *frozen = is_frozen(hf__pg_text(result, 0, 2));
    PQclear(result);
    return HF_OK;
}

static hf_status restore_timeouts(PGconn *conn, const struct timeouts *timeouts, hf_error *err)
{
    const char *params[] = {timeouts->statement, timeouts->lock};
    return ask(conn, pg_sql(&hf__sql_postgres_borrow_restore), 2, params, NULL, err);
}

static void undo(PGconn *conn)
{
    hf_error ignored;
    if (PQstatus(conn) != CONNECTION_OK)
        return;
    (void)!ask(conn, "ROLLBACK TO SAVEPOINT holdfast", 0, NULL, NULL, &ignored);
    (void)!ask(conn, "RELEASE SAVEPOINT holdfast", 0, NULL, NULL, &ignored);
}

static hf_status begin(borrowed *store, const hf__request *request, pg_arrays *arrays,
                       hf_error *err)
{
    hf_status status = require_transaction(store->conn, err);
    if (status == HF_OK)
        status = hf__pg_key_arrays(arrays, request->claims, request->count, err);
    if (status == HF_OK)
        status = ask(store->conn, "SAVEPOINT holdfast", 0, NULL, NULL, err);
    return status;
}

static hf_status end(borrowed *store, hf__request *request, hf_status status, hf_error *err)
{
    if (status == HF_OK)
        status = ask(store->conn, "RELEASE SAVEPOINT holdfast", 0, NULL, NULL, err);
    else
        undo(store->conn);
    if (status == HF_OK) {
        request->session = &store->session;
        atomic_fetch_add(&store->session.holds, (unsigned)request->count);
    }
    return status;
}

static hf_status borrowed_try(hf__backend *backend, hf__request *request, hf_error *err)
{
    borrowed *store = borrowed_of(backend);
    pg_arrays arrays = {0};
    bool shared = request->claims->mode == HF_SHARED;
    hf_status status = begin(store, request, &arrays, err);
    if (status == HF_OK)
        status = end(store, request, try_keys(store->conn, &arrays, shared, request, err), err);
    hf__pg_arrays_free(&arrays);
    return status;
}

static hf_status borrowed_wait(hf__backend *backend, hf__request *request, hf_error *err)
{
    borrowed *store = borrowed_of(backend);
    pg_arrays arrays = {0};
    struct timeouts timeouts;
    hf_error why = {0};
    bool shared = request->claims->mode == HF_SHARED, frozen = false;

    hf_status status = begin(store, request, &arrays, err);
    if (status != HF_OK)
        goto out;
    status = read_timeouts(store->conn, &timeouts, &frozen, &why);
    if (status == HF_OK)
        status = bound_wait(store->conn, request->deadline, &why);
    if (status == HF_OK)
        status = wait_keys(store->conn, &arrays, shared, request->cancel, &why);
    if (status == HF_OK)
        status = await_unleased(store->conn, &arrays, shared, frozen, request, &why);
    if (status == HF_OK)
        status = restore_timeouts(store->conn, &timeouts, &why);
    if (status == HF_NOT_ACQUIRED) {
        ; /* a lease is in the way: blocked says where */
    } else if (status != HF_OK && is_timeout(&why) && hf__is_cancelled(request->cancel)) {
        status = hf__interrupted(err);
    } else if (status != HF_OK && is_timeout(&why) && hf__left_ms(request->deadline) == 0) {
        status = HF_NOT_ACQUIRED;
        request->blocked = 0;
    } else if (status != HF_OK && err) {
        *err = why;
    }
    status = end(store, request, status, err);
    request->snapshot_stale = status == HF_OK && frozen;
out:
    hf__pg_arrays_free(&arrays);
    return status;
}

static hf_status borrowed_release(hf__session *session, const hf__claim *claims, size_t count,
                                  bool brief, hf_error *err)
{
    (void)session, (void)claims, (void)count, (void)brief, (void)err;
    return HF_OK; /* COMMIT or ROLLBACK releases it */
}

static hf_status borrowed_renew(hf__session *session, hf__request *request, hf_error *err)
{
    (void)session, (void)err;
    request->token = 0;
    return HF_OK;
}

static hf_status borrowed_contended(hf__backend *backend, const hf__claim *claim, bool *contended,
                                    hf_error *err)
{
    (void)backend, (void)claim, (void)err;
    *contended = false;
    return HF_OK;
}

/*
 * Does not use the records. The caller's role may have no right to read them, and we do not try
 * that inside the caller's transaction.
 */
static hf_status borrowed_holder(hf__backend *backend, const hf__claim *claim, hf__holder *holder,
                                 hf_error *err)
{
    PGresult *result = NULL;
    pg_lock_tag tag = hf__pg_lock_tag(claim);
    const char *params[] = {tag.classid, tag.objid, tag.objsubid,
                            claim->mode == HF_SHARED ? "t" : "f"};
    PGconn *conn = borrowed_of(backend)->conn;
    memset(holder, 0, sizeof *holder);
    hf_status status = ask(conn, "SAVEPOINT holdfast", 0, NULL, NULL, err);
    if (status != HF_OK)
        return status;
    status = ask(conn, pg_sql(&hf__sql_postgres_find_holder), 4, params, &result, err);
    if (status == HF_OK && PQntuples(result) > 0)
        hf__pg_read_holder(result, false, holder);
    PQclear(result);
    undo(conn);
    return status;
}

static hf_status unsupported(hf_error *err)
{
    return hf__fail(err, HF_INVALID, "a borrowed connection serves transaction locks only");
}

static hf_status borrowed_listen(hf__backend *backend, int64_t wake, const hf__request *request,
                                 uint64_t *ticket, hf_error *err)
{
    (void)backend, (void)wake, (void)request, (void)ticket;
    return unsupported(err);
}

static hf_status borrowed_await_wake(hf__backend *backend, int64_t wake, const hf_cancel *cancel,
                                     uint64_t *ticket, int ms, hf_error *err)
{
    (void)backend, (void)wake, (void)cancel, (void)ticket, (void)ms;
    return unsupported(err);
}

static void borrowed_unlisten(hf__backend *backend, int64_t wake)
{
    (void)backend, (void)wake;
}

static void borrowed_watch(hf__backend *backend, int ms)
{
    (void)backend, (void)ms;
}

/* Its one wait runs in the caller's thread, which looks at the handle itself. */
static void borrowed_interrupt(hf__backend *backend, bool all)
{
    (void)backend, (void)all;
}

static void borrowed_nothing(hf__backend *backend)
{
    (void)backend;
}

static void borrowed_note(hf__backend *backend, const hf__event *event)
{
    (void)backend, (void)event;
}

static hf_status borrowed_init(hf__backend *backend, int *from, int *to, hf_error *err)
{
    (void)backend, (void)from, (void)to;
    return unsupported(err);
}

static hf_status borrowed_schedule(hf__backend *backend, const char *label, int64_t period_ms,
                                   bool *due, int64_t *wait_ms, hf_error *err)
{
    (void)backend, (void)label, (void)period_ms, (void)due, (void)wait_ms;
    return unsupported(err);
}

static hf_status borrowed_list(hf__backend *backend, struct pg_conn *conn, hf__view_sink *sink,
                               hf_error *err)
{
    (void)backend, (void)conn, (void)sink;
    return unsupported(err);
}

static hf_status borrowed_list_past(hf__backend *backend, int64_t since_ms, hf__view_sink *sink,
                                    hf_error *err)
{
    (void)backend, (void)since_ms, (void)sink;
    return unsupported(err);
}

static hf_status borrowed_examine(hf__backend *backend, hf_finding_fn *report, void *arg,
                                  hf_error *err)
{
    (void)backend, (void)report, (void)arg;
    return unsupported(err);
}

static void borrowed_close(hf__backend *backend)
{
    borrowed *store = borrowed_of(backend);
    free(store->base.name);
    free(store);
}

static const hf__backend_ops borrowed_ops = {
    .close = borrowed_close,
    .forget = borrowed_nothing,
    .try_claims = borrowed_try,
    .wait_claims = borrowed_wait,
    .release_claims = borrowed_release,
    .renew_claims = borrowed_renew,
    .is_contended = borrowed_contended,
    .find_holder = borrowed_holder,
    .listen = borrowed_listen,
    .await_wake = borrowed_await_wake,
    .unlisten = borrowed_unlisten,
    .watch = borrowed_watch,
    .wake = borrowed_nothing,
    .interrupt = borrowed_interrupt,
    .note = borrowed_note,
    .init = borrowed_init,
    .claim_schedule = borrowed_schedule,
    .list = borrowed_list,
    .list_past = borrowed_list_past,
    .examine = borrowed_examine,
};

hf_status hf__postgres_borrow(struct pg_conn *conn, const hf_store_options *options,
                              hf__backend **backend, hf_error *err)
{
    if (!conn || PQstatus(conn) != CONNECTION_OK)
        return hf__fail(err, HF_INVALID, "the connection to borrow is not open");
    borrowed *store = calloc(1, sizeof *store);
    if (!store)
        return hf__no_memory(err);
    PQconninfoOption *info = PQconninfo(conn);
    store->base.ops = &borrowed_ops;
    store->base.name = hf__pg_name(info);
    store->base.borrowed = true;
    store->base.max_keys = options->max_keys > 0 ? options->max_keys : 1000;
    store->base.log = options->log;
    store->base.log_arg = options->log_arg;
    store->session.backend = &store->base;
    store->conn = conn;
    PQconninfoFree(info);
    if (!store->base.name) {
        free(store);
        return hf__no_memory(err);
    }
    *backend = &store->base;
    return HF_OK;
}
