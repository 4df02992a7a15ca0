/*
 * Deadlocks that PostgreSQL cannot see, because holding and waiting happen on different sessions
 * and our slices end before its own search starts. A thread that holds h and waits for k publishes
 * this edge as a shared advisory lock on the pair (PG_EDGE_CLASS, hash of h and k). Everybody can
 * read it in pg_locks, and it goes away with its session. A waiter that may be part of a cycle
 * follows these edges from what it waits for to what its own thread holds.
 */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EDGES = 64, MOST_NODES = 4096 };

/*
 * Never change it, and do not use base/hash.h instead: processes of all versions must compute the
 * same edges.
 */
static uint64_t mix(uint64_t value)
{
    value ^= value >> 31;
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ value >> 29;
}

static uint32_t edge(const hf__key *held, const hf__key *wanted)
{
    uint64_t from = mix((uint64_t)held->key + (uint64_t)held->space);
    return (uint32_t)(mix(from ^ mix((uint64_t)wanted->key + (uint64_t)wanted->space + 1)) >> 32);
}

static void edges_script(hf__buf *sql, const hf__request *request, const hf__claim *claim,
                         const char *function)
{
    const hf__key wanted = {claim->key, claim->space};
    size_t count = request->held_count < MOST_EDGES ? request->held_count : MOST_EDGES;
    for (size_t i = 0; i < count; i++)
        hf__buf_printf(sql, "%s pg_catalog.%s(%d, %d)", i == 0 ? "SELECT" : ",", function,
                       PG_EDGE_CLASS, (int32_t)edge(&request->held[i], &wanted));
}

void hf__pg_publish_wait(pg_backend *backend, const hf__request *request, const hf__claim *wanted,
                         const pg_patience *patience, uint64_t *serial)
{
    hf_error ignored;
    hf__buf sql = {0};
    *serial = 0;
    edges_script(&sql, request, wanted, "pg_advisory_lock_shared");
    if (sql.length > 0 && !sql.broken)
        (void)!hf__pg_on_listening(backend, patience, serial, sql.data, 0, NULL, NULL, &ignored);
    hf__buf_free(&sql);
}

void hf__pg_retract_wait(pg_backend *backend, const hf__request *request, const hf__claim *wanted,
                         uint64_t serial)
{
    hf__buf sql = {0};
    edges_script(&sql, request, wanted, "pg_advisory_unlock_shared");
    if (serial && sql.length > 0 && !sql.broken)
        hf__pg_errand_on_listening(backend, serial, sql.data);
    hf__buf_free(&sql);
}

struct graph {
    hf__key *keys; /* those that somebody holds */
    bool *seen;
    size_t count;
    uint32_t *edges; /* sorted */
    size_t edge_count;
};

static int ascending(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static void read_graph(const PGresult *locks, struct graph *graph)
{
    for (int i = 0; i < PQntuples(locks); i++) {
        uint32_t classid = (uint32_t)hf__pg_int(locks, i, 0),
                 objid = (uint32_t)hf__pg_int(locks, i, 1);
        hf_space space = hf__pg_int(locks, i, 2) == 2 ? HF_PAIR : HF_BIGINT;
        if (space == HF_PAIR && classid == PG_EDGE_CLASS)
            graph->edges[graph->edge_count++] = objid;
        else if (graph->count < MOST_NODES)
            graph->keys[graph->count++] = (hf__key){hf_key_join(classid, objid), space};
    }
    qsort(graph->edges, graph->edge_count, sizeof *graph->edges, ascending);
}

static bool has_edge(const struct graph *graph, const hf__key *from, const hf__key *to)
{
    uint32_t wanted = edge(from, to);
    return bsearch(&wanted, graph->edges, graph->edge_count, sizeof wanted, ascending) != NULL;
}

static bool is_mine(const hf__request *request, const hf__key *key)
{
    for (size_t i = 0; i < request->held_count; i++)
        if (request->held[i].key == key->key && request->held[i].space == key->space)
            return true;
    return false;
}

/* Does a holder of from wait, directly or through others, for a key that this thread holds? */
static bool leads_to_me(struct graph *graph, const hf__request *request, const hf__key *from)
{
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->seen[i] || !has_edge(graph, from, &graph->keys[i]))
            continue;
        graph->seen[i] = true;
        if (is_mine(request, &graph->keys[i]) || leads_to_me(graph, request, &graph->keys[i]))
            return true;
    }
    return false;
}

static bool search(const PGresult *locks, const hf__request *request, const hf__key *from)
{
    size_t room = (size_t)PQntuples(locks) + 1;
    hf__key *keys = calloc(room, sizeof *keys);
    bool *seen = calloc(room, sizeof *seen);
    uint32_t *edges = calloc(room, sizeof *edges);
    struct graph graph = {.keys = keys, .seen = seen, .edges = edges};
    bool found = false;
    if (keys && seen && edges) {
        read_graph(locks, &graph);
        found = graph.edge_count > 0 && leads_to_me(&graph, request, from);
    }
    free(keys);
    free(seen);
    free(edges);
    return found;
}

bool hf__pg_in_cycle(pg_backend *backend, const hf__request *request, const hf__claim *wanted,
                     const pg_patience *patience)
{
    PGresult *locks = NULL;
    hf_error ignored;
    hf__key from = {wanted->key, wanted->space};
    hf_status status = hf__pg_ask_for(backend, patience, pg_sql(&hf__sql_postgres_list_granted), 0,
                                      NULL, &locks, &ignored);
    bool found = status == HF_OK && search(locks, request, &from);
    PQclear(locks);
    return found;
}
