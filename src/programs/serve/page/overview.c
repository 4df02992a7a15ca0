/* Several stores: how they stand, what needs attention in any of them, and links to each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "programs/serve/page/parts.h"

/* ---- which comes first ---- */

struct rank {
    const hf__page_store *store;
    size_t problems, warnings;
};

static struct rank judge(const hf__page_store *store)
{
    struct rank rank = {.store = store};

    for (size_t i = 0; i < store->seen->attention_count; i++) {
        rank.problems += store->seen->attention[i].urgency == HF__URGENCY_PROBLEM;
        rank.warnings += store->seen->attention[i].urgency == HF__URGENCY_WARNING;
    }
    return rank;
}

static int compare(uint64_t left, uint64_t right)
{
    return (left < right) - (left > right);
}

/* What is down, then what has most problems; else they stay in the order in which they came. */
static int by_trouble(const void *a, const void *b)
{
    const struct rank *left = a, *right = b;
    int order = (int)left->store->is_up - (int)right->store->is_up;

    if (order == 0)
        order = compare(left->problems, right->problems);
    if (order == 0)
        order = compare(left->warnings, right->warnings);
    if (order == 0)
        order = compare((uint64_t)left->store->seen->longest_wait_ms,
                        (uint64_t)right->store->seen->longest_wait_ms);
    return order != 0 ? order : (left->store > right->store) - (left->store < right->store);
}

/* ---- the table ---- */

/* Links of this page that lead into the page of a store. */
static hf__page_request request_of(const hf__page *page, const hf__page_store *store)
{
    hf__page_request to = *page->request;

    to.base = store->base;
    to.lock = to.page = to.events = to.network = to.at = "";
    return to;
}

/*
 * Opens a cell of what was read last. Of a store that is down it is grey, never a 0 that nobody
 * saw. False: nothing was ever read, and the cell is closed.
 */
static bool open_cell(hf__buf *out, const hf__page_store *store, const char *title, bool is_zero,
                      bool is_bad)
{
    const char *tone = !store->is_up ? " old" : is_zero ? " zero" : is_bad ? " warn" : "";
    bool is_known = store->seen->taken_ms != 0;

    hf__html(out, "<td data-label=\"%s\" class=\"num%s\"", title, tone);
    if (!store->is_up)
        hf__html(out, " title=\"%s\"", is_known ? "when it was read last" : "it was never read");
    hf__buf_puts(out, is_known ? ">" : ">?</td>");
    return is_known;
}

static void put_number(hf__buf *out, const hf__page_store *store, const char *title,
                       uint64_t number, bool is_unknown, bool is_bad)
{
    if (!open_cell(out, store, title, number == 0 && !is_unknown, is_bad))
        return;
    if (is_unknown)
        hf__buf_puts(out, number > 0 ? "≥ " : "?");
    if (number > 0 || !is_unknown)
        hf__html_number(out, (int64_t)number);
    hf__buf_puts(out, "</td>");
}

static void put_state(hf__buf *out, const hf__page_store *store, int64_t now_ms)
{
    const hf__snapshot *seen = store->seen;

    hf__page_cell(out, "State", false, false);
    if (store->is_up) {
        hf__buf_puts(out, "<span class=\"tag good\">up</span></td>");
        return;
    }
    hf__buf_puts(out, "<span class=\"tag bad\">down</span> ");
    if (seen->problem[0] == '\0') {
        hf__buf_puts(out, "a refresh goes on for too long</td>");
        return;
    }
    hf__buf_puts(out, "since ");
    hf__html_time(out, seen->problem_since_ms, now_ms);
    hf__html(out, ": <span class=\"why\">%.400s</span></td>", seen->problem);
}

static void put_read(hf__buf *out, const hf__page_store *store, int64_t now_ms)
{
    hf__html(out, "<td data-label=\"Read\" class=\"num%s\">", store->is_up ? "" : " warn");
    if (store->seen->taken_ms == 0) {
        hf__buf_puts(out, "never</td>");
        return;
    }
    hf__html_time(out, store->seen->taken_ms, now_ms);
    if (!store->is_up) {
        hf__buf_puts(out, "<br>");
        hf__html_duration(out, now_ms - store->seen->taken_ms, false);
        hf__buf_puts(out, " ago");
    }
    hf__buf_puts(out, "</td>");
}

static void put_row(const hf__page *page, const struct rank *rank)
{
    const hf__page_store *store = rank->store;
    const hf__snapshot *seen = store->seen;
    hf__page_request to = request_of(page, store);
    hf__buf *out = page->out;

    hf__html(out, "\n<tr id=\"store-%s\"><th scope=\"row\"><a ", store->name);
    hf__page_href(out, &to, "");
    hf__html(out, ">%s</a> <span class=\"on\">%.200s</span></th>", store->name, seen->store);
    put_state(out, store, page->request->now_ms);
    put_read(out, store, page->request->now_ms);
    put_number(out, store, "Held", seen->held, false, false);
    put_number(out, store, "Waiting", seen->waiting, false, true);
    if (open_cell(out, store, "Longest wait", seen->waiting == 0, true)) {
        hf__html_duration(out, seen->waiting > 0 ? seen->longest_wait_ms : -1, false);
        hf__buf_puts(out, "</td>");
    }
    put_number(out, store, "Lost in 24 h", seen->losses_24h, seen->losses_unknown, true);
    put_number(out, store, "Gaps", seen->gaps, seen->gaps_unknown, true);
    put_number(out, store, "Problems", rank->problems, false, true);
    put_number(out, store, "Warnings", rank->warnings, false, true);
    hf__buf_puts(out, "</tr>");
}

static void put_table(const hf__page *page, const struct rank *ranks)
{
    static const char *const columns[] = {"Read",         "Held", "Waiting",  "Longest wait",
                                          "Lost in 24 h", "Gaps", "Problems", "Warnings"};
    hf__buf *out = page->out;

    hf__buf_puts(out,
                 "<section id=\"all\" aria-labelledby=\"all-h\"><h2 id=\"all-h\">Stores</h2>\n"
                 "<table class=\"cards stores\"><caption class=\"unseen\">How each store stands, "
                 "those in trouble first</caption><thead><tr><th scope=\"col\">Store</th>"
                 "<th scope=\"col\">State</th>");
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        hf__html(out, "<th scope=\"col\" class=\"num\">%s</th>", columns[i]);
    hf__buf_puts(out, "</tr></thead><tbody>");
    for (size_t i = 0; i < page->request->store_count; i++)
        put_row(page, &ranks[i]);
    hf__buf_puts(out, "</tbody></table></section>\n");
}

/* ---- what needs attention ---- */

/* All stores share one registry: what is wrong with it is said once, by the first that has it. */
static bool is_told(const struct rank *ranks, size_t place, const hf__attention *item)
{
    bool is_known = false;

    for (size_t i = 0; i < place && strcmp(item->topic, "registry") == 0; i++)
        is_known = is_known || ranks[i].store->seen->findings != NULL;
    return is_known;
}

/* Those of this urgency, of all stores. Returns how many there are; *more are left out. */
static size_t put_items(const hf__page *page, const struct rank *ranks, hf__urgency urgency,
                        size_t *more)
{
    enum { OF_EACH = 10 };
    size_t count = 0;

    for (size_t r = 0; r < page->request->store_count; r++) {
        const hf__page_store *store = ranks[r].store;
        hf__page_request to = request_of(page, store);
        const hf__page there = {.seen = store->seen, .request = &to, .out = page->out};
        size_t shown = 0;
        for (size_t i = 0; i < store->seen->attention_count; i++) {
            const hf__attention *item = &store->seen->attention[i];
            if (item->urgency != urgency || is_told(ranks, r, item))
                continue;
            if (shown < OF_EACH)
                hf__page_attention_item(&there, item, store->name);
            *more += shown++ >= OF_EACH;
        }
        count += shown;
    }
    return count;
}

static void put_attention(const hf__page *page, const struct rank *ranks)
{
    hf__buf *out = page->out;
    size_t count = 0, more = 0;

    hf__buf_puts(out, "<section id=\"attention\" aria-labelledby=\"attention-h\">"
                      "<h2 id=\"attention-h\">Attention</h2>\n<ul class=\"attention\">");
    for (int urgency = HF__URGENCY_PROBLEM; urgency >= HF__URGENCY_NOTE; urgency--)
        count += put_items(page, ranks, (hf__urgency)urgency, &more);
    hf__buf_puts(out, "</ul>");
    if (count == 0)
        hf__buf_puts(out, "<p class=\"calm\">Nothing needs attention in any store.</p>");
    if (more > 0)
        hf__html(out, "<p class=\"note\">And %zu more, on the pages of the stores.</p>", more);
    hf__buf_puts(out, "</section>\n");
}

void hf__page_stores(const hf__page *page)
{
    size_t count = page->request->store_count;
    struct rank *ranks = calloc(count, sizeof *ranks);

    if (ranks == NULL) {
        page->out->broken = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        ranks[i] = judge(&page->request->stores[i]);
    qsort(ranks, count, sizeof *ranks, by_trouble);
    put_table(page, ranks);
    put_attention(page, ranks);
    free(ranks);
}

/* ---- the switch ---- */

void hf__page_switch(const hf__page *page)
{
    const hf__page_request *request = page->request;
    hf__buf *out = page->out;

    if (request->store_count == 0)
        return;
    hf__html(out,
             "<nav id=\"stores\" aria-label=\"Stores\"><ul class=\"chips\"><li><a href=\"%s/\"%s>"
             "All stores</a></li>",
             request->root, request->store[0] == '\0' ? " aria-current=page" : "");
    for (size_t i = 0; i < request->store_count; i++) {
        const hf__page_store *store = &request->stores[i];
        hf__page_request to = request_of(page, store);
        hf__buf_puts(out, "<li><a ");
        hf__page_href(out, &to, "");
        hf__html(out, "%s%s>%s%s</a></li>",
                 strcmp(store->name, request->store) == 0 ? " aria-current=page" : "",
                 store->is_up ? "" : " class=bad", store->name, store->is_up ? "" : " is down");
    }
    hf__buf_puts(out, "</ul></nav>\n");
}
