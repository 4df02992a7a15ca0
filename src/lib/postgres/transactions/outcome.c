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
    END_BACKEND_MS = 500, /* for a server process that keeps labels, though the time is over */
    PAUSE_LOW_MS = 20,
    PAUSE_HIGH_MS = 100,
    /* a server process that waits for its client even after this has not got the COMMIT */
    COMMIT_ARRIVES_MS = 2000,
};

/*
 * Asking about one attempt. The deadline of the call bounds it, but least_ms are left for it in any
 * case; once the call is cancelled, they are all that is left.
 */
struct search {
    pg_backend *backend;
    const pg_attempt *attempt;
    pg_session *session; /* of its own; NULL: none is open */
    pg_patience patience;
    int least_ms;
    int64_t began;
};

static struct search start_search(const pg_attempt *attempt, int64_t deadline,
                                  const hf_cancel *cancel)
{
    pg_backend *backend = pg_backend_of(attempt->base.backend);
    int least_ms = attempt->commit_sent ? PG_FIND_OUT_MS : END_BACKEND_MS;
    int64_t shortest = hf__deadline(least_ms);
    int64_t longest = hf__deadline(attempt->commit_sent ? RECONNECT_MS : backend->ping_deadline_ms);
    int64_t until = deadline < longest ? deadline : longest;
    return (struct search){
        .backend = backend,
        .attempt = attempt,
        .patience = {.until = until > shortest ? until : shortest, .cancel = cancel},
        .least_ms = least_ms,
        .began = hf__now_ms(),
    };
}

static void hurry(struct search *search)
{
    int64_t shortest = hf__deadline(search->least_ms);
    if (search->patience.until > shortest)
        search->patience.until = shortest;
    search->patience.cancel = NULL;
}

static bool is_late(const struct search *search)
{
    return hf__left_ms(search->patience.until) == 0;
}

static void drop_session(struct search *search)
{
    if (search->session)
        hf__pg_discard(search->session);
    search->session = NULL;
}

static void pause_briefly(void)
{
    (void)hf__poll(NULL, 0, hf__jitter_ms(PAUSE_LOW_MS, PAUSE_HIGH_MS));
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

static hf_status ask_once(struct search *search, const char *sql, int count,
                          const char *const *params, PGresult **result, hf_error *err)
{
    hf_status status = search->session
                           ? HF_OK
                           : hf__pg_session_open_for(search->backend, PG_FOR_LOCKS,
                                                     &search->patience, &search->session, err);
    if (status == HF_OK)
        status = hf__pg_session_lock(search->session, &search->patience, err);
    if (status == HF_OK) {
        status = hf__pg_query(search->session, sql, count, params, result, err);
        hf__pg_session_unlock(search->session);
    }
    if (status == HF_UNREACHABLE || status == HF_INTERRUPTED)
        drop_session(search);
    return status;
}

/* Repeats the query until it gets an answer. */
static hf_status ask(struct search *search, const char *sql, int count, const char *const *params,
                     PGresult **result, hf_error *err)
{
    for (;;) {
        hf_status status = ask_once(search, sql, count, params, result, err);
        if (status == HF_INTERRUPTED)
            hurry(search);
        else if (!may_pass(status, err) || is_late(search))
            return status;
        else
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

/* Behind a pooler only a transaction that has told its id can be told from others. */
static bool can_be_found(const struct search *search)
{
    return search->attempt->xid[0] ||
           (search->attempt->backend_start[0] && !search->backend->pooled);
}

static void end_old_backend(struct search *search)
{
    hf_error ignored;
    const char *params[] = {search->attempt->backend_pid, id_of(search->attempt),
                            start_of(search->attempt)};
    bool gone = !can_be_found(search);
    while (!gone && !is_late(search)) {
        PGresult *result = NULL;
        hf_status status =
            ask(search, pg_sql(&hf__sql_postgres_tx_end_backend), 3, params, &result, &ignored);
        gone = status != HF_OK || PQntuples(result) == 0;
        PQclear(result);
        if (!gone)
            pause_briefly();
    }
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
static void end_if_forgotten(struct search *search)
{
    hf_error ignored;
    PGresult *result = NULL;
    const pg_attempt *attempt = search->attempt;
    const char *params[] = {attempt->backend_pid, id_of(attempt), start_of(attempt)};
    if (!attempt->backend_pid[0] || hf__now_ms() - search->began < COMMIT_ARRIVES_MS)
        return;
    (void)!ask_once(search, pg_sql(&hf__sql_postgres_tx_end_forgotten), 3, params, &result,
                    &ignored);
    PQclear(result);
}

/*
 * A commit that can be seen may be on this server alone: after a crash, or when its backend was
 * ended, nobody waits for the standby any more. A commit of our own does. False: the connection
 * broke over it, or somebody cancelled it, and the next server has to be asked from the start.
 */
static bool confirm(struct search *search, hf__attempt_outcome *outcome, hf_error *err)
{
    hf_error why;
    pg_session *session = search->session;
    hf__baton_take(&session->baton);
    session->patience = &search->patience;
    session->unreplicated = false;
    hf_status status = hf__pg_script(session, pg_sql(&hf__sql_postgres_tx_confirm),
                                     search->patience.until, NULL, &why);
    if (status == HF_OK && session->unreplicated)
        status = hf__fail(&why, HF_IN_DOUBT, "its standby does not have it");
    hf__pg_session_unlock(session);
    if (status == HF_INTERRUPTED)
        hurry(search);
    bool again = status == HF_INTERRUPTED || may_pass(status, &why);
    if (again)
        drop_session(search);
    *outcome =
        status == HF_OK ? HF__OUTCOME_COMMITTED : in_doubt(search->attempt, why.message, err);
    return !again || is_late(search);
}

/* While the server process lives, a missing marker means nothing: it may be about to commit. */
static hf__attempt_outcome by_marker(struct search *search, hf_error *err)
{
    const pg_attempt *attempt = search->attempt;
    const char *params[] = {attempt->marker, attempt->backend_pid[0] ? attempt->backend_pid : "0",
                            id_of(attempt), start_of(attempt)};
    hf__attempt_outcome outcome;
    bool was_gone = false;
    for (;;) {
        PGresult *result = NULL;
        hf_error why;
        hf_status status =
            ask(search, pg_sql(&hf__sql_postgres_tx_marker), 4, params, &result, &why);
        if (status != HF_OK)
            return in_doubt(attempt, why.message, err);
        bool marked = hf__pg_bool(result, 0, 0), alive = hf__pg_bool(result, 0, 1);
        PQclear(result);
        if (marked && confirm(search, &outcome, err))
            return outcome;
        if (marked)
            continue;
        if (was_gone)
            return HF__OUTCOME_NOT_COMMITTED;
        if (is_late(search))
            return in_doubt(attempt, "its backend is still at work", err);
        /* It may have committed after the query's snapshot and then ended: look once more. */
        was_gone = !alive;
        if (alive) {
            end_if_forgotten(search);
            pause_briefly();
        }
    }
}

static hf__attempt_outcome by_id(struct search *search, hf_error *err)
{
    const pg_attempt *attempt = search->attempt;
    const char *params[] = {attempt->xid};
    hf__attempt_outcome outcome;
    for (;;) {
        PGresult *result = NULL;
        hf_error why;
        hf_status status =
            ask(search, pg_sql(&hf__sql_postgres_tx_status), 1, params, &result, &why);
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
        if (strcmp(state, "committed") == 0 && confirm(search, &outcome, err))
            return outcome;
        if (strcmp(state, "committed") == 0)
            continue;
        if (strcmp(state, "in progress") != 0)
            return in_doubt(attempt, "the server does not remember it", err);
        if (is_late(search))
            return in_doubt(attempt, "its backend is still at work", err);
        end_if_forgotten(search);
        pause_briefly();
    }
}

hf__attempt_outcome hf__pg_attempt_outcome(hf__attempt *base, const hf__attempt_plan *plan,
                                           hf_error *err)
{
    const pg_attempt *attempt = (const pg_attempt *)base;
    /* Who was interrupted, as by hf_store_interrupt, is not kept for as long as its deadline. */
    int64_t deadline = attempt->interrupted ? hf__now_ms() : plan->deadline;
    struct search search = start_search(attempt, deadline, plan->cancel);
    hf__attempt_outcome outcome = HF__OUTCOME_NOT_COMMITTED;

    if (!attempt->commit_sent)
        end_old_backend(&search);
    else if (attempt->marked)
        outcome = by_marker(&search, err);
    else if (attempt->xid[0])
        outcome = by_id(&search, err);
    drop_session(&search);
    return outcome;
}

void hf__pg_attempt_end_backend(const pg_attempt *attempt)
{
    struct search search = start_search(attempt, hf__now_ms(), NULL);
    end_old_backend(&search);
    drop_session(&search);
}
