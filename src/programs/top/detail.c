#include "programs/top/detail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "programs/top/cell.h"
#include "programs/top/list.h"

enum { NAME_CELLS = 12, HISTORY_MOST = 200 };

void hf__detail_open(hf__top *top)
{
    const hf__standing *standing = &top->standings[top->tab];
    hf__buf title = {0};

    if (standing->index >= top->row_count)
        return;
    top->mode = HF__MODE_DETAIL;
    top->detail = standing->chosen;
    top->detail_scroll = 0;
    const char *text = hf__top_copied(top, &title);
    hf__show(top->detail_title, sizeof top->detail_title, text, strlen(text));
    hf__buf_free(&title);
}

void hf__detail_heading(hf__frame *frame, const char *text)
{
    if (frame->count > 0 && frame->lines[frame->count - 1].cells > 0)
        hf__frame_add_line(frame);
    hf__frame_add_line(frame);
    hf__frame_put(frame, HF__INK_HEAD, text);
}

void hf__detail_field(hf__frame *frame, const char *name, hf__ink ink, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    hf__frame_add_line(frame);
    hf__frame_put(frame, HF__INK_PLAIN, "  ");
    hf__frame_field(frame, HF__INK_DIM, name, NAME_CELLS, false);
    hf__frame_put(frame, HF__INK_PLAIN, "  ");
    hf__frame_wrap(frame, ink, value, NAME_CELLS + 4);
}

void hf__detail_made(hf__frame *frame, const char *name, hf__buf *scratch)
{
    if (!scratch->broken && scratch->data != NULL)
        hf__detail_field(frame, name, HF__INK_PLAIN, scratch->data);
    hf__buf_clear(scratch);
}

static void put_registry(hf__frame *frame, const hf_registry_entry *entry)
{
    if (entry == NULL)
        return;
    hf__detail_field(frame, "name", HF__INK_PLAIN, entry->name);
    hf__detail_field(frame, "pattern", HF__INK_PLAIN, entry->pattern);
    hf__detail_field(frame, "purpose", HF__INK_PLAIN, entry->purpose);
    hf__detail_field(frame, "owner", HF__INK_PLAIN, entry->owner);
    hf__detail_field(frame, "runbook", HF__INK_BOLD, entry->runbook);
    hf__detail_field(frame, "component", HF__INK_PLAIN, entry->component);
    hf__detail_field(frame, "scope", HF__INK_PLAIN, entry->scope);
}

static void put_event(const hf__top *top, hf__frame *frame, const hf__seen_event *event)
{
    hf__buf text = {0};

    hf__put_moment(&text, event->at_ms, top->snapshot->taken_ms);
    hf__frame_add_line(frame);
    hf__frame_put(frame, HF__INK_PLAIN, "  ");
    hf__frame_field(frame, HF__INK_DIM, text.data != NULL ? text.data : "", NAME_CELLS, false);
    hf__buf_clear(&text);
    hf__buf_printf(&text, "  %s", event->event);
    if (event->detail[0] != '\0')
        hf__buf_printf(&text, " (%s)", event->detail);
    hf__buf_puts(&text, " by ");
    hf__put_who(&text, event->application, event->host, event->pid);
    if (event->wait_ms > 0) {
        hf__buf_puts(&text, ", waited ");
        hf__put_age(&text, event->wait_ms, false);
    }
    if (event->hold_ms >= 0) {
        hf__buf_puts(&text, ", held ");
        hf__put_age(&text, event->hold_ms, false);
    }
    if (event->token != 0)
        hf__buf_printf(&text, ", token %" PRId64, event->token);
    hf__frame_wrap(frame, HF__INK_PLAIN, text.broken ? "" : text.data, NAME_CELLS + 4);
    hf__buf_free(&text);
}

static void put_history(const hf__top *top, hf__frame *frame, int64_t key, hf_space space)
{
    size_t shown = 0;

    hf__detail_heading(frame, "History, newest first");
    for (size_t i = 0; i < top->snapshot->event_count && shown < HISTORY_MOST; i++) {
        const hf__seen_event *event = &top->snapshot->events[i];
        if (event->key != key || event->space != space)
            continue;
        put_event(top, frame, event);
        shown++;
    }
    if (shown > 0)
        return;
    hf__frame_add_line(frame);
    hf__frame_put(frame, HF__INK_DIM,
                  top->snapshot->has_records ? "  nothing among the newest events"
                                             : "  nothing is recorded here: see holdfast init");
}

/* ---- a lock, or an event ---- */

static void put_view(const hf__top *top, hf__frame *frame, size_t index)
{
    const hf_lock_view *view = top->snapshot->views[index];
    size_t party = top->snapshot->view_party[index];
    hf__buf age = {0}, text = {0};
    char left[32];

    hf__put_age(&age, view->age_ms, view->age_is_bound);
    if (party != SIZE_MAX)
        hf__put_party(&text, top->snapshot, &top->snapshot->parties[party]);
    else if (view->lifetime == HF_LEASE)
        hf__put_who(&text, view->application, view->host, view->pid);
    else
        hf__buf_puts(&text, "a prepared transaction");
    if (view->left_ms > 0)
        hf__buf_printf(&text, ", lease with %s left",
                       hf__show_duration(left, sizeof left, view->left_ms));
    hf__buf_printf(&text, ", %s", hf__mode_word(view->mode));
    if (view->slot > 0)
        hf__buf_printf(&text, ", slot %u", view->slot);
    if (view->token != 0)
        hf__buf_printf(&text, ", token %" PRId64, view->token);
    if (view->waiting && view->blocked_by[0] != '\0')
        hf__buf_printf(&text, ", blocked by %s", view->blocked_by);
    if (!age.broken && !text.broken)
        hf__detail_field(frame, age.data != NULL ? age.data : "?", HF__INK_PLAIN, text.data);
    hf__buf_free(&age);
    hf__buf_free(&text);
}

static void put_views(const hf__top *top, hf__frame *frame, const hf__seen_lock *lock, bool waiting)
{
    size_t count = waiting ? lock->waiters : lock->holders;
    hf__buf text = {0};

    if (count == 0)
        return;
    hf__buf_printf(&text, waiting ? "Waiting: %zu" : "Held by: %zu", count);
    hf__detail_heading(frame, text.broken ? "" : text.data);
    hf__buf_free(&text);
    for (size_t i = lock->first; i < lock->first + lock->count; i++)
        if (top->snapshot->views[i]->waiting == waiting)
            put_view(top, frame, i);
}

static void put_facts(const hf__top *top, hf__frame *frame, const hf__seen_lock *lock)
{
    hf__buf text = {0};

    hf__detail_field(frame, "label", HF__INK_BOLD, lock->label);
    hf__cell_key(&text, lock->key, lock->space);
    hf__detail_made(frame, "key", &text);
    put_registry(frame, lock->entry);
    if (lock->entry == NULL && top->snapshot->registry != NULL)
        hf__detail_field(frame, "name", HF__INK_WARNING, "not in the registry");
    hf__buf_free(&text);
}

static void put_lock_detail(const hf__top *top, hf__frame *frame)
{
    int64_t key = top->detail.a;
    hf_space space = (hf_space)top->detail.b;
    const hf__seen_lock *lock = hf__find_lock(top->snapshot, key, space);

    hf__detail_heading(frame, "Lock");
    if (lock != NULL) {
        put_facts(top, frame, lock);
        put_views(top, frame, lock, false);
        put_views(top, frame, lock, true);
    } else {
        hf__detail_field(frame, "label", HF__INK_BOLD, top->detail_title);
        hf__detail_field(frame, "now", HF__INK_GOOD, "free: nobody holds it or waits for it");
    }
    put_history(top, frame, key, space);
}

static void put_event_detail(const hf__top *top, hf__frame *frame)
{
    const hf__snapshot *seen = top->snapshot;
    const hf__seen_event *event = NULL;
    hf__buf text = {0};

    for (size_t i = 0; i < seen->event_count && event == NULL; i++)
        if (seen->events[i].id == top->detail.a)
            event = &seen->events[i];
    hf__detail_heading(frame, "Event");
    if (event == NULL) {
        hf__detail_field(frame, "now", HF__INK_DIM, "it is no longer among the newest events");
        return;
    }
    hf__put_moment(&text, event->at_ms, seen->taken_ms);
    hf__detail_made(frame, "when", &text);
    hf__detail_field(frame, "event", HF__INK_BOLD, event->event);
    hf__detail_field(frame, "detail", HF__INK_PLAIN, event->detail);
    hf__detail_field(frame, "label", HF__INK_BOLD, event->label);
    hf__cell_key(&text, event->key, event->space);
    hf__detail_made(frame, "key", &text);
    hf__detail_field(frame, "mode", HF__INK_PLAIN, hf__mode_word(event->mode));
    hf__put_who(&text, event->application, event->host, event->pid);
    hf__detail_made(frame, "who", &text);
    hf__put_age(&text, event->wait_ms, false);
    hf__detail_made(frame, "waited", &text);
    hf__put_age(&text, event->hold_ms, false);
    hf__detail_made(frame, "held", &text);
    if (event->token != 0)
        hf__buf_printf(&text, "%" PRId64, event->token);
    hf__detail_made(frame, "token", &text);
    if (seen->registry != NULL && event->name[0] != '\0')
        put_registry(frame, hf_registry_find(seen->registry, event->name));
    hf__buf_free(&text);
    put_history(top, frame, event->key, event->space);
}

/* ---- a session or process ---- */

static void put_locks_of(const hf__top *top, hf__frame *frame, size_t party, bool waiting)
{
    const hf__snapshot *seen = top->snapshot;
    hf__buf age = {0}, text = {0};

    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        for (size_t j = lock->first; j < lock->first + lock->count; j++) {
            const hf_lock_view *view = seen->views[j];
            if (seen->view_party[j] != party || view->waiting != waiting)
                continue;
            hf__buf_clear(&age);
            hf__put_age(&age, view->age_ms, view->age_is_bound);
            hf__put_title(&text, lock);
            if (lock->waiters > 0 && !waiting)
                hf__buf_printf(&text, ", %zu waiting for it", lock->waiters);
            bool known = !age.broken && age.length > 0;
            hf__detail_made(frame, known ? age.data : "?", &text);
        }
    }
    hf__buf_free(&age);
    hf__buf_free(&text);
}

static void put_others(const hf__top *top, hf__frame *frame, size_t party, bool waiters)
{
    const hf__snapshot *seen = top->snapshot;
    hf__buf text = {0};

    for (size_t i = 0; i < seen->edge_count; i++) {
        const hf__seen_edge *edge = &seen->edges[i];
        if ((waiters ? edge->holder : edge->waiter) != party)
            continue;
        size_t other = waiters ? edge->waiter : edge->holder;
        hf__put_party(&text, seen, &seen->parties[other]);
        hf__buf_puts(&text, ", for ");
        hf__put_title(&text, &seen->locks[edge->lock]);
        hf__detail_made(frame, waiters ? "waits" : "blocks it", &text);
    }
    hf__buf_free(&text);
}

static void put_party(const hf__top *top, hf__frame *frame, const hf__seen_party *party)
{
    hf__buf text = {0};

    hf__put_party(&text, top->snapshot, party);
    hf__detail_made(frame, "who", &text);
    if (party->in_cycle)
        hf__detail_field(frame, "state", HF__INK_PROBLEM,
                         "deadlock: in the end it waits for itself");
    else if (party->root)
        hf__detail_field(frame, "state", HF__INK_WARNING,
                         "keeps others waiting and waits for nobody");
    if (party->kept > 0)
        hf__buf_printf(&text, "%zu, over others too", party->kept);
    hf__detail_made(frame, "behind it", &text);
    hf__detail_field(frame, "query", HF__INK_PLAIN, party->query);
    hf__buf_free(&text);
}

static void put_party_detail(const hf__top *top, hf__frame *frame)
{
    const hf__snapshot *seen = top->snapshot;
    const hf__seen_party *party = hf__find_party(seen, (int)top->detail.a);

    hf__detail_heading(frame, seen->local ? "Process" : "Session");
    if (party == NULL) {
        hf__detail_field(frame, "now", HF__INK_GOOD, "it neither holds nor waits any more");
        return;
    }
    size_t index = (size_t)(party - seen->parties);
    put_party(top, frame, party);
    if (party->waits_for != SIZE_MAX) {
        hf__detail_heading(frame, "Waits for");
        put_locks_of(top, frame, index, true);
        put_others(top, frame, index, false);
    }
    hf__detail_heading(frame, "Holds");
    put_locks_of(top, frame, index, false);
    if (party->blocking > 0) {
        hf__detail_heading(frame, "Keeps waiting");
        put_others(top, frame, index, true);
    }
}

/* ---- a network ---- */

static void put_number(hf__frame *frame, const char *name, hf__maybe number)
{
    hf__buf text = {0};

    if (number.known)
        hf__buf_printf(&text, "%" PRId64, number.value);
    hf__detail_made(frame, name, &text);
    hf__buf_free(&text);
}

static void put_lag(hf__frame *frame, const hf__seen_network *network)
{
    hf__buf text = {0};

    if (network->lag.known && network->lag.value < 0)
        hf__buf_printf(&text, "none: %" PRId64 " ahead of what the source said last",
                       -network->lag.value);
    else if (network->lag.known)
        hf__buf_printf(&text, "%" PRId64 " ledgers", network->lag.value);
    hf__detail_made(frame, "lag", &text);
    hf__buf_free(&text);
}

static void put_bar(hf__frame *frame, const hf__seen_network *network)
{
    size_t cells = frame->width < 120 ? frame->width - (frame->width > 20 ? 18 : 0) : 100;
    hf__buf text = {0};

    hf__put_coverage(&text, network, cells);
    if (!text.broken)
        hf__detail_field(frame, "coverage", HF__INK_GOOD, text.data);
    hf__buf_free(&text);
}

static void put_gaps(hf__frame *frame, const hf__seen_network *network)
{
    hf__buf text = {0};

    if (network->gap_count == 0)
        return;
    hf__detail_heading(frame, "Gaps");
    for (size_t i = 0; i < network->gap_count; i++) {
        const hf_range *gap = &network->gaps[i];
        hf__buf_printf(&text, "%" PRId64 " to %" PRId64 ", %" PRId64 " ledgers", gap->from, gap->to,
                       gap->to - gap->from + 1);
        hf__detail_made(frame, "missing", &text);
    }
    hf__buf_free(&text);
}

static void put_network(const hf__top *top, hf__frame *frame, const hf__seen_network *network)
{
    const hf__network_status *status = &network->status;
    hf__buf text = {0};

    hf__detail_field(frame, "network", HF__INK_BOLD, network->name);
    if (network->problem[0] != '\0') {
        hf__detail_field(frame, "problem", HF__INK_PROBLEM, network->problem);
        return;
    }
    hf__detail_field(frame, "ingester",
                     network->ingester[0] != '\0' ? HF__INK_PLAIN : HF__INK_WARNING,
                     network->ingester[0] != '\0' ? network->ingester : "none runs");
    put_number(frame, "latest", status->latest);
    if (status->closed_at[0] != '\0') {
        hf__buf_printf(&text, "%s, ", status->closed_at);
        hf__put_age(&text, status->age_ms, false);
        hf__buf_puts(&text, " ago");
    }
    hf__detail_made(frame, "closed", &text);
    put_lag(frame, network);
    if (network->rate >= 0)
        hf__buf_printf(&text, "%.1f ledgers a second", network->rate);
    hf__detail_made(frame, "rate", &text);
    put_number(frame, "oldest", status->oldest);
    put_number(frame, "wanted from", status->wanted_from);
    put_number(frame, "kept from", status->floor);
    if (status->has_coverage)
        hf__buf_printf(&text, "%" PRId64 " ledgers in %zu ranges", status->covered, status->ranges);
    hf__detail_made(frame, "covered", &text);
    put_bar(frame, network);
    put_number(frame, "quarantined", status->quarantined);
    if (status->last_success_ms.known)
        hf__put_moment(&text, status->last_success_ms.value, top->snapshot->taken_ms);
    hf__detail_made(frame, "last commit", &text);
    if (status->disagrees)
        hf__detail_field(frame, "problem", HF__INK_PROBLEM,
                         "the cursor of the latest ledger claims what is not covered");
    hf__buf_free(&text);
    put_gaps(frame, network);
}

static void put_network_detail(const hf__top *top, hf__frame *frame)
{
    hf__detail_heading(frame, "Network");
    for (size_t i = 0; i < top->snapshot->network_count; i++) {
        hf__row_id id = hf__list_ingest.id(top, i);
        if (hf__same_row(&id, &top->detail)) {
            put_network(top, frame, &top->snapshot->networks[i]);
            return;
        }
    }
    hf__detail_field(frame, "now", HF__INK_DIM, "it is not in the store any more");
}

/* ---- whatever is chosen ---- */

void hf__detail_put(const hf__top *top, hf__frame *frame)
{
    switch (top->tab) {
    case HF__TAB_LOCKS: put_lock_detail(top, frame); break;
    case HF__TAB_WAITS: put_party_detail(top, frame); break;
    case HF__TAB_INGEST: put_network_detail(top, frame); break;
    default: put_event_detail(top, frame); break;
    }
}
