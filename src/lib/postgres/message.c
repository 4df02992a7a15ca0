#include "lib/postgres/message.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static void post(pg_attempt *attempt, pg_message *message, const char *sql, int count,
                 const char *const *values)
{
    message->ok = message->ok && PQsendQueryParams(attempt->session->conn, sql, count, NULL, values,
                                                   NULL, NULL, 0);
    message->sent++;
}

static void post_known(pg_attempt *attempt, pg_message *message, const hf__sql *statement,
                       int count, const char *const *values)
{
    if (!hf__pg_tx_prepares(pg_backend_of(attempt->base.backend))) {
        post(attempt, message, pg_sql(statement), count, values);
        return;
    }
    message->ok = message->ok && PQsendQueryPrepared(attempt->session->conn, statement->name, count,
                                                     values, NULL, NULL, 0);
    message->sent++;
}

void hf__pg_post_values(pg_attempt *attempt, pg_message *message, const char *sql, size_t count,
                        const hf_value *values, bool binary_rows)
{
    enum { MOST = 65535 };
    const char **texts = calloc(count + 1, sizeof *texts);
    int *lengths = calloc(count + 1, sizeof *lengths),
        *formats = calloc(count + 1, sizeof *formats);
    message->ok = message->ok && texts && lengths && formats && count <= MOST;
    for (size_t i = 0; message->ok && i < count; i++) {
        texts[i] = values[i].data;
        lengths[i] = (int)values[i].size;
        formats[i] = values[i].binary;
    }
    message->ok = message->ok && PQsendQueryParams(attempt->session->conn, sql, (int)count, NULL,
                                                   texts, lengths, formats, binary_rows);
    message->sent++;
    free(texts);
    free(lengths);
    free(formats);
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

static void post_bounds(pg_attempt *attempt, pg_message *message, int64_t deadline)
{
    char ms[16];
    int left = hf__left_ms(deadline);
    bool told = !hf__pg_tx_prepares(pg_backend_of(attempt->base.backend));
    if (left < 0 && !told)
        return;
    (void)snprintf(ms, sizeof ms, "%d", left < 0 ? 0 : (left > 0 ? left : 1));
    const char *params[] = {ms};
    post(attempt, message,
         pg_sql(told ? &hf__sql_postgres_tx_bounds_pooled : &hf__sql_postgres_tx_bounds), 1,
         params);
}

static void post_labels(pg_attempt *attempt, pg_message *message, const hf__attempt_plan *plan,
                        const pg_arrays *arrays)
{
    const char *needs_id = plan->read_only ? "f" : "t";
    bool single = plan->count == 1 && plan->claims->space == HF_BIGINT;
    char key[24];
    (void)snprintf(key, sizeof key, "%lld", (long long)plan->claims->key);
    const char *one[] = {key, needs_id};
    const char *set[] = {arrays->keys.data, arrays->spaces.data, needs_id};

    post(attempt, message, "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE", 0, NULL);
    post_bounds(attempt, message, plan->deadline);
    if (single)
        post_known(attempt, message, &hf__sql_postgres_tx_lock_one, 1, one);
    else
        post(attempt, message, pg_sql(&hf__sql_postgres_tx_lock), 2, set);
    message->keep_at = message->sent;
    if (single)
        post_known(attempt, message, &hf__sql_postgres_tx_keep_one, 1, one);
    else
        post(attempt, message, pg_sql(&hf__sql_postgres_tx_keep), 2, set);
    post(attempt, message, "COMMIT AND CHAIN", 0, NULL);
    post(attempt, message, isolation_sql(plan, false), 0, NULL);
    message->begun_at = message->sent;
    if (single)
        post_known(attempt, message, &hf__sql_postgres_tx_hand_over_one, 2, one);
    else
        post(attempt, message, pg_sql(&hf__sql_postgres_tx_hand_over), 3, set);
}

/* A session for locks names nothing by a path and does not wait for the disk; the caller's may.
 * Kept once the transaction is committed. */
static void post_settings(pg_attempt *attempt, pg_message *message)
{
    if (attempt->session->purpose != PG_FOR_LOCKS || attempt->session->is_callers)
        return;
    post(attempt, message, "SET search_path TO DEFAULT", 0, NULL);
    post(attempt, message, "SET synchronous_commit TO DEFAULT", 0, NULL);
}

hf_status hf__pg_post_opening(pg_attempt *attempt, pg_message *message,
                              const hf__attempt_plan *plan, hf_error *err)
{
    pg_arrays arrays = {0};
    hf_status status = HF_OK;
    if (attempt->open)
        return HF_OK;
    if (plan->count == 0) {
        post(attempt, message, isolation_sql(plan, true), 0, NULL);
        post_settings(attempt, message);
        message->begun_at = message->sent;
        post(attempt, message,
             pg_sql(plan->read_only ? &hf__sql_postgres_tx_begun_read_only
                                    : &hf__sql_postgres_tx_begun),
             0, NULL);
        return HF_OK;
    }
    status = hf__pg_key_arrays(&arrays, plan->claims, plan->count, err);
    if (status == HF_OK)
        post_labels(attempt, message, plan, &arrays);
    hf__pg_arrays_free(&arrays);
    return status;
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

void hf__pg_post_queue(pg_attempt *attempt, pg_message *message)
{
    for (pg_queued *queued = attempt->first; queued; queued = queued->next)
        hf__pg_post_values(attempt, message, queued->sql, queued->count, queued->values, false);
    hf__pg_drop_queue(attempt);
}

void hf__pg_post_commit(pg_attempt *attempt, pg_message *message)
{
    const char *params[] = {attempt->marker};
    if (attempt->marked)
        post(attempt, message, pg_sql(&hf__sql_postgres_tx_mark), 1, params);
    message->commit_at = message->sent;
    post(attempt, message, "COMMIT", 0, NULL);
    attempt->commit_sent = true;
}

/* Behind COMMIT: the server comes here only if that has succeeded. One that only rolls back,
 * because a statement of the caller's own had failed, succeeds as well, but not with the marker
 * before it. */
void hf__pg_post_release(pg_attempt *attempt, pg_message *message, const hf__attempt_plan *plan)
{
    for (size_t i = 0; attempt->marked && i < plan->release_count; i++) {
        const hf__claim *claim = &plan->release[i];
        char key[24], companion[24], channel[24];
        hf__pg_format(key, claim->key);
        hf__pg_format(companion, hf__pg_companion(claim->wake));
        hf__pg_channel(channel, claim->wake);
        const char *params[] = {key, companion, channel};
        post(attempt, message, pg_sql(&hf__sql_postgres_release_one), 3, params);
    }
}
