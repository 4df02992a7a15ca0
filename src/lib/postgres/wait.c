/*
 * Waiting. A wait first queues in PostgreSQL, which is fair and grants a released lock in about
 * 0.1 ms. But a server process that waits keeps a snapshot, which stalls vacuum and CREATE INDEX
 * CONCURRENTLY. So after a first slice of time the wait takes a place in a line (line.c) and sleeps
 * on LISTEN, without a snapshot. At a wake-up the first in line tries the key on the shared
 * session, where it needs no connection that others wait for. If that fails, somebody was faster,
 * and it queues for another slice: while other programs queue, a plain try is never granted.
 */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    /* Below the default deadlock_timeout: the server's own search would blame the wrong one. */
    FIRST_SLICE_MS = 800,
    SLICE_MS = 200,
    ASK_SLICE_MS = 5000,   /* who asks stays in the server's queue, now and then anew */
    CROWDED_SLICE_MS = 50, /* when the session also holds locks: their release has to wait */
    TICK_LOW_MS = 500,     /* holders that crash, and other programs, never send NOTIFY */
    TICK_HIGH_MS = 1000,
    STALL_MS = 1000,  /* so long the first in line may take; then those behind it try as well */
    PASSED_MS = 1000, /* so long others have the right of way to a key that we released */
};

static bool usable(const pg_session *session)
{
    return session->waiting_session && !session->checked_out && !atomic_load(&session->base.lost);
}

static pg_session *pick(pg_backend *backend, bool crowded)
{
    for (pg_session *session = backend->sessions; session; session = session->next)
        if (usable(session) && (atomic_load(&session->base.holds) > 0) == crowded)
            return session;
    return NULL;
}

/*
 * backend->mutex is held. NULL with *may_open: a new connection may be opened, and is counted
 * already. A session that also holds locks is the last choice.
 */
static pg_session *reserve(pg_backend *backend, bool *may_open)
{
    pg_session *session = pick(backend, false);
    *may_open = false;
    if (!session && backend->wait_sessions < (unsigned)backend->max_waits) {
        backend->wait_sessions++;
        *may_open = true;
        return NULL;
    }
    if (!session)
        session = pick(backend, true);
    if (session) {
        session->checked_out = true;
        session->crowded = atomic_load(&session->base.holds) > 0;
        session->pins++;
    }
    return session;
}

static hf_status open_for_waiting(pg_backend *backend, pg_purpose purpose, bool private_session,
                                  const pg_patience *patience, pg_session **session, hf_error *err)
{
    hf_status status = hf__pg_session_open_for(backend, purpose, patience, session, err);
    pthread_mutex_lock(&backend->mutex);
    if (status == HF_OK) {
        (*session)->checked_out = true;
        (*session)->private_session = private_session;
        (*session)->waiting_session = !private_session;
    } else if (!private_session) {
        backend->wait_sessions--;
        hf__cond_broadcast(&backend->changed);
    }
    pthread_mutex_unlock(&backend->mutex);
    if (status == HF_OK)
        (void)!hf__pg_session_lock(*session, NULL, err); /* nobody else waits for it */
    if (status == HF_OK)
        (*session)->patience = patience;
    return status;
}

hf_status hf__pg_checkout_first(pg_backend *backend, const pg_patience *patience, pg_session **out,
                                hf_error *err)
{
    hf_status status = hf__pg_sessions_allowed(backend, err);
    return status == HF_OK ? open_for_waiting(backend, PG_FOR_FIRST_LOCK, true, patience, out, err)
                           : status;
}

hf_status hf__pg_checkout_held(hf__session *held, const pg_patience *patience, pg_session **out,
                               hf_error *err)
{
    pg_session *session = pg_session_of(held);
    pg_backend *backend = pg_backend_of(held->backend);
    pthread_mutex_lock(&backend->mutex);
    session->pins++;
    pthread_mutex_unlock(&backend->mutex);
    hf_status status = hf__pg_session_lock(session, patience, err);
    if (status != HF_OK) {
        hf__pg_unpin(session);
        return status;
    }
    status = hf__pg_ready(session, err);
    if (status == HF_OK) {
        *out = session;
        return HF_OK;
    }
    bool is_lost = atomic_load(&session->base.lost);
    if (is_lost && err)
        *err = session->base.why;
    hf__pg_checkin(session);
    return is_lost ? HF_LOST : status;
}

static void give_back(pg_session *session)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    pthread_mutex_lock(&backend->mutex);
    session->checked_out = false;
    hf__cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_unpin(session);
}

/* backend->mutex is held. Who is in no hurry stands back while others are. */
static hf_status await_session(pg_backend *backend, pg_hurry hurry, const pg_patience *patience,
                               pg_session **out, bool *may_open)
{
    int64_t until = patience ? patience->until : HF__FOREVER;
    for (;;) {
        if (atomic_load(&backend->interrupted) || (patience && hf__is_cancelled(patience->cancel)))
            return HF_INTERRUPTED;
        if (hurry == PG_URGENT || backend->urgent == 0)
            *out = reserve(backend, may_open);
        if (*out || *may_open)
            return HF_OK;
        if (hurry == PG_IF_IDLE || !hf__cond_wait(&backend->changed, &backend->mutex, until))
            return HF_NOT_ACQUIRED;
    }
}

hf_status hf__pg_checkout(pg_backend *backend, bool private_session, pg_hurry hurry,
                          const pg_patience *patience, pg_session **out, hf_error *err)
{
    bool may_open = false;
    hf_status status = hf__pg_sessions_allowed(backend, err);
    if (status != HF_OK)
        return status;
    if (private_session)
        return open_for_waiting(backend, PG_FOR_LOCKS, true, patience, out, err);

    *out = NULL;
    pthread_mutex_lock(&backend->mutex);
    backend->urgent += hurry == PG_URGENT;
    status = await_session(backend, hurry, patience, out, &may_open);
    backend->urgent -= hurry == PG_URGENT;
    if (hurry == PG_URGENT)
        hf__cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->mutex);

    if (status == HF_INTERRUPTED)
        return hf__interrupted(err);
    if (status != HF_OK)
        return status;
    if (may_open)
        return open_for_waiting(backend, PG_FOR_LOCKS, false, patience, out, err);
    status = hf__pg_session_lock(*out, patience, err);
    if (status != HF_OK)
        give_back(*out);
    return status;
}

void hf__pg_checkin(pg_session *session)
{
    hf__pg_session_unlock(session);
    give_back(session);
}

static bool is_single(const hf__request *request)
{
    return request->count == 1 && request->claims->space == HF_BIGINT;
}

static const hf__sql *try_statement(const hf__request *request, bool records)
{
    bool shared = request->claims->mode == HF_SHARED;
    if (!is_single(request))
        return records ? &hf__sql_postgres_try_set_token : &hf__sql_postgres_try_set;
    if (records)
        return shared ? &hf__sql_postgres_try_one_shared_token : &hf__sql_postgres_try_one_token;
    return shared ? &hf__sql_postgres_try_one_shared : &hf__sql_postgres_try_one;
}

/* Does nobody ask for the key? SQL, for the queue. Who asks does not stand aside for itself. */
static const char *free_of_asks(char out[80], const hf__request *request)
{
    if (!hf__stands_aside(request))
        return "true";
    (void)snprintf(out, 80, "pg_catalog.pg_try_advisory_xact_lock_shared('%lld')",
                   (long long)request->ask->key);
    return out;
}

static void queue_one_script(hf__buf *script, const hf__request *request, const char *trial, int ms)
{
    char key[32], wait[16], execute[80], asks[80];
    (void)snprintf(key, sizeof key, "'%lld'", (long long)request->claims->key);
    (void)snprintf(wait, sizeof wait, "%d", ms);
    (void)snprintf(execute, sizeof execute, "%s(%s)", trial, key);
    const hf__sql_part parts[] = {{"key", key},
                                  {"lock", request->claims->mode == HF_SHARED
                                               ? "pg_advisory_xact_lock_shared"
                                               : "pg_advisory_xact_lock"},
                                  {"ms", wait},
                                  {"free", free_of_asks(asks, request)},
                                  {"execute", execute},
                                  {0}};
    hf__sql_expand(script, pg_sql(&hf__sql_postgres_queue_one), parts);
}

static void queue_set_script(hf__buf *script, const hf__request *request, const pg_arrays *arrays,
                             const char *trial, int ms)
{
    hf__buf keys = {0}, spaces = {0}, execute = {0};
    const char *shared = request->claims->mode == HF_SHARED ? "true" : "false";
    char wait[16], asks[80];
    (void)snprintf(wait, sizeof wait, "%d", ms);
    hf__buf_printf(&keys, "'%s'", arrays->keys.data);
    hf__buf_printf(&spaces, "'%s'", arrays->spaces.data);
    hf__buf_printf(&execute, "%s('%s', '%s', %s)", trial, arrays->keys.data, arrays->spaces.data,
                   shared);
    const hf__sql_part parts[] = {{"keys", keys.data},
                                  {"spaces", spaces.data},
                                  {"shared", shared},
                                  {"ms", wait},
                                  {"free", free_of_asks(asks, request)},
                                  {"execute", execute.data},
                                  {0}};
    if (keys.broken || spaces.broken || execute.broken)
        script->broken = true;
    else
        hf__sql_expand(script, pg_sql(&hf__sql_postgres_queue), parts);
    hf__buf_free(&keys);
    hf__buf_free(&spaces);
    hf__buf_free(&execute);
}

/* *locked: how many of the claims are locked all the same. */
static hf_status read_queue_result(pg_session *session, hf__request *request,
                                   const PGresult *result, bool records, size_t *locked,
                                   hf_error *err)
{
    int64_t blocked = is_single(request) ? !hf__pg_bool(result, 0, 0) : hf__pg_int(result, 0, 0);
    if (blocked > 0) {
        *locked = request->blocked = (size_t)blocked - 1;
        return HF_NOT_ACQUIRED;
    }
    *locked = request->count;
    hf_status status = hf__pg_refuse_leased(session, request, result, records, err);
    if (status != HF_OK)
        return status;
    if (records)
        request->token = hf__pg_token(session, result, 1);
    request->session = &session->base;
    return HF_OK;
}

static void clean_up_after(pg_session *session, const hf__request *request)
{
    hf_error ignored;
    if (!atomic_load(&session->base.lost) && !session->answer_due)
        (void)!hf__pg_script(session, "ROLLBACK", hf__deadline(SLICE_MS * 10), NULL, &ignored);
    (void)hf__pg_clean_up(session, request->claims, request->count, 0);
}

static hf_status queue_on(pg_session *session, hf__request *request, int slice_ms, hf_error *err)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    hf_status status = hf__pg_start_recording(session, err);
    if (status != HF_OK)
        return status;
    bool records = atomic_load(&backend->base.records) && session->token_epoch;
    const hf__sql *trial = try_statement(request, records);
    pg_arrays arrays = {0};
    hf__buf script = {0};
    PGresult *result = NULL;
    size_t locked = 0;

    status = hf__pg_confirm_labels(session, request->claims, request->count, err);
    if (status == HF_OK)
        status = hf__pg_prepare(session, trial, err);
    if (status == HF_OK)
        status = hf__pg_key_arrays(&arrays, request->claims, request->count, err);
    if (status != HF_OK)
        goto out;
    if (is_single(request))
        queue_one_script(&script, request, trial->name, slice_ms);
    else
        queue_set_script(&script, request, &arrays, trial->name, slice_ms);
    if (script.broken) {
        status = hf__no_memory(err);
        goto out;
    }
    int64_t deadline = hf__deadline(slice_ms + backend->ping_deadline_ms);
    status = hf__pg_script(session, script.data, deadline, &result, err);
    if (status == HF_OK)
        status = read_queue_result(session, request, result, records, &locked, err);
    else
        clean_up_after(session, request);
    if (status == HF_NOT_ACQUIRED && locked > 0)
        hf__pg_undo(session, request->claims, locked);
    if (status == HF_OK)
        atomic_fetch_add(&session->base.holds, (unsigned)request->count);
out:
    PQclear(result);
    hf__buf_free(&script);
    hf__pg_arrays_free(&arrays);
    return status;
}

static int slice_length(const pg_session *session, int wanted, int64_t deadline)
{
    int left = hf__left_ms(deadline);
    int slice = session->crowded && wanted > CROWDED_SLICE_MS ? CROWDED_SLICE_MS : wanted;
    if (left >= 0 && left < slice)
        slice = left;
    return slice > 0 ? slice : 1;
}

/* HF_NOT_ACQUIRED also when no session came free. */
static hf_status queue_slice(pg_backend *backend, hf__request *request, int wanted, pg_hurry hurry,
                             const pg_patience *patience, hf_error *err)
{
    hf_status status = HF_OK;
    for (int attempt = 0; attempt <= backend->max_waits; attempt++) {
        pg_session *session = NULL;
        status = request->session ? hf__pg_checkout_held(request->session, patience, &session, err)
                                  : hf__pg_checkout(backend, request->private_session, hurry,
                                                    patience, &session, err);
        if (status != HF_OK)
            return status;
        status = queue_on(session, request, slice_length(session, wanted, request->deadline), err);
        hf__pg_checkin(session);
        /* A pooled session may have died while it was idle. Then nothing is lost: use another. */
        if (status != HF_UNREACHABLE || hf__pg_patience_check(backend, patience, NULL) != HF_OK)
            break;
    }
    return status;
}

/* ---- the right of way ------------------------------------------------------------------------ */

void hf__pg_pass(pg_backend *backend, int64_t wake)
{
    pthread_mutex_lock(&backend->mutex);
    backend->passed[backend->passes++ % PG_PASSED] =
        (struct pg_passed){.wake = wake, .at_ms = hf__now_ms()};
    pthread_mutex_unlock(&backend->mutex);
}

bool hf__pg_has_passed(pg_backend *backend, const hf__request *request)
{
    bool found = false;
    int64_t since = hf__now_ms() - PASSED_MS;
    pthread_mutex_lock(&backend->mutex);
    for (size_t i = 0; i < PG_PASSED && !found; i++)
        found =
            backend->passed[i].wake == request->claims->wake && backend->passed[i].at_ms > since;
    pthread_mutex_unlock(&backend->mutex);
    /* The slots of a semaphore have a line of their own, at its gate. */
    return found && request->count == 1 && request->claims->slot == 0 &&
           request->deadline > request->began;
}

/* ---- long waits ------------------------------------------------------------------------------ */

/* A wait as others see it: the key that it listens for and, if its thread holds keys, its edges. */
struct wait_notice {
    const hf__claim *heard; /* NULL: nothing published yet */
    uint64_t edges;         /* the session that published them */
    uint64_t ticket;
    pg_place place;
    bool first;      /* in line */
    int64_t tick_at; /* when it tries again at the latest */
    bool woken;      /* by a release */
    unsigned missed; /* releases in a row after which others were faster */
    unsigned cycles; /* searches in a row that found a cycle */
};

/*
 * Wake-ups do not postpone the tick. Otherwise a holder that acquires the key again at once after
 * each release would always be faster than our slices.
 */
static hf_status await_wake(pg_backend *backend, const hf__request *request,
                            struct wait_notice *notice, hf_error *err)
{
    int64_t until = notice->tick_at < request->deadline ? notice->tick_at : request->deadline;
    uint64_t before = notice->ticket;
    hf_status status = hf__pg_await_wake(&backend->base, notice->heard->wake, request->cancel,
                                         &notice->ticket, hf__left_ms(until), err);
    notice->woken = notice->ticket != before;
    notice->missed = notice->woken && notice->first ? notice->missed + 1 : 0;
    if (notice->woken)
        notice->place.moved_ms = hf__now_ms();
    return status == HF_OK ? HF_NOT_ACQUIRED : status;
}

/*
 * Listens for the claim that blocks now, and then stops to listen for the one before. In this order
 * there is no round trip if both are the same and the connection lives.
 */
static hf_status announce(pg_backend *backend, const hf__request *request,
                          struct wait_notice *notice, const pg_patience *patience, hf_error *err)
{
    const hf__claim *blocked = &request->claims[request->blocked];
    hf_status status = hf__pg_listen_for(backend, blocked->wake, patience, &notice->ticket, err);
    if (notice->heard) {
        hf__pg_unlisten(&backend->base, notice->heard->wake);
        if (notice->heard != blocked)
            hf__pg_retract_wait(backend, request, notice->heard, notice->edges);
    }
    if (status == HF_OK && notice->heard != blocked)
        hf__pg_publish_wait(backend, request, blocked, patience, &notice->edges);
    notice->heard = status == HF_OK ? blocked : NULL;
    if (status == HF_OK)
        status =
            hf__pg_line_up(backend, &notice->place, blocked->wake, patience, &notice->first, err);
    return status;
}

static void withdraw(pg_backend *backend, const hf__request *request, struct wait_notice *notice)
{
    hf__pg_line_leave(backend, &notice->place);
    if (!notice->heard)
        return;
    hf__pg_unlisten(&backend->base, notice->heard->wake);
    hf__pg_retract_wait(backend, request, notice->heard, notice->edges);
}

/* Edges come and go while they are read, so only a cycle that is found twice counts. */
static bool is_deadlocked(pg_backend *backend, const hf__request *request,
                          struct wait_notice *notice, const pg_patience *patience)
{
    enum { CERTAIN = 2 };
    if (!request->any_order || request->held_count == 0)
        return false;
    bool found = hf__pg_in_cycle(backend, request, &request->claims[request->blocked], patience);
    notice->cycles = found ? notice->cycles + 1 : 0;
    return notice->cycles >= CERTAIN;
}

/* Sets may hold one of their keys on the shared session already, by another lock of the process. */
static bool may_try(const hf__request *request)
{
    return request->count == 1 && !request->private_session && !request->session;
}

/*
 * Those behind the first try as well when the line stalls: the first may be stopped, or its key's
 * holder may have died without a word. Only the first queues in the server, so that nobody who came
 * later stands there before it.
 */
static hf_status act(pg_backend *backend, hf__request *request, const struct wait_notice *notice,
                     const pg_patience *patience, hf_error *err)
{
    hf_status status = HF_NOT_ACQUIRED;
    bool stalls = hf__now_ms() - notice->place.moved_ms >= STALL_MS;
    if (!notice->first && !stalls && !request->asks)
        return HF_NOT_ACQUIRED;
    if (request->lifetime == HF_LEASE)
        return hf__pg_try_leases(backend, request, patience, err);
    if (may_try(request)) {
        status = hf__pg_try_now(backend, request, patience, err);
        if (status != HF_NOT_ACQUIRED || !notice->first)
            return status;
    }
    /* If the key is often released, a longer slice is worth the longer snapshot. */
    return queue_slice(backend, request, SLICE_MS << (notice->missed < 2 ? notice->missed : 2),
                       notice->woken      ? PG_URGENT
                       : may_try(request) ? PG_IF_IDLE
                                          : PG_IN_ORDER,
                       patience, err);
}

static hf_status wait_snapshot_free(pg_backend *backend, hf__request *request, int64_t began,
                                    const pg_patience *patience, hf_error *err)
{
    hf_status status = HF_NOT_ACQUIRED;
    const hf__claim *recorded = &request->claims[request->blocked];
    uint64_t record = 0;
    struct wait_notice notice = {0};

    hf__pg_record_waiter(backend, recorded, hf__now_ms() - began, patience, &record);
    while (status == HF_NOT_ACQUIRED && hf__left_ms(request->deadline) != 0) {
        status = announce(backend, request, &notice, patience, err);
        if (status != HF_OK)
            break;
        bool ticked = hf__left_ms(notice.tick_at) == 0;
        status = act(backend, request, &notice, patience, err);
        if (ticked)
            notice.tick_at = hf__deadline(hf__jitter_ms(TICK_LOW_MS, TICK_HIGH_MS));
        if (request->free_at && request->free_at < notice.tick_at)
            notice.tick_at = request->free_at;
        if (status != HF_NOT_ACQUIRED || notice.heard != &request->claims[request->blocked])
            continue;
        if (is_deadlocked(backend, request, &notice, patience))
            status = hf__say_deadlock(notice.heard, err);
        else if (request->give_up && request->give_up(request->give_up_arg))
            break;
        else
            status = await_wake(backend, request, &notice, err);
    }
    withdraw(backend, request, &notice);
    hf__pg_forget_waiter(backend, recorded, record);
    return status;
}

/*
 * All others stand aside, so that the server's queue is ours, and the next release grants the key.
 * A slice that ends at once found a lease in the way, of which that queue knows nothing.
 */
static hf_status wait_first(pg_backend *backend, hf__request *request, const pg_patience *patience,
                            hf_error *err)
{
    enum { PAUSE_MS = 50 };
    hf_status status = HF_NOT_ACQUIRED;
    while (status == HF_NOT_ACQUIRED && hf__left_ms(request->deadline) != 0) {
        int64_t soon = hf__deadline(PAUSE_MS);
        status = queue_slice(backend, request, ASK_SLICE_MS, PG_URGENT, patience, err);
        if (status == HF_NOT_ACQUIRED && hf__left_ms(soon) != 0 &&
            hf__pg_pause(backend, request->cancel, soon, err) != HF_OK)
            status = HF_INTERRUPTED;
    }
    return status;
}

hf_status hf__pg_wait_claims(hf__backend *base, hf__request *request, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    const pg_patience patience = hf__pg_patience(backend, request);
    int64_t began = hf__now_ms();
    bool is_lease = request->lifetime == HF_LEASE;
    if (is_lease && hf__pg_is_transaction_pooled(backend))
        return hf__pg_wait_leases(backend, request, &patience, err);
    if (request->asks && !is_lease)
        return wait_first(backend, request, &patience, err);
    hf_status status =
        is_lease || hf__pg_has_passed(backend, request)
            ? HF_NOT_ACQUIRED
            : queue_slice(backend, request, FIRST_SLICE_MS, PG_IF_IDLE, &patience, err);
    if (status == HF_NOT_ACQUIRED && hf__left_ms(request->deadline) != 0)
        status = wait_snapshot_free(backend, request, began, &patience, err);
    return status;
}

void hf__pg_interrupt(hf__backend *base, bool all)
{
    pg_backend *backend = pg_backend_of(base);
    uint64_t one = 1;
    pthread_mutex_lock(&backend->mutex);
    if (all) {
        atomic_store(&backend->interrupted, true);
        (void)!write(backend->interrupt_fd, &one, sizeof one);
    }
    hf__cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->mutex);
}
