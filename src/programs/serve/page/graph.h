/*
 * Who waits for whom, as much of it as a picture can show. The picture and the list are made of
 * it.
 */
#ifndef HF_SERVE_GRAPH_H
#define HF_SERVE_GRAPH_H

#include "programs/view/snapshot.h"

enum { HF__GRAPH_PARTIES = 200, HF__GRAPH_ROOTS = 50, HF__GRAPH_WAITERS = 8 };

typedef enum hf__graph_kind { HF__NODE_PARTY, HF__NODE_LOCK, HF__NODE_MORE } hf__graph_kind;

/*
 * A party or a lock. The children of a party are the locks that it has; those of a lock wait for
 * it.
 */
typedef struct hf__graph_node {
    hf__graph_kind kind;
    size_t index;    /* of the party or lock; HF__NODE_MORE: how many waiters are left out */
    size_t parent;   /* SIZE_MAX: at the top */
    size_t end;      /* behind the last node under it: nodes are in the order of the tree */
    size_t depth;    /* steps from the top */
    int64_t wait_ms; /* of a party under a lock; -1: not known */
    bool in_cycle;
    double row; /* from above, in rows of leaves */
} hf__graph_node;

/* From a waiter to its lock, or from a lock to its holder: those of the tree, and all others. */
typedef struct hf__graph_link {
    size_t from, to;
    bool in_cycle;
} hf__graph_link;

typedef struct hf__graph {
    hf__graph_node *nodes;
    size_t count;
    hf__graph_link *links;
    size_t link_count;
    size_t depth;
    double rows;
    bool has_cycle;
    size_t involved; /* parties that wait or keep others waiting */
    size_t shown;    /* how many of them the graph has */
} hf__graph;

/*
 * Makes the graph, which the caller frees in any case. When it is folded, or there are more than
 * HF__GRAPH_PARTIES, a lock shows only HF__GRAPH_WAITERS of the waiters that keep nobody else
 * waiting. Returns false without memory.
 */
bool hf__graph_make(const hf__snapshot *seen, bool folded, hf__graph *graph);
void hf__graph_free(hf__graph *graph);

#endif
