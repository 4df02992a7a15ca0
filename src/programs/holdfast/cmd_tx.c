#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/spans.h"
#include "programs/holdfast/commands.h"
#include "programs/holdfast/label.h"
#include "programs/holdfast/print_rows.h"
#include "programs/holdfast/sql_lex.h"
#include "programs/holdfast/sql_script.h"

enum { ATTEMPTS_MOST = 1000000 };

struct tx_values {
    const char *derivation;
    bool unregistered;
    const char *isolation;
    bool read_only;
    struct number attempts;
    struct number deadline;
    bool retry_unique;
    struct texts variables;
    struct texts commands;
    struct texts files;
    const char *spans;
};

static const struct option tx_options[] = {
    {
        .letter = 'c',
        .name = "command",
        .value = "SQL",
        .help = "the statements, separated by semicolons",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct tx_values, commands),
    },
    {
        .letter = 'f',
        .name = "file",
        .value = "FILE",
        .help = "the file with the statements; - is standard input",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct tx_values, files),
    },
    {
        .letter = 'v',
        .name = "variable",
        .value = "NAME=VALUE",
        .help = "bind VALUE where the SQL says :NAME; may be repeated",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct tx_values, variables),
    },
    {
        .name = "as",
        .value = "DERIVATION",
        .help = "how the labels become keys (default: sha256)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct tx_values, derivation),
    },
    UNREGISTERED_OPTION(struct tx_values, unregistered),
    {
        .name = "isolation",
        .value = "LEVEL",
        .help = "serializable (default), repeatable-read or read-committed",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct tx_values, isolation),
    },
    {
        .name = "read-only",
        .help = "let nothing be written",
        .offset = offsetof(struct tx_values, read_only),
    },
    {
        .name = "attempts",
        .value = "N",
        .help = "try so often at most (default: 20)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct tx_values, attempts),
        .low = 1,
        .high = ATTEMPTS_MOST,
    },
    {
        .name = "deadline",
        .value = "TIME",
        .help = "for waiting and all attempts together (default: none)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct tx_values, deadline),
    },
    {
        .name = "spans",
        .value = "FILE",
        .help = "append the spans of the transaction to this file, for OpenTelemetry",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct tx_values, spans),
    },
    {
        .name = "retry-unique",
        .help = "try again after a unique violation too",
        .offset = offsetof(struct tx_values, retry_unique),
    },
    {0},
};

struct tx_run {
    struct tx_values values;
    struct span_file spans;
    struct invocation in;
    hf_tx_options options;
    hf_registry *registry; /* NULL: none */
    hf_target *labels;
    struct named_lock *names; /* one for each label */
    size_t name_count;
    hf__buf text;
    struct sql_variable *variables;
    struct sql_script script;
    hf_rows **results;                   /* of the last attempt, one for each statement */
    unsigned attempt;                    /* whose statements ran last */
    unsigned attempts;                   /* all of them, also those that found no connection */
    const struct sql_statement *reached; /* where that attempt stopped; NULL: it did all of them */
};

static hf_status out_of_memory(hf_error *err)
{
    return hf__no_memory(err);
}

/* ---- The command line ------------------------------------------------------------------------ */

static hf_status read_isolation(const char *name, hf_isolation *isolation, hf_error *err)
{
    static const char *const names[] = {
        [HF_SERIALIZABLE] = "serializable",
        [HF_REPEATABLE_READ] = "repeatable-read",
        [HF_READ_COMMITTED] = "read-committed",
    };
    char shown[SHOWN_MAX];
    hf_status status;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (name == NULL || strcmp(name, names[i]) == 0) {
            *isolation = (hf_isolation)i;
            return HF_OK;
        }
    }
    status = hf__fail(err, HF_INVALID, "unknown isolation level '%s'", show_argument(shown, name));
    hf__hint(err, "give serializable, repeatable-read or read-committed");
    return status;
}

static hf_status read_labels(struct tx_run *run, hf_error *err)
{
    size_t most = (size_t)run->in.count;
    int used = 0;
    hf_status status = open_registry(&run->in.common, &run->registry, err);

    run->labels = calloc(most, sizeof *run->labels);
    run->names = calloc(most, sizeof *run->names);
    if (run->labels == NULL || run->names == NULL)
        return out_of_memory(err);
    for (int at = 0; status == HF_OK && at < run->in.count; at += used) {
        struct named_lock *name = &run->names[run->name_count];
        status = read_lock_name(run->registry, run->in.operands + at, run->in.count - at,
                                run->values.derivation, name, &used, err);
        if (status == HF_OK && !run->values.unregistered)
            status = refuse_stranger(run->registry, name->entry, run->in.operands[at], NULL, err);
        run->labels[run->name_count++] = name->target;
    }
    run->options.labels = run->labels;
    run->options.label_count = run->name_count;
    return status;
}

static void note_attempts(const hf_tx_stats *stats, void *arg)
{
    struct tx_run *run = arg;

    run->attempts = stats->attempts;
}

static hf_status read_options(struct tx_run *run, hf_error *err)
{
    const struct tx_values *values = &run->values;
    hf_status status = read_isolation(values->isolation, &run->options.isolation, err);

    run->options.read_only = values->read_only;
    run->options.retry_unique = values->retry_unique;
    run->options.max_attempts = (unsigned)values->attempts.value;
    run->options.deadline_ms = values->deadline.value;
    run->options.traceparent = getenv("TRACEPARENT");
    run->options.on_stats = note_attempts;
    run->options.stats_arg = run;
    return status == HF_OK ? read_labels(run, err) : status;
}

static bool is_defined(const struct tx_run *run, size_t count, const struct sql_variable *variable)
{
    for (size_t i = 0; i < count; i++)
        if (run->variables[i].name_size == variable->name_size &&
            memcmp(run->variables[i].name, variable->name, variable->name_size) == 0)
            return true;
    return false;
}

static hf_status read_variables(struct tx_run *run, hf_error *err)
{
    const struct texts *texts = &run->values.variables;
    char shown[SHOWN_MAX];

    run->variables = calloc(texts->count + 1, sizeof *run->variables);
    if (run->variables == NULL)
        return out_of_memory(err);
    for (size_t i = 0; i < texts->count; i++) {
        struct sql_variable *variable = &run->variables[i];
        hf_status status = HF_OK;

        if (!sql_variable_read(texts->items[i], variable))
            status = hf__fail(err, HF_INVALID, "-v takes NAME=VALUE, not '%s'",
                              show_argument(shown, texts->items[i]));
        else if (is_defined(run, i, variable))
            status = hf__fail(err, HF_INVALID, "the variable :%.*s is given twice",
                              (int)variable->name_size, variable->name);
        if (status != HF_OK) {
            hf__hint(err, "names have letters, digits and underscores, and each is given once");
            return status;
        }
    }
    return HF_OK;
}

/* ---- The script ------------------------------------------------------------------------------ */

static hf_status read_stream(FILE *file, const char *name, hf__buf *text, hf_error *err)
{
    char block[8192];
    size_t size;

    errno = 0;
    while ((size = fread(block, 1, sizeof block, file)) > 0)
        hf__buf_add(text, block, size);
    if (ferror(file))
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", name);
    return HF_OK;
}

static hf_status read_file(const char *path, hf__buf *text, hf_error *err)
{
    char name[SHOWN_MAX];

    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "standard input", text, err);
    show_argument(name, path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot open %s", name);
    hf_status status = read_stream(file, name, text, err);
    fclose(file);
    return status;
}

/* Some editors put a byte order mark at the start, which is not SQL. */
static void drop_byte_order_mark(hf__buf *text)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t size = sizeof mark - 1;

    if (text->length >= size && memcmp(text->data, mark, size) == 0) {
        text->length -= size;
        memmove(text->data, text->data + size, text->length + 1);
    }
}

static hf_status read_text(struct tx_run *run, hf_error *err)
{
    hf__buf *text = &run->text;
    hf_status status = HF_OK;

    hf__buf_puts(text, "");
    if (run->values.commands.count > 0)
        hf__buf_puts(text, run->values.commands.items[0]);
    else
        status = read_file(run->values.files.items[0], text, err);
    if (status != HF_OK)
        return status;
    if (text->broken)
        return out_of_memory(err);
    if (memchr(text->data, '\0', text->length) != NULL)
        return hf__fail(err, HF_BAD_DATA, "the script has a NUL byte: it is no SQL");
    drop_byte_order_mark(text);
    return HF_OK;
}

static void show_place(const struct tx_run *run, size_t at, hf__buf *detail)
{
    struct sql_place place = sql_find_place(run->text.data, run->text.length, at);

    hf__buf_printf(detail, "line %zu, column %zu: %s", place.line, place.column, place.excerpt);
}

static int report_at(const struct tx_run *run, size_t at, const hf_error *err)
{
    hf__buf detail = {0};

    show_place(run, at, &detail);
    int code = report_detailed_error(&run->in.report, err, detail.data);
    hf__buf_free(&detail);
    return code;
}

static void warn_of_unused_variables(const struct tx_run *run)
{
    for (size_t i = 0; i < run->values.variables.count; i++)
        if (!run->variables[i].used)
            report_warning(&run->in.report, "the variable :%.*s is not used",
                           (int)run->variables[i].name_size, run->variables[i].name);
}

/* Where no store can be chosen, opening it will say why. */
static bool is_for_sqlite(const struct tx_run *run)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    struct store_choice choice = {0};
    hf_error ignored;

    bool local = prepare_store(&run->in, &options, &choice, &ignored) == HF_OK &&
                 options.url != NULL && strncmp(options.url, "local:", 6) == 0;
    store_choice_free(&choice);
    return local;
}

static int read_script(struct tx_run *run)
{
    const struct report *report = &run->in.report;
    hf_error err;

    if (read_variables(run, &err) != HF_OK || read_text(run, &err) != HF_OK)
        return report_error(report, &err);
    hf_status status =
        sql_script_read(run->text.data, run->text.length, is_for_sqlite(run), run->variables,
                        run->values.variables.count, &run->script, &err);
    if (status == HF_INVALID)
        return report_at(run, run->script.wrong_at, &err);
    if (status == HF_OK && run->script.count == 0)
        status = hf__fail(&err, HF_INVALID, "the script has no statement");
    if (status != HF_OK)
        return report_error(report, &err);
    warn_of_unused_variables(run);
    return EXIT_OK;
}

/* ---- The transaction ------------------------------------------------------------------------- */

static void drop_results(struct tx_run *run)
{
    for (size_t i = 0; run->results != NULL && i < run->script.count; i++) {
        hf_rows_free(run->results[i]);
        run->results[i] = NULL;
    }
}

static hf_status run_statements(hf_tx *tx, void *arg, hf_error *err)
{
    struct tx_run *run = arg;
    hf_status status = HF_OK;

    drop_results(run);
    run->attempt = hf_tx_attempt(tx);
    for (size_t i = 0; status == HF_OK && i < run->script.count; i++) {
        const struct sql_statement *statement = &run->script.statements[i];
        run->reached = statement;
        status = hf_tx_query(tx, statement->sql, statement->count, statement->values, false,
                             &run->results[i], err);
    }
    if (status == HF_OK)
        run->reached = NULL;
    return status;
}

/*
 * Is it the SQL, or the COMMIT, that the store refused? The server has reasons that would mean bad
 * configuration (no right to do this) or a full lock table if the statement were ours.
 */
static bool is_in_sql(const struct tx_run *run, const hf_error *err)
{
    bool by_server = err->sqlstate[0] != '\0' && run->attempt == run->attempts;

    return err->code == HF_DATABASE ||
           (by_server && (err->code == HF_CONFIG || err->code == HF_QUOTA));
}

static int report_failure(const struct tx_run *run, const hf_error *err)
{
    bool in_sql = is_in_sql(run, err);
    bool at_statement = run->attempt == run->attempts && (in_sql || err->code == HF_INVALID);
    const struct sql_statement *statement = at_statement ? run->reached : NULL;
    int code;

    if (statement == NULL)
        code = report_error(&run->in.report, err);
    else if (err->position > 0)
        code = report_at(run, sql_statement_offset(statement, err->position), err);
    else
        code = report_at(run, statement->first, err);
    return in_sql ? EXIT_SQL_ERROR : code;
}

static bool print_result(const struct tx_run *run, const hf_rows *rows, bool first)
{
    if (run->in.common.json)
        return print_rows_as_json(rows);
    if (!first)
        putchar('\n');
    return print_rows_as_table(rows);
}

static bool print_results(const struct tx_run *run)
{
    bool printed = true;
    bool first = true;

    for (size_t i = 0; printed && i < run->script.count; i++) {
        const hf_rows *rows = run->results[i];
        if (rows == NULL || hf_rows_columns(rows) == 0 ||
            (hf_rows_count(rows) == 0 && !run->in.common.json))
            continue;
        printed = print_result(run, rows, first);
        first = false;
    }
    return printed;
}

/* For people at a terminal; a script looks at the exit status. */
static void print_summary(const struct tx_run *run)
{
    size_t count = run->script.count;
    int64_t changed = 0;

    if (run->in.common.json || !isatty(STDERR_FILENO))
        return;
    for (size_t i = 0; i < count; i++)
        if (run->script.statements[i].writes)
            changed += hf_rows_affected(run->results[i]);
    report_note(&run->in.report,
                "committed: %zu statement%s, %" PRId64 " row%s changed, attempt %u", count,
                count == 1 ? "" : "s", changed, changed == 1 ? "" : "s", run->attempt);
}

static int report_committed(const struct tx_run *run)
{
    hf_error err = {.code = HF_SYSTEM,
                    .message = "the transaction is committed, but its rows cannot be written"};

    if (!run->in.common.json)
        prepare_for_tables();
    if (!print_results(run))
        return report_error(&run->in.report, &err);
    print_summary(run);
    return EXIT_OK;
}

static int transact(struct tx_run *run)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_store *store = NULL;
    hf_error err;
    int code;

    options.application = "holdfast tx";
    options.registry = run->registry;
    run->results = calloc(run->script.count, sizeof(hf_rows *));
    if (run->results == NULL) {
        (void)out_of_memory(&err);
        return report_error(&run->in.report, &err);
    }
    if (span_file_open(&run->spans, run->values.spans, &run->in.report, &options, &err) != HF_OK ||
        open_store(&run->in, &options, &store, &err) != HF_OK)
        return report_error(&run->in.report, &err);
    if (hf_transact(store, &run->options, run_statements, run, &err) == HF_OK)
        code = report_committed(run);
    else
        code = report_failure(run, &err);
    hf_store_close(store);
    span_file_close(&run->spans);
    return code;
}

static void free_run(struct tx_run *run)
{
    drop_results(run);
    free(run->results);
    sql_script_free(&run->script);
    hf__buf_free(&run->text);
    free(run->variables);
    for (size_t i = 0; i < run->name_count; i++)
        named_lock_free(&run->names[i]);
    free(run->names);
    free(run->labels);
    hf_registry_free(run->registry);
    free(run->values.variables.items);
    free(run->values.commands.items);
    free(run->values.files.items);
}

static int run_script(const struct command *self, struct tx_run *run)
{
    const struct report *report = &run->in.report;
    hf_error err;

    if (run->in.count == 0)
        return report_usage(report, self, "LABEL is missing");
    if (run->values.commands.count + run->values.files.count != 1)
        return report_usage(report, self, "give one -c SQL or one -f FILE");
    if (read_options(run, &err) != HF_OK)
        return report_error(report, &err);
    int code = read_script(run);
    return code == EXIT_OK ? transact(run) : code;
}

static int tx_main(const struct command *self, int argc, char **argv)
{
    struct tx_run run = {.options = HF_TX_OPTIONS_INIT};
    int code = EXIT_OK;

    if (parse_options(self, argc, argv, &run.values, &run.in, &code))
        code = run_script(self, &run);
    free_run(&run);
    return code;
}

const struct command cmd_tx = {
    .name = "tx",
    .summary = "Run SQL as one serialised transaction.",
    .usage = "[OPTION...] LABEL... -c SQL\n[OPTION...] LABEL... -f FILE\n"
             "[OPTION...] NAME [PLACEHOLDER=VALUE...]... -c SQL",
    .options = tx_options,
    .takes_operands = true,
    .main = tx_main,
};
