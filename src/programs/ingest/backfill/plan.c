#include "programs/ingest/backfill/plan.h"

#include <stdlib.h>

#include "programs/ingest/backfill/backfill.h"

static int64_t cell_of(int64_t sequence)
{
    return sequence / HF__CELL_LEDGERS;
}

static size_t count_cells(const hf__ranges *missing)
{
    size_t count = 0;
    int64_t last = -1;
    for (size_t i = 0; i < missing->count; i++) {
        int64_t from = cell_of(missing->items[i].from), to = cell_of(missing->items[i].to);
        count += (size_t)(to - from) + (from > last ? 1 : 0);
        last = to;
    }
    return count;
}

bool plan_make(struct plan *plan, const hf__ranges *missing)
{
    size_t count = count_cells(missing);
    int64_t last = -1;
    *plan = (struct plan){0};
    if (count == 0)
        return true;
    plan->cells = calloc(count, sizeof *plan->cells);
    if (!plan->cells)
        return false;
    for (size_t i = 0; i < missing->count; i++) {
        int64_t from = cell_of(missing->items[i].from), to = cell_of(missing->items[i].to);
        for (int64_t number = from > last ? from : last + 1; number <= to; number++)
            plan->cells[plan->count++].number = number;
        last = to;
    }
    plan->todo = plan->count;
    return true;
}

void plan_free(struct plan *plan)
{
    free(plan->cells);
    *plan = (struct plan){0};
}

bool plan_is_over(const struct plan *plan)
{
    return plan->todo + plan->taken + plan->busy == 0;
}

static bool is_todo(const struct plan *plan, size_t at)
{
    return at < plan->count && plan->cells[at].state == CELL_TODO;
}

static size_t stretch_from(const struct plan *plan, size_t at)
{
    size_t end = at;
    while (is_todo(plan, end))
        end++;
    return end - at;
}

/* Is somebody at work right before this cell? They will take it next. */
static bool is_awaited(const struct plan *plan, size_t at)
{
    return at > 0 &&
           (plan->cells[at - 1].state == CELL_TAKEN || plan->cells[at - 1].state == CELL_BUSY);
}

static size_t choose(const struct plan *plan)
{
    size_t longest = 0, found = PLAN_NOWHERE;
    for (size_t at = 0; at < plan->count;) {
        size_t length = stretch_from(plan, at);
        if (length > longest) {
            longest = length;
            found = at;
        }
        at += length > 0 ? length : 1;
    }
    return found != PLAN_NOWHERE && is_awaited(plan, found) ? found + longest / 2 : found;
}

/* Near the end, runs get shorter, so that all workers have something to do. */
static size_t run_length(const struct plan *plan, size_t at, unsigned workers)
{
    size_t most = plan->todo / (2 * (size_t)workers);
    size_t length = 1;
    most = most < 1 ? 1 : most > PLAN_RUN ? PLAN_RUN : most;
    while (length < most && !plan->cells[at].alone && is_todo(plan, at + length) &&
           !plan->cells[at + length].alone &&
           plan->cells[at + length].number == plan->cells[at].number + (int64_t)length)
        length++;
    return length;
}

static void set_state(struct plan *plan, const struct job *job, enum cell_state state)
{
    for (size_t i = 0; i < job->count; i++)
        plan->cells[job->first + i].state = state;
}

static bool next_busy(struct plan *plan, struct job *job)
{
    for (size_t i = 0; plan->busy > 0 && i < plan->count; i++) {
        size_t at = (plan->busy_at + i) % plan->count;
        if (plan->cells[at].state != CELL_BUSY)
            continue;
        plan->busy_at = at + 1;
        plan->busy--;
        plan->taken++;
        *job = (struct job){.first = at, .count = 1, .wait = true};
        set_state(plan, job, CELL_TAKEN);
        return true;
    }
    return false;
}

bool plan_next(struct plan *plan, size_t *at, unsigned workers, struct job *job)
{
    if (plan->todo == 0)
        return next_busy(plan, job);
    size_t first = is_todo(plan, *at) ? *at : choose(plan);
    *job = (struct job){.first = first, .count = run_length(plan, first, workers)};
    *at = first + job->count;
    plan->todo -= job->count;
    plan->taken += job->count;
    set_state(plan, job, CELL_TAKEN);
    return true;
}

void plan_done(struct plan *plan, const struct job *job)
{
    plan->taken -= job->count;
    set_state(plan, job, CELL_DONE);
}

void plan_busy(struct plan *plan, const struct job *job)
{
    plan->taken -= job->count;
    plan->busy += job->count;
    set_state(plan, job, CELL_BUSY);
}

void plan_return(struct plan *plan, const struct job *job)
{
    plan->taken -= job->count;
    plan->todo += job->count;
    set_state(plan, job, CELL_TODO);
    for (size_t i = 0; i < job->count; i++)
        plan->cells[job->first + i].alone = true;
}

hf_range plan_range(const struct plan *plan, const struct job *job)
{
    int64_t first = plan->cells[job->first].number;
    return (hf_range){first * HF__CELL_LEDGERS,
                      (first + (int64_t)job->count) * HF__CELL_LEDGERS - 1};
}
