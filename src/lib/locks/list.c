/* A snapshot of every lock, owned by the caller. */
#include "lib/locks/list.h"

#include <stdlib.h>
#include <string.h>

#include "lib/locks/engine.h"

struct collector {
    hf__view_sink sink;
    hf_lock_list *list;
};

enum { STRINGS = 6 };

static void view_strings(hf_lock_view *view, const char **strings[STRINGS])
{
    strings[0] = &view->label;
    strings[1] = &view->application;
    strings[2] = &view->host;
    strings[3] = &view->blocked_by;
    strings[4] = &view->name;
    strings[5] = &view->pattern;
}

static void free_view(hf_lock_view *view)
{
    const char **strings[STRINGS];
    view_strings(view, strings);
    for (size_t i = 0; i < STRINGS; i++)
        free((void *)(uintptr_t)*strings[i]);
}

static bool own_strings(hf_lock_view *view)
{
    const char **strings[STRINGS];
    bool ok = true;
    view_strings(view, strings);
    for (size_t i = 0; i < STRINGS; i++) {
        *strings[i] = strdup(*strings[i] ? *strings[i] : "");
        ok = ok && *strings[i];
    }
    return ok;
}

static bool make_room(hf_lock_list *list)
{
    if (list->count < list->room)
        return true;
    size_t room = list->room ? list->room * 2 : 64;
    hf_lock_view *views = realloc(list->views, room * sizeof *views);
    if (!views)
        return false;
    list->views = views;
    bool *hidden = realloc(list->hidden, room * sizeof *hidden);
    if (!hidden)
        return false;
    list->hidden = hidden;
    memset(hidden + list->room, 0, (room - list->room) * sizeof *hidden);
    list->room = room;
    return true;
}

static hf_status add(hf__view_sink *sink, const hf_lock_view *view, hf_error *err)
{
    hf_lock_list *list = ((struct collector *)sink)->list;
    if (!make_room(list))
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_lock_view *copy = &list->views[list->count];
    *copy = *view;
    if (!own_strings(copy)) {
        free_view(copy);
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    }
    list->count++;
    return HF_OK;
}

void hf__lock_list_hide(hf_lock_list *list, const hf_lock_view *view)
{
    list->hidden[view - list->views] = true;
}

void hf__lock_list_compact(hf_lock_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->hidden[i])
            free_view(&list->views[i]);
        else
            list->views[kept++] = list->views[i];
    }
    list->count = kept;
}

static hf_status new_list(const hf_store *store, hf_lock_list **out, hf_error *err)
{
    *out = NULL;
    hf_status status = hf__check_process(store, err);
    if (status == HF_OK && !(*out = calloc(1, sizeof **out)))
        status = hf__fail(err, HF_NO_MEMORY, "out of memory");
    return status;
}

static hf_status finish(hf_store *store, hf_status status, hf_lock_list *list, hf_lock_list **out,
                        hf_error *err)
{
    if (status == HF_OK)
        status = hf__lock_list_name(store, list, err);
    if (status == HF_OK)
        *out = list;
    else
        hf_lock_list_free(list);
    return status;
}

hf_status hf__lock_list_read_on(hf_store *store, struct pg_conn *conn, hf_lock_list **out,
                                hf_error *err)
{
    hf_lock_list *list = NULL;
    *out = NULL;
    hf_status status = new_list(store, &list, err);
    if (status != HF_OK)
        return status;
    struct collector collector = {.sink = {.add = add}, .list = list};
    status = store->backend->ops->list(store->backend, conn, &collector.sink, err);
    if (status == HF_OK)
        status = hf__lock_list_fold_slots(list, err);
    return finish(store, status, list, out, err);
}

hf_status hf_lock_list_read(hf_store *store, hf_lock_list **out, hf_error *err)
{
    return hf__lock_list_read_on(store, NULL, out, err);
}

hf_status hf_lock_list_read_past(hf_store *store, int64_t since_ms, hf_lock_list **out,
                                 hf_error *err)
{
    hf_lock_list *list = NULL;
    *out = NULL;
    hf_status status = new_list(store, &list, err);
    if (status != HF_OK)
        return status;
    struct collector collector = {.sink = {.add = add}, .list = list};
    status = store->backend->ops->list_past(store->backend, since_ms, &collector.sink, err);
    if (status == HF_OK)
        status = hf__lock_list_drop_slots(list, err);
    return finish(store, status, list, out, err);
}

size_t hf_lock_list_count(const hf_lock_list *list)
{
    return list->count;
}

const hf_lock_view *hf_lock_list_at(const hf_lock_list *list, size_t index)
{
    return index < list->count ? &list->views[index] : NULL;
}

void hf_lock_list_free(hf_lock_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++)
        free_view(&list->views[i]);
    free(list->views);
    free(list->hidden);
    free(list);
}
