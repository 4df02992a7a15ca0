/*
 * One attempt of a serialised transaction on SQLite. Writers begin IMMEDIATE: SQLite has one of them
 * at a time, and who waits for the turn has no snapshot yet, so nothing is lost to a conflict later.
 */
#include "lib/local/transaction.h"

#include <stdlib.h>
#include <string.h>

#include "lib/sql.h"

typedef struct queued {
    struct queued *next;
    hf__local_statement statement; /* with all that it points to in the same piece of memory */
    hf_value values[];
} queued;

typedef struct local_tx {
    hf__tx head;
    hf__local_connection *connection;
    queued *first;
    queued **last;
    unsigned sent;      /* statements of the queue that have run */
    hf_status failed;   /* the attempt is over: every call returns this again */
    hf__tx_fault fault; /* and this: the caller may have reset the head's */
    hf_error why;
    bool in_doubt;
} local_tx;

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

static void drop_first(local_tx *tx)
{
    queued *first = tx->first;

    tx->first = first->next;
    if (tx->first == NULL)
        tx->last = &tx->first;
    free(first);
}

/* A position in a statement that the caller has left behind would only mislead without its number. */
static void name_queued(local_tx *tx, unsigned number)
{
    hf_error found = tx->why;
    hf_status status =
        hf__fail(&tx->why, found.code, "queued statement %u: %s", number, found.message);

    (void)status;
    strcpy(tx->why.sqlstate, found.sqlstate);
    strcpy(tx->why.hint, found.hint);
    tx->why.position = found.position;
}

static hf_status run_queue(local_tx *tx)
{
    while (tx->first != NULL) {
        hf_status status = hf__local_statement_run(tx->connection, &tx->first->statement, false,
                                                   NULL, &tx->head.fault, &tx->why);
        tx->sent++;
        if (status != HF_OK) {
            name_queued(tx, tx->sent);
            return status;
        }
        drop_first(tx);
    }
    return HF_OK;
}

/* ---- the steps of an attempt; all fill tx->why and tx->head.fault ---------------------------- */

static hf_status run_own(local_tx *tx, const char *sql)
{
    int code = hf__local_connection_run(tx->connection, sql);

    if (code == SQLITE_OK)
        return HF_OK;
    return hf__local_connection_fail(tx->connection, code, &tx->head.fault, &tx->why);
}

static hf_status set_read_only(local_tx *tx, bool read_only)
{
    if (tx->connection->read_only == read_only)
        return HF_OK;
    hf_status status =
        run_own(tx, read_only ? "PRAGMA query_only = ON" : "PRAGMA query_only = OFF");
    if (status == HF_OK)
        tx->connection->read_only = read_only;
    return status;
}

static hf_status begin(local_tx *tx, const hf__tx_plan *plan)
{
    if (tx->head.started)
        return HF_OK;
    tx->head.started = true;
    hf_status status = set_read_only(tx, plan->read_only);
    if (status == HF_OK)
        status = run_own(tx, plan->read_only ? "BEGIN" : hf__sql_local_begin);
    return status;
}

/*
 * A COMMIT that could not write its last page is undone for good. After other failures, a disk that
 * does not sync for one, the log may hold the whole transaction: nobody sees it now, but whoever
 * recovers the file after a crash would.
 */
static bool is_undone(int code)
{
    int kind = code & 0xff;
    return kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_CONSTRAINT ||
           kind == SQLITE_FULL || code == SQLITE_IOERR_WRITE;
}

static hf_status commit(local_tx *tx, const hf__tx_plan *plan)
{
    int code = hf__local_connection_run(tx->connection, hf__sql_local_commit);

    if (code == SQLITE_OK)
        return HF_OK;
    hf_status status = hf__local_connection_fail(tx->connection, code, &tx->head.fault, &tx->why);
    if (!plan->read_only && !is_undone(code)) {
        tx->in_doubt = true;
        tx->head.fault = HF__TX_BROKEN;
    }
    return status;
}

/* A failure ends the attempt at once, so that others get their turn during the caller's pause. */
static hf_status conclude(local_tx *tx, hf_status status, hf_error *err)
{
    if (status == HF_OK)
        return HF_OK;
    if (tx->failed == HF_OK) {
        tx->failed = status;
        tx->fault = tx->head.fault;
        if (sqlite3_get_autocommit(tx->connection->handle) == 0)
            (void)!hf__local_connection_run(tx->connection, hf__sql_local_rollback);
    }
    tx->head.fault = tx->fault;
    if (err != NULL)
        *err = tx->why;
    return status;
}

/* ---- operations ------------------------------------------------------------------------------ */

static hf_status tx_open(hf__backend *backend, const hf__tx_plan *plan, hf__tx **out, hf_error *err)
{
    local_tx *tx = calloc(1, sizeof *tx);

    if (tx == NULL)
        return hf__no_memory(err);
    tx->head.backend = backend;
    tx->last = &tx->first;
    hf_status status = hf__local_connection_get((hf__local *)backend, plan, &tx->connection, err);
    if (status != HF_OK) {
        free(tx);
        return status;
    }
    *out = &tx->head;
    return HF_OK;
}

static hf_status tx_query(hf__tx *head, const hf__tx_plan *plan, const char *sql, size_t count,
                          const hf_value *values, bool binary_rows, hf_rows **rows, hf_error *err)
{
    local_tx *tx = (local_tx *)head;
    const hf__local_statement statement = {.sql = sql, .count = count, .values = values};
    hf_status status = tx->failed;

    if (rows != NULL)
        *rows = NULL;
    if (status == HF_OK)
        status = begin(tx, plan);
    if (status == HF_OK)
        status = run_queue(tx);
    if (status == HF_OK)
        status = hf__local_statement_run(tx->connection, &statement, binary_rows, rows,
                                         &tx->head.fault, &tx->why);
    return conclude(tx, status, err);
}

static hf_status tx_queue(hf__tx *head, const char *sql, size_t count, const hf_value *values,
                          hf_error *err)
{
    local_tx *tx = (local_tx *)head;

    if (tx->failed != HF_OK)
        return conclude(tx, tx->failed, err);
    queued *copy = copy_statement(sql, count, values);
    if (copy == NULL) {
        tx->head.fault = HF__TX_FINAL;
        return conclude(tx, hf__no_memory(&tx->why), err);
    }
    *tx->last = copy;
    tx->last = &copy->next;
    return HF_OK;
}

/* Not a failure of the attempt: the caller may go on without libpq. */
static struct pg_conn *tx_connection(hf__tx *head, const hf__tx_plan *plan, hf_error *err)
{
    hf_status status = hf__fail(err, HF_INVALID, "the local store has no PostgreSQL connection");

    (void)plan;
    (void)status;
    if (((local_tx *)head)->failed == HF_OK)
        head->fault = HF__TX_FINAL;
    return NULL;
}

static hf_status tx_commit(hf__tx *head, const hf__tx_plan *plan, hf_error *err)
{
    local_tx *tx = (local_tx *)head;
    hf_status status = tx->failed;

    if (status == HF_OK && tx->first == NULL && !tx->head.started)
        return HF_OK;
    if (status == HF_OK && plan->session != NULL && atomic_load(&plan->session->lost)) {
        tx->why = plan->session->why;
        tx->head.fault = HF__TX_FINAL;
        status = HF_LOST;
    }
    if (status == HF_OK)
        status = begin(tx, plan);
    if (status == HF_OK)
        status = run_queue(tx);
    if (status == HF_OK)
        status = commit(tx, plan);
    return conclude(tx, status, err);
}

static hf__tx_outcome tx_settle(hf__tx *head, const hf__tx_plan *plan, hf_error *err)
{
    local_tx *tx = (local_tx *)head;

    (void)plan;
    if (!tx->in_doubt || hf__local_connection_seal(tx->connection))
        return HF__TX_NOT_COMMITTED;
    hf_status status =
        hf__fail(err, HF_IN_DOUBT, "the store failed while committing: %s", tx->why.message);
    (void)status;
    hf__hint(err, "check the disk, open the store again and look whether it was written");
    return HF__TX_IN_DOUBT;
}

static void tx_close(hf__tx *head)
{
    local_tx *tx = (local_tx *)head;

    if (tx == NULL)
        return;
    while (tx->first != NULL)
        drop_first(tx);
    hf__local_connection_put(tx->connection);
    free(tx);
}

const hf__tx_ops hf__local_tx_ops = {
    .locks_labels = false,
    .open = tx_open,
    .query = tx_query,
    .queue = tx_queue,
    .connection = tx_connection,
    .commit = tx_commit,
    .settle = tx_settle,
    .close = tx_close,
};
