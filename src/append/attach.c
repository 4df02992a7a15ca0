/* From the staging table into the table, partition by partition, under the table's lock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "append/quote.h"
#include "append/work.h"

void hf__writer_id(char out[40], int64_t key)
{
    (void)snprintf(out, 40, "holdfast-%" PRId64, key);
}

static int64_t rows_of(const hf__grid *grid, const char *partition)
{
    for (size_t i = 0; i < grid->rows; i++)
        if (strcmp(hf__grid_at(grid, i, 0), partition) == 0)
            return hf__grid_number(grid, i, 1);
    return 0;
}

static hf_status read_rows(hf__work *work, hf__grid *grid, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_puts(&sql,
                 "SELECT partition_id, sum(rows) FROM system.parts WHERE active AND database = ");
    hf__quote_text(&sql, work->name.database);
    hf__buf_puts(&sql, " AND table = ");
    hf__quote_text(&sql, work->name.table);
    hf__buf_puts(&sql, " GROUP BY partition_id");
    const hf__statement read = {.sql = sql.data, .what = "read system.parts"};
    hf_status status = sql.broken ? hf__fail(err, HF_NO_MEMORY, "out of memory")
                                  : hf__target_query(work->target, &read, grid, err);
    hf__buf_free(&sql);
    return status;
}

hf_status hf__judge_all(hf__work *work, const hf__plan *plan, hf__verdict *verdicts, hf_error *err)
{
    hf__parts now = {0};
    hf__grid rows = {0};
    hf_status status = hf__parts_read(work->target, work->name.database, work->name.table,
                                      hf__plan_least_block(plan), &now, err);

    if (status == HF_OK)
        status = read_rows(work, &rows, err);
    for (size_t i = 0; i < plan->partition_count && status == HF_OK; i++)
        verdicts[i] = hf__plan_judge(plan, &plan->partitions[i], &now,
                                     rows_of(&rows, plan->partitions[i].id), work->collapses);
    hf__grid_free(&rows);
    hf__parts_free(&now);
    return status;
}

static hf_status attach_one(hf__work *work, const char *partition, const char *staging,
                            hf_error *err)
{
    char writer[40];
    hf__buf sql = {0};

    hf__writer_id(writer, work->result->key);
    hf__buf_printf(&sql, "ALTER TABLE %s ATTACH PARTITION ID ", work->dest.data);
    hf__quote_text(&sql, partition);
    hf__buf_puts(&sql, " FROM ");
    hf__quote_table(&sql, work->name.database, staging);
    const hf__statement attach = {
        .sql = sql.data, .what = "attach a partition", .query_id = writer};
    hf_status status = sql.broken ? hf__fail(err, HF_NO_MEMORY, "out of memory")
                                  : hf__target_query(work->target, &attach, NULL, err);
    if (status != HF_OK && work->target->fault.code == HF__CODE_ID_IN_USE) {
        status = hf__orphan_end(work, true, err);
        if (status == HF_OK)
            status = hf__target_query(work->target, &attach, NULL, err);
    }
    hf__buf_free(&sql);
    return status;
}

static hf_status say_how_far(size_t done, size_t all, hf_error *err)
{
    hf_error plain = *err;
    hf_status status = hf__fail(err, plain.code, "%s; %zu of %zu partitions are attached",
                                plain.message, done, all);

    hf__hint(err, "repeat with the same --id: it attaches the rest");
    return status;
}

/* One that was refused or not heard of may be there all the same: the server is asked. */
static hf_status make_sure(hf__work *work, const hf__plan *plan, hf__verdict *verdicts,
                           hf_error *err)
{
    hf_status status = hf__judge_all(work, plan, verdicts, err);

    for (size_t i = 0; i < plan->partition_count && status == HF_OK; i++)
        if (verdicts[i] == HF__NOT_ATTACHED)
            status = hf__fail(err, HF_DATABASE,
                              "%s: partition %s was attached with %" PRId64
                              " rows, but they are not there",
                              work->target->name, plan->partitions[i].id, plan->partitions[i].rows);
    return status;
}

hf_status hf__attach_missing(hf__work *work, const hf__plan *plan, hf__verdict *verdicts,
                             const char *staging, hf_error *err)
{
    hf_status status = HF_OK;
    size_t done = 0;

    for (size_t i = 0; i < plan->partition_count && status == HF_OK; i++) {
        if (verdicts[i] == HF__NOT_ATTACHED) {
            status = hf__work_check(work, err);
            if (status == HF_OK)
                status = attach_one(work, plan->partitions[i].id, staging, err);
        }
        if (status == HF_OK)
            done++;
    }
    if (status != HF_OK && err != NULL)
        return say_how_far(done, plan->partition_count, err);
    return status == HF_OK ? make_sure(work, plan, verdicts, err) : status;
}
