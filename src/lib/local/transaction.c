/*
 * One attempt of a serialised transaction on SQLite. Writers begin IMMEDIATE: SQLite lets one write
 * at a time, and a writer that waits before it has a snapshot cannot fail with a conflict later.
 */
#include "lib/local/transaction.h"

#include <stdlib.h>
#include <string.h>

typedef struct queued {
    struct queued *next;
    hf__local_statement statement; /* points into the same allocation */
    hf_value values[];
} queued;

typedef struct local_attempt {
    hf__attempt head;
    hf__local_connection *connection;
    hf__local_session *kept; /* has the bytes of the leases that it runs under; or NULL */
    queued *first;
    queued **last;
    unsigned sent;           /* statements of the queue that have run */
    hf_status failed;        /* not HF_OK: the attempt is over, every call returns this again */
    hf__attempt_fault fault; /* of that failure; the caller may have reset head.fault */
    hf_error why;
    bool in_doubt; /* COMMIT failed in a way that leaves the outcome open */
} local_attempt;

/* ---- the queue ------------------------------------------------------------------------------- */

static size_t value_size(const hf_value *value)
{
    if (value->data == NULL)
        return 0;
    return value->binary ? value->size : strlen(value->data) + 1;
}

static queued *copy_statement(const char *sql, size_t count, const hf_value *values)
{
    size_t size = sizeof(queued) + count * sizeof *values + strlen(sql) + 1;

    for (size_t i = 0; i < count; i++)
        size += value_size(&values[i]);
    queued *copy = malloc(size);
    if (copy == NULL)
        return NULL;
    char *end = (char *)&copy->values[count];
    copy->next = NULL;
    copy->statement = (hf__local_statement){.sql = end, .count = count, .values = copy->values};
    end = stpcpy(end, sql) + 1;
    for (size_t i = 0; i < count; i++) {
        copy->values[i] = values[i];
        if (values[i].data == NULL)
            continue;
        copy->values[i].data = end;
        end = mempcpy(end, values[i].data, value_size(&values[i]));
    }
    return copy;
}

static void drop_first(local_attempt *attempt)
{
    queued *first = attempt->first;

    attempt->first = first->next;
    if (attempt->first == NULL)
        attempt->last = &attempt->first;
    free(first);
}

/*
 * Says which queued statement failed: the caller is at a later one by now, and would apply the
 * error's position to that.
 */
static void name_queued(local_attempt *attempt, unsigned number)
{
    hf_error found = attempt->why;
    hf_status status =
        hf__fail(&attempt->why, found.code, "queued statement %u: %s", number, found.message);

    (void)status;
    strcpy(attempt->why.sqlstate, found.sqlstate);
    strcpy(attempt->why.hint, found.hint);
    attempt->why.position = found.position;
}

static hf_status run_queue(local_attempt *attempt)
{
    while (attempt->first != NULL) {
        hf_status status =
            hf__local_statement_run(attempt->connection, &attempt->first->statement, false, NULL,
                                    &attempt->head.fault, &attempt->why);
        attempt->sent++;
        if (status != HF_OK) {
            name_queued(attempt, attempt->sent);
            return status;
        }
        drop_first(attempt);
    }
    return HF_OK;
}

/* ---- the steps of an attempt; all fill attempt->why and attempt->head.fault ------------------ */

static hf_status run_own(local_attempt *attempt, const char *sql)
{
    int code = hf__local_connection_run(attempt->connection, sql);

    if (code == SQLITE_OK)
        return HF_OK;
    return hf__local_connection_fail(attempt->connection, code, &attempt->head.fault,
                                     &attempt->why);
}

static hf_status set_read_only(local_attempt *attempt, bool read_only)
{
    if (attempt->connection->read_only == read_only)
        return HF_OK;
    hf_status status =
        run_own(attempt, read_only ? "PRAGMA query_only = ON" : "PRAGMA query_only = OFF");
    if (status == HF_OK)
        attempt->connection->read_only = read_only;
    return status;
}

/*
 * Is the lock still held whose session this runs on, or are its leases kept? Asked when the
 * transaction has begun, because from then on nobody else can write, and once more before the
 * commit.
 */
static hf_status check_session(local_attempt *attempt, const hf__attempt_plan *plan)
{
    hf__session *session = plan->session;
    if (session == NULL && attempt->kept != NULL)
        session = &attempt->kept->head;
    if (session == NULL)
        return HF_OK;
    hf__local_session_check((hf__local_session *)session);
    if (!atomic_load(&session->lost))
        return HF_OK;
    attempt->why = session->why;
    attempt->head.fault = HF__FAULT_FINAL;
    return HF_LOST;
}

/*
 * Waits for other writers until the deadline: nothing has been done yet that could be in their way,
 * so that would be no conflict, and spends no attempt. The thread's own outer transaction may be
 * the writer, and would wait for this one.
 */
static hf_status begin(local_attempt *attempt, const hf__attempt_plan *plan)
{
    hf__local_connection *connection = attempt->connection;

    if (attempt->head.started)
        return HF_OK;
    attempt->head.started = true;
    /* Before BEGIN: who takes a lease has its byte, and then writes a record. */
    hf_status status =
        hf__local_keep_leases(connection->local, plan, &attempt->kept, &attempt->why);
    if (status != HF_OK) {
        attempt->head.fault = HF__FAULT_FINAL;
        return status;
    }
    status = set_read_only(attempt, plan->read_only);
    if (status != HF_OK)
        return status;
    connection->patient = !plan->is_nested;
    status = run_own(attempt, plan->read_only ? "BEGIN" : hf__sql_local_begin.text[HF__SQLITE]);
    connection->patient = false;
    if (status != HF_OK && attempt->head.fault == HF__FAULT_RETRY &&
        hf__local_is_interrupted(connection->local, connection->cancel)) {
        attempt->head.fault = HF__FAULT_FINAL;
        status = hf__interrupted(&attempt->why);
    }
    return status == HF_OK ? check_session(attempt, plan) : status;
}

/*
 * Is a failed COMMIT certainly undone? It is when the last page could not be written. After other
 * failures, such as a failed sync, the log may hold the whole transaction: nobody sees it now, but
 * it would come back when the file is recovered after a crash.
 */
static bool is_undone(int code)
{
    int kind = code & 0xff;
    return kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_CONSTRAINT ||
           kind == SQLITE_FULL || code == SQLITE_IOERR_WRITE;
}

static hf_status commit(local_attempt *attempt, const hf__attempt_plan *plan)
{
    int code = hf__local_connection_run(attempt->connection, hf__sql_local_commit.text[HF__SQLITE]);

    if (code == SQLITE_OK)
        return HF_OK;
    hf_status status =
        hf__local_connection_fail(attempt->connection, code, &attempt->head.fault, &attempt->why);
    if (!plan->read_only && !is_undone(code)) {
        attempt->in_doubt = true;
        attempt->head.fault = HF__FAULT_BROKEN;
    }
    return status;
}

/* A failure rolls back at once, so that others can write while the caller pauses. */
static hf_status conclude(local_attempt *attempt, hf_status status, hf_error *err)
{
    if (status == HF_OK)
        return HF_OK;
    if (attempt->failed == HF_OK) {
        attempt->failed = status;
        attempt->fault = attempt->head.fault;
        if (sqlite3_get_autocommit(attempt->connection->handle) == 0)
            (void)!hf__local_connection_run(attempt->connection,
                                            hf__sql_local_rollback.text[HF__SQLITE]);
    }
    attempt->head.fault = attempt->fault;
    if (err != NULL)
        *err = attempt->why;
    return status;
}

/* ---- operations ------------------------------------------------------------------------------ */

static hf_status attempt_open(hf__backend *backend, const hf__attempt_plan *plan, hf__attempt **out,
                              hf_error *err)
{
    local_attempt *attempt = calloc(1, sizeof *attempt);

    if (attempt == NULL)
        return hf__no_memory(err);
    attempt->head.backend = backend;
    attempt->last = &attempt->first;
    hf_status status =
        hf__local_connection_get((hf__local *)backend, plan, &attempt->connection, err);
    if (status != HF_OK) {
        free(attempt);
        return status;
    }
    *out = &attempt->head;
    return HF_OK;
}

static hf_status attempt_query(hf__attempt *head, const hf__attempt_plan *plan, const char *sql,
                               size_t count, const hf_value *values, bool binary_rows,
                               hf_rows **rows, hf_error *err)
{
    local_attempt *attempt = (local_attempt *)head;
    const hf__local_statement statement = {.sql = sql, .count = count, .values = values};
    hf_status status = attempt->failed;

    if (rows != NULL)
        *rows = NULL;
    if (status == HF_OK)
        status = begin(attempt, plan);
    if (status == HF_OK)
        status = run_queue(attempt);
    if (status == HF_OK)
        status = hf__local_statement_run(attempt->connection, &statement, binary_rows, rows,
                                         &attempt->head.fault, &attempt->why);
    return conclude(attempt, status, err);
}

static hf_status attempt_queue(hf__attempt *head, const char *sql, size_t count,
                               const hf_value *values, hf_error *err)
{
    local_attempt *attempt = (local_attempt *)head;

    if (attempt->failed != HF_OK)
        return conclude(attempt, attempt->failed, err);
    queued *copy = copy_statement(sql, count, values);
    if (copy == NULL) {
        attempt->head.fault = HF__FAULT_FINAL;
        return conclude(attempt, hf__no_memory(&attempt->why), err);
    }
    *attempt->last = copy;
    attempt->last = &copy->next;
    return HF_OK;
}

/* This does not end the attempt: the callback may go on without libpq. */
static struct pg_conn *attempt_connection(hf__attempt *head, const hf__attempt_plan *plan,
                                          hf_error *err)
{
    hf_status status = hf__fail(err, HF_INVALID, "the local store has no PostgreSQL connection");

    (void)plan;
    (void)status;
    if (((local_attempt *)head)->failed == HF_OK)
        head->fault = HF__FAULT_FINAL;
    return NULL;
}

static hf_status attempt_commit(hf__attempt *head, const hf__attempt_plan *plan, hf_error *err)
{
    local_attempt *attempt = (local_attempt *)head;
    hf_status status = attempt->failed;

    if (status == HF_OK && attempt->first == NULL && !attempt->head.started)
        return HF_OK;
    if (status == HF_OK)
        status = begin(attempt, plan);
    if (status == HF_OK)
        status = run_queue(attempt);
    if (status == HF_OK)
        status = check_session(attempt, plan);
    if (status == HF_OK)
        status = commit(attempt, plan);
    return conclude(attempt, status, err);
}

static hf__attempt_outcome attempt_outcome(hf__attempt *head, const hf__attempt_plan *plan,
                                           hf_error *err)
{
    local_attempt *attempt = (local_attempt *)head;

    (void)plan;
    if (!attempt->in_doubt || hf__local_connection_seal(attempt->connection))
        return HF__OUTCOME_NOT_COMMITTED;
    hf_status status =
        hf__fail(err, HF_IN_DOUBT, "the store failed while committing: %s", attempt->why.message);
    (void)status;
    hf__hint(err, "check the disk, open the store again and look whether it was written");
    return HF__OUTCOME_IN_DOUBT;
}

static void attempt_close(hf__attempt *head, const hf__attempt_plan *plan)
{
    local_attempt *attempt = (local_attempt *)head;

    if (attempt == NULL)
        return;
    while (attempt->first != NULL)
        drop_first(attempt);
    hf__local_connection_put(attempt->connection);
    if (attempt->kept != NULL) { /* a child of fork() may have the files open, too */
        hf__local_session_unlock(attempt->kept, plan->leases, plan->lease_count);
        hf__local_session_free(attempt->kept);
    }
    free(attempt);
}

const hf__attempt_ops hf__local_attempt_ops = {
    .locks_labels = false,
    .open = attempt_open,
    .query = attempt_query,
    .queue = attempt_queue,
    .connection = attempt_connection,
    .commit = attempt_commit,
    .outcome = attempt_outcome,
    .close = attempt_close,
};
