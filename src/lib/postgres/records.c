/*
 * What is written in the background: records of keys that have been held for a while, their
 * deletion after the release, and events for history. They are buffered, so that acquire and
 * release cost one round trip each. What could not be written stays in the buffer until the server
 * is back; a crash of the process loses at most the last second of history. Lists ignore records of
 * keys that pg_locks does not show.
 */
#include "lib/postgres/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    MOST_EVENTS = 4096,
    FLUSH_EVERY_MS = 1000,
    HOUSEKEEP_EVERY_MS = 3600 * 1000,
    RETRY_MS = 50, /* when the store is closed while the server restarts */
};

struct pg_events {
    pthread_mutex_t mutex;
    hf__event *events;
    size_t count;
    bool again; /* the first of them were sent before, and may have been written */
    uint64_t dropped;
    int64_t flush_at;
    int64_t housekeep_at;
    atomic_bool has_holders; /* a holder has been recorded: releases have records to delete */
};

struct pg_events *hf__pg_events_new(void)
{
    struct pg_events *unwritten = calloc(1, sizeof *unwritten);
    if (!unwritten)
        return NULL;
    unwritten->events = calloc(MOST_EVENTS, sizeof *unwritten->events);
    if (!unwritten->events) {
        free(unwritten);
        return NULL;
    }
    pthread_mutex_init(&unwritten->mutex, NULL);
    /* At random, so that not all processes clean up at the same time. */
    unwritten->housekeep_at = hf__now_ms() + hf__jitter_ms(60 * 1000, HOUSEKEEP_EVERY_MS);
    return unwritten;
}

void hf__pg_events_free(struct pg_events *unwritten)
{
    if (!unwritten)
        return;
    pthread_mutex_destroy(&unwritten->mutex);
    free(unwritten->events);
    free(unwritten);
}

void hf__pg_note(hf__backend *base, const hf__event *event)
{
    struct pg_events *unwritten = pg_backend_of(base)->unwritten;
    if (!atomic_load(&base->history))
        return;
    pthread_mutex_lock(&unwritten->mutex);
    if (unwritten->count == MOST_EVENTS)
        unwritten->dropped++;
    else
        unwritten->events[unwritten->count++] = *event;
    if (!unwritten->flush_at)
        unwritten->flush_at = hf__deadline(FLUSH_EVERY_MS);
    pthread_mutex_unlock(&unwritten->mutex);
}

/* It must have no other members than buffers: finish and free_arrays treat it as an array. */
struct event_arrays {
    hf__buf at, kind, key, space, shared, token, wait, hold, detail;
    hf__buf freed; /* tokens of released locks */
};

static void add_word(hf__buf *buf, const char *word)
{
    hf__buf_printf(buf, "%c%s", buf->length ? ',' : '{', word);
}

static void fill(struct event_arrays *arrays, const hf__event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const hf__event *event = &events[i];
        hf__pg_array_int(&arrays->at, event->at_ms);
        add_word(&arrays->kind, hf__event_name(event));
        hf__pg_array_int(&arrays->key, event->key);
        hf__pg_array_int(&arrays->space, event->space);
        add_word(&arrays->shared, event->mode == HF_SHARED ? "t" : "f");
        hf__pg_array_int(&arrays->token, event->token);
        hf__pg_array_int(&arrays->wait, event->wait_ms);
        hf__pg_array_int(&arrays->hold, event->hold_ms);
        hf__pg_array_text(&arrays->detail, event->detail, strlen(event->detail));
        if (event->kind == HF__EVENT_RELEASED && event->token)
            hf__pg_array_int(&arrays->freed, event->token);
    }
}

enum { ARRAYS = sizeof(struct event_arrays) / sizeof(hf__buf) };

static bool finish(struct event_arrays *arrays)
{
    hf__buf *all = (hf__buf *)arrays;
    bool ok = true;
    for (size_t i = 0; i < ARRAYS; i++) {
        hf__buf_puts(&all[i], all[i].length ? "}" : "{}");
        ok = ok && !all[i].broken;
    }
    return ok;
}

static void free_arrays(struct event_arrays *arrays)
{
    hf__buf *all = (hf__buf *)arrays;
    for (size_t i = 0; i < ARRAYS; i++)
        hf__buf_free(&all[i]);
}

/*
 * A session for writing that holds no locks, because a write that is blocked until its deadline
 * loses its session. When the store is closed, the shared session is used if there is no other: it
 * holds nothing either by then.
 */
static hf_status writing_session(pg_backend *backend, bool closing, pg_session **session,
                                 hf_error *err)
{
    const pg_patience patience = {.until = hf__deadline(PG_CLOSE_MS)};
    pthread_mutex_lock(&backend->mutex);
    *session = backend->writing;
    if (*session && atomic_load(&(*session)->base.lost))
        *session = backend->writing = NULL;
    if (*session)
        (*session)->pins++;
    pthread_mutex_unlock(&backend->mutex);
    if (*session)
        return HF_OK;
    if (closing)
        return hf__pg_shared_session_for(backend, &patience, session, err);
    hf_status status = hf__pg_session_open_for(backend, PG_FOR_LOCKS, &patience, session, err);
    if (status == HF_OK) {
        pthread_mutex_lock(&backend->mutex);
        backend->writing = *session;
        pthread_mutex_unlock(&backend->mutex);
    }
    return status;
}

static hf_status write_now(pg_session *session, const char *const *events, const char *const *freed,
                           hf_error *err)
{
    hf_status status = hf__pg_run(session, &hf__sql_postgres_add_events, 13, events, NULL, err);
    if (freed)
        (void)!hf__pg_run(session, &hf__sql_postgres_drop_holders, 3, freed, NULL, err);
    return status;
}

static void take_due(void *arg, pg_tag tag, PGresult *answer)
{
    bool *due = arg;
    if (tag == PG_DUE)
        *due = hf__pg_bool(answer, 0, 0);
    PQclear(answer);
}

/*
 * All that the session has to say before it is closed, in one message and one transaction. A
 * process that lives for seconds would never clean up otherwise.
 */
static hf_status write_last(pg_session *session, const char *const *events,
                            const char *const *freed, hf_error *err)
{
    bool due = true;
    const pg_reader reader = {.take = take_due, .arg = &due};
    pg_message message;
    hf_status status = hf__pg_ready(session, err);
    if (status != HF_OK)
        return status;
    hf__pg_message_start(&message, session);
    hf__pg_step(&message, PG_PARTING, pg_sql(&hf__sql_postgres_add_events), 13, events);
    if (freed)
        hf__pg_step(&message, PG_PARTING, pg_sql(&hf__sql_postgres_drop_holders), 3, freed);
    if (session->token_epoch)
        hf__pg_step(&message, PG_PARTING, pg_sql(&hf__sql_postgres_close_session), 0, NULL);
    hf__pg_step(&message, PG_DUE, pg_sql(&hf__sql_postgres_housekeeping_is_due), 0, NULL);
    status = hf__pg_message_ask(&message, &reader, err);
    hf__pg_message_free(&message);
    if (status == HF_OK)
        session->token_epoch = 0; /* it is closed, as far as records go */
    else if (!atomic_load(&session->base.lost))
        status = write_now(session, events, freed, err); /* what failed may be another step */
    if (status == HF_OK && due)
        (void)!hf__pg_query(session, pg_sql(&hf__sql_postgres_housekeep), 0, NULL, NULL, err);
    return status;
}

/* HF_UNREACHABLE or HF_LOST: the server is away, and they are to be written later. */
static hf_status write_events(pg_backend *backend, bool closing, bool again,
                              const hf__event *events, size_t count)
{
    const pg_patience patience = {.until = hf__deadline(PG_CLOSE_MS)};
    struct event_arrays arrays = {0};
    char pid[16];
    hf_error ignored = {0};
    pg_session *session = NULL;
    hf_status status = HF_NO_MEMORY;

    fill(&arrays, events, count);
    if (finish(&arrays))
        status = writing_session(backend, closing, &session, &ignored);
    if (status != HF_OK)
        goto out;
    (void)snprintf(pid, sizeof pid, "%d", (int)backend->pid);
    const char *params[] = {arrays.at.data,
                            arrays.kind.data,
                            arrays.key.data,
                            arrays.space.data,
                            arrays.shared.data,
                            arrays.token.data,
                            arrays.wait.data,
                            arrays.hold.data,
                            backend->application,
                            backend->host,
                            pid,
                            arrays.detail.data,
                            again ? "t" : "f"};
    const char *freed[] = {arrays.freed.data, backend->host, pid};
    status = hf__pg_session_lock(session, closing ? &patience : NULL, &ignored);
    if (status != HF_OK) {
        hf__pg_unpin(session);
        goto out;
    }
    bool drops = arrays.freed.length > 2 && atomic_load(&backend->unwritten->has_holders);
    status = (closing ? write_last : write_now)(session, params, drops ? freed : NULL, &ignored);
    if (status != HF_OK && atomic_load(&session->base.lost))
        status = HF_LOST;
    hf__pg_session_unlock(session);
    hf__pg_unpin(session);
out:
    free_arrays(&arrays);
    return status;
}

struct held_arrays {
    hf__buf session, key, space, shared, slot, age, token, traceparent;
};

static bool write_holders(pg_backend *backend, const struct held_arrays *arrays)
{
    const char *params[] = {arrays->session.data, arrays->key.data,        arrays->space.data,
                            arrays->shared.data,  arrays->slot.data,       arrays->age.data,
                            arrays->token.data,   arrays->traceparent.data};
    hf_error ignored;
    pg_session *session = NULL;
    if (writing_session(backend, false, &session, &ignored) != HF_OK)
        return false;
    atomic_store(&backend->unwritten->has_holders, true);
    hf__baton_take(&session->baton);
    hf_status status =
        hf__pg_run(session, &hf__sql_postgres_add_holders, 8, params, NULL, &ignored);
    hf__baton_give(&session->baton);
    hf__pg_unpin(session);
    return status == HF_OK;
}

bool hf__pg_record(hf__backend *base, const hf__record *records, size_t count)
{
    struct held_arrays arrays = {0};
    hf__buf *all = (hf__buf *)&arrays;
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        hf__pg_array_int(&arrays.session, records[i].session_id);
        hf__pg_array_int(&arrays.key, records[i].key);
        hf__pg_array_int(&arrays.space, records[i].space);
        add_word(&arrays.shared, records[i].mode == HF_SHARED ? "t" : "f");
        hf__pg_array_int(&arrays.slot, records[i].slot);
        hf__pg_array_int(&arrays.age, records[i].age_ms);
        hf__pg_array_int(&arrays.token, records[i].token);
        add_word(&arrays.traceparent, records[i].traceparent[0] ? records[i].traceparent : "NULL");
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *all; i++) {
        hf__buf_puts(&all[i], "}");
        ok = ok && !all[i].broken;
    }
    ok = ok && write_holders(pg_backend_of(base), &arrays);
    for (size_t i = 0; i < sizeof arrays / sizeof *all; i++)
        hf__buf_free(&all[i]);
    return ok;
}

static size_t pick_events(struct pg_events *unwritten, bool all, hf__event **taken, bool *again)
{
    size_t count = 0;
    pthread_mutex_lock(&unwritten->mutex);
    bool due = all || (unwritten->flush_at && hf__left_ms(unwritten->flush_at) == 0);
    if (due && unwritten->count > 0 && (*taken = malloc(unwritten->count * sizeof **taken))) {
        count = unwritten->count;
        memcpy(*taken, unwritten->events, count * sizeof **taken);
        unwritten->count = 0;
        unwritten->flush_at = 0;
        *again = unwritten->again;
        unwritten->again = false;
    }
    pthread_mutex_unlock(&unwritten->mutex);
    return count;
}

/* They could not be written: they go before what has been noted since. */
static void put_back(struct pg_events *unwritten, const hf__event *events, size_t count)
{
    pthread_mutex_lock(&unwritten->mutex);
    size_t room = MOST_EVENTS - unwritten->count, kept = count < room ? count : room;
    memmove(unwritten->events + kept, unwritten->events,
            unwritten->count * sizeof *unwritten->events);
    memcpy(unwritten->events, events + (count - kept), kept * sizeof *events);
    unwritten->count += kept;
    unwritten->dropped += count - kept;
    unwritten->again = true;
    unwritten->flush_at = hf__deadline(FLUSH_EVERY_MS);
    pthread_mutex_unlock(&unwritten->mutex);
}

static void housekeep(pg_backend *backend)
{
    struct pg_events *unwritten = backend->unwritten;
    hf_error ignored;
    pthread_mutex_lock(&unwritten->mutex);
    bool due = hf__left_ms(unwritten->housekeep_at) == 0;
    if (due)
        unwritten->housekeep_at = hf__deadline(HOUSEKEEP_EVERY_MS);
    pthread_mutex_unlock(&unwritten->mutex);
    pg_session *session = NULL;
    if (!due || writing_session(backend, false, &session, &ignored) != HF_OK)
        return;
    hf__baton_take(&session->baton);
    (void)!hf__pg_query(session, pg_sql(&hf__sql_postgres_housekeep), 0, NULL, NULL, &ignored);
    hf__baton_give(&session->baton);
    hf__pg_unpin(session);
}

static bool is_away(hf_status status)
{
    return status == HF_UNREACHABLE || status == HF_LOST;
}

void hf__pg_flush_events(hf__backend *base)
{
    pg_backend *backend = pg_backend_of(base);
    hf__event *events = NULL;
    bool again = false;
    if (!atomic_load(&base->history))
        return;
    size_t count = pick_events(backend->unwritten, false, &events, &again);
    if (count > 0 && is_away(write_events(backend, false, again, events, count)))
        put_back(backend->unwritten, events, count);
    free(events);
    housekeep(backend);
}

/*
 * A loss is what people must see in the history, and a restart of the server is what causes most of
 * them: it is waited for, as long as the server refuses at once. A silent one is given up.
 */
static int64_t close_deadline(const hf__event *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == HF__EVENT_LOST)
            return hf__deadline(PG_CLOSE_LOSS_MS);
    return 0;
}

bool hf__pg_flush_at_close(pg_backend *backend)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
    hf__event *events = NULL;
    bool again = false;
    bool away = true;
    if (!atomic_load(&backend->base.history))
        return false;
    size_t count = pick_events(backend->unwritten, true, &events, &again);
    int64_t until = close_deadline(events, count);
    while (count > 0) {
        int64_t began = hf__now_ms();
        away = is_away(write_events(backend, true, again, events, count));
        if (!away || hf__now_ms() >= until || hf__now_ms() - began >= PG_CLOSE_MS)
            break;
        again = true;
        (void)nanosleep(&pause, NULL);
    }
    free(events);
    return !away;
}
