#include "programs/serve/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static const hf_registry_entry nightly = {.name = "nightly"};

/* ---- hand-made snapshots --------------------------------------------------------------------- */

static struct made {
    hf__snapshot snapshot;
    hf__lock_meter meters[3];
    hf__seen_network networks[2];
    hf__table_meter tables[2];
} made;

static char *text; /* what was rendered last */

static void count_one(hf__histogram *histogram, size_t bucket, double seconds)
{
    histogram->buckets[bucket]++;
    histogram->count++;
    histogram->sum += seconds;
}

static void make_meters(void)
{
    hf__lock_meter *busy = &made.meters[0], *other = &made.meters[2];
    *busy = (hf__lock_meter){.lock = "nightly", .entry = &nightly, .has_histogram = true};
    busy->held[HF_EXCLUSIVE] = 1;
    busy->waiters = 2;
    busy->longest_wait_ms = 1500;
    busy->acquired_ms = 1700000000123;
    busy->outcomes[HF__OUTCOME_acquired] = 7;
    busy->outcomes[HF__OUTCOME_timeout] = 1;
    busy->losses[HF__LOSS_server] = 3;
    busy->exits[HF__EXIT_ok] = 5;
    busy->exits[HF__EXIT_time_limit] = 1;
    count_one(&busy->wait, 0, 0.0005);
    count_one(&busy->wait, 3, 0.05);
    count_one(&busy->wait, HF__HISTOGRAM_BUCKETS, 1000);
    count_one(&busy->hold, 6, 7.25);
    made.meters[1] = (hf__lock_meter){.lock = "quiet", .entry = &nightly};
    *other = (hf__lock_meter){.lock = HF__OTHER};
    other->held[HF_SHARED] = 4;
}

static void make_networks(void)
{
    hf__network_status *status = &made.networks[0].status;
    made.networks[0].name = "pubnet";
    made.networks[0].lag = (hf__maybe){true, -2};
    status->exists = true;
    status->latest = (hf__maybe){true, 52};
    status->oldest = (hf__maybe){true, 2};
    status->gaps = (hf__maybe){true, 1};
    status->missing = 10;
    status->last_success_ms = (hf__maybe){true, 1700000001000};
    status->live_ledgers = (hf__maybe){true, 40};
    status->backfill_ledgers = (hf__maybe){true, 0};
    made.networks[0].problem = "";
    made.networks[1].name = "testnet"; /* of which nothing is known */
    made.networks[1].problem = "this role may not read its tables";
}

static int make(void **state)
{
    (void)state;
    made = (struct made){0};
    make_meters();
    make_networks();
    made.tables[0] = (hf__table_meter){"c1/db.events", 123456};
    made.tables[1] = (hf__table_meter){HF__OTHER, 9};
    made.snapshot = (hf__snapshot){
        .taken_ms = 1700000002500,
        .took_ms = 12,
        .store = "postgresql://db/x",
        .problem = "",
        .meters = made.meters,
        .meter_count = 3,
        .networks = made.networks,
        .network_count = 2,
        .table_meters = made.tables,
        .table_meter_count = 2,
        .registry = (const hf_registry *)&nightly, /* that there is one; not to look into */
        .unregistered = 6,
    };
    return 0;
}

static int forget(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static void render(const hf__snapshot *snapshot, bool openmetrics)
{
    hf__buf out = {0};
    hf__render_metrics(&(hf__metric_store){.name = "", .seen = snapshot}, 1, openmetrics, &out);
    assert_false(out.broken);
    assert_non_null(out.data);
    free(text);
    text = out.data;
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool has_line(const char *line)
{
    size_t size = strlen(line);
    for (const char *at = strstr(text, line); at; at = strstr(at + 1, line))
        if ((at == text || at[-1] == '\n') && at[size] == '\n')
            return true;
    return false;
}

static void expect_lines(const char *const *lines)
{
    for (; *lines; lines++)
        if (!has_line(*lines))
            fail_msg("no line '%s' in\n%s", *lines, text);
}

static size_t count_lines(const char *begin)
{
    size_t count = 0, size = strlen(begin);
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        count += strncmp(at, begin, size) == 0;
    return count;
}

static void expect_promtool(void)
{
    FILE *promtool = popen("promtool check metrics >&2", "w");
    assert_non_null(promtool);
    assert_int_equal(fputs(text, promtool) >= 0, 1);
    assert_int_equal(pclose(promtool), 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_every_number_has_its_name_and_labels(void **state)
{
    static const char *const lines[] = {
        "holdfast_up 1",
        "holdfast_snapshot_timestamp_seconds 1700000002.5",
        "holdfast_refresh_seconds 0.012",
        "holdfast_locks_unregistered 6",
        "holdfast_locks_folded 0",
        "holdfast_lock_held{lock=\"nightly\",mode=\"exclusive\"} 1",
        "holdfast_lock_held{lock=\"nightly\",mode=\"shared\"} 0",
        "holdfast_lock_held{lock=\"_other\",mode=\"shared\"} 4",
        "holdfast_lock_waiters{lock=\"nightly\"} 2",
        "holdfast_lock_longest_wait_seconds{lock=\"nightly\"} 1.5",
        "holdfast_lock_acquired_timestamp_seconds{lock=\"nightly\"} 1700000000.123",
        "holdfast_lock_acquisitions_total{lock=\"nightly\",outcome=\"acquired\"} 7",
        "holdfast_lock_acquisitions_total{lock=\"nightly\",outcome=\"timeout\"} 1",
        "holdfast_lock_losses_total{lock=\"nightly\",reason=\"server\"} 3",
        "holdfast_run_exits_total{lock=\"nightly\",class=\"ok\"} 5",
        "holdfast_run_exits_total{lock=\"nightly\",class=\"time_limit\"} 1",
        "holdfast_ingest_latest_ledger{network=\"pubnet\"} 52",
        "holdfast_ingest_oldest_ledger{network=\"pubnet\"} 2",
        "holdfast_ingest_lag_ledgers{network=\"pubnet\"} -2",
        "holdfast_ingest_gaps{network=\"pubnet\"} 1",
        "holdfast_ingest_readable{network=\"pubnet\"} 1",
        "holdfast_ingest_readable{network=\"testnet\"} 0",
        "holdfast_ingest_missing_ledgers{network=\"pubnet\"} 10",
        "holdfast_ingest_ledgers_total{network=\"pubnet\",phase=\"live\"} 40",
        "holdfast_ingest_ledgers_total{network=\"pubnet\",phase=\"backfill\"} 0",
        "holdfast_ingest_last_success_timestamp_seconds{network=\"pubnet\"} 1700000001.0",
        "holdfast_append_rows_total{table=\"c1/db.events\"} 123456",
        "holdfast_append_rows_total{table=\"_other\"} 9",
        "holdfast_build_info{version=\"" HF_VERSION "\",store=\"postgresql\"} 1",
        NULL,
    };
    (void)state;
    for (int openmetrics = 0; openmetrics < 2; openmetrics++) {
        render(&made.snapshot, openmetrics);
        expect_lines(lines);
    }
}

static void test_a_registered_lock_that_nobody_uses_is_there_with_zeros(void **state)
{
    static const char *const lines[] = {
        "holdfast_lock_held{lock=\"quiet\",mode=\"exclusive\"} 0",
        "holdfast_lock_held{lock=\"quiet\",mode=\"shared\"} 0",
        "holdfast_lock_waiters{lock=\"quiet\"} 0",
        "holdfast_lock_longest_wait_seconds{lock=\"quiet\"} 0",
        "holdfast_lock_acquired_timestamp_seconds{lock=\"quiet\"} 0",
        "holdfast_lock_acquisitions_total{lock=\"quiet\",outcome=\"conflict\"} 0",
        "holdfast_lock_losses_total{lock=\"quiet\",reason=\"no_answer\"} 0",
        "holdfast_run_exits_total{lock=\"quiet\",class=\"failed\"} 0",
        NULL,
    };
    (void)state;
    render(&made.snapshot, false);
    expect_lines(lines);
}

static void test_histograms_are_cumulated_and_only_of_marked_locks(void **state)
{
    static const char *const lines[] = {
        "holdfast_lock_wait_seconds_bucket{lock=\"nightly\",le=\"0.001\"} 1",
        "holdfast_lock_wait_seconds_bucket{lock=\"nightly\",le=\"0.025\"} 1",
        "holdfast_lock_wait_seconds_bucket{lock=\"nightly\",le=\"0.1\"} 2",
        "holdfast_lock_wait_seconds_bucket{lock=\"nightly\",le=\"600.0\"} 2",
        "holdfast_lock_wait_seconds_bucket{lock=\"nightly\",le=\"+Inf\"} 3",
        "holdfast_lock_wait_seconds_sum{lock=\"nightly\"} 1000.0505",
        "holdfast_lock_wait_seconds_count{lock=\"nightly\"} 3",
        "holdfast_lock_hold_seconds_bucket{lock=\"nightly\",le=\"2.5\"} 0",
        "holdfast_lock_hold_seconds_bucket{lock=\"nightly\",le=\"10.0\"} 1",
        "holdfast_lock_hold_seconds_sum{lock=\"nightly\"} 7.25",
        NULL,
    };
    (void)state;
    render(&made.snapshot, false);
    expect_lines(lines);
    assert_int_equal(count_lines("holdfast_lock_wait_seconds_bucket"), HF__HISTOGRAM_BUCKETS + 1);
    assert_null(strstr(text, "seconds_bucket{lock=\"quiet\""));
}

static void test_what_is_not_known_of_a_network_is_left_out(void **state)
{
    (void)state;
    render(&made.snapshot, false);
    const char *only = strstr(text, "testnet"); /* that it could not be read */
    assert_non_null(only);
    assert_null(strstr(only + 1, "testnet"));
}

static void test_families_are_headed_as_each_format_wants_it(void **state)
{
    static const char *const in_text[] = {
        "# TYPE holdfast_lock_losses_total counter",
        "# TYPE holdfast_build_info gauge",
        "# TYPE holdfast_lock_wait_seconds histogram",
        NULL,
    };
    static const char *const in_openmetrics[] = {
        "# TYPE holdfast_lock_losses counter",         "# TYPE holdfast_build info",
        "# TYPE holdfast_lock_wait_seconds histogram", "# UNIT holdfast_lock_wait_seconds seconds",
        "# UNIT holdfast_ingest_lag_ledgers ledgers",  NULL,
    };
    (void)state;
    render(&made.snapshot, false);
    expect_lines(in_text);
    assert_null(strstr(text, "# UNIT"));
    assert_null(strstr(text, "# EOF"));
    render(&made.snapshot, true);
    expect_lines(in_openmetrics);
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
}

static void test_promtool_takes_it(void **state)
{
    (void)state;
    made.tables[0].table = "c\"1/d\\b.\xff";
    render(&made.snapshot, false);
    expect_promtool();
}

static void test_label_values_are_escaped(void **state)
{
    static const char *const lines[] = {
        "holdfast_append_rows_total{table=\"a\\\"b\\\\c\\nd\"} 123456",
        "holdfast_append_rows_total{table=\"caf\xc3\xa9 \xef\xbf\xbd\"} 9",
        NULL,
    };
    (void)state;
    made.tables[0].table = "a\"b\\c\nd";
    made.tables[1].table = "caf\xc3\xa9 \xff";
    render(&made.snapshot, true);
    expect_lines(lines);
}

static void test_a_store_that_is_away_shows(void **state)
{
    (void)state;
    made.snapshot.problem = "PostgreSQL: connection refused";
    made.snapshot.local = true;
    render(&made.snapshot, false);
    assert_true(has_line("holdfast_up 0"));
    assert_true(has_line("holdfast_build_info{version=\"" HF_VERSION "\",store=\"local\"} 1"));
}

static void test_nothing_to_see_is_a_document_too(void **state)
{
    hf__snapshot empty = {.taken_ms = 1, .store = "", .problem = ""};
    (void)state;
    render(&empty, false);
    assert_true(has_line("holdfast_lock_held{lock=\"_other\",mode=\"exclusive\"} 0"));
    expect_promtool();
}

static void test_extremes_are_written_whole(void **state)
{
    static const char *const lines[] = {
        "holdfast_ingest_lag_ledgers{network=\"pubnet\"} -9223372036854775808",
        "holdfast_ingest_latest_ledger{network=\"pubnet\"} 9223372036854775807",
        "holdfast_lock_waiters{lock=\"nightly\"} 18446744073709551615",
        "holdfast_lock_longest_wait_seconds{lock=\"nightly\"} 0",
        "holdfast_lock_wait_seconds_sum{lock=\"nightly\"} 9000000000000.0",
        "holdfast_lock_hold_seconds_sum{lock=\"nightly\"} 0.0",
        NULL,
    };
    (void)state;
    made.networks[0].lag.value = INT64_MIN;
    made.networks[0].status.latest.value = INT64_MAX;
    made.meters[0].waiters = UINT64_MAX;
    made.meters[0].longest_wait_ms = -5;
    made.meters[0].wait.sum = 1e300;
    made.meters[0].hold.sum = -1;
    render(&made.snapshot, false);
    expect_lines(lines);
}

enum { MANY = 2500, SHOWN = 2000 };

static void test_several_stores_share_families_and_an_unread_one_has_no_numbers(void **state)
{
    hf__snapshot unread = {.store = "", .problem = "refused"};
    const hf__metric_store stores[] = {
        {"new", &unread}, {"eu", &made.snapshot}, {"us", &made.snapshot}};
    (void)state;
    for (int openmetrics = 0; openmetrics < 2; openmetrics++) {
        hf__buf out = {0};
        hf__render_metrics(stores, 3, openmetrics, &out);
        assert_false(out.broken);
        free(text);
        text = out.data;
        assert_int_equal(count_lines("# TYPE holdfast_up "), 1);
        assert_int_equal(count_lines("# TYPE holdfast_lock_waiters "), 1);
        assert_true(has_line("holdfast_up{store=\"new\"} 0"));
        assert_true(has_line("holdfast_up{store=\"us\"} 1"));
        assert_int_equal(count_lines("holdfast_lock_waiters{store=\"new\""), 0);
        assert_int_equal(count_lines("holdfast_lock_waiters{store=\"eu\""),
                         count_lines("holdfast_lock_waiters{store=\"us\""));
        assert_true(count_lines("holdfast_lock_waiters{store=\"eu\"") > 0);
        if (!openmetrics)
            expect_promtool();
    }
}

static void test_a_huge_registry_is_summed_up_beyond_a_cap(void **state)
{
    static char names[MANY][16];
    hf__lock_meter *meters = calloc(MANY + 1, sizeof *meters);
    hf__snapshot snapshot = {
        .taken_ms = 1, .store = "", .problem = "", .meters = meters, .meter_count = MANY + 1};
    (void)state;
    assert_non_null(meters);
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "lock-%zu", i);
        meters[i].lock = names[i];
        meters[i].waiters = 1;
        meters[i].acquired_ms = (int64_t)(1000 * (i + 1));
        meters[i].longest_wait_ms = (int64_t)i;
    }
    meters[MANY] = (hf__lock_meter){.lock = HF__OTHER, .waiters = 3};
    render(&snapshot, false);
    assert_int_equal(count_lines("holdfast_lock_waiters{"), SHOWN + 1);
    assert_true(has_line("holdfast_locks_folded 500"));
    assert_true(has_line("holdfast_lock_waiters{lock=\"lock-1999\"} 1"));
    assert_true(has_line("holdfast_lock_waiters{lock=\"_other\"} 503"));
    assert_true(has_line("holdfast_lock_longest_wait_seconds{lock=\"_other\"} 2.499"));
    assert_true(has_line("holdfast_lock_acquired_timestamp_seconds{lock=\"_other\"} 2001.0"));
    free(meters);
}

static void test_a_lock_that_is_called_like_the_rest_makes_no_second_series(void **state)
{
    hf__lock_meter meters[] = {{.lock = "a", .waiters = 1},
                               {.lock = HF__OTHER, .waiters = 2},
                               {.lock = "z", .waiters = 4},
                               {.lock = HF__OTHER, .waiters = 8}};
    hf__snapshot snapshot = {
        .taken_ms = 1, .store = "", .problem = "", .meters = meters, .meter_count = 4};
    (void)state;
    render(&snapshot, false);
    assert_int_equal(count_lines("holdfast_lock_waiters{"), 3);
    assert_true(has_line("holdfast_lock_waiters{lock=\"a\"} 1"));
    assert_true(has_line("holdfast_lock_waiters{lock=\"z\"} 4"));
    assert_true(has_line("holdfast_lock_waiters{lock=\"_other\"} 10"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_number_has_its_name_and_labels),
        TEST(test_a_registered_lock_that_nobody_uses_is_there_with_zeros),
        TEST(test_histograms_are_cumulated_and_only_of_marked_locks),
        TEST(test_what_is_not_known_of_a_network_is_left_out),
        TEST(test_families_are_headed_as_each_format_wants_it),
        TEST(test_promtool_takes_it),
        TEST(test_label_values_are_escaped),
        TEST(test_a_store_that_is_away_shows),
        TEST(test_nothing_to_see_is_a_document_too),
        TEST(test_extremes_are_written_whole),
        TEST(test_several_stores_share_families_and_an_unread_one_has_no_numbers),
        TEST(test_a_huge_registry_is_summed_up_beyond_a_cap),
        TEST(test_a_lock_that_is_called_like_the_rest_makes_no_second_series),
    };
    return RUN(tests);
}
