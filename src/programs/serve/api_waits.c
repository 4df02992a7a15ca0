/* /api/v1/waits: who waits for whom, one row per edge of the graph. */
#include <string.h>

#include "programs/serve/api.h"

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

static bool fits(const hf__exchange *exchange, const hf__snapshot *snapshot,
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

int hf__api_waits(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                  hf__problem *problem)
{
    hf__list list = hf__list_begin(exchange, snapshot);

    (void)problem;
    for (size_t i = 0; i < snapshot->edge_count; i++)
        if (fits(exchange, snapshot, &snapshot->edges[i]) && hf__list_takes(&list))
            put_wait(&list.json, snapshot, &snapshot->edges[i]);
    hf__list_end_data(&list);
    return hf__list_end(&list, NULL, out);
}
