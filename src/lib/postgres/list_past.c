/* What was held or wanted, from the records. */
#include "lib/postgres/postgres.h"

#include <stdio.h>

#include "base/clock.h"
#include "lib/sql.h"

/* A month of events takes longer than what a session with locks may be kept waiting for. */
enum { DEADLINE_MS = 120000 };

enum column {
    C_SPACE,
    C_KEY,
    C_LABEL,
    C_TIMES,
    C_SEEN,
    C_SHARED,
    C_APPLICATION,
    C_HOST,
    C_PID,
};

/* Only session locks leave records: those of transactions end unseen. */
static hf_status show(const PGresult *result, int row, hf__view_sink *sink, hf_error *err)
{
    const hf_lock_view view = {
        .key = hf__pg_int(result, row, C_KEY),
        .space = hf__pg_int(result, row, C_SPACE) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .mode = hf__pg_bool(result, row, C_SHARED) ? HF_SHARED : HF_EXCLUSIVE,
        .ours = true,
        .session_known = true,
        .lifetime = HF_SESSION,
        .label = hf__pg_text(result, row, C_LABEL),
        .application = hf__pg_text(result, row, C_APPLICATION),
        .host = hf__pg_text(result, row, C_HOST),
        .pid = (int)hf__pg_int(result, row, C_PID),
        .age_ms = -1,
        .blocked_by = "",
        .idle_ms = -1,
        .seen_ms = hf__pg_int(result, row, C_SEEN),
        .times = hf__pg_int(result, row, C_TIMES),
    };
    return sink->add(sink, &view, err);
}

/* On a connection of its own, for as long as it takes. */
static hf_status ask(pg_backend *backend, int64_t since_ms, PGresult **result, hf_error *err)
{
    pg_seat *seat = NULL;
    char since[24];
    const char *params[] = {NULL};

    hf_status status = hf__pg_checkout(backend, true, hf__now_ms(), &seat, err);
    if (status != HF_OK)
        return status;
    (void)snprintf(since, sizeof since, "%lld", (long long)since_ms);
    if (since_ms >= 0)
        params[0] = since;
    status = hf__pg_query_until(seat, hf__sql_postgres_list_past, 1, params,
                                hf__deadline(DEADLINE_MS), result, err);
    hf__pg_checkin(seat);
    return status;
}

hf_status hf__pg_list_past(hf__backend *base, int64_t since_ms, hf__view_sink *sink, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    PGresult *result = NULL;

    hf_status status = hf__pg_require_schema(backend, "what was locked is recorded in it", err);
    if (status == HF_OK)
        status = ask(backend, since_ms, &result, err);
    for (int i = 0; status == HF_OK && i < PQntuples(result); i++)
        status = show(result, i, sink, err);
    PQclear(result);
    return status;
}
