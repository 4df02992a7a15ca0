/* Several statements in one message: one trip, one transaction. */
#include "lib/postgres/postgres.h"

#include "base/clock.h"

static hf_status broken(pg_seat *seat, bool timed_out, hf_error *err)
{
    hf__pg_seat_fail(seat, timed_out ? "no answer within the deadline" : NULL);
    return hf__fail(err, HF_UNREACHABLE, "%s", seat->base.why.message);
}

/* The next answer, NULL between two; false when the connection is broken. */
static bool next_answer(pg_seat *seat, int64_t deadline, PGresult **answer, bool *timed_out)
{
    if (!hf__pg_await_result(seat, deadline, timed_out))
        return false;
    *answer = hf__pg_next_result(seat);
    return *answer || PQstatus(seat->conn) == CONNECTION_OK;
}

static hf_status take_answers(pg_seat *seat, pg_step *steps, size_t count, int64_t deadline,
                              hf_error *err)
{
    hf_status status = HF_OK;
    size_t at = 0;
    for (;;) {
        bool timed_out = false;
        PGresult *answer = NULL;
        if (!next_answer(seat, deadline, &answer, &timed_out))
            return broken(seat, timed_out, err);
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

hf_status hf__pg_batch(pg_seat *seat, pg_step *steps, size_t count, hf_error *err)
{
    int64_t deadline = hf__deadline(pg_backend_of(seat->base.backend)->ping_deadline_ms);
    hf_status status = hf__pg_ready(seat, err);
    if (status != HF_OK)
        return status;
    bool sent = PQenterPipelineMode(seat->conn) == 1;
    for (size_t i = 0; i < count; i++)
        sent = sent && PQsendQueryParams(seat->conn, steps[i].sql, steps[i].count, NULL,
                                         steps[i].values, NULL, NULL, 0);
    if (!sent || !PQpipelineSync(seat->conn) || !hf__pg_flush(seat, deadline))
        return broken(seat, false, err);
    status = take_answers(seat, steps, count, deadline, err);
    if (atomic_load(&seat->base.lost))
        return status;
    (void)PQexitPipelineMode(seat->conn);
    atomic_store(&seat->used_ms, hf__now_ms());
    return status;
}
