#include "page_support.h"

#include <stdlib.h>
#include <string.h>

static void *grown(void *items, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return items;
    *room = *room > 0 ? *room * 2 : 16;
    items = realloc(items, *room * size);
    if (items == NULL)
        abort();
    return items;
}

void made_start(struct made *made)
{
    *made = (struct made){.seen = {.number = 7,
                                   .taken_ms = MADE_NOW_SECONDS * INT64_C(1000),
                                   .took_ms = 4,
                                   .store = "postgresql://db1/payments",
                                   .has_records = true,
                                   .problem = ""}};
}

hf__seen_lock *made_lock(struct made *made, int64_t key, const char *label,
                         const hf_registry_entry *entry)
{
    hf__snapshot *seen = &made->seen;

    seen->locks = grown(seen->locks, &made->lock_room, seen->lock_count, sizeof *seen->locks);
    seen->locks[seen->lock_count] = (hf__seen_lock){.key = key,
                                                    .label = label,
                                                    .name = entry != NULL ? entry->name : "",
                                                    .entry = entry,
                                                    .first = seen->view_count,
                                                    .held_ms = -1,
                                                    .longest_wait_ms = -1};
    return &seen->locks[seen->lock_count++];
}

static size_t find_party(struct made *made, int id, const char *application)
{
    hf__snapshot *seen = &made->seen;

    for (size_t i = 0; i < seen->party_count; i++)
        if (seen->parties[i].id == id)
            return i;
    seen->parties =
        grown(seen->parties, &made->party_room, seen->party_count, sizeof *seen->parties);
    seen->parties[seen->party_count] = (hf__seen_party){.id = id,
                                                        .application = application,
                                                        .host = "app1",
                                                        .pid = id,
                                                        .waits_for = SIZE_MAX,
                                                        .query = ""};
    return seen->party_count++;
}

static void add_row(struct made *made, int id, const char *application, int64_t age_ms,
                    bool waiting)
{
    hf__snapshot *seen = &made->seen;
    hf__seen_lock *lock = &seen->locks[seen->lock_count - 1];
    size_t room = made->row_room;
    size_t party = find_party(made, id, application);

    made->rows = grown(made->rows, &made->row_room, seen->view_count, sizeof *made->rows);
    if (made->row_room != room) {
        seen->view_party = realloc(seen->view_party, made->row_room * sizeof *seen->view_party);
        if (seen->view_party == NULL)
            abort();
    }
    made->rows[seen->view_count] = (hf_lock_view){.key = lock->key,
                                                  .waiting = waiting,
                                                  .mode = HF_EXCLUSIVE,
                                                  .ours = true,
                                                  .session_known = true,
                                                  .label = lock->label,
                                                  .application = application,
                                                  .host = "app1",
                                                  .pid = id,
                                                  .backend_pid = id,
                                                  .age_ms = age_ms,
                                                  .token = waiting ? 0 : 1000 + id,
                                                  .blocked_by = "",
                                                  .name = lock->name,
                                                  .pattern = "",
                                                  .idle_ms = -1};
    seen->view_party[seen->view_count++] = party;
    lock->count++;
    if (waiting) {
        seen->parties[party].waits_for = seen->lock_count - 1;
        lock->waiters++;
        if (age_ms > lock->longest_wait_ms)
            lock->longest_wait_ms = age_ms;
    } else {
        lock->holders++;
        if (age_ms > lock->held_ms)
            lock->held_ms = age_ms;
    }
}

void made_holder(struct made *made, int id, const char *application, int64_t age_ms)
{
    add_row(made, id, application, age_ms, false);
}

void made_waiter(struct made *made, int id, const char *application, int64_t age_ms)
{
    add_row(made, id, application, age_ms, true);
}

void made_event(struct made *made, const char *event, int64_t key, const char *label,
                const char *detail)
{
    hf__snapshot *seen = &made->seen;
    int64_t at_ms = seen->taken_ms - (int64_t)seen->event_count * 73000;

    seen->events = grown(seen->events, &made->event_room, seen->event_count, sizeof *seen->events);
    seen->events[seen->event_count] = (hf__seen_event){.id = (int64_t)seen->event_count + 1,
                                                       .at_ms = at_ms,
                                                       .event = event,
                                                       .key = key,
                                                       .label = label,
                                                       .name = "",
                                                       .wait_ms = 12,
                                                       .hold_ms = 3400,
                                                       .application = "worker",
                                                       .host = "app1",
                                                       .pid = 4711,
                                                       .detail = detail};
    seen->event_count++;
}

static void add_edges(struct made *made, size_t lock)
{
    hf__snapshot *seen = &made->seen;
    const hf__seen_lock *held = &seen->locks[lock];

    for (size_t w = held->first + held->holders; w < held->first + held->count; w++)
        for (size_t h = held->first; h < held->first + held->holders; h++) {
            hf__seen_edge edge = {seen->view_party[w], seen->view_party[h], lock};
            seen->edges =
                grown(seen->edges, &made->edge_room, seen->edge_count, sizeof *seen->edges);
            seen->edges[seen->edge_count++] = edge;
            seen->parties[edge.waiter].blockers++;
            seen->parties[edge.holder].blocking++;
        }
}

/* Follows the first blocker of each: enough for what tests make. */
static size_t blocker_of(const hf__snapshot *seen, size_t party)
{
    for (size_t i = 0; i < seen->edge_count; i++)
        if (seen->edges[i].waiter == party)
            return seen->edges[i].holder;
    return SIZE_MAX;
}

static void find_root(hf__snapshot *seen, size_t party)
{
    size_t at = blocker_of(seen, party);

    for (size_t steps = 0; at != SIZE_MAX && steps <= seen->party_count; steps++) {
        if (at == party) {
            seen->parties[party].in_cycle = true;
            return;
        }
        if (seen->parties[at].blockers == 0) {
            seen->parties[at].root = true;
            seen->parties[at].kept++;
            return;
        }
        at = blocker_of(seen, at);
    }
}

void made_finish(struct made *made)
{
    hf__snapshot *seen = &made->seen;

    seen->views = malloc((seen->view_count + 1) * sizeof(hf_lock_view *));
    if (seen->views == NULL)
        abort();
    for (size_t i = 0; i < seen->view_count; i++)
        seen->views[i] = &made->rows[i];
    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        add_edges(made, i);
        seen->held += lock->holders > 0;
        seen->waiting += lock->waiters;
        seen->unregistered += lock->name[0] == '\0';
        if (lock->longest_wait_ms > seen->longest_wait_ms)
            seen->longest_wait_ms = lock->longest_wait_ms;
    }
    for (size_t i = 0; i < seen->party_count; i++)
        find_root(seen, i);
}

void made_free(struct made *made)
{
    free(made->rows);
    free((void *)made->seen.views);
    free(made->seen.view_party);
    free(made->seen.locks);
    free(made->seen.parties);
    free(made->seen.edges);
    free(made->seen.events);
}

char *made_page(const struct made *made, const hf__page_request *request)
{
    hf__buf out = {0};

    hf__render_page(&made->seen, request, &out);
    if (out.broken)
        abort();
    return out.data;
}
