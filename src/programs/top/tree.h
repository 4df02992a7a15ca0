/* Who waits for whom, as a tree that can be read from top to bottom. */
#ifndef HF_TOP_TREE_H
#define HF_TOP_TREE_H

#include "programs/view/snapshot.h"

/* A party at one place of the tree, in the order of its lines. */
typedef struct hf__tree_node {
    size_t party;  /* index into the snapshot's parties */
    size_t edge;   /* the edge by which it waits for its parent; SIZE_MAX: it has no parent */
    size_t parent; /* node; SIZE_MAX: none */
    size_t size;   /* nodes of its subtree, itself included */
    size_t depth;  /* 0: a root */
    size_t wait;   /* view by which it waits; SIZE_MAX: it waits for nothing */
    bool is_last;  /* of its siblings */
    bool again;    /* it is further up already, with those behind it */
    bool closes;   /* it is one of its own ancestors: the cycle closes here */
    bool in_cycle;
} hf__tree_node;

typedef struct hf__tree {
    hf__tree_node *nodes;
    size_t count, room;
} hf__tree;

/*
 * Builds the tree anew, in the same memory: deadlocks first, then roots by how many they keep
 * waiting, then waiters for whom no holder is known. Below each party are those who wait for it,
 * the longest wait first. A party is unfolded once, so that there are never more nodes than
 * parties and edges. Returns false without memory. Zero-initialise a tree, and free it.
 */
bool hf__tree_build(hf__tree *tree, const hf__snapshot *snapshot);
void hf__tree_free(hf__tree *tree);

#endif
