/*
 * An append that was attaching when it died. Its late ATTACH must not come after the look at the table,
 * so its staging table is renamed first: whatever still names the old one fails, and what is running
 * holds the rename up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/append/staging.h"

/* fenced is "" where there is no staging table any more. */
static hf_status fence(hf__work *work, const char *id, char fenced[128], hf_error *err)
{
    char found[128];
    hf_status status = hf__staging_find(work, id, found, err);

    fenced[0] = '\0';
    if (status != HF_OK || found[0] == '\0')
        return status;
    hf__staging_name(fenced, true, id, work->name.text);
    return hf__staging_rename(work, found, fenced, err);
}

static hf__append_state decide(const hf__plan *plan, const hf__verdict *verdicts, bool has_staging)
{
    hf__append_state state = HF__APPEND_DONE;

    for (size_t i = 0; i < plan->partition_count; i++)
        if (verdicts[i] == HF__UNSURE || (verdicts[i] == HF__NOT_ATTACHED && !has_staging))
            state = HF__APPEND_DOUBTFUL;
    return state;
}

static size_t count_missing(const hf__plan *plan, const hf__verdict *verdicts)
{
    size_t missing = 0;

    for (size_t i = 0; i < plan->partition_count; i++)
        missing += verdicts[i] == HF__NOT_ATTACHED ? 1 : 0;
    return missing;
}

/* Parts of partitions that are in the table already do not count. */
static void leave_out_attached(const hf__plan *plan, const hf__verdict *verdicts, hf__parts *staged)
{
    for (size_t i = 0; i < plan->partition_count; i++)
        for (size_t p = 0; p < staged->count && verdicts[i] == HF__ATTACHED; p++)
            if (strcmp(staged->items[p].partition, plan->partitions[i].id) == 0)
                staged->items[p].is_active = false;
}

hf_status hf__write_down(hf__work *work, hf__append_row *row, hf__plan *plan, bool *in_the_way,
                         hf_error *err)
{
    hf_status status =
        hf__plan_look(plan, work->target, work->name.database, work->name.table, err);

    hf__buf_clear(&row->plan);
    hf__plan_write(plan, &row->plan);
    if (status == HF_OK && row->plan.broken)
        status = hf__fail(err, HF_NO_MEMORY, "out of memory");
    row->state = HF__APPEND_ATTACHING;
    return status == HF_OK ? hf__append_save(work->store, work->lock, row, in_the_way, err)
                           : status;
}

/* The server may have merged what is staged since it was written down: it is written down anew. */
static hf_status attach_rest(hf__work *work, hf__append_row *row, const hf__plan *plan,
                             hf__verdict *verdicts, hf_error *err)
{
    hf__parts staged = {0};
    hf__plan fresh = {0};
    bool in_the_way = false; /* nobody's: this row is the one that attaches */
    size_t missing = count_missing(plan, verdicts);

    if (missing == 0)
        return HF_OK;
    hf_status status = hf__staging_freeze(work, row->staging, &staged, err);
    if (status == HF_OK) {
        leave_out_attached(plan, verdicts, &staged);
        status = hf__plan_make(&staged, &fresh, err);
    }
    if (status == HF_OK && fresh.partition_count != missing) { /* somebody else was at it */
        row->state = HF__APPEND_DOUBTFUL;
    } else if (status == HF_OK) {
        status = hf__write_down(work, row, &fresh, &in_the_way, err);
        for (size_t i = 0; i < missing; i++)
            verdicts[i] = HF__NOT_ATTACHED;
        if (status == HF_OK)
            status = hf__attach_missing(work, &fresh, verdicts, row->staging, err);
        if (status == HF_OK)
            row->state = HF__APPEND_DONE;
    }
    hf__plan_free(&fresh);
    hf__parts_free(&staged);
    return status;
}

static hf_status finish(hf__work *work, hf__append_row *row, const hf__plan *plan,
                        const char *staging, hf_error *err)
{
    hf__verdict *verdicts = calloc(plan->partition_count + 1, sizeof *verdicts);
    bool in_the_way = false;

    if (verdicts == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_status status = hf__judge_all(work, plan, verdicts, err);
    (void)snprintf(row->staging, sizeof row->staging, "%s", staging);
    if (status == HF_OK)
        row->state = decide(plan, verdicts, staging[0] != '\0');
    if (status == HF_OK && row->state == HF__APPEND_DONE)
        status = attach_rest(work, row, plan, verdicts, err);
    free(verdicts);
    if (status != HF_OK &&
        work->left_out) { /* it would be left out again, and be in everybody's way */
        row->state = HF__APPEND_DOUBTFUL;
        status = HF_OK;
    }
    if (status == HF_OK)
        status = hf__append_save(work->store, work->lock, row, &in_the_way, err);
    return status;
}

static void tell(const hf__work *work, const hf__append_row *row)
{
    if (strcmp(row->id, work->result->id) == 0)
        return;
    hf__work_note(work,
                  row->state == HF__APPEND_DONE
                      ? "finished append %s, which had died while it attached"
                      : "append %s had died while it attached: nobody can tell what it had done",
                  row->id);
}

static hf_status settle_here(hf__work *work, hf__append_row *row, const hf__plan *plan,
                             hf_error *err)
{
    char staging[128] = "";
    hf_status status = hf__orphan_end(work, false, err);

    if (status == HF_OK)
        status = fence(work, row->id, staging, err);
    if (status == HF_OK)
        status = hf__server_sync(work, err);
    if (status == HF_OK)
        status = finish(work, row, plan, staging, err);
    if (status != HF_OK)
        return status;
    tell(work, row);
    if (row->state == HF__APPEND_DONE)
        hf__work_record(work, row->rows);
    if (row->state == HF__APPEND_DONE && staging[0] != '\0')
        (void)!hf__staging_drop(work, staging, NULL); /* or it is swept */
    return HF_OK;
}

hf_status hf__settle(hf__work *work, hf__append_row *row, hf_error *err)
{
    hf__target *const used = work->target;
    hf__plan plan = {0};
    hf_status status = hf__plan_parse(row->plan.data != NULL ? row->plan.data : "", &plan, err);

    if (status == HF_OK)
        status = hf__cluster_follow(work, row->id, err);
    if (status == HF_OK)
        status = settle_here(work, row, &plan, err);
    work->target = used;
    hf__plan_free(&plan);
    return status;
}
