/* /api/v1/locks: every key that is held or waited for, with who does. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "programs/serve/api.h"

static const hf__shape user_shape[] = {
    HF__SHAPE_OR_NULL("party", "integer", "backend pid of PostgreSQL, pid on a local store"),
    HF__SHAPE("mode", "string", "exclusive or shared"),
    HF__SHAPE_OR_NULL("lifetime", "string", "session or transaction; null: nobody can tell"),
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
    const char *lifetime = view->lifetime == HF_TRANSACTION ? "transaction" : "session";

    hf__json_begin_object(json, NULL);
    hf__put_positive(json, "party",
                     party < snapshot->party_count ? snapshot->parties[party].id : 0);
    hf__json_put_string(json, "mode", hf__mode_name(view->mode));
    hf__json_put_text(json, "lifetime", view->session_known ? lifetime : "");
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

/* ---- which of them ------------------------------------------------------------------------------------- */

static bool is_in_state(const hf__seen_lock *lock, const char *state)
{
    if (strcmp(state, "held") == 0)
        return lock->holders > 0;
    if (strcmp(state, "waiting") == 0)
        return lock->waiters > 0;
    return strcmp(state, "unregistered") != 0 || lock->name[0] == '\0';
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
    hf__list list = hf__list_begin(exchange, snapshot);

    (void)problem;
    for (size_t i = 0; i < snapshot->lock_count; i++) {
        const hf__seen_lock *lock = &snapshot->locks[i];
        if (fits(exchange, snapshot, lock) && hf__list_takes(&list))
            put_lock(&list.json, snapshot, lock);
    }
    hf__list_end_data(&list);
    return hf__list_end(&list, NULL, out);
}
