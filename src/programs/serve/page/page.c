/* The page around its sections, the form to sign in, and the pages that say what went wrong. */
#include "programs/serve/page/page.h"

#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "programs/serve/page/parts.h"

static void put_head(hf__buf *out, const char *base)
{
    hf__html(out,
             "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<meta name=\"referrer\" content=\"same-origin\">\n"
             "<link rel=\"stylesheet\" href=\"%s/assets/style.css\">\n"
             "<link rel=\"icon\" href=\"%s/assets/favicon.svg\" type=\"image/svg+xml\">\n",
             base, base);
}

static void put_brand(hf__buf *out, const char *base)
{
    hf__html(out,
             "<img src=\"%s/assets/favicon.svg\" alt=\"\" width=\"22\" height=\"22\">"
             "<h1>Holdfast</h1>",
             base);
}

static void put_navigation(hf__buf *out)
{
    static const char *const sections[][2] = {
        {"locks", "Locks"},       {"waits", "Waits"},   {"contention", "Contention"},
        {"ingest", "Ingest"},     {"tables", "Tables"}, {"events", "Events"},
        {"registry", "Registry"},
    };

    hf__buf_puts(out, "<nav aria-label=\"Sections\">");
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        hf__html(out, "<a href=\"#%s\">%s</a>", sections[i][0], sections[i][1]);
    hf__buf_puts(out, "</nav>\n");
}

static void put_sign_out(const hf__page *page)
{
    if (!page->request->signed_in)
        return;
    if (page->request->viewer[0] != '\0')
        hf__html(page->out, "<span class=\"on\">%s</span>", page->request->viewer);
    hf__html(page->out,
             "<form method=\"post\" action=\"%s/logout\"><input type=\"hidden\" name=\"csrf\" "
             "value=\"%s\"><button>Sign out</button></form>",
             page->request->base, page->request->csrf);
}

/* When what is shown was so; of a store that was never read, since when nothing is known. */
static int64_t told_at(const hf__snapshot *seen)
{
    return seen->taken_ms != 0 ? seen->taken_ms : seen->problem_since_ms;
}

static bool is_overview(const hf__page_request *request)
{
    return request->store_count > 0 && request->store[0] == '\0';
}

/* The button needs JavaScript, which shows it; without, there is the link. */
static void put_header(const hf__page *page)
{
    hf__buf *out = page->out;

    hf__buf_puts(out, "<header class=\"top\">\n<div class=\"brand\">");
    put_brand(out, page->request->base);
    if (page->request->store[0] != '\0')
        hf__html(out, "<b>%s</b>", page->request->store);
    hf__html(out, "<span class=\"store\" title=\"the store\">%.200s</span></div>\n",
             page->seen->store);
    if (!is_overview(page->request))
        put_navigation(out);
    hf__html(
        out,
        "<div class=\"live\"><span id=\"updated\"%s data-number=\"%lu\" title=\"read in %ld ms\">"
        "<span class=\"beat\" aria-hidden=\"true\"></span>",
        page->seen->problem[0] != '\0' ? " class=stale" : "", page->seen->number,
        page->seen->took_ms);
    if (page->seen->taken_ms == 0)
        hf__buf_puts(out, "unread since ");
    int64_t at_ms = told_at(page->seen);
    hf__html_time(out, at_ms, at_ms);
    hf__buf_puts(out, HF__PAGE_ZONE
                 "</span>"
                 "<button id=\"pause\" type=\"button\" aria-pressed=\"false\" hidden>Pause"
                 "</button><a id=\"refresh\" ");
    hf__page_href(out, page->request, "");
    hf__buf_puts(out, ">Refresh</a>");
    put_sign_out(page);
    hf__buf_puts(out, "</div>\n</header>\n");
}

/* Announced when it changes, so it holds nothing that changes by itself. */
static void put_status(const hf__page *page)
{
    hf__buf *out = page->out;
    const hf__snapshot *seen = page->seen;

    hf__buf_puts(out, "<div id=\"status\" role=\"status\">");
    if (seen->problem[0] != '\0') {
        hf__html(out, "<p class=\"banner bad\"><b>The store is away</b> since ");
        hf__html_time(out, seen->problem_since_ms, told_at(seen));
        hf__html(out, HF__PAGE_ZONE ": %.600s. ", seen->problem);
        if (seen->taken_ms != 0) {
            hf__buf_puts(out, "What you see is from ");
            hf__html_time(out, seen->taken_ms, seen->taken_ms);
            hf__buf_puts(out, HF__PAGE_ZONE ".</p>");
        } else {
            hf__buf_puts(out, "It was not read since this server started: nothing is known.</p>");
        }
    }
    if (page->request->notice[0] != '\0')
        hf__html(out, "<p class=\"banner %s\">%.600s</p>",
                 page->request->notice_is_error ? "bad" : "good", page->request->notice);
    hf__buf_puts(out,
                 "</div>\n<div id=\"away\" role=\"status\" class=\"banner bad\" hidden></div>\n");
}

static void open_tile(hf__buf *out, const hf__page_request *to, const char *fragment,
                      const char *tone)
{
    hf__buf_puts(out, "<li><a ");
    hf__page_href(out, to, fragment);
    hf__html(out, " class=\"tile %s\"><b>", tone);
}

static void put_tile(hf__buf *out, const hf__page_request *to, const char *fragment, int64_t number,
                     const char *text, const char *tone)
{
    open_tile(out, to, fragment, number > 0 ? tone : "");
    hf__html_number(out, number);
    hf__html(out, "</b> <span>%s</span></a></li>", text);
}

static void put_gap_tile(hf__buf *out, const hf__snapshot *seen, const hf__page_request *to)
{
    open_tile(out, to, "#ingest", seen->gaps > 0 || seen->gaps_unknown ? "bad" : "");
    if (seen->gaps_unknown)
        hf__buf_puts(out, seen->gaps > 0 ? "≥ " : "?");
    if (seen->gaps > 0 || !seen->gaps_unknown)
        hf__html_number(out, (int64_t)seen->gaps);
    hf__buf_puts(out, seen->gaps == 1 ? "</b> <span>gap" : "</b> <span>gaps");
    if (seen->missing_ledgers > 0) {
        hf__buf_puts(out, ", ");
        hf__html_number(out, seen->missing_ledgers);
        hf__buf_puts(out, seen->missing_ledgers == 1 ? " ledger" : " ledgers");
    }
    hf__buf_puts(out, "</span></a></li>");
}

static void put_glance(const hf__page *page)
{
    const hf__snapshot *seen = page->seen;
    hf__buf *out = page->out;
    hf__page_request to = *page->request;

    to.q = to.page = to.lock = to.event = "";
    hf__buf_puts(out,
                 "<section id=\"glance\" aria-labelledby=\"glance-h\">"
                 "<h2 id=\"glance-h\" class=\"unseen\">At a glance</h2>\n<ul class=\"tiles\">");
    to.state = "held";
    put_tile(out, &to, "#locks", (int64_t)seen->held, "held", "");
    to.state = "waiting";
    put_tile(out, &to, "#locks", (int64_t)seen->waiting, "waiting", "warn");
    to.state = "";
    open_tile(out, &to, "#waits", seen->waiting > 0 ? "warn" : "");
    hf__html_duration(out, seen->waiting > 0 ? seen->longest_wait_ms : -1, false);
    hf__buf_puts(out, "</b> <span>longest wait</span></a></li>");
    to.event = "lost";
    if (seen->losses_unknown) {
        open_tile(out, &to, "#events", "warn");
        hf__buf_puts(out, "unknown</b> <span>lost in 24 h</span></a></li>");
    } else {
        put_tile(out, &to, "#events", (int64_t)seen->losses_24h, "lost in 24 h", "bad");
    }
    to.event = "";
    to.state = "unregistered";
    if (seen->registry != NULL)
        put_tile(out, &to, "#locks", (int64_t)seen->unregistered, "unregistered", "warn");
    to.state = "";
    put_gap_tile(out, seen, &to);
    hf__buf_puts(out, "</ul></section>\n");
}

void hf__page_attention_item(const hf__page *page, const hf__attention *item, const char *store)
{
    static const char *const tones[] = {"note", "warn", "bad"};
    static const char *const words[] = {"Note", "Warning", "Problem"};
    const hf__seen_lock *lock =
        item->lock < page->seen->lock_count ? &page->seen->locks[item->lock] : NULL;
    hf__buf *out = page->out;

    hf__html(out, "<li class=\"%s\"><span class=\"word\">%s</span> <span>", tones[item->urgency],
             words[item->urgency]);
    if (store[0] != '\0')
        hf__html(out, "<b>%s</b>: ", store);
    if (lock != NULL) {
        hf__buf_puts(out, "<a ");
        hf__page_lock_href(page, lock->space, lock->key);
    } else if (store[0] != '\0') {
        hf__buf_puts(out, "<a ");
        hf__page_href(out, page->request, item->link);
    } else if (item->link[0] == '#') {
        hf__html(out, "<a href=\"%.1000s\"", item->link);
    }
    if (lock != NULL || store[0] != '\0' || item->link[0] == '#')
        hf__html(out, ">%.600s</a>", item->text);
    else
        hf__html(out, "%.600s", item->text);
    hf__html(out, "</span> <span class=\"topic\">%.40s</span></li>", item->topic);
}

static void put_attention(const hf__page *page)
{
    enum { MOST = 50 };
    const hf__snapshot *seen = page->seen;
    hf__buf *out = page->out;

    hf__buf_puts(out, "<section id=\"attention\" aria-labelledby=\"attention-h\">"
                      "<h2 id=\"attention-h\">Attention</h2>\n");
    if (seen->attention_count == 0) {
        hf__buf_puts(out, "<p class=\"calm\">Nothing needs attention.</p></section>\n");
        return;
    }
    hf__buf_puts(out, "<ul class=\"attention\">");
    for (size_t i = 0; i < seen->attention_count && i < MOST; i++)
        hf__page_attention_item(page, &seen->attention[i], "");
    hf__buf_puts(out, "</ul>");
    if (seen->attention_count > MOST)
        hf__html(out, "<p class=\"note\">And %zu more.</p>", seen->attention_count - MOST);
    hf__buf_puts(out, "</section>\n");
}

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static hf__page_request without_null(const hf__page_request *request)
{
    hf__page_request full = *request;

    full.base = text_or_empty(full.base);
    full.root = text_or_empty(full.root);
    full.store = text_or_empty(full.store);
    full.q = text_or_empty(full.q);
    full.state = text_or_empty(full.state);
    full.lock = text_or_empty(full.lock);
    full.event = text_or_empty(full.event);
    full.network = text_or_empty(full.network);
    full.at = text_or_empty(full.at);
    full.span = text_or_empty(full.span);
    full.sort = text_or_empty(full.sort);
    full.page = text_or_empty(full.page);
    full.events = text_or_empty(full.events);
    full.csrf = text_or_empty(full.csrf);
    full.viewer = text_or_empty(full.viewer);
    full.notice = text_or_empty(full.notice);
    return full;
}

static void put_sections(const hf__page *page)
{
    put_glance(page);
    put_attention(page);
    hf__page_locks(page);
    hf__page_waits(page);
    hf__page_contention(page);
    hf__page_ingest(page);
    hf__page_tables(page);
    hf__page_events(page);
    hf__page_registry(page);
}

static void put_footer(const hf__page *page)
{
    static const struct {
        const char *path, *text;
        bool of_store, of_all;
    } links[] = {
        {"/api/v1/stores", "stores", false, true},
        {"/api/v1/locks", "locks", true, false},
        {"/api/v1/waits", "waits", true, false},
        {"/api/v1/contention", "contention", true, false},
        {"/api/v1/events", "events", true, false},
        {"/api/v1/history", "history", true, false},
        {"/api/v1/ingest", "ingest", true, false},
        {"/api/v1/tables", "tables", true, false},
        {"/api/v1/registry", "registry", true, false},
        {"/api/v1/openapi.json", "OpenAPI", true, true},
        {"/metrics", "metrics", true, true},
        {"/health", "health", true, true},
    };
    bool is_of_all = is_overview(page->request);

    hf__buf_puts(page->out, "</main>\n<footer><p>The same as data:");
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        if (is_of_all ? links[i].of_all : links[i].of_store)
            hf__html(page->out, " <a href=\"%s%s\">%s</a>", page->request->base, links[i].path,
                     links[i].text);
    hf__buf_puts(page->out, "</p></footer>\n</body>\n</html>\n");
}

/* Everything up to the sections; mark stands first in the title: "(2 waiting) ". */
static void put_frame(const hf__page *page, const char *mark)
{
    const hf__page_request *request = page->request;
    hf__buf *out = page->out;

    put_head(out, request->base);
    hf__html(out,
             "<script src=\"%s/assets/app.js\" defer></script>\n<title>%s"
             "Holdfast: %.80s</title>\n</head>\n<body data-refresh=\"%ld\" data-base=\"%s\">\n"
             "<a class=\"skip\" href=\"#main\">Skip to content</a>\n",
             request->base, mark, request->store[0] != '\0' ? request->store : page->seen->store,
             request->refresh_ms, request->base);
    put_header(page);
    put_status(page);
    hf__buf_puts(out, "<main id=\"main\" tabindex=\"-1\">\n");
    hf__page_switch(page);
}

void hf__render_page(const hf__snapshot *snapshot, const hf__page_request *request, hf__buf *out)
{
    hf__page_request full = without_null(request);
    hf__page page = {.seen = snapshot, .request = &full, .out = out};
    char mark[40] = "";

    if (snapshot->waiting > 0)
        (void)snprintf(mark, sizeof mark, "(%zu waiting) ", snapshot->waiting);
    put_frame(&page, mark);
    if (snapshot->taken_ms != 0)
        put_sections(&page);
    put_footer(&page);
}

void hf__render_overview(const hf__page_request *request, hf__buf *out)
{
    hf__page_request full = without_null(request);
    char text[40], mark[40] = "";
    hf__snapshot all = {.store = text, .problem = "", .taken_ms = full.now_ms};
    size_t down = 0;

    for (size_t i = 0; i < full.store_count; i++) {
        all.number += full.stores[i].seen->number;
        down += !full.stores[i].is_up;
    }
    (void)snprintf(text, sizeof text, "%zu stores", full.store_count);
    if (down > 0)
        (void)snprintf(mark, sizeof mark, "(%zu down) ", down);
    hf__page page = {.seen = &all, .request = &full, .out = out};
    put_frame(&page, mark);
    hf__page_stores(&page);
    put_footer(&page);
}

void hf__render_login(const char *base, const char *csrf, bool wrong, hf__buf *out)
{
    put_head(out, base);
    hf__buf_puts(out, "<title>Holdfast: sign in</title>\n</head>\n<body class=\"small\">\n"
                      "<main id=\"main\">\n<div class=\"brand\">");
    put_brand(out, base);
    hf__buf_puts(out, "</div>\n<h2>Sign in</h2>\n");
    if (wrong)
        hf__buf_puts(out, "<p class=\"banner bad\" role=\"alert\" id=\"wrong\">That is not the "
                          "token.</p>\n");
    hf__html(out,
             "<form method=\"post\" action=\"%s/login\" class=\"login\">"
             "<input type=\"hidden\" name=\"csrf\" value=\"%s\">"
             "<label for=\"token\">Token</label> <input id=\"token\" name=\"token\" "
             "type=\"password\" autocomplete=\"current-password\" required autofocus%s>"
             "<button>Sign in</button></form>\n",
             base, text_or_empty(csrf), wrong ? " aria-describedby=wrong" : "");
    hf__buf_puts(out, "<p class=\"note\">It is in the file that <code>holdfast serve "
                      "--token-file</code> was given.</p>\n</main>\n</body>\n</html>\n");
}

void hf__render_error(const char *base, int status, const char *title, const char *text,
                      hf__buf *out)
{
    put_head(out, base);
    hf__html(out,
             "<title>%s</title>\n</head>\n<body class=\"small\">\n<main id=\"main\">\n"
             "<div class=\"brand\">",
             title);
    put_brand(out, base);
    hf__html(out,
             "</div>\n<h2><span class=\"code\">%d</span> %s</h2>\n<p>%s</p>\n"
             "<p><a href=\"%s/\">To the page</a></p>\n</main>\n</body>\n</html>\n",
             status, title, text, base);
}
