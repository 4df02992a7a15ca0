/*
 * Staging tables whose parts stay as they are. A server that is killed in the middle of an ATTACH
 * has some parts of a partition in the table when it is started again. They are found, and the
 * others are attached, if only they are still there one by one: but a server that starts merges
 * them at once, unless the table itself says that it has no merges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/append/staging.h"

/* No part is so small that it may be merged. The oldest way to define a table has no settings. */
static void put_engine(const hf__work *work, hf__buf *sql)
{
    const char *full = work->engine_full.data;
    size_t before = sql->length;

    hf__staging_engine(full, sql);
    if (strstr(full, " ORDER BY ") == NULL)
        return;
    if (sql->length == before)
        hf__buf_printf(sql, " ENGINE = %s", full);
    hf__buf_printf(sql, "%s max_bytes_to_merge_at_max_space_in_pool = 1",
                   strstr(full, " SETTINGS ") != NULL ? "," : " SETTINGS");
}

/* As the table was when the rows were staged: it may have been altered since. */
static hf_status create(hf__work *work, const char *name, const char *like, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_puts(&sql, "CREATE TABLE ");
    hf__quote_table(&sql, work->name.database, name);
    hf__buf_puts(&sql, " AS ");
    hf__quote_table(&sql, work->name.database, like);
    put_engine(work, &sql);
    return hf__work_do(work, "create the staging table", &sql, err);
}

/* "holdfast_staging_…" becomes "holdfast_staged_…". */
static hf_status complete(hf__work *work, char name[128], hf_error *err)
{
    char whole[128];

    (void)snprintf(whole, sizeof whole, HF__STAGED_PREFIX "%s",
                   name + sizeof HF__STAGING_PREFIX - 1);
    hf_status status = hf__staging_rename(work, name, whole, err);
    memcpy(name, whole, sizeof whole);
    return status;
}

hf_status hf__staging_keep(hf__work *work, const hf__plan *plan, hf_error *err)
{
    char kept[128];

    hf__staging_name(kept, false, work->result->id, work->store_id, work->name.text);
    hf_status status = create(work, kept, work->staging, err);
    if (status == HF_OK)
        status = hf__attach_private(work, kept, plan, NULL, work->staging, err);
    if (status == HF_OK)
        status = complete(work, kept, err);
    if (status != HF_OK) {
        hf__staging_discard(work, kept);
        return status;
    }
    hf__staging_discard(work, work->staging);
    memcpy(work->staging, kept, sizeof kept);
    return HF_OK;
}

/* ---- Picking --------------------------------------------------------------------------------- */

static hf_status alter(hf__work *work, const char *table, const char *what, const char *which,
                       hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_puts(&sql, "ALTER TABLE ");
    hf__quote_table(&sql, work->name.database, table);
    hf__buf_printf(&sql, " %s ", what);
    hf__quote_text(&sql, which);
    return hf__work_do(work, "pick staged parts", &sql, err);
}

/* The first of the partition's parts, if they are as planned; else NULL. */
static const hf__plan_part *find_parts(const hf__plan *plan, const hf__plan_partition *partition,
                                       const hf__parts *parts)
{
    size_t first = 0, count = 0;

    while (first < parts->count && strcmp(parts->items[first].partition, partition->id) != 0)
        first++;
    while (first + count < parts->count &&
           strcmp(parts->items[first + count].partition, partition->id) == 0)
        count++;
    bool are_as_planned = count == partition->count;
    for (size_t p = 0; p < count && are_as_planned; p++)
        are_as_planned =
            parts->items[first + p].rows == plan->parts[partition->first + p].rows &&
            strcmp(parts->items[first + p].files, plan->parts[partition->first + p].files) == 0;
    return are_as_planned ? &parts->items[first] : NULL;
}

static hf_status pick_parts(hf__work *work, const hf__plan *plan, const char *table,
                            bool *are_there, hf_error *err)
{
    hf__parts parts = {0};
    hf_status status =
        hf__parts_read(work->target, work->name.database, table, work->is_modern, -1, &parts, err);

    *are_there = true;
    for (size_t i = 0; i < plan->partition_count && status == HF_OK && *are_there; i++) {
        const hf__plan_partition *partition = &plan->partitions[i];
        if (hf__plan_sum_up(plan, partition) != HF__PARTLY)
            continue;
        const hf__plan_part *found = find_parts(plan, partition, &parts);
        *are_there = found != NULL;
        if (*are_there)
            status = alter(work, table, "DETACH PARTITION ID", partition->id, err);
        for (size_t p = 0; p < partition->count && status == HF_OK && *are_there; p++)
            if (plan->parts[partition->first + p].found == HF__ABSENT)
                status = alter(work, table, "ATTACH PART", found[p].name, err);
    }
    hf__parts_free(&parts);
    return status;
}

hf_status hf__staging_pick(hf__work *work, const hf__plan *plan, const char *id, const char *from,
                           char out[128], hf_error *err)
{
    hf__verdict *wanted = calloc(plan->partition_count + 1, sizeof *wanted);
    bool are_there = false;

    if (wanted == NULL)
        return hf__no_memory(err);
    for (size_t i = 0; i < plan->partition_count; i++)
        wanted[i] = hf__plan_sum_up(plan, &plan->partitions[i]) == HF__ATTACHED ? HF__ATTACHED
                                                                                : HF__NOT_ATTACHED;
    hf__staging_name(out, false, id, work->store_id, work->name.text);
    hf_status status = create(work, out, from, err);
    if (status == HF_OK)
        status = hf__attach_private(work, out, plan, wanted, from, err);
    if (status == HF_OK)
        status = pick_parts(work, plan, out, &are_there, err);
    if (status == HF_OK && are_there)
        status = complete(work, out, err);
    if (status != HF_OK || !are_there) {
        hf__staging_discard(work, out);
        out[0] = '\0';
    }
    free(wanted);
    return status;
}
