#include "programs/holdfast/leaks.h"

#include <stdio.h>

#include "base/time.h"
#include "cli/lock_row.h"

enum { NAME, LOCK, APPLICATION, HOST, HELD, END };

static const struct column columns[] = {
    [NAME] = {.title = "NAME"},
    [LOCK] = {.title = "LOCK", .may_be_cut = true},
    [APPLICATION] = {.title = "APPLICATION", .may_be_cut = true, .rank = 1},
    [HOST] = {.title = "HOST", .may_be_cut = true, .rank = 2},
    [HELD] = {.title = "HELD", .to_the_right = true},
    [END] = {.title = "END IT WITH"},
    {0},
};

bool is_leak(const hf_lock_view *view, int64_t held_ms)
{
    if (view->waiting || (view->session_known && view->lifetime == HF_TRANSACTION))
        return false;
    return (view->ours ? view->age_ms : view->idle_ms) >= held_ms;
}

bool may_be_leak(const hf_lock_view *view)
{
    return !view->waiting && !view->ours && view->idle_hidden;
}

const char *end_statement(char out[END_SHOWN_MAX], const hf_lock_view *view, bool local)
{
    if (local)
        snprintf(out, END_SHOWN_MAX, "kill %d", view->pid);
    else
        snprintf(out, END_SHOWN_MAX, "SELECT pg_terminate_backend(%d);", view->backend_pid);
    return out;
}

static void set_held(struct table *table, size_t column, const hf_lock_view *view)
{
    char held[32], text[40];
    const char *bound = view->ours ? "" : output_is_utf8() ? "≥" : ">=";

    snprintf(text, sizeof text, "%s%s", bound,
             hf__show_duration(held, sizeof held, view->ours ? view->age_ms : view->idle_ms));
    table_set(table, column, text);
}

static void add_row(struct table *table, const hf_lock_view *view, size_t first, bool local)
{
    char text[END_SHOWN_MAX];

    table_add_row(table);
    if (first == NAME)
        table_set(table, NAME, shown_name(view));
    table_set(table, LOCK - first, view->label[0] != '\0' ? view->label : show_key(text, view));
    table_set(table, APPLICATION - first, view->application);
    table_set(table, HOST - first, view->host);
    set_held(table, HELD - first, view);
    table_set(table, END - first, end_statement(text, view, local));
}

bool print_leaks(const hf_store *store, const hf_lock_view *const *leaks, size_t count, bool named)
{
    size_t first = named ? NAME : LOCK;
    struct table *table = table_new(columns + first);

    for (size_t i = 0; i < count; i++)
        add_row(table, leaks[i], first, hf_store_is_local(store));
    bool printed = table_print(table);
    table_free(table);
    return printed;
}

void explain_leaks(const struct report *report, const hf_store *store, int64_t held_ms,
                   size_t count, size_t untold)
{
    char time[32];
    bool local = hf_store_is_local(store);

    if (count > 0)
        report_note(report, "%s loses every lock that it holds",
                    local ? "a process that is ended" : "a session that is ended");
    else
        report_note(report, "no idle session has held a session lock for %s",
                    hf__show_duration(time, sizeof time, held_ms));
    if (untold > 0 && local)
        report_warning(report, "%zu held %s left out: nobody recorded who holds %s", untold,
                       untold == 1 ? "lock is" : "locks are", untold == 1 ? "it" : "them");
    else if (untold > 0)
        report_warning(report,
                       "%zu held %s left out: this role may not see whether their sessions are "
                       "idle (GRANT pg_read_all_stats lets it, unless track_activities is off)",
                       untold, untold == 1 ? "lock is" : "locks are");
}
