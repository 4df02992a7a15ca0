/* Who waits for whom: a picture, and the same as a list. */
#include <inttypes.h>
#include <stdio.h>

#include "programs/serve/page/graph.h"
#include "programs/serve/page/parts.h"
#include "programs/serve/page/svg.h"

static void put_lock_link(const hf__page *page, size_t index)
{
    const hf__seen_lock *lock = &page->seen->locks[index];
    char title[HF__TITLE_ROOM];

    hf__buf_puts(page->out, "<a ");
    hf__page_lock_href(page, lock->space, lock->key);
    hf__buf_puts(page->out, ">");
    hf__html_value(page->out, hf__lock_title(title, lock));
    hf__buf_puts(page->out, "</a>");
}

static void put_wait(const hf__page *page, int64_t wait_ms, size_t lock)
{
    hf__buf_puts(page->out, " waits ");
    hf__html_duration(page->out, wait_ms, false);
    hf__buf_puts(page->out, " for ");
    put_lock_link(page, lock);
}

static void put_party(const hf__page *page, const hf__graph *graph, const hf__graph_node *node)
{
    const hf__seen_party *party = &page->seen->parties[node->index];
    hf__buf *out = page->out;

    hf__page_who(out, party->application, party->host, party->pid,
                 page->seen->local ? 0 : party->id);
    if (party->in_cycle)
        hf__buf_puts(out, " <span class=\"tag bad\">deadlock</span>");
    if (node->parent != SIZE_MAX) {
        put_wait(page, node->wait_ms, graph->nodes[node->parent].index);
    } else if (party->root) {
        hf__buf_puts(out, " <span class=\"tag root\">root</span> keeps ");
        hf__page_count(out, party->kept, "other waiting", "others waiting");
    } else if (party->waits_for < page->seen->lock_count) {
        put_wait(page, node->wait_ms, party->waits_for);
    }
}

/*
 * The nodes of one level from first to end; locks make no level of their own, but in front of it.
 */
static void put_list(const hf__page *page, const hf__graph *graph, size_t first, size_t end)
{
    hf__buf *out = page->out;

    for (size_t i = first; i < end; i = graph->nodes[i].end) {
        const hf__graph_node *node = &graph->nodes[i];
        if (node->kind == HF__NODE_LOCK && node->parent != SIZE_MAX) {
            put_list(page, graph, i + 1, node->end);
            continue;
        }
        hf__buf_puts(out, "<li>");
        if (node->kind == HF__NODE_PARTY)
            put_party(page, graph, node);
        else if (node->kind == HF__NODE_LOCK)
            put_lock_link(page, node->index);
        else
            hf__html(out, "and %zu more", node->index);
        if (node->end > i + 1) {
            hf__buf_puts(out, "<ul>");
            put_list(page, graph, i + 1, node->end);
            hf__buf_puts(out, "</ul>");
        }
        hf__buf_puts(out, "</li>");
    }
}

static void put_graph(const hf__page *page, const hf__graph *picture, const hf__graph *graph)
{
    hf__buf *out = page->out;

    if (graph->shown < graph->involved)
        hf__html(
            out,
            "<p class=\"note\">%zu of %zu sessions: those behind the worst %d roots. All are in "
            "<a href=\"%s/api/v1/waits\">the API</a>.</p>",
            graph->shown, graph->involved, HF__GRAPH_ROOTS, page->request->base);
    hf__buf_puts(out,
                 "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                 "aria-label=\"Picture of who waits for whom; the list below says the same\">");
    hf__svg_graph(out, page->seen, picture);
    hf__buf_puts(out, "</div>\n<details id=\"waits-list\" open><summary>As a list</summary>"
                      "<ul class=\"tree\">");
    put_list(page, graph, 0, graph->count);
    hf__buf_puts(out, "</ul></details>");
}

static void put_now(const hf__page *page)
{
    hf__page_request to = *page->request;

    to.at = "";
    hf__buf_puts(page->out, "<ul class=\"chips\"><li><a ");
    hf__page_href(page->out, &to, "#waits");
    hf__buf_puts(page->out, ">Now</a></li></ul>");
}

/* Each leads to who waited for whom then. */
static void put_moments(const hf__page *page)
{
    const hf__snapshot *seen = page->seen;
    hf__page_request to = *page->request;
    hf__buf *out = page->out;
    char at[24];

    if (seen->moment_count == 0)
        return;
    hf__buf_puts(out, "<details id=\"past\"><summary>Earlier: ");
    hf__page_count(out, seen->moment_count, "moment", "moments");
    hf__buf_puts(out, " of the last day with waits</summary><ul class=\"chips\">");
    for (size_t i = 0; i < seen->moment_count; i++) {
        const hf__snapshot *waits = seen->moments[i].waits;
        (void)snprintf(at, sizeof at, "%" PRId64, waits->taken_ms);
        to.at = at;
        hf__buf_puts(out, "<li><a ");
        hf__page_href(out, &to, "#waits");
        hf__buf_puts(out, ">");
        hf__html_time(out, waits->taken_ms, seen->taken_ms);
        hf__html(out, " <span class=\"count\">%zu</span></a></li>", waits->waiting);
    }
    hf__buf_puts(out, "</ul></details>");
}

static void put_waits(const hf__page *page)
{
    hf__graph picture = {0}, graph = {0};

    if (!hf__graph_make(page->seen, true, &picture) || !hf__graph_make(page->seen, false, &graph))
        page->out->broken = true;
    else if (graph.count == 0) /* the list stays, so that it is as the reader left it */
        hf__buf_puts(page->out, "<p class=\"calm\">Nobody waits.</p>"
                                "<details id=\"waits-list\" open hidden></details>");
    else
        put_graph(page, &picture, &graph);
    hf__graph_free(&picture);
    hf__graph_free(&graph);
}

void hf__page_waits(const hf__page *page)
{
    bool is_past = page->request->at[0] != '\0';
    hf__page then = *page;
    hf__buf *out = page->out;

    if (is_past)
        then.seen = hf__waits_at(page->seen, page->request->at_ms);
    hf__buf_puts(out, "<section id=\"waits\" aria-labelledby=\"waits-h\">\n<div class=\"bar\">"
                      "<h2 id=\"waits-h\">Who ");
    hf__buf_puts(out, is_past ? "waited for whom at " : "waits for whom");
    if (is_past)
        hf__html_time(out, then.seen != NULL ? then.seen->taken_ms : page->request->at_ms,
                      page->seen->taken_ms);
    hf__buf_puts(out, "</h2>\n");
    if (is_past)
        put_now(page);
    hf__buf_puts(out, "</div>\n");
    if (then.seen != NULL)
        put_waits(&then);
    else
        hf__buf_puts(out, "<p class=\"calm\">Nobody is known to have waited then.</p>");
    put_moments(page);
    hf__buf_puts(out, "</section>\n");
}
