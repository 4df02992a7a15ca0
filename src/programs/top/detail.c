#include "programs/top/detail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
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
        hf__frame_line(frame);
    hf__frame_line(frame);
    hf__frame_put(frame, HF__INK_HEAD, text);
}

void hf__detail_field(hf__frame *frame, const char *name, hf__ink ink, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    hf__frame_line(frame);
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

void hf__detail_registry(hf__frame *frame, const hf_registry_entry *entry)
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
    hf__frame_line(frame);
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

void hf__detail_history(const hf__top *top, hf__frame *frame, int64_t key, hf_space space)
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
    hf__frame_line(frame);
    hf__frame_put(frame, HF__INK_DIM,
                  top->snapshot->has_records ? "  nothing among the newest events"
                                             : "  nothing is recorded here: see holdfast init");
}

void hf__detail_put(const hf__top *top, hf__frame *frame)
{
    switch (top->tab) {
    case HF__TAB_LOCKS: hf__detail_lock(top, frame); break;
    case HF__TAB_WAITS: hf__detail_party(top, frame); break;
    case HF__TAB_INGEST: hf__detail_network(top, frame); break;
    default: hf__detail_event(top, frame); break;
    }
}
