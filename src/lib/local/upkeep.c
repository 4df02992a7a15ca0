/* What the watcher's thread does: write events, look for removed lock files, sweep old records. */
#include "lib/local/local.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"

enum {
    FLUSH_MS = 1000,
    FIRST_SWEEP_MS = 5000,
    SWEEP_MS = 3600000,
    BATCH = 64,
};

/* ---- who is who ------------------------------------------------------------------------------ */

bool hf__local_is_alive(const hf__local *local, const hf__local_process *process)
{
    const hf__local_process *self = &local->self;

    if (process->pid_space != self->pid_space || strcmp(process->host, self->host) != 0)
        return true; /* we cannot see it, so we do not know that it is dead */
    if (self->started == 0)
        return true; /* no /proc */
    if (process->pid == self->pid)
        return process->started == self->started;
    return hf__process_started(process->pid) == process->started;
}

/* ---- events ---------------------------------------------------------------------------------- */

void hf__local_note(hf__backend *backend, const hf__event *event)
{
    hf__local *local = (hf__local *)backend;
    hf__local_bell *bell = &local->bell;

    if (!local->keeps_records)
        return;
    pthread_mutex_lock(&bell->mutex);
    if (bell->events == NULL)
        bell->events = calloc(HF__LOCAL_EVENTS, sizeof *bell->events);
    if (bell->events == NULL) {
        bell->dropped++;
    } else {
        if (bell->count == HF__LOCAL_EVENTS) {
            bell->first = (bell->first + 1) % HF__LOCAL_EVENTS;
            bell->count--;
            bell->dropped++;
        }
        bell->events[(bell->first + bell->count) % HF__LOCAL_EVENTS] = *event;
        if (bell->count++ == 0) {
            bell->flush_at = hf__deadline(FLUSH_MS);
            pthread_cond_signal(&bell->rung); /* the watcher must not sleep beyond flush_at */
        }
    }
    pthread_mutex_unlock(&bell->mutex);
}

static size_t take_events(hf__local_bell *bell, hf__event *out, size_t most)
{
    size_t count = 0;

    pthread_mutex_lock(&bell->mutex);
    while (count < most && bell->count > 0) {
        out[count++] = bell->events[bell->first];
        bell->first = (bell->first + 1) % HF__LOCAL_EVENTS;
        bell->count--;
    }
    pthread_mutex_unlock(&bell->mutex);
    return count;
}

static hf_status add_event(hf__local *local, const hf__event *event, hf_error *err)
{
    return hf__local_run(local, &hf__sql_local_add_event, err, "itiiiiiittit", event->at_ms,
                         hf__event_name(event), (int64_t)event->space, event->key,
                         (int64_t)(event->mode == HF_SHARED), event->token, event->wait_ms,
                         event->hold_ms, local->application, local->host, (int64_t)local->self.pid,
                         event->detail);
}

static hf_status write_events(hf__local *local, hf_error *err)
{
    hf__event batch[BATCH];
    size_t count = BATCH;

    hf_status status = hf__local_begin(local, err);
    if (status != HF_OK)
        return status;
    while (count == BATCH && status == HF_OK) {
        count = take_events(&local->bell, batch, BATCH);
        for (size_t i = 0; i < count && status == HF_OK; i++)
            status = add_event(local, &batch[i], err);
    }
    return hf__local_end(local, status, err);
}

static size_t take_dropped(hf__local_bell *bell, bool *pending)
{
    pthread_mutex_lock(&bell->mutex);
    size_t dropped = bell->dropped;
    bell->dropped = 0;
    *pending = bell->count > 0;
    bell->flush_at = hf__deadline(FLUSH_MS); /* after a failed write, wait before the next */
    pthread_mutex_unlock(&bell->mutex);
    return dropped;
}

void hf__local_flush(hf__local *local, const hf__local_patience *patience)
{
    bool pending = false;
    hf_error err;

    size_t dropped = take_dropped(&local->bell, &pending);
    if (dropped > 0)
        hf__log(&local->head, HF_LOG_WARNING, "%zu events were dropped: they came too fast",
                dropped);
    if (!pending)
        return;
    hf_status status = hf__local_db_enter(local, patience, &err);
    if (status == HF_OK) {
        status = write_events(local, &err);
        hf__local_db_leave(local);
    }
    if (status != HF_OK)
        hf__log(&local->head, HF_LOG_WARNING, "events are not recorded: %s", err.message);
}

/* ---- sweeping -------------------------------------------------------------------------------- */

/* Finds one dead process. One at a time: no query may be open while its rows are deleted. */
static hf_status next_dead(hf__local *local, hf__local_process *dead, bool *found, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = true;

    *found = false;
    hf_status status = hf__local_query(local, &hf__sql_local_list_processes, &rows, err, "");
    while (status == HF_OK && !*found) {
        status = hf__local_fetch(local, rows, &more, err);
        if (status != HF_OK || !more)
            break;
        *dead = (hf__local_process){
            .pid = sqlite3_column_int(rows, 0),
            .started = sqlite3_column_int64(rows, 1),
            .pid_space = sqlite3_column_int64(rows, 2),
            .host = (const char *)sqlite3_column_text(rows, 3),
        };
        *found = !hf__local_is_alive(local, dead);
    }
    if (*found)
        dead->host = local->self.host; /* the same text, which outlives the row */
    if (rows != NULL)
        sqlite3_reset(rows);
    return status;
}

hf_status hf__local_bury(hf__local *local, int *dead, hf_error *err)
{
    hf__local_process process = {0};
    bool found = true;

    *dead = 0;
    hf_status status = next_dead(local, &process, &found, err);
    while (status == HF_OK && found) {
        ++*dead;
        status =
            hf__local_run(local, &hf__sql_local_drop_process_holders, err, "iiit",
                          (int64_t)process.pid, process.started, process.pid_space, process.host);
        if (status == HF_OK)
            status = hf__local_run(local, &hf__sql_local_drop_process_waiters, err, "iiit",
                                   (int64_t)process.pid, process.started, process.pid_space,
                                   process.host);
        if (status == HF_OK)
            status = next_dead(local, &process, &found, err);
    }
    return status;
}

/*
 * Of holders in other pid namespaces (containers that share the folder) we cannot see the process,
 * only whether the key is locked: deletes the records of those whose key is free.
 */
static hf_status bury_strangers(hf__local *local, int64_t now_ms, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = true;

    hf_status status = hf__local_query(local, &hf__sql_local_list_strangers, &rows, err, "iit",
                                       now_ms, local->self.pid_space, local->self.host);
    while (status == HF_OK && more) {
        bool held = true;
        status = hf__local_fetch(local, rows, &more, err);
        if (status != HF_OK || !more)
            break;
        const hf__claim claim = {
            .space = sqlite3_column_int(rows, 0) == HF_PAIR ? HF_PAIR : HF_BIGINT,
            .key = sqlite3_column_int64(rows, 1),
        };
        status = hf__local_is_held(local, &claim, &held, err);
        if (status == HF_OK && !held)
            status = hf__local_run(local, &hf__sql_local_drop_holder, err, "iii",
                                   (int64_t)claim.space, claim.key, sqlite3_column_int64(rows, 2));
    }
    if (rows != NULL)
        sqlite3_reset(rows);
    return status;
}

static hf_status sweep_rows(hf__local *local, int64_t now_ms, hf_error *err)
{
    int dead = 0;

    hf_status status = hf__local_run(local, &hf__sql_local_drop_old_events, err, "i", now_ms);
    if (status == HF_OK)
        status = hf__local_run(local, &hf__sql_local_drop_old_contention, err, "i", now_ms);
    if (status == HF_OK)
        status = hf__local_run(local, &hf__sql_local_drop_old_labels, err, "i", now_ms);
    if (status == HF_OK)
        status = hf__local_run(local, &hf__sql_local_drop_ended_holders, err, "i",
                               hf__local_clock_ms(local));
    if (status == HF_OK)
        status = hf__local_run(local, &hf__sql_local_drop_ended_leases, err, "i",
                               hf__local_clock_ms(local));
    if (status == HF_OK)
        status = hf__local_bury(local, &dead, err);
    if (status == HF_OK)
        status = bury_strangers(local, now_ms, err);
    return status;
}

static hf_status sweep_if_due(hf__local *local, hf_error *err)
{
    int64_t now_ms = hf__wall_ms();
    sqlite3_stmt *rows = NULL;
    bool due = false;

    hf_status status = hf__local_query(local, &hf__sql_local_claim_sweep, &rows, err, "i", now_ms);
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &due, err);
    if (rows != NULL)
        sqlite3_reset(rows);
    return status == HF_OK && due ? sweep_rows(local, now_ms, err) : status;
}

void hf__local_sweep(hf__local *local, const hf__local_patience *patience)
{
    hf_error err;

    hf_status status = hf__local_db_enter(local, patience, &err);
    if (status == HF_OK) {
        status = hf__local_begin(local, &err);
        if (status == HF_OK)
            status = hf__local_end(local, sweep_if_due(local, &err), &err);
        hf__local_db_leave(local);
    }
    if (status != HF_OK)
        hf__log(&local->head, HF_LOG_WARNING, "old records are not swept: %s", err.message);
}

/* ---- watching -------------------------------------------------------------------------------- */

static void check_sessions(hf__local *local)
{
    pthread_mutex_lock(&local->mutex);
    for (hf__local_session *session = local->sessions; session != NULL; session = session->next)
        hf__local_session_check(session);
    pthread_mutex_unlock(&local->mutex);
}

static bool has_database(hf__local *local)
{
    hf__baton_take(&local->db.baton);
    bool open = local->db.handle != NULL;
    hf__local_db_leave(local);
    return open;
}

/* Sleeps until something is due, the bell rings or the time is over. */
static bool sleep_till_due(hf__local *local, int64_t until, bool *flush)
{
    hf__local_bell *bell = &local->bell;
    int64_t due = local->check_at < local->sweep_at ? local->check_at : local->sweep_at;

    pthread_mutex_lock(&bell->mutex);
    for (;;) {
        int64_t now = hf__now_ms();
        int64_t next = until < due ? until : due;
        *flush = (bell->count > 0 || bell->dropped > 0) && bell->flush_at <= now;
        if (bell->count > 0 && bell->flush_at < next)
            next = bell->flush_at;
        if (bell->woken || *flush || now >= next)
            break;
        struct timespec at = hf__timespec(next);
        pthread_cond_clockwait(&bell->rung, &bell->mutex, CLOCK_MONOTONIC, &at);
    }
    bool woken = bell->woken;
    bell->woken = false;
    if (*flush)
        bell->flush_at = hf__deadline(FLUSH_MS);
    pthread_mutex_unlock(&bell->mutex);
    return woken;
}

void hf__local_upkeep(hf__local *local, bool flush, bool sweep)
{
    /* Closing the store waits for it. */
    const hf__local_patience patience = hf__local_patience_for(HF__LOCAL_CLOSE_MS);

    if (flush)
        hf__local_flush(local, &patience);
    if (sweep && local->keeps_records && has_database(local))
        hf__local_sweep(local, &patience);
}

void hf__local_watch(hf__backend *backend, int ms)
{
    hf__local *local = (hf__local *)backend;
    int64_t next_loss = hf__local_next_lease_loss(local);
    int64_t until = hf__deadline(ms);
    bool woken = false;

    if (next_loss < until)
        until = next_loss;

    if (local->sweep_at == 0) {
        local->check_at = hf__deadline(local->check_ms);
        local->sweep_at = hf__deadline(FIRST_SWEEP_MS);
    }
    while (!woken && hf__now_ms() < until) {
        bool flush = false;
        woken = sleep_till_due(local, until, &flush);
        bool sweep = hf__now_ms() >= local->sweep_at;
        if (sweep)
            local->sweep_at = hf__deadline(SWEEP_MS);
        if ((flush || sweep) && !hf__local_leave_upkeep(local, flush, sweep))
            hf__local_upkeep(local, flush, sweep);
        if (hf__now_ms() >= local->check_at) {
            check_sessions(local);
            local->check_at = hf__deadline(local->check_ms);
        }
    }
}

void hf__local_wake(hf__backend *backend)
{
    hf__local_bell *bell = &((hf__local *)backend)->bell;

    pthread_mutex_lock(&bell->mutex);
    bell->woken = true;
    pthread_cond_signal(&bell->rung);
    pthread_mutex_unlock(&bell->mutex);
}
