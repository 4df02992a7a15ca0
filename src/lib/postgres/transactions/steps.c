/*
 * The steps of a transaction. The labels are waited for in a transaction of their own, kept by the
 * session over COMMIT AND CHAIN, and handed to the new transaction, whose snapshot is therefore
 * younger than the locks: all in the message of the first statement. The chain leaves no moment in
 * which the connection idles with a lock held, not even under a cancel, which is also why a
 * transaction pooler does not give the server away in between.
 */
#include "lib/postgres/transactions/exchange.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static void step_known(pg_message *message, pg_tag tag, const hf__sql *statement, int count,
                       const char *const *values)
{
    if (hf__pg_tx_prepares(pg_backend_of(message->session->base.backend)))
        hf__pg_step_prepared(message, tag, statement, count, values);
    else
        hf__pg_step(message, tag, pg_sql(statement), count, values);
}

void hf__pg_step_statement(pg_message *message, const hf__attempt_plan *plan, pg_tag tag,
                           const pg_statement *statement)
{
    char name[PG_NAME_SIZE];
    bool is_named = plan->repeats &&
                    hf__pg_tx_prepares(pg_backend_of(message->session->base.backend)) &&
                    hf__pg_known_name(message, statement->sql, name);
    (is_named ? hf__pg_step_named
              : hf__pg_step_values)(message, tag, is_named ? name : statement->sql,
                                    statement->count, statement->values, statement->binary_rows);
}

/* One of our own that each transaction has, with a value or none. */
static void step_again(pg_message *message, const hf__attempt_plan *plan, pg_tag tag,
                       const hf__sql *statement, const char *value)
{
    hf__pg_step_statement(
        message, plan, tag,
        &(pg_statement){pg_sql(statement), value != NULL, &HF_TEXT(value), false});
}

static const char *isolation_sql(const hf__attempt_plan *plan, bool begin)
{
    static const char *const words[3][2][2] = {
        {{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE",
          "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY"},
         {"BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE",
          "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY"}},
        {{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
          "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"},
         {"BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE",
          "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"}},
        {{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
          "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"},
         {"BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE",
          "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY"}},
    };
    return words[plan->isolation][begin][plan->read_only];
}

/* Behind a pooler the server session may be anybody's, so its bounds are always said. */
static void step_bounds(pg_message *message, int64_t deadline)
{
    char ms[16];
    int left = hf__left_ms(deadline);
    bool pooled = !hf__pg_tx_prepares(pg_backend_of(message->session->base.backend));
    if (left < 0 && !pooled)
        return;
    (void)snprintf(ms, sizeof ms, "%d", left < 0 ? 0 : (left > 0 ? left : 1));
    const char *params[] = {ms};
    hf__pg_step(message, PG_TAKEN,
                pg_sql(pooled ? &hf__sql_postgres_tx_bounds_pooled : &hf__sql_postgres_tx_bounds),
                1, params);
}

/* One label, the common case, has prepared statements of its own. */
static void step_one_label(pg_message *message, const hf__attempt_plan *plan)
{
    char key[24];
    hf__pg_format(key, plan->claims->key);
    const char *params[] = {key, plan->read_only ? "f" : "t"};
    hf__pg_step(message, PG_TAKEN, "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE", 0, NULL);
    step_bounds(message, plan->deadline);
    step_known(message, PG_TAKEN, &hf__sql_postgres_tx_lock_one, 1, params);
    step_known(message, PG_KEPT, hf__pg_tx_keep(pg_backend_of(message->session->base.backend)), 1,
               params);
    hf__pg_step(message, PG_KEPT, "COMMIT AND CHAIN", 0, NULL);
    hf__pg_step(message, PG_KEPT, isolation_sql(plan, false), 0, NULL);
    step_known(message, PG_BEGUN, &hf__sql_postgres_tx_hand_over_one, 2, params);
}

static void step_labels(pg_message *message, const hf__attempt_plan *plan, const pg_arrays *arrays)
{
    const char *params[] = {arrays->keys.data, arrays->spaces.data, plan->read_only ? "f" : "t"};
    hf__pg_step(message, PG_TAKEN, "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE", 0, NULL);
    step_bounds(message, plan->deadline);
    hf__pg_step(message, PG_TAKEN, pg_sql(&hf__sql_postgres_tx_lock), 2, params);
    if (hf__pg_may_be_leased(pg_backend_of(message->session->base.backend)))
        hf__pg_step(message, PG_TAKEN, pg_sql(&hf__sql_postgres_tx_refuse_leased), 2, params);
    hf__pg_step(message, PG_KEPT, pg_sql(&hf__sql_postgres_tx_keep), 2, params);
    hf__pg_step(message, PG_KEPT, "COMMIT AND CHAIN", 0, NULL);
    hf__pg_step(message, PG_KEPT, isolation_sql(plan, false), 0, NULL);
    hf__pg_step(message, PG_BEGUN, pg_sql(&hf__sql_postgres_tx_hand_over), 3, params);
}

/* A session for locks names nothing by a path and does not wait for the disk; the caller's may.
 * Kept once the transaction is committed. */
static void step_settings(pg_message *message)
{
    const pg_session *session = message->session;
    if (session->purpose != PG_FOR_LOCKS || session->is_callers)
        return;
    hf__pg_step(message, PG_BEGUN, "SET search_path TO DEFAULT", 0, NULL);
    hf__pg_step(message, PG_BEGUN, "SET synchronous_commit TO DEFAULT", 0, NULL);
}

static hf_status step_beginning(pg_message *message, const hf__attempt_plan *plan, hf_error *err)
{
    pg_arrays arrays = {0};
    if (plan->count == 0) {
        hf__pg_step(message, PG_BEGUN, isolation_sql(plan, true), 0, NULL);
        step_settings(message);
        step_again(message, plan, PG_BEGUN,
                   plan->read_only ? &hf__sql_postgres_tx_begun_read_only
                                   : &hf__sql_postgres_tx_begun,
                   NULL);
        return HF_OK;
    }
    if (plan->count == 1 && plan->claims->space == HF_BIGINT) {
        step_one_label(message, plan);
        return HF_OK;
    }
    hf_status status = hf__pg_key_arrays(&arrays, plan->claims, plan->count, err);
    if (status == HF_OK)
        step_labels(message, plan, &arrays);
    hf__pg_arrays_free(&arrays);
    return status;
}

/* Ours are off, because a wait for labels has the transaction's own bound; the caller's are on for
 * the caller's statements. */
static void step_timeouts(pg_message *message)
{
    const pg_session *session = message->session;
    const char *params[PG_TIMEOUTS];
    for (int i = 0; i < PG_TIMEOUTS; i++)
        params[i] = session->timeouts[i];
    if (!session->has_timeouts || !hf__pg_tx_prepares(pg_backend_of(session->base.backend)))
        return;
    bool old = PQserverVersion(session->conn) < PG_TRANSACTION_TIMEOUT_SINCE;
    hf__pg_step(message, PG_MARKED,
                pg_sql(old ? &hf__sql_postgres_tx_timeouts : &hf__sql_postgres_tx_timeouts_17),
                old ? PG_TIMEOUTS - 1 : PG_TIMEOUTS, params);
}

/* What the transaction writes is committed under these terms, or not at all. */
static hf_status step_leases(pg_message *message, const hf__attempt_plan *plan, hf_error *err)
{
    pg_arrays arrays = {0};
    if (plan->lease_count == 0)
        return HF_OK;
    hf_status status = hf__pg_lease_arrays(&arrays, plan->leases, plan->lease_count, err);
    const char *params[] = {arrays.keys.data, arrays.spaces.data, arrays.terms.data,
                            plan->read_only ? "f" : "t"};
    if (status == HF_OK)
        hf__pg_step(message, PG_MARKED, pg_sql(&hf__sql_postgres_check_leases), 4, params);
    hf__pg_arrays_free(&arrays);
    return status;
}

/* The marker comes first, as the session's own role: the callback may take another one, or make the
 * rest of the transaction read-only. */
hf_status hf__pg_step_opening(pg_message *message, const pg_attempt *attempt,
                              const hf__attempt_plan *plan, hf_error *err)
{
    hf_status status = step_beginning(message, plan, err);
    if (status == HF_OK)
        status = step_leases(message, plan, err);
    if (status != HF_OK)
        return status;
    if (attempt->marked)
        step_again(message, plan, PG_MARKED, &hf__sql_postgres_tx_mark, attempt->marker);
    step_timeouts(message);
    return HF_OK;
}

void hf__pg_drop_queue(pg_attempt *attempt)
{
    while (attempt->first) {
        pg_queued *next = attempt->first->next;
        free(attempt->first->sql);
        free(attempt->first->values);
        free(attempt->first);
        attempt->first = next;
    }
    attempt->last = NULL;
}

void hf__pg_step_queue(pg_message *message, pg_attempt *attempt, const hf__attempt_plan *plan)
{
    for (pg_queued *queued = attempt->first; queued; queued = queued->next)
        hf__pg_step_statement(message, plan, PG_QUEUED,
                              &(pg_statement){queued->sql, queued->count, queued->values, false});
    hf__pg_drop_queue(attempt);
}

/* Fails if it is not: whatever the callback did on the connection that it was lent. */
void hf__pg_step_same(pg_message *message, const pg_attempt *attempt)
{
    const char *params[] = {attempt->xid[0] ? attempt->xid : NULL};
    hf__pg_step(message, PG_SAME, pg_sql(&hf__sql_postgres_tx_same), 1, params);
}

static void step_release(pg_message *message, const hf__attempt_plan *plan)
{
    for (size_t i = 0; i < plan->release_count; i++) {
        const hf__claim *claim = &plan->release[i];
        char key[24], companion[24], channel[24];
        hf__pg_format(key, claim->key);
        hf__pg_format(companion, hf__pg_companion(claim->wake));
        hf__pg_channel(channel, claim->wake);
        const char *params[] = {key, companion, channel};
        hf__pg_step(message, PG_RELEASED, pg_sql(&hf__sql_postgres_tx_release_one), 3, params);
    }
}

static void step_settings_again(pg_message *message)
{
    hf__buf sql = {0};
    const char *params[] = {"0", "t"};
    if (hf__pg_connect_sql(message->session, message->session->checks_client, &sql))
        hf__pg_step(message, PG_RESET, sql.data, 2, params);
    else
        message->ok = false;
    hf__buf_free(&sql);
}

static void step_prepare(pg_message *message, const hf__sql *statement)
{
    hf__buf sql = {0};
    hf__buf_printf(&sql, "PREPARE %s AS %s", statement->name, pg_sql(statement));
    if (sql.broken)
        message->ok = false;
    else
        hf__pg_step(message, PG_RESET, sql.data, 0, NULL);
    hf__buf_free(&sql);
}

/*
 * DISCARD ALL in pieces, because that does not run in one message with others; and the session as
 * it was when it was opened. Locks that the session holds for us stay. Behind a transaction pooler
 * there are no settings and no prepared statements of ours.
 */
void hf__pg_step_reset(pg_message *message)
{
    static const char *const pieces[] = {"CLOSE ALL",         "SET SESSION AUTHORIZATION DEFAULT",
                                         "RESET ROLE",        "RESET ALL",
                                         "DEALLOCATE ALL",    "UNLISTEN *",
                                         "DISCARD SEQUENCES", "DISCARD TEMP"};
    const pg_session *session = message->session;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        hf__pg_step(message, PG_RESET, pieces[i], 0, NULL);
    if (session->tx_session)
        hf__pg_step(message, PG_RESET, pg_sql(&hf__sql_postgres_unlock_all), 0, NULL);
    if (!hf__pg_tx_prepares(pg_backend_of(session->base.backend)))
        return;
    step_settings_again(message);
    for (size_t i = 0; session->tx_session && i < PG_TX_PREPARED; i++)
        step_prepare(message, hf__pg_tx_prepared(pg_backend_of(session->base.backend), i));
}

void hf__pg_step_bound(pg_message *message, const hf__attempt_plan *plan)
{
    char ms[16];
    int left = hf__left_ms(plan->deadline);
    if (left < 0)
        return;
    (void)snprintf(ms, sizeof ms, "%d", left > 0 ? left : 1);
    step_again(message, plan, PG_QUEUED, &hf__sql_postgres_tx_bound, ms);
}

/*
 * What is left of the transaction's own work runs within its deadline, and COMMIT without one: a
 * timeout would end its wait for a standby and leave it in doubt. The warning that tells of such an
 * end must not be muted.
 */
static void step_before_commit(pg_message *message, const pg_attempt *attempt,
                               const hf__attempt_plan *plan)
{
    bool pooled = !hf__pg_tx_prepares(pg_backend_of(message->session->base.backend));
    if (attempt->lent)
        hf__pg_step_same(message, attempt);
    if (!plan->read_only && hf__left_ms(plan->deadline) >= 0) {
        hf__pg_step_bound(message, plan);
        hf__pg_step(message, PG_QUEUED, "SET CONSTRAINTS ALL IMMEDIATE", 0, NULL);
        hf__pg_step(message, PG_QUEUED, "SET LOCAL statement_timeout TO 0", 0, NULL);
    }
    if (attempt->lent || attempt->mutes || pooled)
        hf__pg_step(message, PG_QUEUED, "SET LOCAL client_min_messages TO warning", 0, NULL);
}

/* The server comes to what is behind COMMIT only if that has succeeded. A COMMIT of a transaction
 * in which a statement has failed would succeed as well, and roll back; but then an earlier step
 * has failed before it. */
void hf__pg_step_commit(pg_message *message, pg_attempt *attempt, const hf__attempt_plan *plan)
{
    step_before_commit(message, attempt, plan);
    hf__pg_step(message, PG_COMMITTED, "COMMIT", 0, NULL);
    attempt->commit_sent = true;
    step_release(message, plan);
    if (attempt->altered)
        hf__pg_step_reset(message);
}
