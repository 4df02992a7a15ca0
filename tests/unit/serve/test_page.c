#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/serve/page/html.h"
#include "programs/serve/page/page.h"
#include "programs/serve/page/svg.h"
#include "view/scene.h"

static const hf_registry_entry transfer = {.name = "transfer",
                                           .pattern = "Transfer:{a}:{b}",
                                           .owner = "team-payments",
                                           .runbook = "https://runbooks.example/transfer?a=1&b=2",
                                           .purpose = "one transfer at a time"};

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("the page lacks: %s", part);
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("the page has: %s", part);
}

/* What a test makes, and the page that shows it. */
static struct scene *made;
static char *page;
static const hf__page_request plain = {0}; /* every string NULL */

static int begin(void **state)
{
    (void)state;
    made = scene_new();
    made->seen.registry = NULL; /* the page looks into it */
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(page);
    page = NULL;
    scene_free(made);
    return 0;
}

static void show(const hf__page_request *request)
{
    hf__buf out = {0};

    hf__render_page(&made->seen, request, &out);
    assert_false(out.broken);
    free(page);
    page = out.data;
}

static void lock(int64_t key, const char *label, const hf_registry_entry *entry)
{
    hf__seen_lock *added = add_lock(made, label, key);

    added->entry = entry;
    added->name = entry != NULL ? entry->name : "";
}

static size_t party_of(int id, const char *application)
{
    for (size_t i = 0; i < made->seen.party_count; i++)
        if (made->seen.parties[i].id == id)
            return i;
    return add_party(made, application, "app1", id);
}

static void holder(int id, const char *application, int64_t age_ms)
{
    hold(made, party_of(id, application), age_ms);
}

static void waiter(int id, const char *application, int64_t age_ms)
{
    await(made, party_of(id, application), age_ms);
}

static void event(const char *word, int64_t key, const char *label, const char *detail)
{
    add_event(made, (int64_t)made->seen.event_count + 1, word, label, key)->detail = detail;
}

static void shows(const char *part)
{
    assert_has(page, part);
}

static void hides(const char *part)
{
    assert_lacks(page, part);
}

/* A holder with two waiters, one of which has another lock with a waiter of its own. */
static void make_chain(void)
{
    lock(11, "Transfer:a:b", &transfer);
    holder(101, "api", 60000);
    waiter(102, "batch", 9000);
    waiter(103, "psql", 4000);
    lock(12, "night", NULL);
    holder(102, "batch", 61000);
    waiter(104, "report", 3000);
}

static void test_an_empty_snapshot_says_that_nothing_is_wrong(void **state)
{
    (void)state;
    finish(made);
    show(&plain);
    shows("Nothing needs attention.");
    shows("Nobody holds or waits for a lock.");
    shows("Nobody waits.");
    shows("No network is ingested.");
    shows("No event yet.");
}

static void test_nothing_from_outside_becomes_markup(void **state)
{
    static const char evil[] = "<script>alert(1)</script>\"'&\x07\xff</svg>";
    static hf_registry_entry entry = {
        .name = evil, .owner = evil, .purpose = evil, .runbook = evil, .component = evil};
    hf__attention item = {HF__URGENCY_PROBLEM, evil, evil, "javascript:alert(1)", SIZE_MAX};
    hf__seen_network network = {.name = evil, .ingester = evil, .problem = "", .rate = -1};
    hf__seen_table table = {.text = evil, .state = evil, .last_append_ms = 1, .lock = SIZE_MAX};
    hf__page_request request = {.q = evil,
                                .state = evil,
                                .lock = "b:1",
                                .event = evil,
                                .network = evil,
                                .span = evil,
                                .sort = evil,
                                .page = evil,
                                .csrf = evil,
                                .notice = evil,
                                .may_terminate = true,
                                .signed_in = true};

    (void)state;
    lock(1, evil, &entry);
    holder(7, evil, 1);
    waiter(8, evil, 1);
    event(evil, 1, evil, evil);
    finish(made);
    made->seen.problem = made->seen.store = evil;
    made->seen.attention = &item;
    made->seen.attention_count = 1;
    made->seen.networks = &network;
    made->seen.network_count = 1;
    made->seen.tables = &table;
    made->seen.table_count = 1;
    for (int with_q = 0; with_q < 2; with_q++) {
        request.q = request.event = request.network = with_q ? evil : "";
        network.problem = with_q ? evil : "";
        show(&request);
        hides("<script>alert");
        hides("</script>\"");
        hides("\x07");
        hides("\xff");
        hides("javascript:");
        assert_int_equal(count_of(page, "<script"), 1);
    }
}

static void test_the_policy_of_the_page_is_kept(void **state)
{
    hf__page_request request = {.lock = "b:11", .may_terminate = true};

    (void)state;
    make_chain();
    finish(made);
    show(&request);
    hides(" style=");
    hides("<style");
    hides(" onclick=");
    hides("//cdn");
}

static void test_a_huge_label_is_cut(void **state)
{
    enum { HUGE_SIZE = 64 * 1024 };
    char *label = malloc(HUGE_SIZE + 1);
    hf__page_request request = {.lock = "b:1", .may_terminate = true};

    (void)state;
    assert_non_null(label);
    memset(label, '<', HUGE_SIZE);
    label[HUGE_SIZE] = '\0';
    lock(1, label, NULL);
    holder(7, label, 1);
    event("acquired", 1, label, label);
    finish(made);
    show(&request);
    assert_true(strlen(page) < HUGE_SIZE);
    free(label);
}

static void test_an_open_row_shows_runbook_people_history_and_the_form(void **state)
{
    hf__page_request request = {
        .lock = "b:11", .may_terminate = true, .csrf = "c5rf", .q = "api", .sort = "age"};

    (void)state;
    make_chain();
    event("lost", 11, "Transfer:a:b", "no_answer");
    finish(made);
    show(&request);
    shows("href=\"https://runbooks.example/transfer?a=1&amp;b=2\"");
    shows("<h3>History</h3><table");
    shows("action=\"/terminate\"");
    shows("name=\"csrf\" value=\"c5rf\"");
    shows("name=\"party\" value=\"101\"");
    shows("name=\"token\" value=\"1101\"");
    shows("type <code>Transfer:a:b</code>");
    shows("href=\"/?q=api&amp;sort=age#locks\""); /* closes it, and keeps the filters */
    request.may_terminate = false;
    show(&request);
    hides("/terminate");
}

static void test_whoever_ends_a_holder_is_told_what_else_it_loses(void **state)
{
    (void)state;
    make_chain();
    lock(13, "ledger-close", NULL);
    holder(101, "api", 1000);
    finish(made);
    show(&(hf__page_request){.lock = "b:11", .may_terminate = true});
    shows("It loses these, too: <a href=\"/?lock=b:13#lock-b:13\">ledger-close</a>.</p>");
    show(&(hf__page_request){.lock = "b:12", .may_terminate = true});
    shows("End it");
    hides("It loses");
}

static void test_only_web_addresses_become_links(void **state)
{
    static const hf_registry_entry entry = {.name = "x", .runbook = "javascript:alert(1)"};
    hf__page_request request = {.lock = "b:1"};

    (void)state;
    lock(1, "x", &entry);
    holder(7, "a", 1);
    finish(made);
    show(&request);
    shows("<dt>Runbook</dt><dd>javascript:alert(1)</dd>");
}

static void test_the_graph_has_an_edge_for_each_wait_and_each_holder(void **state)
{
    (void)state;
    make_chain();
    finish(made);
    show(&plain);
    shows("data-from=\"party:102\" data-to=\"lock:b:11\"");
    shows("data-from=\"party:103\" data-to=\"lock:b:11\"");
    shows("data-from=\"party:104\" data-to=\"lock:b:12\"");
    shows("data-from=\"lock:b:11\" data-to=\"party:101\"");
    shows("data-from=\"lock:b:12\" data-to=\"party:102\"");
    assert_int_equal(count_of(page, "<path class=\"edge"), 5);
    assert_int_equal(count_of(page, "class=\"node party root\""), 1);
    shows("keeps 3 waiting");
}

static void test_a_deadlock_is_drawn_as_a_cycle(void **state)
{
    (void)state;
    lock(1, "left", NULL);
    holder(11, "a", 10);
    waiter(12, "b", 5);
    lock(2, "right", NULL);
    holder(12, "b", 10);
    waiter(11, "a", 5);
    finish(made);
    show(&plain);
    assert_int_equal(count_of(page, "<path class=\"edge cycle\""), 4);
    assert_int_equal(count_of(page, "<span class=\"tag bad\">deadlock</span>"), 2);
}

static void test_a_lock_whose_holder_is_unknown_still_has_its_waiters(void **state)
{
    (void)state;
    lock(1, "prepared", NULL);
    waiter(12, "b", 5);
    finish(made);
    show(&plain);
    shows("data-from=\"party:12\" data-to=\"lock:b:1\"");
}

static void make_crowd(int locks, int waiters)
{
    for (int i = 0; i < locks; i++) {
        lock(i, "crowded", &transfer);
        holder(1000 + i, "holder", 1000);
        for (int j = 0; j < waiters; j++)
            waiter(100000 + i * waiters + j, "waiter", j);
    }
    finish(made);
}

static void test_a_crowd_is_drawn_by_its_worst_roots(void **state)
{
    hf__graph graph;

    (void)state;
    make_crowd(60, 20);
    assert_true(hf__graph_make(&made->seen, false, &graph));
    assert_true(graph.shown <= HF__GRAPH_PARTIES);
    assert_int_equal(graph.involved, 60 * 21);
    hf__graph_free(&graph);
    show(&plain);
    shows("of 1260 sessions: those behind the worst 50 roots");
    shows("and 12 more");
}

static void test_two_hundred_parties_are_all_drawn(void **state)
{
    hf__graph graph;

    (void)state;
    make_crowd(1, 199);
    assert_true(hf__graph_make(&made->seen, false, &graph));
    assert_int_equal(graph.shown, 200);
    assert_int_equal(graph.link_count, 200);
    hf__graph_free(&graph);
}

static void test_a_picture_folds_a_crowd_but_not_who_keeps_others_waiting(void **state)
{
    hf__graph picture;
    size_t more = 0;

    (void)state;
    lock(1, "crowded", NULL);
    holder(1, "holder", 1000);
    for (int i = 0; i < 50; i++)
        waiter(100 + i, "waiter", 1000 - i);
    lock(2, "behind", NULL);
    holder(149, "waiter", 10); /* the last of them */
    waiter(200, "hidden", 5);
    finish(made);
    assert_true(hf__graph_make(&made->seen, true, &picture));
    for (size_t i = 0; i < picture.count; i++)
        if (picture.nodes[i].kind == HF__NODE_MORE)
            more = picture.nodes[i].index;
    assert_int_equal(picture.shown, 1 + HF__GRAPH_WAITERS + 2);
    assert_int_equal(more, 50 - HF__GRAPH_WAITERS - 1);
    hf__graph_free(&picture);
    show(&plain);
    assert_int_equal(count_of(page, "</span> waits "), 51); /* in the list */
}

struct place {
    double x, y;
};

static struct place place_of(const char *node)
{
    struct place found = {0};
    char wanted[64];

    (void)snprintf(wanted, sizeof wanted, "data-node=\"%s\"", node);
    const char *at = strstr(page, wanted);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(wanted), " x=\"%lf\" y=\"%lf\"", &found.x, &found.y), 2);
    return found;
}

static void test_a_root_is_at_the_left_however_long_its_chain_is(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        lock(i, "link", NULL);
        holder(100 + i, "holder", 10);
        waiter(101 + i, "holder", 5);
    }
    finish(made);
    show(&plain);
    assert_true(place_of("party:100").x < 50);
    assert_true(place_of("party:101").x > place_of("lock:b:0").x);
    assert_true(place_of("lock:b:0").x > place_of("party:100").x);
}

/* It must be seen whole where most people look: 1440 px less the margins of the page. */
static void test_a_chain_of_six_fits_on_a_screen_and_begins_at_its_corner(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        lock(i, "link", NULL);
        holder(100 + i, "holder", 10);
        waiter(101 + i, "holder", 5);
        waiter(200 + i, "crowd", 5);
    }
    finish(made);
    show(&plain);
    assert_true(place_of("party:106").x + 214 < 1300);
    assert_true(place_of("party:100").y < 10);
}

/* The y of the straight part of the way back of a cycle. */
static double way_back(void)
{
    const char *at = strstr(page, "L");
    double x = 0;
    double y = 0;
    char next = 0;

    for (; at != NULL; at = strstr(at + 1, "L"))
        if (sscanf(at, "L%lf %lf%c", &x, &y, &next) == 3 && next == 'C')
            return y;
    fail_msg("no way back");
    return 0;
}

static void test_the_way_back_of_a_cycle_crosses_nobody(void **state)
{
    enum { BOX = 40 };

    (void)state;
    lock(1, "left", NULL);
    holder(11, "a", 10);
    waiter(12, "b", 5);
    waiter(13, "behind", 5);
    lock(2, "right", NULL);
    holder(12, "b", 10);
    waiter(11, "a", 5);
    lock(3, "next", NULL);
    holder(21, "c", 10);
    waiter(22, "d", 5);
    finish(made);
    show(&plain);
    assert_true(way_back() > place_of("party:13").y + BOX);
    assert_true(way_back() < place_of("party:22").y);
}

static void test_whoever_queues_in_front_of_others_is_not_drawn_as_a_holder(void **state)
{
    (void)state;
    lock(1, "x", NULL);
    holder(11, "holder", 10);
    waiter(12, "writer", 5);
    waiter(13, "reader", 4);
    finish(made);
    add_edge(made, 2, 1, 0);
    show(&plain);
    shows("data-from=\"lock:b:1\" data-to=\"party:11\"");
    hides("data-from=\"lock:b:1\" data-to=\"party:12\"");
    assert_int_equal(count_of(page, "<path class=\"edge"), 3);
}

static void test_a_link_leads_to_a_lock_that_the_filter_leaves_out(void **state)
{
    hf__page_request request = {.lock = "b:11", .q = "night", .state = "waiting"};

    (void)state;
    make_chain();
    finish(made);
    show(&request);
    shows("id=\"lock-b:11\" class=\"open\"");
    shows("id=\"lock-b:12\"");
    shows("id=\"more-b:11\"");
    request.q = "no such lock";
    show(&request);
    shows("id=\"more-b:11\"");
    shows("No lock matches the filter.");
}

static void test_attention_leads_to_the_lock_that_it_is_about(void **state)
{
    static hf__attention item = {HF__URGENCY_WARNING, "wait", "it keeps 30 waiting", "#waits", 1};

    (void)state;
    make_chain();
    finish(made);
    made->seen.attention = &item;
    made->seen.attention_count = 1;
    show(&(hf__page_request){.span = "24h"});
    shows("<a href=\"/?lock=b:12&amp;span=24h#lock-b:12\">it keeps 30 waiting</a>");
}

static void test_a_lock_that_is_free_by_now_still_has_its_name_and_history(void **state)
{
    hf__page_request request = {.lock = "b:77"};

    (void)state;
    event("lost", 77, "Transfer:x:y", "no_answer");
    finish(made);
    show(&request);
    shows("Nobody holds or wants <b>Transfer:x:y</b> (b:77) any more.");
    shows("<h3>History</h3><table");
}

static void test_a_crowd_does_not_push_the_way_to_end_its_holder_out_of_sight(void **state)
{
    hf__page_request request = {.lock = "b:1", .may_terminate = true};

    (void)state;
    lock(1, "", NULL);
    holder(1, "holder", 1000);
    for (int i = 0; i < 50; i++)
        waiter(100 + i, "waiter", 1000 - i);
    finish(made);
    show(&request);
    shows("<details id=\"people-b:1\"><summary>39 more</summary>");
    shows("type <code>key 1</code>");
    assert_int_equal(count_of(page, "<th scope=\"row\">waits</th>"), 50);
}

static void test_ten_thousand_locks_come_in_pages(void **state)
{
    hf__page_request request = {.sort = "label", .q = "crowd"};

    (void)state;
    for (int i = 0; i < 10000; i++) {
        lock(i, "crowded", NULL);
        holder(1000 + i, "holder", i);
    }
    finish(made);
    show(&request);
    assert_int_equal(count_of(page, "<tr id=\"lock-b:"), 50);
    shows("href=\"/?q=crowd&amp;sort=label&amp;page=2#locks\">Next</a>");
    assert_true(strlen(page) < 256 * 1024);
    request.page = "200";
    show(&request);
    shows("id=\"lock-b:9999\"");
    hides(">Next</a>");
    request.page = "99999999999999999999999";
    show(&request);
    shows("id=\"lock-b:9999\"");
}

static void test_filters_choose_and_order_the_locks(void **state)
{
    hf__page_request request = {.state = "waiting"};

    (void)state;
    make_chain();
    lock(13, "calm", &transfer);
    holder(200, "quiet", 5);
    lock(42, "", NULL);
    holder(201, "psql", 5);
    finish(made);
    show(&request);
    shows("id=\"lock-b:11\"");
    hides("id=\"lock-b:13\"");
    request.state = "unregistered";
    show(&request);
    shows("id=\"lock-b:12\"");
    hides("id=\"lock-b:11\"");
    request.state = "";
    request.q = "QUIET";
    show(&request);
    shows("id=\"lock-b:13\"");
    hides("id=\"lock-b:12\"");
    request.q = "key 42"; /* as contention links to it */
    show(&request);
    shows("id=\"lock-b:42\"");
    hides("id=\"lock-b:13\"");
    request.q = "";
    request.sort = "label";
    show(&request);
    assert_true(strstr(page, "id=\"lock-b:13\"") > strstr(page, "id=\"lock-b:11\""));
    assert_true(strstr(page, "id=\"lock-b:13\"") < strstr(page, "id=\"lock-b:12\""));
}

static void test_a_gap_is_two_pixels_wide_in_any_range(void **state)
{
    static hf_range coverage[] = {{1, 4999999999}, {5000000001, INT64_MAX - 1}};
    static hf_range gaps[] = {{5000000000, 5000000000}};
    hf__seen_network network = {.name = "n",
                                .coverage = coverage,
                                .coverage_count = 2,
                                .gaps = gaps,
                                .gap_count = 1,
                                .status = {.wanted_from = {true, INT64_MIN}}};
    hf__buf out = {0};

    (void)state;
    hf__svg_coverage(&out, &network);
    assert_has(out.data, "<rect x=\"-1\" width=\"2\" height=\"100%\"/>");
    assert_has(out.data, "1 missing between 5000000000 and 5000000000");
    assert_lacks(out.data, "nan");
    assert_lacks(out.data, "inf");
    assert_int_equal(count_of(out.data, "class=\"gap\""), 1);
    hf__buf_free(&out);
}

static void test_gaps_that_would_overlap_are_one_with_a_count(void **state)
{
    enum { MANY = 20000 };
    hf_range *gaps = malloc(MANY * sizeof *gaps);
    hf_range *coverage = malloc(MANY * sizeof *coverage);
    hf__buf out = {0};

    (void)state;
    assert_non_null(gaps);
    assert_non_null(coverage);
    for (int i = 0; i < MANY; i++) {
        coverage[i] = (hf_range){i * 10 + 1, i * 10 + 9};
        gaps[i] = (hf_range){i * 10 + 10, i * 10 + 10};
    }
    gaps[MANY - 1] = (hf_range){MANY * 20, MANY * 20}; /* far from the others */
    hf__seen_network network = {
        .name = "n", .coverage = coverage, .coverage_count = MANY, .gaps = gaps, .gap_count = MANY};
    hf__svg_coverage(&out, &network);
    assert_has(out.data, "19999 gaps, 19999 missing");
    assert_int_equal(count_of(out.data, "class=\"gap\""), 2);
    assert_true(out.length < 4000);
    hf__buf_free(&out);
    free(gaps);
    free(coverage);
}

static void test_being_ahead_of_the_source_is_no_lag(void **state)
{
    static hf_range coverage[] = {{1, 100}};
    hf__seen_network network = {.name = "testnet",
                                .coverage = coverage,
                                .coverage_count = 1,
                                .lag = {true, -3},
                                .rate = 2.5,
                                .ingester = "ingest on db1 (pid 1)",
                                .problem = "",
                                .status = {.gaps = {true, 0}, .latest = {true, 100}}};

    (void)state;
    finish(made);
    made->seen.networks = &network;
    made->seen.network_count = 1;
    show(&plain);
    shows("none, 3 ahead");
    shows("2.5/s");
    shows("No gap.");
    network.lag.value = INT64_MIN;
    show(&plain);
    shows(" ahead");
}

static void test_contention_says_in_words_what_it_paints(void **state)
{
    hf__heat_cell cells[3] = {{0}, {10, 5, 0, 0}, {10, 10, 12, 4000}};
    hf__heat_row row = {
        .lock = "transfer", .cells = cells, .sum = {20, 15, 12, 4000}, .registered = true};

    (void)state;
    finish(made);
    made->seen.hour = (hf__heat_map){made->seen.taken_ms - 180000, 60000, 3, &row, 1};
    show(&plain);
    shows("held 75 % of the time, at most 12 waiting, longest wait: 4 s");
    shows("<rect class=\"h4\" x=\"2\" width=\"1\" height=\"10\"/>");
}

static void test_events_are_chosen_by_kind(void **state)
{
    hf__page_request request = {.event = "lost"};

    (void)state;
    event("acquired", 1, "first-lock", "");
    event("lost", 2, "second-lock", "no_answer");
    finish(made);
    show(&request);
    shows(">second-lock</a>");
    hides(">first-lock</a>");
    shows("href=\"/#events\">all");
}

static void test_events_come_in_pages_that_keep_their_kind(void **state)
{
    hf__page_request request = {.event = "lost", .events = "2"};
    char label[16];
    static char labels[120][16];

    (void)state;
    for (int i = 0; i < 120; i++) {
        (void)snprintf(labels[i], sizeof labels[i], "lock-%d", i);
        event(i % 2 == 0 ? "lost" : "acquired", i, labels[i], "");
    }
    finish(made);
    show(&request);
    (void)snprintf(label, sizeof label, ">lock-%d<", 100); /* the 51st that was lost */
    shows(label);
    hides(">lock-98<");
    hides(">lock-101<");
    shows("51 to 60 of 60 <a href=\"/?event=lost&amp;events=1#events\">Previous</a>");
    show(&(hf__page_request){.events = "2"});
    shows("Next</a>");
    shows("href=\"/?event=lost#events\"");
}

static void test_a_store_that_is_away_is_said_so(void **state)
{
    (void)state;
    finish(made);
    made->seen.problem = "connection refused";
    made->seen.problem_since_ms = made->seen.taken_ms + 2000;
    show(&plain);
    shows("<b>The store is away</b>");
    shows("connection refused");
}

static size_t offset_of(const char *part)
{
    const char *at = strstr(page, part);

    assert_non_null(at);
    return (size_t)(at - page);
}

static void test_the_page_of_all_stores_has_the_worst_first_and_says_a_thing_once(void **state)
{
    static const hf__findings findings = {0};
    hf__attention wait[12] = {
        {HF__URGENCY_WARNING, "wait", "orders keeps 3 waiting.", "#waits", SIZE_MAX}};
    hf__attention calm[] = {
        {HF__URGENCY_WARNING, "registry", "locks.yaml:3: no owner", "#registry", SIZE_MAX}};
    hf__attention gone[] = {
        {HF__URGENCY_PROBLEM, "store", "The store cannot be read: refused.", "", SIZE_MAX}};
    for (size_t i = 1; i < 12; i++)
        wait[i] = wait[0];
    wait[0] = calm[0];
    const hf__snapshot of_calm = {.taken_ms = 5000,
                                  .store = "",
                                  .problem = "",
                                  .findings = &findings,
                                  .attention = calm,
                                  .attention_count = 1};
    const hf__snapshot of_wait = {.taken_ms = 5000,
                                  .store = "",
                                  .problem = "",
                                  .findings = &findings,
                                  .attention = wait,
                                  .attention_count = 12};
    const hf__snapshot of_gone = {
        .store = "", .problem = "refused", .attention = gone, .attention_count = 1};
    const hf__page_store stores[] = {{"calm", "/stores/calm", true, &of_calm},
                                     {"wait", "/stores/wait", true, &of_wait},
                                     {"gone", "/stores/gone", false, &of_gone}};
    hf__buf out = {0};

    (void)state;
    hf__render_overview(&(hf__page_request){.stores = stores, .store_count = 3, .now_ms = 6000},
                        &out);
    assert_false(out.broken);
    page = out.data;
    assert_true(offset_of("id=\"store-gone\"") < offset_of("id=\"store-wait\""));
    assert_true(offset_of("id=\"store-wait\"") < offset_of("id=\"store-calm\""));
    assert_true(offset_of("The store cannot be read: refused.") < offset_of("orders keeps 3"));
    shows("<a href=\"/stores/wait/#waits\">orders keeps 3 waiting.</a>");
    assert_int_equal(count_of(page, "locks.yaml:3"), 1);
    shows("And 2 more, on the pages of the stores.");
    assert_int_equal(count_of(page, ">?</td>"), 7);
    shows("(1 down) Holdfast: 3 stores");
    hides("id=\"locks\"");
}

static void test_what_was_typed_comes_back_unchanged(void **state)
{
    hf__buf out = {0};

    (void)state;
    hf__html_value(&out, "a\\b\"<\xff");
    assert_string_equal(out.data, "a\\b&quot;&lt;\xEF\xBF\xBD");
    hf__buf_clear(&out);
    hf__html_url(&out, "a b&c=d#e\"\xff");
    assert_string_equal(out.data, "a%20b%26c%3Dd%23e%22%FF");
    hf__buf_free(&out);
}

static void test_printf_for_html_writes_and_escapes(void **state)
{
    hf__buf out = {0};

    (void)state;
    hf__html(&out, "%s|%.5s|%d|%ld|%zu|%u|%.1f|%c|%%", "<a\n>", "123456789", -3, INT64_MIN,
             (size_t)7, 9U, 2.25, '&');
    assert_string_equal(out.data, "&lt;a\\n&gt;|12…|-3|-9223372036854775808|7|9|2.2|&amp;|%");
    hf__buf_clear(&out);
    hf__html_number(&out, -1234567);
    hf__buf_puts(&out, " ");
    hf__html_number(&out, 123456);
    hf__buf_puts(&out, " ");
    hf__html_number(&out, -123);
    assert_string_equal(out.data, "-1\u202f234\u202f567 123\u202f456 -123");
    hf__buf_free(&out);
}

static void test_login_and_errors_are_pages_too(void **state)
{
    hf__buf out = {0};

    (void)state;
    hf__render_login("/base", "c5rf", true, &out);
    assert_has(out.data, "That is not the token.");
    assert_has(out.data, "name=\"csrf\" value=\"c5rf\"");
    hf__buf_clear(&out);
    hf__render_error("", 404, "Not <found>", "Nothing at \"x\".", &out);
    assert_has(out.data, "Not &lt;found&gt;");
    hf__buf_free(&out);
}

static void test_every_asset_has_a_type_and_bytes(void **state)
{
    size_t count = 0;

    (void)state;
    for (const hf__asset *asset = hf__assets; asset->path != NULL; asset++, count++) {
        assert_ptr_equal(strstr(asset->path, "/assets/"), asset->path);
        assert_true(asset->size > 0);
        if (strstr(asset->path, ".js") != NULL)
            assert_true(asset->size < 7000);
    }
    assert_int_equal(count, 3);
}

#define PAGE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(test_an_empty_snapshot_says_that_nothing_is_wrong),
        PAGE_TEST(test_nothing_from_outside_becomes_markup),
        PAGE_TEST(test_the_policy_of_the_page_is_kept),
        PAGE_TEST(test_a_huge_label_is_cut),
        PAGE_TEST(test_an_open_row_shows_runbook_people_history_and_the_form),
        PAGE_TEST(test_whoever_ends_a_holder_is_told_what_else_it_loses),
        PAGE_TEST(test_only_web_addresses_become_links),
        PAGE_TEST(test_the_graph_has_an_edge_for_each_wait_and_each_holder),
        PAGE_TEST(test_a_deadlock_is_drawn_as_a_cycle),
        PAGE_TEST(test_a_lock_whose_holder_is_unknown_still_has_its_waiters),
        PAGE_TEST(test_a_crowd_is_drawn_by_its_worst_roots),
        PAGE_TEST(test_two_hundred_parties_are_all_drawn),
        PAGE_TEST(test_a_picture_folds_a_crowd_but_not_who_keeps_others_waiting),
        PAGE_TEST(test_a_root_is_at_the_left_however_long_its_chain_is),
        PAGE_TEST(test_a_chain_of_six_fits_on_a_screen_and_begins_at_its_corner),
        PAGE_TEST(test_the_way_back_of_a_cycle_crosses_nobody),
        PAGE_TEST(test_whoever_queues_in_front_of_others_is_not_drawn_as_a_holder),
        PAGE_TEST(test_a_link_leads_to_a_lock_that_the_filter_leaves_out),
        PAGE_TEST(test_attention_leads_to_the_lock_that_it_is_about),
        PAGE_TEST(test_a_lock_that_is_free_by_now_still_has_its_name_and_history),
        PAGE_TEST(test_a_crowd_does_not_push_the_way_to_end_its_holder_out_of_sight),
        PAGE_TEST(test_ten_thousand_locks_come_in_pages),
        PAGE_TEST(test_filters_choose_and_order_the_locks),
        cmocka_unit_test(test_a_gap_is_two_pixels_wide_in_any_range),
        cmocka_unit_test(test_gaps_that_would_overlap_are_one_with_a_count),
        PAGE_TEST(test_being_ahead_of_the_source_is_no_lag),
        PAGE_TEST(test_contention_says_in_words_what_it_paints),
        PAGE_TEST(test_events_are_chosen_by_kind),
        PAGE_TEST(test_events_come_in_pages_that_keep_their_kind),
        PAGE_TEST(test_a_store_that_is_away_is_said_so),
        PAGE_TEST(test_the_page_of_all_stores_has_the_worst_first_and_says_a_thing_once),
        cmocka_unit_test(test_what_was_typed_comes_back_unchanged),
        cmocka_unit_test(test_printf_for_html_writes_and_escapes),
        cmocka_unit_test(test_login_and_errors_are_pages_too),
        cmocka_unit_test(test_every_asset_has_a_type_and_bytes),
    };

    return RUN(tests);
}
