/* What the open row of a lock shows: facts, runbook, who has it, how to end a holder, history. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "programs/serve/page/parts.h"

enum { PEOPLE_AT_ONCE = 12, PEOPLE = 200, HISTORY = 15 };

static bool is_web_address(const char *text)
{
    return strncasecmp(text, "https://", 8) == 0 || strncasecmp(text, "http://", 7) == 0;
}

static void put_fact(hf__buf *out, const char *title, const char *text)
{
    if (text != NULL && text[0] != '\0')
        hf__html(out, "<div><dt>%s</dt><dd>%s</dd></div>", title, text);
}

static void put_runbook(hf__buf *out, const char *runbook)
{
    if (runbook == NULL || runbook[0] == '\0')
        return;
    if (!is_web_address(runbook)) {
        put_fact(out, "Runbook", runbook);
        return;
    }
    hf__buf_puts(out, "<div><dt>Runbook</dt><dd><a rel=\"noopener noreferrer\" href=\"");
    hf__html_value(out, runbook);
    hf__html(out, "\">%.300s</a></dd></div>", runbook);
}

static void put_facts(const hf__page *page, const hf__seen_lock *lock)
{
    const hf_registry_entry *entry = lock->entry;
    hf__buf *out = page->out;
    char key[HF__REF_ROOM];

    hf__buf_puts(out, "<dl class=\"facts\">");
    put_fact(out, "Label", lock->label);
    if (entry != NULL) {
        put_fact(out, "Name", entry->name);
        put_fact(out, "Purpose", entry->purpose);
        put_runbook(out, entry->runbook);
        put_fact(out, "Owner", entry->owner);
        put_fact(out, "Component", entry->component);
        put_fact(out, "Scope", entry->scope);
        put_fact(out, "Pattern", entry->pattern);
    }
    put_fact(out, "Key", hf__lock_key(key, lock->space, lock->key));
    hf__buf_puts(out, "</dl>");
    if (entry == NULL && page->seen->registry != NULL)
        hf__buf_puts(out, "<p class=\"note\">The registry does not know this lock.</p>");
}

static void put_doing(hf__buf *out, const hf_lock_view *view, const hf__seen_party *party)
{
    bool behind = view->waiting && view->blocked_by[0] != '\0';
    bool has_query = party != NULL && party->query[0] != '\0';

    hf__page_cell(out, "Now", false, !behind && !has_query && view->idle_ms < 0);
    if (behind) {
        hf__html(out, "behind %.120s", view->blocked_by);
    } else if (view->idle_ms >= 0) {
        hf__buf_puts(out, "idle for ");
        hf__html_duration(out, view->idle_ms, false);
    }
    if (has_query)
        hf__html(out, "<code class=\"query\">%.400s</code>", party->query);
    hf__buf_puts(out, "</td>");
}

static void put_person(const hf__page *page, const hf_lock_view *view, const hf__seen_party *party)
{
    hf__buf *out = page->out;

    hf__html(out, "<tr><th scope=\"row\">%s</th>", view->waiting ? "waits" : "holds");
    hf__page_cell(out, "Who", false, false);
    hf__page_who(out, view->application, view->host, view->pid, 0);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "For", true, view->age_ms < 0);
    hf__html_duration(out, view->age_ms, view->age_is_bound);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Mode", false, false);
    hf__buf_puts(out, view->mode == HF_SHARED ? "shared" : "exclusive");
    if (view->slot > 0)
        hf__html(out, ", slot %u", view->slot);
    if (view->session_known)
        hf__html(out, ", %s",
                 view->lifetime == HF_LEASE         ? "lease"
                 : view->lifetime == HF_TRANSACTION ? "transaction"
                                                    : "session");
    if (view->left_ms > 0) {
        hf__buf_puts(out, " with ");
        hf__html_duration(out, view->left_ms, false);
        hf__buf_puts(out, " left");
    }
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Backend", true, view->backend_pid == 0);
    if (view->backend_pid != 0)
        hf__html(out, "%d", view->backend_pid);
    hf__buf_puts(out, "</td>");
    hf__page_cell(out, "Token", true, view->token == 0);
    if (view->token != 0)
        hf__html(out, "%ld", view->token);
    hf__buf_puts(out, "</td>");
    put_doing(out, view, party);
    hf__buf_puts(out, "</tr>");
}

static const hf__seen_party *party_of(const hf__snapshot *seen, size_t view)
{
    size_t party = seen->view_party[view];

    return party < seen->party_count ? &seen->parties[party] : NULL;
}

static void put_some(const hf__page *page, size_t from, size_t to)
{
    hf__buf *out = page->out;

    hf__buf_puts(out, "<table class=\"cards\"><caption class=\"unseen\">"
                      "Holders and waiters of this lock</caption><thead><tr>"
                      "<th scope=\"col\">State</th><th scope=\"col\">Who</th>"
                      "<th scope=\"col\" class=\"num\">For</th><th scope=\"col\">Mode</th>"
                      "<th scope=\"col\" class=\"num\">Backend</th>"
                      "<th scope=\"col\" class=\"num\">Token</th><th scope=\"col\">Now</th>"
                      "</tr></thead><tbody>");
    for (size_t i = from; i < to; i++)
        put_person(page, page->seen->views[i], party_of(page->seen, i));
    hf__buf_puts(out, "</tbody></table>");
}

/* With many waiters most of them are folded away, so that the forms below stay in sight. */
static void put_people(const hf__page *page, const hf__seen_lock *lock)
{
    hf__buf *out = page->out;
    size_t at_once = lock->count < PEOPLE_AT_ONCE ? lock->count : PEOPLE_AT_ONCE;
    size_t shown = lock->count < PEOPLE ? lock->count : PEOPLE;
    char ref[HF__REF_ROOM];

    hf__buf_puts(out, "<h3>Holders and waiters</h3>");
    put_some(page, lock->first, lock->first + at_once);
    if (at_once == lock->count)
        return;
    hf__html(out, "<details id=\"people-%s\"><summary>%zu more</summary>",
             hf__lock_ref(ref, lock->space, lock->key), lock->count - at_once);
    put_some(page, lock->first + at_once, lock->first + shown);
    if (shown < lock->count)
        hf__html(out, "<p class=\"note\">And %zu more who wait.</p>", lock->count - shown);
    hf__buf_puts(out, "</details>");
}

void hf__page_history(const hf__page *page, const char *ref)
{
    const hf__snapshot *seen = page->seen;
    hf__buf *out = page->out;
    char own[HF__REF_ROOM];
    size_t shown = 0;

    hf__buf_puts(out, "<h3>History</h3>");
    for (size_t i = 0; i < seen->event_count && shown < HISTORY; i++) {
        const hf__seen_event *event = &seen->events[i];
        if (strcmp(hf__lock_ref(own, event->space, event->key), ref) != 0)
            continue;
        if (shown++ == 0)
            hf__buf_puts(
                out, "<table class=\"cards events\"><caption class=\"unseen\">Last events of this "
                     "lock</caption><thead><tr><th scope=\"col\">Time</th>"
                     "<th scope=\"col\">Event</th><th scope=\"col\">Who</th>"
                     "<th scope=\"col\" class=\"num\">Waited</th>"
                     "<th scope=\"col\" class=\"num\">Held</th>"
                     "<th scope=\"col\">Detail</th></tr></thead><tbody>");
        hf__page_event_row(page, event, false);
    }
    hf__buf_puts(out, shown > 0           ? "</tbody></table>"
                      : seen->has_records ? "<p class=\"note\">No event of it is recorded.</p>"
                                          : "<p class=\"note\">This store keeps no records.</p>");
}

/*
 * Is this holding lost, too, when that one is ended? Locks are by their session, on a local store
 * by their process; leases of one process may be of one length.
 */
static bool ends_with(const hf__snapshot *seen, const hf_lock_view *other,
                      const hf_lock_view *ended)
{
    if (other->waiting)
        return false;
    if (ended->lifetime == HF_LEASE || seen->local)
        return other->pid == ended->pid &&
               (other->lifetime == HF_LEASE) == (ended->lifetime == HF_LEASE) &&
               strcmp(other->host, ended->host) == 0;
    return other->backend_pid == ended->backend_pid && other->lifetime != HF_LEASE;
}

static bool is_lost_too(const hf__snapshot *seen, const hf__seen_lock *lock,
                        const hf_lock_view *ended)
{
    for (size_t i = lock->first; i < lock->first + lock->holders; i++)
        if (ends_with(seen, seen->views[i], ended))
            return true;
    return false;
}

/* Who is ended loses more than this lock: what else is said beside the button. */
static void put_lost_too(const hf__page *page, const hf__seen_lock *lock, const hf_lock_view *ended)
{
    enum { NAMED = 5 };
    const hf__snapshot *seen = page->seen;
    hf__buf *out = page->out;
    char title[HF__TITLE_ROOM];
    size_t found = 0;

    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *other = &seen->locks[i];
        if (other == lock || !is_lost_too(seen, other, ended) || ++found > NAMED)
            continue;
        hf__buf_puts(out, found == 1 ? "<p class=\"warn\">It loses these, too: " : ", ");
        hf__buf_puts(out, "<a ");
        hf__page_lock_href(page, other->space, other->key);
        hf__buf_puts(out, ">");
        hf__html_value(out, hf__lock_title(title, other));
        hf__buf_puts(out, "</a>");
    }
    if (found > NAMED)
        hf__html(out, " and %zu more", found - NAMED);
    hf__buf_puts(out, found > 0 ? ".</p>" : "");
}

/* The label must be typed, so that nobody ends the wrong holder by a slip. */
static void put_terminate(const hf__page *page, const hf__seen_lock *lock, int party,
                          const hf_lock_view *view)
{
    hf__buf *out = page->out;
    char title[HF__TYPED_ROOM];
    char ref[HF__REF_ROOM];
    char who[24];

    /* Several leases of one lock have no session that could tell them apart. */
    (void)snprintf(who, sizeof who, "%" PRId64, party > 0 ? (int64_t)party : view->token);
    hf__lock_ref(ref, lock->space, lock->key);
    hf__html(out,
             "<form method=\"post\" action=\"%s/terminate\" class=\"end\" id=\"end-%s-%s\">"
             "<input type=\"hidden\" name=\"csrf\" value=\"%s\">"
             "<input type=\"hidden\" name=\"space\" value=\"%s\">"
             "<input type=\"hidden\" name=\"key\" value=\"%ld\">"
             "<input type=\"hidden\" name=\"party\" value=\"%d\">",
             page->request->base, ref, who, page->request->csrf, lock->space == HF_PAIR ? "p" : "b",
             lock->key, party);
    if (view->token > 0)
        hf__html(out, "<input type=\"hidden\" name=\"token\" value=\"%ld\">", view->token);
    hf__html(out, "<label for=\"label-%s-%s\">To end %s", ref, who,
             party > 0 ? "" : "the lease of ");
    hf__page_who(out, view->application, view->host, view->pid, view->backend_pid);
    if (page->request->store[0] != '\0')
        hf__html(out, " in the store <b>%s</b>", page->request->store);
    hf__buf_puts(out, ", type <code>");
    hf__html_value(out, hf__lock_typed(title, page->request->store, lock));
    hf__html(out,
             "</code></label> <input id=\"label-%s-%s\" name=\"label\" autocomplete=\"off\" "
             "autocapitalize=\"off\" spellcheck=\"false\" required>"
             "<button class=\"danger\">End it</button>",
             ref, who);
    put_lost_too(page, lock, view);
    hf__buf_puts(out, "</form>");
}

static void put_endings(const hf__page *page, const hf__seen_lock *lock)
{
    enum { MOST = 20 };
    const hf__snapshot *seen = page->seen;

    if (!page->request->may_terminate || lock->holders == 0)
        return;
    hf__buf_puts(page->out, "<h3>End a holder</h3>");
    for (size_t i = lock->first; i < lock->first + lock->holders && i < lock->first + MOST; i++)
        if (party_of(seen, i) != NULL)
            put_terminate(page, lock, party_of(seen, i)->id, seen->views[i]);
        else if (seen->views[i]->lifetime == HF_LEASE && !seen->local)
            put_terminate(page, lock, 0, seen->views[i]);
}

void hf__page_lock(const hf__page *page, size_t lock)
{
    const hf__seen_lock *seen = &page->seen->locks[lock];
    char ref[HF__REF_ROOM];

    put_facts(page, seen);
    put_people(page, seen);
    put_endings(page, seen);
    hf__page_history(page, hf__lock_ref(ref, seen->space, seen->key));
}
