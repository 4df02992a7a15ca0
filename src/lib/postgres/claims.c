/* Trying, renewing and releasing keys on a session, each in one round trip. */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static bool is_single(const hf__claim *claims, size_t count)
{
    return count == 1 && claims->space == HF_BIGINT;
}

/* Are these only bigint keys whose wake is the key itself? Then one binary array is enough. */
static bool are_plain(const hf__claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (claims[i].space != HF_BIGINT || claims[i].wake != claims[i].key)
            return false;
    return true;
}

static const char *shared_text(const hf__claim *claims)
{
    return claims->mode == HF_SHARED ? "t" : "f";
}

static bool keeps_records(const pg_session *session)
{
    return atomic_load(&session->base.backend->records) && session->token_epoch;
}

hf_status hf__pg_sessions_allowed(const pg_backend *backend, hf_error *err)
{
    if (!backend->pooled || backend->session_pool)
        return HF_OK;
    hf_status status = hf__fail(err, HF_CONFIG,
                                "%s is behind a connection pooler: a session lock would leak to "
                                "whoever gets the server connection next",
                                backend->base.name);
    hf__hint(err, "use a lease (--lease, HF_LEASE) or transaction locks, connect to PostgreSQL "
                  "directly, or say --session-pool (session_pool) if the pooler is in session "
                  "mode");
    return status;
}

static hf_status run_plain(pg_session *session, const hf__sql *statement, const hf__claim *claims,
                           size_t count, PGresult **result, hf_error *err)
{
    hf__buf keys = {0};
    hf__pg_binary_keys(&keys, claims, count);
    hf_status status = keys.broken ? hf__no_memory(err)
                                   : hf__pg_run_keys(session, statement, &keys,
                                                     claims->mode == HF_SHARED, result, err);
    hf__buf_free(&keys);
    return status;
}

/* The keys are free by now, so a failure does no harm: listeners have a tick, too. */
static void tell_listeners(pg_session *session, const hf__claim *claims, size_t count)
{
    pg_arrays arrays = {0};
    hf_error ignored;
    hf_status status = hf__pg_wake_arrays(&arrays, claims, count, &ignored);
    const char *params[] = {arrays.companions.data, arrays.channels.data};
    if (status == HF_OK)
        (void)!hf__pg_run(session, &hf__sql_postgres_tell_listeners, 2, params, NULL, &ignored);
    hf__pg_arrays_free(&arrays);
}

static hf_status unlock_one(pg_session *session, const hf__claim *claim, PGresult **freed,
                            hf_error *err)
{
    int32_t companion = hf__pg_companion(claim->wake);
    return hf__pg_run_key(session,
                          claim->mode == HF_SHARED ? &hf__sql_postgres_release_one_shared
                                                   : &hf__sql_postgres_release_one,
                          claim->key, &companion, freed, err);
}

static hf_status unlock_set(pg_session *session, const hf__claim *claims, size_t count,
                            PGresult **freed, hf_error *err)
{
    pg_arrays arrays = {0};
    if (are_plain(claims, count))
        return run_plain(session, &hf__sql_postgres_release_keys, claims, count, freed, err);
    hf_status status = hf__pg_key_arrays(&arrays, claims, count, err);
    const char *params[] = {arrays.keys.data, arrays.spaces.data, shared_text(claims)};
    if (status == HF_OK)
        status = hf__pg_run(session, &hf__sql_postgres_release_set, 3, params, freed, err);
    hf__pg_arrays_free(&arrays);
    return status;
}

/* *missing: how many of them were not held. */
static hf_status unlock(pg_session *session, const hf__claim *claims, size_t count,
                        int64_t *missing, hf_error *err)
{
    PGresult *freed = NULL;
    bool single = is_single(claims, count);
    hf_status status = single ? unlock_one(session, claims, &freed, err)
                              : unlock_set(session, claims, count, &freed, err);
    if (status != HF_OK)
        return status;
    bool heard = single ? !hf__pg_bool(freed, 0, 0) : hf__pg_bool(freed, 0, 1);
    *missing = single ? PQgetisnull(freed, 0, 0) : hf__pg_int(freed, 0, 0);
    PQclear(freed);
    if (heard && single)
        hf__pg_pass(pg_backend_of(session->base.backend), claims->wake);
    if (heard)
        tell_listeners(session, claims, count);
    return HF_OK;
}

/* Those who wait for the key are not told that it is free: it is leased. */
static hf_status refuse_leased(pg_session *session, hf__request *request, const PGresult *taken,
                               bool records, hf_error *err)
{
    PGresult *freed = NULL;
    hf_status status = hf__pg_refuse_leased(session, request, taken, records, err);
    if (status == HF_NOT_ACQUIRED) {
        status = is_single(request->claims, request->count)
                     ? unlock_one(session, request->claims, &freed, err)
                     : unlock_set(session, request->claims, request->count, &freed, err);
        PQclear(freed);
        status = status == HF_OK ? HF_NOT_ACQUIRED : status;
    }
    return status;
}

static hf_status try_one(pg_session *session, hf__request *request, hf_error *err)
{
    static const hf__sql *const statements[2][2] = {
        {&hf__sql_postgres_try_one, &hf__sql_postgres_try_one_shared},
        {&hf__sql_postgres_try_one_token, &hf__sql_postgres_try_one_shared_token}};
    PGresult *taken = NULL;
    bool records = keeps_records(session);

    hf_status status = hf__pg_run_key(session, statements[records][request->claims->mode],
                                      request->claims->key, NULL, &taken, err);
    if (status != HF_OK)
        return status;
    if (hf__pg_bool(taken, 0, 0)) {
        request->token = records ? hf__pg_token(session, taken, 1) : 0;
        status = refuse_leased(session, request, taken, records, err);
    } else {
        request->blocked = 0;
        status = HF_NOT_ACQUIRED;
    }
    PQclear(taken);
    return status;
}

static hf_status ask_for_set(pg_session *session, const hf__request *request, bool records,
                             PGresult **taken, hf_error *err)
{
    pg_arrays arrays = {0};
    if (are_plain(request->claims, request->count))
        return run_plain(session,
                         records ? &hf__sql_postgres_try_keys_token : &hf__sql_postgres_try_keys,
                         request->claims, request->count, taken, err);
    hf_status status = hf__pg_key_arrays(&arrays, request->claims, request->count, err);
    const char *params[] = {arrays.keys.data, arrays.spaces.data, shared_text(request->claims)};
    if (status == HF_OK)
        status = hf__pg_run(session,
                            records ? &hf__sql_postgres_try_set_token : &hf__sql_postgres_try_set,
                            3, params, taken, err);
    hf__pg_arrays_free(&arrays);
    return status;
}

static hf_status try_set(pg_session *session, hf__request *request, hf_error *err)
{
    PGresult *taken = NULL;
    int64_t missing = 0;
    bool records = keeps_records(session);

    hf_status status = ask_for_set(session, request, records, &taken, err);
    if (status != HF_OK)
        return status;
    int64_t blocked = hf__pg_int(taken, 0, 0);
    if (blocked == 0 && records)
        request->token = hf__pg_token(session, taken, 1);
    if (blocked == 0)
        status = refuse_leased(session, request, taken, records, err);
    PQclear(taken);
    if (blocked == 0)
        return status;
    request->blocked = (size_t)blocked - 1;
    if (request->blocked > 0)
        status = unlock(session, request->claims, request->blocked, &missing, err);
    return status == HF_OK ? HF_NOT_ACQUIRED : status;
}

static void undo_script(hf__buf *sql, const hf__claim *claims, size_t count)
{
    pg_arrays arrays = {0};
    hf__buf keys = {0}, spaces = {0};
    hf_error ignored;
    if (hf__pg_key_arrays(&arrays, claims, count, &ignored) != HF_OK)
        sql->broken = true;
    hf__buf_printf(&keys, "'%s'", arrays.keys.data);
    hf__buf_printf(&spaces, "'%s'", arrays.spaces.data);
    const hf__sql_part parts[] = {{"keys", keys.data},
                                  {"spaces", spaces.data},
                                  {"shared", claims->mode == HF_SHARED ? "true" : "false"},
                                  {0}};
    if (keys.broken || spaces.broken)
        sql->broken = true;
    if (!sql->broken)
        hf__sql_expand(sql, pg_sql(&hf__sql_postgres_undo), parts);
    hf__buf_free(&keys);
    hf__buf_free(&spaces);
    hf__pg_arrays_free(&arrays);
}

/* The caller may be out of patience, but the server answers. */
static size_t undo(pg_session *session, const char *sql)
{
    const pg_backend *backend = pg_backend_of(session->base.backend);
    const pg_patience *patience = session->patience;
    PGresult *freed = NULL;
    hf_error ignored;
    session->patience = NULL;
    hf_status status =
        hf__pg_script(session, sql, hf__deadline(backend->ping_deadline_ms), &freed, &ignored);
    session->patience = patience;
    size_t found = status == HF_OK ? (size_t)hf__pg_int(freed, 0, 0) : 0;
    if (status != HF_OK)
        hf__pg_session_fail(session, "it could not be cleaned up after an error");
    PQclear(freed);
    return found;
}

/* An abandoned statement is still under way: what it does is undone when it has ended. */
static void undo_later(pg_session *session, const char *sql)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    pthread_mutex_lock(&backend->mutex);
    if (session->waiting_session)
        hf__pg_errand(session, pg_sql(&hf__sql_postgres_end_abandoned));
    hf__pg_errand(session, sql);
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_wake(&backend->base);
}

size_t hf__pg_clean_up(pg_session *session, const hf__claim *claims, size_t count, size_t own)
{
    hf__buf sql = {0};
    size_t found = 0;
    unsigned holds = atomic_load(&session->base.holds);
    bool is_pooled = session->waiting_session || session->private_session;
    /* Only sets that waited and private locks lock a shared key once more on the same session, and
     * pg_locks does not show how often. */
    bool may_be_anothers = claims->mode == HF_SHARED && is_pooled && holds > own;
    bool is_spare = session->answer_due && is_pooled && holds == own;
    if (atomic_load(&session->base.lost))
        return 0;
    undo_script(&sql, claims, count);
    /* Better lose the session than keep a key locked that nobody knows of. */
    if (sql.broken || may_be_anothers || is_spare)
        hf__pg_session_fail(session, "it could not be cleaned up after an error");
    else if (session->answer_due)
        undo_later(session, sql.data);
    else
        found = undo(session, sql.data);
    hf__buf_free(&sql);
    return found;
}

void hf__pg_undo(pg_session *session, const hf__claim *claims, size_t count)
{
    hf__buf sql = {0};
    if (atomic_load(&session->base.lost))
        return;
    undo_script(&sql, claims, count);
    if (sql.broken)
        hf__pg_session_fail(session, "it could not be cleaned up after an error");
    else
        (void)undo(session, sql.data);
    hf__buf_free(&sql);
}

/* The schema may have been installed after this session was opened. */
hf_status hf__pg_start_recording(pg_session *session, hf_error *err)
{
    bool late = atomic_load(&session->base.backend->records) && !session->token_epoch;
    return late ? hf__pg_session_register(session, err) : HF_OK;
}

static hf_status try_on_session(pg_session *session, hf__request *request, hf_error *err)
{
    hf_status status = hf__pg_start_recording(session, err);
    if (status != HF_OK)
        return status;
    status = is_single(request->claims, request->count) ? try_one(session, request, err)
                                                        : try_set(session, request, err);
    if (status == HF_OK)
        request->session = &session->base;
    else if (status != HF_NOT_ACQUIRED)
        (void)hf__pg_clean_up(session, request->claims, request->count, 0);
    return status;
}

hf_status hf__pg_try_now(pg_backend *backend, hf__request *request, const pg_patience *patience,
                         hf_error *err)
{
    pg_session *shared_session = NULL;
    hf_status status = hf__pg_shared_session_for(backend, patience, &shared_session, err);
    if (status != HF_OK)
        return status;
    status = hf__pg_sessions_allowed(backend, err);
    if (status == HF_OK)
        status = hf__pg_session_lock(shared_session, patience, err);
    if (status == HF_OK) {
        bool done = false;
        status = hf__pg_try_unknown(shared_session, request, &done, err);
        if (!done)
            status = hf__pg_confirm_labels(shared_session, request->claims, request->count, err);
        if (!done && status == HF_OK)
            status = try_on_session(shared_session, request, err);
        if (!done && status == HF_OK)
            atomic_fetch_add(&shared_session->base.holds, (unsigned)request->count);
        hf__pg_session_unlock(shared_session);
    }
    hf__pg_unpin(shared_session);
    return status;
}

static hf_status try_on_own(pg_backend *backend, hf__request *request, const pg_patience *patience,
                            hf_error *err)
{
    pg_session *session = NULL;
    bool done = false;
    hf_status status = hf__pg_try_in_one(backend, request, patience, &done, err);
    if (status != HF_OK || done)
        return status;
    status = request->session ? hf__pg_checkout_held(request->session, patience, &session, err)
                              : hf__pg_checkout(backend, true, PG_IF_IDLE, patience, &session, err);
    if (status != HF_OK)
        return status;
    status = hf__pg_confirm_labels(session, request->claims, request->count, err);
    if (status == HF_OK)
        status = try_on_session(session, request, err);
    if (status == HF_OK)
        atomic_fetch_add(&session->base.holds, (unsigned)request->count);
    hf__pg_checkin(session);
    return status;
}

/* The shared session may have died unnoticed. If it holds nothing, nobody has to be told. */
hf_status hf__pg_try_claims(hf__backend *base, hf__request *request, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    const pg_patience patience = hf__pg_patience(backend, request);
    hf_status (*try_on)(pg_backend *, hf__request *, const pg_patience *, hf_error *) =
        request->private_session ? try_on_own : hf__pg_try_now;
    if (request->lifetime == HF_LEASE)
        return hf__pg_try_leases(backend, request, &patience, err);
    if (hf__pg_has_passed(backend, request)) {
        request->blocked = 0;
        return HF_NOT_ACQUIRED;
    }
    hf_status status = hf__pg_patience_check(backend, &patience, err);
    if (status == HF_OK)
        status = try_on(backend, request, &patience, err);
    if (status == HF_UNREACHABLE && hf__pg_patience_check(backend, &patience, NULL) == HF_OK)
        status = try_on(backend, request, &patience, err);
    return status;
}

static hf_status not_held(const hf__claim *claim, hf_error *err)
{
    char name[200];
    hf_status status = hf__fail(err, HF_LOST, "%s was not held any more when it was released",
                                hf__claim_name(name, sizeof name, claim));
    hf__hint(err, "somebody unlocked it in this session; treat the protected work as unprotected");
    return status;
}

/* Without the baton, which a thread has that gets no answer. Not in another's transaction, which
 * may be open on any session but the shared one. False: it cannot be. */
static bool release_later(pg_session *session, const hf__claim *claims, size_t count)
{
    hf__buf sql = {0};
    if (session->waiting_session || session->private_session)
        return false;
    undo_script(&sql, claims, count);
    bool made = !sql.broken;
    if (made)
        undo_later(session, sql.data);
    hf__buf_free(&sql);
    return made;
}

hf_status hf__pg_release_claims(hf__session *base, const hf__claim *claims, size_t count,
                                bool brief, hf_error *err)
{
    const pg_patience patience = {.until = hf__deadline(PG_BRIEF_MS)};
    pg_session *session = pg_session_of(base);
    int64_t missing = 0;

    if (base->lifetime == HF_LEASE)
        return hf__pg_release_leases(base, claims, count, brief, err);
    hf_status status = hf__pg_session_lock(session, brief ? &patience : NULL, err);
    if (status != HF_OK && release_later(session, claims, count))
        return HF_OK;
    if (status != HF_OK)
        hf__baton_take(&session->baton);
    status = unlock(session, claims, count, &missing, err);
    /* The error does not tell which keys are free. If all were held until now, none was lost. */
    if (status != HF_OK && hf__pg_clean_up(session, claims, count, count) == count)
        status = HF_OK;
    if (status != HF_OK && atomic_load(&base->lost)) {
        if (err)
            *err = base->why;
        status = HF_LOST;
    }
    hf__pg_session_unlock(session);
    if (status == HF_OK && missing > 0)
        return not_held(claims, err);
    return status;
}

hf_status hf__pg_next_token(pg_session *session, int64_t *token, hf_error *err)
{
    PGresult *next = NULL;
    hf_status status = hf__pg_run(session, &hf__sql_postgres_next_token, 0, NULL, &next, err);
    if (status == HF_OK)
        *token = hf__pg_token(session, next, 0);
    PQclear(next);
    return status;
}

hf_status hf__pg_renew_claims(hf__session *base, hf__request *request, hf_error *err)
{
    enum { LONGEST_MS = 1000 }; /* on a silent server the caller tries again, or gives up */
    int64_t longest = hf__deadline(LONGEST_MS);
    pg_patience patience = hf__pg_patience(pg_backend_of(base->backend), request);
    pg_session *session = pg_session_of(base);
    if (patience.until > longest)
        patience.until = longest;
    request->token = 0;
    hf_status status = hf__pg_session_lock(session, &patience, err);
    if (status != HF_OK)
        return status;
    /* Pings even without tokens: a key on a dead session must not be handed over. */
    status = keeps_records(session)
                 ? hf__pg_next_token(session, &request->token, err)
                 : hf__pg_query(session, pg_sql(&hf__sql_postgres_ping), 0, NULL, NULL, err);
    hf__pg_session_unlock(session);
    return status;
}

/* A session that has just answered is not asked again: keys that change hands in the process all
 * the time need no trip for it, and a set needs one. */
hf_status hf__pg_confirm_claims(hf__session *base, const hf__claim *claims, size_t count,
                                hf_error *err)
{
    enum { JUST_NOW_MS = 5 };
    pg_session *session = pg_session_of(base);
    (void)claims, (void)count;
    if (base->lifetime == HF_LEASE) /* its clock tells */
        return hf__session_is_lost(base) ? HF_LOST : HF_OK;
    hf__baton_take(&session->baton);
    hf_status status = atomic_load(&base->lost) ? HF_LOST : HF_OK;
    if (status == HF_OK && hf__now_ms() - atomic_load(&session->used_ms) > JUST_NOW_MS)
        status = hf__pg_query(session, pg_sql(&hf__sql_postgres_ping), 0, NULL, NULL, err);
    hf__baton_give(&session->baton);
    return status == HF_UNREACHABLE ? HF_LOST : status;
}
