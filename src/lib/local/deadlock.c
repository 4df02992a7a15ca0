/*
 * The kernel does not look for deadlocks among OFD locks. So each long wait searches for a cycle of
 * threads in the tables holders and waiters. Only the youngest wait of a cycle gives up.
 */
#include "lib/local/local.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/vec.h"

struct edge {
    int64_t waiter;
    int64_t blocker;
    bool seen;         /* the search reached the blocker by this edge first */
    size_t reached_by; /* index of the edge before it; NONE: it starts at the searching wait */
};

struct graph {
    struct edge *edges;
    size_t count;
    size_t capacity;
};

#define NONE SIZE_MAX

static hf_status add_edge(struct graph *graph, int64_t waiter, int64_t blocker, hf_error *err)
{
    if (!hf__grow(&graph->edges, &graph->capacity, graph->count + 1, sizeof *graph->edges))
        return hf__no_memory(err);
    graph->edges[graph->count++] = (struct edge){.waiter = waiter, .blocker = blocker};
    return HF_OK;
}

static hf_status read_graph(hf__local_wait *wait, struct graph *graph, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = true;

    hf_status status = hf__local_query(wait->local, &hf__sql_local_waits_for, &rows, err, "ii",
                                       wait->id, hf__local_clock_ms(wait->local));
    while (status == HF_OK && more) {
        status = hf__local_fetch(wait->local, rows, &more, err);
        if (status == HF_OK && more)
            status =
                add_edge(graph, sqlite3_column_int64(rows, 0), sqlite3_column_int64(rows, 1), err);
    }
    if (rows != NULL)
        sqlite3_reset(rows);
    return status;
}

static bool is_reached(const struct graph *graph, int64_t id)
{
    for (size_t i = 0; i < graph->count; i++)
        if (graph->edges[i].seen && graph->edges[i].blocker == id)
            return true;
    return false;
}

static void follow(struct graph *graph, int64_t id, size_t by, size_t *queue, size_t *queued)
{
    for (size_t i = 0; i < graph->count; i++) {
        struct edge *edge = &graph->edges[i];
        if (edge->waiter != id || edge->seen || is_reached(graph, edge->blocker))
            continue;
        edge->seen = true;
        edge->reached_by = by;
        queue[(*queued)++] = i;
    }
}

/* Breadth first from me back to me. Returns the last edge of the shortest cycle, or NONE. */
static size_t find_cycle(struct graph *graph, int64_t me)
{
    size_t queued = 0;
    size_t found = NONE;
    size_t *queue = calloc(graph->count + 1, sizeof *queue);

    if (queue == NULL)
        return NONE; /* there is another search soon */
    follow(graph, me, NONE, queue, &queued);
    for (size_t next = 0; next < queued && found == NONE; next++) {
        size_t i = queue[next];
        if (graph->edges[i].blocker == me)
            found = i;
        else
            follow(graph, graph->edges[i].blocker, i, queue, &queued);
    }
    free(queue);
    return found;
}

static uint64_t signature(const struct graph *graph, size_t last)
{
    uint64_t bits = 1;

    for (size_t i = last; i != NONE; i = graph->edges[i].reached_by)
        bits = hf__hash_int(bits ^ (uint64_t)graph->edges[i].blocker);
    return bits != 0 ? bits : 1;
}

/* Adds "nightly, pid 12 thread 13, waits for 'a'". *alive is false if the process is gone. */
static hf_status describe(hf__local *local, int64_t id, hf__buf *text, bool *alive, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    char name[256];
    bool more = false;

    *alive = false;
    hf_status status = hf__local_query(local, &hf__sql_local_get_wait, &rows, err, "i", id);
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &more, err);
    if (status != HF_OK || !more) {
        if (rows != NULL)
            sqlite3_reset(rows);
        return status;
    }
    const hf__claim claim = {
        .space = sqlite3_column_int(rows, 0) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .key = sqlite3_column_int64(rows, 1),
        .label = sqlite3_column_blob(rows, 2),
        .label_size = (size_t)sqlite3_column_bytes(rows, 2),
    };
    const hf__local_process process = {
        .pid = sqlite3_column_int(rows, 3),
        .started = sqlite3_column_int64(rows, 5),
        .pid_space = sqlite3_column_int64(rows, 6),
        .host = (const char *)sqlite3_column_text(rows, 7),
    };
    int64_t who = sqlite3_column_int64(rows, 4), task = hf__task_of(who);
    *alive = hf__local_is_alive(local, &process);
    hf__buf_printf(text, "%s%s, pid %d %s %lld, waits for %s", text->length > 0 ? "; " : "",
                   (const char *)sqlite3_column_text(rows, 8), process.pid,
                   task ? "task" : "thread", (long long)(task ? task : who),
                   hf__claim_name(name, sizeof name, &claim));
    sqlite3_reset(rows);
    return HF_OK;
}

/* Describes the cycle, starting with this wait. *alive: all processes in it are. */
static hf_status describe_cycle(hf__local *local, const struct graph *graph, size_t last,
                                hf__buf *text, bool *alive, hf_error *err)
{
    int64_t ids[32];
    size_t count = 0;

    /* reached_by leads from the last edge, whose blocker is this wait, back to the first. */
    for (size_t i = last; i != NONE && count < sizeof ids / sizeof *ids;
         i = graph->edges[i].reached_by)
        ids[count++] = graph->edges[i].waiter;

    *alive = true;
    for (size_t i = count; i > 0; i--) {
        bool this_one = false;
        hf_status status = describe(local, ids[i - 1], text, &this_one, err);
        if (status != HF_OK)
            return status;
        *alive = *alive && this_one;
    }
    return HF_OK;
}

/*
 * *found: the same cycle as at the last search. If a process in the cycle is dead, it is no
 * deadlock, and the records of the dead are deleted. Fails only if it cannot search.
 */
static hf_status search(hf__local_wait *wait, hf__buf *text, bool *found, hf_error *err)
{
    struct graph graph = {0};
    uint64_t suspicion = 0;
    bool alive = false;
    int dead = 0;

    *found = false;
    hf_status status = read_graph(wait, &graph, err);
    size_t last = status == HF_OK ? find_cycle(&graph, wait->id) : NONE;
    if (last != NONE) {
        status = describe_cycle(wait->local, &graph, last, text, &alive, err);
        if (status == HF_OK && alive)
            suspicion = signature(&graph, last);
        else if (status == HF_OK)
            status = hf__local_bury(wait->local, &dead, err);
    }
    *found = status == HF_OK && suspicion != 0 && suspicion == wait->suspicion;
    wait->suspicion = suspicion;
    free(graph.edges);
    return status;
}

hf_status hf__local_find_deadlock(hf__local_wait *wait, hf_error *err)
{
    hf__buf text = {0};
    hf_error why;
    bool found = false;

    hf_status status = search(wait, &text, &found, &why);
    if (status != HF_OK) {
        hf__log(&wait->local->head, HF_LOG_WARNING, "no search for deadlocks: %s", why.message);
        status = HF_OK;
    } else if (found) {
        status = hf__fail(err, HF_DEADLOCK, "deadlock: %s", text.data != NULL ? text.data : "");
        hf__hint(err, "take the locks in one order everywhere, or as one set; release what this "
                      "thread holds and try again");
    }
    hf__buf_free(&text);
    return status;
}
