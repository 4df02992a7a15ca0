/*
 * Who waited for whom before: of each minute of the last hour and of each ten minutes of the last
 * day, the moment in which most waited. It is kept in memory, from the start of the collector, as a
 * small snapshot, so that whatever shows the present shows the past as well.
 */
#include <stdlib.h>
#include <string.h>

#include "programs/view/parts.h"

enum { ROWS_KEPT = 500 }; /* holders and waiters of one moment */

/* ---- a small snapshot ------------------------------------------------------------------------ */

struct copying {
    const hf__snapshot *from;
    hf__view_draft *to;
    size_t *parties; /* of from: the index in to, + 1; 0: not copied */
    size_t *locks;   /* likewise */
};

static size_t copy_party(struct copying *copying, size_t at)
{
    hf__snapshot *to = &copying->to->seen;
    hf__arena *arena = &copying->to->arena;
    if (at >= copying->from->party_count)
        return SIZE_MAX;
    if (!copying->parties[at]) {
        hf__seen_party party = copying->from->parties[at];
        party.application = hf__arena_text(arena, party.application);
        party.host = hf__arena_text(arena, party.host);
        party.query = hf__arena_text(arena, party.query);
        party.waits_for = party.through = SIZE_MAX;
        to->parties[to->party_count++] = party;
        copying->parties[at] = to->party_count;
    }
    return copying->parties[at] - 1;
}

static void copy_view(struct copying *copying, size_t at)
{
    hf__snapshot *to = &copying->to->seen;
    hf__arena *arena = &copying->to->arena;
    hf_lock_view *view = hf__arena_array(arena, 1, sizeof *view);
    if (!view)
        return;
    *view = *copying->from->views[at];
    view->label = hf__arena_text(arena, view->label);
    view->application = hf__arena_text(arena, view->application);
    view->host = hf__arena_text(arena, view->host);
    view->blocked_by = hf__arena_text(arena, view->blocked_by);
    view->traceparent = hf__arena_text(arena, view->traceparent);
    view->name = hf__arena_text(arena, view->name);
    view->pattern = hf__arena_text(arena, view->pattern);
    view->known_as = "";
    to->views[to->view_count] = view;
    to->view_party[to->view_count++] = copy_party(copying, copying->from->view_party[at]);
}

static void copy_lock(struct copying *copying, size_t at)
{
    hf__snapshot *to = &copying->to->seen;
    hf__arena *arena = &copying->to->arena;
    hf__seen_lock lock = copying->from->locks[at];
    size_t first = lock.first, count = lock.count, room = ROWS_KEPT - to->view_count;
    lock.label = hf__arena_text(arena, lock.label);
    lock.name = hf__arena_text(arena, lock.name);
    lock.known_as = "";
    lock.first = to->view_count;
    lock.count = count < room ? count : room;
    lock.holders = lock.holders < lock.count ? lock.holders : lock.count;
    lock.waiters = lock.count - lock.holders;
    for (size_t i = 0; i < lock.count; i++)
        copy_view(copying, first + i);
    to->locks[to->lock_count++] = lock;
    copying->locks[at] = to->lock_count;
}

static void copy_edges(struct copying *copying)
{
    const hf__snapshot *from = copying->from;
    hf__snapshot *to = &copying->to->seen;
    for (size_t i = 0; i < from->edge_count; i++) {
        const hf__seen_edge *edge = &from->edges[i];
        if (!copying->locks[edge->lock] || !copying->parties[edge->waiter] ||
            !copying->parties[edge->holder])
            continue;
        to->edges[to->edge_count++] = (hf__seen_edge){
            .waiter = copying->parties[edge->waiter] - 1,
            .holder = copying->parties[edge->holder] - 1,
            .lock = copying->locks[edge->lock] - 1,
        };
    }
    for (size_t i = 0; i < from->party_count; i++) {
        size_t lock = from->parties[i].waits_for;
        if (copying->parties[i] && lock < from->lock_count && copying->locks[lock])
            to->parties[copying->parties[i] - 1].waits_for = copying->locks[lock] - 1;
    }
}

static bool make_room(struct copying *copying)
{
    const hf__snapshot *from = copying->from;
    hf__snapshot *to = &copying->to->seen;
    hf__arena *arena = &copying->to->arena;
    copying->parties = calloc(from->party_count + 1, sizeof *copying->parties);
    copying->locks = calloc(from->lock_count + 1, sizeof *copying->locks);
    size_t edges = 0;
    for (size_t i = 0; i < from->edge_count; i++)
        edges += from->locks[from->edges[i].lock].waiters > 0;
    to->locks = hf__arena_array(arena, ROWS_KEPT, sizeof *to->locks);
    to->views = hf__arena_array(arena, ROWS_KEPT, sizeof(hf_lock_view *));
    to->view_party = hf__arena_array(arena, ROWS_KEPT, sizeof *to->view_party);
    to->parties = hf__arena_array(arena, ROWS_KEPT, sizeof *to->parties);
    to->edges = hf__arena_array(arena, edges, sizeof *to->edges);
    return copying->parties && copying->locks && !arena->broken;
}

/* Locks that are waited for come first in a snapshot. NULL: out of memory. */
static hf__snapshot *copy_waits(const hf__snapshot *from, hf__common *common)
{
    struct copying copying = {.from = from, .to = hf__view_draft_new(common)};
    if (!copying.to)
        return NULL;
    hf__snapshot *to = &copying.to->seen;
    bool ok = make_room(&copying);
    to->taken_ms = from->taken_ms;
    to->local = from->local;
    to->waiting = from->waiting;
    to->store = to->problem = "";
    for (size_t i = 0; ok && i < from->lock_count && from->locks[i].waiters > 0; i++)
        if (to->view_count < ROWS_KEPT)
            copy_lock(&copying, i);
    if (ok)
        copy_edges(&copying);
    free(copying.parties);
    free(copying.locks);
    if (ok && !copying.to->arena.broken)
        return to;
    hf__snapshot_release(to);
    return NULL;
}

/* ---- columns of time ------------------------------------------------------------------------- */

static void forget(hf__past_column *column)
{
    hf__snapshot_release(column->waits);
    *column = (hf__past_column){0};
}

void hf__past_clear(hf__past *past)
{
    for (size_t i = 0; i < HF__HOUR_COLUMNS; i++)
        forget(&past->hour[i]);
    for (size_t i = 0; i < HF__DAY_COLUMNS; i++)
        forget(&past->day[i]);
}

/* The column of that time, which is cleared if another one had its place. */
static hf__past_column *column_at(hf__past_column *columns, size_t count, int64_t step_ms,
                                  int64_t now_ms)
{
    int64_t number = now_ms / step_ms;
    hf__past_column *column = &columns[number % (int64_t)count];
    if (column->number != number) {
        forget(column);
        column->number = number;
    }
    return column;
}

static void keep(hf__past_column *column, hf__snapshot *waits)
{
    hf__snapshot_release(column->waits);
    column->waits = hf__snapshot_hold(waits);
}

static bool is_worse(const hf__past_column *column, const hf__snapshot *seen)
{
    return !column->waits || seen->waiting > column->waits->waiting;
}

bool hf__past_note(hf__past *past, const hf__snapshot *seen, hf__common *common)
{
    hf__past_column *minute =
        column_at(past->hour, HF__HOUR_COLUMNS, HF__HOUR_STEP_MS, seen->taken_ms);
    hf__past_column *ten = column_at(past->day, HF__DAY_COLUMNS, HF__DAY_STEP_MS, seen->taken_ms);
    if (seen->waiting == 0 || (!is_worse(minute, seen) && !is_worse(ten, seen)))
        return true;
    hf__snapshot *waits = copy_waits(seen, common);
    if (!waits)
        return false;
    if (is_worse(minute, seen))
        keep(minute, waits);
    if (is_worse(ten, seen))
        keep(ten, waits);
    hf__snapshot_release(waits);
    return true;
}

/* ---- for the snapshot ------------------------------------------------------------------------ */

/* Adds the columns that are not older than since, and end before until. */
static void show(const hf__past_column *columns, size_t count, int64_t step_ms, int64_t since_ms,
                 int64_t until_ms, hf__snapshot *seen)
{
    for (size_t i = 0; i < count; i++) {
        int64_t from = columns[i].number * step_ms;
        if (columns[i].waits && from >= since_ms && from + step_ms <= until_ms)
            seen->moments[seen->moment_count++] =
                (hf__moment){from, step_ms, hf__snapshot_hold(columns[i].waits)};
    }
}

static int by_time(const void *a, const void *b)
{
    const hf__moment *left = a, *right = b;
    return (left->from_ms < right->from_ms) - (left->from_ms > right->from_ms);
}

void hf__past_show(const hf__past *past, hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    int64_t now = seen->taken_ms;
    int64_t hour = now - HF__HOUR_COLUMNS * (int64_t)HF__HOUR_STEP_MS;
    int64_t day = now - HF__DAY_COLUMNS * (int64_t)HF__DAY_STEP_MS;
    seen->moments =
        hf__arena_array(&draft->arena, HF__HOUR_COLUMNS + HF__DAY_COLUMNS, sizeof *seen->moments);
    if (!seen->moments)
        return;
    show(past->hour, HF__HOUR_COLUMNS, HF__HOUR_STEP_MS, hour, INT64_MAX, seen);
    show(past->day, HF__DAY_COLUMNS, HF__DAY_STEP_MS, day, hour + HF__DAY_STEP_MS, seen);
    if (seen->moment_count > 1)
        qsort(seen->moments, seen->moment_count, sizeof *seen->moments, by_time);
}

const hf__snapshot *hf__waits_at(const hf__snapshot *seen, int64_t at_ms)
{
    for (size_t i = 0; i < seen->moment_count; i++) {
        const hf__moment *moment = &seen->moments[i];
        if (at_ms >= moment->from_ms && at_ms < moment->from_ms + moment->step_ms)
            return moment->waits;
    }
    return NULL;
}
