#include <string.h>

#include "programs/serve/page.h"
#include "programs/serve/svg.h"

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

/* Behind is what needs a number; ahead of what the source said last is fine. */
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

static void put_gaps(hf__buf *out, const hf__seen_network *network)
{
    if (network->gap_count == 0) {
        hf__buf_puts(out, network->status.gaps.known ? "<p class=\"calm\">No gap.</p>"
                                                     : "<p class=\"note\">Coverage is not "
                                                       "recorded.</p>");
        return;
    }
    hf__html(out, "<details id=\"gaps-%.80s\"><summary>", network->name);
    hf__page_count(out, network->gap_count, "gap", "gaps");
    hf__buf_puts(out, ", ");
    hf__html_number(out, network->status.missing);
    hf__buf_puts(out, network->status.missing == 1 ? " ledger" : " ledgers");
    hf__buf_puts(out, " missing</summary><ul class=\"gaps\">");
    for (size_t i = 0; i < network->gap_count && i < GAPS; i++)
        put_gap_row(out, &network->gaps[i]);
    hf__buf_puts(out, "</ul>");
    if (network->gap_count > GAPS) {
        hf__html(out, "<p class=\"note\">%zu more in <a href=\"/api/v1/ingest/",
                 network->gap_count - GAPS);
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
    hf__html(out, "<article class=\"network\" id=\"network-%.80s\"><h3><a ", network->name);
    hf__page_href(out, &to, "#ingest");
    hf__html(out, ">%.80s</a>", network->name);
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
    put_gaps(out, network);
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

/* --- page more -------------------------------------------------------------------------------- */

enum { TABLES = 200, FINDINGS = 100 };

static void put_table_lock(const hf__page *page, size_t index)
{
    const hf__seen_lock *lock = &page->seen->locks[index];
    const hf_lock_view *view = page->seen->views[lock->first];
    hf__buf *out = page->out;

    hf__buf_puts(out, "<a ");
    hf__page_lock_href(page, lock->space, lock->key);
    hf__html(out, ">%s</a> by ", lock->holders > 0 ? "held" : "wanted");
    hf__page_who(out, view->application, view->host, view->pid, view->backend_pid);
}

static void put_shared_table(const hf__page *page, const hf__seen_table *table)
{
    hf__buf *out = page->out;
    bool doubtful = strcmp(table->state, "doubtful") == 0;

    hf__html(out, "\n<tr><th scope=\"row\">%.200s</th>", table->text);
    hf__page_cell(out, "Id", true, false);
    hf__html(out, "%ld</td>", table->id);
    hf__page_cell(out, "References", true, false);
    hf__html_number(out, table->references);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Appends", true, false);
    hf__html_number(out, table->appends);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Rows appended", true, false);
    hf__html_number(out, table->appended_rows);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Last append", false, false);
    if (table->last_append_ms > 0) {
        hf__html_time(out, table->last_append_ms, page->seen->taken_ms);
        hf__html(out, " <span class=\"kind %s\">%.40s</span>", doubtful ? "bad" : "plain",
                 table->state);
    } else {
        hf__buf_puts(out, "<span class=\"none\">none</span>");
    }
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Lock", false, false);
    if (table->lock < page->seen->lock_count)
        put_table_lock(page, table->lock);
    else
        hf__buf_puts(out, "<span class=\"none\">free</span>");
    hf__buf_puts(out, "</td></tr>");
}

void hf__page_tables(const hf__page *page)
{
    const hf__snapshot *seen = page->seen;
    hf__buf *out = page->out;

    hf__buf_puts(out, "<section id=\"tables\" aria-labelledby=\"tables-h\">\n"
                      "<h2 id=\"tables-h\">Shared tables <span class=\"count\">");
    hf__html_number(out, (int64_t)seen->table_count);
    hf__buf_puts(out, "</span></h2>\n");
    if (seen->table_count == 0) {
        hf__buf_puts(out, "<p class=\"calm\">No table is shared.</p></section>\n");
        return;
    }
    hf__buf_puts(out,
                 "<table class=\"cards\"><caption class=\"unseen\">Shared tables and their last "
                 "appends</caption><thead><tr><th scope=\"col\">Table</th>"
                 "<th scope=\"col\" class=\"num\">Id</th>"
                 "<th scope=\"col\" class=\"num\">References</th>"
                 "<th scope=\"col\" class=\"num\">Appends</th>"
                 "<th scope=\"col\" class=\"num\">Rows appended</th>"
                 "<th scope=\"col\">Last append</th><th scope=\"col\">Lock</th></tr></thead>\n"
                 "<tbody>");
    for (size_t i = 0; i < seen->table_count && i < TABLES; i++)
        put_shared_table(page, &seen->tables[i]);
    hf__buf_puts(out, "</tbody></table>");
    if (seen->table_count > TABLES)
        hf__html(out, "<p class=\"note\">%zu more in <a href=\"/api/v1/tables\">the API</a>.</p>",
                 seen->table_count - TABLES);
    hf__buf_puts(out, "</section>\n");
}

static void put_finding(hf__buf *out, const hf__finding *finding)
{
    static const char *const tones[] = {"note", "warn", "bad", "bad"};
    static const char *const words[] = {"Note", "Warning", "Error", "Error"};
    hf__severity severity = finding->rule->severity;

    hf__html(out, "<li class=\"%s\"><span class=\"word\">%s</span> <span>%.600s", tones[severity],
             words[severity], finding->message != NULL ? finding->message : "");
    if (finding->remedy != NULL && finding->remedy[0] != '\0')
        hf__html(out, " <span class=\"remedy\">%.600s</span>", finding->remedy);
    hf__html(out, "</span> <span class=\"topic\">%s", finding->rule->id);
    if (finding->line > 0)
        hf__html(out, ", line %u", finding->line);
    hf__buf_puts(out, "</span></li>");
}

static void put_findings(hf__buf *out, const hf__findings *findings)
{
    size_t count = findings != NULL ? findings->count : 0;

    if (count == 0) {
        hf__buf_puts(out, "<p class=\"calm\">Nothing is wrong with it.</p>");
        return;
    }
    hf__buf_puts(out, "<ul class=\"attention\">");
    for (size_t i = 0; i < count && i < FINDINGS; i++)
        put_finding(out, &findings->items[i]);
    hf__buf_puts(out, "</ul>");
    if (count > FINDINGS)
        hf__html(out,
                 "<p class=\"note\">And %zu more: <code>holdfast registry check</code> lists "
                 "them all.</p>",
                 count - FINDINGS);
}

void hf__page_registry(const hf__page *page)
{
    const hf_registry *registry = page->seen->registry;
    hf__buf *out = page->out;

    hf__buf_puts(out, "<section id=\"registry\" aria-labelledby=\"registry-h\">\n"
                      "<h2 id=\"registry-h\">Registry");
    if (registry == NULL) {
        hf__buf_puts(out,
                     "</h2>\n<p class=\"calm\">There is none: <code>--registry FILE</code> gives "
                     "locks names, owners and runbooks.</p></section>\n");
        return;
    }
    hf__buf_puts(out, " <span class=\"count\">");
    hf__page_count(out, hf_registry_count(registry), "name", "names");
    hf__html(out, "</span></h2>\n<p class=\"note\"><code>%.300s</code></p>\n",
             hf_registry_path(registry));
    put_findings(out, page->seen->findings);
    hf__buf_puts(out, "</section>\n");
}
