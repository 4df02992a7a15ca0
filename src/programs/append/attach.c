/* Attaches the parts of a staging table to the table that is appended to, under its lock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/append/proof.h"
#include "programs/append/staging.h"

enum {
    STATEMENT_MAX = 200 << 10, /* ClickHouse reads 256 KiB at most (max_query_size) */
    ATTACH_MS = 300000,
};

void hf__writer_id(const hf__work *work, char out[40])
{
    int64_t key = work->path_lock != NULL ? hf_lock_key(work->path_lock) : work->result->key;

    (void)snprintf(out, 40, "holdfast-%" PRId64, key);
}

hf_status hf__attach_write_plan(hf__work *work, hf__append_row *row, hf__plan *plan,
                                bool *in_the_way, hf_error *err)
{
    char staged[128];
    hf_status status = HF_OK;

    (void)snprintf(staged, sizeof staged, "%s", row->staging);
    if (hf__engine_is_replicated(work->engine))
        status = hf__replicated_check(work, plan, err);
    hf__staging_begun_name(row->staging, staged);
    if (status == HF_OK)
        status = hf__proof_look(work, plan, row->staging, err);
    hf__buf_clear(&row->plan);
    hf__plan_write(plan, &row->plan);
    if (status == HF_OK && row->plan.broken)
        status = hf__no_memory(err);
    row->state = HF__APPEND_ATTACHING;
    if (status == HF_OK)
        status = hf__append_save(work->lock, row, in_the_way, err);
    if (status != HF_OK || *in_the_way)
        (void)snprintf(row->staging, sizeof row->staging, "%s", staged);
    else if (strcmp(staged, row->staging) != 0)
        status = hf__staging_rename(work, staged, row->staging, err);
    return status;
}

/* ---- Statements ------------------------------------------------------------------------------ */

void hf__put_attach(hf__buf *sql, const char *database, const char *partition, const char *staging)
{
    hf__buf_puts(sql, "ATTACH PARTITION ID ");
    hf__quote_text(sql, partition);
    hf__buf_puts(sql, " FROM ");
    hf__quote_table(sql, database, staging);
}

struct attaching {
    const char *into; /* quoted */
    const char *from;
    const char *query_id;
    const hf__plan *plan;
    const hf__verdict *verdicts; /* those that are HF__NOT_ATTACHED; NULL: all */
};

/*
 * Puts as many partitions as possible, from *at on, into one statement. A server finishes an ALTER
 * even when its client is gone, so all of them get attached or none. Returns how many there are.
 */
static size_t write_statement(const hf__work *work, const struct attaching *attaching, size_t most,
                              size_t *at, hf__buf *sql)
{
    size_t count = 0;

    hf__buf_printf(sql, "ALTER TABLE %s", attaching->into);
    for (; *at < attaching->plan->partition_count && count < most && sql->length < STATEMENT_MAX;
         (*at)++) {
        if (attaching->verdicts != NULL && attaching->verdicts[*at] != HF__NOT_ATTACHED)
            continue;
        hf__buf_puts(sql, count++ == 0 ? " " : ", ");
        hf__put_attach(sql, work->name.database, attaching->plan->partitions[*at].id,
                       attaching->from);
    }
    return count;
}

static hf_status run_statement(hf__work *work, const struct attaching *attaching,
                               const hf__buf *sql, hf_error *err)
{
    const hf__statement attach = {.sql = sql->data,
                                  .what = "attach the partitions",
                                  .query_id = attaching->query_id,
                                  .settings = hf__settings_for_log(&work->settings),
                                  .limit_ms = ATTACH_MS,
                                  .is_once = true,
                                  .is_list = true};

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

/* *is_sent: the server has been told something. */
static hf_status attach_by_statements(hf__work *work, const struct attaching *attaching,
                                      bool *is_sent, hf_error *err)
{
    hf_status status = HF_OK;
    size_t at = 0, most = SIZE_MAX;

    while (status == HF_OK && at < attaching->plan->partition_count) {
        hf__buf sql = {0};
        size_t first = at;
        size_t count = write_statement(work, attaching, most, &at, &sql);
        if (count > 0) {
            work->target->fault = (hf__fault){0}; /* of this statement, not of one before it */
            status = hf__work_check(work, err);
            *is_sent = *is_sent || status == HF_OK;
            if (status == HF_OK)
                status = run_statement(work, attaching, &sql, err);
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

hf_status hf__attach_private(hf__work *work, const char *into, const hf__plan *plan,
                             const hf__verdict *verdicts, const char *from, hf_error *err)
{
    bool is_sent = false;
    hf__buf quoted = {0};

    hf__quote_table(&quoted, work->name.database, into);
    const struct attaching attaching = {
        .into = quoted.data, .from = from, .plan = plan, .verdicts = verdicts};
    hf_status status =
        quoted.broken ? hf__no_memory(err) : attach_by_statements(work, &attaching, &is_sent, err);
    hf__buf_free(&quoted);
    return status;
}

/* ---- What came of it ------------------------------------------------------------------------- */

size_t hf__count_verdicts(const hf__plan *plan, const hf__verdict *verdicts, hf__verdict wanted)
{
    size_t count = 0;

    for (size_t i = 0; i < plan->partition_count; i++)
        count += verdicts[i] == wanted ? 1 : 0;
    return count;
}

/* Without an answer the statement may still be running: then nothing is known. */
static hf_status say_how_far(hf__work *work, hf__plan *plan, hf__verdict *verdicts,
                             const char *staging, bool *is_none, hf_error *err)
{
    const hf__fault fault = work->target->fault;
    hf__proof_options how = {.attached_from = staging, .staging = staging, .is_at_once = true};
    hf_error plain = *err;
    bool is_known = (fault.code != 0 || !fault.was_sent) &&
                    hf__proof_judge(work, plan, &how, verdicts, NULL) == HF_OK &&
                    hf__count_verdicts(plan, verdicts, HF__UNSURE) == 0;
    size_t done = is_known ? hf__count_verdicts(plan, verdicts, HF__ATTACHED) : 0;

    work->target->fault = fault; /* what counts is what was said about the ATTACH */
    *is_none =
        is_known && hf__count_verdicts(plan, verdicts, HF__NOT_ATTACHED) == plan->partition_count;
    /* The rows may be there: a caller that takes this for a failure would append them again. */
    hf_status doubt = plain.code == HF_UNREACHABLE ? HF_IN_DOUBT : plain.code;
    hf_status status =
        is_known ? hf__fail(err, plain.code, "%s; %zu of %zu partitions are attached",
                            plain.message, done, plan->partition_count)
                 : hf__fail(err, doubt, "%s; how many of %zu partitions are attached is not known",
                            plain.message, plan->partition_count);
    if (*is_none && fault.code != 0)
        hf__hint(err,
                 "repeat with the same --id: the rows are staged; if the table was altered since, "
                 "'holdfast append forget' the id and append them again");
    else
        hf__hint(err, "repeat with the same --id: it attaches the rest");
    return status;
}

hf_status hf__refuse_equal(const hf__work *work, const hf__plan_part *part, hf_error *err)
{
    hf_status status = hf__fail(err, HF_DATABASE,
                                "%s: %s leaves out %" PRId64
                                " rows of partition %s: it has attached equal ones before",
                                work->target->name, work->name.text, part->rows, part->partition);

    hf__hint(err, "a replicated table takes equal parts once; to have the rows twice, append them "
                  "with --direct and ?insert_deduplicate=0 behind the URL");
    return status;
}

static hf_status refuse_missing(hf__work *work, const hf__plan *plan,
                                const hf__plan_partition *partition, hf_error *err)
{
    const hf__plan_part *part = &plan->parts[partition->first];

    for (size_t p = 0; p < partition->count && part->found == HF__THERE; p++)
        part++;
    work->was_deduplicated = hf__engine_is_replicated(work->engine);
    if (work->was_deduplicated)
        return hf__refuse_equal(work, part, err);
    return hf__fail(err, HF_IN_DOUBT,
                    "%s: partition %s was attached, but %" PRId64 " of its rows are not there",
                    work->target->name, partition->id, part->rows);
}

/* An answer without an error is no proof: look at what is in the table, part by part. */
static hf_status make_sure(hf__work *work, hf__plan *plan, hf__verdict *verdicts,
                           const char *staging, hf_error *err)
{
    hf__proof_options how = {.attached_from = staging, .staging = staging, .is_answered = true};
    hf_status status = hf__proof_judge(work, plan, &how, verdicts, err);

    for (size_t i = 0; i < plan->partition_count && status == HF_OK; i++)
        if (verdicts[i] != HF__ATTACHED)
            status = refuse_missing(work, plan, &plan->partitions[i], err);
    return status;
}

hf_status hf__attach_missing(hf__work *work, hf__plan *plan, hf__verdict *verdicts,
                             const char *staging, bool *is_none, hf_error *err)
{
    char writer[40];
    const struct attaching attaching = {.into = work->dest.data,
                                        .from = staging,
                                        .query_id = writer,
                                        .plan = plan,
                                        .verdicts = verdicts};

    bool is_sent = false;

    hf__writer_id(work, writer);
    hf_status status = attach_by_statements(work, &attaching, &is_sent, err);
    *is_none = !is_sent;
    if (status != HF_OK && is_sent && err != NULL)
        return say_how_far(work, plan, verdicts, staging, is_none, err);
    return status == HF_OK ? make_sure(work, plan, verdicts, staging, err) : status;
}
