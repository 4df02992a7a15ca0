/* Contention over time: one row per lock, the most contended first. */
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "programs/serve/page/parts.h"
#include "programs/serve/page/svg.h"

enum { HEAT_ROWS = 40 };

static unsigned held_percent(const hf__heat_cell *sum)
{
    return sum->samples > 0 ? (sum->held * 100 + sum->samples / 2) / sum->samples : 0;
}

/* Leads to the locks that the row is made of, as far as somebody uses them now. */
static void put_lock(const hf__page *page, const hf__heat_row *row)
{
    hf__page_request to = *page->request;

    if (row->is_other) {
        hf__buf_puts(page->out, "all others");
        return;
    }
    to.q = row->lock;
    to.state = to.page = to.lock = "";
    hf__buf_puts(page->out, "<a ");
    hf__page_href(page->out, &to, "#locks");
    hf__html(page->out, ">%.120s</a>", row->lock);
}

static void put_row(const hf__page *page, const hf__heat_map *map, const hf__heat_row *row)
{
    const hf__heat_cell *sum = &row->sum;
    hf__buf *out = page->out;
    char wait[40] = "no wait";
    char label[160];

    if (sum->waiters > 0)
        hf__show_duration(wait, sizeof wait, sum->longest_wait_ms);
    snprintf(label, sizeof label, "held %u %% of the time, at most %u waiting, longest wait: %s",
             held_percent(sum), sum->waiters, wait);
    hf__buf_puts(out, "\n<tr><th scope=\"row\">");
    put_lock(page, row);
    hf__buf_puts(out, "</th><td class=\"strip\">");
    hf__svg_heat(out, row, map->columns, label);
    hf__html(out, "</td><td class=\"num\" data-label=\"Held\">%u %%</td>", held_percent(sum));
    hf__html(out, "<td class=\"num%s\" data-label=\"Most waiting\">%u</td>",
             sum->waiters > 0 ? "" : " zero", sum->waiters);
    hf__html(out, "<td class=\"num%s\" data-label=\"Longest wait\">%s</td></tr>",
             sum->waiters > 0 ? "" : " zero", sum->waiters > 0 ? wait : "–");
}

static void put_axis(hf__buf *out, const hf__heat_map *map)
{
    int64_t to_ms = map->from_ms + map->step_ms * (int64_t)map->columns;

    hf__buf_puts(out, "<p class=\"ends\"><span>");
    hf__html_time(out, map->from_ms, to_ms);
    hf__buf_puts(out, "</span><span>");
    hf__html_time(out, to_ms, to_ms);
    hf__buf_puts(out, "</span></p>");
}

static void put_legend(hf__buf *out)
{
    static const char *const levels[][2] = {
        {"idle", "free"}, {"h0", "held"},   {"h1", "1 waiting"},
        {"h2", "2 to 4"}, {"h3", "5 to 9"}, {"h4", "10 or more"},
    };

    hf__buf_puts(out, "<ul class=\"legend\" aria-label=\"Colours\">");
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        hf__html(out,
                 "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\" class=\"heat\"><rect "
                 "class=\"%s\" width=\"12\" height=\"12\"/></svg> %s</li>",
                 levels[i][0], levels[i][1]);
    hf__buf_puts(out, "</ul>");
}

static void put_map(const hf__page *page, const hf__heat_map *map)
{
    hf__buf *out = page->out;

    hf__buf_puts(out,
                 "<table class=\"heats\"><caption class=\"unseen\">Contention of each lock over "
                 "time, the most waited for first</caption><thead><tr><th scope=\"col\">Lock</th>"
                 "<th scope=\"col\" class=\"strip\"><span class=\"unseen\">Over time</span>");
    put_axis(out, map);
    hf__buf_puts(out, "</th><th scope=\"col\" class=\"num\">Held</th>"
                      "<th scope=\"col\" class=\"num\">Most waiting</th>"
                      "<th scope=\"col\" class=\"num\">Longest wait</th></tr></thead><tbody>");
    for (size_t i = 0; i < map->count && i < HEAT_ROWS; i++)
        put_row(page, map, &map->rows[i]);
    hf__buf_puts(out, "</tbody></table>");
    put_legend(out);
    if (map->count > HEAT_ROWS)
        hf__html(out, "<p class=\"note\">%zu quieter ones are not shown.</p>",
                 map->count - HEAT_ROWS);
}

static void put_span(const hf__page *page, const char *span, const char *text, bool current)
{
    hf__page_request to = *page->request;

    to.span = span;
    hf__buf_puts(page->out, "<li><a ");
    hf__page_href(page->out, &to, "#contention");
    hf__html(page->out, "%s>%s</a></li>", current ? " aria-current=true" : "", text);
}

void hf__page_contention(const hf__page *page)
{
    bool day = strcmp(page->request->span, "24h") == 0;
    const hf__heat_map *map = day ? &page->seen->day : &page->seen->hour;
    hf__buf *out = page->out;

    hf__buf_puts(out, "<section id=\"contention\" aria-labelledby=\"contention-h\">\n"
                      "<div class=\"bar\"><h2 id=\"contention-h\">Contention</h2>"
                      "<ul class=\"chips\" aria-label=\"Span\">");
    put_span(page, "", "1 hour", !day);
    put_span(page, "24h", "24 hours", day);
    hf__buf_puts(out, "</ul></div>\n");
    if (map->count > 0 && map->columns > 0)
        put_map(page, map);
    else
        hf__buf_puts(out, "<p class=\"calm\">No lock was held or waited for in this time.</p>");
    hf__buf_puts(out, "</section>\n");
}
