/*
 * What became of a transaction whose connection broke. If COMMIT was never sent, it did not commit;
 * its server process may live on and hold the labels, so we end it. If COMMIT was sent, the
 * transaction's marker row tells, once its server process is gone. Without a marker, the status of
 * the transaction's id tells, but only if the server has not crashed since: after a crash, ids that
 * were lost are used again for other transactions.
 */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum {
    RECONNECT_MS = 60000, /* a restart after a crash, or a promotion, may take long */
    AT_LEAST_MS = 10000,
    END_BACKEND_MS = 2000, /* for a server process that keeps labels, though the time is over */
    PAUSE_LOW_MS = 20,
    PAUSE_HIGH_MS = 100,
    /* a server process that waits for its client even after this has not got the COMMIT */
    COMMIT_ARRIVES_MS = 2000,
};

static void pause_briefly(void)
{
    int ms = hf__jitter_ms(PAUSE_LOW_MS, PAUSE_HIGH_MS);
    struct timespec time = {.tv_nsec = ms * 1000000L};
    (void)nanosleep(&time, NULL);
}

/*
 * True if another try may succeed: the server is down, a standby before its promotion, or
 * overloaded, or somebody cancelled the query.
 */
static bool may_pass(hf_status status, const hf_error *err)
{
    return status != HF_OK && (hf__may_pass(err) || strncmp(err->sqlstate, "57", 2) == 0 ||
                               strncmp(err->sqlstate, "53", 2) == 0);
}

/*
 * Runs one query on a session of its own, and repeats it until it gets an answer. patience bounds
 * connecting and the query where the server is silent; NULL: they may take their time.
 */
static hf_status ask_with(pg_backend *backend, pg_session **session, int64_t deadline,
                          const pg_patience *patience, const char *sql, int count,
                          const char *const *params, PGresult **result, hf_error *err)
{
    hf_status status;
    for (;;) {
        status = *session ? HF_OK
                          : hf__pg_session_open_for(backend, PG_FOR_LOCKS, patience, session, err);
        if (status == HF_OK)
            status = hf__pg_session_lock(*session, patience, err);
        if (status == HF_OK) {
            status = hf__pg_query(*session, sql, count, params, result, err);
            hf__pg_session_unlock(*session);
        }
        if (status == HF_UNREACHABLE && *session) {
            hf__pg_unpin(*session);
            *session = NULL;
        }
        if (!may_pass(status, err) || hf__left_ms(deadline) == 0)
            return status;
        pause_briefly();
    }
}

static hf_status ask_until(pg_backend *backend, pg_session **session, int64_t deadline,
                           const char *sql, int count, const char *const *params, PGresult **result,
                           hf_error *err)
{
    return ask_with(backend, session, deadline, NULL, sql, count, params, result, err);
}

/* Finds the server process by pid and transaction id: the pid may have been reused. */
static void end_old_backend(pg_backend *backend, pg_session **session, const pg_attempt *attempt,
                            int64_t deadline)
{
    hf_error ignored;
    const char *params[] = {attempt->backend_pid, attempt->xid};
    const pg_patience patience = {.until = deadline};
    bool gone = !attempt->xid[0];
    while (!gone && hf__left_ms(deadline) != 0) {
        PGresult *result = NULL;
        hf_status status =
            ask_with(backend, session, deadline, &patience,
                     pg_sql(&hf__sql_postgres_tx_end_backend), 2, params, &result, &ignored);
        gone = status != HF_OK || PQntuples(result) == 0;
        PQclear(result);
        if (!gone)
            pause_briefly();
    }
}

static const char *id_of(const pg_attempt *attempt)
{
    return attempt->xid[0] ? attempt->xid : "0";
}

/* Only used when the transaction's id is not known; else "". */
static const char *start_of(const pg_attempt *attempt)
{
    return attempt->xid[0] ? "" : attempt->backend_start;
}

static hf__attempt_outcome in_doubt(const pg_attempt *attempt, const char *why, hf_error *err)
{
    (void)!hf__fail(err, HF_IN_DOUBT, "transaction %s may or may not have committed: %s",
                    attempt->xid[0] ? attempt->xid : "(id unknown)", why);
    hf__hint(err, attempt->marked ? "look for its effects before doing it again"
                                  : "look for its effects before doing it again; with the schema "
                                    "installed ('holdfast init') a marker row tells");
    return HF__OUTCOME_IN_DOUBT;
}

/*
 * Ends a server process that never got our COMMIT and waits for it on a connection that is dead on
 * our side only. It would keep the labels until the server notices. One that is at work, or waits
 * for a standby, is left alone.
 */
static void end_if_forgotten(pg_backend *backend, pg_session **session, const pg_attempt *attempt,
                             int64_t began)
{
    hf_error ignored;
    PGresult *result = NULL;
    const char *params[] = {attempt->backend_pid, id_of(attempt), start_of(attempt)};
    if (!attempt->backend_pid[0] || hf__now_ms() - began < COMMIT_ARRIVES_MS)
        return;
    (void)!ask_until(backend, session, hf__now_ms(), pg_sql(&hf__sql_postgres_tx_end_forgotten), 3,
                     params, &result, &ignored);
    PQclear(result);
}

/*
 * A commit that can be seen may be on this server alone: after a crash, or when its backend was
 * ended, nobody waits for the standby any more. A commit of our own does. False: the connection
 * broke over it, or somebody cancelled it, and *session is NULL; the next server has to be asked
 * from the start.
 */
static bool confirm(pg_session **session, const pg_attempt *attempt, int64_t deadline,
                    hf__attempt_outcome *outcome, hf_error *err)
{
    hf_error why;
    hf__baton_take(&(*session)->baton);
    (*session)->unreplicated = false;
    hf_status status =
        hf__pg_script(*session, pg_sql(&hf__sql_postgres_tx_confirm), deadline, NULL, &why);
    if (status == HF_OK && (*session)->unreplicated)
        status = hf__fail(&why, HF_IN_DOUBT, "its standby does not have it");
    hf__baton_give(&(*session)->baton);
    if (may_pass(status, &why)) {
        hf__pg_discard(*session);
        *session = NULL;
    }
    *outcome = status == HF_OK ? HF__OUTCOME_COMMITTED : in_doubt(attempt, why.message, err);
    return *session || hf__left_ms(deadline) == 0;
}

/* While the server process lives, a missing marker means nothing: it may be about to commit. */
static hf__attempt_outcome by_marker(pg_backend *backend, pg_session **session,
                                     const pg_attempt *attempt, int64_t deadline, hf_error *err)
{
    const char *params[] = {attempt->marker, attempt->backend_pid[0] ? attempt->backend_pid : "0",
                            id_of(attempt), start_of(attempt)};
    hf__attempt_outcome outcome;
    bool was_gone = false;
    int64_t began = hf__now_ms();
    for (;;) {
        PGresult *result = NULL;
        hf_error why;
        hf_status status = ask_until(backend, session, deadline,
                                     pg_sql(&hf__sql_postgres_tx_marker), 4, params, &result, &why);
        if (status != HF_OK)
            return in_doubt(attempt, why.message, err);
        bool marked = hf__pg_bool(result, 0, 0), alive = hf__pg_bool(result, 0, 1);
        PQclear(result);
        if (marked && confirm(session, attempt, deadline, &outcome, err))
            return outcome;
        if (marked)
            continue;
        if (was_gone)
            return HF__OUTCOME_NOT_COMMITTED;
        if (hf__left_ms(deadline) == 0)
            return in_doubt(attempt, "its backend is still at work", err);
        /* It may have committed after the query's snapshot and then ended: look once more. */
        was_gone = !alive;
        if (alive) {
            end_if_forgotten(backend, session, attempt, began);
            pause_briefly();
        }
    }
}

static hf__attempt_outcome by_id(pg_backend *backend, pg_session **session,
                                 const pg_attempt *attempt, int64_t deadline, hf_error *err)
{
    const char *params[] = {attempt->xid};
    hf__attempt_outcome outcome;
    int64_t began = hf__now_ms();
    for (;;) {
        PGresult *result = NULL;
        hf_error why;
        hf_status status = ask_until(backend, session, deadline,
                                     pg_sql(&hf__sql_postgres_tx_status), 1, params, &result, &why);
        if (status == HF_DATABASE && strcmp(why.sqlstate, "22023") == 0)
            return HF__OUTCOME_NOT_COMMITTED; /* "in the future": lost in a crash of the server */
        if (status != HF_OK)
            return in_doubt(attempt, why.message, err);
        char state[32];
        (void)snprintf(state, sizeof state, "%s", hf__pg_text(result, 0, 0));
        bool same =
            attempt->generation[0] && strcmp(hf__pg_text(result, 0, 1), attempt->generation) == 0;
        PQclear(result);
        if (strcmp(state, "aborted") == 0)
            return HF__OUTCOME_NOT_COMMITTED;
        if (strcmp(state, "committed") == 0 && !same)
            return in_doubt(attempt, "the server has crashed or been replaced since", err);
        if (strcmp(state, "committed") == 0 && confirm(session, attempt, deadline, &outcome, err))
            return outcome;
        if (strcmp(state, "committed") == 0)
            continue;
        if (strcmp(state, "in progress") != 0)
            return in_doubt(attempt, "the server does not remember it", err);
        if (hf__left_ms(deadline) == 0)
            return in_doubt(attempt, "its backend is still at work", err);
        end_if_forgotten(backend, session, attempt, began);
        pause_briefly();
    }
}

/* The caller's deadline has passed, or will: but what is known a moment later is not in doubt. */
static int64_t patience(const hf__attempt_plan *plan)
{
    int64_t longest = hf__deadline(RECONNECT_MS), shortest = hf__deadline(AT_LEAST_MS);
    int64_t deadline = plan->deadline < longest ? plan->deadline : longest;
    return deadline > shortest ? deadline : shortest;
}

hf__attempt_outcome hf__pg_attempt_outcome(hf__attempt *base, const hf__attempt_plan *plan,
                                           hf_error *err)
{
    const pg_attempt *attempt = (const pg_attempt *)base;
    pg_backend *backend = pg_backend_of(base->backend);
    pg_session *session = NULL;
    int64_t deadline = patience(plan);
    hf__attempt_outcome outcome = HF__OUTCOME_NOT_COMMITTED;

    if (!attempt->commit_sent) {
        int64_t shortest = hf__deadline(END_BACKEND_MS);
        int64_t wanted = plan->deadline < deadline ? plan->deadline : deadline;
        end_old_backend(backend, &session, attempt, wanted > shortest ? wanted : shortest);
    } else if (attempt->marked)
        outcome = by_marker(backend, &session, attempt, deadline, err);
    else if (attempt->xid[0])
        outcome = by_id(backend, &session, attempt, deadline, err);
    if (session)
        hf__pg_discard(session);
    return outcome;
}
