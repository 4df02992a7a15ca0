/*
 * A lock on a session of its own in one message: the session is opened, the lock taken, and what
 * has to be known under it is read. Each statement has a snapshot of its own, so that what stands
 * behind the lock sees all that the last holder committed.
 */
#include "lib/postgres/postgres.h"

#include <stdlib.h>

enum { OWN_STEPS = 4 }; /* besides the questions */

/* What a message consists of: the place of each step, -1 none. */
struct taking {
    pg_step *steps;
    size_t count;
    int opened_at, generation_at, label_at, taken_at, questions_at;

    pg_opening opening;
    pg_arrays arrays;
    char patience[16], key[24];
    const char *label_params[4], *key_params[1];
    const char **question_params;
};

static int add(struct taking *taking, const char *sql, int count, const char *const *values)
{
    taking->steps[taking->count] = (pg_step){.sql = sql, .count = count, .values = values};
    return (int)taking->count++;
}

static void add_opening(struct taking *taking, const pg_backend *backend)
{
    hf__pg_opening(backend, &taking->opening);
    taking->opened_at =
        add(taking, pg_sql(&hf__sql_postgres_open_session), 4, taking->opening.params);
    taking->generation_at = add(taking, pg_sql(&hf__sql_postgres_tx_generation), 0, NULL);
}

static hf_status add_label(struct taking *taking, pg_backend *backend, const hf__claim *claim,
                           hf_error *err)
{
    if (!claim->label || hf__pg_label_is_confirmed(backend, claim))
        return HF_OK;
    hf_status status = hf__pg_label_arrays(&taking->arrays, claim, 1, err);
    if (status != HF_OK)
        return status;
    hf__pg_label_patience(backend, taking->patience);
    taking->label_params[0] = taking->arrays.keys.data;
    taking->label_params[1] = taking->arrays.spaces.data;
    taking->label_params[2] = taking->arrays.labels.data;
    taking->label_params[3] = taking->patience;
    taking->label_at = add(taking, pg_sql(&hf__sql_postgres_knows_label), 4, taking->label_params);
    return HF_OK;
}

static void add_lock(struct taking *taking, const hf__claim *claim)
{
    hf__pg_format(taking->key, claim->key);
    taking->key_params[0] = taking->key;
    taking->taken_at = add(taking,
                           claim->mode == HF_SHARED ? pg_sql(&hf__sql_postgres_try_one_shared_token)
                                                    : pg_sql(&hf__sql_postgres_try_one_token),
                           1, taking->key_params);
}

static void add_questions(struct taking *taking, const hf__request *request)
{
    const char **param = taking->question_params;
    taking->questions_at = (int)taking->count;
    for (size_t i = 0; i < request->question_count; i++) {
        const hf__question *question = request->questions[i];
        const char **first = param;
        for (size_t j = 0; j < question->count; j++)
            *param++ = question->values[j].data;
        (void)add(taking, question->sql, (int)question->count, first);
    }
}

static hf_status make_room(struct taking *taking, const hf__request *request, hf_error *err)
{
    size_t params = 1;
    for (size_t i = 0; i < request->question_count; i++)
        params += request->questions[i]->count;
    taking->steps = calloc(OWN_STEPS + request->question_count, sizeof *taking->steps);
    taking->question_params = calloc(params, sizeof(char *));
    return taking->steps && taking->question_params ? HF_OK : hf__no_memory(err);
}

static hf_status compose(struct taking *taking, pg_backend *backend, const hf__request *request,
                         bool opens, hf_error *err)
{
    *taking = (struct taking){.opened_at = -1, .generation_at = -1, .label_at = -1, .taken_at = -1};
    hf_status status = make_room(taking, request, err);
    if (status != HF_OK)
        return status;
    if (opens)
        add_opening(taking, backend);
    status = add_label(taking, backend, request->claims, err);
    add_lock(taking, request->claims);
    add_questions(taking, request);
    return status;
}

static void dissolve(struct taking *taking)
{
    for (size_t i = 0; i < taking->count; i++)
        PQclear(taking->steps[i].result);
    free(taking->steps);
    free(taking->question_params);
    hf__pg_arrays_free(&taking->arrays);
}

static const PGresult *answer(const struct taking *taking, int at)
{
    return at >= 0 ? taking->steps[at].result : NULL;
}

static hf_status hand_rows_over(struct taking *taking, hf__request *request, hf_error *err)
{
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < request->question_count; i++) {
        pg_step *step = &taking->steps[(size_t)taking->questions_at + i];
        status = hf__pg_rows(step->result, &request->questions[i]->rows, err);
        step->result = NULL;
    }
    return status;
}

/* The session is open by now, and the lock held or not. */
static hf_status read_answers(pg_session *session, struct taking *taking, hf__request *request,
                              hf_error *err)
{
    const PGresult *taken = answer(taking, taking->taken_at);
    const PGresult *known = answer(taking, taking->label_at);
    hf_status status = HF_OK;

    if (known && hf__pg_bool(known, 0, 0))
        hf__pg_label_confirm(pg_backend_of(session->base.backend), request->claims);
    else if (known)
        status = hf__pg_confirm_labels(session, request->claims, 1, err);
    if (status != HF_OK)
        return status;
    if (!hf__pg_bool(taken, 0, 0)) {
        request->blocked = 0;
        return HF_NOT_ACQUIRED;
    }
    request->token = session->token_epoch + hf__pg_int(taken, 0, 1);
    return hand_rows_over(taking, request, err);
}

static hf_status read_opening(pg_session *session, const struct taking *taking, hf_error *err)
{
    if (taking->opened_at < 0)
        return HF_OK;
    hf__pg_keep_generation(session, answer(taking, taking->generation_at));
    session->purpose = PG_FOR_LOCKS;
    return hf__pg_opened(session, answer(taking, taking->opened_at), err);
}

static hf_status try_on(pg_session *session, hf__request *request, bool opens, hf_error *err)
{
    struct taking taking;
    hf_status status = compose(&taking, pg_backend_of(session->base.backend), request, opens, err);
    if (status == HF_OK)
        status = hf__pg_batch(session, taking.steps, taking.count, err);
    if (status == HF_OK)
        status = read_opening(session, &taking, err);
    if (status == HF_OK)
        status = read_answers(session, &taking, request, err);
    dissolve(&taking);
    for (size_t i = 0; status != HF_OK && i < request->question_count; i++)
        hf__question_forget(request->questions[i]);
    if (status == HF_OK) {
        request->session = &session->base;
        atomic_fetch_add(&session->base.holds, 1);
    } else if (status != HF_NOT_ACQUIRED && !opens) {
        hf__pg_undo(session, request->claims, 1);
    }
    return status;
}

static hf_status try_held(hf__request *request, hf_error *err)
{
    pg_session *session = NULL;
    hf_status status = hf__pg_checkout_held(request->session, &session, err);
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
static hf_status try_first(pg_backend *backend, hf__request *request, bool *done, hf_error *err)
{
    pg_session *session = NULL;
    hf_status status = hf__pg_checkout_first(backend, &session, err);
    if (status != HF_OK)
        return status;
    status = try_on(session, request, true, err);
    *done = status == HF_OK || status == HF_NOT_ACQUIRED;
    if (!*done && !atomic_load(&session->base.lost))
        hf__pg_session_fail(session, "it could not be opened in one message");
    hf__pg_checkin(session);
    return *done ? status : HF_OK;
}

hf_status hf__pg_try_in_one(pg_backend *backend, hf__request *request, bool *done, hf_error *err)
{
    bool fits = request->count == 1 && request->claims->space == HF_BIGINT &&
                atomic_load(&backend->base.records);
    *done = false;
    if (!fits)
        return HF_OK;
    if (request->session) {
        *done = true;
        return try_held(request, err);
    }
    return try_first(backend, request, done, err);
}
