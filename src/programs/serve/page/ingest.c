/* Networks: how far ingestion is, what is covered and which gaps there are. */
#include <string.h>

#include "programs/serve/page/parts.h"
#include "programs/serve/page/svg.h"

enum { GAPS = 50, NETWORKS = 100 };

static void put_maybe(hf__buf *out, const char *title, hf__maybe number)
{
    hf__html(out, "<div><dt>%s</dt><dd>", title);
    if (number.known)
        hf__html_number(out, number.value);
    else
        hf__buf_puts(out, "–");
    hf__buf_puts(out, "</dd></div>");
}

/* A network may be ahead of what the source said last, which is no lag. */
static void put_lag(hf__buf *out, hf__maybe lag)
{
    hf__buf_puts(out, "<div><dt>Lag</dt><dd>");
    if (!lag.known) {
        hf__buf_puts(out, "–");
    } else if (lag.value > 0) {
        hf__html_number(out, lag.value);
        hf__buf_puts(out, lag.value == 1 ? " ledger" : " ledgers");
    } else if (lag.value < 0) {
        hf__buf_puts(out, "none, ");
        hf__html_number(out, lag.value == INT64_MIN ? INT64_MAX : -lag.value);
        hf__buf_puts(out, " ahead");
    } else {
        hf__buf_puts(out, "none");
    }
    hf__buf_puts(out, "</dd></div>");
}

static void put_facts(const hf__page *page, const hf__seen_network *network)
{
    const hf__network_status *status = &network->status;
    hf__buf *out = page->out;

    hf__buf_puts(out, "<dl class=\"facts\">");
    put_maybe(out, "Latest", status->latest);
    put_maybe(out, "Source", status->source_tip);
    put_lag(out, network->lag);
    hf__buf_puts(out, "<div><dt>Rate</dt><dd>");
    if (network->rate < 0)
        hf__buf_puts(out, "–");
    else
        hf__html(out, "%.1f/s", network->rate);
    hf__buf_puts(out, "</dd></div><div><dt>Last commit</dt><dd>");
    if (status->last_success_ms.known)
        hf__html_time(out, status->last_success_ms.value, page->seen->taken_ms);
    else
        hf__buf_puts(out, "–");
    hf__buf_puts(out, "</dd></div>");
    put_maybe(out, "Oldest", status->oldest);
    put_maybe(out, "Wanted from", status->wanted_from);
    if (status->quarantined.known && status->quarantined.value > 0)
        put_maybe(out, "Quarantined", status->quarantined);
    hf__html(out, "<div><dt>Ingests</dt><dd>%.160s</dd></div></dl>",
             network->ingester[0] != '\0' ? network->ingester : "nobody");
}

static void put_bar(hf__buf *out, const hf__seen_network *network)
{
    hf_range range;

    if (!hf__svg_coverage_range(network, &range)) {
        hf__buf_puts(out, "<p class=\"calm\">No ledger is there yet.</p>");
        return;
    }
    hf__buf_puts(out, "<div class=\"ruler\">");
    hf__svg_coverage(out, network);
    hf__buf_puts(out, "<p class=\"ends\"><span>");
    hf__html_number(out, range.from);
    hf__buf_puts(out, "</span><span>");
    hf__html_number(out, range.to);
    hf__buf_puts(out, "</span></p></div>");
}

static void put_gap_row(hf__buf *out, const hf_range *gap)
{
    hf__buf_puts(out, "<li>");
    hf__html_number(out, gap->from);
    if (gap->to != gap->from) {
        hf__buf_puts(out, " to ");
        hf__html_number(out, gap->to);
        hf__html(out, " <span class=\"on\">(%.0f)</span>", (double)gap->to - (double)gap->from + 1);
    }
    hf__buf_puts(out, "</li>");
}

static void put_gaps(const hf__page *page, const hf__seen_network *network)
{
    hf__buf *out = page->out;

    if (network->gap_count == 0) {
        hf__buf_puts(out, network->status.gaps.known ? "<p class=\"calm\">No gap.</p>"
                                                     : "<p class=\"note\">Coverage is not "
                                                       "recorded.</p>");
        return;
    }
    hf__html(out, "<details id=\"gaps-%.132s\"><summary>", network->name);
    hf__page_count(out, network->gap_count, "gap", "gaps");
    hf__buf_puts(out, ", ");
    hf__html_number(out, network->status.missing);
    hf__buf_puts(out, network->status.missing == 1 ? " ledger" : " ledgers");
    hf__buf_puts(out, " missing</summary><ul class=\"gaps\">");
    for (size_t i = 0; i < network->gap_count && i < GAPS; i++)
        put_gap_row(out, &network->gaps[i]);
    hf__buf_puts(out, "</ul>");
    if (network->gap_count > GAPS) {
        hf__html(out, "<p class=\"note\">%zu more in <a href=\"%s/api/v1/ingest/",
                 network->gap_count - GAPS, page->request->base);
        hf__html_url(out, network->name);
        hf__buf_puts(out, "/gaps\">the API</a>.</p>");
    }
    hf__buf_puts(out, "</details>");
}

static void put_network(const hf__page *page, const hf__seen_network *network)
{
    hf__buf *out = page->out;
    hf__page_request to = *page->request;

    to.network = page->request->network[0] != '\0' ? "" : network->name;
    hf__html(out, "<article class=\"network\" id=\"network-%.132s\"><h3><a ", network->name);
    hf__page_href(out, &to, "#ingest");
    hf__html(out, ">%.132s</a>", network->name);
    if (network->problem[0] != '\0') {
        hf__html(out, "</h3><p class=\"banner bad\">It cannot be read: %.300s</p></article>\n",
                 network->problem);
        return;
    }
    if (network->ingester[0] == '\0')
        hf__buf_puts(out, " <span class=\"tag warn\">nobody ingests</span>");
    if (network->status.disagrees)
        hf__buf_puts(out, " <span class=\"tag bad\">cursor and coverage disagree</span>");
    hf__buf_puts(out, "</h3>");
    put_bar(out, network);
    put_facts(page, network);
    put_gaps(page, network);
    hf__buf_puts(out, "</article>\n");
}

static bool is_wanted(const hf__page *page, const hf__seen_network *network)
{
    return page->request->network[0] == '\0' || strcmp(page->request->network, network->name) == 0;
}

void hf__page_ingest(const hf__page *page)
{
    const hf__snapshot *seen = page->seen;
    hf__buf *out = page->out;
    size_t shown = 0;

    hf__buf_puts(out, "<section id=\"ingest\" aria-labelledby=\"ingest-h\">\n<div class=\"bar\">"
                      "<h2 id=\"ingest-h\">Ingest</h2>");
    if (page->request->network[0] != '\0') {
        hf__page_request to = *page->request;
        to.network = "";
        hf__buf_puts(out, "<a class=\"clear\" ");
        hf__page_href(out, &to, "#ingest");
        hf__buf_puts(out, ">All networks</a>");
    }
    hf__buf_puts(out, "</div>\n");
    for (size_t i = 0; i < seen->network_count && shown < NETWORKS; i++) {
        if (!is_wanted(page, &seen->networks[i]))
            continue;
        put_network(page, &seen->networks[i]);
        shown++;
    }
    if (shown == 0)
        hf__html(out, "<p class=\"calm\">%s</p>",
                 seen->network_count == 0 ? "No network is ingested."
                                          : "There is no such network.");
    hf__buf_puts(out, "</section>\n");
}
