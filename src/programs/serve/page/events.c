/* The last events, all or of one kind. */
#include <string.h>

#include "programs/serve/page/parts.h"

enum { ROWS = 50, KINDS = 24 };

struct kind {
    const char *name;
    size_t count;
};

static const char *tone_of(const char *event)
{
    static const char *const bad[] = {"lost", "deadlock", "terminated", "orphan_killed"};
    static const char *const warn[] = {"conflict", "timeout", "orphan_awaited"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (strcmp(event, bad[i]) == 0)
            return "bad";
    for (size_t i = 0; i < sizeof warn / sizeof warn[0]; i++)
        if (strcmp(event, warn[i]) == 0)
            return "warn";
    return "plain";
}

static bool is_wanted(const hf__page *page, const hf__seen_event *event)
{
    return page->request->event[0] == '\0' || strcmp(event->event, page->request->event) == 0;
}

static void put_lock_cell(const hf__page *page, const hf__seen_event *event)
{
    const char *text = event->label[0] != '\0' ? event->label : event->name;
    char key[HF__REF_ROOM];

    hf__page_cell(page->out, "Lock", false, false);
    hf__buf_puts(page->out, "<a ");
    hf__page_lock_href(page, event->space, event->key);
    if (text[0] != '\0')
        hf__html(page->out, ">%.200s</a></td>", text);
    else
        hf__html(page->out, ">key %s</a></td>", hf__lock_key(key, event->space, event->key));
}

void hf__page_event_row(const hf__page *page, const hf__seen_event *event, bool with_lock)
{
    hf__buf *out = page->out;

    hf__buf_puts(out, "\n<tr><td data-label=\"Time\" class=\"when\">");
    hf__html_time(out, event->at_ms, page->seen->taken_ms);
    hf__html(out, "</td><td data-label=\"Event\"><span class=\"kind %s\">%.40s</span></td>",
             tone_of(event->event), event->event);
    if (with_lock)
        put_lock_cell(page, event);
    hf__page_cell(out, "Who", false, false);
    hf__page_who(out, event->application, event->host, event->pid, 0);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Waited", true, event->wait_ms < 0);
    hf__html_duration(out, event->wait_ms, false);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Held", true, event->hold_ms < 0);
    hf__html_duration(out, event->hold_ms, false);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Detail", false, event->detail[0] == '\0');
    hf__html(out, "%.300s</td></tr>", event->detail);
}

static size_t count_kinds(const hf__snapshot *seen, struct kind kinds[KINDS])
{
    size_t count = 0;

    for (size_t i = 0; i < seen->event_count; i++) {
        size_t k = 0;
        while (k < count && strcmp(kinds[k].name, seen->events[i].event) != 0)
            k++;
        if (k == KINDS)
            continue;
        if (k == count)
            kinds[count++] = (struct kind){.name = seen->events[i].event};
        kinds[k].count++;
    }
    return count;
}

static void put_choice(const hf__page *page, const char *event, const char *text, size_t count)
{
    hf__page_request to = *page->request;
    bool current = strcmp(page->request->event, event) == 0;

    to.event = event;
    to.events = "";
    hf__html(page->out, "<li><a ");
    hf__page_href(page->out, &to, "#events");
    hf__html(page->out, "%s>%.40s <span class=\"count\">", current ? " aria-current=true" : "",
             text);
    hf__html_number(page->out, (int64_t)count);
    hf__buf_puts(page->out, "</span></a></li>");
}

static void put_choices(const hf__page *page)
{
    struct kind kinds[KINDS];
    size_t count = count_kinds(page->seen, kinds);
    bool chosen_is_there = page->request->event[0] == '\0';

    hf__buf_puts(page->out, "<ul class=\"chips\" aria-label=\"Kinds of events\">");
    put_choice(page, "", "all", page->seen->event_count);
    for (size_t i = 0; i < count; i++) {
        put_choice(page, kinds[i].name, kinds[i].name, kinds[i].count);
        chosen_is_there |= strcmp(kinds[i].name, page->request->event) == 0;
    }
    if (!chosen_is_there)
        put_choice(page, page->request->event, page->request->event, 0);
    hf__buf_puts(page->out, "</ul>");
}

static void put_table(const hf__page *page, size_t count)
{
    const hf__snapshot *seen = page->seen;
    hf__buf *out = page->out;
    size_t at = hf__page_index(page->request->events, ROWS, count);
    size_t passed = 0;

    hf__buf_puts(out, "<table class=\"cards events\"><caption class=\"unseen\">Events, newest first"
                      "</caption><thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Event</th>"
                      "<th scope=\"col\">Lock</th><th scope=\"col\">Who</th>"
                      "<th scope=\"col\" class=\"num\">Waited</th>"
                      "<th scope=\"col\" class=\"num\">Held</th><th scope=\"col\">Detail</th>"
                      "</tr></thead>\n<tbody>");
    for (size_t i = 0; i < seen->event_count; i++) {
        if (!is_wanted(page, &seen->events[i]))
            continue;
        if (passed >= at * ROWS && passed < (at + 1) * ROWS)
            hf__page_event_row(page, &seen->events[i], true);
        passed++;
    }
    hf__buf_puts(out, "</tbody></table>");
    hf__page_pages(page, "events", ROWS, at, count);
    if (seen->event_count == HF__EVENTS_SHOWN)
        hf__html(
            out,
            "<p class=\"note\">Older ones are in <a href=\"%s/api/v1/history\">the API</a>.</p>",
            page->request->base);
}

static size_t count_wanted(const hf__page *page)
{
    size_t count = 0;

    for (size_t i = 0; i < page->seen->event_count; i++)
        count += is_wanted(page, &page->seen->events[i]);
    return count;
}

void hf__page_events(const hf__page *page)
{
    hf__buf *out = page->out;

    hf__buf_puts(out, "<section id=\"events\" aria-labelledby=\"events-h\">\n<div class=\"bar\">"
                      "<h2 id=\"events-h\">Events</h2>\n");
    if (page->seen->event_count > 0 || page->request->event[0] != '\0')
        put_choices(page);
    hf__buf_puts(out, "</div>\n");
    size_t count = count_wanted(page);
    if (count > 0)
        put_table(page, count);
    else
        hf__html(out, "<p class=\"calm\">%s</p>",
                 !page->seen->has_records      ? "This store keeps no records."
                 : page->seen->event_count > 0 ? "No event of this kind."
                                               : "No event yet.");
    hf__buf_puts(out, "</section>\n");
}
