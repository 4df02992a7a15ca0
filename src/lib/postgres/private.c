/*
 * A lock in one message, on a session of its own or under a label that is new to the process: the
 * session is opened, the label looked up, the lock taken, and what has to be known under it read.
 * Each statement has a snapshot of its own, so that what stands behind the lock sees all that the
 * last holder committed.
 */
#include "lib/postgres/message.h"

/* One try, and what the server answered: NULL where it was not asked or has not got so far. */
struct taking {
    pg_session *session;
    hf__request *request;
    PGresult *opened, *generation, *label, *taken;
    size_t answered; /* questions */
    hf_status status;
    hf_error *err;
};

/* ---- the message ----------------------------------------------------------------------------- */

static void step_opening(pg_message *message, const pg_backend *backend)
{
    pg_opening opening = {.params = {NULL}};
    hf__pg_opening(backend, &opening);
    hf__pg_step(message, PG_OPENED, pg_sql(&hf__sql_postgres_open_session), 4, opening.params);
    hf__pg_step(message, PG_GENERATION, pg_sql(&hf__sql_postgres_tx_generation), 0, NULL);
}

static hf_status step_label(pg_message *message, pg_backend *backend, const hf__claim *claim,
                            hf_error *err)
{
    pg_arrays arrays = {0};
    char patience[16];
    if (!claim->label || hf__pg_label_is_confirmed(backend, claim))
        return HF_OK;
    hf_status status = hf__pg_label_arrays(&arrays, claim, 1, err);
    if (status == HF_OK) {
        hf__pg_label_patience(backend, patience);
        const char *params[] = {arrays.keys.data, arrays.spaces.data, arrays.labels.data, patience};
        hf__pg_step(message, PG_LABEL, pg_sql(&hf__sql_postgres_knows_label), 4, params);
    }
    hf__pg_arrays_free(&arrays);
    return status;
}

static void step_lock(pg_message *message, const hf__claim *claim)
{
    char key[24];
    hf__pg_format(key, claim->key);
    const char *params[] = {key};
    hf__pg_step(message, PG_TAKEN,
                claim->mode == HF_SHARED ? pg_sql(&hf__sql_postgres_try_one_shared_token)
                                         : pg_sql(&hf__sql_postgres_try_one_token),
                1, params);
}

static hf_status compose(pg_message *message, pg_backend *backend, const hf__request *request,
                         bool opens, hf_error *err)
{
    if (opens)
        step_opening(message, backend);
    hf_status status = step_label(message, backend, request->claims, err);
    if (status != HF_OK)
        return status;
    step_lock(message, request->claims);
    for (size_t i = 0; i < request->question_count; i++) {
        const hf__question *question = request->questions[i];
        hf__pg_step_values(message, PG_QUESTION, question->sql, question->count, question->values,
                           false);
    }
    return HF_OK;
}

/* ---- its answers ----------------------------------------------------------------------------- */

static void take_rows(struct taking *taking, PGresult *answer)
{
    hf__question *question = taking->request->questions[taking->answered++];
    hf_status status = hf__pg_rows(answer, &question->rows, taking->err);
    if (taking->status == HF_OK)
        taking->status = status;
}

static void take_answer(void *arg, pg_tag tag, PGresult *answer)
{
    struct taking *taking = arg;
    if (tag == PG_OPENED)
        taking->opened = answer;
    else if (tag == PG_GENERATION)
        taking->generation = answer;
    else if (tag == PG_LABEL)
        taking->label = answer;
    else if (tag == PG_TAKEN)
        taking->taken = answer;
    else
        take_rows(taking, answer);
}

/* Sends the message and reads its answers. */
static hf_status ask_server(struct taking *taking, bool opens)
{
    pg_backend *backend = pg_backend_of(taking->session->base.backend);
    const pg_reader reader = {.take = take_answer, .arg = taking};
    pg_message message;
    hf_status status = hf__pg_ready(taking->session, taking->err);
    if (status != HF_OK)
        return status;
    hf__pg_message_start(&message, taking->session);
    status = compose(&message, backend, taking->request, opens, taking->err);
    if (status == HF_OK)
        status = hf__pg_message_ask(&message, &reader, taking->err);
    else
        (void)PQexitPipelineMode(taking->session->conn);
    hf__pg_message_free(&message);
    return status;
}

static hf_status read_opening(struct taking *taking)
{
    if (!taking->opened)
        return HF_OK;
    hf__pg_keep_generation(taking->session, taking->generation);
    taking->session->purpose = PG_FOR_LOCKS;
    return hf__pg_opened(taking->session, taking->opened, taking->err);
}

/* The session is open by now, and the lock held or not. */
static hf_status read_lock(struct taking *taking)
{
    pg_session *session = taking->session;
    hf__request *request = taking->request;
    hf_status status = HF_OK;
    if (taking->label && hf__pg_bool(taking->label, 0, 0))
        hf__pg_label_confirm(pg_backend_of(session->base.backend), request->claims);
    else if (taking->label)
        status = hf__pg_confirm_labels(session, request->claims, 1, taking->err);
    if (status != HF_OK)
        return status;
    if (!hf__pg_bool(taking->taken, 0, 0)) {
        request->blocked = 0;
        return HF_NOT_ACQUIRED;
    }
    status = hf__pg_refuse_leased(session, request, taking->taken, true, taking->err);
    if (status == HF_NOT_ACQUIRED)
        hf__pg_undo(session, request->claims, 1);
    if (status != HF_OK)
        return status;
    request->token = hf__pg_token(session, taking->taken, 1);
    if (taking->opened && session->lifted)
        status = hf__pg_next_token(session, &request->token, taking->err);
    return status == HF_OK ? taking->status : status;
}

/* opens: the session is registered by the same message. */
static hf_status try_on(pg_session *session, hf__request *request, bool opens, hf_error *err)
{
    struct taking taking = {
        .session = session,
        .request = request,
        .err = err,
    };
    hf_status status = ask_server(&taking, opens);
    if (status == HF_OK)
        status = read_opening(&taking);
    if (status == HF_OK)
        status = read_lock(&taking);
    PQclear(taking.opened);
    PQclear(taking.generation);
    PQclear(taking.label);
    PQclear(taking.taken);
    for (size_t i = 0; status != HF_OK && i < request->question_count; i++)
        hf__question_forget(request->questions[i]);
    if (status == HF_OK) {
        request->session = &session->base;
        atomic_fetch_add(&session->base.holds, 1);
    } else if (status != HF_NOT_ACQUIRED && !opens) {
        (void)hf__pg_clean_up(session, request->claims, 1, 0);
    }
    return status;
}

/* ---- on which session ------------------------------------------------------------------------ */

hf_status hf__pg_try_unknown(pg_session *session, hf__request *request, bool *done, hf_error *err)
{
    const hf__claim *claim = request->claims;
    pg_backend *backend = pg_backend_of(session->base.backend);
    *done = request->count == 1 && claim->space == HF_BIGINT && claim->label &&
            atomic_load(&backend->base.records) && session->token_epoch &&
            atomic_load(&session->base.holds) == 0 && !hf__pg_label_is_confirmed(backend, claim);
    return *done ? try_on(session, request, false, err) : HF_OK;
}

static hf_status try_held(hf__request *request, const pg_patience *patience, hf_error *err)
{
    pg_session *session = NULL;
    hf_status status = hf__pg_checkout_held(request->session, patience, &session, err);
    if (status != HF_OK)
        return status;
    status = try_on(session, request, false, err);
    if (status == HF_UNREACHABLE && atomic_load(&session->base.lost)) {
        status = HF_LOST;
        if (err)
            *err = session->base.why;
    }
    hf__pg_checkin(session);
    return status;
}

/* Where it fails the session goes, with all that it may hold, and the steps are taken one by one:
 * each knows what to say of its failure. */
static hf_status try_first(pg_backend *backend, hf__request *request, const pg_patience *patience,
                           bool *done, hf_error *err)
{
    pg_session *session = NULL;
    hf_status status = hf__pg_checkout_first(backend, patience, &session, err);
    if (status != HF_OK)
        return status;
    status = try_on(session, request, true, err);
    *done = status == HF_OK || status == HF_NOT_ACQUIRED;
    if (!*done && !atomic_load(&session->base.lost))
        hf__pg_session_fail(session, "it could not be opened in one message");
    hf__pg_checkin(session);
    return *done ? status : HF_OK;
}

hf_status hf__pg_try_in_one(pg_backend *backend, hf__request *request, const pg_patience *patience,
                            bool *done, hf_error *err)
{
    bool fits = request->count == 1 && request->claims->space == HF_BIGINT &&
                atomic_load(&backend->base.records);
    *done = false;
    if (!fits)
        return HF_OK;
    if (request->session) {
        *done = true;
        return try_held(request, patience, err);
    }
    return try_first(backend, request, patience, done, err);
}
