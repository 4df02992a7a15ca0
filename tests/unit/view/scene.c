#include "scene.h"

#include <stdlib.h>

#include "unit.h"

#include "base/vec.h"

enum { MOST_EDGES = 2000 }; /* with more of them a test says itself who is a root */

#define MAKE_ROOM(items, room, count)                                                              \
    assert_true(hf__grow(&(items), &(room), (count) + 1, sizeof *(items)))

struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    scene->seen = (hf__snapshot){
        .number = 1,
        .taken_ms = 1700000000000,
        .took_ms = 4,
        .store = "postgresql://app@db1:5432/prod",
        .has_records = true,
        .problem = "",
        .registry = (const hf_registry *)scene, /* that there is one; not to look into */
    };
    return scene;
}

void scene_free(struct scene *scene)
{
    free(scene->rows);
    free(scene->networks);
    free((void *)scene->seen.views);
    free(scene->seen.view_party);
    free(scene->seen.locks);
    free(scene->seen.parties);
    free(scene->seen.edges);
    free(scene->seen.events);
    free(scene);
}

hf__seen_lock *add_lock(struct scene *scene, const char *label, int64_t key)
{
    hf__snapshot *seen = &scene->seen;

    MAKE_ROOM(seen->locks, scene->lock_room, seen->lock_count);
    seen->locks[seen->lock_count] = (hf__seen_lock){
        .key = key,
        .label = label,
        .name = "",
        .known_as = "",
        .first = seen->view_count,
        .held_ms = -1,
        .longest_wait_ms = -1,
    };
    return &seen->locks[seen->lock_count++];
}

size_t add_party(struct scene *scene, const char *application, const char *host, int id)
{
    hf__snapshot *seen = &scene->seen;

    MAKE_ROOM(seen->parties, scene->party_room, seen->party_count);
    seen->parties[seen->party_count] = (hf__seen_party){
        .id = id,
        .application = application,
        .host = host,
        .pid = id + 1000,
        .waits_for = SIZE_MAX,
        .query = "",
    };
    return seen->party_count++;
}

static void add_row(struct scene *scene, size_t party, int64_t age_ms, bool waiting)
{
    hf__snapshot *seen = &scene->seen;
    hf__seen_lock *lock = &seen->locks[seen->lock_count - 1];
    const hf__seen_party *who = &seen->parties[party];

    MAKE_ROOM(scene->rows, scene->row_room, seen->view_count);
    MAKE_ROOM(seen->view_party, scene->party_of_room, seen->view_count);
    scene->rows[seen->view_count] = (hf_lock_view){
        .key = lock->key,
        .waiting = waiting,
        .ours = true,
        .session_known = true,
        .label = lock->label,
        .application = who->application,
        .host = who->host,
        .pid = who->pid,
        .backend_pid = who->id,
        .age_ms = age_ms,
        .token = waiting ? 0 : who->id + 1000,
        .blocked_by = "",
        .name = lock->name,
        .pattern = "",
        .idle_ms = -1,
    };
    seen->view_party[seen->view_count++] = party;
    lock->count++;
}

void hold(struct scene *scene, size_t party, int64_t age_ms)
{
    hf__seen_lock *lock = &scene->seen.locks[scene->seen.lock_count - 1];

    add_row(scene, party, age_ms, false);
    lock->holders++;
    lock->held_ms = age_ms > lock->held_ms ? age_ms : lock->held_ms;
}

void await(struct scene *scene, size_t party, int64_t age_ms)
{
    hf__seen_lock *lock = &scene->seen.locks[scene->seen.lock_count - 1];

    add_row(scene, party, age_ms, true);
    lock->waiters++;
    lock->longest_wait_ms = age_ms > lock->longest_wait_ms ? age_ms : lock->longest_wait_ms;
    scene->seen.parties[party].waits_for = scene->seen.lock_count - 1;
}

hf__seen_event *add_event(struct scene *scene, int64_t id, const char *event, const char *label,
                          int64_t key)
{
    hf__snapshot *seen = &scene->seen;

    MAKE_ROOM(seen->events, scene->event_room, seen->event_count);
    seen->events[seen->event_count] = (hf__seen_event){
        .id = id,
        .at_ms = seen->taken_ms - id * 1000,
        .event = event,
        .key = key,
        .label = label,
        .name = "",
        .wait_ms = -1,
        .hold_ms = -1,
        .application = "nightly",
        .host = "db1",
        .detail = "",
    };
    return &seen->events[seen->event_count++];
}

hf__seen_network *add_network(struct scene *scene, const char *name)
{
    MAKE_ROOM(scene->networks, scene->network_room, scene->seen.network_count);
    scene->seen.networks = scene->networks;
    hf__seen_network *network = &scene->networks[scene->seen.network_count++];
    *network = (hf__seen_network){
        .name = name, .network = name, .schema = "", .rate = -1, .ingester = "", .problem = ""};
    return network;
}

/* ---- the graph ------------------------------------------------------------------------------- */

void add_edge(struct scene *scene, size_t waiter, size_t holder, size_t lock)
{
    hf__snapshot *seen = &scene->seen;

    MAKE_ROOM(seen->edges, scene->edge_room, seen->edge_count);
    seen->edges[seen->edge_count++] = (hf__seen_edge){waiter, holder, lock};
    seen->parties[waiter].blockers++;
    seen->parties[holder].blocking++;
}

static void add_edges_of(struct scene *scene, size_t at)
{
    const hf__snapshot *seen = &scene->seen;
    const hf__seen_lock *lock = &seen->locks[at];

    for (size_t w = lock->first; w < lock->first + lock->count; w++)
        for (size_t h = lock->first; h < lock->first + lock->count; h++)
            if (scene->rows[w].waiting && !scene->rows[h].waiting)
                add_edge(scene, seen->view_party[w], seen->view_party[h], at);
}

/* Everybody who waits for the party in the end, itself included if it does; by flooding. */
static size_t behind(const hf__snapshot *seen, size_t party, bool *self)
{
    bool *reached = calloc(seen->party_count, sizeof *reached);
    size_t count = 0;

    assert_non_null(reached);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < seen->edge_count; i++) {
            const hf__seen_edge *edge = &seen->edges[i];
            if ((edge->holder == party || reached[edge->holder]) && !reached[edge->waiter]) {
                reached[edge->waiter] = more = true;
                count++;
            }
        }
    }
    *self = reached[party];
    free(reached);
    return count;
}

void finish(struct scene *scene)
{
    hf__snapshot *seen = &scene->seen;

    for (size_t i = 0; i < seen->view_count; i++) {
        MAKE_ROOM(seen->views, scene->view_room, i);
        seen->views[i] = &scene->rows[i];
    }
    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        add_edges_of(scene, i);
        seen->held += lock->holders > 0;
        seen->waiting += lock->waiters;
        seen->unregistered += lock->name[0] == '\0';
        if (lock->longest_wait_ms > seen->longest_wait_ms)
            seen->longest_wait_ms = lock->longest_wait_ms;
    }
    for (size_t i = 0; i < seen->party_count && seen->edge_count <= MOST_EDGES; i++) {
        hf__seen_party *party = &seen->parties[i];
        size_t count = behind(seen, i, &party->in_cycle);
        party->root = party->blocking > 0 && party->waits_for == SIZE_MAX;
        party->kept = party->root ? count : 0;
    }
}
