#include "programs/holdfast/cmd_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/choice.h"
#include "cli/print.h"
#include "programs/holdfast/commands.h"

static const struct option table_options[] = {
    {
        .letter = 'a',
        .name = "all",
        .help = "list: retired ids too",
        .kind = OPTION_FLAG,
        .offset = offsetof(struct table_values, all),
    },
    {
        .letter = 'n',
        .name = "no-wait",
        .help = "unref, drop, adopt: do not wait for a table's lock",
        .kind = OPTION_FLAG,
        .offset = offsetof(struct table_values, no_wait),
    },
    {
        .letter = 'w',
        .name = "wait",
        .value = "TIME",
        .help = "unref, drop, adopt: wait at most so long for it",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct table_values, wait),
    },
    {
        .name = "force",
        .help = "drop: its references too",
        .kind = OPTION_FLAG,
        .offset = offsetof(struct table_values, force),
    },
    {
        .name = "from",
        .value = "NAME",
        .help = "adopt, leave: the table, or SCHEMA.TABLE (default: table_context_refs)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct table_values, from),
    },
    {
        .name = "file",
        .value = "FILE",
        .help = "adopt: the SQLite file that has it, on the local store",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct table_values, file),
    },
    {
        .name = "cluster",
        .value = "NAME",
        .help = "adopt: of the names that state none",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct table_values, cluster),
    },
    {
        .name = "database",
        .value = "NAME",
        .help = "adopt: of the names that state none (default: default)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct table_values, database),
    },
    {
        .name = "dry-run",
        .help = "adopt: look, and change nothing",
        .kind = OPTION_FLAG,
        .offset = offsetof(struct table_values, dry_run),
    },
    {
        .name = "constrain",
        .help = "adopt: forbid NULL, and on PostgreSQL ids that are not registered",
        .kind = OPTION_FLAG,
        .offset = offsetof(struct table_values, constrain),
    },
    {0},
};

int table_cannot_write(const struct table_request *request)
{
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write to standard output"};

    return report_error(&request->in->report, &err);
}

static int64_t wait_of(const struct table_request *request)
{
    if (request->values->no_wait)
        return 0;
    return request->values->wait.given ? request->values->wait.value : -1;
}

/* ---- register and ref, which print an id ----------------------------------------------------- */

static int print_id(const struct table_request *request, int64_t id, const char *flag, bool is)
{
    hf__json json = {0};
    char text[HF_TABLE_TEXT_MAX];
    hf_error err;

    if (!request->in->common.json)
        return printf("%" PRId64 "\n", id) < 0 || fflush(stdout) != 0 ? table_cannot_write(request)
                                                                      : EXIT_OK;
    if (hf_table_name_text(&request->name, text, &err) != HF_OK)
        return report_error(&request->in->report, &err);
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "table", text);
    hf__json_put_big(&json, "id", id);
    if (flag != NULL)
        hf__json_put_boolean(&json, flag, is);
    if (request->context != NULL)
        hf__json_put_string(&json, "context", request->context);
    hf__json_end_object(&json);
    return print_document(&json, stdout) ? EXIT_OK : table_cannot_write(request);
}

static int register_one(const struct table_request *request)
{
    int64_t id = 0;
    bool created = false;
    hf_error err;

    if (hf_table_register(request->store, &request->name, &id, &created, &err) != HF_OK)
        return report_error(&request->in->report, &err);
    return print_id(request, id, "created", created);
}

static int ref(const struct table_request *request)
{
    int64_t id = 0;
    hf_error err;

    if (hf_table_ref(request->store, &request->name, request->context, &id, &err) != HF_OK)
        return report_error(&request->in->report, &err);
    return print_id(request, id, NULL, false);
}

/* ---- unref and drop -------------------------------------------------------------------------- */

static int tell_retired(const struct table_request *request, bool retired)
{
    hf__json json = {0};
    char text[HF_TABLE_TEXT_MAX];
    hf_error err;

    if (hf_table_name_text(&request->name, text, &err) != HF_OK)
        return report_error(&request->in->report, &err);
    if (!request->in->common.json) {
        if (retired)
            report_note(&request->in->report, "%s is retired: registered again, it gets a new id",
                        text);
        return EXIT_OK;
    }
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "table", text);
    hf__json_put_boolean(&json, "retired", retired);
    hf__json_end_object(&json);
    return print_document(&json, stdout) ? EXIT_OK : table_cannot_write(request);
}

static int unref(const struct table_request *request)
{
    bool retired = false;
    hf_error err;

    if (hf_table_unref(request->store, &request->name, request->context, wait_of(request), &retired,
                       &err) != HF_OK)
        return report_error(&request->in->report, &err);
    return tell_retired(request, retired);
}

static int drop(const struct table_request *request)
{
    hf_error err;

    if (hf_table_drop(request->store, &request->name, request->values->force, wait_of(request),
                      &err) != HF_OK)
        return report_error(&request->in->report, &err);
    return tell_retired(request, true);
}

/* ---- adopt ----------------------------------------------------------------------------------- */

enum { PROBLEM, TABLE, CONTEXT, ID };

static const struct column columns[] = {
    [PROBLEM] = {.title = "PROBLEM", .may_be_cut = true},
    [TABLE] = {.title = "TABLE_NAME"},
    [CONTEXT] = {.title = "CONTEXT_ID"},
    [ID] = {.title = "ADVISORY_ID", .to_the_right = true},
    {0},
};

struct faults {
    struct table *table; /* without --json; else NULL */
    hf__json json;
};

static void add_nullable(hf__json *json, const char *key, const char *value)
{
    if (value != NULL)
        hf__json_put_string(json, key, value);
    else
        hf__json_put_null(json, key);
}

static void add_fault(void *arg, const hf_table_fault *fault)
{
    struct faults *faults = arg;

    if (faults->table == NULL) {
        hf__json_begin_object(&faults->json, NULL);
        hf__json_put_string(&faults->json, "problem", fault->problem);
        add_nullable(&faults->json, "table_name", fault->table_name);
        add_nullable(&faults->json, "context_id", fault->context_id);
        add_nullable(&faults->json, "advisory_id", fault->advisory_id);
        hf__json_end_object(&faults->json);
        return;
    }
    table_add_row(faults->table);
    table_set(faults->table, PROBLEM, fault->problem);
    table_set(faults->table, TABLE, fault->table_name != NULL ? fault->table_name : "NULL");
    table_set(faults->table, CONTEXT, fault->context_id != NULL ? fault->context_id : "NULL");
    table_set(faults->table, ID, fault->advisory_id != NULL ? fault->advisory_id : "NULL");
}

/* On PostgreSQL "app.refs" is a schema and a table; SQLite has only tables. */
static void split_from(const struct table_request *request, char *from, hf_table_adoption *adoption)
{
    char *dot = hf_store_is_local(request->store) ? NULL : strchr(from, '.');

    adoption->relation = from;
    if (dot == NULL)
        return;
    *dot = '\0';
    adoption->schema = from;
    adoption->relation = dot + 1;
}

static bool finish_json(struct faults *faults, const hf_table_adopted *adopted, int64_t moved,
                        bool dry_run)
{
    hf__json *json = &faults->json;

    hf__json_end_array(json);
    hf__json_put_integer(json, "rows", adopted->rows);
    hf__json_put_integer(json, "tables", adopted->tables);
    hf__json_put_integer(json, "minted", adopted->minted);
    hf__json_put_integer(json, "moved", moved);
    hf__json_put_integer(json, "rows_given", adopted->rows_given);
    hf__json_put_integer(json, "references", adopted->references);
    hf__json_put_integer(json, "names_in_the_way", adopted->faults);
    hf__json_put_boolean(json, "not_null", adopted->not_null);
    hf__json_put_boolean(json, "foreign_key", adopted->foreign_key);
    hf__json_put_boolean(json, "dry_run", dry_run);
    hf__json_end_object(json);
    return print_document(json, stdout);
}

static void tell(const struct table_request *request, const hf_table_adopted *adopted,
                 int64_t moved)
{
    const struct report *report = &request->in->report;

    if (request->values->dry_run) {
        report_note(report,
                    "%" PRId64 " rows name %" PRId64 " tables, %" PRId64
                    " of which would get a new id, and %" PRId64
                    " the id of their rows instead of the one that is registered; nothing was "
                    "changed",
                    adopted->rows, adopted->tables, adopted->minted, moved);
        return;
    }
    report_note(report,
                "%" PRId64 " rows name %" PRId64 " tables: %" PRId64 " got a new id, %" PRId64
                " the id of their rows, %" PRId64 " rows were filled, %" PRId64
                " references are new",
                adopted->rows, adopted->tables, adopted->minted, moved, adopted->rows_given,
                adopted->references);
}

static int table_adopt(const struct table_request *request)
{
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    hf_table_adopted adopted = {0};
    struct faults faults = {0};
    char *from = request->values->from != NULL ? strdup(request->values->from) : NULL;
    bool as_json = request->in->common.json, written = true;
    int64_t moved = 0;
    hf_error err;

    if (from != NULL)
        split_from(request, from, &adoption);
    adoption.file = request->values->file;
    adoption.cluster = request->values->cluster;
    adoption.database = request->values->database;
    adoption.dry_run = request->values->dry_run;
    adoption.constrain = request->values->constrain;
    adoption.wait_ms = wait_of(request);
    adoption.moved = &moved;
    if (as_json) {
        hf__json_begin_object(&faults.json, NULL);
        hf__json_begin_array(&faults.json, "faults");
    } else {
        prepare_for_tables();
        faults.table = table_new(columns);
    }
    hf_status status =
        hf_table_adopt(request->store, &adoption, add_fault, &faults, &adopted, &err);
    free(from);
    if (as_json && (status == HF_OK || status == HF_BAD_DATA))
        written = finish_json(&faults, &adopted, moved, adoption.dry_run);
    else if (!as_json)
        written = table_print(faults.table);
    hf__buf_free(&faults.json.text);
    table_free(faults.table);
    if (status != HF_OK)
        return report_error(&request->in->report, &err);
    if (!as_json)
        tell(request, &adopted, moved);
    return written ? EXIT_OK : table_cannot_write(request);
}

static int table_leave(const struct table_request *request)
{
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    char *from = request->values->from != NULL ? strdup(request->values->from) : NULL;
    hf_error err;

    if (from != NULL)
        split_from(request, from, &adoption);
    hf_status status = hf_table_leave(request->store, &adoption, &err);
    free(from);
    if (status != HF_OK)
        return report_error(&request->in->report, &err);
    report_note(&request->in->report,
                "it is as it was; from now on nothing keeps its ids and the registry together");
    return EXIT_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct table_action {
    struct action action;
    int (*run)(const struct table_request *request);
} actions[] = {
    {{"register", 1, "register TABLE"}, register_one},
    {{"list", 0, "list"}, table_list},
    {{"show", 1, "show TABLE"}, table_show},
    {{"ref", 2, "ref TABLE CONTEXT"}, ref},
    {{"unref", 2, "unref TABLE CONTEXT"}, unref},
    {{"drop", 1, "drop TABLE"}, drop},
    {{"adopt", 0, "adopt"}, table_adopt},
    {{"leave", 0, "leave"}, table_leave},
};

/* TABLE, whose parts are then in *memory, and CONTEXT. False: *code says how it ends. */
static bool read_operands(const struct invocation *in, struct table_request *request, char **memory,
                          int *code)
{
    hf_error err;

    request->context = in->count > 2 ? in->operands[2] : NULL;
    if (in->count > 1 &&
        hf_table_name_parse(in->operands[1], &request->name, memory, &err) != HF_OK) {
        *code = report_error(&in->report, &err);
        return false;
    }
    return true;
}

static int table_main(const struct command *self, int argc, char **argv)
{
    struct table_values values = {0};
    struct invocation in = {0};
    struct table_request request = {.in = &in, .values = &values};
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    const struct table_action *action;
    char *memory = NULL;
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    action = choose_action(self, &in, "what to do is missing", actions,
                           sizeof actions / sizeof *actions, sizeof *actions, &code);
    if (action == NULL || !read_operands(&in, &request, &memory, &code))
        return code;
    options.application = "holdfast table";
    if (open_store(&in, &options, &request.store, &err) == HF_OK)
        code = action->run(&request);
    else
        code = report_error(&in.report, &err);
    hf_store_close(request.store);
    free(memory);
    return code;
}

const struct command cmd_table = {
    .name = "table",
    .summary = "Register shared tables, each with an id of its own.",
    .usage = "register|show TABLE\n"
             "list [--all]\n"
             "ref TABLE CONTEXT\n"
             "unref [-n | -w TIME] TABLE CONTEXT\n"
             "drop [--force] [-n | -w TIME] TABLE\n"
             "adopt [--from NAME] [--file FILE] [--cluster NAME] [--database NAME] [--dry-run] "
             "[--constrain] [-n | -w TIME]\n"
             "leave [--from NAME]",
    .options = table_options,
    .takes_operands = true,
    .main = table_main,
};
