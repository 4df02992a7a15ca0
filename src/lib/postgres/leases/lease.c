/*
 * Leases: locks that no session holds. They are rows of the schema (schema_006.sql), taken and
 * released by single statements on whatever connection is at hand. The engine sees a tenure where
 * it sees a session elsewhere: what is held on it is lost with it. A tenure is renewed as a whole
 * (leases/renew.c), and lost when no renewal is confirmed in time.
 *
 * Nothing here trusts an answer that did not come. A take or a release whose answer was lost may
 * leave a row behind, which is swept with the renewals: they tell the server what is held.
 */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fibers/fiber.h"
#include "base/vec.h"

enum {
    TICK_LOW_MS = 200, /* behind a pooler nobody is told of a release */
    TICK_HIGH_MS = 500,
    ASK_TICK_MS = 50, /* who asks is alone, and the holder about to release */
    TENURE_OVER = -1, /* as take_leases answers */
    LEASES_SINCE = 6, /* the schema that has leases */
};

/* Also where a program of another version takes them: its schema excludes us as ours does. */
bool hf__pg_may_be_leased(const pg_backend *backend)
{
    return backend->schema >= LEASES_SINCE && backend->schema_readable;
}

bool hf__pg_is_transaction_pooled(const pg_backend *backend)
{
    return backend->pooled && !backend->session_pool;
}

/* ---- tenures --------------------------------------------------------------------------------- */

static bool make_id(char id[TENURE_ID_SIZE])
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

void hf__pg_free_tenure(pg_tenure *tenure)
{
    if (tenure)
        free(tenure->takes);
    free(tenure);
}

/* backend->mutex is held. The caller frees what it returns, without the mutex. */
static pg_tenure *unlink_if_useless(pg_backend *backend, pg_tenure *tenure)
{
    pg_tenure **at = &backend->tenures;
    if (!hf__session_is_lost(&tenure->base) || tenure->pins > 0 ||
        atomic_load(&tenure->base.holds) > 0)
        return NULL;
    while (*at != tenure)
        at = &(*at)->next;
    *at = tenure->next;
    return tenure;
}

void hf__pg_unpin_tenure(pg_tenure *tenure)
{
    pg_backend *backend = pg_backend_of(tenure->base.backend);
    pthread_mutex_lock(&backend->mutex);
    tenure->pins--;
    pg_tenure *useless = unlink_if_useless(backend, tenure);
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_free_tenure(useless);
}

void hf__pg_leave_tenure(hf__session *session, unsigned keys)
{
    pg_backend *backend = pg_backend_of(session->backend);
    pthread_mutex_lock(&backend->mutex);
    atomic_fetch_sub(&session->holds, keys);
    pg_tenure *useless = unlink_if_useless(backend, pg_tenure_of(session));
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_free_tenure(useless);
}

/* The one for leases of this length, pinned; a new one if it is over, or there is none. */
static pg_tenure *pin_tenure(pg_backend *backend, int lease_ms)
{
    pthread_mutex_lock(&backend->mutex);
    pg_tenure *tenure = backend->tenures;
    while (tenure && (tenure->lease_ms != lease_ms || hf__session_is_lost(&tenure->base)))
        tenure = tenure->next;
    if (!tenure && (tenure = calloc(1, sizeof *tenure))) {
        if (!make_id(tenure->id)) {
            free(tenure);
            tenure = NULL;
        } else {
            tenure->base.backend = &backend->base;
            tenure->base.lifetime = HF_LEASE;
            tenure->lease_ms = lease_ms;
            tenure->is_new = true;
            tenure->next = backend->tenures;
            backend->tenures = tenure;
        }
    }
    if (tenure)
        tenure->pins++;
    pthread_mutex_unlock(&backend->mutex);
    return tenure;
}

int hf__pg_lease_margin(const pg_tenure *tenure)
{
    int third = tenure->lease_ms / 3;
    int kill_ms = pg_backend_of(tenure->base.backend)->kill_ms;
    return kill_ms < third ? kill_ms : third;
}

/*
 * The server has said that so much was left when it looked. That was after sent, so that by our own
 * clock the tenure lasts at least so long from there: only the rate of the clocks is trusted.
 */
void hf__pg_put_off_loss(pg_tenure *tenure, int64_t sent, int64_t left_ms)
{
    int64_t before = atomic_load(&tenure->base.lost_at);
    int64_t now = sent + left_ms - hf__pg_lease_margin(tenure);
    while (before < now &&
           !atomic_compare_exchange_weak(&tenure->base.lost_at, &before, now > 0 ? now : 1))
        ;
}

int64_t hf__pg_next_lease_loss(pg_backend *backend)
{
    int64_t first = HF__FOREVER;
    pthread_mutex_lock(&backend->mutex);
    for (pg_tenure *tenure = backend->tenures; tenure; tenure = tenure->next) {
        int64_t lost_at = atomic_load(&tenure->base.lost_at);
        if (atomic_load(&tenure->base.holds) > 0 && !hf__session_is_lost(&tenure->base) &&
            lost_at < first)
            first = lost_at;
    }
    pthread_mutex_unlock(&backend->mutex);
    return first == HF__FOREVER ? first : hf__now_ms() + (first - hf__boot_ms());
}

/* ---- what is taken --------------------------------------------------------------------------- */

/* The number of a take that goes on; 0: no memory. */
static int64_t begin_take(pg_backend *backend, pg_tenure *tenure)
{
    int64_t number = 0;
    pthread_mutex_lock(&backend->mutex);
    if (hf__grow(&tenure->takes, &tenure->room, tenure->count + 1, sizeof *tenure->takes)) {
        number = ++tenure->numbers;
        tenure->takes[tenure->count++] = (struct pg_take){.number = number};
    }
    pthread_mutex_unlock(&backend->mutex);
    return number;
}

/* backend->mutex is held. */
static void forget_take(pg_tenure *tenure, size_t at)
{
    tenure->takes[at] = tenure->takes[--tenure->count];
}

/* It has got nothing, or nobody knows: then what it may have got is swept. */
static void give_up_take(pg_backend *backend, pg_tenure *tenure, int64_t number, bool known)
{
    pthread_mutex_lock(&backend->mutex);
    for (size_t i = 0; i < tenure->count; i++)
        if (tenure->takes[i].number == number) {
            forget_take(tenure, i);
            break;
        }
    if (!known)
        atomic_store(&tenure->has_strays, true);
    pthread_mutex_unlock(&backend->mutex);
}

static void keep_take(pg_backend *backend, pg_tenure *tenure, int64_t number,
                      const hf__request *request)
{
    pthread_mutex_lock(&backend->mutex);
    for (size_t i = 0; i < tenure->count; i++)
        if (tenure->takes[i].number == number) {
            tenure->takes[i].term = request->token;
            tenure->takes[i].keys = request->count;
        }
    tenure->is_new = false;
    atomic_fetch_add(&tenure->base.holds, (unsigned)request->count);
    pthread_mutex_unlock(&backend->mutex);
}

static void drop_takes(pg_backend *backend, pg_tenure *tenure, const hf__claim *claims,
                       size_t count, bool strays)
{
    pthread_mutex_lock(&backend->mutex);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < tenure->count; j++)
            if (tenure->takes[j].term == claims[i].term) {
                if (--tenure->takes[j].keys == 0)
                    forget_take(tenure, j);
                break;
            }
    if (strays)
        atomic_store(&tenure->has_strays, true);
    pthread_mutex_unlock(&backend->mutex);
}

/* ---- the connection -------------------------------------------------------------------------- */

hf_status hf__pg_leasing_session(pg_backend *backend, const pg_patience *patience,
                                 pg_session **session, hf_error *err)
{
    pthread_mutex_lock(&backend->mutex);
    *session = backend->leasing;
    if (*session && atomic_load(&(*session)->base.lost))
        *session = backend->leasing = NULL;
    if (*session)
        (*session)->pins++;
    pthread_mutex_unlock(&backend->mutex);
    if (*session)
        return HF_OK;
    hf_status status = hf__pg_session_open_for(backend, PG_FOR_LOCKS, patience, session, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&backend->mutex);
    if (!backend->leasing)
        backend->leasing = *session;
    else /* another thread was faster: unpinning frees it */
        (*session)->private_session = true;
    pthread_mutex_unlock(&backend->mutex);
    return HF_OK;
}

/*
 * A write may be kept waiting until its deadline, which costs the session. So the shared session
 * serves as long as it holds nothing.
 */
hf_status hf__pg_lease_checkout(pg_backend *backend, const pg_patience *patience,
                                pg_session **session, hf_error *err)
{
    hf_status status = hf__pg_shared_session_for(backend, patience, session, err);
    if (status != HF_OK)
        return status;
    status = hf__pg_session_lock(*session, patience, err);
    if (status == HF_OK && atomic_load(&(*session)->base.holds) == 0)
        return HF_OK;
    if (status == HF_OK)
        hf__pg_session_unlock(*session);
    hf__pg_unpin(*session);
    if (status == HF_OK)
        status = hf__pg_leasing_session(backend, patience, session, err);
    if (status != HF_OK)
        return status;
    status = hf__pg_session_lock(*session, patience, err);
    if (status != HF_OK)
        hf__pg_unpin(*session);
    return status;
}

void hf__pg_lease_checkin(pg_session *session)
{
    hf__pg_session_unlock(session);
    hf__pg_unpin(session);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* The statement; *sent is when, by hf__boot_ms(). */
static hf_status ask(pg_session *session, const pg_tenure *tenure, int64_t number,
                     const hf__request *request, int64_t *sent, PGresult **answer, hf_error *err)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    pg_arrays arrays = {0};
    char ms[16], nth[24], seen[24], pid[16], asked[24];
    bool stands_aside = hf__stands_aside(request);
    (void)snprintf(ms, sizeof ms, "%d", tenure->lease_ms);
    (void)snprintf(pid, sizeof pid, "%d", (int)backend->pid);
    hf__pg_format(nth, number);
    hf__pg_format(seen, atomic_load(&backend->newest_token));
    if (stands_aside)
        hf__pg_format(asked, request->ask->key);
    hf_status status = hf__pg_lease_arrays(&arrays, request->claims, request->count, err);
    if (status == HF_OK) {
        const char *params[] = {tenure->id,
                                tenure->is_new ? "t" : "f",
                                ms,
                                nth,
                                arrays.keys.data,
                                arrays.spaces.data,
                                arrays.slots.data,
                                request->claims->mode == HF_SHARED ? "t" : "f",
                                seen,
                                backend->application,
                                backend->host,
                                pid,
                                stands_aside ? asked : NULL,
                                request->claims->traceparent};
        *sent = hf__boot_ms();
        bool traced = request->claims->traceparent != NULL;
        status = hf__pg_run(
            session, traced ? &hf__sql_postgres_take_traced_leases : &hf__sql_postgres_take_leases,
            traced ? 14 : 13, params, answer, err);
    }
    hf__pg_arrays_free(&arrays);
    return status;
}

static void note_term(pg_backend *backend, int64_t term)
{
    long long newest = atomic_load(&backend->newest_token);
    while (newest < term && !atomic_compare_exchange_weak(&backend->newest_token, &newest, term))
        ;
}

/* *again: the tenure turned out to be over. */
static hf_status read_take(pg_backend *backend, pg_tenure *tenure, hf__request *request,
                           int64_t sent, const PGresult *answer, bool *again)
{
    int64_t blocked = hf__pg_int(answer, 0, 0), left_ms = hf__pg_int(answer, 0, 1);
    hf_error why = {0};
    if (blocked == TENURE_OVER) {
        *again = true;
        (void)!hf__fail(&why, HF_LOST, "%s has ended the lease: no renewal came in time",
                        backend->base.name);
        (void)hf__session_lose(&tenure->base, "lease", &why);
        return HF_OK;
    }
    if (blocked > 0) {
        request->blocked = (size_t)blocked - 1;
        request->free_at = left_ms > 0 ? hf__deadline(left_ms) : 0;
        return HF_NOT_ACQUIRED;
    }
    request->token = hf__pg_int(answer, 0, 2);
    request->session = &tenure->base;
    note_term(backend, request->token);
    hf__pg_put_off_loss(tenure, sent, left_ms);
    return HF_OK;
}

/* The schema is not ours, or too old to know of leases. */
static hf_status explain(const pg_backend *backend, hf_status status, hf_error *err)
{
    static const char *const missing[] = {"42883", "3F000", "42P01"};
    for (size_t i = 0; status == HF_DATABASE && err && i < sizeof missing / sizeof *missing; i++)
        if (strcmp(err->sqlstate, missing[i]) == 0) {
            status = hf__fail(err, HF_NO_SCHEMA,
                              "a lease needs version %d of the schema 'holdfast' on %s",
                              HF_SCHEMA_VERSION, backend->base.name);
            hf__hint(err, "run 'holdfast init' once on that database");
        }
    return status;
}

static hf_status take(pg_backend *backend, pg_tenure *tenure, hf__request *request,
                      const pg_patience *patience, bool *again, hf_error *err)
{
    pg_session *session = NULL;
    PGresult *answer = NULL;
    int64_t sent = 0, number = begin_take(backend, tenure);
    if (number == 0)
        return hf__no_memory(err);
    bool known = true;
    hf_status status = hf__pg_lease_checkout(backend, patience, &session, err);
    if (status == HF_OK) {
        status = hf__pg_note_labels(session, request->claims, request->count, err);
        if (status == HF_OK)
            status = ask(session, tenure, number, request, &sent, &answer, err);
        known = !sent || (status != HF_UNREACHABLE && status != HF_INTERRUPTED);
        if (!known) {
            give_up_take(backend, tenure, number, false);
            hf__pg_sweep_later(session, tenure);
        }
        hf__pg_lease_checkin(session);
    }
    if (status == HF_OK)
        status = read_take(backend, tenure, request, sent, answer, again);
    PQclear(answer);
    if (status == HF_OK && !*again)
        keep_take(backend, tenure, number, request);
    else if (known)
        give_up_take(backend, tenure, number, true);
    return explain(backend, status, err);
}

static hf_status require_schema(const pg_backend *backend, hf_error *err)
{
    if (backend->schema == HF_SCHEMA_VERSION && backend->schema_usable)
        return HF_OK;
    hf_status status = hf__fail(err, HF_NO_SCHEMA, "a lease needs the schema 'holdfast' on %s",
                                backend->base.name);
    hf__hint(err, "run 'holdfast init' once on that database, or let its owner SELECT "
                  "holdfast.grant_use('ROLE')");
    return status;
}

static hf_status try_once(pg_backend *backend, hf__request *request, const pg_patience *patience,
                          hf_error *err)
{
    hf_status status = HF_OK;
    for (bool again = true; again && status == HF_OK;) {
        pg_tenure *tenure = pin_tenure(backend, request->lease_ms);
        again = false;
        if (!tenure)
            return hf__no_memory(err);
        status = take(backend, tenure, request, patience, &again, err);
        if (status == HF_OK && !again)
            hf__pg_renew_later(tenure);
        hf__pg_unpin_tenure(tenure);
    }
    return status;
}

hf_status hf__pg_try_leases(pg_backend *backend, hf__request *request, const pg_patience *patience,
                            hf_error *err)
{
    hf_status status = require_schema(backend, err);
    request->free_at = 0;
    if (status == HF_OK)
        status = hf__pg_patience_check(backend, patience, err);
    if (status == HF_OK)
        status = hf__pg_start_renewing(backend, err);
    if (status == HF_OK)
        status = try_once(backend, request, patience, err);
    /* The connection may have died unnoticed. What the first try got is swept, or found. */
    if (status == HF_UNREACHABLE && hf__pg_patience_check(backend, patience, NULL) == HF_OK)
        status = try_once(backend, request, patience, err);
    return status;
}

/* ---- waiting behind a pooler ----------------------------------------------------------------- */

hf_status hf__pg_pause(const pg_backend *backend, const hf_cancel *cancel, int64_t until,
                       hf_error *err)
{
    struct pollfd pollfds[] = {{.fd = backend->interrupt_fd, .events = POLLIN},
                               {.fd = hf__cancel_fd(cancel), .events = POLLIN}};
    bool woken = hf__poll(pollfds, 2, hf__left_ms(until)) > 0;
    return woken && (atomic_load(&backend->interrupted) || hf__is_cancelled(cancel))
               ? hf__interrupted(err)
               : HF_OK;
}

/* Nobody can listen there: the wait looks again and again, and when the lease in the way ends. */
hf_status hf__pg_wait_leases(pg_backend *backend, hf__request *request, const pg_patience *patience,
                             hf_error *err)
{
    for (;;) {
        int64_t next =
            hf__deadline(request->asks ? ASK_TICK_MS : hf__jitter_ms(TICK_LOW_MS, TICK_HIGH_MS));
        if (request->free_at && request->free_at < next)
            next = request->free_at;
        if (request->deadline < next)
            next = request->deadline;
        hf_status status = hf__pg_pause(backend, request->cancel, next, err);
        if (status == HF_OK)
            status = hf__pg_try_leases(backend, request, patience, err);
        if (status != HF_NOT_ACQUIRED || hf__left_ms(request->deadline) == 0)
            return status;
        if (request->give_up && request->give_up(request->give_up_arg))
            return status;
    }
}

/* ---- releasing ------------------------------------------------------------------------------- */

static hf_status not_there(const hf__claim *claim, hf_error *err)
{
    char name[200];
    hf_status status =
        hf__fail(err, HF_LOST, "the lease of %s was not there any more when it was released",
                 hf__claim_name(name, sizeof name, claim));
    hf__hint(err, "treat the protected work as unprotected");
    return status;
}

static hf_status run_release(pg_session *session, const pg_tenure *tenure, const hf__claim *claims,
                             size_t count, PGresult **answer, hf_error *err)
{
    pg_arrays arrays = {0};
    hf_status status = hf__pg_lease_arrays(&arrays, claims, count, err);
    if (status == HF_OK) {
        const char *params[] = {tenure->id,         arrays.terms.data,      arrays.keys.data,
                                arrays.spaces.data, arrays.companions.data, arrays.channels.data};
        status = hf__pg_run(session, &hf__sql_postgres_release_leases, 6, params, answer, err);
    }
    hf__pg_arrays_free(&arrays);
    return status;
}

/*
 * Until now it was held, whatever the server makes of the release: if it does not hear of it, or a
 * transaction under the lease is open still, the row is swept, or ends when its time is over.
 */
hf_status hf__pg_release_leases(hf__session *base, const hf__claim *claims, size_t count,
                                bool brief, hf_error *err)
{
    pg_tenure *tenure = pg_tenure_of(base);
    pg_backend *backend = pg_backend_of(base->backend);
    int longest_ms = brief ? PG_BRIEF_MS : backend->ping_deadline_ms;
    const pg_patience patience = {.until = hf__deadline(longest_ms)};
    pg_session *session = NULL;
    PGresult *answer = NULL;
    hf_error failure = {0};
    char name[200];

    if (hf__session_is_lost(base)) {
        if (err)
            *err = base->why;
        return HF_LOST;
    }
    hf_status status = hf__pg_lease_checkout(backend, &patience, &session, &failure);
    if (status == HF_OK) {
        status = run_release(session, tenure, claims, count, &answer, &failure);
        hf__pg_lease_checkin(session);
    }
    bool is_done = status == HF_OK && hf__pg_int(answer, 0, 1) == 0;
    bool is_missing = status == HF_OK && hf__pg_int(answer, 0, 0) > 0;
    PQclear(answer);
    drop_takes(backend, tenure, claims, count, !is_done);
    if (status != HF_OK)
        hf__log(&backend->base, HF_LOG_WARNING, "the lease of %s is over in %d s at the latest: %s",
                hf__claim_name(name, sizeof name, claims), (tenure->lease_ms + 999) / 1000,
                failure.message);
    return is_missing ? not_there(claims, err) : HF_OK;
}

/* ---- other locks of the same keys ------------------------------------------------------------ */

static hf_status ask_leased(pg_session *session, const hf__request *request, int64_t *leased,
                            hf_error *err)
{
    pg_arrays arrays = {0};
    PGresult *answer = NULL;
    hf_status status = hf__pg_key_arrays(&arrays, request->claims, request->count, err);
    if (status == HF_OK) {
        const char *params[] = {arrays.keys.data, arrays.spaces.data,
                                request->claims->mode == HF_SHARED ? "t" : "f"};
        status =
            hf__pg_query(session, pg_sql(&hf__sql_postgres_first_leased), 3, params, &answer, err);
    }
    if (status == HF_OK)
        *leased = hf__pg_int(answer, 0, 0);
    PQclear(answer);
    hf__pg_arrays_free(&arrays);
    return status;
}

hf_status hf__pg_refuse_leased(pg_session *session, hf__request *request, const PGresult *taken,
                               bool records, hf_error *err)
{
    enum { LEASED_COLUMN = 2 };
    int64_t leased = records ? hf__pg_int(taken, 0, LEASED_COLUMN) : 0;
    hf_status status = HF_OK;
    if (!records && hf__pg_may_be_leased(pg_backend_of(session->base.backend)))
        status = ask_leased(session, request, &leased, err);
    if (status != HF_OK || leased == 0)
        return status;
    request->blocked = (size_t)leased - 1;
    return HF_NOT_ACQUIRED;
}

hf_status hf__pg_find_lease(pg_backend *backend, const hf__claim *claim, hf__holder *holder,
                            hf_error *err)
{
    enum { BRIEF_MS = 1000, CHECKS_COLUMN = 8, TERM_COLUMN };
    const pg_patience patience = {.until = hf__deadline(BRIEF_MS)};
    PGresult *result = NULL;
    char key[24], space[8];
    if (!hf__pg_may_be_leased(backend))
        return HF_OK;
    hf__pg_format(key, claim->key);
    (void)snprintf(space, sizeof space, "%d", (int)claim->space);
    const char *params[] = {key, space, claim->mode == HF_SHARED ? "t" : "f"};
    hf_status status = hf__pg_ask_for(backend, &patience, pg_sql(&hf__sql_postgres_find_lease), 3,
                                      params, &result, err);
    if (status == HF_OK && PQntuples(result) > 0) {
        hf__pg_read_holder(result, true, holder);
        holder->checks_lease = hf__pg_bool(result, 0, CHECKS_COLUMN);
        holder->term = PQgetisnull(result, 0, TERM_COLUMN) ? 0 : hf__pg_int(result, 0, TERM_COLUMN);
    }
    PQclear(result);
    return status;
}
