/* One attempt of a serialised transaction: what it sends, how it waits for the answers, and what
 * they mean. */
#include "lib/postgres/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

enum {
    CANCEL_GRACE_MS = 5000,
    LOOK_AROUND_MS = 200,  /* how often a wait for the labels looks for an interrupt */
    SERVER_FIRST_MS = 200, /* the server's own timeout for the labels has this much of a start */
};

static pg_attempt *pg_attempt_of(hf__attempt *attempt)
{
    return (pg_attempt *)attempt;
}

static pg_backend *backend_of(const pg_attempt *attempt)
{
    return pg_backend_of(attempt->base.backend);
}

static hf_status interrupted(hf_error *err)
{
    return hf__fail(err, HF_INTERRUPTED, "the wait was interrupted");
}

/* ---- its answers ----------------------------------------------------------------------------- */

static hf__attempt_fault fault_of(const char *sqlstate, bool opening)
{
    if (strcmp(sqlstate, "40001") == 0 || strcmp(sqlstate, "40P01") == 0)
        return HF__FAULT_RETRY;
    if (strcmp(sqlstate, "55P03") == 0)
        return opening ? HF__FAULT_LOCKED : HF__FAULT_RETRY;
    return strcmp(sqlstate, "23505") == 0 ? HF__FAULT_UNIQUE : HF__FAULT_FINAL;
}

static hf_status keep_failure(pg_attempt *attempt, hf_status status, hf__attempt_fault fault,
                              hf_error *err)
{
    attempt->base.fault = fault;
    if (!attempt->failed && err) {
        attempt->failed = true;
        attempt->failure = *err;
        attempt->failure_fault = fault;
    }
    return status;
}

static hf_status broken(pg_attempt *attempt, const char *what, hf_error *err)
{
    hf__pg_session_fail(attempt->session, what);
    hf_status status = hf__fail(err, HF_UNREACHABLE, "%s", attempt->session->base.why.message);
    hf__pg_checkin(attempt->session);
    attempt->session = NULL;
    return keep_failure(attempt, status, HF__FAULT_BROKEN, err);
}

/* Asked of the server, because PQcancel waits for ever where the server hangs. Behind a pooler only
 * the pooler knows which server it is. */
static void cancel(pg_attempt *attempt)
{
    char pid[16], ignored_text[256];
    hf_error ignored;
    PGresult *result = NULL;
    if (backend_of(attempt)->pooled) {
        PGcancel *handle = PQgetCancel(attempt->session->conn);
        if (handle)
            (void)PQcancel(handle, ignored_text, sizeof ignored_text);
        PQfreeCancel(handle);
        return;
    }
    (void)snprintf(pid, sizeof pid, "%d", PQbackendPID(attempt->session->conn));
    const char *params[] = {pid};
    (void)!hf__pg_ask(backend_of(attempt), pg_sql(&hf__sql_postgres_cancel_backend), 1, params,
                      &result, &ignored);
    PQclear(result);
}

static bool is_interrupted(pg_backend *backend)
{
    pthread_mutex_lock(&backend->mutex);
    bool interrupted = backend->interrupted;
    pthread_mutex_unlock(&backend->mutex);
    return interrupted;
}

/* Until the labels are ours, an interrupt ends the wait; a statement that runs is left to run. */
static bool await_answer(pg_attempt *attempt, int64_t deadline, bool *timed_out)
{
    while (!attempt->open && !attempt->base.cancelled) {
        int64_t look = hf__deadline(LOOK_AROUND_MS);
        bool late = false;
        if (deadline <= look)
            break;
        if (hf__pg_await_result(attempt->session, look, &late))
            return true;
        if (!late)
            return false;
        attempt->interrupted = is_interrupted(backend_of(attempt));
        if (attempt->interrupted) {
            *timed_out = true;
            return false;
        }
    }
    return hf__pg_await_result(attempt->session, deadline, timed_out);
}

/* What goes out in one message, and what came back. */
struct exchange {
    pg_attempt *attempt;
    const hf__attempt_plan *plan;
    pg_message message;
    int64_t deadline; /* of the answers */
    bool commits;
    bool rolled_back; /* as COMMIT was answered */
    size_t released;
    PGresult *rows;
};

/* Past the deadline the statement is cancelled, and its answer gets a while longer. */
static bool wait_or_cancel(void *arg)
{
    struct exchange *exchange = arg;
    pg_attempt *attempt = exchange->attempt;
    bool timed_out = false;
    if (await_answer(attempt, exchange->deadline, &timed_out))
        return true;
    if (!timed_out || attempt->base.cancelled)
        return false;
    attempt->base.cancelled = true;
    cancel(attempt);
    exchange->deadline = hf__deadline(CANCEL_GRACE_MS);
    return await_answer(attempt, exchange->deadline, &timed_out);
}

static void read_beginning(pg_attempt *attempt, const PGresult *result)
{
    (void)snprintf(attempt->backend_pid, sizeof attempt->backend_pid, "%s",
                   hf__pg_text(result, 0, 0));
    (void)snprintf(attempt->xid, sizeof attempt->xid, "%s", hf__pg_text(result, 0, 1));
    attempt->open = true;
    attempt->base.locked_ms = hf__now_ms();
}

static hf_status not_really_committed(hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_DATABASE, "COMMIT was answered with ROLLBACK: a statement had failed");
    hf__hint(err, "return the failure of a statement from the callback");
    return status;
}

/* After a failure from PG_KEPT on session locks may be left, and must not. */
static void clean_session(pg_attempt *attempt, const hf__attempt_plan *plan)
{
    hf_error ignored;
    int64_t deadline = hf__deadline(backend_of(attempt)->ping_deadline_ms);
    if (hf__pg_script(attempt->session, "ROLLBACK AND CHAIN", deadline, NULL, &ignored) == HF_OK) {
        hf__pg_undo(attempt->session, plan->claims, plan->count);
        if (!atomic_load(&attempt->session->base.lost) &&
            hf__pg_script(attempt->session, "COMMIT", deadline, NULL, &ignored) == HF_OK)
            return;
    }
    if (!atomic_load(&attempt->session->base.lost))
        hf__pg_session_fail(attempt->session, "it could not be cleaned up after an error");
}

static void take_answer(void *arg, pg_tag tag, PGresult *answer)
{
    struct exchange *exchange = arg;
    bool has_rows = PQresultStatus(answer) == PGRES_TUPLES_OK;
    if (tag == PG_QUERY) {
        exchange->rows = answer;
        return;
    }
    if (tag == PG_BEGUN && has_rows)
        read_beginning(exchange->attempt, answer);
    else if (tag == PG_COMMITTED)
        exchange->rolled_back = strcmp(PQcmdStatus(answer), "COMMIT") != 0;
    else if (tag == PG_RELEASED && has_rows)
        exchange->released += hf__pg_bool(answer, 0, 0);
    PQclear(answer);
}

static hf_status deadline_passed(hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_EXHAUSTED, "the transaction's deadline passed while a statement ran");
    hf__hint(err, "it was rolled back; allow more time or do less in it");
    return status;
}

/* A message that failed before its COMMIT, or in it: the transaction has not happened. */
static hf_status judge_failure(struct exchange *exchange, hf_error *err)
{
    pg_attempt *attempt = exchange->attempt;
    pg_message *message = &exchange->message;
    hf_error *failure = &message->failure;
    bool opening = message->failed_at <= PG_BEGUN;
    if (message->failed_at != PG_QUERY)
        failure->position = 0; /* about another statement than the caller's */
    if (opening && exchange->plan->count > 0 && message->failed_at >= PG_KEPT)
        clean_session(attempt, exchange->plan);
    if (exchange->commits && strcmp(failure->sqlstate, "25P02") == 0)
        message->status = not_really_committed(failure);
    hf__attempt_fault fault = fault_of(failure->sqlstate, opening);
    hf_status status = message->status;
    bool late =
        opening && hf__left_ms(exchange->plan->deadline) == 0; /* or statement_timeout for a set */
    if ((late || attempt->base.cancelled) && strcmp(failure->sqlstate, "57014") == 0) {
        status = attempt->interrupted ? interrupted(failure)
                 : opening            ? HF_NOT_ACQUIRED
                                      : deadline_passed(failure);
        fault = opening && !attempt->interrupted ? HF__FAULT_LOCKED : HF__FAULT_FINAL;
    }
    *err = *failure;
    return keep_failure(attempt, status, fault, failure);
}

static hf_status judge(struct exchange *exchange, hf_error *err)
{
    pg_attempt *attempt = exchange->attempt;
    const hf__attempt_plan *plan = exchange->plan;
    if (exchange->message.status != HF_OK && exchange->message.failed_at <= PG_COMMITTED)
        return judge_failure(exchange, err);
    if (exchange->rolled_back)
        return keep_failure(attempt, not_really_committed(err), HF__FAULT_FINAL, err);
    attempt->committed = exchange->commits;
    if (attempt->committed && attempt->session->purpose == PG_FOR_LOCKS)
        attempt->session->is_callers = true;
    attempt->base.released = plan->release_count > 0 && exchange->released == plan->release_count;
    return HF_OK;
}

/* The server's own timeout for the labels goes first, if it can. */
static int64_t patience(const pg_attempt *attempt, const hf__attempt_plan *plan)
{
    bool waits = !attempt->open && plan->count > 0 && plan->deadline != HF__FOREVER;
    return plan->deadline + (waits ? SERVER_FIRST_MS : 0);
}

/* The caller's statement, if there is one. */
struct statement {
    const char *sql;
    size_t count;
    const hf_value *values;
    bool binary_rows;
};

static hf_status compose(struct exchange *exchange, const struct statement *statement,
                         hf_error *err)
{
    pg_attempt *attempt = exchange->attempt;
    pg_message *message = &exchange->message;
    hf__pg_message_start(message, attempt->session);
    hf_status status = attempt->open ? HF_OK : hf__pg_step_opening(message, exchange->plan, err);
    if (status != HF_OK) {
        (void)PQexitPipelineMode(attempt->session->conn);
        return status;
    }
    attempt->base.started = true;
    hf__pg_step_queue(message, attempt);
    if (statement)
        hf__pg_step_values(message, PG_QUERY, statement->sql, statement->count, statement->values,
                           statement->binary_rows);
    if (exchange->commits)
        hf__pg_step_commit(message, attempt, exchange->plan);
    return HF_OK;
}

/* Sends what is due in one message: opening, queue, the statement, COMMIT. The caller clears
 * *rows. */
static hf_status exchange_message(pg_attempt *attempt, const hf__attempt_plan *plan,
                                  const struct statement *statement, bool commits, PGresult **rows,
                                  hf_error *err)
{
    struct exchange exchange = {
        .attempt = attempt, .plan = plan, .deadline = patience(attempt, plan), .commits = commits};
    const pg_reader reader = {wait_or_cancel, take_answer, &exchange};
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;

    hf_status status = compose(&exchange, statement, where);
    if (status != HF_OK)
        status = keep_failure(attempt, status, HF__FAULT_FINAL, where);
    else if (!hf__pg_message_send(&exchange.message, plan->deadline) ||
             !hf__pg_message_read(&exchange.message, &reader))
        status = broken(attempt, NULL, where);
    else
        status = judge(&exchange, where);
    hf__pg_message_free(&exchange.message);
    if (status == HF_OK && rows)
        *rows = exchange.rows;
    else
        PQclear(exchange.rows);
    return status;
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool make_marker(pg_attempt *attempt)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(attempt->marker + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static hf_status attempt_open(hf__backend *base, const hf__attempt_plan *plan, hf__attempt **out,
                              hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    pg_attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        return hf__no_memory(err);
    attempt->base.backend = base;
    hf_status status = plan->session
                           ? hf__pg_tx_checkout_held(plan->session, &attempt->session, err)
                           : hf__pg_tx_checkout(backend, plan->deadline, &attempt->session, err);
    if (status == HF_OK) {
        attempt->marked = !plan->read_only && backend->schema == HF_SCHEMA_VERSION &&
                          backend->schema_usable && backend->records_wanted != HF_RECORDS_OFF;
        (void)snprintf(attempt->generation, sizeof attempt->generation, "%s",
                       attempt->session->generation);
        (void)snprintf(attempt->backend_pid, sizeof attempt->backend_pid, "%s",
                       attempt->session->backend_pid);
        (void)snprintf(attempt->backend_start, sizeof attempt->backend_start, "%s",
                       attempt->session->backend_start);
        if (attempt->marked && !make_marker(attempt))
            attempt->marked = false;
        *out = &attempt->base;
    } else {
        free(attempt);
    }
    return status;
}

static hf_status refuse_if_failed(pg_attempt *attempt, hf_error *err)
{
    if (!attempt->failed)
        return HF_OK;
    if (err)
        *err = attempt->failure;
    attempt->base.fault = attempt->failure_fault;
    return attempt->failure.code;
}

static hf_status attempt_query(hf__attempt *base, const hf__attempt_plan *plan, const char *sql,
                               size_t count, const hf_value *values, bool binary_rows,
                               hf_rows **rows, hf_error *err)
{
    pg_attempt *attempt = pg_attempt_of(base);
    const struct statement statement = {sql, count, values, binary_rows};
    PGresult *result = NULL;
    hf_status status = refuse_if_failed(attempt, err);
    if (status == HF_OK)
        status = exchange_message(attempt, plan, &statement, false, rows ? &result : NULL, err);
    if (status == HF_OK && rows)
        status = hf__pg_rows(result, rows, err);
    return status;
}

/* The values' bytes follow the array of them, so that one free will do. */
static hf_value *copy_values(size_t count, const hf_value *values)
{
    size_t total = count * sizeof *values + 1;
    for (size_t i = 0; i < count; i++)
        if (values[i].data)
            total += values[i].binary ? values[i].size : strlen(values[i].data) + 1;
    hf_value *copies = malloc(total);
    char *at = copies ? (char *)(copies + count) : NULL;
    for (size_t i = 0; copies && i < count; i++) {
        copies[i] = values[i];
        if (!values[i].data)
            continue;
        size_t size = values[i].binary ? values[i].size : strlen(values[i].data) + 1;
        memcpy(at, values[i].data, size);
        copies[i].data = at;
        at += size;
    }
    return copies;
}

static hf_status attempt_queue(hf__attempt *base, const char *sql, size_t count,
                               const hf_value *values, hf_error *err)
{
    pg_attempt *attempt = pg_attempt_of(base);
    hf_status status = refuse_if_failed(attempt, err);
    if (status != HF_OK)
        return status;
    pg_queued *queued = calloc(1, sizeof *queued);
    if (queued) {
        queued->sql = strdup(sql);
        queued->count = count;
        queued->values = copy_values(count, values);
    }
    if (!queued || !queued->sql || !queued->values) {
        if (queued) {
            free(queued->sql);
            free(queued->values);
        }
        free(queued);
        return hf__no_memory(err);
    }
    if (attempt->last)
        attempt->last->next = queued;
    else
        attempt->first = queued;
    attempt->last = queued;
    return HF_OK;
}

static struct pg_conn *attempt_connection(hf__attempt *base, const hf__attempt_plan *plan,
                                          hf_error *err)
{
    pg_attempt *attempt = pg_attempt_of(base);
    hf_status status = refuse_if_failed(attempt, err);
    if (status == HF_OK && (!attempt->open || attempt->first))
        status = exchange_message(attempt, plan, NULL, false, NULL, err);
    if (status != HF_OK)
        return NULL;
    (void)PQsetnonblocking(attempt->session->conn, 0);
    return attempt->session->conn;
}

static bool attempt_is_broken(hf__attempt *base)
{
    pg_attempt *attempt = pg_attempt_of(base);
    hf_error ignored;
    if (attempt->session && PQstatus(attempt->session->conn) != CONNECTION_OK)
        (void)!broken(attempt, NULL, &ignored);
    return !attempt->session;
}

/* To find out what became of a lost COMMIT, it must be known beforehand what to look for: the
 * marker, and the backend that may still write it. Without them it is the transaction's id, which
 * takes a trip more. */
static bool can_commit_at_once(const pg_attempt *attempt, const hf__attempt_plan *plan)
{
    return plan->read_only || (plan->count == 0 && attempt->marked && attempt->backend_start[0] &&
                               !backend_of(attempt)->pooled);
}

static hf_status attempt_commit(hf__attempt *base, const hf__attempt_plan *plan, hf_error *err)
{
    pg_attempt *attempt = pg_attempt_of(base);
    hf_status status = refuse_if_failed(attempt, err);
    if (status == HF_OK && !attempt->open && !attempt->first) {
        attempt->committed = true; /* nothing was done */
        return HF_OK;
    }
    if (status == HF_OK && PQstatus(attempt->session->conn) != CONNECTION_OK)
        return broken(attempt, NULL, err);
    if (status == HF_OK)
        (void)PQsetnonblocking(attempt->session->conn, 1);
    if (status == HF_OK && !attempt->open && !can_commit_at_once(attempt, plan))
        status = exchange_message(attempt, plan, NULL, false, NULL, err);
    if (status == HF_OK)
        status = exchange_message(attempt, plan, NULL, true, NULL, err);
    return status;
}

/* A cancel may hit ROLLBACK itself: whoever got the session next would find it in a failed
 * transaction. */
static void roll_back(pg_attempt *attempt)
{
    enum { TRIES = 5 };
    hf_error ignored;
    pg_session *session = attempt->session;
    for (int i = 0; i < TRIES && !atomic_load(&session->base.lost); i++) {
        if (PQtransactionStatus(session->conn) == PQTRANS_IDLE)
            return;
        (void)!hf__pg_script(session, "ROLLBACK",
                             hf__deadline(backend_of(attempt)->ping_deadline_ms), NULL, &ignored);
    }
    if (!atomic_load(&session->base.lost) && PQtransactionStatus(session->conn) != PQTRANS_IDLE)
        hf__pg_session_fail(session, "its transaction could not be rolled back");
}

static void attempt_close(hf__attempt *base)
{
    pg_attempt *attempt = pg_attempt_of(base);
    hf__pg_drop_queue(attempt);
    if (attempt->session) {
        if (!atomic_load(&attempt->session->base.lost)) {
            (void)PQsetnonblocking(attempt->session->conn, 1);
            roll_back(attempt);
        }
        if (attempt->base.cancelled && !atomic_load(&attempt->session->base.lost))
            hf__pg_session_fail(attempt->session,
                                "a cancel under way would hit the next transaction");
        atomic_store(&attempt->session->used_ms, hf__now_ms());
        hf__pg_checkin(attempt->session);
    }
    free(attempt);
}

const hf__attempt_ops hf__pg_attempt_ops = {
    .locks_labels = true,
    .open = attempt_open,
    .query = attempt_query,
    .queue = attempt_queue,
    .connection = attempt_connection,
    .commit = attempt_commit,
    .is_broken = attempt_is_broken,
    .outcome = hf__pg_attempt_outcome,
    .close = attempt_close,
};
