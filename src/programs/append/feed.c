/* Puts rows into a table: from files, from a query, or from other tables one after the other. */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "programs/append/staging.h"

/* ---- Columns from a header ------------------------------------------------------------------- */

struct reader {
    const char *at, *end;
    char delimiter;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void read_quoted(struct reader *reader, hf__buf *name)
{
    const char quote = *reader->at++;

    while (reader->at < reader->end) {
        char c = *reader->at++;
        bool is_twofold = reader->at < reader->end && *reader->at == quote;
        if (c == quote && !is_twofold)
            return;
        if (c == quote)
            reader->at++;
        hf__buf_add(name, &c, 1);
    }
}

static void read_bare(struct reader *reader, hf__buf *name)
{
    const char *from = reader->at;

    while (reader->at < reader->end && *reader->at != reader->delimiter)
        reader->at++;
    const char *to = reader->at;
    while (to > from && is_blank(to[-1]))
        to--;
    hf__buf_add(name, from, (size_t)(to - from));
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at) && *reader->at != reader->delimiter)
        reader->at++;
}

static hf_status read_name(struct reader *reader, hf__buf *name, hf_error *err)
{
    hf__buf_clear(name);
    skip_blanks(reader);
    if (reader->at < reader->end && (*reader->at == '"' || *reader->at == '\''))
        read_quoted(reader, name);
    else
        read_bare(reader, name);
    skip_blanks(reader);
    if (name->broken)
        return hf__no_memory(err);
    if (memchr(name->data, '\0', name->length) != NULL)
        return hf__fail(err, HF_BAD_DATA, "the header has a NUL byte");
    if (reader->at < reader->end && *reader->at != reader->delimiter)
        return hf__fail(err, HF_BAD_DATA, "the header has more than a quoted name at '%s'",
                        name->data);
    return HF_OK;
}

/* Some programs begin a UTF-8 file with a byte order mark. */
static void skip_mark(struct reader *reader)
{
    if (reader->end - reader->at >= 3 && memcmp(reader->at, "\xef\xbb\xbf", 3) == 0)
        reader->at += 3;
}

hf_status hf__columns_parse(const char *line, size_t size, char delimiter, const hf__grid *columns,
                            hf__buf *out, hf_error *err)
{
    struct reader reader = {.at = line, .end = line + size, .delimiter = delimiter};
    const char *between = " (";
    hf_status status = HF_OK;
    hf__buf name = {0};

    while (reader.end > reader.at && (reader.end[-1] == '\n' || reader.end[-1] == '\r'))
        reader.end--;
    skip_mark(&reader);
    if (reader.at == reader.end)
        return HF_OK;
    for (bool more = true; more && status == HF_OK; between = ", ") {
        status = read_name(&reader, &name, err);
        const char *column = name.data != NULL ? name.data : "";
        if (status == HF_OK && columns != NULL && !hf__column_is_given(columns, column))
            status = hf__fail(err, HF_BAD_DATA, "the table has no column '%s' that can be given",
                              column);
        hf__buf_puts(out, between);
        hf__quote_name(out, column);
        more = reader.at < reader.end;
        if (more)
            reader.at++;
    }
    hf__buf_puts(out, ")");
    hf__buf_free(&name);
    return status;
}

static hf_status wait_for_header(hf__work *work, hf__rows_input *input, hf_error *err)
{
    for (;;) {
        bool wait = false;
        hf_status status = hf__rows_input_read_header(input, &wait, err);
        if (status != HF_OK || !wait)
            return status;
        struct pollfd fds[] = {{.fd = hf__rows_input_fd(input), .events = POLLIN},
                               {.fd = work->stop->fd, .events = POLLIN}};
        (void)poll(fds, 2, -1);
        status = hf__work_check(work, err);
        if (status != HF_OK)
            return status;
    }
}

static char delimiter_of(const hf__work *work)
{
    const char *value = hf__settings_value(&work->settings, "format_csv_delimiter");

    return value != NULL && value[0] != '\0' ? value[0] : ',';
}

/* Servers that do not know the setting take both kinds of quotes; later ones one, unless told. */
static void tell_quotes(const hf__work *work, hf__rows_input *input)
{
    const char *value = hf__settings_value(&work->settings, "format_csv_allow_single_quotes");

    hf__rows_input_know_csv(input, delimiter_of(work),
                            value != NULL ? strcmp(value, "1") == 0 : !work->is_modern);
}

/* ClickHouse names the number of a row; people need the file and the line. */
static void add_place(const hf__rows_input *input, int64_t row, hf_error *err)
{
    const char *file = NULL;
    int64_t line = 0;

    if (err == NULL || !hf__rows_input_place(input, row, &file, &line))
        return;
    hf_error plain = *err;
    hf__set_error(err, plain.code, "%s, line %" PRId64 ": %s", file, line, plain.message);
    hf__hint(err, "%s", plain.hint);
}

/*
 * Adds the columns that the input's header names, " (`a`, `b`)": not every server reads a header.
 * Waits for the header; adds nothing for a format without one. Call hf__settings_read first.
 */
static hf_status columns_add(hf__work *work, hf__rows_input *input, hf__buf *out, hf_error *err)
{
    size_t size = 0;
    hf__buf list = {0};

    if (!work->options->format->has_header)
        return HF_OK;
    hf_status status = wait_for_header(work, input, err);
    if (status != HF_OK)
        return status;
    const char *header = hf__rows_input_header(input, &size);
    status = hf__columns_parse(header, size, delimiter_of(work), &work->columns, &list, err);
    if (status == HF_BAD_DATA) {
        work->target->fault = (hf__fault){0}; /* no INSERT has been sent */
        add_place(input, 0, err);
    }
    if (!work->target->is_embedded && list.length > 0)
        hf__buf_add(out, list.data, list.length);
    hf__buf_free(&list);
    return status;
}

/* ---- One stream, a query, or whole tables ---------------------------------------------------- */

static void report(const hf__work *work, const hf__append_progress *progress)
{
    if (work->options->events.progress != NULL)
        work->options->events.progress(work->options->events.arg, progress);
}

static void tell(void *arg, const hf__rows_input *input)
{
    const hf__append_progress progress = {.bytes = hf__rows_input_bytes(input),
                                          .size = hf__rows_input_size(input),
                                          .rows = hf__rows_input_rows(input)};

    report(arg, &progress);
}

static void add_setting(hf__buf *settings, const char *setting)
{
    if (setting[0] != '\0')
        hf__buf_printf(settings, "%s%s", settings->length > 0 ? "&" : "", setting);
}

static hf_status feed_stream(hf__work *work, const char *into, const char *query_id, hf_error *err)
{
    const hf__append_options *options = work->options;
    hf__flow flow = {.tell = tell, .arg = work};
    hf__rows_input *input = NULL;
    hf__buf sql = {0}, settings = {0};

    hf__buf_printf(&sql, "INSERT INTO %s", into);
    hf_status status =
        hf__rows_input_open(options->format, options->paths, options->path_count, &input, err);
    if (status == HF_OK)
        status = hf__settings_read(work, err);
    if (status == HF_OK) {
        tell_quotes(work, input);
        status = columns_add(work, input, &sql, err);
    }
    add_setting(&settings, hf__settings_for_rows(&work->settings));
    add_setting(&settings, hf__settings_for_arrival(work));
    add_setting(&settings, work->token);
    if (status == HF_OK && (sql.broken || settings.broken))
        status = hf__no_memory(err);
    const hf__statement insert = {.sql = sql.data,
                                  .what = "insert the rows",
                                  .query_id = query_id,
                                  .limit_ms = -1,
                                  .is_once = true,
                                  .is_users = true,
                                  .settings = settings.data,
                                  .gives_way = work->result->is_staged,
                                  .is_sealed = work->dedup_window > 0};
    if (status == HF_OK && !hf__rows_input_is_empty(input)) {
        status =
            work->target->ops->insert(work->target, &insert, options->format, input, &flow, err);
        work->result->bytes = hf__rows_input_bytes(input);
        if (status == HF_BAD_DATA && work->target->fault.row > 0)
            add_place(input, work->target->fault.row, err);
    }
    hf__rows_input_close(input);
    hf__buf_free(&settings);
    hf__buf_free(&sql);
    return status;
}

static hf_status feed_query(hf__work *work, const char *into, const char *query_id,
                            const char *select, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_printf(&sql, "INSERT INTO %s %s", into, select);
    const hf__statement insert = {.what = "insert the result of the query",
                                  .query_id = query_id,
                                  .limit_ms = -1,
                                  .settings = hf__settings_for_arrival(work),
                                  .is_once = true,
                                  .is_users = true};
    return hf__target_ask(work->target, &insert, &sql, NULL, err);
}

/* Lists the columns of a source by their names, since their order may be another one. */
static hf_status list_columns(hf__work *work, const char *from, hf__table_name *name, hf__buf *list,
                              hf_error *err)
{
    const hf_table_name defaults = {.database = work->name.database};
    hf__grid columns = {0};
    hf_status status = hf__table_name_parse(from, strlen(from), &defaults, name, err);

    if (status == HF_OK)
        status = hf__clickhouse_columns(work, name->database, name->table, &columns, err);
    if (status == HF_OK) /* what is wrong with the answer is not what became of an INSERT */
        work->target->fault = (hf__fault){0};
    if (status == HF_OK && columns.rows == 0)
        status = hf__fail(err, HF_CONFIG, "%s has no table %s", work->target->name, name->text);
    for (size_t i = 0; i < columns.rows && status == HF_OK; i++) {
        const char *column = hf__grid_at(&columns, i, 0);
        if (!hf__column_is_selected(&columns, i))
            continue;
        hf__buf_puts(list, list->length > 0 ? ", " : "");
        hf__quote_name(list, column);
        if (!hf__column_is_given(&work->columns, column)) {
            status = hf__fail(err, HF_CONFIG, "%s has a column '%s', which %s cannot be given",
                              name->text, column, work->name.text);
            hf__hint(err, "--select says by itself which value goes where");
        }
    }
    hf__grid_free(&columns);
    return status == HF_OK && list->broken ? hf__no_memory(err) : status;
}

static hf_status feed_table(hf__work *work, const char *into, const char *query_id,
                            const char *from, hf_error *err)
{
    hf__table_name name;
    hf__buf columns = {0}, place = {0}, select = {0};
    hf_status status = list_columns(work, from, &name, &columns, err);

    if (status == HF_OK) {
        hf__buf_printf(&place, "%s (%s)", into, columns.data);
        hf__buf_printf(&select, "SELECT %s FROM ", columns.data);
        hf__quote_table(&select, name.database, name.table);
        status = place.broken || select.broken
                     ? hf__no_memory(err)
                     : feed_query(work, place.data, query_id, select.data, err);
    }
    hf__buf_free(&columns);
    hf__buf_free(&place);
    hf__buf_free(&select);
    return status;
}

/* All of the tables are looked at before the first one is read. */
static hf_status check_tables(hf__work *work, hf_error *err)
{
    hf_status status = HF_OK;

    for (size_t i = work->concat_done; i < work->options->concat_count && status == HF_OK; i++) {
        hf__table_name name;
        hf__buf columns = {0};
        status = list_columns(work, work->options->concat[i], &name, &columns, err);
        hf__buf_free(&columns);
    }
    return status;
}

/* Whatever ClickHouse says about a statement that we ended, the reason is our stop. */
static hf_status blame_stop(hf__work *work, hf_status status, hf_error *err)
{
    hf_error why;
    hf_status stopped = hf__work_check(work, &why);
    if (stopped != HF_OK && (status == HF_OK || status == HF_DATABASE || status == HF_BAD_DATA)) {
        if (err != NULL)
            *err = why;
        return stopped;
    }
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
    else
        status = check_tables(work, err);
    while (work->concat_done < options->concat_count && status == HF_OK) {
        status = feed_table(work, into, query_id, options->concat[work->concat_done], err);
        if (status == HF_OK)
            work->concat_done++;
    }
    return blame_stop(work, status, err);
}

/*
 * A large file in two streams. Some versions of ClickHouse parse a stream in one thread, so each
 * half gets a connection and a staging table of its own. Then the parts of the second table are
 * attached behind those of the first, so that the rows keep the file's order.
 */

struct half {
    hf__work *work;
    hf__target *target;
    hf__rows_input *input;
    const char *table; /* its staging table; the name is also the query id */
    struct halves *both;
    hf_status status;
    hf_error err;
};

struct halves {
    struct half half[2];
    hf__buf columns;    /* for both INSERTs */
    atomic_bool stop;   /* one half has failed */
    atomic_int culprit; /* which one; the other was only stopped; -1: none */
};

static void tell_halves(void *arg, const hf__rows_input *input)
{
    const struct halves *halves = arg;
    hf__append_progress progress = {.size = hf__rows_input_size(input)};

    for (int i = 0; i < 2; i++) {
        progress.bytes += hf__rows_input_bytes(halves->half[i].input);
        progress.rows += hf__rows_input_rows(halves->half[i].input);
    }
    report(halves->half[0].work, &progress);
}

static void feed(struct half *half, hf__flow *flow)
{
    struct halves *both = half->both;
    const hf__work *work = half->work;
    int none = -1;
    hf__buf sql = {0};

    hf__buf_puts(&sql, "INSERT INTO ");
    hf__quote_table(&sql, work->name.database, half->table);
    hf__buf_add(&sql, both->columns.data, both->columns.length);
    const hf__statement insert = {.sql = sql.data,
                                  .what = "insert the rows",
                                  .query_id = half->table,
                                  .limit_ms = -1,
                                  .is_once = true,
                                  .is_users = true,
                                  .gives_way = true,
                                  .settings = hf__settings_for_rows(&work->settings)};
    half->status = sql.broken
                       ? hf__no_memory(&half->err)
                       : half->target->ops->insert(half->target, &insert, work->options->format,
                                                   half->input, flow, &half->err);
    if (half->status != HF_OK) {
        (void)atomic_compare_exchange_strong(&both->culprit, &none, (int)(half - both->half));
        atomic_store(&both->stop, true);
    }
    hf__buf_free(&sql);
}

static void *feed_second(void *arg)
{
    feed(arg, NULL);
    return NULL;
}

static hf_status feed_both(struct halves *halves, hf_error *err)
{
    hf__flow flow = {.tell = tell_halves, .arg = halves};
    hf__work *work = halves->half[0].work;
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, feed_second, &halves->half[1]);

    if (failed != 0)
        return hf__fail_errno(err, HF_SYSTEM, failed, "cannot start a thread");
    feed(&halves->half[0], &flow);
    (void)pthread_join(thread, NULL);
    work->result->bytes =
        hf__rows_input_bytes(halves->half[0].input) + hf__rows_input_bytes(halves->half[1].input);
    int culprit = atomic_load(&halves->culprit);
    if (culprit < 0)
        return HF_OK;
    const struct half *half = &halves->half[culprit];
    work->target->fault = half->target->fault;
    if (err != NULL)
        *err = half->err;
    return half->status;
}

static hf_status list_partitions(hf__work *work, const char *table, hf__grid *grid, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_puts(&sql, "SELECT DISTINCT partition_id FROM system.parts WHERE active AND ");
    hf__put_table_condition(&sql, work->name.database, table);
    hf__buf_puts(&sql, " ORDER BY partition_id");
    const hf__statement list = {.what = "read system.parts"};
    return hf__target_ask(work->target, &list, &sql, grid, err);
}

static hf_status join(hf__work *work, const char *second, hf_error *err)
{
    hf__grid grid = {0};
    hf_status status = list_partitions(work, second, &grid, err);

    for (size_t i = 0; i < grid.rows && status == HF_OK; i++) {
        hf__buf sql = {0};
        hf__buf_puts(&sql, "ALTER TABLE ");
        hf__staging_quote(work, &sql);
        hf__buf_puts(&sql, " ATTACH PARTITION ID ");
        hf__quote_text(&sql, hf__grid_at(&grid, i, 0));
        hf__buf_puts(&sql, " FROM ");
        hf__quote_table(&sql, work->name.database, second);
        status = hf__work_do(work, "join the staging tables", &sql, err);
    }
    hf__grid_free(&grid);
    return status;
}

static hf_status create_second(hf__work *work, char second[128], hf_error *err)
{
    char first[128];

    memcpy(first, work->staging, sizeof first);
    hf_status status = hf__staging_create(work, err);
    memcpy(second, work->staging, sizeof first);
    memcpy(work->staging, first, sizeof first);
    return status;
}

static hf_status open_inputs(struct halves *halves, int64_t middle, hf_error *err)
{
    const hf__append_options *options = halves->half[0].work->options;
    const int64_t from[] = {0, middle}, to[] = {middle, -1};
    hf_status status = HF_OK;

    for (int i = 0; i < 2 && status == HF_OK; i++) {
        status =
            hf__rows_input_open(options->format, options->paths, 1, &halves->half[i].input, err);
        if (status == HF_OK)
            hf__rows_input_confine(halves->half[i].input, from[i], to[i], &halves->stop);
    }
    return status;
}

static hf_status feed_tables(hf__work *work, hf__target *twin, const char *second, int64_t middle,
                             hf_error *err)
{
    struct halves halves = {.half = {{.work = work, .target = work->target, .table = work->staging},
                                     {.work = work, .target = twin, .table = second}}};

    halves.half[0].both = halves.half[1].both = &halves;
    atomic_init(&halves.stop, false);
    atomic_init(&halves.culprit, -1);
    hf_status status = open_inputs(&halves, middle, err);
    if (status == HF_OK)
        status = hf__settings_read(work, err);
    for (int i = 0; i < 2 && status == HF_OK; i++)
        tell_quotes(work, halves.half[i].input);
    if (status == HF_OK)
        status = columns_add(work, halves.half[0].input, &halves.columns, err);
    if (status == HF_OK && halves.columns.broken)
        status = hf__no_memory(err);
    if (status == HF_OK)
        status = feed_both(&halves, err);
    hf__rows_input_close(halves.half[0].input);
    hf__rows_input_close(halves.half[1].input);
    hf__buf_free(&halves.columns);
    return status;
}

static hf_status feed_middle(hf__work *work, int64_t middle, hf_error *err)
{
    char second[128];
    hf__target *twin = NULL;
    hf_status status = work->target->ops->open_sibling(work->target, NULL, &twin, err);

    if (status == HF_OK)
        status = create_second(work, second, err);
    if (status == HF_OK) {
        status = feed_tables(work, twin, second, middle, err);
        status = blame_stop(work, status, err);
        if (status == HF_OK)
            status = join(work, second, err);
        hf__staging_discard(work, second);
    }
    hf__target_close(twin);
    return status;
}

/*
 * A row does not parse, or the cut was inside of one. A single stream can tell, and knows the line.
 */
static hf_status start_over(hf__work *work, hf_error *err)
{
    hf_status status = hf__staging_drop(work, work->staging, err);

    return status == HF_OK ? hf__staging_create(work, err) : status;
}

hf_status hf__feed_halves(hf__work *work, bool *done, hf_error *err)
{
    const hf__append_options *options = work->options;
    int64_t middle = 0;

    *done = false;
    if (work->target->ops->open_sibling == NULL || options->select != NULL ||
        options->concat_count > 0 || options->path_count != 1)
        return HF_OK;
    hf_status status = hf__rows_input_middle(options->format, options->paths[0], &middle, err);
    if (status != HF_OK || middle == 0)
        return status;
    status = feed_middle(work, middle, err);
    *done = status == HF_OK;
    return status == HF_BAD_DATA ? start_over(work, err) : status;
}
