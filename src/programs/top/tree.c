#include "programs/top/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* The edges of a snapshot, by party. */
struct graph {
    const hf__snapshot *seen;
    size_t *first;    /* into incoming; party_count + 1 */
    size_t *incoming; /* edges, grouped by their holder */
    bool *held_up;    /* a holder of what it waits for is known */
    size_t *wait;     /* its view that waits; SIZE_MAX: none */
    size_t *node;     /* where it is unfolded; SIZE_MAX: not yet */
};

struct level {
    size_t node;
    size_t next, end; /* into incoming */
};

static void *make(size_t count, size_t size)
{
    return calloc(count > 0 ? count : 1, size);
}

static void graph_free(struct graph *graph)
{
    free(graph->first);
    free(graph->incoming);
    free(graph->held_up);
    free(graph->wait);
    free(graph->node);
}

static int64_t wait_of(const struct graph *graph, size_t edge)
{
    size_t view = graph->wait[graph->seen->edges[edge].waiter];

    return view != SIZE_MAX ? graph->seen->views[view]->age_ms : -1;
}

static int by_wait(const void *left, const void *right, void *arg)
{
    const struct graph *graph = arg;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    int64_t wait_a = wait_of(graph, a), wait_b = wait_of(graph, b);

    if (wait_a != wait_b)
        return wait_a > wait_b ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void find_waits(struct graph *graph)
{
    const hf__snapshot *seen = graph->seen;

    for (size_t i = 0; i < seen->party_count; i++)
        graph->wait[i] = graph->node[i] = SIZE_MAX;
    for (size_t i = 0; i < seen->view_count; i++)
        if (seen->views[i]->waiting && seen->view_party[i] != SIZE_MAX)
            graph->wait[seen->view_party[i]] = i;
}

/* Does the edge lead to one that waits too? Those are in the way, but not the cause. */
static bool is_queue(const hf__snapshot *seen, const hf__seen_edge *edge)
{
    return seen->parties[edge->holder].waits_for == edge->lock;
}

static bool is_drawn(const struct graph *graph, size_t edge)
{
    const hf__seen_edge *at = &graph->seen->edges[edge];

    return !is_queue(graph->seen, at) || !graph->held_up[at->waiter];
}

/* Sorts the edges by holder: counts those of each holder first, then places them. */
static void group_edges(struct graph *graph)
{
    const hf__snapshot *seen = graph->seen;
    size_t *first = graph->first;

    for (size_t i = 0; i < seen->edge_count; i++)
        graph->held_up[seen->edges[i].waiter] |= !is_queue(seen, &seen->edges[i]);
    for (size_t i = 0; i < seen->edge_count; i++)
        first[seen->edges[i].holder + 1] += is_drawn(graph, i);
    for (size_t i = 0; i < seen->party_count; i++)
        first[i + 1] += first[i];
    size_t drawn = first[seen->party_count];
    for (size_t i = seen->edge_count; i-- > 0;)
        if (is_drawn(graph, i))
            graph->incoming[--first[seen->edges[i].holder + 1]] = i;
    /* first[i + 1] is now where i begins. */
    memmove(first, first + 1, seen->party_count * sizeof *first);
    first[seen->party_count] = drawn;
    for (size_t i = 0; i < seen->party_count; i++)
        qsort_r(graph->incoming + first[i], first[i + 1] - first[i], sizeof *first, by_wait, graph);
}

static bool graph_make(struct graph *graph, const hf__snapshot *seen)
{
    graph->seen = seen;
    graph->first = make(seen->party_count + 1, sizeof *graph->first);
    graph->incoming = make(seen->edge_count, sizeof *graph->incoming);
    graph->held_up = make(seen->party_count, sizeof *graph->held_up);
    graph->wait = make(seen->party_count, sizeof *graph->wait);
    graph->node = make(seen->party_count, sizeof *graph->node);
    if (graph->first == NULL || graph->incoming == NULL || graph->held_up == NULL ||
        graph->wait == NULL || graph->node == NULL)
        return false;
    find_waits(graph);
    group_edges(graph);
    return true;
}

/* ---- unfolding ---- */

/* hf__tree_build has made room for all nodes. */
static size_t add_node(hf__tree *tree, struct graph *graph, size_t party, size_t edge,
                       size_t parent)
{
    size_t index = tree->count++;
    hf__tree_node *node = &tree->nodes[index];

    *node = (hf__tree_node){
        .party = party,
        .edge = edge,
        .parent = parent,
        .size = 1,
        .depth = parent == SIZE_MAX ? 0 : tree->nodes[parent].depth + 1,
        .wait = graph->wait[party],
        .again = graph->node[party] != SIZE_MAX,
        .in_cycle = graph->seen->parties[party].in_cycle,
    };
    if (!node->again)
        graph->node[party] = index;
    return index;
}

static bool is_ancestor(const hf__tree *tree, size_t party, size_t node)
{
    for (; node != SIZE_MAX; node = tree->nodes[node].parent)
        if (tree->nodes[node].party == party)
            return true;
    return false;
}

static struct level level_of(const struct graph *graph, const hf__tree *tree, size_t node)
{
    size_t party = tree->nodes[node].party;

    return (struct level){
        .node = node, .next = graph->first[party], .end = graph->first[party + 1]};
}

/* Not recursive: with ten thousand waiters in line the tree can be as deep. */
static void unfold(hf__tree *tree, struct graph *graph, struct level *stack, size_t party)
{
    size_t depth = 0;
    size_t root = add_node(tree, graph, party, SIZE_MAX, SIZE_MAX);

    stack[depth++] = level_of(graph, tree, root);
    while (depth > 0) {
        struct level *level = &stack[depth - 1];
        hf__tree_node *above = &tree->nodes[level->node];
        if (level->next == level->end) {
            above->size = tree->count - level->node;
            depth--;
            continue;
        }
        size_t edge = graph->incoming[level->next++];
        size_t waiter = graph->seen->edges[edge].waiter;
        size_t index = add_node(tree, graph, waiter, edge, level->node);
        hf__tree_node *node = &tree->nodes[index];
        node->is_last = level->next == level->end;
        node->closes = node->again && node->in_cycle && is_ancestor(tree, waiter, level->node);
        if (!node->again)
            stack[depth++] = level_of(graph, tree, index);
    }
}

static int by_kept(const void *left, const void *right, void *arg)
{
    const hf__snapshot *seen = arg;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    size_t kept_a = seen->parties[a].kept, kept_b = seen->parties[b].kept;

    if (kept_a != kept_b)
        return kept_a > kept_b ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void unfold_cycles(hf__tree *tree, struct graph *graph, struct level *stack)
{
    for (size_t i = 0; i < graph->seen->party_count; i++)
        if (graph->seen->parties[i].in_cycle && graph->node[i] == SIZE_MAX)
            unfold(tree, graph, stack, i);
}

static void unfold_roots(hf__tree *tree, struct graph *graph, struct level *stack, size_t *roots)
{
    size_t count = 0;

    for (size_t i = 0; i < graph->seen->party_count; i++)
        if (graph->seen->parties[i].root)
            roots[count++] = i;
    qsort_r(roots, count, sizeof *roots, by_kept, (void *)graph->seen);
    for (size_t i = 0; i < count; i++)
        if (graph->node[roots[i]] == SIZE_MAX)
            unfold(tree, graph, stack, roots[i]);
}

/* Adds waiters with no known holder, such as those behind a prepared transaction. */
static void unfold_rest(hf__tree *tree, struct graph *graph, struct level *stack)
{
    for (size_t i = 0; i < graph->seen->party_count; i++)
        if (graph->wait[i] != SIZE_MAX && graph->seen->parties[i].blockers == 0 &&
            graph->node[i] == SIZE_MAX)
            unfold(tree, graph, stack, i);
}

bool hf__tree_build(hf__tree *tree, const hf__snapshot *snapshot)
{
    struct graph graph = {0};
    struct level *stack = make(snapshot->party_count + 1, sizeof *stack);
    size_t *roots = make(snapshot->party_count, sizeof *roots);
    bool made = stack != NULL && roots != NULL && graph_make(&graph, snapshot) &&
                hf__grow(&tree->nodes, &tree->room, snapshot->party_count + snapshot->edge_count,
                         sizeof *tree->nodes);

    tree->count = 0;
    if (made) {
        unfold_cycles(tree, &graph, stack);
        unfold_roots(tree, &graph, stack, roots);
        unfold_rest(tree, &graph, stack);
    }
    graph_free(&graph);
    free(stack);
    free(roots);
    return made;
}

void hf__tree_free(hf__tree *tree)
{
    free(tree->nodes);
    *tree = (hf__tree){0};
}
