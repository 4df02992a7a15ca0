#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/print.h"
#include "programs/holdfast/cmd_table.h"

enum { TABLE, ID, REFERENCES, CREATED, RETIRED };

static const struct column columns[] = {
    [TABLE] = {.title = "TABLE"},
    [ID] = {.title = "ID", .to_the_right = true},
    [REFERENCES] = {.title = "REFS", .to_the_right = true, .rank = 2},
    [CREATED] = {.title = "CREATED", .rank = 3},
    [RETIRED] = {.title = "RETIRED", .rank = 1},
    {0},
};

/* "" for a moment that is not known. */
static const char *time_of(char out[HF__TIME_SIZE], int64_t unix_ms)
{
    return unix_ms != 0 ? hf__show_time(out, hf__us_from_ms(unix_ms), 0) : "";
}

static const char *text_of(char out[HF_TABLE_TEXT_MAX], const hf_table_name *name)
{
    if (hf_table_name_text(name, out, NULL) != HF_OK) /* Holdfast did not write this row */
        (void)snprintf(out, HF_TABLE_TEXT_MAX, "%s", name->table);
    return out;
}

static void add_view(hf__json *json, const hf_table_view *view)
{
    char text[HF_TABLE_TEXT_MAX], time[HF__TIME_SIZE];

    hf__json_put_string(json, "table", text_of(text, &view->name));
    hf__json_put_big(json, "id", view->id);
    hf__json_put_text(json, "cluster", view->name.cluster);
    hf__json_put_string(json, "database", view->name.database);
    hf__json_put_string(json, "name", view->name.table);
    hf__json_put_integer(json, "references", view->references);
    hf__json_put_text(json, "created", time_of(time, view->created_ms));
    hf__json_put_text(json, "retired", time_of(time, view->dropped_ms));
}

static void add_row(struct table *table, const hf_table_view *view)
{
    char text[HF_TABLE_TEXT_MAX], number[24], time[HF__TIME_SIZE];

    table_add_row(table);
    table_set(table, TABLE, text_of(text, &view->name));
    (void)snprintf(number, sizeof number, "%" PRId64, view->id);
    table_set(table, ID, number);
    (void)snprintf(number, sizeof number, "%" PRId64, view->references);
    table_set(table, REFERENCES, number);
    table_set(table, CREATED, time_of(time, view->created_ms));
    table_set(table, RETIRED, time_of(time, view->dropped_ms));
}

static bool print_json(const hf_table_list *list)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_begin_array(&json, "tables");
    for (size_t i = 0; i < hf_table_list_count(list); i++) {
        hf__json_begin_object(&json, NULL);
        add_view(&json, hf_table_list_at(list, i));
        hf__json_end_object(&json);
    }
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

static bool print_table(const hf_table_list *list)
{
    prepare_for_tables();
    struct table *table = table_new(columns);

    for (size_t i = 0; i < hf_table_list_count(list); i++)
        add_row(table, hf_table_list_at(list, i));
    bool printed = table_print(table);
    table_free(table);
    return printed;
}

int table_list(const struct table_request *request)
{
    hf_table_list *list = NULL;
    hf_error err;

    if (hf_table_list_read(request->store, NULL, request->values->all, &list, &err) != HF_OK)
        return report_error(&request->in->report, &err);
    bool printed = request->in->common.json ? print_json(list) : print_table(list);
    hf_table_list_free(list);
    return printed ? EXIT_OK : table_cannot_write(request);
}

/* ---- show: one table ------------------------------------------------------------------------- */

enum { CONTEXT_SHOWN_MAX = 4 * 1000 + 1 }; /* a thousand bytes, all of them escaped */

struct shown {
    const hf_table_view *view;
    const hf_lock_view *holder; /* NULL: nobody holds its lock */
    hf__json *references;       /* an array; NULL: without --json */
};

static void add_reference(void *arg, const char *context_id)
{
    const struct shown *shown = arg;

    char text[CONTEXT_SHOWN_MAX];

    if (shown->references != NULL)
        hf__json_put_string(shown->references, NULL, context_id);
    else
        printf("reference  %s\n", hf__show(text, sizeof text, context_id, strlen(context_id)));
}

static const hf_lock_view *find_holder(const hf_lock_list *locks, int64_t id)
{
    for (size_t i = 0; i < hf_lock_list_count(locks); i++) {
        const hf_lock_view *lock = hf_lock_list_at(locks, i);
        if (lock->key == id && lock->space == HF_BIGINT && !lock->waiting)
            return lock;
    }
    return NULL;
}

static hf_status show_for_people(const struct table_request *request, struct shown *shown,
                                 hf_error *err)
{
    char text[HF_TABLE_TEXT_MAX], time[HF__TIME_SIZE];

    printf("table      %s\n", text_of(text, &shown->view->name));
    printf("id         %" PRId64 "\n", shown->view->id);
    printf("created    %s\n", time_of(time, shown->view->created_ms));
    if (shown->holder != NULL)
        printf("held by    %s, pid %d on %s\n", shown->holder->application, shown->holder->pid,
               shown->holder->host);
    return hf_table_refs(request->store, &request->name, add_reference, shown, err);
}

static hf_status show_as_json(const struct table_request *request, const struct shown *shown,
                              hf_error *err)
{
    hf__json json = {0};
    struct shown listed = {.references = &json};

    hf__json_begin_object(&json, NULL);
    add_view(&json, shown->view);
    hf__json_begin_array(&json, "contexts");
    hf_status status = hf_table_refs(request->store, &request->name, add_reference, &listed, err);
    hf__json_end_array(&json);
    if (shown->holder == NULL) {
        hf__json_put_null(&json, "holder");
    } else {
        hf__json_begin_object(&json, "holder");
        hf__json_put_text(&json, "application", shown->holder->application);
        hf__json_put_text(&json, "host", shown->holder->host);
        hf__json_put_integer(&json, "pid", shown->holder->pid);
        hf__json_end_object(&json);
    }
    hf__json_end_object(&json);
    if (status != HF_OK) {
        hf__buf_free(&json.text);
        return status;
    }
    return print_document(&json, stdout)
               ? HF_OK
               : hf__fail(err, HF_SYSTEM, "cannot write to standard output");
}

static hf_status not_registered(const struct table_request *request, hf_error *err)
{
    char text[HF_TABLE_TEXT_MAX];
    hf_status status = hf__fail(err, HF_INVALID, "no shared table '%s' is registered on %s",
                                text_of(text, &request->name), hf_store_name(request->store));

    hf__hint(err, "'holdfast table list' shows those that are");
    return status;
}

int table_show(const struct table_request *request)
{
    hf_table_list *list = NULL;
    hf_lock_list *locks = NULL;
    hf_error err;
    hf_status status = hf_table_list_read(request->store, &request->name, false, &list, &err);

    if (status == HF_OK && hf_table_list_count(list) == 0)
        status = not_registered(request, &err);
    if (status == HF_OK)
        status = hf_lock_list_read(request->store, &locks, &err);
    if (status == HF_OK) {
        struct shown shown = {.view = hf_table_list_at(list, 0)};
        shown.holder = find_holder(locks, shown.view->id);
        status = request->in->common.json ? show_as_json(request, &shown, &err)
                                          : show_for_people(request, &shown, &err);
    }
    hf_lock_list_free(locks);
    hf_table_list_free(list);
    return status == HF_OK ? EXIT_OK : report_error(&request->in->report, &err);
}
