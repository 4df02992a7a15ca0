/* One attempt of a serialised transaction, as the backend's vtable has it. */
#include "lib/postgres/transactions/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

enum {
    MOST_VALUES = 65535,
    MOST_BYTES = 1 << 30,
};

static pg_attempt *pg_attempt_of(hf__attempt *attempt)
{
    return (pg_attempt *)attempt;
}

static pg_backend *backend_of(const pg_attempt *attempt)
{
    return pg_backend_of(attempt->base.backend);
}

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
    hf_status status = plan->session ? hf__pg_tx_checkout_held(plan, &attempt->session, err)
                                     : hf__pg_tx_checkout(backend, plan, &attempt->session, err);
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

static hf_status refuse(pg_attempt *attempt, const char *what, const char *hint, hf_error *err)
{
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;
    hf_status status = hf__fail(where, HF_INVALID, "%s", what);
    hf__hint(where, "%s", hint);
    return hf__pg_attempt_failed(attempt, status, HF__FAULT_FINAL, where);
}

static bool too_large(size_t count, const hf_value *values)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].data &&
            (values[i].binary ? values[i].size : strlen(values[i].data)) > MOST_BYTES)
            return true;
    return false;
}

/* What the protocol cannot carry, and what would take the transaction out of our hands. */
static hf_status admit(pg_attempt *attempt, const char *sql, pg_command command, size_t count,
                       const hf_value *values, hf_error *err)
{
    if (command == PG_COMMAND_ENDS)
        return refuse(attempt, "the statement would begin or end the transaction",
                      "end it by what you return, or pass to hf_tx_end: HF_OK commits, all else "
                      "rolls back",
                      err);
    if (command == PG_COMMAND_COPIES)
        return refuse(attempt, "COPY does not run in hf_tx_query",
                      "use libpq's functions for COPY on hf_tx_connection", err);
    if (count > MOST_VALUES)
        return refuse(attempt, "a statement has more than 65535 values",
                      "pass them as arrays, or in several statements", err);
    if (too_large(count, values))
        return refuse(attempt, "a value is larger than 1 GiB, the most that PostgreSQL stores",
                      "split it, or keep it elsewhere", err);
    attempt->altered = attempt->altered || command == PG_COMMAND_ALTERS;
    attempt->mutes = attempt->mutes || hf__pg_mention(sql, "client_min_messages");
    return HF_OK;
}

static hf_status attempt_query(hf__attempt *base, const hf__attempt_plan *plan, const char *sql,
                               size_t count, const hf_value *values, bool binary_rows,
                               hf_rows **rows, hf_error *err)
{
    pg_attempt *attempt = pg_attempt_of(base);
    const pg_statement statement = {sql, count, values, binary_rows};
    PGresult *result = NULL;
    pg_command command = hf__pg_command(sql);
    /* A failure is forgiven by the return to a savepoint before it. */
    bool forgives = command == PG_COMMAND_ROLLS_TO && attempt->open && attempt->session;
    hf_status status = forgives ? HF_OK : refuse_if_failed(attempt, err);
    if (status == HF_OK)
        status = admit(attempt, sql, command, count, values, err);
    if (status == HF_OK)
        status = hf__pg_exchange(attempt, plan, &statement, false, rows ? &result : NULL, err);
    if (status == HF_OK && forgives)
        attempt->failed = false;
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
    if (status == HF_OK)
        status = admit(attempt, sql, hf__pg_command(sql), count, values, err);
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
        status = hf__pg_exchange(attempt, plan, NULL, false, NULL, err);
    if (status != HF_OK)
        return NULL;
    if (!plan->trusts_callback && !hf__pg_attempt_lend(attempt)) {
        (void)!hf__no_memory(err);
        return NULL;
    }
    (void)PQsetnonblocking(attempt->session->conn, 0);
    return attempt->session->conn;
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
    if (status == HF_OK && !attempt->lent && PQstatus(attempt->session->conn) != CONNECTION_OK)
        return hf__pg_attempt_broke(attempt, NULL, err);
    if (status == HF_OK)
        (void)PQsetnonblocking(attempt->session->conn, 1);
    if (status == HF_OK && !attempt->open && !can_commit_at_once(attempt, plan))
        status = hf__pg_exchange(attempt, plan, NULL, false, NULL, err);
    if (status == HF_OK)
        status = hf__pg_exchange(attempt, plan, NULL, true, NULL, err);
    return status;
}

static int64_t rollback_deadline(const pg_attempt *attempt, const hf__attempt_plan *plan)
{
    int64_t deadline = hf__deadline(backend_of(attempt)->ping_deadline_ms), now = hf__now_ms();
    int64_t over = hf__is_cancelled(plan->cancel) || plan->deadline < now ? now : plan->deadline;
    return over < deadline - PG_BEYOND_MS ? over + PG_BEYOND_MS : deadline;
}

/* A cancel of the statement before may hit ROLLBACK itself: whoever got the session next would find
 * it in a failed transaction. One of the call's own ends the first wait, not the second. */
static void roll_back(pg_attempt *attempt, const hf__attempt_plan *plan)
{
    enum { TRIES = 5 };
    hf_error ignored;
    pg_session *session = attempt->session;
    for (int i = 0; i < TRIES && !atomic_load(&session->base.lost); i++) {
        const pg_patience patience = {
            .until = HF__FOREVER, .cancel = hf__is_cancelled(plan->cancel) ? NULL : plan->cancel};
        int64_t deadline = rollback_deadline(attempt, plan);
        if (PQtransactionStatus(session->conn) == PQTRANS_IDLE)
            return;
        if (session->answer_due > deadline)
            session->answer_due = deadline;
        session->patience = &patience;
        (void)!hf__pg_script(session, "ROLLBACK", deadline, NULL, &ignored);
        session->patience = NULL;
    }
    if (!atomic_load(&session->base.lost) && PQtransactionStatus(session->conn) != PQTRANS_IDLE)
        hf__pg_session_fail(session, "its transaction could not be rolled back");
}

static void attempt_close(hf__attempt *base, const hf__attempt_plan *plan)
{
    pg_attempt *attempt = pg_attempt_of(base);
    hf__pg_drop_queue(attempt);
    if (attempt->session) {
        if (!atomic_load(&attempt->session->base.lost)) {
            (void)PQsetnonblocking(attempt->session->conn, 1);
            roll_back(attempt, plan);
            if (atomic_load(&attempt->session->base.lost) && !attempt->commit_sent)
                hf__pg_attempt_end_backend(attempt);
        }
        if (attempt->base.cancelled && !atomic_load(&attempt->session->base.lost))
            hf__pg_session_fail(attempt->session,
                                "a cancel under way would hit the next transaction");
        if (attempt->altered && attempt->open && !atomic_load(&attempt->session->base.lost))
            hf__pg_attempt_reset(attempt);
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
    .inspect = hf__pg_attempt_inspect,
    .outcome = hf__pg_attempt_outcome,
    .close = attempt_close,
};
