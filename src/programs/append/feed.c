/* Rows into a table: a stream, a query's result, or whole tables one after the other. */
#include <inttypes.h>
#include <string.h>

#include "programs/append/columns.h"
#include "programs/append/quote.h"
#include "programs/append/settings.h"

static void tell(void *arg, const hf__input *input)
{
    const hf__work *work = arg;
    hf__append_progress progress = {.bytes = hf__input_bytes(input),
                                    .size = hf__input_size(input),
                                    .rows = hf__input_rows(input)};

    if (work->options->events.progress != NULL)
        work->options->events.progress(work->options->events.arg, &progress);
}

/* ClickHouse counts rows; people look for lines. */
static void add_place(const hf__work *work, const hf__input *input, hf_error *err)
{
    const char *file = NULL;
    int64_t line = 0;

    if (err == NULL || work->target->fault.row == 0 ||
        !hf__input_place(input, work->target->fault.row, &file, &line))
        return;
    hf_error plain = *err;
    hf__set_error(err, plain.code, "%s, line %" PRId64 ": %s", file, line, plain.message);
    hf__hint(err, "%s", plain.hint);
}

static hf_status feed_stream(hf__work *work, const char *into, const char *query_id, hf_error *err)
{
    const hf__append_options *options = work->options;
    const hf__flow flow = {.tell = tell, .arg = work};
    hf__input *input = NULL;
    hf__buf sql = {0}, settings = {0};

    hf__buf_printf(&sql, "INSERT INTO %s", into);
    hf_status status =
        hf__input_open(options->format, options->paths, options->path_count, &input, err);
    if (status == HF_OK)
        status = hf__settings_read(work, err);
    if (status == HF_OK)
        status = hf__columns_add(work, input, &sql, err);
    hf__buf_puts(&settings, hf__settings_for_rows(&work->settings));
    if (work->token[0] != '\0')
        hf__buf_printf(&settings, "%s%s", settings.length > 0 ? "&" : "", work->token);
    if (status == HF_OK && (sql.broken || settings.broken))
        status = hf__fail(err, HF_NO_MEMORY, "out of memory");
    const hf__statement insert = {.sql = sql.data,
                                  .what = "insert the rows",
                                  .query_id = query_id,
                                  .limit_ms = -1,
                                  .is_once = true,
                                  .settings = settings.data,
                                  .is_sealed = work->dedup_window > 0};
    if (status == HF_OK) {
        status =
            work->target->ops->insert(work->target, &insert, options->format, input, &flow, err);
        work->result->bytes = hf__input_bytes(input);
        if (status == HF_BAD_DATA)
            add_place(work, input, err);
    }
    hf__input_close(input);
    hf__buf_free(&settings);
    hf__buf_free(&sql);
    return status;
}

static hf_status feed_query(hf__work *work, const char *into, const char *query_id,
                            const char *select, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_printf(&sql, "INSERT INTO %s %s", into, select);
    const hf__statement insert = {.sql = sql.data,
                                  .what = "insert the result of the query",
                                  .query_id = query_id,
                                  .limit_ms = -1,
                                  .is_once = true};
    hf_status status = sql.broken ? hf__fail(err, HF_NO_MEMORY, "out of memory")
                                  : hf__target_query(work->target, &insert, NULL, err);
    hf__buf_free(&sql);
    return status;
}

static hf_status feed_table(hf__work *work, const char *into, const char *query_id,
                            const char *from, hf_error *err)
{
    const hf_table_name defaults = {.database = work->name.database};
    hf__table_name name;
    hf__buf select = {0};
    hf_status status = hf__table_name_parse(from, strlen(from), &defaults, &name, err);

    if (status != HF_OK)
        return status;
    hf__buf_puts(&select, "SELECT * FROM ");
    hf__quote_table(&select, name.database, name.table);
    status = select.broken ? hf__fail(err, HF_NO_MEMORY, "out of memory")
                           : feed_query(work, into, query_id, select.data, err);
    hf__buf_free(&select);
    return status;
}

hf_status hf__work_feed(hf__work *work, const char *into, const char *query_id, hf_error *err)
{
    const hf__append_options *options = work->options;
    hf_status status = HF_OK;

    if (options->select != NULL)
        status = feed_query(work, into, query_id, options->select, err);
    else if (options->concat_count == 0)
        status = feed_stream(work, into, query_id, err);
    while (work->merged < options->concat_count && status == HF_OK) {
        status = feed_table(work, into, query_id, options->concat[work->merged], err);
        if (status == HF_OK)
            work->merged++;
    }
    return hf__work_blame(work, status, err);
}

hf_status hf__work_blame(hf__work *work, hf_status status, hf_error *err)
{
    hf_error why;
    hf_status halted = hf__work_check(work, &why);
    if (halted != HF_OK && (status == HF_OK || status == HF_DATABASE || status == HF_BAD_DATA)) {
        if (err != NULL)
            *err = why;
        return halted;
    }
    return status;
}
