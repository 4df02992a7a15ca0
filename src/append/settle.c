/*
 * An append that was attaching when it died. Its late ATTACH must not come after the look at the table,
 * so its staging table is renamed first: whatever still names the old one fails, and what is running
 * holds the rename up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "append/staging.h"

/* fenced is "" where there is no staging table any more. */
static hf_status fence(hf__work *work, const char *id, char fenced[128], hf_error *err)
{
    char found[128];
    hf_status status = hf__staging_find(work, id, found, err);

    fenced[0] = '\0';
    if (status != HF_OK || found[0] == '\0')
        return status;
    hf__staging_name(fenced, true, id);
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

static hf_status finish(hf__work *work, hf__append_row *row, const hf__plan *plan,
                        const char *staging, hf_error *err)
{
    hf__verdict *verdicts = calloc(plan->partition_count + 1, sizeof *verdicts);
    bool in_the_way = false;

    if (verdicts == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_status status = hf__judge_all(work, plan, verdicts, err);
    if (status == HF_OK)
        row->state = decide(plan, verdicts, staging[0] != '\0');
    if (status == HF_OK && row->state == HF__APPEND_DONE)
        status = hf__attach_missing(work, plan, verdicts, staging, err);
    free(verdicts);
    if (status != HF_OK &&
        work->left_out) { /* it would be left out again, and be in everybody's way */
        row->state = HF__APPEND_DOUBTFUL;
        status = HF_OK;
    }
    (void)snprintf(row->staging, sizeof row->staging, "%s", staging);
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
