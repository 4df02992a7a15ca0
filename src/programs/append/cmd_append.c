#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stopping.h"
#include "programs/append/append.h"
#include "programs/append/open.h"

enum { DAY_MS = 24 * 3600 * 1000 };

struct append_values {
    const char *to;
    const char *password_file;
    const char *id;
    bool staged;
    bool direct;
    const char *format;
    const char *select;
    bool concat;
    const char *create;
    const char *orphans;
    const char *cluster;
    struct number wait;
    struct number keep;
};

static const struct option append_options[] = {
    {
        .name = "to",
        .value = "URL",
        .help = "clickhouse+http(s)://user@host:8123/database, or chdb:FOLDER",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct append_values, to),
    },
    {
        .name = "password-file",
        .value = "FILE",
        .help = "its first line is the password",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct append_values, password_file),
    },
    {
        .name = "id",
        .value = "ID",
        .help = "names the append: repeated under the same id it is done once",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct append_values, id),
    },
    {
        .name = "staged",
        .help = "by way of a staging table (default on MergeTree tables)",
        .offset = offsetof(struct append_values, staged),
    },
    {
        .name = "direct",
        .help = "by one INSERT under the table's lock",
        .offset = offsetof(struct append_values, direct),
    },
    {
        .name = "format",
        .value = "FORMAT",
        .help = "JSONEachRow (default), CSVWithNames, TSV or Native",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct append_values, format),
    },
    {
        .name = "select",
        .value = "SQL",
        .help = "append a query's result",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct append_values, select),
    },
    {
        .name = "concat",
        .help = "the operands that follow are tables, appended in this order",
        .offset = offsetof(struct append_values, concat),
    },
    {
        .name = "create",
        .value = "DDL",
        .help = "creates the table when it is absent",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct append_values, create),
    },
    {
        .name = "orphans",
        .value = "HOW",
        .help = "kill (default) or wait for a dead holder's INSERT",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct append_values, orphans),
    },
    {
        .name = "cluster",
        .value = "NAME",
        .help = "whose table it is; all of its replicas are looked at",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct append_values, cluster),
    },
    {
        .letter = 'w',
        .name = "wait",
        .value = "TIME",
        .help = "for the table, at most (default: for ever)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct append_values, wait),
    },
    {
        .name = "keep",
        .value = "TIME",
        .help = "complete staging tables of dead appends, for a repeat (default: 1d)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct append_values, keep),
    },
    {0},
};

struct append {
    struct append_values values;
    struct invocation in;
    hf__append_options options;
    hf_store *store;
    hf__target *target;
    struct stopping stopping;
    struct progress progress;
    int64_t began_ms;
};

/* ---- Notes and progress ---------------------------------------------------------------------- */

static void on_note(void *arg, const char *text)
{
    progress_note(&((struct append *)arg)->progress, text);
}

static void describe_amount(char *out, size_t size, const struct progress *progress,
                            const hf__append_progress *now)
{
    if (now->rows >= 0)
        snprintf(out, size, "%.1f MB, %" PRId64 " rows, %.1f MB/s", (double)now->bytes / 1e6,
                 now->rows, progress->rate / 1e6);
    else
        snprintf(out, size, "%.1f MB, %.1f MB/s", (double)now->bytes / 1e6, progress->rate / 1e6);
}

static void on_progress(void *arg, const hf__append_progress *now)
{
    struct progress *shown = &((struct append *)arg)->progress;
    char text[96];

    if (!progress_is_due(shown, now->bytes))
        return;
    describe_amount(text, sizeof text, shown, now);
    if (shown->bar)
        progress_draw(shown, now->bytes, now->size, text);
    else
        report_note(shown->report, "%s: %s", shown->name, text);
}

/* ---- The command line ------------------------------------------------------------------------ */

static const char *contradiction(const struct append_values *values, const struct invocation *in)
{
    if (in->count == 0)
        return "TABLE is missing";
    if (values->staged && values->direct)
        return "--staged and --direct exclude each other";
    if (values->id != NULL && values->direct)
        return "--id needs a staged append";
    if (values->select != NULL && values->concat)
        return "--select and --concat exclude each other";
    if (values->select != NULL && in->count > 1)
        return "--select takes no files";
    if (values->concat && in->count < 2)
        return "--concat needs the tables that are appended";
    if ((values->select != NULL || values->concat) && values->format != NULL)
        return "--format is for files";
    return NULL;
}

static hf_status read_orphans(const char *word, hf__orphans *orphans, hf_error *err)
{
    char shown[SHOWN_MAX];

    *orphans = word != NULL && strcmp(word, "wait") == 0 ? HF__AWAIT_ORPHANS : HF__KILL_ORPHANS;
    if (word == NULL || strcmp(word, "wait") == 0 || strcmp(word, "kill") == 0)
        return HF_OK;
    hf_status status =
        hf__fail(err, HF_INVALID, "--orphans cannot be '%s'", show_argument(shown, word));
    hf__hint(err, "give kill or wait");
    return status;
}

static hf_status check_table(const hf__append_options *options, hf_error *err)
{
    char shown[SHOWN_MAX];
    char *memory = NULL;
    hf_table_name name;
    hf_status status = hf_table_name_parse(options->table, &name, &memory, err);

    if (status == HF_OK && options->cluster != NULL && name.cluster[0] != '\0' &&
        strcmp(options->cluster, name.cluster) != 0) {
        status = hf__fail(err, HF_INVALID, "TABLE names the cluster '%s', and --cluster '%s'",
                          name.cluster, show_argument(shown, options->cluster));
        hf__hint(err, "one of them is enough");
    }
    free(memory);
    return status;
}

static hf_status read_values(struct append *append, hf_error *err)
{
    const struct append_values *values = &append->values;
    hf__append_options *options = &append->options;
    const char *const *rest = (const char *const *)append->in.operands + 1;
    size_t rest_count = (size_t)append->in.count - 1;

    options->table = append->in.operands[0];
    options->cluster = values->cluster;
    options->id = values->id;
    options->mode = values->staged ? HF__STAGED : values->direct ? HF__DIRECT : HF__AS_FITS;
    options->select = values->select;
    options->create = values->create;
    options->wait_ms = values->wait.given ? values->wait.value : -1;
    options->keep_ms = values->keep.given ? values->keep.value : DAY_MS;
    options->events = (hf__append_events){.note = on_note, .progress = on_progress, .arg = append};
    if (values->concat) {
        options->concat = rest;
        options->concat_count = rest_count;
    } else {
        options->paths = rest;
        options->path_count = rest_count;
    }
    hf_status status = hf__format_find(values->format, &options->format, err);
    if (status == HF_OK)
        status = read_orphans(values->orphans, &options->orphans, err);
    if (status == HF_OK && values->id != NULL)
        status = hf__append_check_id(values->id, err);
    if (status == HF_OK) /* now, before any server is contacted */
        status = check_table(options, err);
    return status;
}

/* ---- The store and the target ---------------------------------------------------------------- */

/* On a local store the default is a chdb folder beside the store's data. */
static hf_status default_target(const hf_store *store, hf__buf *url, hf_error *err)
{
    if (store != NULL && hf_store_is_local(store)) {
        hf__buf_printf(url, "chdb:%s/chdb", hf_store_name(store) + strlen("local:"));
        return url->broken ? hf__no_memory(err) : HF_OK;
    }
    hf_status status = hf__fail(err, HF_INVALID, "--to is missing");
    hf__hint(err,
             "say where the table is: clickhouse+http://user@host:8123/database, or chdb:FOLDER");
    return status;
}

hf_status open_append_target(const hf_store *store, const hf__target_options *options,
                             hf__target **target, hf_error *err)
{
    hf__buf url = {0};
    hf__target_options all = *options;
    const char *library = getenv("HOLDFAST_CHDB");
    hf_status status = HF_OK;

    if (options->url == NULL)
        status = default_target(store, &url, err);
    if (options->url == NULL)
        all.url = url.data;
    all.library = library != NULL && library[0] != '\0' ? library : NULL;
    if (status == HF_OK)
        status = hf__target_open(&all, target, err);
    hf__buf_free(&url);
    return status;
}

static hf_status open_target(struct append *append, hf_error *err)
{
    const hf__target_options options = {
        .url = append->values.to,
        .password_file = append->values.password_file,
        .stop = &append->stopping.stop,
        .wait_ms = append->options.wait_ms,
        .note = on_note,
        .arg = append,
    };

    return open_append_target(append->store, &options, &append->target, err);
}

static hf_status open_both(struct append *append, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_status status = HF_OK;

    options.application = "holdfast append";
    if (append->values.to == NULL || !hf__append_needs_no_lock(append->options.table))
        status = open_store(&append->in, &options, &append->store, err);
    return status == HF_OK ? open_target(append, err) : status;
}

/* ---- Running it ------------------------------------------------------------------------------ */

static int print_summary(const struct append *append, const hf__append_result *result)
{
    static const char *const outcomes[] = {"appended", "resumed", "finished", "nothing to do"};
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "table", result->table);
    hf__json_put_string(&json, "outcome", outcomes[result->outcome]);
    hf__json_put_string(&json, "mode", result->is_staged ? "staged" : "direct");
    hf__json_put_text(&json, "id", result->is_staged ? result->id : "");
    if (result->rows >= 0)
        hf__json_put_integer(&json, "rows", result->rows);
    else
        hf__json_put_null(&json, "rows");
    hf__json_put_integer(&json, "bytes", result->bytes);
    if (result->is_staged) {
        hf__json_put_integer(&json, "partitions", result->partitions);
        hf__json_put_integer(&json, "parts", result->parts);
    }
    hf__json_put_big(&json, "key", result->key);
    hf__json_put_real(&json, "lock_wait_ms", (double)result->lock_wait_us / 1000.0);
    hf__json_put_real(&json, "lock_held_ms", (double)result->lock_held_us / 1000.0);
    hf__json_put_text(&json, "orphan", result->orphan != NULL ? result->orphan : "");
    hf__json_put_real(&json, "seconds", (double)(hf__now_ms() - append->began_ms) / 1000.0);
    hf__json_end_object(&json);
    if (print_document(&json, stdout))
        return EXIT_OK;
    const hf_error err = {
        .code = HF_SYSTEM,
        .message =
            "the summary cannot be written to standard output; all of its rows are in the table"};
    return report_error(&append->in.report, &err);
}

static int run_append(struct append *append)
{
    const struct report *report = &append->in.report;
    hf__append_result result;
    hf_error err;

    append->began_ms = hf__now_ms();
    const struct stopping_options stopping = {.second_ends = true, .report = report};
    if (read_values(append, &err) != HF_OK ||
        stopping_init(&append->stopping, &stopping, &err) != HF_OK)
        return report_error(report, &err);
    progress_begin(&append->progress, report, append->options.table);
    if (stopping_start(&append->stopping, &err) != HF_OK)
        return report_error(report, &err);
    if (open_both(append, &err) != HF_OK) {
        stopping_end(&append->stopping);
        return report_error(report, &err);
    }
    stopping_work(&append->stopping, append->store);
    hf_status status = hf__append_run(append->store, append->target, &append->stopping.stop,
                                      &append->options, &result, &err);
    progress_clear(&append->progress);
    stopping_end(&append->stopping);
    if (status == HF_OK)
        return print_summary(append, &result);
    int code = report_error(report, &err);
    int number = atomic_load(&append->stopping.signal);
    return status == HF_INTERRUPTED && number != 0 ? EXIT_SIGNAL_BASE + number : code;
}

static int append_main(const struct command *self, int argc, char **argv)
{
    struct append append = {.stopping = {.stop = {.fd = -1}}};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &append.values, &append.in, &code))
        return code;
    const char *wrong = contradiction(&append.values, &append.in);
    if (wrong != NULL)
        return report_usage(&append.in.report, self, "%s", wrong);
    block_stop_signals();
    code = run_append(&append);
    hf__target_close(append.target);
    hf_store_close(append.store);
    stopping_destroy(&append.stopping);
    return code;
}

const struct command cmd_append = {
    .name = "append",
    .summary = "Append rows to a shared ClickHouse table: contiguous, all or none.",
    .usage = "[--to URL] [--id ID] [--staged | --direct] TABLE [--format FORMAT] [FILE... | -]\n"
             "[--to URL] [--id ID] TABLE --select SQL\n"
             "[--to URL] [--id ID] TABLE --concat TABLE...",
    .options = append_options,
    .takes_operands = true,
    .main = append_main,
};
