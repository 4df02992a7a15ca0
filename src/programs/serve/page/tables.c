/* The shared tables, and what is wrong with the registry. */
#include <string.h>

#include "programs/serve/page/parts.h"

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
        hf__html(out, "<p class=\"note\">%zu more in <a href=\"%s/api/v1/tables\">the API</a>.</p>",
                 seen->table_count - TABLES, page->request->base);
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
