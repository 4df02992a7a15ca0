/* Attaches the parts of a staging table to the table that is appended to, under its lock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/append/work.h"

enum {
    STATEMENT_MAX = 200 << 10, /* ClickHouse reads 256 KiB at most (max_query_size) */
    ATTACH_MS = 300000,
};

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

    hf__buf_puts(&sql, "SELECT partition_id, sum(rows) FROM system.parts WHERE active AND ");
    hf__put_table_condition(&sql, work->name.database, work->name.table);
    hf__buf_puts(&sql, " GROUP BY partition_id");
    const hf__statement read = {.what = "read system.parts"};
    return hf__target_ask(work->target, &read, &sql, grid, err);
}

hf_status hf__attach_judge(hf__work *work, const hf__plan *plan, hf__verdict *verdicts,
                           hf_error *err)
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

hf_status hf__attach_write_plan(hf__work *work, hf__append_row *row, hf__plan *plan,
                                bool *in_the_way, hf_error *err)
{
    hf_status status =
        hf__plan_look(plan, work->target, work->name.database, work->name.table, err);

    hf__buf_clear(&row->plan);
    hf__plan_write(plan, &row->plan);
    if (status == HF_OK && row->plan.broken)
        status = hf__no_memory(err);
    row->state = HF__APPEND_ATTACHING;
    return status == HF_OK ? hf__append_save(work->lock, row, in_the_way, err) : status;
}

/*
 * Puts as many partitions as possible, from *at on, into one statement. A server finishes an ALTER
 * even when its client is gone, so all of them get attached or none. Returns how many there are.
 */
static size_t write_statement(const hf__work *work, const hf__plan *plan,
                              const hf__verdict *verdicts, const char *staging, size_t most,
                              size_t *at, hf__buf *sql)
{
    size_t count = 0;

    hf__buf_printf(sql, "ALTER TABLE %s", work->dest.data);
    for (; *at < plan->partition_count && count < most && sql->length < STATEMENT_MAX; (*at)++) {
        if (verdicts[*at] != HF__NOT_ATTACHED)
            continue;
        hf__buf_puts(sql, count++ == 0 ? " ATTACH PARTITION ID " : ", ATTACH PARTITION ID ");
        hf__quote_text(sql, plan->partitions[*at].id);
        hf__buf_puts(sql, " FROM ");
        hf__quote_table(sql, work->name.database, staging);
    }
    return count;
}

static hf_status run_statement(hf__work *work, const hf__buf *sql, hf_error *err)
{
    char writer[40];
    const hf__statement attach = {.sql = sql->data,
                                  .what = "attach the partitions",
                                  .query_id = writer,
                                  .limit_ms = ATTACH_MS,
                                  .is_once = true,
                                  .is_list = true};

    hf__writer_id(writer, work->result->key);
    if (sql->broken)
        return hf__no_memory(err);
    hf_status status = hf__target_query(work->target, &attach, NULL, err);
    if (status != HF_OK && work->target->fault.code == HF__CODE_ID_IN_USE) {
        status = hf__orphan_end(work, true, err);
        if (status == HF_OK)
            status = hf__target_query(work->target, &attach, NULL, err);
    }
    return status;
}

/* The server refused it before it did anything: too long, or too many partitions at once. */
static bool is_too_much(const hf__work *work, hf_status status, size_t count)
{
    int code = work->target->fault.code;

    return status != HF_OK && count > 1 &&
           (code == HF__CODE_SYNTAX_ERROR || code == HF__CODE_NOT_IMPLEMENTED);
}

static hf_status attach_by_statements(hf__work *work, const hf__plan *plan,
                                      const hf__verdict *verdicts, const char *staging,
                                      hf_error *err)
{
    hf_status status = HF_OK;
    size_t at = 0, most = SIZE_MAX;

    while (status == HF_OK && at < plan->partition_count) {
        hf__buf sql = {0};
        size_t first = at;
        size_t count = write_statement(work, plan, verdicts, staging, most, &at, &sql);
        if (count > 0) {
            status = hf__work_check(work, err);
            if (status == HF_OK)
                status = run_statement(work, &sql, err);
        }
        if (is_too_much(work, status, count)) {
            most = 1;
            at = first;
            status = HF_OK;
        }
        hf__buf_free(&sql);
    }
    return status;
}

/* Without an answer the statement may still be running: then nothing is known. */
static hf_status say_how_far(hf__work *work, const hf__plan *plan, hf__verdict *verdicts,
                             hf_error *err)
{
    const hf__fault fault = work->target->fault;
    hf_error plain = *err;
    size_t done = 0;
    bool is_known = (fault.code != 0 || !fault.was_sent) &&
                    hf__attach_judge(work, plan, verdicts, NULL) == HF_OK;

    for (size_t i = 0; i < plan->partition_count && is_known; i++)
        done += verdicts[i] == HF__ATTACHED ? 1 : 0;
    /* The rows may be there: a caller that takes this for a failure would append them again. */
    hf_status doubt = plain.code == HF_UNREACHABLE ? HF_IN_DOUBT : plain.code;
    hf_status status =
        is_known ? hf__fail(err, plain.code, "%s; %zu of %zu partitions are attached",
                            plain.message, done, plan->partition_count)
                 : hf__fail(err, doubt, "%s; how many of %zu partitions are attached is not known",
                            plain.message, plan->partition_count);
    hf__hint(err, "repeat with the same --id: it attaches the rest");
    return status;
}

static hf_status refuse_missing(hf__work *work, const hf__plan_partition *partition, hf_error *err)
{
    bool is_replicated = hf__engine_is_replicated(work->engine);
    hf_status status =
        hf__fail(err, HF_DATABASE, "%s: partition %s was attached with %" PRId64 " rows, but %s",
                 work->target->name, partition->id, partition->rows,
                 is_replicated ? "the server left them out: it has attached equal ones before"
                               : "they are not there");

    work->was_deduplicated = is_replicated;
    if (is_replicated)
        hf__hint(err,
                 "a replicated table takes equal parts once; to have the rows twice, append them "
                 "with --direct and ?insert_deduplicate=0 behind the URL");
    return status;
}

/* An answer without an error is no proof: look at what is in the table. */
static hf_status make_sure(hf__work *work, const hf__plan *plan, hf__verdict *verdicts,
                           hf_error *err)
{
    hf_status status = hf__attach_judge(work, plan, verdicts, err);

    for (size_t i = 0; i < plan->partition_count && status == HF_OK; i++)
        if (verdicts[i] == HF__NOT_ATTACHED)
            status = refuse_missing(work, &plan->partitions[i], err);
    return status;
}

hf_status hf__attach_missing(hf__work *work, const hf__plan *plan, hf__verdict *verdicts,
                             const char *staging, hf_error *err)
{
    hf_status status = attach_by_statements(work, plan, verdicts, staging, err);

    if (status != HF_OK && err != NULL)
        return say_how_far(work, plan, verdicts, err);
    return status == HF_OK ? make_sure(work, plan, verdicts, err) : status;
}
