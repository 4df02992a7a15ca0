/* The table of locks: filter, order and pages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/serve/page/parts.h"

enum { ROWS = 50 };

static bool contains(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static bool view_matches(const hf_lock_view *view, const char *q)
{
    return contains(view->application, q) || contains(view->host, q) || contains(view->label, q);
}

static bool matches(const hf__page *page, const hf__seen_lock *lock, const char *q)
{
    char ref[HF__REF_ROOM], title[HF__TITLE_ROOM];

    if (q[0] == '\0' || contains(lock->label, q) || contains(lock->name, q) ||
        contains(hf__lock_title(title, lock), q) ||
        contains(hf__lock_ref(ref, lock->space, lock->key), q) ||
        (lock->entry != NULL && lock->entry->owner != NULL && contains(lock->entry->owner, q)))
        return true;
    for (size_t i = lock->first; i < lock->first + lock->count; i++)
        if (view_matches(page->seen->views[i], q))
            return true;
    return false;
}

static bool has_state(const hf__seen_lock *lock, const char *state)
{
    if (strcmp(state, "held") == 0)
        return lock->holders > 0;
    if (strcmp(state, "waiting") == 0)
        return lock->waiters > 0;
    if (strcmp(state, "unregistered") == 0)
        return lock->name[0] == '\0' && !lock->is_own;
    return true;
}

/* As the snapshot is sorted. */
static int by_wait(const hf__seen_lock *a, const hf__seen_lock *b)
{
    return (a->longest_wait_ms < b->longest_wait_ms) - (a->longest_wait_ms > b->longest_wait_ms);
}

static int by_age(const hf__seen_lock *a, const hf__seen_lock *b)
{
    return (a->held_ms < b->held_ms) - (a->held_ms > b->held_ms);
}

static int by_waiters(const hf__seen_lock *a, const hf__seen_lock *b)
{
    return (a->waiters < b->waiters) - (a->waiters > b->waiters);
}

static int by_label(const hf__seen_lock *a, const hf__seen_lock *b)
{
    char left[HF__TITLE_ROOM];
    char right[HF__TITLE_ROOM];

    return strcmp(hf__lock_title(left, a), hf__lock_title(right, b));
}

typedef int compare_locks(const hf__seen_lock *a, const hf__seen_lock *b);

static bool is_reversed(const char *sort)
{
    return sort[0] == '-';
}

static compare_locks *order_of(const char *sort)
{
    sort += is_reversed(sort);
    return strcmp(sort, "age") == 0       ? by_age
           : strcmp(sort, "label") == 0   ? by_label
           : strcmp(sort, "waiters") == 0 ? by_waiters
                                          : by_wait;
}

struct ordering {
    const hf__seen_lock *locks;
    compare_locks *compare;
    bool is_reversed;
};

static int compare_indexes(const void *left, const void *right, void *arg)
{
    const struct ordering *ordering = arg;
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    int order = ordering->compare(&ordering->locks[a], &ordering->locks[b]);

    if (order == 0)
        return (a > b) - (a < b);
    return ordering->is_reversed ? -order : order;
}

/* The locks to show, in order; the caller frees them. NULL, and a broken page, without memory. */
static size_t *choose(const hf__page *page, size_t *count)
{
    const hf__snapshot *seen = page->seen;
    const char *sort = page->request->sort;
    struct ordering ordering = {seen->locks, order_of(sort), is_reversed(sort)};
    size_t *chosen = malloc((seen->lock_count + 1) * sizeof *chosen);

    *count = 0;
    if (chosen == NULL) {
        page->out->broken = true;
        return NULL;
    }
    for (size_t i = 0; i < seen->lock_count; i++)
        if (has_state(&seen->locks[i], page->request->state) &&
            matches(page, &seen->locks[i], page->request->q))
            chosen[(*count)++] = i;
    if (sort[0] != '\0') /* the snapshot is in the usual order already */
        qsort_r(chosen, *count, sizeof *chosen, compare_indexes, &ordering);
    return chosen;
}

static void put_option(hf__buf *out, const char *value, const char *text, const char *chosen)
{
    hf__html(out, "<option value=\"%s\"", value);
    hf__html(out, "%s>%s</option>", strcmp(value, chosen) == 0 ? " selected" : "", text);
}

static void put_form(const hf__page *page)
{
    const hf__page_request *request = page->request;
    hf__buf *out = page->out;

    hf__html(out,
             "<form class=\"filter\" role=\"search\" aria-label=\"Locks\" action=\"%s/#locks\">"
             "<span class=\"field\"><label for=\"q\">Find</label><input id=\"q\" name=\"q\" "
             "type=\"search\" "
             "autocomplete=\"off\" placeholder=\"label, holder, host\" value=\"",
             request->base);
    hf__html_value(out, request->q);
    hf__buf_puts(out, "\"></span><span class=\"field\"><label for=\"state\">State</label><select "
                      "id=\"state\" name=\"state\">");
    put_option(out, "", "any", request->state);
    put_option(out, "held", "held", request->state);
    put_option(out, "waiting", "waited for", request->state);
    put_option(out, "unregistered", "unregistered", request->state);
    hf__buf_puts(out, "</select></span>");
    hf__page_hidden(out, request, "q state page");
    hf__buf_puts(out, "<button>Filter</button>");
    if (request->q[0] != '\0' || request->state[0] != '\0') {
        hf__page_request to = *request;
        to.q = to.state = to.page = "";
        hf__buf_puts(out, "<a class=\"clear\" ");
        hf__page_href(out, &to, "#locks");
        hf__buf_puts(out, ">Show all</a>");
    }
    hf__buf_puts(out, "</form>\n");
}

/* The other way round, where it is the order already; the usual order has no word. */
static const char *next_order(const char *now, const char *sort, char out[16])
{
    bool turns = strcmp(now + is_reversed(now), sort) == 0 && !is_reversed(now);

    (void)snprintf(out, 16, "%s%s", turns ? "-" : "", sort);
    return strcmp(out, "wait") == 0 ? "" : out;
}

static void put_head_cell(const hf__page *page, const char *title, const char *sort,
                          const char *style)
{
    const char *now = page->request->sort[0] != '\0' ? page->request->sort : "wait";
    hf__page_request to = *page->request;
    hf__buf *out = page->out;
    char order[16];

    hf__html(out, "<th scope=\"col\" class=\"%s\"", style);
    if (sort == NULL) {
        hf__html(out, ">%s</th>", title);
        return;
    }
    if (strcmp(now + is_reversed(now), sort) == 0)
        hf__html(out, " aria-sort=\"%s\"",
                 (strcmp(sort, "label") == 0) != is_reversed(now) ? "ascending" : "descending");
    to.sort = next_order(now, sort, order);
    to.page = "";
    hf__buf_puts(out, "><a ");
    hf__page_href(out, &to, "#locks");
    hf__html(out, ">%s</a></th>", title);
}

static void put_head(const hf__page *page)
{
    hf__buf *out = page->out;

    hf__buf_puts(out,
                 "<table class=\"cards locks\"><caption class=\"unseen\">Locks that are held or "
                 "waited for</caption><thead><tr>");
    put_head_cell(page, "Lock", "label", "");
    put_head_cell(page, "Holder", NULL, "");
    put_head_cell(page, "Held for", "age", "num");
    put_head_cell(page, "Waiters", "waiters", "num");
    put_head_cell(page, "Longest wait", "wait", "num");
    put_head_cell(page, "Owner", NULL, "");
    put_head_cell(page, "Mode", NULL, "");
    put_head_cell(page, "Token", NULL, "num");
    hf__buf_puts(out, "</tr></thead>\n<tbody>");
}

static void put_holder(const hf__page *page, const hf__seen_lock *lock)
{
    const hf_lock_view *view = page->seen->views[lock->first];
    hf__buf *out = page->out;

    hf__page_cell(out, "Holder", false, false);
    if (lock->holders == 0) {
        hf__buf_puts(out, "<span class=\"none\">nobody</span></td>");
        return;
    }
    hf__page_who(out, view->application, view->host, view->pid, view->backend_pid);
    if (lock->holders > 1)
        hf__html(out, " <span class=\"tag\">+%zu more</span>", lock->holders - 1);
    hf__buf_puts(out, "</td>");
}

/* The cells after the holder. */
static void put_numbers(const hf__page *page, const hf__seen_lock *lock)
{
    const hf_lock_view *view = page->seen->views[lock->first];
    const char *owner = lock->entry != NULL ? lock->entry->owner : NULL;
    int64_t token = view->waiting ? 0 : view->token;
    hf__buf *out = page->out;

    hf__page_cell(out, "Held for", true, lock->held_ms < 0);
    hf__html_duration(out, lock->held_ms, lock->held_is_bound);
    hf__html(out, "</td><td class=\"num%s\" data-label=\"Waiters\">",
             lock->waiters > 0 ? " warn" : " zero");
    hf__html_number(out, (int64_t)lock->waiters);
    hf__html(out, "</td><td class=\"num%s\" data-label=\"Longest wait\">",
             lock->waiters > 0 ? " warn" : " zero");
    hf__html_duration(out, lock->longest_wait_ms, false);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Owner", false, owner == NULL);
    hf__html(out, "%.80s</td>", owner != NULL ? owner : "–");
    hf__page_cell(out, "Mode", false, view->mode == HF_EXCLUSIVE);
    hf__html(out, "%s</td>", view->mode == HF_SHARED ? "shared" : "exclusive");
    hf__page_cell(out, "Token", true, token == 0);
    if (token != 0)
        hf__html(out, "%ld</td>", token);
    else
        hf__buf_puts(out, "–</td>");
}

static bool is_open(const hf__page *page, const hf__seen_lock *lock)
{
    char ref[HF__REF_ROOM];

    return strcmp(page->request->lock, hf__lock_ref(ref, lock->space, lock->key)) == 0;
}

static void put_title(const hf__page *page, const hf__seen_lock *lock, bool open)
{
    char title[HF__TITLE_ROOM];
    hf__page_request closed = *page->request;
    hf__buf *out = page->out;

    hf__html(out, "<th scope=\"row\"><a class=\"opener\" aria-expanded=\"%s\" ",
             open ? "true" : "false");
    closed.lock = "";
    if (open)
        hf__page_href(out, &closed, "#locks");
    else
        hf__page_lock_href(page, lock->space, lock->key);
    /* hf__lock_title has escaped what cannot be seen: only the markup is left. */
    hf__buf_puts(out, ">");
    hf__html_value(out, hf__lock_title(title, lock));
    hf__buf_puts(out, "</a>");
    if (lock->known_as[0] != '\0')
        hf__html(out, " <span class=\"tag\" title=\"by its well-known key\">%.80s?</span>",
                 lock->known_as);
    if (lock->name[0] == '\0' && !lock->is_own && page->seen->registry != NULL)
        hf__buf_puts(out, " <span class=\"tag warn\">unregistered</span>");
    else if (lock->name[0] != '\0' && lock->label[0] != '\0' &&
             strcmp(lock->name, lock->label) != 0)
        hf__html(out, " <span class=\"tag\">%.80s</span>", lock->name);
    hf__buf_puts(out, "</th>");
}

static void put_row(const hf__page *page, size_t index)
{
    const hf__seen_lock *lock = &page->seen->locks[index];
    char ref[HF__REF_ROOM];
    bool open = is_open(page, lock);
    const char *style = open ? "open" : lock->waiters > 0 ? "contended" : "";

    hf__html(page->out, "\n<tr id=\"lock-%s\" class=\"%s\">",
             hf__lock_ref(ref, lock->space, lock->key), style);
    put_title(page, lock, open);
    put_holder(page, lock);
    put_numbers(page, lock);
    hf__buf_puts(page->out, "</tr>");
    if (open) {
        hf__html(page->out, "\n<tr id=\"more-%s\" class=\"more\"><td colspan=\"8\">", ref);
        hf__page_lock(page, index);
        hf__buf_puts(page->out, "</td></tr>");
    }
}

/* The lock whose row is open. SIZE_MAX: there is none, or it is free by now. */
static size_t find_open(const hf__page *page)
{
    for (size_t i = 0; page->request->lock[0] != '\0' && i < page->seen->lock_count; i++)
        if (is_open(page, &page->seen->locks[i]))
            return i;
    return SIZE_MAX;
}

/* An open lock is shown even if it is on another page or filtered out, because links lead to it. */
static void put_table(const hf__page *page, const size_t *chosen, size_t count, size_t open)
{
    size_t at = hf__page_index(page->request->page, ROWS, count);
    size_t end = (at + 1) * ROWS < count ? (at + 1) * ROWS : count;
    bool listed = open == SIZE_MAX;

    put_head(page);
    for (size_t i = at * ROWS; i < end; i++)
        listed |= chosen[i] == open;
    if (!listed)
        put_row(page, open);
    for (size_t i = at * ROWS; i < end; i++)
        put_row(page, chosen[i]);
    hf__buf_puts(page->out, "</tbody></table>\n");
    hf__page_pages(page, "locks", ROWS, at, count);
}

/* A lock that is free is named as in its last event. */
static void put_name_of_free(const hf__page *page, const char *ref)
{
    char own[HF__REF_ROOM];

    for (size_t i = 0; i < page->seen->event_count; i++) {
        const hf__seen_event *event = &page->seen->events[i];
        if (event->label[0] == '\0' ||
            strcmp(hf__lock_ref(own, event->space, event->key), ref) != 0)
            continue;
        hf__html(page->out, "<b>%.200s</b> (%.40s)", event->label, ref);
        return;
    }
    hf__html(page->out, "<b>%.40s</b>", ref);
}

/* An open lock that is free by now has no row: its history is shown by itself. */
static void put_open_but_free(const hf__page *page)
{
    const char *ref = page->request->lock;

    hf__html(page->out, "<div class=\"free\" id=\"lock-%.40s\"><p>Nobody holds or wants ", ref);
    put_name_of_free(page, ref);
    hf__buf_puts(page->out, " any more.</p>");
    hf__page_history(page, ref);
    hf__buf_puts(page->out, "</div>");
}

void hf__page_locks(const hf__page *page)
{
    hf__buf *out = page->out;
    size_t count = 0;
    size_t *chosen = choose(page, &count);
    size_t open = find_open(page);

    hf__buf_puts(out, "<section id=\"locks\" aria-labelledby=\"locks-h\">\n<div class=\"bar\">"
                      "<h2 id=\"locks-h\">Locks <span class=\"count\">");
    hf__html_number(out, (int64_t)count);
    if (count != page->seen->lock_count)
        hf__html(out, " of %zu", page->seen->lock_count);
    hf__buf_puts(out, "</span></h2>\n");
    put_form(page);
    hf__buf_puts(out, "</div>\n");
    if (open == SIZE_MAX && page->request->lock[0] != '\0')
        put_open_but_free(page);
    if (count > 0 || open != SIZE_MAX)
        put_table(page, chosen, count, open);
    if (count == 0)
        hf__html(out, "<p class=\"calm\">%s</p>",
                 page->seen->lock_count == 0 ? "Nobody holds or waits for a lock."
                                             : "No lock matches the filter.");
    hf__buf_puts(out, "</section>\n");
    free(chosen);
}
