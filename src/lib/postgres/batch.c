/* Several statements in one message: one trip, one transaction. */
#include "lib/postgres/postgres.h"

#include "base/clock.h"

static hf_status broken(pg_session *session, bool timed_out, hf_error *err)
{
    hf__pg_session_fail(session, timed_out ? "no answer within the deadline" : NULL);
    return hf__fail(err, HF_UNREACHABLE, "%s", session->base.why.message);
}

/* The next answer, NULL between two; false when the connection is broken. */
static bool next_answer(pg_session *session, int64_t deadline, PGresult **answer, bool *timed_out)
{
    if (!hf__pg_await_result(session, deadline, timed_out))
        return false;
    *answer = hf__pg_next_result(session);
    return *answer || PQstatus(session->conn) == CONNECTION_OK;
}

static hf_status take_answers(pg_session *session, pg_step *steps, size_t count, int64_t deadline,
                              hf_error *err)
{
    hf_status status = HF_OK;
    size_t at = 0;
    for (;;) {
        bool timed_out = false;
        PGresult *answer = NULL;
        if (!next_answer(session, deadline, &answer, &timed_out))
            return broken(session, timed_out, err);
        if (!answer)
            continue;
        ExecStatusType state = PQresultStatus(answer);
        if (state == PGRES_TUPLES_OK && at < count) {
            steps[at++].result = answer;
            continue;
        }
        if (hf__pg_is_error(answer) && status == HF_OK)
            status = hf__pg_fail_result(answer, err);
        PQclear(answer);
        at++;
        if (state == PGRES_PIPELINE_SYNC)
            return status;
    }
}

hf_status hf__pg_batch(pg_session *session, pg_step *steps, size_t count, hf_error *err)
{
    int64_t deadline = hf__deadline(pg_backend_of(session->base.backend)->ping_deadline_ms);
    hf_status status = hf__pg_ready(session, err);
    if (status != HF_OK)
        return status;
    bool sent = PQenterPipelineMode(session->conn) == 1;
    for (size_t i = 0; i < count; i++)
        sent = sent && PQsendQueryParams(session->conn, steps[i].sql, steps[i].count, NULL,
                                         steps[i].values, NULL, NULL, 0);
    if (!sent || !PQpipelineSync(session->conn) || !hf__pg_flush(session, deadline))
        return broken(session, false, err);
    status = take_answers(session, steps, count, deadline, err);
    if (atomic_load(&session->base.lost))
        return status;
    (void)PQexitPipelineMode(session->conn);
    atomic_store(&session->used_ms, hf__now_ms());
    return status;
}
