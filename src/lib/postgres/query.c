/*
 * Sending statements. Each has a deadline. A session that does not answer in time is lost, with all
 * that is held on it.
 */
#include "lib/postgres/postgres.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Preparing costs a round trip, which does not pay for a command that locks only once. */
enum { PREPARE_AT_USE = 3 };

struct statement_text {
    const char *name;
    const char *sql;
};

static struct statement_text text_of(const hf__sql *statement)
{
    return (struct statement_text){statement->name, pg_sql(statement)};
}

static hf_status lost_here(pg_session *session, hf_error *err)
{
    hf_status status = hf__fail(err, HF_UNREACHABLE, "%s", session->base.why.message);
    if (err)
        memcpy(err->sqlstate, session->base.why.sqlstate, sizeof err->sqlstate);
    hf__hint(err, "%s", session->base.why.hint);
    return status;
}

static hf_status give_up(pg_session *session, const char *what, hf_error *err)
{
    hf__pg_session_fail(session, what);
    return lost_here(session, err);
}

/* The caller leaves; whoever uses the session next, or the watcher, takes the answer in. */
static hf_status abandon(pg_session *session, int64_t deadline, hf_error *err)
{
    session->answer_due = deadline;
    session->impatient = false;
    return hf__pg_patience_check(pg_backend_of(session->base.backend), session->patience, err);
}

/*
 * 0: the deadline has passed or, with session->impatient, the caller's patience is over. -1: the
 * connection is broken, or nobody answers for it.
 */
static int wait_for_socket(pg_session *session, short events, int64_t deadline)
{
    const pg_backend *backend = (const pg_backend *)session->base.backend;
    const pg_patience *patience = session->patience;
    pg_vigil *vigil = patience ? patience->vigil : NULL;
    int64_t until = patience && patience->until < deadline ? patience->until : deadline;
    struct pollfd pollfds[3] = {{.fd = PQsocket(session->conn), .events = events}};
    nfds_t count = 1; /* each that is polled costs the kernel a look */
    if (patience && patience->interruptible)
        pollfds[count++] = (struct pollfd){.fd = backend->interrupt_fd, .events = POLLIN};
    if (patience && patience->cancel)
        pollfds[count++] = (struct pollfd){.fd = hf__cancel_fd(patience->cancel), .events = POLLIN};
    for (;;) {
        int64_t look = vigil ? hf__pg_vigil_next(session, vigil) : HF__FOREVER;
        int ready = hf__poll(pollfds, count, hf__left_ms(look < until ? look : until));
        if (ready == -1 && errno == EINTR)
            continue;
        if (ready > 0 && pollfds[0].revents) {
            if (vigil)
                vigil->heard = hf__now_ms();
            return 1;
        }
        if (vigil && ready == 0 && look < until) {
            if (!hf__pg_vigil_look(session, vigil))
                return -1;
            continue;
        }
        session->impatient = ready > 0 || (ready == 0 && until < deadline);
        return ready < 0 ? -1 : 0;
    }
}

bool hf__pg_flush(pg_session *session, int64_t deadline)
{
    for (;;) {
        int pending = PQflush(session->conn);
        if (pending <= 0)
            return pending == 0;
        if (wait_for_socket(session, POLLIN | POLLOUT, deadline) <= 0)
            return false;
        if (!PQconsumeInput(session->conn))
            return false;
    }
}

bool hf__pg_await_result(pg_session *session, int64_t deadline, bool *timed_out)
{
    while (PQisBusy(session->conn)) {
        int ready = wait_for_socket(session, POLLIN, deadline);
        if (ready == 0) {
            *timed_out = true;
            return false;
        }
        if (ready < 0 || !PQconsumeInput(session->conn))
            return false;
    }
    return PQstatus(session->conn) == CONNECTION_OK;
}

bool hf__pg_is_error(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE ||
           status == PGRES_NONFATAL_ERROR;
}

/* Reads all results of the message. *kept is the first error, else the last result with rows. */
static hf_status collect(pg_session *session, int64_t deadline, PGresult **kept, hf_error *err)
{
    bool timed_out = false;
    *kept = NULL;
    for (;;) {
        if (!hf__pg_await_result(session, deadline, &timed_out)) {
            PQclear(*kept);
            *kept = NULL;
            if (session->impatient)
                return abandon(session, deadline, err);
            return give_up(session, timed_out ? "no answer within the deadline" : NULL, err);
        }
        PGresult *next = hf__pg_next_result(session);
        if (!next)
            break;
        bool better =
            !*kept || (!hf__pg_is_error(*kept) && (hf__pg_is_error(next) || PQntuples(next) > 0));
        PGresult *worse = better ? *kept : next;
        if (better)
            *kept = next;
        PQclear(worse);
    }
    if (PQstatus(session->conn) != CONNECTION_OK) {
        PQclear(*kept);
        *kept = NULL;
        return give_up(session, NULL, err);
    }
    atomic_store(&session->used_ms, hf__now_ms());
    return HF_OK;
}

/* ---- answers that are owed, and errands ------------------------------------------------------ */

void hf__pg_errand(pg_session *session, const char *sql)
{
    hf__buf_printf(&session->errands, "%s%s", session->errands.length ? "; " : "", sql);
}

/* An errand that is forgotten would leave something locked. */
static bool take_errands(pg_session *session, hf__buf *errands)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    pthread_mutex_lock(&backend->mutex);
    *errands = session->errands;
    session->errands = (hf__buf){0};
    pthread_mutex_unlock(&backend->mutex);
    return errands->length > 0 || errands->broken;
}

bool hf__pg_send_errands(pg_session *session)
{
    const pg_backend *backend = (const pg_backend *)session->base.backend;
    hf__buf errands = {0};
    if (!take_errands(session, &errands))
        return false;
    if (errands.broken)
        hf__pg_session_fail(session, "out of memory");
    else if (!PQsendQuery(session->conn, errands.data) || PQflush(session->conn) < 0)
        hf__pg_session_fail(session, NULL);
    session->answer_due = hf__deadline(backend->ping_deadline_ms);
    session->on_errand = true;
    hf__buf_free(&errands);
    return true;
}

static hf_status take_owed(pg_session *session, hf_error *err)
{
    PGresult *answer = NULL;
    hf_status status = collect(session, session->answer_due, &answer, err);
    if (status != HF_OK)
        return status;
    bool failed = session->on_errand && hf__pg_is_error(answer);
    PQclear(answer);
    session->answer_due = 0;
    session->on_errand = false;
    return failed ? give_up(session, "it could not be cleaned up after an error", err) : HF_OK;
}

hf_status hf__pg_ready(pg_session *session, hf_error *err)
{
    hf_status status = HF_OK;
    do {
        if (atomic_load(&session->base.lost))
            return lost_here(session, err);
        if (session->answer_due)
            status = take_owed(session, err);
    } while (status == HF_OK && hf__pg_send_errands(session));
    return status;
}

/* ---- statements ------------------------------------------------------------------------------ */

static hf_status checked(pg_session *session, int sent, int64_t deadline, PGresult **result,
                         hf_error *err)
{
    PGresult *kept = NULL;
    if (!sent || !hf__pg_flush(session, deadline))
        return session->impatient ? abandon(session, deadline, err) : give_up(session, NULL, err);
    hf_status status = collect(session, deadline, &kept, err);
    if (status == HF_OK && hf__pg_is_error(kept)) {
        status = hf__pg_fail_result(kept, err);
        PQclear(kept);
        kept = NULL;
    }
    if (result)
        *result = kept;
    else
        PQclear(kept);
    return status;
}

static int64_t statement_deadline(const pg_session *session)
{
    const pg_backend *backend = (const pg_backend *)session->base.backend;
    return hf__deadline(backend->ping_deadline_ms);
}

hf_status hf__pg_query_until(pg_session *session, const char *sql, int count,
                             const char *const *values, int64_t deadline, PGresult **result,
                             hf_error *err)
{
    hf_status status = hf__pg_ready(session, err);
    if (status != HF_OK)
        return status;
    int sent = PQsendQueryParams(session->conn, sql, count, NULL, values, NULL, NULL, 0);
    return checked(session, sent, deadline, result, err);
}

hf_status hf__pg_query(pg_session *session, const char *sql, int count, const char *const *values,
                       PGresult **result, hf_error *err)
{
    return hf__pg_query_until(session, sql, count, values, statement_deadline(session), result,
                              err);
}

hf_status hf__pg_script(pg_session *session, const char *sql, int64_t deadline, PGresult **result,
                        hf_error *err)
{
    hf_status status = hf__pg_ready(session, err);
    if (status != HF_OK)
        return status;
    return checked(session, PQsendQuery(session->conn, sql), deadline, result, err);
}

static hf_status prepare(pg_session *session, struct statement_text text, unsigned *uses,
                         hf_error *err)
{
    if (*uses >= PREPARE_AT_USE)
        return HF_OK;
    hf_status status = hf__pg_ready(session, err);
    if (status != HF_OK)
        return status;
    int sent = PQsendPrepare(session->conn, text.name, text.sql, 0, NULL);
    status = checked(session, sent, statement_deadline(session), NULL, err);
    if (status == HF_OK || session->answer_due) /* abandoned, it will be prepared all the same */
        *uses = PREPARE_AT_USE;
    return status;
}

hf_status hf__pg_prepare(pg_session *session, const hf__sql *statement, hf_error *err)
{
    return prepare(session, text_of(statement), &session->uses[statement->prepared], err);
}

/* Parameters of any format; lengths and formats may be NULL for text. */
struct parameters {
    int count;
    const char *const *values;
    const int *lengths;
    const int *formats;
};

static bool may_prepare(const pg_session *session)
{
    const pg_backend *backend = (const pg_backend *)session->base.backend;
    return !backend->pooled || backend->session_pool;
}

/* *uses counts how often this statement ran on the session; NULL: do not prepare it. */
static hf_status run(pg_session *session, struct statement_text text, unsigned *uses,
                     const struct parameters *with, PGresult **result, hf_error *err)
{
    bool prepared = uses && may_prepare(session) && *uses + 1 >= PREPARE_AT_USE;
    hf_status status = HF_OK;
    int sent;

    if (prepared)
        status = prepare(session, text, uses, err);
    else if (uses)
        ++*uses;
    if (status == HF_OK)
        status = hf__pg_ready(session, err);
    if (status != HF_OK)
        return status;
    if (prepared)
        sent = PQsendQueryPrepared(session->conn, text.name, with->count, with->values,
                                   with->lengths, with->formats, 0);
    else
        sent = PQsendQueryParams(session->conn, text.sql, with->count, NULL, with->values,
                                 with->lengths, with->formats, 0);
    return checked(session, sent, statement_deadline(session), result, err);
}

hf_status hf__pg_run(pg_session *session, const hf__sql *statement, int count,
                     const char *const *values, PGresult **result, hf_error *err)
{
    struct parameters with = {.count = count, .values = values};
    return run(session, text_of(statement), &session->uses[statement->prepared], &with, result,
               err);
}

hf_status hf__pg_run_keys(pg_session *session, const hf__sql *statement, const hf__buf *keys,
                          bool shared, PGresult **result, hf_error *err)
{
    const char *values[] = {keys->data, shared ? "t" : "f"};
    const int lengths[] = {(int)keys->length, 0}, formats[] = {1, 0};
    struct parameters with = {.count = 2, .values = values, .lengths = lengths, .formats = formats};
    return run(session, text_of(statement), &session->uses[statement->prepared], &with, result,
               err);
}

hf_status hf__pg_run_key(pg_session *session, const hf__sql *statement, int64_t key,
                         const int32_t *companion, PGresult **result, hf_error *err)
{
    uint64_t big_key = htobe64((uint64_t)key);
    uint32_t big_companion = companion ? htobe32((uint32_t)*companion) : 0;
    const char *values[] = {(const char *)&big_key, (const char *)&big_companion};
    const int lengths[] = {sizeof big_key, sizeof big_companion}, formats[] = {1, 1};
    struct parameters with = {
        .count = companion ? 2 : 1, .values = values, .lengths = lengths, .formats = formats};
    return run(session, text_of(statement), &session->uses[statement->prepared], &with, result,
               err);
}

/* ---- rows for callers: a PGresult behind the common head ------------------------------------- */

struct pg_rows {
    hf_rows base;
    PGresult *result;
};

static const PGresult *result_of(const hf_rows *rows)
{
    return ((const struct pg_rows *)rows)->result;
}

static size_t rows_count(const hf_rows *rows)
{
    return (size_t)PQntuples(result_of(rows));
}

static size_t rows_columns(const hf_rows *rows)
{
    return (size_t)PQnfields(result_of(rows));
}

static const char *rows_column(const hf_rows *rows, size_t column)
{
    return PQfname(result_of(rows), (int)column);
}

static const char *rows_value(const hf_rows *rows, size_t row, size_t column, size_t *size)
{
    const PGresult *result = result_of(rows);
    if (row >= rows_count(rows) || column >= rows_columns(rows) ||
        PQgetisnull(result, (int)row, (int)column))
        return NULL;
    if (size)
        *size = (size_t)PQgetlength(result, (int)row, (int)column);
    return PQgetvalue(result, (int)row, (int)column);
}

static int64_t rows_affected(const hf_rows *rows)
{
    return strtoll(PQcmdTuples(((const struct pg_rows *)rows)->result), NULL, 10);
}

static void rows_free(hf_rows *rows)
{
    PQclear(((struct pg_rows *)rows)->result);
    free(rows);
}

static const hf__rows_ops pg_rows_ops = {rows_count, rows_columns,  rows_column,
                                         rows_value, rows_affected, rows_free};

hf_status hf__pg_rows(PGresult *result, hf_rows **out, hf_error *err)
{
    struct pg_rows *rows = malloc(sizeof *rows);
    if (!rows) {
        PQclear(result);
        return hf__no_memory(err);
    }
    *rows = (struct pg_rows){{&pg_rows_ops}, result};
    *out = &rows->base;
    return HF_OK;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* The counter of the question; NULL if it has no name, or all counters are in use. */
static unsigned *uses_of(pg_session *session, const char *name)
{
    for (size_t i = 0; name && i < PG_QUESTIONS; i++) {
        struct pg_asked *asked = &session->asked[i];
        if (!asked->name[0])
            (void)snprintf(asked->name, sizeof asked->name, "%s", name);
        if (strcmp(asked->name, name) == 0)
            return &asked->uses;
    }
    return NULL;
}

static const char **params_of(const hf__question *question)
{
    const char **params = calloc(question->count + 1, sizeof *params);
    for (size_t i = 0; params && i < question->count; i++)
        params[i] = question->values[i].data;
    return params;
}

hf_status hf__pg_answer(hf__backend *base, hf__question *question, hf_error *err)
{
    pg_session *session = NULL;
    PGresult *result = NULL;
    const char **params = params_of(question);
    const struct parameters with = {.count = (int)question->count, .values = params};
    hf_status status =
        params ? hf__pg_shared_session(pg_backend_of(base), &session, err) : hf__no_memory(err);
    if (status == HF_OK) {
        hf__baton_take(&session->baton);
        status = run(session, (struct statement_text){question->name, question->sql},
                     uses_of(session, question->name), &with, &result, err);
        hf__baton_give(&session->baton);
        hf__pg_unpin(session);
    }
    if (status == HF_OK)
        status = hf__pg_rows(result, &question->rows, err);
    free(params);
    return status;
}

static hf_status status_of(const char *sqlstate)
{
    if (strcmp(sqlstate, PG_SQLSTATE_NO_MEMORY) == 0)
        return HF_QUOTA;
    if (strcmp(sqlstate, "25006") == 0 || strcmp(sqlstate, "42501") == 0)
        return HF_CONFIG;
    if (strcmp(sqlstate, "40P01") == 0)
        return HF_DEADLOCK;
    if (strcmp(sqlstate, PG_SQLSTATE_LEASE_OVER) == 0)
        return HF_LOST;
    return HF_DATABASE;
}

hf_status hf__pg_fail_result(const PGresult *result, hf_error *err)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    hf_status code = status_of(sqlstate ? sqlstate : "");
    hf_status status =
        hf__fail(err, code, "PostgreSQL: %s", message ? message : PQresultErrorMessage(result));
    const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION);
    if (err && sqlstate)
        (void)snprintf(err->sqlstate, sizeof err->sqlstate, "%s", sqlstate);
    if (err && position)
        err->position = (int)strtol(position, NULL, 10);
    if (code == HF_QUOTA)
        hf__hint(err, "the server's lock table is full: raise max_locks_per_transaction, or hold "
                      "fewer locks");
    else if (hint)
        hf__hint(err, "%s", hint);
    return status;
}

int64_t hf__pg_int(const PGresult *result, int row, int column)
{
    return strtoll(hf__pg_text(result, row, column), NULL, 10);
}

bool hf__pg_bool(const PGresult *result, int row, int column)
{
    return hf__pg_text(result, row, column)[0] == 't';
}

const char *hf__pg_text(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? "" : PQgetvalue(result, row, column);
}

hf_status hf__pg_ask_for(pg_backend *backend, const pg_patience *patience, const char *sql,
                         int count, const char *const *values, PGresult **result, hf_error *err)
{
    pg_session *shared_session = NULL;
    hf_status status = hf__pg_shared_session_for(backend, patience, &shared_session, err);
    if (status != HF_OK)
        return status;
    status = hf__pg_session_lock(shared_session, patience, err);
    if (status == HF_OK) {
        status = hf__pg_query(shared_session, sql, count, values, result, err);
        hf__pg_session_unlock(shared_session);
    }
    hf__pg_unpin(shared_session);
    return status;
}

hf_status hf__pg_ask(pg_backend *backend, const char *sql, int count, const char *const *values,
                     PGresult **result, hf_error *err)
{
    return hf__pg_ask_for(backend, NULL, sql, count, values, result, err);
}
