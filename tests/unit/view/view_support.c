#include "view_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "lib/locks/locks.h"

enum { FIRST_AGE_MS = 100000000 };

static const char *own(const char *text)
{
    char *copy = strdup(text ? text : "");
    assert_non_null(copy);
    return copy;
}

hf_lock_list *empty_list(void)
{
    hf_lock_list *list = calloc(1, sizeof *list);
    assert_non_null(list);
    return list;
}

void add_row(hf_lock_list **list, hf_lock_view view)
{
    if (!*list)
        *list = empty_list();
    hf_lock_list *rows = *list;
    assert_true(hf__grow(&rows->views, &rows->view_room, rows->count + 1, sizeof *rows->views));
    view.label = own(view.label);
    view.application = own(view.application);
    view.host = own(view.host);
    view.blocked_by = own(view.blocked_by);
    view.name = own(view.name);
    view.pattern = own(view.pattern);
    view.known_as = view.known_as ? view.known_as : "";
    rows->views[rows->count++] = view;
}

void add_holder(hf_lock_list **list, int64_t key, int session, hf_mode mode)
{
    add_row(list, (hf_lock_view){.key = key, .backend_pid = session, .mode = mode});
}

void add_waiter(hf_lock_list **list, int64_t key, int session, hf_mode mode, const char *blocked_by)
{
    int64_t age = FIRST_AGE_MS - (*list ? (int64_t)(*list)->count : 0);
    add_row(list, (hf_lock_view){.key = key,
                                 .backend_pid = session,
                                 .mode = mode,
                                 .waiting = true,
                                 .age_ms = age,
                                 .blocked_by = blocked_by});
}

hf__view_draft *draft_of(hf_lock_list *list, const hf_registry *registry)
{
    hf__common *common = hf__common_new();
    assert_non_null(common);
    hf__view_draft *draft = hf__view_draft_new(common);
    assert_non_null(draft);
    hf__common_release(common);
    hf__locks_sort(draft, list, registry);
    hf__graph_draw(draft);
    assert_false(draft->arena.broken);
    return draft;
}

void drop(hf__view_draft *draft)
{
    hf__snapshot_release(&draft->seen);
}

const hf__seen_party *party(const hf__view_draft *draft, int id)
{
    for (size_t i = 0; i < draft->seen.party_count; i++)
        if (draft->seen.parties[i].id == id)
            return &draft->seen.parties[i];
    fail_msg("no party %d", id);
    return NULL;
}

bool has_edge(const hf__view_draft *draft, int waiter, int holder, int64_t key)
{
    const hf__snapshot *seen = &draft->seen;
    for (size_t i = 0; i < seen->edge_count; i++)
        if (seen->parties[seen->edges[i].waiter].id == waiter &&
            seen->parties[seen->edges[i].holder].id == holder &&
            seen->locks[seen->edges[i].lock].key == key)
            return true;
    return false;
}
