/* Lists of the tables that are registered, and of who refers to them. */
#include "lib/tables/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "lib/tables/sql.h"

struct hf_table_list {
    hf_rows *rows; /* the names in views point into them */
    hf_table_view *views;
    size_t count;
};

struct reading {
    hf_store *store;
    const hf__table_name *name; /* NULL: all */
    bool retired_too;
    hf_rows *rows;
};

static void add_piece(hf__buf *sql, const hf_tx *tx, const hf__sql *piece)
{
    hf__buf_puts(sql, " ");
    hf__buf_puts(sql, piece->text[hf__tx_dialect(tx)]);
}

static hf_status read_tables(hf_tx *tx, void *arg, hf_error *err)
{
    struct reading *reading = arg;
    const hf__table_name *name = reading->name;
    hf_value values[3] = {0};
    hf__buf sql = {0};
    hf__buf_puts(&sql, hf__sql_tables_list.text[hf__tx_dialect(tx)]);
    if (!reading->retired_too)
        add_piece(&sql, tx, &hf__sql_tables_list_live);
    if (name) {
        add_piece(&sql, tx, &hf__sql_tables_list_named);
        values[0] = HF_TEXT(name->cluster);
        values[1] = HF_TEXT(name->database);
        values[2] = HF_TEXT(name->table);
    }
    add_piece(&sql, tx, &hf__sql_tables_list_order);
    hf_rows_free(reading->rows); /* of an earlier attempt */
    reading->rows = NULL;
    hf_status status =
        sql.broken ? hf__no_memory(err)
                   : hf_tx_query(tx, sql.data, name ? 3 : 0, values, false, &reading->rows, err);
    hf__buf_free(&sql);
    return status;
}

static hf_status read_view(const hf_rows *rows, size_t row, hf_table_view *view, hf_error *err)
{
    view->name =
        (hf_table_name){hf_rows_value(rows, row, 0, NULL), hf_rows_value(rows, row, 1, NULL),
                        hf_rows_value(rows, row, 2, NULL)};
    hf_status status = hf__row_number(rows, row, 3, "advisory_id", &view->id, err);
    if (status == HF_OK)
        status = hf__row_number(rows, row, 4, "created_at", &view->created_ms, err);
    if (status == HF_OK && hf_rows_value(rows, row, 5, NULL))
        status = hf__row_number(rows, row, 5, "dropped_at", &view->dropped_ms, err);
    if (status == HF_OK)
        status = hf__row_number(rows, row, 6, "the number of references", &view->references, err);
    return status;
}

static hf_status make_list(hf_rows *rows, hf_table_list **out, hf_error *err)
{
    hf_status status = HF_OK;
    hf_table_list *list = calloc(1, sizeof *list);
    if (!list) {
        hf_rows_free(rows);
        return hf__no_memory(err);
    }
    list->rows = rows;
    list->count = hf_rows_count(rows);
    list->views = calloc(list->count + 1, sizeof *list->views);
    if (!list->views)
        status = hf__no_memory(err);
    for (size_t i = 0; status == HF_OK && i < list->count; i++)
        status = read_view(rows, i, &list->views[i], err);
    if (status == HF_OK)
        *out = list;
    else
        hf_table_list_free(list);
    return status;
}

hf_status hf_table_list_read(hf_store *store, const hf_table_name *given, bool retired_too,
                             hf_table_list **list, hf_error *err)
{
    hf__table_name name;
    struct reading reading = {.store = store, .retired_too = retired_too};
    hf_status status = HF_OK;
    if (!store || !list)
        return hf__fail(err, HF_INVALID,
                        "hf_table_list_read needs a store and a place for the list");
    *list = NULL;
    if (given) {
        status = hf__table_start(store, given, &name, err);
        reading.name = &name;
    }
    if (status == HF_OK)
        status = hf__table_transact(store, true, read_tables, &reading, err);
    if (status == HF_OK)
        return make_list(reading.rows, list, err);
    hf_rows_free(reading.rows);
    return status;
}

size_t hf_table_list_count(const hf_table_list *list)
{
    return list->count;
}

const hf_table_view *hf_table_list_at(const hf_table_list *list, size_t index)
{
    return index < list->count ? &list->views[index] : NULL;
}

void hf_table_list_free(hf_table_list *list)
{
    if (!list)
        return;
    hf_rows_free(list->rows);
    free(list->views);
    free(list);
}

static hf_status read_contexts(hf_tx *tx, void *arg, hf_error *err)
{
    struct reading *reading = arg;
    const hf_value values[] = {HF_TEXT(reading->name->cluster), HF_TEXT(reading->name->database),
                               HF_TEXT(reading->name->table)};
    hf_rows_free(reading->rows);
    return hf__tx_query_sql(tx, &hf__sql_tables_contexts, NULL, 3, values, &reading->rows, err);
}

hf_status hf_table_refs(hf_store *store, const hf_table_name *given, hf_table_context_fn *fn,
                        void *arg, hf_error *err)
{
    hf__table_name name;
    struct reading reading = {.store = store, .name = &name};
    hf_status status = hf__table_start(store, given, &name, err);
    if (status == HF_OK)
        status = hf__table_transact(store, true, read_contexts, &reading, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(reading.rows); i++)
        fn(arg, hf_rows_value(reading.rows, i, 0, NULL));
    hf_rows_free(reading.rows);
    return status;
}
