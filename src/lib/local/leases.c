/*
 * Leases: rows that end, where other locks are bytes that the kernel keeps. A lease is granted, and
 * looked for by everybody else, under the byte of its key, which is let go of once the row is
 * there. So a process that is stopped holds nothing but a row that it does not renew, and others
 * take the lease when that is over.
 *
 * A transaction under a lease locks the byte until it has ended: nobody takes the lease meanwhile,
 * even if it is over, or its process is stopped. Time is that of the kernel since the boot.
 */
#include "lib/local/local.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/thread.h"

enum {
    PAUSE_LOW_MS = 50, /* before a renewal that failed is tried again */
    PAUSE_HIGH_MS = 250,
    KEEP_PAUSE_MS = 2, /* who looks for a lease has its byte for a moment */
};

static hf__local *local_of(hf__backend *backend)
{
    return (hf__local *)backend;
}

int64_t hf__local_clock_ms(const hf__local *local)
{
    return hf__boot_ms() - local->boot_offset_ms;
}

/* ---- in the way of others -------------------------------------------------------------------- */

/* Between enter and leave. *until_ms: 0 if nobody has a lease that conflicts with the claim. */
static hf_status find_lease(hf__local *local, const hf__claim *claim, int64_t *until_ms,
                            hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = false;

    *until_ms = 0;
    hf_status status =
        hf__local_query(local, &hf__sql_local_find_lease, &rows, err, "iiii", (int64_t)claim->space,
                        claim->key, (int64_t)(claim->mode == HF_SHARED), hf__local_clock_ms(local));
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &more, err);
    if (status == HF_OK && more)
        *until_ms = sqlite3_column_int64(rows, 0);
    if (rows != NULL)
        sqlite3_reset(rows);
    return status;
}

hf_status hf__local_refuse_leased(hf__local *local, hf__request *request, hf_error *err)
{
    hf_status status = HF_OK;

    for (size_t i = 0; i < request->count && status == HF_OK; i++) {
        int64_t until_ms = 0;
        status = find_lease(local, &request->claims[i], &until_ms, err);
        if (status != HF_OK || until_ms == 0)
            continue;
        request->blocked = i;
        request->free_at = hf__now_ms() + (until_ms - hf__local_clock_ms(local));
        status = HF_NOT_ACQUIRED;
    }
    return status;
}

hf_status hf__local_look_for_leases(hf__local *local, hf__request *request, hf_error *err)
{
    const hf__local_patience patience = hf__local_patience_of(local, request);

    if (!hf__local_db_exists(local))
        return HF_OK;
    hf_status status = hf__local_db_enter(local, &patience, err);
    if (status != HF_OK)
        return status;
    status = hf__local_refuse_leased(local, request, err);
    hf__local_db_leave(local);
    return status;
}

bool hf__local_is_leased(hf__local *local, const hf__request *request, const hf__claim *claim)
{
    hf__request of_one = *request;
    hf_error ignored;

    of_one.claims = claim;
    of_one.count = 1;
    return hf__local_look_for_leases(local, &of_one, &ignored) == HF_NOT_ACQUIRED;
}

/* ---- a lease of this store ------------------------------------------------------------------- */

static int margin_of(const hf__local *local, int lease_ms)
{
    int third = lease_ms / 3;
    return local->kill_ms < third ? local->kill_ms : third;
}

static void put_off_loss(hf__local_session *session, int64_t until_ms)
{
    const hf__local *local = local_of(session->head.backend);
    atomic_store(&session->head.lost_at,
                 until_ms + local->boot_offset_ms - margin_of(local, session->lease_ms));
}

hf_status hf__local_lease(hf__local *local, hf__local_session *session, int lease_ms,
                          int64_t *until_ms, hf_error *err)
{
    *until_ms = hf__local_clock_ms(local) + lease_ms;
    return hf__local_run(local, &hf__sql_local_add_lease, err, "iiii", session->id,
                         local->lease_store, (int64_t)lease_ms, *until_ms);
}

void hf__local_leased(hf__local_session *session, int lease_ms, int64_t until_ms)
{
    hf__local *local = local_of(session->head.backend);

    pthread_mutex_lock(&local->mutex);
    session->head.lifetime = HF_LEASE;
    session->lease_ms = lease_ms;
    put_off_loss(session, until_ms);
    int64_t due = hf__deadline(lease_ms / 3);
    if (local->renew_at == 0 || due < local->renew_at) {
        local->renew_at = due;
        hf__cond_signal(&local->renewal_due);
    }
    pthread_mutex_unlock(&local->mutex);
}

static hf_status delete_lease(hf__local *local, hf__local_session *session, const hf__claim *claims,
                              size_t count, size_t *missing, hf_error *err)
{
    hf_status status = hf__local_begin(local, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < count && status == HF_OK; i++) {
        status = hf__local_run(local, &hf__sql_local_drop_holder, err, "iii",
                               (int64_t)claims[i].space, claims[i].key, session->id);
        *missing += status == HF_OK && sqlite3_changes64(local->db.handle) == 0;
    }
    if (status == HF_OK)
        status = hf__local_run(local, &hf__sql_local_drop_lease, err, "i", session->id);
    return hf__local_end(local, status, err);
}

/* Between enter and leave. */
static void end_lease(hf__local_session *session)
{
    hf__local *local = local_of(session->head.backend);

    pthread_mutex_lock(&local->mutex);
    session->lease_ms = 0;
    pthread_mutex_unlock(&local->mutex);
}

/*
 * Until now it was held, whatever becomes of the release: what is not deleted is swept with the
 * renewals, or ends when its time is over.
 */
hf_status hf__local_release_lease(hf__local_session *session, const hf__claim *claims, size_t count,
                                  bool brief, hf_error *err)
{
    const hf__local_patience patience = hf__local_patience_for(HF__LOCAL_BRIEF_MS);
    hf__local *local = local_of(session->head.backend);
    char name[200];
    size_t missing = 0;
    hf_error failure = {0};

    if (hf__session_is_lost(&session->head)) {
        if (err != NULL)
            *err = session->head.why;
        return HF_LOST;
    }
    hf_status status = hf__local_db_enter(local, brief ? &patience : NULL, &failure);
    if (status == HF_OK) {
        status = delete_lease(local, session, claims, count, &missing, &failure);
        if (atomic_load(&session->head.holds) == count) /* the last of its keys */
            end_lease(session);
        hf__local_db_leave(local);
    }
    (void)hf__claim_name(name, sizeof name, claims);
    if (status != HF_OK)
        hf__log(&local->head, HF_LOG_WARNING, "the lease of %s is over when its time is: %s", name,
                failure.message);
    if (missing == 0)
        return HF_OK;
    status =
        hf__fail(err, HF_LOST, "the lease of %s was not there any more when it was released", name);
    hf__hint(err, "treat the protected work as unprotected");
    return status;
}

/* ---- renewing -------------------------------------------------------------------------------- */

static void lose(hf__local_session *session)
{
    hf_error why = {0};
    (void)!hf__fail(&why, HF_LOST, "%s has ended the lease: no renewal came in time",
                    session->head.backend->name);
    hf__hint(&why, "another may hold it by now; stop, then acquire again");
    (void)hf__session_lose(&session->head, "lease", &why);
}

/* local->mutex is held. */
static bool has_lease(hf__local_session *session)
{
    return session->lease_ms > 0 && !atomic_load(&session->head.lost);
}

/* Between enter and leave. *until_ms: 0 if it is over. */
static hf_status get_lease(hf__local *local, const hf__local_session *session, int64_t *until_ms,
                           hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = false;

    hf_status status = hf__local_query(local, &hf__sql_local_get_lease, &rows, err, "ii",
                                       session->id, hf__local_clock_ms(local));
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &more, err);
    *until_ms = status == HF_OK && more ? sqlite3_column_int64(rows, 0) : 0;
    if (rows != NULL)
        sqlite3_reset(rows);
    return status;
}

/* Between enter and leave, in a transaction; local->mutex is held. */
static hf_status sort_out_one(hf__local *local, hf__local_session *session, hf_error *err)
{
    int64_t until_ms = 0;

    hf_status status = get_lease(local, session, &until_ms, err);
    if (status != HF_OK)
        return status;
    if (until_ms == 0) {
        lose(session);
        return HF_OK;
    }
    put_off_loss(session, until_ms);
    return hf__local_run(local, &hf__sql_local_own_lease, err, "ii", session->id,
                         local->lease_store);
}

/*
 * Between enter and leave. The store has other leases than the process: some were taken, or are
 * over, or a release has failed. What nobody here holds gets no further renewal.
 */
static hf_status sort_out(hf__local *local, hf_error *err)
{
    hf_status status = hf__local_begin(local, err);
    if (status != HF_OK)
        return status;
    status = hf__local_run(local, &hf__sql_local_orphan_leases, err, "ii", local->lease_store,
                           INT64_C(0));
    pthread_mutex_lock(&local->mutex);
    for (hf__local_session *session = local->sessions; session != NULL && status == HF_OK;
         session = session->next)
        if (has_lease(session))
            status = sort_out_one(local, session, err);
    pthread_mutex_unlock(&local->mutex);
    return hf__local_end(local, status, err);
}

/* Between enter and leave, so that nothing is leased or released meanwhile. */
static hf_status renew_entered(hf__local *local, hf_error *err)
{
    int64_t now = hf__local_clock_ms(local);
    int64_t count = 0;

    hf_status status =
        hf__local_run(local, &hf__sql_local_renew_leases, err, "ii", local->lease_store, now);
    if (status != HF_OK)
        return status;
    int64_t renewed = sqlite3_changes64(local->db.handle);
    pthread_mutex_lock(&local->mutex);
    for (hf__local_session *session = local->sessions; session != NULL; session = session->next)
        count += has_lease(session);
    for (hf__local_session *session = local->sessions; session != NULL && count == renewed;
         session = session->next)
        if (has_lease(session))
            put_off_loss(session, now + session->lease_ms);
    pthread_mutex_unlock(&local->mutex);
    return count == renewed ? HF_OK : sort_out(local, err);
}

static bool renew(hf__local *local)
{
    const hf__local_patience patience = {.until = HF__FOREVER, .renews = true};
    hf_error ignored;

    hf_status status = hf__local_db_enter(local, &patience, &ignored);
    if (status != HF_OK)
        return false;
    status = renew_entered(local, &ignored);
    hf__local_db_leave(local);
    return status == HF_OK;
}

/* local->mutex is held. The shortest lease that is held; 0: there is none. */
static int shortest_lease(hf__local *local)
{
    int shortest = 0;
    for (hf__local_session *session = local->sessions; session != NULL; session = session->next)
        if (has_lease(session) && (shortest == 0 || session->lease_ms < shortest))
            shortest = session->lease_ms;
    return shortest;
}

/* local->mutex is held, and unlocked meanwhile. */
static void renew_due(hf__local *local)
{
    pthread_mutex_unlock(&local->mutex);
    bool renewed = renew(local);
    pthread_mutex_lock(&local->mutex);
    int shortest = shortest_lease(local);
    int next = renewed ? shortest / 3 : hf__jitter_ms(PAUSE_LOW_MS, PAUSE_HIGH_MS);
    local->renew_at = shortest > 0 ? hf__deadline(next) : 0;
}

/* Likewise. */
static void do_upkeep(hf__local *local)
{
    bool flush = local->flush_due, sweep = local->sweep_due;

    local->flush_due = local->sweep_due = false;
    pthread_mutex_unlock(&local->mutex);
    hf__local_upkeep(local, flush, sweep);
    pthread_mutex_lock(&local->mutex);
}

/* A thread of its own: another process may keep the records locked, and the watcher has to tell of
 * the loss in time. */
static void *renew_all(void *arg)
{
    hf__local *local = arg;

    pthread_mutex_lock(&local->mutex);
    while (!local->renewing_ends) {
        if (local->renew_at != 0 && hf__left_ms(local->renew_at) == 0)
            renew_due(local);
        else if (local->flush_due || local->sweep_due)
            do_upkeep(local);
        else
            (void)hf__cond_wait(&local->renewal_due, &local->mutex,
                                local->renew_at != 0 ? local->renew_at : HF__FOREVER);
    }
    pthread_mutex_unlock(&local->mutex);
    return NULL;
}

bool hf__local_leave_upkeep(hf__local *local, bool flush, bool sweep)
{
    pthread_mutex_lock(&local->mutex);
    bool renews = local->renews;
    local->flush_due = renews && (local->flush_due || flush);
    local->sweep_due = renews && (local->sweep_due || sweep);
    if (renews)
        hf__cond_signal(&local->renewal_due);
    pthread_mutex_unlock(&local->mutex);
    return renews;
}

hf_status hf__local_start_renewing(hf__local *local, hf_error *err)
{
    int failed = 0;

    if (!local->keeps_records) {
        hf_status status =
            hf__fail(err, HF_NO_SCHEMA, "a lease needs the records of %s", local->head.name);
        hf__hint(err, "open the store with records");
        return status;
    }
    pthread_mutex_lock(&local->mutex);
    if (local->lease_store == 0 && getrandom(&local->lease_store, sizeof local->lease_store, 0) !=
                                       (ssize_t)sizeof local->lease_store)
        failed = EIO;
    if (failed == 0 && !local->renews) {
        failed = hf__thread_start(&local->renewer, 0, renew_all, local);
        local->renews = failed == 0;
    }
    pthread_mutex_unlock(&local->mutex);
    return failed ? hf__fail_errno(err, HF_SYSTEM, failed, "cannot start the renewer's thread")
                  : HF_OK;
}

void hf__local_end_leases(hf__local *local, const hf__local_patience *patience)
{
    hf_error err;

    if (!local->renews)
        return;
    pthread_mutex_lock(&local->mutex);
    local->renewing_ends = true;
    hf__cond_signal(&local->renewal_due);
    pthread_mutex_unlock(&local->mutex);
    (void)pthread_join(local->renewer, NULL);
    hf_status status = hf__local_db_enter(local, patience, &err);
    if (status != HF_OK)
        return; /* they end when their time is over */
    status = hf__local_run(local, &hf__sql_local_drop_store_holders, &err, "i", local->lease_store);
    if (status == HF_OK)
        status =
            hf__local_run(local, &hf__sql_local_drop_store_leases, &err, "i", local->lease_store);
    hf__local_db_leave(local);
    if (status != HF_OK)
        hf__log(&local->head, HF_LOG_WARNING, "leases stay until their time is over: %s",
                err.message);
}

int64_t hf__local_next_lease_loss(hf__local *local)
{
    int64_t first = HF__FOREVER;

    pthread_mutex_lock(&local->mutex);
    for (hf__local_session *session = local->sessions; session != NULL; session = session->next) {
        int64_t lost_at = atomic_load(&session->head.lost_at);
        if (has_lease(session) && lost_at < first)
            first = lost_at;
    }
    pthread_mutex_unlock(&local->mutex);
    return first == HF__FOREVER ? first : hf__now_ms() + (first - hf__boot_ms());
}

/* ---- what is written under leases ------------------------------------------------------------ */

static hf_status say_over(const hf__claim *lease, hf_error *err)
{
    char name[200];

    hf_status status = hf__fail(err, HF_LOST, "the lease of %s under term %lld is over",
                                hf__claim_name(name, sizeof name, lease), (long long)lease->term);
    hf__hint(err, "another may hold it by now; stop, and acquire it again");
    if (err != NULL)
        strcpy(err->sqlstate, "HF002"); /* as PostgreSQL's holdfast.check_leases */
    return status;
}

static hf_status check_entered(hf__local *local, const hf__claim *lease, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = false;

    hf_status status =
        hf__local_query(local, &hf__sql_local_check_lease, &rows, err, "iiii",
                        (int64_t)lease->space, lease->key, lease->term, hf__local_clock_ms(local));
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &more, err);
    if (rows != NULL)
        sqlite3_reset(rows);
    return status == HF_OK && !more ? say_over(lease, err) : status;
}

static hf_status check_leases(hf__local *local, const hf__attempt_plan *plan, hf_error *err)
{
    const hf__local_patience patience = hf__local_patience_of_plan(plan);
    hf_status status = hf__local_db_enter(local, &patience, err);

    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < plan->lease_count && status == HF_OK; i++)
        status = check_entered(local, &plan->leases[i], err);
    hf__local_db_leave(local);
    return status;
}

/* Others have the byte of a lease for a moment only, unless they were stopped just then. */
static hf_status lock_bytes(hf__local *local, hf__local_session *session,
                            const hf__attempt_plan *plan, hf_error *err)
{
    hf__request request = {.claims = plan->leases, .count = plan->lease_count};
    int64_t until = hf__now_ms() + local->busy_ms;
    char name[200];

    if (plan->deadline < until)
        until = plan->deadline;
    for (;;) {
        hf__local_gates gates = {.pass = true, .past = request.count};
        bool again = false;
        hf_status status = hf__local_session_lock(session, &request, &gates, &again, err);
        if (status == HF_OK && !again)
            return HF_OK;
        if (status == HF_OK || status == HF_NOT_ACQUIRED)
            status = check_leases(local, plan, err);
        if (status == HF_OK && hf__local_is_interrupted(local, plan->cancel))
            status = hf__interrupted(err);
        if (status != HF_OK)
            return status;
        if (hf__left_ms(until) == 0 || plan->is_nested)
            break;
        (void)hf__poll(NULL, 0, KEEP_PAUSE_MS);
    }
    return hf__fail(err, HF_UNREACHABLE, "somebody keeps %s locked, and may be stopped",
                    hf__claim_name(name, sizeof name, &plan->leases[request.blocked]));
}

hf_status hf__local_keep_leases(hf__local *local, const hf__attempt_plan *plan,
                                hf__local_session **kept, hf_error *err)
{
    *kept = NULL;
    if (plan->lease_count == 0 || plan->read_only)
        return plan->lease_count > 0 ? check_leases(local, plan, err) : HF_OK;
    hf_status status = hf__local_session_new(local, false, kept, err);
    if (status != HF_OK)
        return status;
    status = lock_bytes(local, *kept, plan, err);
    if (status == HF_OK)
        status = check_leases(local, plan, err);
    if (status != HF_OK) {
        hf__local_session_free(*kept);
        *kept = NULL;
    }
    return status;
}
