/*
 * Direct: one INSERT under the table's lock. ClickHouse commits it block by block, so what is cut short is
 * partly there; all that can be done is to stop at once and to say how much.
 */
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "append/quote.h"
#include "append/work.h"

enum { MOST_TRIES = 3, PAUSE_MS = 500 };

static hf_status count_rows(hf__work *work, int64_t *rows, hf_error *err)
{
    hf__buf sql = {0};
    hf__grid grid = {0};

    if (work->is_merge_tree) {
        hf__buf_puts(&sql, "SELECT sum(rows) FROM system.parts WHERE active AND database = ");
        hf__quote_text(&sql, work->name.database);
        hf__buf_puts(&sql, " AND table = ");
        hf__quote_text(&sql, work->name.table);
    } else {
        hf__buf_printf(&sql, "SELECT count() FROM %s", work->dest.data);
    }
    const hf__statement count = {.sql = sql.data, .what = "count the rows"};
    hf_status status = sql.broken ? hf__fail(err, HF_NO_MEMORY, "out of memory")
                                  : hf__target_query(work->target, &count, &grid, err);
    *rows = hf__grid_number(&grid, 0, 0);
    hf__grid_free(&grid);
    hf__buf_free(&sql);
    return status;
}

static bool can_read_again(const hf__append_options *options)
{
    bool can = options->select != NULL || options->concat_count > 0 || options->path_count > 0;

    for (size_t i = 0; i < options->path_count; i++)
        can = can && strcmp(options->paths[i], "-") != 0;
    return can;
}

/* Nothing has reached the table: it was refused for its id, or the server was not reached at all. */
static bool may_repeat(hf__work *work, hf_status status)
{
    const hf__fault *fault = &work->target->fault;

    if (status == HF_OK || !can_read_again(work->options) || hf__halt_get(work->halt) != HF__GO_ON)
        return false;
    return fault->code == HF__CODE_ID_IN_USE || (status == HF_UNREACHABLE && !fault->was_sent);
}

static hf_status insert(hf__work *work, hf_error *err)
{
    char writer[40];
    hf_status status = HF_OK;

    hf__writer_id(writer, work->result->key);
    for (int i = 0; i < MOST_TRIES; i++) {
        status = hf__work_feed(work, work->dest.data, work->result->key != 0 ? writer : NULL, err);
        if (!may_repeat(work, status))
            break;
        if (work->target->fault.code == HF__CODE_ID_IN_USE) {
            status = hf__orphan_end(work, true, err);
            if (status != HF_OK)
                break;
        } else {
            struct pollfd halt = {.fd = work->halt->fd, .events = POLLIN};
            (void)poll(&halt, 1, PAUSE_MS);
        }
    }
    return status;
}

/* The outcome is known once ClickHouse has said anything of the INSERT. */
static hf_status tell_outcome(hf__work *work, hf_status status, int64_t before, hf_error *err)
{
    const hf__fault fault = work->target->fault;
    bool is_heard = fault.code != 0 || !fault.was_sent;
    hf_error plain = {0};
    int64_t after = 0;

    if (status == HF_OK && count_rows(work, &after, NULL) == HF_OK)
        work->result->rows = after - before;
    if (status == HF_OK)
        return HF_OK;
    if (err != NULL)
        plain = *err;
    bool counted = count_rows(work, &after, NULL) == HF_OK;
    work->result->rows = counted ? after - before : -1;
    hf_status code = is_heard || status == HF_LOST ? status : HF_IN_DOUBT;
    if (counted)
        code = hf__fail(err, code, "%s; %" PRId64 " of its rows are visible in %s", plain.message,
                        after - before, work->name.text);
    else
        code = hf__fail(err, code, "%s; how many of its rows are visible in %s is not known",
                        plain.message, work->name.text);
    if (plain.hint[0] != '\0')
        hf__hint(err, "%s", plain.hint);
    else if (!counted || after != before)
        hf__hint(err,
                 "remove them before it is repeated; staged appends (--staged) are all or nothing");
    return code;
}

hf_status hf__direct_run(hf__work *work, hf_error *err)
{
    int64_t before = 0;
    hf_status status = HF_OK;

    if (!hf__append_needs_no_lock(work->options->table)) {
        status = hf__work_lock_table(work, work->options->wait_ms, err);
        if (status == HF_OK)
            status = hf__orphan_end(work, false, err);
    }
    if (status == HF_OK)
        status = count_rows(work, &before, err);
    if (status == HF_OK) {
        status = insert(work, err);
        status = tell_outcome(work, status, before, err);
    }
    hf_status unlocked = hf__work_unlock_table(work, status == HF_OK ? err : NULL);
    return status != HF_OK ? status : unlocked;
}
