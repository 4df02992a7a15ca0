#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/print.h"
#include "cli/print_json.h"
#include "programs/holdfast/cmd_table.h"

enum { PROBLEM, TABLE, CONTEXT, ID };

static const struct column columns[] = {
    [PROBLEM] = {.title = "PROBLEM", .may_be_cut = true},
    [TABLE] = {.title = "TABLE_NAME"},
    [CONTEXT] = {.title = "CONTEXT_ID"},
    [ID] = {.title = "ADVISORY_ID", .to_the_right = true},
    {0},
};

struct faults {
    struct table *table; /* for people, or */
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

/* "app.refs" is a schema and a table on PostgreSQL; a SQLite file has only tables. */
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

static bool finish_json(struct faults *faults, const hf_table_adopted *adopted, bool dry_run)
{
    hf__json *json = &faults->json;

    hf__json_end_array(json);
    hf__json_put_integer(json, "rows", adopted->rows);
    hf__json_put_integer(json, "tables", adopted->tables);
    hf__json_put_integer(json, "minted", adopted->minted);
    hf__json_put_integer(json, "rows_given", adopted->rows_given);
    hf__json_put_integer(json, "references", adopted->references);
    hf__json_put_integer(json, "names_in_the_way", adopted->faults);
    hf__json_put_boolean(json, "not_null", adopted->not_null);
    hf__json_put_boolean(json, "foreign_key", adopted->foreign_key);
    hf__json_put_boolean(json, "dry_run", dry_run);
    hf__json_end_object(json);
    return print_document(json, stdout);
}

static void tell(const struct table_request *request, const hf_table_adopted *adopted)
{
    const struct report *report = &request->in->report;

    if (request->values->dry_run) {
        report_note(report,
                    "%" PRId64 " rows name %" PRId64 " tables, %" PRId64
                    " of which would get a new id; nothing was changed",
                    adopted->rows, adopted->tables, adopted->minted);
        return;
    }
    report_note(report,
                "%" PRId64 " rows name %" PRId64 " tables: %" PRId64 " got a new id, %" PRId64
                " rows were filled, %" PRId64 " references are new",
                adopted->rows, adopted->tables, adopted->minted, adopted->rows_given,
                adopted->references);
}

int table_adopt(const struct table_request *request)
{
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    hf_table_adopted adopted = {0};
    struct faults faults = {0};
    char *from = request->values->from != NULL ? strdup(request->values->from) : NULL;
    bool as_json = request->in->common.json, written = true;
    hf_error err;

    if (from != NULL)
        split_from(request, from, &adoption);
    adoption.file = request->values->file;
    adoption.cluster = request->values->cluster;
    adoption.database = request->values->database;
    adoption.dry_run = request->values->dry_run;
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
        written = finish_json(&faults, &adopted, adoption.dry_run);
    else if (!as_json)
        written = table_print(faults.table);
    hf__buf_free(&faults.json.text);
    table_free(faults.table);
    if (status != HF_OK)
        return report_error(&request->in->report, &err);
    if (!as_json)
        tell(request, &adopted);
    return written ? EXIT_OK : table_cannot_write(request);
}
