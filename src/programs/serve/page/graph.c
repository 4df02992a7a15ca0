#include "programs/serve/page/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static const double way_back = 0.8; /* rows that a cycle's way back takes below it */

struct making {
    const hf__snapshot *seen;
    hf__graph *graph;
    size_t *party_node, *lock_node; /* SIZE_MAX: not shown */
    size_t *edges;                  /* by holder, then lock */
    size_t node_room, link_room;
    bool folded;
    bool broken;
};

static int by_holder(const void *left, const void *right, void *arg)
{
    const hf__seen_edge *edges = arg;
    const hf__seen_edge *a = &edges[*(const size_t *)left];
    const hf__seen_edge *b = &edges[*(const size_t *)right];

    if (a->holder != b->holder)
        return a->holder < b->holder ? -1 : 1;
    return (a->lock > b->lock) - (a->lock < b->lock);
}

/* The index of the holder's first edge in making->edges. */
static size_t first_edge(const struct making *making, size_t holder)
{
    size_t low = 0;
    size_t high = making->seen->edge_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (making->seen->edges[making->edges[middle]].holder < holder)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t add_node(struct making *making, hf__graph_node node)
{
    hf__graph *graph = making->graph;

    making->broken |=
        !hf__grow(&graph->nodes, &making->node_room, graph->count + 1, sizeof *graph->nodes);
    if (making->broken)
        return SIZE_MAX;
    node.depth =
        node.parent == SIZE_MAX ? node.kind == HF__NODE_LOCK : graph->nodes[node.parent].depth + 1;
    if (node.depth > graph->depth)
        graph->depth = node.depth;
    graph->nodes[graph->count] = node;
    return graph->count++;
}

static void add_party(struct making *making, size_t party, size_t parent, int64_t wait_ms);

/* Does the party have the lock? One that only waits in front of others is in their way too. */
static bool has_lock(const hf__snapshot *seen, size_t party, size_t index)
{
    const hf__seen_lock *lock = &seen->locks[index];

    for (size_t i = lock->first; i < lock->first + lock->holders; i++)
        if (seen->view_party[i] == party)
            return true;
    return false;
}

/* The party waits, and nobody waits for what it has. */
static bool is_leaf(const struct making *making, size_t party)
{
    const hf__snapshot *seen = making->seen;
    size_t last = SIZE_MAX;

    for (size_t i = first_edge(making, party); i < seen->edge_count; i++) {
        const hf__seen_edge *edge = &seen->edges[making->edges[i]];
        if (edge->holder != party)
            break;
        if (edge->lock != last && has_lock(seen, party, edge->lock))
            return false;
        last = edge->lock;
    }
    return true;
}

static bool is_full(const struct making *making)
{
    return making->broken || making->graph->shown >= HF__GRAPH_PARTIES;
}

static bool lock_in_cycle(const hf__snapshot *seen, const hf__seen_lock *lock)
{
    for (size_t i = lock->first + lock->holders; i < lock->first + lock->count; i++)
        if (seen->view_party[i] < seen->party_count && seen->parties[seen->view_party[i]].in_cycle)
            return true;
    return false;
}

static void add_lock(struct making *making, size_t index, size_t parent)
{
    const hf__snapshot *seen = making->seen;
    const hf__seen_lock *lock = &seen->locks[index];
    size_t shown = 0;
    size_t left_out = 0;

    if (making->lock_node[index] != SIZE_MAX || is_full(making))
        return;
    size_t self = add_node(making, (hf__graph_node){.kind = HF__NODE_LOCK,
                                                    .index = index,
                                                    .parent = parent,
                                                    .wait_ms = -1,
                                                    .in_cycle = lock_in_cycle(seen, lock)});
    making->lock_node[index] = self;
    for (size_t i = lock->first + lock->holders; i < lock->first + lock->count; i++) {
        size_t party = seen->view_party[i];
        if (party >= seen->party_count || making->party_node[party] != SIZE_MAX)
            continue;
        if (is_full(making) ||
            (making->folded && shown == HF__GRAPH_WAITERS && is_leaf(making, party))) {
            left_out++;
            continue;
        }
        shown += is_leaf(making, party);
        add_party(making, party, self, seen->views[i]->age_ms);
    }
    if (left_out > 0)
        add_node(making,
                 (hf__graph_node){
                     .kind = HF__NODE_MORE, .index = left_out, .parent = self, .wait_ms = -1});
    if (!making->broken)
        making->graph->nodes[self].end = making->graph->count;
}

/* Recursive: HF__GRAPH_PARTIES bounds how deep the tree can be. */
static void add_party(struct making *making, size_t party, size_t parent, int64_t wait_ms)
{
    const hf__snapshot *seen = making->seen;

    if (making->party_node[party] != SIZE_MAX || is_full(making))
        return;
    size_t self = add_node(making, (hf__graph_node){.kind = HF__NODE_PARTY,
                                                    .index = party,
                                                    .parent = parent,
                                                    .wait_ms = wait_ms,
                                                    .in_cycle = seen->parties[party].in_cycle});
    making->party_node[party] = self;
    making->graph->shown++;
    for (size_t i = first_edge(making, party); i < seen->edge_count; i++) {
        const hf__seen_edge *edge = &seen->edges[making->edges[i]];
        if (edge->holder != party)
            break;
        if (has_lock(seen, party, edge->lock))
            add_lock(making, edge->lock, self);
    }
    if (!making->broken)
        making->graph->nodes[self].end = making->graph->count;
}

static int by_kept(const void *left, const void *right, void *arg)
{
    const hf__seen_party *parties = arg;
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;

    if (parties[a].in_cycle != parties[b].in_cycle)
        return parties[a].in_cycle ? -1 : 1;
    if (parties[a].kept != parties[b].kept)
        return parties[a].kept < parties[b].kept ? 1 : -1;
    return (a > b) - (a < b);
}

/* How long a party waits for what it waits for; -1: not known. */
static int64_t wait_of(const hf__snapshot *seen, size_t party)
{
    size_t index = seen->parties[party].waits_for;

    if (index >= seen->lock_count)
        return -1;
    const hf__seen_lock *lock = &seen->locks[index];
    for (size_t i = lock->first + lock->holders; i < lock->first + lock->count; i++)
        if (seen->view_party[i] == party)
            return seen->views[i]->age_ms;
    return -1;
}

/* Cycles first, then roots by how many they keep waiting, then locks whose holder is not known. */
static void add_all(struct making *making, size_t *starts)
{
    const hf__snapshot *seen = making->seen;
    size_t count = 0;

    for (size_t i = 0; i < seen->party_count; i++)
        if (seen->parties[i].root || seen->parties[i].in_cycle)
            starts[count++] = i;
    qsort_r(starts, count, sizeof *starts, by_kept, seen->parties);
    if (making->graph->involved > HF__GRAPH_PARTIES && count > HF__GRAPH_ROOTS)
        count = HF__GRAPH_ROOTS;
    for (size_t i = 0; i < count; i++)
        add_party(making, starts[i], SIZE_MAX, wait_of(seen, starts[i]));
    for (size_t i = 0; i < seen->party_count; i++) {
        const hf__seen_party *party = &seen->parties[i];
        if (party->blockers == 0 && party->waits_for < seen->lock_count &&
            making->party_node[i] == SIZE_MAX)
            add_lock(making, party->waits_for, SIZE_MAX);
    }
}

static void add_link(struct making *making, size_t from, size_t to)
{
    hf__graph *graph = making->graph;

    if (from == SIZE_MAX || to == SIZE_MAX)
        return;
    making->broken |=
        !hf__grow(&graph->links, &making->link_room, graph->link_count + 1, sizeof *graph->links);
    if (!making->broken)
        graph->links[graph->link_count++] =
            (hf__graph_link){from, to, graph->nodes[from].in_cycle && graph->nodes[to].in_cycle};
}

static void add_links(struct making *making)
{
    const hf__snapshot *seen = making->seen;

    for (size_t l = 0; l < seen->lock_count; l++) {
        const hf__seen_lock *lock = &seen->locks[l];
        if (making->lock_node[l] == SIZE_MAX)
            continue;
        for (size_t i = lock->first + lock->holders; i < lock->first + lock->count; i++)
            if (seen->view_party[i] < seen->party_count)
                add_link(making, making->party_node[seen->view_party[i]], making->lock_node[l]);
    }
    for (size_t i = 0; i < seen->edge_count; i++) {
        const hf__seen_edge *edge = &seen->edges[making->edges[i]];
        bool same = false;
        if (i > 0) {
            const hf__seen_edge *before = &seen->edges[making->edges[i - 1]];
            same = before->holder == edge->holder && before->lock == edge->lock;
        }
        if (!same && making->lock_node[edge->lock] != SIZE_MAX &&
            has_lock(seen, edge->holder, edge->lock))
            add_link(making, making->lock_node[edge->lock], making->party_node[edge->holder]);
    }
    for (size_t i = 0; i < making->graph->count; i++)
        if (making->graph->nodes[i].kind == HF__NODE_MORE)
            add_link(making, i, making->graph->nodes[i].parent);
}

/* Leaves take one row each; a node stands beside its first child. */
static void place(hf__graph *graph)
{
    bool cyclic = false;

    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i].end == 0)
            graph->nodes[i].end = i + 1;
    for (size_t i = 0; i < graph->count; i++) {
        /* The way back of a cycle goes below it and below all that wait behind it. */
        if (graph->nodes[i].parent == SIZE_MAX) {
            graph->rows += cyclic ? way_back : 0;
            cyclic = false;
        }
        cyclic |= graph->nodes[i].in_cycle;
        graph->has_cycle |= cyclic;
        if (graph->nodes[i].end == i + 1)
            graph->nodes[i].row = graph->rows++;
    }
    graph->rows += cyclic ? way_back : 0;
    for (size_t i = graph->count; i-- > 0;)
        if (graph->nodes[i].end > i + 1)
            graph->nodes[i].row = graph->nodes[i + 1].row;
}

static size_t *all_unset(size_t count)
{
    size_t *list = malloc((count + 1) * sizeof *list);

    for (size_t i = 0; list != NULL && i <= count; i++)
        list[i] = SIZE_MAX;
    return list;
}

static size_t count_involved(const hf__snapshot *seen)
{
    size_t count = 0;

    for (size_t i = 0; i < seen->party_count; i++)
        count += seen->parties[i].blocking > 0 || seen->parties[i].blockers > 0 ||
                 seen->parties[i].waits_for < seen->lock_count;
    return count;
}

bool hf__graph_make(const hf__snapshot *seen, bool folded, hf__graph *graph)
{
    struct making making = {.seen = seen, .graph = graph};
    size_t *starts = malloc((seen->party_count + 1) * sizeof *starts);

    *graph = (hf__graph){.involved = count_involved(seen)};
    making.folded = folded || graph->involved > HF__GRAPH_PARTIES;
    making.party_node = all_unset(seen->party_count);
    making.lock_node = all_unset(seen->lock_count);
    making.edges = malloc((seen->edge_count + 1) * sizeof *making.edges);
    making.broken = starts == NULL || making.party_node == NULL || making.lock_node == NULL ||
                    making.edges == NULL;
    if (!making.broken) {
        for (size_t i = 0; i < seen->edge_count; i++)
            making.edges[i] = i;
        qsort_r(making.edges, seen->edge_count, sizeof *making.edges, by_holder, seen->edges);
        add_all(&making, starts);
    }
    if (!making.broken) {
        add_links(&making);
        place(graph);
    }
    free(starts);
    free(making.party_node);
    free(making.lock_node);
    free(making.edges);
    return !making.broken;
}

void hf__graph_free(hf__graph *graph)
{
    free(graph->nodes);
    free(graph->links);
    *graph = (hf__graph){0};
}
