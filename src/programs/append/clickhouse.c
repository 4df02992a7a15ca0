/* Looks at the server and the table before an append: who, what kind, which settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "programs/append/proof.h"

enum {
    LOOKS = 8, /* a load balancer that picks one of two at random is missed once in 128 times */
    UPTIME_SLACK_S = 5,
    MODERN = 21,   /* servers from this version on tell checksums of parts and uuids of tables */
    LISTINGS = 50, /* each meets another table that is dropped, where many append at once */
    AGAIN_MS = 50,
    AGAIN_FOR_MS = 60000,
};

/* ---- The server ------------------------------------------------------------------------------ */

hf_status hf__clickhouse_ask(hf__target *target, hf__grid *grid, hf_error *err)
{
    static const hf__statement who = {
        .sql = "SELECT hostName(), toInt64(toUnixTimestamp(now())) - toInt64(uptime()), "
               "splitByChar('.', version())[1], "
               "currentDatabase(), (SELECT any(data_path) FROM system.databases WHERE name = "
               "'system')",
        .what = "ask who it is",
        .gives_way = true,
    };
    hf_status status = hf__target_query(target, &who, grid, err);

    if (status != HF_OK || (grid->rows == 1 && grid->columns == 5))
        return status;
    status =
        hf__fail(err, HF_CONFIG, "%s is no ClickHouse: it answers a question with something else",
                 target->name);
    hf__hint(err, "give the address of ClickHouse's HTTP interface, usually port 8123");
    return status;
}

bool hf__clickhouse_is_same(const hf__grid *a, const hf__grid *b)
{
    return strcmp(hf__grid_at(a, 0, 0), hf__grid_at(b, 0, 0)) == 0 &&
           strcmp(hf__grid_at(a, 0, 4), hf__grid_at(b, 0, 4)) == 0 &&
           llabs(hf__grid_number(a, 0, 1) - hf__grid_number(b, 0, 1)) <= UPTIME_SLACK_S;
}

/* Staging tables, parts and orphans are on one server: behind a balancer we could not find them. */
static hf_status refuse_balancer(hf__work *work, const hf__grid *a, const hf__grid *b,
                                 hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "%s leads to several servers: %s with %s, and %s with %s",
                 work->target->name, hf__grid_at(a, 0, 0), hf__grid_at(a, 0, 4),
                 hf__grid_at(b, 0, 0), hf__grid_at(b, 0, 4));

    hf__hint(err, "give the address of one server, or --cluster NAME so that all replicas are "
                  "looked at");
    return status;
}

/* Connects again and again to see whether other servers answer. */
static hf_status look_again(hf__work *work, const hf__grid *first, bool *is_balanced, hf_error *err)
{
    hf_status status = HF_OK;

    for (int i = 1; i < LOOKS && status == HF_OK && !*is_balanced; i++) {
        hf__grid next = {0};
        work->target->ops->reconnect(work->target);
        status = hf__clickhouse_ask(work->target, &next, err);
        *is_balanced = status == HF_OK && !hf__clickhouse_is_same(first, &next);
        if (*is_balanced && work->name.cluster[0] == '\0')
            status = refuse_balancer(work, first, &next, err);
        hf__grid_free(&next);
    }
    return status;
}

hf_status hf__clickhouse_check(hf__work *work, hf_error *err)
{
    hf_table_name given = {.cluster = work->options->cluster};
    hf__grid first = {0};
    hf_status status = hf__clickhouse_ask(work->target, &first, err);

    given.database = hf__grid_at(&first, 0, 3);
    work->is_modern = hf__grid_number(&first, 0, 2) >= MODERN;
    if (work->target->is_embedded) /* a folder that only one process can open */
        (void)snprintf(work->server, sizeof work->server, "%s", work->target->name);
    else
        (void)snprintf(work->server, sizeof work->server, "%s:%s", hf__grid_at(&first, 0, 0),
                       hf__grid_at(&first, 0, 4));
    if (status == HF_OK)
        status = hf__table_name_parse(work->options->table, strlen(work->options->table), &given,
                                      &work->name, err);
    if (status == HF_OK && !work->target->is_embedded)
        status = look_again(work, &first, &work->is_balanced, err);
    hf__grid_free(&first);
    if (status == HF_OK && work->name.cluster[0] != '\0' && !work->target->is_embedded)
        status = hf__cluster_open(work, work->is_balanced, err);
    return status;
}

/* ---- The table ------------------------------------------------------------------------------- */

bool hf__engine_is_replicated(const char *engine)
{
    return strncmp(engine, "Replicated", strlen("Replicated")) == 0;
}

/* Old servers fail while they list a table that another client drops: not a fault of anybody's. */
static bool dropped_meanwhile(const hf__target *target)
{
    int code = target->fault.code;
    return code == HF__CODE_UNKNOWN_TABLE || code == HF__CODE_CANNOT_OPEN_FILE ||
           code == HF__CODE_NO_SUCH_FILE || code == HF__CODE_POCO;
}

/*
 * A question whose answer was lost, which libcurl has repeated, may still be running: the server
 * refuses a second one of its id until it has ended.
 */
static bool may_ask_again(const hf__work *work, int asked, int64_t deadline)
{
    if (dropped_meanwhile(work->target))
        return asked < LISTINGS;
    return work->target->fault.code == HF__CODE_ID_IN_USE && hf__left_ms(deadline) != 0 &&
           !hf__stop_pause(work->stop, AGAIN_MS);
}

hf_status hf__clickhouse_tables(hf__work *work, hf__buf *sql, hf__grid *grid, hf_error *err)
{
    const hf__statement look = {.what = "read system.tables", .gives_way = true};

    return hf__clickhouse_ask_tables(work, &look, sql, grid, err);
}

hf_status hf__clickhouse_ask_tables(hf__work *work, const hf__statement *statement, hf__buf *sql,
                                    hf__grid *grid, hf_error *err)
{
    hf__statement look = *statement;
    int64_t deadline = hf__deadline(AGAIN_FOR_MS);
    hf_status status = sql->broken ? hf__no_memory(err) : HF_OK;

    look.sql = sql->data;
    if (status == HF_OK)
        status = hf__target_query(work->target, &look, grid, err);
    for (int i = 1; status != HF_OK && may_ask_again(work, i, deadline); i++) {
        hf__grid_free(grid);
        status = hf__target_query(work->target, &look, grid, err);
    }
    hf__buf_free(sql);
    return status;
}

/* ---- Its columns ----------------------------------------------------------------------------- */

/*
 * Functions that tell the time, or count up with it: rows that are ordered by such a column are
 * those of one append after the other only if it is evaluated under the lock. Random numbers are
 * in no order to begin with.
 */
static const char of_the_moment[] =
    "'(?i)\\\\b(now\\\\w*|today|yesterday|curdate|current_\\\\w+|utc_?timestamp|"
    "generate(uuidv7|snowflake|ulid|serial)\\\\w*)\\\\s*\\\\('";

enum { COLUMN_NAME, COLUMN_KIND, COLUMN_TIMED };

hf_status hf__clickhouse_columns(hf__work *work, const char *database, const char *table,
                                 hf__grid *grid, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_printf(&sql,
                   "SELECT name, default_kind, match(default_expression, %s) FROM system.columns "
                   "WHERE ",
                   of_the_moment);
    hf__put_table_condition(&sql, database, table);
    return hf__clickhouse_tables(work, &sql, grid, err);
}

bool hf__column_is_selected(const hf__grid *columns, size_t row)
{
    const char *kind = hf__grid_at(columns, row, COLUMN_KIND);

    return kind[0] == '\0' || strcmp(kind, "DEFAULT") == 0;
}

bool hf__column_is_stored(const hf__grid *columns, size_t row)
{
    return hf__column_is_selected(columns, row) ||
           strcmp(hf__grid_at(columns, row, COLUMN_KIND), "MATERIALIZED") == 0;
}

bool hf__column_is_given(const hf__grid *columns, const char *name)
{
    for (size_t i = 0; i < columns->rows; i++)
        if (strcmp(hf__grid_at(columns, i, COLUMN_NAME), name) == 0)
            return hf__column_is_selected(columns, i) ||
                   strcmp(hf__grid_at(columns, i, COLUMN_KIND), "EPHEMERAL") == 0;
    return false;
}

/* A query gives all columns that can be given, so only those are left that cannot. */
static void find_timed(hf__work *work)
{
    hf__buf_clear(&work->timed);
    for (size_t i = 0; i < work->columns.rows; i++) {
        const char *kind = hf__grid_at(&work->columns, i, COLUMN_KIND);
        bool is_evaluated = strcmp(kind, "MATERIALIZED") == 0 ||
                            (strcmp(kind, "DEFAULT") == 0 && work->options->select == NULL);
        if (is_evaluated && hf__grid_number(&work->columns, i, COLUMN_TIMED) != 0)
            hf__buf_printf(&work->timed, "%s%s", work->timed.length > 0 ? ", " : "",
                           hf__grid_at(&work->columns, i, COLUMN_NAME));
    }
}

static hf_status look_up(hf__work *work, bool *found, hf_error *err)
{
    hf__buf sql = {0};
    hf__grid grid = {0};

    hf__buf_puts(&sql, "SELECT engine, engine_full, arrayStringConcat(dependencies_table, ', ') "
                       "FROM system.tables WHERE database = ");
    hf__quote_text(&sql, work->name.database);
    hf__buf_puts(&sql, " AND name = ");
    hf__quote_text(&sql, work->name.table);
    hf_status status = hf__clickhouse_tables(work, &sql, &grid, err);
    *found = status == HF_OK && grid.rows == 1;
    if (*found) {
        hf__grid_free(&work->columns);
        status = hf__clickhouse_columns(work, work->name.database, work->name.table, &work->columns,
                                        err);
        find_timed(work);
    }
    if (*found) {
        (void)snprintf(work->engine, sizeof work->engine, "%s", hf__grid_at(&grid, 0, 0));
        hf__buf_clear(&work->engine_full);
        hf__buf_puts(&work->engine_full, hf__grid_at(&grid, 0, 1));
        hf__buf_clear(&work->views);
        hf__buf_puts(&work->views, hf__grid_at(&grid, 0, 2));
    }
    hf__grid_free(&grid);
    return status;
}

/* Another client may create it at the same time. ON CLUSTER answers with one row for each host. */
static hf_status create(hf__work *work, hf_error *err)
{
    const hf__statement statement = {
        .sql = work->options->create, .what = "run --create", .is_once = true};
    hf__grid hosts = {0};
    hf_status status = hf__target_query(work->target, &statement, &hosts, err);

    hf__grid_free(&hosts);
    return work->target->fault.code == HF__CODE_TABLE_EXISTS ? HF_OK : status;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);

    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

hf_status hf__clickhouse_describe(hf__work *work, hf_error *err)
{
    bool found = false;
    hf_status status = look_up(work, &found, err);

    if (status == HF_OK && !found && work->options->create != NULL) {
        status = create(work, err);
        if (status == HF_OK)
            status = look_up(work, &found, err);
    }
    if (status != HF_OK)
        return status;
    if (!found) {
        status =
            hf__fail(err, HF_CONFIG, "%s has no table %s", work->target->name, work->name.text);
        hf__hint(err, work->options->create != NULL
                          ? "--create made another table than the one named"
                          : "create it, or give --create 'CREATE TABLE …'");
        return status;
    }
    if (work->is_balanced && !hf__engine_is_replicated(work->engine)) {
        status = hf__fail(err, HF_CONFIG, "%s leads to several servers, and %s is not replicated",
                          work->given->name, work->name.text);
        hf__hint(err, "give the address of the server whose table is meant");
        return status;
    }
    hf__quote_table(&work->dest, work->name.database, work->name.table);
    work->is_merge_tree = ends_with(work->engine, "MergeTree");
    work->collapses =
        strcmp(work->engine, "MergeTree") != 0 && strcmp(work->engine, "ReplicatedMergeTree") != 0;
    if (work->dest.broken || work->engine_full.broken || work->views.broken || work->timed.broken)
        return hf__no_memory(err);
    return hf__engine_is_replicated(work->engine) ? hf__replicated_find(work, err) : HF_OK;
}

hf_status hf__clickhouse_sync(hf__work *work, hf_error *err)
{
    hf__buf sql = {0};

    if (work->replica_count < 2 || !hf__engine_is_replicated(work->engine))
        return HF_OK;
    hf__buf_printf(&sql, "SYSTEM SYNC REPLICA %s", work->dest.data);
    return hf__work_do(work, "wait for the other replicas' parts", &sql, err);
}

/* ---- The server's settings ------------------------------------------------------------------- */

static const char question[] =
    "SELECT name, value, changed FROM system.settings WHERE name IN ("
    "'insert_deduplicate', 'insert_deduplication_token', 'format_csv_delimiter', "
    "'format_csv_allow_single_quotes', "
    "'async_insert', 'max_insert_block_size', 'min_insert_block_size_rows', 'log_queries', "
    "'min_insert_block_size_bytes', 'input_format_parallel_parsing') UNION ALL "
    "SELECT name, value, changed FROM system.merge_tree_settings WHERE name IN ("
    "'replicated_deduplication_window', 'non_replicated_deduplication_window')";

hf_status hf__settings_read(hf__work *work, hf_error *err)
{
    const hf__statement read = {.sql = question, .what = "read system.settings"};

    if (work->target->is_embedded || work->settings.rows > 0)
        return HF_OK;
    return hf__target_query(work->target, &read, &work->settings, err);
}

static bool find(const hf__grid *settings, const char *name, size_t *row)
{
    for (*row = 0; *row < settings->rows; ++*row)
        if (strcmp(hf__grid_at(settings, *row, 0), name) == 0)
            return true;
    return false;
}

const char *hf__settings_value(const hf__grid *settings, const char *name)
{
    size_t row = 0;

    return find(settings, name, &row) ? hf__grid_at(settings, row, 1) : NULL;
}

static bool is_default(const hf__grid *settings, const char *name)
{
    size_t row = 0;

    return find(settings, name, &row) && hf__grid_number(settings, row, 2) == 0;
}

/*
 * A server that parses a stream in one thread is a tenth faster when the rows it parses at a time
 * fit into its caches. The blocks that it writes stay as large, because it joins them up to a least
 * size. A setting that somebody has changed stays as it is.
 */
static bool wants_less_at_a_time(const hf__grid *settings)
{
    return hf__settings_value(settings, "input_format_parallel_parsing") == NULL &&
           is_default(settings, "max_insert_block_size") &&
           is_default(settings, "min_insert_block_size_rows") &&
           is_default(settings, "min_insert_block_size_bytes");
}

/* A Distributed table, which views may feed as well, writes rows down and sends them later. */
const char *hf__settings_for_arrival(const hf__work *work)
{
    bool passes_on = strcmp(work->engine, "Distributed") == 0 || work->views.length > 0;

    return passes_on ? "insert_distributed_sync=1" : "";
}

const char *hf__settings_for_rows(const hf__grid *settings)
{
    if (hf__settings_value(settings, "async_insert") != NULL)
        return "async_insert=0"; /* else the server writes the rows later, by itself */
    return wants_less_at_a_time(settings) ? "max_insert_block_size=65536" : "";
}

const char *hf__settings_for_log(const hf__grid *settings)
{
    const char *value = hf__settings_value(settings, "log_queries");

    return value != NULL && strcmp(value, "1") != 0 ? "log_queries=1" : "";
}
