/* Installing the schema, and the schedules of periodic jobs. */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/*
 * Several processes may install at once: install_begin makes them take turns, and the later ones
 * find the work done. Each migration ends with a definition of holdfast.schema_version() that
 * returns its number.
 */

enum { INSTALL_DEADLINE_MS = 60000 };

static const char *const migrations[] = {hf__sql_postgres_schema_001, hf__sql_postgres_schema_002,
                                         hf__sql_postgres_schema_003, hf__sql_postgres_schema_004,
                                         hf__sql_postgres_schema_005, hf__sql_postgres_schema_006,
                                         hf__sql_postgres_schema_007};

_Static_assert(sizeof migrations / sizeof *migrations == HF_SCHEMA_VERSION,
               "one migration per schema version");

static hf_status not_ours(hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "a schema 'holdfast' exists that Holdfast did not make");
    hf__hint(err, "rename it, or use another database");
    return status;
}

static hf_status installed_version(pg_session *session, int *version, hf_error *err)
{
    PGresult *result = NULL;
    hf_status status =
        hf__pg_query(session, pg_sql(&hf__sql_postgres_has_schema), 0, NULL, &result, err);
    bool exists = status == HF_OK && hf__pg_bool(result, 0, 0);
    bool ours = status == HF_OK && hf__pg_bool(result, 0, 1);
    PQclear(result);
    *version = 0;
    if (status != HF_OK || !exists)
        return status;
    if (!ours)
        return not_ours(err);
    status = hf__pg_query(session, pg_sql(&hf__sql_postgres_schema_version), 0, NULL, &result, err);
    if (status == HF_OK) {
        *version = (int)hf__pg_int(result, 0, 0);
        PQclear(result);
    }
    return status;
}

static hf_status explain_privilege(pg_session *session, hf_status status, hf_error *err)
{
    if (status == HF_CONFIG && err && strcmp(err->sqlstate, "42501") == 0)
        hf__hint(err,
                 "installing needs CREATE on the database: run 'holdfast init' as its owner, then "
                 "SELECT holdfast.grant_use('%s')",
                 PQuser(session->conn));
    return status;
}

static hf_status migrate(pg_session *session, int version, hf_error *err)
{
    return hf__pg_script(session, migrations[version - 1], hf__deadline(INSTALL_DEADLINE_MS), NULL,
                         err);
}

static hf_status install_on(pg_session *session, int *from, int *to, hf_error *err)
{
    hf_error ignored;
    int64_t deadline = hf__deadline(INSTALL_DEADLINE_MS);
    hf_status status =
        hf__pg_script(session, pg_sql(&hf__sql_postgres_install_begin), deadline, NULL, err);
    if (status == HF_OK)
        status = installed_version(session, from, err);
    if (status == HF_OK && *from > HF_SCHEMA_VERSION)
        status = hf__pg_refuse_newer(pg_backend_of(session->base.backend), *from, err);
    *to = *from;
    while (status == HF_OK && *to < HF_SCHEMA_VERSION) {
        status = migrate(session, *to + 1, err);
        if (status == HF_OK)
            ++*to;
    }
    if (status == HF_OK)
        status = hf__pg_script(session, "COMMIT", deadline, NULL, err);
    else if (!atomic_load(&session->base.lost))
        (void)!hf__pg_script(session, "ROLLBACK", deadline, NULL, &ignored);
    return explain_privilege(session, status, err);
}

/* Other open sessions start to record at their next acquire: see hf__pg_start_recording. */
static hf_status start_recording(pg_backend *backend, pg_session *shared_session, hf_error *err)
{
    if (backend->records_wanted == HF_RECORDS_OFF || (backend->pooled && !backend->session_pool))
        return HF_OK;
    backend->schema = HF_SCHEMA_VERSION;
    backend->schema_usable = true;
    hf_status status =
        shared_session->token_epoch ? HF_OK : hf__pg_session_register(shared_session, err);
    if (status == HF_OK)
        atomic_store(&backend->base.records, true);
    if (status == HF_OK)
        atomic_store(&backend->base.history, true);
    if (status == HF_OK)
        atomic_store(&backend->base.readable, true);
    return status;
}

hf_status hf__pg_init(hf__backend *base, int *from, int *to, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    pg_session *shared_session = NULL;
    hf_status status = hf__pg_shared_session(backend, &shared_session, err);
    if (status != HF_OK)
        return status;
    hf__baton_take(&shared_session->baton);
    status = install_on(shared_session, from, to, err);
    if (status == HF_OK)
        status = start_recording(backend, shared_session, err);
    hf__baton_give(&shared_session->baton);
    hf__pg_unpin(shared_session);
    return status;
}

static hf_status schedule_left(pg_backend *backend, const char *const *params, int64_t *wait_ms,
                               hf_error *err)
{
    PGresult *result = NULL;
    hf_status status =
        hf__pg_ask(backend, pg_sql(&hf__sql_postgres_schedule_left), 2, params, &result, err);
    if (status == HF_OK && PQntuples(result) > 0)
        *wait_ms = hf__pg_int(result, 0, 0);
    PQclear(result);
    return status;
}

static hf_status end_claim(pg_backend *backend, int backend_pid, hf_error *err)
{
    PGresult *result = NULL;
    char pid[16], process[16], patience[16];
    (void)snprintf(pid, sizeof pid, "%d", backend_pid);
    (void)snprintf(process, sizeof process, "%d", (int)backend->pid);
    (void)snprintf(patience, sizeof patience, "%d", backend->ping_deadline_ms / 2 + 1);
    const char *params[] = {pid, backend->host, process, patience};
    hf_status status =
        hf__pg_ask(backend, pg_sql(&hf__sql_postgres_end_claim), 4, params, &result, err);
    if (status == HF_OK && PQntuples(result) > 0 && !hf__pg_bool(result, 0, 0))
        status = hf__fail(err, HF_UNREACHABLE, "its backend cannot be ended");
    PQclear(result);
    return status;
}

/*
 * The start was written, but COMMIT had no answer, most likely because a synchronous standby hangs.
 * The job does not run then, so the start must not count as a run.
 */
static hf_status take_back(pg_backend *backend, const char *label, const PGresult *claim,
                           int backend_pid, hf_error *err)
{
    hf_error why;
    const char *params[] = {label, hf__pg_text(claim, 0, 0),
                            PQgetisnull(claim, 0, 1) ? NULL : hf__pg_text(claim, 0, 1)};
    hf_status status = end_claim(backend, backend_pid, &why);
    if (status == HF_OK)
        status =
            hf__pg_ask(backend, pg_sql(&hf__sql_postgres_unclaim_schedule), 3, params, NULL, &why);
    if (status != HF_OK) {
        status = hf__fail(err, HF_IN_DOUBT, "the start of '%s' may or may not be recorded: %s",
                          label, why.message);
        hf__hint(err, "it may count as a run although the job has not run");
        return status;
    }
    status = hf__fail(err, HF_UNREACHABLE,
                      "the start of '%s' could not be recorded: COMMIT had no answer", label);
    hf__hint(err, "it is still due; look whether a synchronous standby of the server hangs");
    return status;
}

/* On a session of its own: one that waits for a standby for too long is lost, and the shared one
 * has the job's lock. */
static hf_status claim_on(pg_session *session, const char *const *params, bool *due, hf_error *err)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    int64_t deadline = hf__deadline(backend->ping_deadline_ms);
    PGresult *claim = NULL;
    int backend_pid = session->base.session_id;

    hf_status status = hf__pg_script(session, "BEGIN", deadline, NULL, err);
    if (status == HF_OK)
        status =
            hf__pg_query(session, pg_sql(&hf__sql_postgres_claim_schedule), 2, params, &claim, err);
    *due = status == HF_OK && PQntuples(claim) > 0;
    if (status == HF_OK && hf__pg_script(session, "COMMIT", hf__deadline(backend->ping_deadline_ms),
                                         NULL, err) != HF_OK)
        status = *due ? take_back(backend, params[0], claim, backend_pid, err) : HF_OK;
    PQclear(claim);
    return status;
}

hf_status hf__pg_claim_schedule(hf__backend *base, const char *label, int64_t period_ms, bool *due,
                                int64_t *wait_ms, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    pg_session *session = NULL;
    char period[24];
    (void)snprintf(period, sizeof period, "%lld", (long long)period_ms);
    const char *params[] = {label, period};

    hf_status status = hf__pg_require_schema(backend, "schedules are recorded in the store", err);
    *wait_ms = 0;
    if (status == HF_OK)
        status = hf__pg_session_open(backend, PG_FOR_LOCKS, &session, err);
    if (status != HF_OK)
        return status;
    hf__baton_take(&session->baton);
    status = claim_on(session, params, due, err);
    hf__baton_give(&session->baton);
    hf__pg_discard(session);
    return status == HF_OK && !*due ? schedule_left(backend, params, wait_ms, err) : status;
}
