#include "lib/postgres/message.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/vec.h"

void hf__pg_message_start(pg_message *message, pg_session *session)
{
    *message = (pg_message){.session = session, .ok = PQenterPipelineMode(session->conn) == 1};
}

void hf__pg_message_free(pg_message *message)
{
    free(message->tags);
    message->tags = NULL;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void note(pg_message *message, pg_tag tag, bool sent)
{
    message->ok =
        sent && hf__grow(&message->tags, &message->room, message->count + 1, sizeof *message->tags);
    if (message->ok)
        message->tags[message->count++] = tag;
}

void hf__pg_step(pg_message *message, pg_tag tag, const char *sql, int count,
                 const char *const *values)
{
    note(message, tag,
         message->ok && PQsendQueryParams(message->session->conn, sql, count, NULL, values, NULL,
                                          NULL, 0) == 1);
}

void hf__pg_step_prepared(pg_message *message, pg_tag tag, const hf__sql *statement, int count,
                          const char *const *values)
{
    note(message, tag,
         message->ok && PQsendQueryPrepared(message->session->conn, statement->name, count, values,
                                            NULL, NULL, 0) == 1);
}

void hf__pg_step_prepare(pg_message *message, const char *name, const char *sql)
{
    note(message, PG_PREPARED,
         message->ok && PQsendPrepare(message->session->conn, name, sql, 0, NULL) == 1);
}

/* One of sql and name is NULL. */
static void step_values(pg_message *message, pg_tag tag, const char *sql, const char *name,
                        size_t count, const hf_value *values, bool binary_rows)
{
    enum { MOST = 65535 };
    PGconn *conn = message->session->conn;
    const char **texts = calloc(count + 1, sizeof *texts);
    int *lengths = calloc(count + 1, sizeof *lengths),
        *formats = calloc(count + 1, sizeof *formats);
    bool ok = message->ok && texts && lengths && formats && count <= MOST;
    for (size_t i = 0; ok && i < count; i++) {
        texts[i] = values[i].data;
        lengths[i] = (int)values[i].size;
        formats[i] = values[i].binary;
    }
    if (ok)
        ok = (name ? PQsendQueryPrepared(conn, name, (int)count, texts, lengths, formats,
                                         binary_rows)
                   : PQsendQueryParams(conn, sql, (int)count, NULL, texts, lengths, formats,
                                       binary_rows)) == 1;
    note(message, tag, ok);
    free(texts);
    free(lengths);
    free(formats);
}

void hf__pg_step_values(pg_message *message, pg_tag tag, const char *sql, size_t count,
                        const hf_value *values, bool binary_rows)
{
    step_values(message, tag, sql, NULL, count, values, binary_rows);
}

void hf__pg_step_named(pg_message *message, pg_tag tag, const char *name, size_t count,
                       const hf_value *values, bool binary_rows)
{
    step_values(message, tag, NULL, name, count, values, binary_rows);
}

bool hf__pg_message_send(pg_message *message, int64_t deadline)
{
    message->ok = message->ok && PQpipelineSync(message->session->conn) == 1 &&
                  hf__pg_flush(message->session, deadline);
    return message->ok;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* NULL when the connection is broken. libpq puts a NULL of its own between two answers. */
static PGresult *next_answer(pg_message *message, const pg_reader *reader)
{
    PGresult *answer = NULL;
    while (!answer) {
        if (!reader->wait(reader->arg))
            return NULL;
        answer = hf__pg_next_result(message->session);
        if (!answer && PQstatus(message->session->conn) != CONNECTION_OK)
            return NULL;
    }
    return answer;
}

static void hand_on(pg_message *message, const pg_reader *reader, pg_tag tag, PGresult *answer)
{
    bool failed = hf__pg_is_error(answer);
    if (!failed && PQresultStatus(answer) != PGRES_PIPELINE_ABORTED) {
        reader->take(reader->arg, tag, answer);
        return;
    }
    if (failed && message->status == HF_OK) {
        message->status = hf__pg_fail_result(answer, &message->failure);
        message->failed_at = tag;
    }
    PQclear(answer);
}

static bool is_copy(const PGresult *answer)
{
    ExecStatusType state = PQresultStatus(answer);
    return state == PGRES_COPY_IN || state == PGRES_COPY_OUT || state == PGRES_COPY_BOTH;
}

bool hf__pg_message_read(pg_message *message, const pg_reader *reader)
{
    size_t at = 0;
    for (;;) {
        PGresult *answer = next_answer(message, reader);
        if (!answer)
            return false;
        if (PQresultStatus(answer) == PGRES_PIPELINE_SYNC) {
            PQclear(answer);
            (void)PQexitPipelineMode(message->session->conn);
            atomic_store(&message->session->used_ms, hf__now_ms());
            return true;
        }
        if (is_copy(answer)) { /* it has no end here: one would read it for ever */
            PQclear(answer);
            return false;
        }
        /* What fails at the very end counts for the last step. */
        size_t step = at < message->count ? at++ : message->count - 1;
        hand_on(message, reader, message->tags[step], answer);
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

struct asked {
    pg_message *message;
    int64_t deadline;
    const pg_reader *reader;
};

static bool wait_for_answer(void *arg)
{
    const struct asked *asked = arg;
    return hf__pg_await_result(asked->message->session, asked->deadline,
                               &asked->message->timed_out);
}

static void pass_on(void *arg, pg_tag tag, PGresult *answer)
{
    const struct asked *asked = arg;
    asked->reader->take(asked->reader->arg, tag, answer);
}

static hf_status give_up(pg_message *message, hf_error *err)
{
    pg_session *session = message->session;
    bool impatient = session->impatient;
    session->impatient = false;
    hf__pg_session_fail(session, message->timed_out ? "no answer within the deadline" : NULL);
    hf_status status = HF_OK;
    if (impatient)
        status =
            hf__pg_patience_check(pg_backend_of(session->base.backend), session->patience, err);
    return status == HF_OK ? hf__fail(err, HF_UNREACHABLE, "%s", session->base.why.message)
                           : status;
}

hf_status hf__pg_message_ask(pg_message *message, const pg_reader *reader, hf_error *err)
{
    const pg_backend *backend = pg_backend_of(message->session->base.backend);
    struct asked asked = {message, hf__deadline(backend->ping_deadline_ms), reader};
    const pg_reader within = {wait_for_answer, pass_on, &asked};
    if (!hf__pg_message_send(message, asked.deadline) || !hf__pg_message_read(message, &within))
        return give_up(message, err);
    if (message->status != HF_OK && err)
        *err = message->failure;
    return message->status;
}
