/*
 * One exchange of an attempt with the server: the message that is due, how its answers are waited
 * for, and what they mean.
 */
#include "lib/postgres/transactions/exchange.h"

#include <libpq-events.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum {
    CANCEL_MS = PG_BEYOND_MS / 2, /* to ask for it: the whole server may be silent */
    SERVER_FIRST_MS = 200, /* the server's own timeout for the labels has this much of a start */
};

static pg_backend *backend_of(const pg_attempt *attempt)
{
    return pg_backend_of(attempt->base.backend);
}

/* ---- failures ----------------------------------------------------------------------------- */

static hf__attempt_fault fault_of(const char *sqlstate, bool opening)
{
    /* Class 40 is a rollback for reasons that pass, but for a constraint that was broken; class 08
     * is about a connection of the server's own, to a foreign one. */
    if ((strncmp(sqlstate, "40", 2) == 0 && strcmp(sqlstate, "40002") != 0) ||
        strncmp(sqlstate, "08", 2) == 0)
        return HF__FAULT_RETRY;
    if (opening && strcmp(sqlstate, PG_SQLSTATE_LEASED) == 0)
        return HF__FAULT_LEASED;
    if (strcmp(sqlstate, "55P03") == 0)
        return opening ? HF__FAULT_LOCKED : HF__FAULT_RETRY;
    return strcmp(sqlstate, "23505") == 0 ? HF__FAULT_UNIQUE : HF__FAULT_FINAL;
}

hf_status hf__pg_attempt_failed(pg_attempt *attempt, hf_status status, hf__attempt_fault fault,
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

hf_status hf__pg_attempt_broke(pg_attempt *attempt, const char *what, hf_error *err)
{
    hf__pg_session_fail(attempt->session, what);
    hf_status status = hf__fail(err, HF_UNREACHABLE, "%s", attempt->session->base.why.message);
    hf__pg_checkin(attempt->session);
    attempt->session = NULL;
    return hf__pg_attempt_failed(attempt, status, HF__FAULT_BROKEN, err);
}

/* Asked of the server, because PQcancel waits for ever where the server hangs. Behind a pooler only
 * the pooler knows which server it is. */
static void cancel(pg_attempt *attempt)
{
    hf_error ignored;
    PGresult *result = NULL;
    if (backend_of(attempt)->pooled) {
        hf__pg_cancel_aside(PQgetCancel(attempt->session->conn), hf__deadline(CANCEL_MS));
        return;
    }
    const char *params[] = {attempt->session->backend_pid, attempt->session->backend_start};
    const pg_patience brief = {.until = hf__deadline(CANCEL_MS)};
    (void)!hf__pg_ask_for(backend_of(attempt), &brief, pg_sql(&hf__sql_postgres_cancel_backend), 2,
                          params, &result, &ignored);
    PQclear(result);
}

/* What goes out in one message, and what came back. */
struct exchange {
    pg_attempt *attempt;
    const hf__attempt_plan *plan; /* NULL: it only tidies up */
    pg_message message;
    int64_t deadline; /* of the answers */
    pg_patience patience;
    pg_vigil vigil;
    bool is_over; /* the time, or the caller's patience */
    bool commits;
    bool rolled_back; /* as COMMIT was answered */
    size_t released;
    PGresult *rows;
};

/*
 * An interrupt ends the wait for the labels; a statement that runs is left to run. The caller's own
 * handle ends both.
 */
static bool await_answer(struct exchange *exchange, bool *timed_out)
{
    pg_session *session = exchange->attempt->session;
    exchange->patience.interruptible = exchange->plan && !exchange->is_over &&
                                       !exchange->attempt->open && !exchange->attempt->commit_sent;
    bool is_answered = hf__pg_await_result(session, exchange->deadline, timed_out);
    exchange->attempt->interrupted = exchange->attempt->interrupted || session->impatient;
    session->impatient = false;
    return is_answered;
}

/*
 * Past the deadline the statement is cancelled, and its answer gets a moment longer. COMMIT gets
 * that, too, but is never cancelled: one that is cancelled while it waits for a standby is
 * committed here, and may be lost there.
 */
static bool wait_or_cancel(void *arg)
{
    struct exchange *exchange = arg;
    pg_attempt *attempt = exchange->attempt;
    bool timed_out = false;
    if (await_answer(exchange, &timed_out))
        return true;
    if (!timed_out || exchange->is_over || attempt->base.cancelled)
        return false;
    exchange->is_over = true;
    exchange->patience.cancel = NULL;
    exchange->deadline = hf__deadline(PG_BEYOND_MS);
    if (!attempt->commit_sent) {
        attempt->base.cancelled = true;
        cancel(attempt);
    }
    return await_answer(exchange, &timed_out);
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
    hf__hint(err, "return the failure of a statement, or pass it to hf_tx_end");
    return status;
}

/* The callback did what only hf_transact may do, so its transaction cannot be answered for. */
static hf_status ended_by_callback(pg_attempt *attempt, hf_error *err)
{
    hf_status status = hf__fail(err, HF_INVALID, "a statement ended the transaction itself");
    hf__hint(err, "what was done until then is as that command left it; leave BEGIN, COMMIT, "
                  "ROLLBACK and PREPARE TRANSACTION to the library");
    return hf__pg_attempt_failed(attempt, status, HF__FAULT_FINAL, err);
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
    if (tag == PG_PREPARED)
        exchange->attempt->session->prepared++;
    else if (tag == PG_BEGUN && has_rows)
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

/* The schema was dropped, or the role lost its right to it: go on without markers. */
static bool is_without_marker(const char *sqlstate)
{
    return strcmp(sqlstate, "42P01") == 0 || strcmp(sqlstate, "3F000") == 0 ||
           strcmp(sqlstate, "42501") == 0;
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
    if (message->failed_at == PG_SAME && strcmp(failure->sqlstate, "22012") == 0)
        return ended_by_callback(attempt, err);
    if (exchange->commits && strcmp(failure->sqlstate, "25P02") == 0)
        message->status = not_really_committed(failure);
    if (message->failed_at == PG_MARKED && is_without_marker(failure->sqlstate)) {
        atomic_store(&backend_of(attempt)->schema_usable, false);
        *err = *failure;
        return hf__pg_attempt_failed(attempt, message->status, HF__FAULT_RETRY, failure);
    }
    hf__attempt_fault fault =
        hf__pg_known_is_at_fault(message) ? HF__FAULT_RETRY : fault_of(failure->sqlstate, opening);
    hf_status status = message->status;
    bool late = (opening || exchange->commits) &&
                hf__left_ms(exchange->plan->deadline) == 0; /* the server's own timeout */
    if ((late || attempt->base.cancelled) && strcmp(failure->sqlstate, "57014") == 0) {
        bool waited = opening && exchange->plan->count > 0; /* for a label */
        status = attempt->interrupted ? hf__interrupted(failure)
                 : waited             ? HF_NOT_ACQUIRED
                                      : deadline_passed(failure);
        fault = waited && !attempt->interrupted ? HF__FAULT_LOCKED : HF__FAULT_FINAL;
    }
    *err = *failure;
    return hf__pg_attempt_failed(attempt, status, fault, failure);
}

static void was_reset(pg_attempt *attempt)
{
    pg_session *session = attempt->session;
    attempt->altered = false;
    memset(session->uses, 0, sizeof session->uses);
    memset(session->asked, 0, sizeof session->asked);
    session->is_callers = false;
    hf__pg_known_forget(session);
    session->prepared = 0;
}

/* COMMIT was answered, but somebody cancelled its wait for the standby. */
static hf_status not_replicated(const pg_attempt *attempt, hf_error *err)
{
    hf_status status = hf__fail(
        err, HF_IN_DOUBT, "transaction %s is committed on this server, but not on its standby",
        attempt->xid[0] ? attempt->xid : "(id unknown)");
    hf__hint(err, "the wait for synchronous replication was cancelled: a failover may lose it");
    return status;
}

static hf_status judge(struct exchange *exchange, hf_error *err)
{
    pg_attempt *attempt = exchange->attempt;
    const hf__attempt_plan *plan = exchange->plan;
    if (exchange->message.status != HF_OK && exchange->message.failed_at <= PG_COMMITTED)
        return judge_failure(exchange, err);
    if (exchange->rolled_back)
        return hf__pg_attempt_failed(attempt, not_really_committed(err), HF__FAULT_FINAL, err);
    if (!exchange->commits)
        return PQtransactionStatus(attempt->session->conn) == PQTRANS_INTRANS
                   ? HF_OK
                   : ended_by_callback(attempt, err);
    attempt->committed = true;
    attempt->base.released = plan->release_count > 0 && exchange->released == plan->release_count;
    if (attempt->session->purpose == PG_FOR_LOCKS)
        attempt->session->is_callers = true;
    if (attempt->altered && exchange->message.status == HF_OK)
        was_reset(attempt);
    return attempt->session->unreplicated
               ? hf__pg_attempt_failed(attempt, not_replicated(attempt, err), HF__FAULT_FINAL, err)
               : HF_OK;
}

/* The server's own timeout for the labels goes first, if it can. */
static int64_t patience(const pg_attempt *attempt, const hf__attempt_plan *plan)
{
    bool waits = !attempt->open && plan->count > 0 && plan->deadline != HF__FOREVER;
    return plan->deadline + (waits ? SERVER_FIRST_MS : 0);
}

static hf_status compose(struct exchange *exchange, const pg_statement *statement, hf_error *err)
{
    pg_attempt *attempt = exchange->attempt;
    pg_message *message = &exchange->message;
    hf__pg_message_start(message, attempt->session);
    hf_status status =
        attempt->open ? HF_OK : hf__pg_step_opening(message, attempt, exchange->plan, err);
    if (status != HF_OK) {
        (void)PQexitPipelineMode(attempt->session->conn);
        return status;
    }
    attempt->base.started = true;
    attempt->session->unreplicated = false;
    if (exchange->commits && attempt->first)
        hf__pg_step_bound(message, exchange->plan);
    hf__pg_step_queue(message, attempt, exchange->plan);
    if (statement)
        hf__pg_step_statement(message, exchange->plan, PG_QUERY, statement);
    if (exchange->commits)
        hf__pg_step_commit(message, attempt, exchange->plan);
    return HF_OK;
}

/* Is the connection that the callback had as it was lent? */
static hf_status check_lent(pg_attempt *attempt, hf_error *err)
{
    if (!attempt->lent)
        return HF_OK;
    if (attempt->session->ended_by_lent)
        return ended_by_callback(attempt, err);
    switch (PQtransactionStatus(attempt->session->conn)) {
    case PQTRANS_INTRANS:
    case PQTRANS_INERROR: return HF_OK;
    case PQTRANS_IDLE: return ended_by_callback(attempt, err);
    case PQTRANS_ACTIVE:
        (void)!hf__fail(err, HF_INVALID, "a statement was left unfinished on the connection");
        hf__hint(err, "take all results of a statement, and end a COPY, before you go on");
        return hf__pg_attempt_failed(attempt, HF_INVALID, HF__FAULT_FINAL, err);
    case PQTRANS_UNKNOWN: break;
    }
    return hf__pg_attempt_broke(attempt, NULL, err);
}

/* False: the connection is broken. */
static bool converse(struct exchange *exchange, int64_t deadline)
{
    const pg_reader reader = {wait_or_cancel, take_answer, exchange};
    pg_session *session = exchange->attempt->session;
    exchange->vigil.heard = hf__now_ms();
    exchange->patience = (pg_patience){.until = HF__FOREVER,
                                       .cancel = exchange->plan ? exchange->plan->cancel : NULL,
                                       .vigil = &exchange->vigil};
    session->patience = &exchange->patience;
    bool is_whole = hf__pg_message_send(&exchange->message, deadline) &&
                    hf__pg_message_read(&exchange->message, &reader);
    exchange->is_over = exchange->is_over || session->impatient;
    session->patience = NULL;
    session->impatient = false;
    hf__pg_known_settle(&exchange->message);
    hf__pg_vigil_end(&exchange->vigil);
    return is_whole;
}

static const char *why_broken(const struct exchange *exchange)
{
    return exchange->vigil.is_lost ? "no answer, and the server does not answer for it"
           : exchange->is_over     ? "no answer in time"
                                   : NULL;
}

/* Sends what is due in one message: opening, queue, the statement, COMMIT. The caller clears
 * *rows. */
hf_status hf__pg_exchange(pg_attempt *attempt, const hf__attempt_plan *plan,
                          const pg_statement *statement, bool commits, PGresult **rows,
                          hf_error *err)
{
    struct exchange exchange = {
        .attempt = attempt, .plan = plan, .deadline = patience(attempt, plan), .commits = commits};
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;

    hf_status status = check_lent(attempt, where);
    if (status == HF_OK && commits && hf__left_ms(plan->deadline) == 0)
        status = hf__pg_attempt_failed(attempt, deadline_passed(where), HF__FAULT_FINAL, where);
    if (status != HF_OK)
        return status;
    status = compose(&exchange, statement, where);
    if (status != HF_OK)
        status = hf__pg_attempt_failed(attempt, status, HF__FAULT_FINAL, where);
    else if (!converse(&exchange, plan->deadline))
        status = hf__pg_attempt_broke(attempt, why_broken(&exchange), where);
    else
        status = judge(&exchange, where);
    hf__pg_message_free(&exchange.message);
    if (status == HF_OK && rows)
        *rows = exchange.rows;
    else
        PQclear(exchange.rows);
    return status;
}

/* ---- besides the statements ------------------------------------------------------------------ */

/*
 * Whatever the callback does on the connection, libpq shows us its results. A COMMIT there could be
 * followed by a failure that is tried again, and what it committed would be done twice. A ROLLBACK
 * is looked for with hf__pg_step_same; it may be one to a savepoint.
 */
static int look_at_result(PGEventId event, void *info, void *arg)
{
    static const char *const ends[] = {"COMMIT", "PREPARE TRANSACTION", "BEGIN",
                                       "START TRANSACTION"};
    pg_session *session = arg;
    if (event != PGEVT_RESULTCREATE)
        return 1;
    const char *tag = PQcmdStatus(((PGEventResultCreate *)info)->result);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        session->ended_by_lent = session->ended_by_lent || strcmp(tag, ends[i]) == 0;
    return 1;
}

bool hf__pg_attempt_lend(pg_attempt *attempt)
{
    pg_session *session = attempt->session;
    if (!session->listens_to_lent)
        session->listens_to_lent =
            PQregisterEventProc(session->conn, look_at_result, "holdfast", session) != 0;
    if (!attempt->lent)
        session->ended_by_lent = false;
    attempt->lent = attempt->altered = true;
    return session->listens_to_lent;
}

hf_status hf__pg_attempt_inspect(hf__attempt *base, hf_error *err)
{
    pg_attempt *attempt = (pg_attempt *)base;
    struct exchange exchange = {.attempt = attempt,
                                .deadline = hf__deadline(backend_of(attempt)->ping_deadline_ms)};
    if (!attempt->session)
        return HF_UNREACHABLE;
    hf_status status = check_lent(attempt, err);
    if (status == HF_OK && PQstatus(attempt->session->conn) != CONNECTION_OK)
        status = hf__pg_attempt_broke(attempt, NULL, err);
    if (status != HF_OK || !attempt->lent ||
        PQtransactionStatus(attempt->session->conn) != PQTRANS_INTRANS)
        return status;
    (void)PQsetnonblocking(attempt->session->conn, 1);
    hf__pg_message_start(&exchange.message, attempt->session);
    hf__pg_step_same(&exchange.message, attempt);
    if (!converse(&exchange, exchange.deadline))
        status = hf__pg_attempt_broke(attempt, NULL, err);
    else if (exchange.message.status != HF_OK)
        status = ended_by_callback(attempt, err);
    hf__pg_message_free(&exchange.message);
    return status;
}

void hf__pg_attempt_reset(pg_attempt *attempt)
{
    struct exchange exchange = {.attempt = attempt,
                                .deadline = hf__deadline(backend_of(attempt)->ping_deadline_ms)};
    attempt->base.cancelled = true; /* nothing of this is cancelled */
    hf__pg_message_start(&exchange.message, attempt->session);
    hf__pg_step_reset(&exchange.message);
    if (converse(&exchange, exchange.deadline) && exchange.message.status == HF_OK)
        was_reset(attempt);
    else if (!atomic_load(&attempt->session->base.lost))
        hf__pg_session_fail(attempt->session, "what was left in it could not be cleared away");
    hf__pg_message_free(&exchange.message);
}
