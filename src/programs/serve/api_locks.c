/* /api/v1/locks: every key that is held or waited for. Also waits, contention, events, history. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/serve/api.h"

static const hf__shape user_shape[] = {
    HF__SHAPE_OR_NULL("party", "integer", "backend pid of PostgreSQL, pid on a local store"),
    HF__SHAPE("mode", "string", "exclusive or shared"),
    HF__SHAPE_OR_NULL("lifetime", "string", "session, transaction or lease; null: nobody can tell"),
    HF__SHAPE_OR_NULL("application", "string", "what it calls itself"),
    HF__SHAPE_OR_NULL("host", "string", "where its client runs"),
    HF__SHAPE_OR_NULL("pid", "integer", "of the client process"),
    HF__SHAPE_OR_NULL("age_ms", "integer", "since granted, or since the wait began"),
    HF__SHAPE("age_is_bound", "boolean", "it is at most that old"),
    HF__SHAPE_OR_NULL("since", "string", "the same as a time"),
    HF__SHAPE_OR_NULL("token", "integer", "the fencing token, 64 bits"),
    HF__SHAPE_OR_NULL("token_text", "string", "the same as text"),
    HF__SHAPE_OR_NULL("slot", "integer", "of a lock with slots, from 1"),
    HF__SHAPE("ours", "boolean", "taken through Holdfast with records: all of it is exact"),
    HF__SHAPE_OR_NULL("idle_ms", "integer",
                      "the session idles outside of a transaction for so long"),
    HF__SHAPE_OR_NULL("left_ms", "integer", "of a lease: how long it lasts if it is not renewed"),
    HF__SHAPE_OR_NULL("traceparent", "string", "the span of a hold that is traced"),
    {"blocked_by", "array", "parties in the way of a waiter", false, "integer", NULL},
    HF__SHAPE_OR_NULL("query", "string", "what the session runs or ran last, with --show-queries"),
    {0},
};

const hf__shape hf__lock_shape[] = {
    HF__KEY_SHAPE,
    HF__SHAPE_OR_NULL("label", "string", "what people call it"),
    HF__SHAPE_OR_NULL("name", "string", "in the registry"),
    HF__SHAPE("registered", "boolean", "the registry knows it"),
    HF__SHAPE_OR_NULL("pattern", "string", "of the registry's entry"),
    HF__SHAPE_OR_NULL("known_as", "string", "the well-known program of such a key, a guess"),
    HF__SHAPE_OR_NULL("owner", "string", "as the registry says"),
    HF__SHAPE_OR_NULL("purpose", "string", "as the registry says"),
    HF__SHAPE_OR_NULL("runbook", "string", "as the registry says"),
    HF__SHAPE_OR_NULL("held_ms", "integer", "by the oldest holder"),
    HF__SHAPE("held_is_bound", "boolean", "it is at most that long"),
    HF__SHAPE_OR_NULL("longest_wait_ms", "integer", "of those who wait"),
    {"holders", "array", "who has it", false, "object", user_shape},
    {"waiters", "array", "who wants it, the longest wait first", false, "object", user_shape},
    {0},
};

static const char *query_of(const hf__snapshot *snapshot, size_t view)
{
    size_t party = snapshot->view_party[view];

    return party < snapshot->party_count ? snapshot->parties[party].query : "";
}

static void put_blockers(hf__json *json, const char *blockers)
{
    hf__json_begin_array(json, "blocked_by");
    while (*blockers != '\0') {
        char *end = NULL;
        long long pid = strtoll(blockers, &end, 10);
        if (end == blockers)
            break;
        hf__json_put_integer(json, NULL, pid);
        blockers = *end == ',' ? end + 1 : end;
    }
    hf__json_end_array(json);
}

static void put_user(hf__json *json, const hf__snapshot *snapshot, size_t index)
{
    const hf_lock_view *view = snapshot->views[index];
    size_t party = snapshot->view_party[index];

    hf__json_begin_object(json, NULL);
    hf__put_positive(json, "party",
                     party < snapshot->party_count ? snapshot->parties[party].id : 0);
    hf__json_put_string(json, "mode", hf__mode_name(view->mode));
    hf__json_put_text(json, "lifetime",
                      view->session_known ? hf__lifetime_name(view->lifetime) : "");
    hf__json_put_text(json, "application", view->application);
    hf__json_put_text(json, "host", view->host);
    hf__put_positive(json, "pid", view->pid);
    hf__put_ms(json, "age_ms", view->age_ms);
    hf__json_put_boolean(json, "age_is_bound", view->age_is_bound);
    hf__put_when(json, "since", view->age_ms < 0 ? 0 : snapshot->taken_ms - view->age_ms);
    hf__put_token(json, view->token);
    hf__put_positive(json, "slot", view->slot);
    hf__json_put_boolean(json, "ours", view->ours);
    hf__put_ms(json, "idle_ms", view->idle_ms);
    hf__put_positive(json, "left_ms", view->left_ms);
    hf__json_put_text(json, "traceparent", view->traceparent);
    put_blockers(json, view->blocked_by);
    hf__json_put_text(json, "query", query_of(snapshot, index));
    hf__json_end_object(json);
}

static void put_users(hf__json *json, const hf__snapshot *snapshot, const hf__seen_lock *lock,
                      bool waiting)
{
    hf__json_begin_array(json, waiting ? "waiters" : "holders");
    for (size_t i = lock->first; i < lock->first + lock->count; i++)
        if (snapshot->views[i]->waiting == waiting)
            put_user(json, snapshot, i);
    hf__json_end_array(json);
}

static void put_lock(hf__json *json, const hf__snapshot *snapshot, const hf__seen_lock *lock)
{
    const hf_registry_entry *entry = lock->entry;

    hf__json_begin_object(json, NULL);
    hf__put_key(json, lock->space, lock->key);
    hf__json_put_text(json, "label", lock->label);
    hf__json_put_text(json, "name", lock->name);
    hf__json_put_boolean(json, "registered", lock->name[0] != '\0');
    hf__json_put_text(json, "pattern", entry != NULL ? entry->pattern : "");
    hf__json_put_text(json, "known_as", lock->known_as);
    hf__json_put_text(json, "owner", entry != NULL ? entry->owner : "");
    hf__json_put_text(json, "purpose", entry != NULL ? entry->purpose : "");
    hf__json_put_text(json, "runbook", entry != NULL ? entry->runbook : "");
    hf__put_ms(json, "held_ms", lock->held_ms);
    hf__json_put_boolean(json, "held_is_bound", lock->held_is_bound);
    hf__put_ms(json, "longest_wait_ms", lock->longest_wait_ms);
    put_users(json, snapshot, lock, false);
    put_users(json, snapshot, lock, true);
    hf__json_end_object(json);
}

/* ---- which of them ---- */

static bool is_in_state(const hf__seen_lock *lock, const char *state)
{
    if (strcmp(state, "held") == 0)
        return lock->holders > 0;
    if (strcmp(state, "waiting") == 0)
        return lock->waiters > 0;
    return strcmp(state, "unregistered") != 0 || (lock->name[0] == '\0' && !lock->is_own);
}

static bool has_mode(const hf__snapshot *snapshot, const hf__seen_lock *lock, const char *mode)
{
    for (size_t i = lock->first; i < lock->first + lock->count; i++)
        if (strcmp(hf__mode_name(snapshot->views[i]->mode), mode) == 0)
            return true;
    return mode[0] == '\0';
}

static bool speaks_of(const hf__snapshot *snapshot, const hf__seen_lock *lock, const char *q)
{
    const char *const names[] = {lock->label, lock->name};

    if (hf__text_fits(q, names, 2))
        return true;
    for (size_t i = lock->first; i < lock->first + lock->count; i++) {
        const char *const users[] = {snapshot->views[i]->application, snapshot->views[i]->host};
        if (hf__text_fits(q, users, 2))
            return true;
    }
    return false;
}

static bool fits(const hf__exchange *exchange, const hf__snapshot *snapshot,
                 const hf__seen_lock *lock)
{
    const char *name = hf__asked(exchange, "name");

    return is_in_state(lock, hf__asked(exchange, "state")) &&
           (name[0] == '\0' || strcmp(name, lock->name) == 0) &&
           hf__key_fits(exchange, lock->key) &&
           has_mode(snapshot, lock, hf__asked(exchange, "mode")) &&
           speaks_of(snapshot, lock, hf__asked(exchange, "q"));
}

int hf__api_locks(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                  hf__problem *problem)
{
    hf__api_list list = hf__api_list_begin(exchange, snapshot);

    (void)problem;
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        const hf__seen_lock *lock = &snapshot->locks[i];
        if (fits(exchange, snapshot, lock) && hf__api_list_takes(&list))
            put_lock(&list.json, snapshot, lock);
    }
    hf__api_list_end_data(&list);
    return hf__api_list_end(&list, NULL, out);
}

/* ---- /api/v1/waits: who waits for whom, one row per edge of the graph ---- */

static const hf__shape party_shape[] = {
    HF__SHAPE("party", "integer", "backend pid of PostgreSQL, pid on a local store"),
    HF__SHAPE_OR_NULL("application", "string", "what it calls itself"),
    HF__SHAPE_OR_NULL("host", "string", "where its client runs"),
    HF__SHAPE_OR_NULL("pid", "integer", "of the client process"),
    HF__SHAPE("root", "boolean", "it keeps others waiting and waits for nobody"),
    HF__SHAPE("in_cycle", "boolean", "it waits, in the end, for itself"),
    HF__SHAPE("keeps_waiting", "integer", "whom it keeps waiting directly"),
    HF__SHAPE("behind", "integer", "of a root: everybody behind it, also over others"),
    {0},
};

static const hf__shape lock_shape[] = {
    HF__KEY_SHAPE,
    HF__SHAPE_OR_NULL("label", "string", "what people call it"),
    HF__SHAPE_OR_NULL("name", "string", "in the registry"),
    {0},
};

const hf__shape hf__wait_shape[] = {
    {"waiter", "object", "who waits", false, NULL, party_shape},
    {"holder", "object", "who is in the way", false, NULL, party_shape},
    {"lock", "object", "what for", false, NULL, lock_shape},
    HF__SHAPE_OR_NULL("wait_ms", "integer", "of that waiter"),
    HF__SHAPE("in_cycle", "boolean", "part of a deadlock"),
    {0},
};

static void put_party(hf__json *json, const char *name, const hf__seen_party *party)
{
    hf__json_begin_object(json, name);
    hf__json_put_integer(json, "party", party->id);
    hf__json_put_text(json, "application", party->application);
    hf__json_put_text(json, "host", party->host);
    hf__put_positive(json, "pid", party->pid);
    hf__json_put_boolean(json, "root", party->root);
    hf__json_put_boolean(json, "in_cycle", party->in_cycle);
    hf__json_put_integer(json, "keeps_waiting", (int64_t)party->blocking);
    hf__json_put_integer(json, "behind", (int64_t)party->kept);
    hf__json_end_object(json);
}

static int64_t wait_of(const hf__snapshot *snapshot, const hf__seen_edge *edge)
{
    const hf__seen_lock *lock = &snapshot->locks[edge->lock];

    for (size_t i = lock->first; i < lock->first + lock->count; i++)
        if (snapshot->views[i]->waiting && snapshot->view_party[i] == edge->waiter)
            return snapshot->views[i]->age_ms;
    return -1;
}

static void put_wait(hf__json *json, const hf__snapshot *snapshot, const hf__seen_edge *edge)
{
    const hf__seen_lock *lock = &snapshot->locks[edge->lock];
    const hf__seen_party *waiter = &snapshot->parties[edge->waiter];
    const hf__seen_party *holder = &snapshot->parties[edge->holder];

    hf__json_begin_object(json, NULL);
    put_party(json, "waiter", waiter);
    put_party(json, "holder", holder);
    hf__json_begin_object(json, "lock");
    hf__put_key(json, lock->space, lock->key);
    hf__json_put_text(json, "label", lock->label);
    hf__json_put_text(json, "name", lock->name);
    hf__json_end_object(json);
    hf__put_ms(json, "wait_ms", wait_of(snapshot, edge));
    hf__json_put_boolean(json, "in_cycle", waiter->in_cycle && holder->in_cycle);
    hf__json_end_object(json);
}

static bool wait_fits(const hf__exchange *exchange, const hf__snapshot *snapshot,
                      const hf__seen_edge *edge)
{
    const hf__seen_lock *lock = &snapshot->locks[edge->lock];
    const hf__seen_party *waiter = &snapshot->parties[edge->waiter];
    const hf__seen_party *holder = &snapshot->parties[edge->holder];
    const char *const texts[] = {lock->label,  lock->name,          waiter->application,
                                 waiter->host, holder->application, holder->host};
    const char *name = hf__asked(exchange, "name");
    int64_t party = hf__asked_number(exchange, "party");

    return hf__key_fits(exchange, lock->key) &&
           (name[0] == '\0' || strcmp(name, lock->name) == 0) &&
           (party == 0 || party == waiter->id || party == holder->id) &&
           hf__text_fits(hf__asked(exchange, "q"), texts, sizeof texts / sizeof texts[0]);
}

const hf__shape hf__wait_extras[] = {
    HF__SHAPE_OR_NULL("at", "string", "when this was seen, RFC 3339; null: nobody waited then"),
    {0},
};

int hf__api_waits(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                  hf__problem *problem)
{
    const hf__snapshot *seen = hf__was_asked(exchange, "at")
                                   ? hf__waits_at(snapshot, hf__asked_number(exchange, "at"))
                                   : snapshot;
    hf__api_list list = hf__api_list_begin(exchange, snapshot);

    (void)problem;
    for (size_t i = 0; seen != NULL && i < seen->edge_count; i++)
        if (wait_fits(exchange, seen, &seen->edges[i]) && hf__api_list_takes(&list))
            put_wait(&list.json, seen, &seen->edges[i]);
    hf__api_list_end_data(&list);
    hf__put_when(&list.json, "at", seen != NULL ? seen->taken_ms : 0);
    return hf__api_list_end(&list, NULL, out);
}

/* ---- /api/v1/waits/past: when to ask for ---- */

const hf__shape hf__moment_shape[] = {
    HF__SHAPE("at", "string", "when most waited in this minute, or ten minutes, RFC 3339"),
    HF__SHAPE("waiting", "integer", "how many"),
    HF__SHAPE("from", "string", "when the minute, or the ten minutes, began"),
    HF__SHAPE("step_ms", "integer", "which of them it is"),
    {0},
};

int hf__api_past(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                 hf__problem *problem)
{
    hf__api_list list = hf__api_list_begin(exchange, snapshot);

    (void)problem;
    for (size_t i = 0; i < snapshot->moment_count; i++) {
        const hf__moment *moment = &snapshot->moments[i];
        if (!hf__api_list_takes(&list))
            continue;
        hf__json_begin_object(&list.json, NULL);
        hf__put_when(&list.json, "at", moment->waits->taken_ms);
        hf__json_put_integer(&list.json, "waiting", (int64_t)moment->waits->waiting);
        hf__put_when(&list.json, "from", moment->from_ms);
        hf__json_put_integer(&list.json, "step_ms", moment->step_ms);
        hf__json_end_object(&list.json);
    }
    hf__api_list_end_data(&list);
    return hf__api_list_end(&list, NULL, out);
}

/* ---- /api/v1/contention: what the collector saw at its refreshes, by columns of time ---- */

static const hf__shape column_shape[] = {
    HF__SHAPE("from", "string", "when it begins, RFC 3339"),
    HF__SHAPE("samples", "integer", "how many refreshes looked"),
    HF__SHAPE("held", "integer", "in how many of them it was held"),
    HF__SHAPE("waiters", "integer", "the most at once"),
    HF__SHAPE("longest_wait_ms", "integer", "the longest that was seen"),
    {0},
};

const hf__shape hf__contention_shape[] = {
    HF__SHAPE_OR_NULL("lock", "string",
                      "its registered name, else its label or key; null: all others"),
    HF__SHAPE("registered", "boolean", "the registry knows it"),
    HF__SHAPE("step_ms", "integer", "how long a column is"),
    HF__SHAPE("samples", "integer", "how many refreshes looked"),
    HF__SHAPE("held", "integer", "in how many of them it was held"),
    HF__SHAPE("waiters", "integer", "the most at once"),
    HF__SHAPE("longest_wait_ms", "integer", "the longest that was seen"),
    {"columns", "array", "those in which somebody looked, the oldest first", false, "object",
     column_shape},
    {0},
};

static void put_cell(hf__json *json, const hf__heat_cell *cell)
{
    hf__json_put_integer(json, "samples", cell->samples);
    hf__json_put_integer(json, "held", cell->held);
    hf__json_put_integer(json, "waiters", cell->waiters);
    hf__json_put_integer(json, "longest_wait_ms", cell->longest_wait_ms);
}

static void put_contention(hf__json *json, const hf__heat_map *map, const hf__heat_row *row)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_text(json, "lock", row->is_other ? "" : row->lock);
    hf__json_put_boolean(json, "registered", row->registered);
    hf__json_put_integer(json, "step_ms", map->step_ms);
    put_cell(json, &row->sum);
    hf__json_begin_array(json, "columns");
    for (size_t i = 0; i < map->columns; i++) {
        if (row->cells[i].samples == 0)
            continue;
        hf__json_begin_object(json, NULL);
        hf__put_when(json, "from", map->from_ms + (int64_t)i * map->step_ms);
        put_cell(json, &row->cells[i]);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
    hf__json_end_object(json);
}

int hf__api_contention(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                       hf__problem *problem)
{
    bool day = strcmp(hf__asked(exchange, "span"), "24h") == 0;
    const hf__heat_map *map = day ? &snapshot->day : &snapshot->hour;
    hf__api_list list = hf__api_list_begin(exchange, snapshot);

    (void)problem;
    for (size_t i = 0; i < map->count; i++) {
        const char *const texts[] = {map->rows[i].lock};
        if (hf__text_fits(hf__asked(exchange, "q"), texts, 1) && hf__api_list_takes(&list))
            put_contention(&list.json, map, &map->rows[i]);
    }
    hf__api_list_end_data(&list);
    return hf__api_list_end(&list, NULL, out);
}

/* ---- /api/v1/events: what happened lately, the newest first ---- */

const hf__shape hf__event_shape[] = {
    HF__SHAPE("id", "integer", "grows with time"),
    HF__SHAPE("at", "string", "when, RFC 3339"),
    HF__SHAPE("at_ms", "integer", "the same as Unix time in milliseconds"),
    HF__SHAPE("event", "string", "acquired, conflict, timeout, deadlock, lost, released, exit, …"),
    HF__KEY_SHAPE,
    HF__SHAPE("mode", "string", "exclusive or shared"),
    HF__SHAPE_OR_NULL("label", "string", "what people call the lock"),
    HF__SHAPE_OR_NULL("name", "string", "in the registry"),
    HF__SHAPE_OR_NULL("token", "integer", "the fencing token, 64 bits"),
    HF__SHAPE_OR_NULL("token_text", "string", "the same as text"),
    HF__SHAPE_OR_NULL("wait_ms", "integer", "how long it had been waited for"),
    HF__SHAPE_OR_NULL("hold_ms", "integer", "how long it had been held"),
    HF__SHAPE_OR_NULL("application", "string", "who"),
    HF__SHAPE_OR_NULL("host", "string", "where"),
    HF__SHAPE_OR_NULL("pid", "integer", "which process"),
    HF__SHAPE_OR_NULL("detail", "string", "the reason of a loss, the class of an exit, …"),
    {0},
};

static void put_event(hf__json *json, const hf__seen_event *event)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_integer(json, "id", event->id);
    hf__put_when(json, "at", event->at_ms);
    hf__json_put_integer(json, "at_ms", event->at_ms);
    hf__json_put_string(json, "event", event->event);
    hf__put_key(json, event->space, event->key);
    hf__json_put_string(json, "mode", hf__mode_name(event->mode));
    hf__json_put_text(json, "label", event->label);
    hf__json_put_text(json, "name", event->name);
    hf__put_token(json, event->token);
    hf__put_ms(json, "wait_ms", event->wait_ms);
    hf__put_ms(json, "hold_ms", event->hold_ms);
    hf__json_put_text(json, "application", event->application);
    hf__json_put_text(json, "host", event->host);
    hf__put_positive(json, "pid", event->pid);
    hf__json_put_text(json, "detail", event->detail);
    hf__json_end_object(json);
}

static bool event_fits(const hf__exchange *exchange, const hf__seen_event *event)
{
    const char *const texts[] = {event->label, event->name, event->application, event->host,
                                 event->detail};
    const char *kind = hf__asked(exchange, "event");
    const char *name = hf__asked(exchange, "name");

    return (kind[0] == '\0' || strcmp(kind, event->event) == 0) &&
           (name[0] == '\0' || strcmp(name, event->name) == 0) &&
           (!hf__was_asked(exchange, "since") ||
            event->at_ms >= hf__asked_number(exchange, "since")) &&
           hf__key_fits(exchange, event->key) &&
           hf__text_fits(hf__asked(exchange, "q"), texts, sizeof texts / sizeof texts[0]);
}

int hf__api_events(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                   hf__problem *problem)
{
    hf__api_list list = hf__api_list_begin(exchange, snapshot);

    (void)problem;
    for (size_t i = 0; i < snapshot->event_count; i++)
        if (event_fits(exchange, &snapshot->events[i]) && hf__api_list_takes(&list))
            put_event(&list.json, &snapshot->events[i]);
    hf__api_list_end_data(&list);
    return hf__api_list_end(&list, NULL, out);
}

/* ---- /api/v1/history: the same of all that is recorded, from the store ---- */

enum { FAR_S = INT32_MAX }; /* the end of times, for who does not say until when */

struct history {
    hf__api_list list;
    char next[24];
};

/* One more than the page has is asked for: then there is a next one. */
static void put_past(void *arg, const hf__seen_event *event)
{
    struct history *history = arg;

    if (history->list.shown == history->list.limit) {
        history->list.total++;
        return;
    }
    history->list.shown++;
    (void)snprintf(history->next, sizeof history->next, "%" PRId64, event->id);
    put_event(&history->list.json, event);
}

int hf__api_history(hf_store *store, const hf__exchange *exchange, const hf__snapshot *snapshot,
                    hf__buf *out, hf__problem *problem)
{
    struct history history = {.list = hf__api_list_begin(exchange, snapshot)};
    const hf__past_events which = {
        .before =
            hf__was_asked(exchange, "cursor") ? hf__asked_number(exchange, "cursor") : INT64_MAX,
        .from_ms = hf__asked_number(exchange, "since"),
        .to_ms = hf__was_asked(exchange, "until") ? hf__asked_number(exchange, "until")
                                                  : INT64_C(1000) * FAR_S,
        .event = hf__asked(exchange, "event"),
        .key = hf__asked(exchange, "key"),
        .limit = history.list.limit + 1,
    };
    hf_error err;

    hf_status status = hf__past_events_read(store, &which, put_past, &history, &err);
    if (status != HF_OK) {
        hf__buf_free(&history.list.json.text);
        hf__refuse(problem, status == HF_UNREACHABLE || status == HF_EXHAUSTED ? 503 : 500, "%s",
                   err.message);
        return problem->status;
    }
    if (history.list.total == 0)
        history.next[0] = '\0';
    history.list.total = 0;
    hf__api_list_end_data(&history.list);
    return hf__api_list_end(&history.list, history.next, out);
}
