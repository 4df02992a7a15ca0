/* Operations: shared tables. The first text is the name, as "cluster/database.table". */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

static hf_status read_name(struct hfn_call *call, hf_table_name *name, char **memory)
{
    *memory = NULL;
    return hf.table_name_parse(hfn_text(call, 0), name, memory, &call->err);
}

static hf_status table_register(struct hfn_call *call)
{
    hf_table_name name = {0};
    char *memory;
    int64_t id = 0;
    bool is_new = false;
    hf_status status = read_name(call, &name, &memory);
    if (status == HF_OK)
        status = hf.table_register(HFN_CONTENT(call, 0), &name, &id, &is_new, &call->err);
    free(memory);
    hfn_put_bigint(&call->message.cells, id);
    hfn_put_boolean(&call->message.cells, is_new);
    return status;
}

static hf_status table_find(struct hfn_call *call)
{
    hf_table_name name = {0};
    char *memory;
    int64_t id = 0;
    hf_status status = read_name(call, &name, &memory);
    if (status == HF_OK)
        status = hf.table_find(HFN_CONTENT(call, 0), &name, &id, &call->err);
    free(memory);
    hfn_put_bigint(&call->message.cells, id);
    return status;
}

/* texts: name, traceparent */
static hf_status table_lock(struct hfn_call *call)
{
    hf_table_name name = {0};
    char *memory;
    hf_lock_spec spec;
    hfn_read_spec(call, 1, &spec);
    hf_status status = read_name(call, &name, &memory);
    if (status == HF_OK)
        status =
            hf.table_lock_start(HFN_CONTENT(call, 0), &name, &spec, hfn_lock_ended, &call->err);
    free(memory);
    return status;
}

/* texts: name, context */
static hf_status table_ref(struct hfn_call *call)
{
    hf_table_name name = {0};
    char *memory;
    int64_t id = 0;
    hf_status status = read_name(call, &name, &memory);
    if (status == HF_OK)
        status = hf.table_ref(HFN_CONTENT(call, 0), &name, hfn_text(call, 1), &id, &call->err);
    free(memory);
    hfn_put_bigint(&call->message.cells, id);
    return status;
}

/* numbers: wait_ms; texts: name, context */
static hf_status table_unref(struct hfn_call *call)
{
    hf_table_name name = {0};
    char *memory;
    bool is_retired = false;
    hf_status status = read_name(call, &name, &memory);
    if (status == HF_OK)
        status = hf.table_unref(HFN_CONTENT(call, 0), &name, hfn_text(call, 1), call->numbers[0],
                                &is_retired, &call->err);
    free(memory);
    hfn_put_boolean(&call->message.cells, is_retired);
    return status;
}

/* numbers: wait_ms, their_refs_too */
static hf_status table_drop(struct hfn_call *call)
{
    hf_table_name name = {0};
    char *memory;
    hf_status status = read_name(call, &name, &memory);
    if (status == HF_OK)
        status = hf.table_drop(HFN_CONTENT(call, 0), &name, call->numbers[1] != 0, call->numbers[0],
                               &call->err);
    free(memory);
    return status;
}

static void put_table(struct hfn_cells *cells, const hf_table_view *view)
{
    hfn_put_text(cells, view->name.cluster);
    hfn_put_text(cells, view->name.database);
    hfn_put_text(cells, view->name.table);
    hfn_put_bigint(cells, view->id);
    hfn_put_number(cells, view->created_ms);
    hfn_put_number(cells, view->dropped_ms);
    hfn_put_number(cells, view->references);
}

static void free_tables(void *list)
{
    hf.table_list_free(list);
}

/* numbers: retired_too; texts: name, or null for all */
static hf_status table_list(struct hfn_call *call)
{
    hf_table_name name = {0};
    char *memory = NULL;
    hf_table_list *list = NULL;
    bool is_one = hfn_text(call, 0) != NULL;
    hf_status status = is_one ? read_name(call, &name, &memory) : HF_OK;
    if (status == HF_OK)
        status = hf.table_list_read(HFN_CONTENT(call, 0), is_one ? &name : NULL,
                                    call->numbers[0] != 0, &list, &call->err);
    free(memory);
    if (status != HF_OK)
        return status;
    call->kept = list;
    call->free_kept = free_tables;
    for (size_t i = 0; i < hf.table_list_count(list); i++)
        put_table(&call->message.cells, hf.table_list_at(list, i));
    return HF_OK;
}

static void add_context(void *arg, const char *context)
{
    hfn_put_copy(arg, context, strlen(context));
}

static hf_status table_refs(struct hfn_call *call)
{
    hf_table_name name = {0};
    char *memory;
    hf_status status = read_name(call, &name, &memory);
    if (status == HF_OK)
        status = hf.table_refs(HFN_CONTENT(call, 0), &name, add_context, &call->message.cells,
                               &call->err);
    free(memory);
    return status;
}

static void put_or_null(struct hfn_cells *cells, const char *text)
{
    hfn_put_copy(cells, text, text ? strlen(text) : 0);
}

static void tell_fault(void *arg, const hf_table_fault *fault)
{
    const struct hfn_call *call = arg;
    struct hfn_cells cells = {0};
    hfn_put_text(&cells, "fault");
    hfn_put_number(&cells, call->numbers[0]);
    put_or_null(&cells, fault->problem);
    put_or_null(&cells, fault->table_name);
    put_or_null(&cells, fault->context_id);
    put_or_null(&cells, fault->advisory_id);
    hfn_emit(call->message.binding, &cells);
}

static hf_table_adoption read_adoption(const struct hfn_call *call)
{
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    adoption.schema = hfn_text(call, 0);
    adoption.relation = hfn_text(call, 1);
    adoption.file = hfn_text(call, 2);
    adoption.cluster = hfn_text(call, 3);
    adoption.database = hfn_text(call, 4);
    return adoption;
}

/* numbers: event, dry_run, constrain, wait_ms; texts: schema, relation, file, cluster, database */
static hf_status table_adopt(struct hfn_call *call)
{
    struct hfn_cells *cells = &call->message.cells;
    hf_table_adoption adoption = read_adoption(call);
    hf_table_adopted adopted = {0};
    int64_t moved = 0;
    adoption.dry_run = call->numbers[1] != 0;
    adoption.constrain = call->numbers[2] != 0;
    adoption.wait_ms = call->numbers[3];
    adoption.moved = &moved;
    hf_status status =
        hf.table_adopt(HFN_CONTENT(call, 0), &adoption, tell_fault, call, &adopted, &call->err);
    hfn_put_number(cells, adopted.rows);
    hfn_put_number(cells, adopted.tables);
    hfn_put_number(cells, adopted.minted);
    hfn_put_number(cells, adopted.rows_given);
    hfn_put_number(cells, adopted.references);
    hfn_put_number(cells, moved);
    hfn_put_boolean(cells, adopted.not_null);
    hfn_put_boolean(cells, adopted.foreign_key);
    return status;
}

static hf_status table_leave(struct hfn_call *call)
{
    hf_table_adoption adoption = read_adoption(call);
    return hf.table_leave(HFN_CONTENT(call, 0), &adoption, &call->err);
}

const struct hfn_operation hfn_table_operations[] = {
    {.name = "tableRegister", .run = table_register, .kinds = {HFN_STORE}, .texts = 1},
    {.name = "tableFind", .run = table_find, .kinds = {HFN_STORE}, .texts = 1},
    {.name = "tableLock",
     .run = table_lock,
     .starts = true,
     .kinds = {HFN_STORE, HFN_CANCEL},
     .makes = HFN_LOCK,
     .numbers = HFN_SPEC_NUMBERS,
     .texts = 2},
    {.name = "tableRef", .run = table_ref, .kinds = {HFN_STORE}, .texts = 2},
    {.name = "tableUnref", .run = table_unref, .kinds = {HFN_STORE}, .numbers = 1, .texts = 2},
    {.name = "tableDrop", .run = table_drop, .kinds = {HFN_STORE}, .numbers = 2, .texts = 1},
    {.name = "tableList", .run = table_list, .kinds = {HFN_STORE}, .numbers = 1, .texts = 1},
    {.name = "tableRefs", .run = table_refs, .kinds = {HFN_STORE}, .texts = 1},
    {.name = "tableAdopt", .run = table_adopt, .kinds = {HFN_STORE}, .numbers = 4, .texts = 5},
    {.name = "tableLeave", .run = table_leave, .kinds = {HFN_STORE}, .texts = 5},
    {.name = NULL},
};
