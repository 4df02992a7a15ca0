/*
 * Who waits for whom. The sessions of one process are one party, because Holdfast holds on one of
 * its connections and waits on another. Everything here takes time linear in views and edges,
 * except `kept`, which has a budget.
 */
#include "programs/view/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { KEPT_BUDGET = 4000000 }; /* steps for `kept`, for all roots together */

#define NOBODY SIZE_MAX

/* A hash table with open addressing. The caller compares what it looks up. */
struct map {
    size_t *slots; /* indexes + 1; 0: free */
    size_t mask;
};

struct drawing {
    hf__view_draft *draft;
    hf__snapshot *seen;
    hf__arena scratch;
    struct map people;   /* by host and pid, or by session */
    struct map sessions; /* by session: the first view of it */
    bool *holds;         /* does the session with the party's id hold something? */
    size_t *mark;        /* of each party: the waiter of the last edge to it, + 1 */
    size_t edge_room;
};

static bool make_map(hf__arena *arena, struct map *map, size_t count)
{
    size_t size = 16;
    while (size < count * 2)
        size *= 2;
    map->slots = hf__arena_array(arena, size, sizeof *map->slots);
    map->mask = size - 1;
    return map->slots != NULL;
}

/* ---- parties --------------------------------------------------------------------------------- */

static int session_of(const struct drawing *drawing, const hf_lock_view *view)
{
    return drawing->seen->local ? view->pid : view->backend_pid;
}

static bool is_process(const hf_lock_view *view)
{
    return view->pid > 0 && view->host[0] != '\0';
}

static uint64_t hash_person(const struct drawing *drawing, const hf_lock_view *view)
{
    if (!is_process(view))
        return hf__hash_int((unsigned)session_of(drawing, view));
    return hf__hash_int(hf__hash_bytes(view->host, strlen(view->host)) ^ (unsigned)view->pid);
}

static bool is_same_person(const struct drawing *drawing, const hf_lock_view *a,
                           const hf_lock_view *b)
{
    if (is_process(a) != is_process(b))
        return false;
    return is_process(a) ? a->pid == b->pid && strcmp(a->host, b->host) == 0
                         : session_of(drawing, a) == session_of(drawing, b);
}

/* The first view of the same party, which may be this one. */
static size_t first_of_person(struct drawing *drawing, size_t view)
{
    const hf_lock_view *const *views = drawing->seen->views;
    struct map *map = &drawing->people;
    size_t at = hash_person(drawing, views[view]) & map->mask;
    while (map->slots[at] && !is_same_person(drawing, views[map->slots[at] - 1], views[view]))
        at = (at + 1) & map->mask;
    if (!map->slots[at])
        map->slots[at] = view + 1;
    return map->slots[at] - 1;
}

static size_t *session_slot(struct drawing *drawing, int session)
{
    const hf_lock_view *const *views = drawing->seen->views;
    struct map *map = &drawing->sessions;
    size_t at = hf__hash_int((unsigned)session) & map->mask;
    while (map->slots[at] && session_of(drawing, views[map->slots[at] - 1]) != session)
        at = (at + 1) & map->mask;
    return &map->slots[at];
}

static size_t party_of_session(struct drawing *drawing, int session)
{
    size_t view = *session_slot(drawing, session);
    return view ? drawing->seen->view_party[view - 1] : NOBODY;
}

static void add_party(struct drawing *drawing, const hf_lock_view *view)
{
    hf__snapshot *seen = drawing->seen;
    seen->parties[seen->party_count++] = (hf__seen_party){
        .id = session_of(drawing, view),
        .application = view->application,
        .host = view->host,
        .pid = view->pid,
        .waits_for = NOBODY,
        .through = NOBODY,
        .query = "",
    };
}

/* A party is ended by the session that holds something, so that session gives it its id. */
static void join_party(struct drawing *drawing, size_t party, const hf_lock_view *view)
{
    if (view->waiting || drawing->holds[party])
        return;
    drawing->holds[party] = true;
    drawing->seen->parties[party].id = session_of(drawing, view);
}

static void find_parties(struct drawing *drawing)
{
    hf__snapshot *seen = drawing->seen;
    for (size_t i = 0; i < seen->view_count; i++) {
        const hf_lock_view *view = seen->views[i];
        seen->view_party[i] = NOBODY;
        if (session_of(drawing, view) == 0)
            continue; /* a prepared transaction, or a local lock without a record */
        size_t first = first_of_person(drawing, i);
        if (first == i)
            add_party(drawing, view);
        seen->view_party[i] = first == i ? seen->party_count - 1 : seen->view_party[first];
        join_party(drawing, seen->view_party[i], view);
        size_t *slot = session_slot(drawing, session_of(drawing, view));
        if (!*slot)
            *slot = i + 1;
    }
}

static void find_waits(struct drawing *drawing)
{
    hf__snapshot *seen = drawing->seen;
    for (size_t i = 0; i < seen->lock_count; i++) /* the longest wait */
        for (size_t j = seen->locks[i].first; j < seen->locks[i].first + seen->locks[i].count; j++)
            if (seen->views[j]->waiting && seen->view_party[j] != NOBODY &&
                seen->parties[seen->view_party[j]].waits_for == NOBODY)
                seen->parties[seen->view_party[j]].waits_for = i;
}

/* ---- edges ----------------------------------------------------------------------------------- */

static bool make_edge_room(struct drawing *drawing)
{
    hf__snapshot *seen = drawing->seen;
    if (seen->edge_count >= HF__EDGES_MAX)
        return false;
    if (seen->edge_count < drawing->edge_room)
        return true;
    size_t room = drawing->edge_room ? drawing->edge_room * 4 : 64;
    hf__seen_edge *edges = hf__arena_array(&drawing->draft->arena, room, sizeof *edges);
    if (!edges)
        return false;
    if (seen->edge_count > 0)
        memcpy(edges, seen->edges, seen->edge_count * sizeof *edges);
    seen->edges = edges;
    drawing->edge_room = room;
    return true;
}

static bool add_edge(struct drawing *drawing, size_t view, size_t holder, size_t lock)
{
    hf__snapshot *seen = drawing->seen;
    size_t waiter = seen->view_party[view];
    if (holder == NOBODY || holder == waiter)
        return false;
    if (drawing->mark[holder] == view + 1)
        return true;
    if (!make_edge_room(drawing))
        return false;
    drawing->mark[holder] = view + 1;
    seen->edges[seen->edge_count++] = (hf__seen_edge){waiter, holder, lock};
    seen->parties[waiter].blockers++;
    seen->parties[holder].blocking++;
    return true;
}

static bool add_named(struct drawing *drawing, size_t view, size_t lock)
{
    const char *at = drawing->seen->views[view]->blocked_by;
    bool any = false;
    while (*at) {
        char *end = NULL;
        long session = strtol(at, &end, 10);
        if (end == at)
            break;
        if (add_edge(drawing, view, party_of_session(drawing, (int)session), lock))
            any = true;
        at = *end == ',' ? end + 1 : end;
    }
    return any;
}

static bool conflicts(const hf_lock_view *a, const hf_lock_view *b)
{
    return a->mode == HF_EXCLUSIVE || b->mode == HF_EXCLUSIVE;
}

/* The list names the holders in the way. If there is none, a waiter queues behind other waiters. */
static void add_queued(struct drawing *drawing, size_t view, size_t lock, size_t ahead)
{
    hf__snapshot *seen = drawing->seen;
    const hf__seen_lock *queue = &seen->locks[lock];
    bool any = false;
    for (size_t i = queue->first; i < queue->first + queue->holders; i++)
        if (conflicts(seen->views[i], seen->views[view]) &&
            add_edge(drawing, view, seen->view_party[i], lock))
            any = true;
    if (!any && ahead != NOBODY)
        (void)add_edge(drawing, view, seen->view_party[ahead], lock);
}

static void find_edges_of(struct drawing *drawing, size_t lock)
{
    hf__snapshot *seen = drawing->seen;
    const hf__seen_lock *queue = &seen->locks[lock];
    size_t last = NOBODY, last_exclusive = NOBODY;
    for (size_t i = queue->first + queue->holders; i < queue->first + queue->count; i++) {
        bool shared = seen->views[i]->mode == HF_SHARED;
        if (seen->view_party[i] == NOBODY)
            continue;
        if (!add_named(drawing, i, lock))
            add_queued(drawing, i, lock, shared ? last_exclusive : last);
        last = i;
        if (!shared)
            last_exclusive = i;
    }
}

/* ---- cycles ---------------------------------------------------------------------------------- */

/* Edges by one of their ends. Those of party p are items[start[p]] to items[start[p + 1] - 1]. */
struct adjacency {
    size_t *start;
    size_t *items; /* the other ends */
};

static bool index_edges(struct drawing *drawing, bool by_waiter, struct adjacency *out)
{
    const hf__snapshot *seen = drawing->seen;
    hf__arena *arena = &drawing->scratch;
    out->start = hf__arena_array(arena, seen->party_count + 2, sizeof *out->start);
    out->items = hf__arena_array(arena, seen->edge_count, sizeof *out->items);
    if (!out->start || !out->items)
        return false;
    for (size_t i = 0; i < seen->edge_count; i++)
        out->start[(by_waiter ? seen->edges[i].waiter : seen->edges[i].holder) + 2]++;
    for (size_t p = 2; p < seen->party_count + 2; p++)
        out->start[p] += out->start[p - 1];
    for (size_t i = 0; i < seen->edge_count; i++) {
        size_t one = seen->edges[i].waiter, other = seen->edges[i].holder;
        out->items[out->start[(by_waiter ? one : other) + 1]++] = by_waiter ? other : one;
    }
    return true;
}

/* Tarjan's algorithm for cycles, without recursion, because chains may be long. */
struct search {
    const struct adjacency *out;
    hf__seen_party *parties;
    size_t *number, *low, *next; /* of each party; number 0: not visited yet */
    size_t *path, path_count;    /* the path of the search */
    size_t *open, open_count;    /* visited, and not assigned to a component yet */
    bool *is_open;
    size_t met;
};

static bool make_search(struct drawing *drawing, const struct adjacency *out, struct search *search)
{
    size_t count = drawing->seen->party_count;
    hf__arena *arena = &drawing->scratch;
    *search = (struct search){.out = out, .parties = drawing->seen->parties};
    search->number = hf__arena_array(arena, count, sizeof(size_t));
    search->low = hf__arena_array(arena, count, sizeof(size_t));
    search->next = hf__arena_array(arena, count, sizeof(size_t));
    search->path = hf__arena_array(arena, count, sizeof(size_t));
    search->open = hf__arena_array(arena, count, sizeof(size_t));
    search->is_open = hf__arena_array(arena, count, sizeof(bool));
    return !arena->broken;
}

static void enter(struct search *search, size_t party)
{
    search->number[party] = search->low[party] = ++search->met;
    search->next[party] = search->out->start[party];
    search->path[search->path_count++] = party;
    search->open[search->open_count++] = party;
    search->is_open[party] = true;
}

static void leave(struct search *search, size_t party)
{
    search->path_count--;
    if (search->path_count > 0) {
        size_t above = search->path[search->path_count - 1];
        if (search->low[party] < search->low[above])
            search->low[above] = search->low[party];
    }
    if (search->low[party] != search->number[party])
        return;
    bool alone = search->open[search->open_count - 1] == party;
    size_t member;
    do {
        member = search->open[--search->open_count];
        search->is_open[member] = false;
        search->parties[member].in_cycle = !alone;
    } while (member != party);
}

static void search_from(struct search *search, size_t party)
{
    enter(search, party);
    while (search->path_count > 0) {
        size_t at = search->path[search->path_count - 1];
        if (search->next[at] == search->out->start[at + 1]) {
            leave(search, at);
            continue;
        }
        size_t to = search->out->items[search->next[at]++];
        if (!search->number[to])
            enter(search, to);
        else if (search->is_open[to] && search->number[to] < search->low[at])
            search->low[at] = search->number[to];
    }
}

static void find_cycles(struct drawing *drawing)
{
    struct adjacency out;
    struct search search;
    if (!index_edges(drawing, true, &out) || !make_search(drawing, &out, &search))
        return;
    for (size_t i = 0; i < drawing->seen->party_count; i++)
        if (!search.number[i])
            search_from(&search, i);
}

/* ---- roots ----------------------------------------------------------------------------------- */

struct roots {
    struct adjacency in;
    size_t *mark;   /* of each party: the last root that it was found behind, + 1 */
    size_t *stack;  /* parties whose waiters are to be looked at */
    int64_t *waits; /* of each party: how long it waits */
    size_t budget;
};

static bool make_roots(struct drawing *drawing, struct roots *roots)
{
    const hf__snapshot *seen = drawing->seen;
    hf__arena *arena = &drawing->scratch;
    *roots = (struct roots){.budget = KEPT_BUDGET};
    roots->mark = hf__arena_array(arena, seen->party_count, sizeof *roots->mark);
    roots->stack = hf__arena_array(arena, seen->party_count, sizeof *roots->stack);
    roots->waits = hf__arena_array(arena, seen->party_count, sizeof *roots->waits);
    if (arena->broken || !index_edges(drawing, false, &roots->in))
        return false;
    for (size_t i = 0; i < seen->view_count; i++) {
        size_t party = seen->view_party[i];
        if (seen->views[i]->waiting && party != NOBODY &&
            seen->views[i]->age_ms > roots->waits[party])
            roots->waits[party] = seen->views[i]->age_ms;
    }
    return true;
}

/* Counts the parties behind a root, as far as the budget goes. */
static void look_behind(struct roots *roots, hf__seen_party *parties, size_t root)
{
    size_t depth = 0;
    roots->stack[depth++] = root;
    roots->mark[root] = root + 1;
    while (depth > 0) {
        size_t at = roots->stack[--depth];
        size_t end = roots->in.start[at + 1];
        for (size_t i = roots->in.start[at]; i < end && roots->budget > 0; i++, roots->budget--) {
            size_t waiter = roots->in.items[i];
            if (roots->mark[waiter] == root + 1)
                continue;
            roots->mark[waiter] = root + 1;
            roots->stack[depth++] = waiter;
            parties[waiter].behind_root = true;
            parties[root].kept++;
            if (roots->waits[waiter] > parties[root].kept_ms)
                parties[root].kept_ms = roots->waits[waiter];
        }
    }
}

/* The edges of one lock stand together. */
static void find_locks_of_roots(struct drawing *drawing)
{
    hf__snapshot *seen = drawing->seen;
    size_t *count = hf__arena_array(&drawing->scratch, seen->party_count, sizeof *count);
    size_t *most = hf__arena_array(&drawing->scratch, seen->party_count, sizeof *most);
    size_t *of = hf__arena_array(&drawing->scratch, seen->party_count, sizeof *of);
    for (size_t i = 0; of && most && count && i < seen->edge_count; i++) {
        size_t holder = seen->edges[i].holder, lock = seen->edges[i].lock;
        if (!seen->parties[holder].root)
            continue;
        count[holder] = of[holder] == lock + 1 ? count[holder] + 1 : 1;
        of[holder] = lock + 1;
        if (count[holder] > most[holder]) {
            most[holder] = count[holder];
            seen->parties[holder].through = lock;
        }
    }
}

static void find_roots(struct drawing *drawing)
{
    hf__snapshot *seen = drawing->seen;
    struct roots roots;
    if (!make_roots(drawing, &roots))
        return;
    for (size_t i = 0; i < seen->party_count; i++) {
        hf__seen_party *party = &seen->parties[i];
        party->root = party->blocking > 0 && party->blockers == 0 && party->waits_for == NOBODY;
        if (!party->root)
            continue;
        look_behind(&roots, seen->parties, i);
        if (party->kept < party->blocking)
            party->kept = party->blocking;
    }
    find_locks_of_roots(drawing);
}

static void draw(struct drawing *drawing)
{
    hf__snapshot *seen = drawing->seen;
    hf__arena *arena = &drawing->draft->arena, *scratch = &drawing->scratch;
    seen->parties = hf__arena_array(arena, seen->view_count, sizeof *seen->parties);
    seen->view_party = hf__arena_array(arena, seen->view_count, sizeof *seen->view_party);
    drawing->holds = hf__arena_array(scratch, seen->view_count, sizeof *drawing->holds);
    drawing->mark = hf__arena_array(scratch, seen->view_count, sizeof *drawing->mark);
    if (!make_map(scratch, &drawing->people, seen->view_count) ||
        !make_map(scratch, &drawing->sessions, seen->view_count) || arena->broken)
        return;
    find_parties(drawing);
    find_waits(drawing);
    for (size_t i = 0; i < seen->lock_count; i++)
        find_edges_of(drawing, i);
    find_cycles(drawing);
    find_roots(drawing);
}

void hf__graph_draw(hf__view_draft *draft)
{
    struct drawing drawing = {.draft = draft, .seen = &draft->seen};
    draw(&drawing);
    draft->arena.broken = draft->arena.broken || drawing.scratch.broken;
    hf__arena_free(&drawing.scratch);
}
