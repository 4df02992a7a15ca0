#include <inttypes.h>

#include "programs/top/cell.h"
#include "programs/top/detail.h"

static void put_view(const hf__top *top, hf__frame *frame, size_t index)
{
    const hf_lock_view *view = top->snapshot->views[index];
    size_t party = top->snapshot->view_party[index];
    hf__buf age = {0}, text = {0};

    hf__put_age(&age, view->age_ms, view->age_is_bound);
    if (party != SIZE_MAX)
        hf__put_party(&text, top->snapshot, &top->snapshot->parties[party]);
    else
        hf__buf_puts(&text, "a prepared transaction");
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
    hf__put_key(&text, lock->key, lock->space);
    hf__detail_made(frame, "key", &text);
    hf__detail_registry(frame, lock->entry);
    if (lock->entry == NULL && top->snapshot->registry != NULL)
        hf__detail_field(frame, "name", HF__INK_WARNING, "not in the registry");
    hf__buf_free(&text);
}

void hf__detail_lock(const hf__top *top, hf__frame *frame)
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
    hf__detail_history(top, frame, key, space);
}

void hf__detail_event(const hf__top *top, hf__frame *frame)
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
    hf__put_key(&text, event->key, event->space);
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
        hf__detail_registry(frame, hf_registry_find(seen->registry, event->name));
    hf__buf_free(&text);
    hf__detail_history(top, frame, event->key, event->space);
}
