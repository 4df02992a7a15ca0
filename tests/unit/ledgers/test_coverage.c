#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ledgers/ledgers.h"
#include "unit.h"

/* "100-102,105" as ranges, added in that order. */
static void parse(hf__ranges *ranges, const char *text)
{
    while (*text != '\0') {
        char *end = NULL;
        int64_t from = strtoll(text, &end, 10), to = from;
        if (*end == '-')
            to = strtoll(end + 1, &end, 10);
        assert_true(hf__ranges_add(ranges, from, to));
        text = *end == ',' ? end + 1 : end;
    }
}

static void show(const hf__ranges *ranges, char *out, size_t out_size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < ranges->count; i++)
        used += (size_t)snprintf(out + used, out_size - used, "%s%lld-%lld", i > 0 ? "," : "",
                                 (long long)ranges->items[i].from, (long long)ranges->items[i].to);
}

static void check_gaps(const char *present, int64_t from, int64_t to, const char *expected)
{
    hf__ranges covered = {0}, missing = {0};
    char found[512];
    parse(&covered, present);
    assert_true(hf__ranges_missing(&covered, from, to, &missing));
    show(&missing, found, sizeof found);
    assert_string_equal(found, expected);
    hf__ranges_free(&covered);
    hf__ranges_free(&missing);
}

static void gaps_are_those_of_the_vectors(void **state)
{
    char path[512], line[512];
    int count = 0;
    (void)state;
    (void)snprintf(path, sizeof path, "%s/gaps.tsv", getenv("HOLDFAST_VECTORS"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *window = strchr(line, '\t'), *gaps = NULL, *end = NULL;
        if (line[0] == '#' || window == NULL)
            continue;
        *window++ = '\0';
        gaps = strchr(window, '\t');
        assert_non_null(gaps);
        *gaps++ = '\0';
        gaps[strcspn(gaps, "\n")] = '\0';
        int64_t from = strtoll(window, &end, 10), to = strtoll(end + 1, NULL, 10);
        check_gaps(line, from, to, gaps);
        count++;
    }
    (void)fclose(file);
    assert_true(count >= 6);
}

static void ranges_join_with_the_last_one_that_they_touch(void **state)
{
    hf__ranges ranges = {0};
    char found[512];
    (void)state;
    parse(&ranges, "1-3,4,6,6-9,7,20-30,25");
    show(&ranges, found, sizeof found);
    assert_string_equal(found, "1-4,6-9,20-30");
    hf__ranges_free(&ranges);
}

static void ranges_reach_the_greatest_number(void **state)
{
    hf__ranges ranges = {0}, missing = {0};
    (void)state;
    assert_true(hf__ranges_add(&ranges, INT64_MAX - 1, INT64_MAX));
    assert_true(hf__ranges_add(&ranges, INT64_MAX, INT64_MAX));
    assert_int_equal(ranges.count, 1);
    assert_true(hf__ranges_missing(&ranges, INT64_MIN, INT64_MAX, &missing));
    assert_int_equal(missing.count, 1);
    assert_true(missing.items[0].from == INT64_MIN && missing.items[0].to == INT64_MAX - 2);
    hf__ranges_free(&ranges);
    hf__ranges_free(&missing);
}

static void a_window_that_is_empty_has_no_gaps(void **state)
{
    (void)state;
    check_gaps("", 5, 4, "");
    check_gaps("1-3", 10, 9, "");
}

static void a_window_without_coverage_is_one_gap(void **state)
{
    (void)state;
    check_gaps("", 5, 9, "5-9");
    check_gaps("1-3,20-30", 5, 9, "5-9");
}

/* Against the plainest way to say the same: a flag for each ledger. */
static void gaps_and_coverage_make_up_the_window(void **state)
{
    enum { LEDGERS = 200, ROUNDS = 500 };
    unsigned seed = 7;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        bool there[LEDGERS] = {0};
        hf__ranges covered = {0}, missing = {0};
        for (int i = 0; i < LEDGERS; i++) {
            there[i] = rand_r(&seed) % 3 > 0;
            if (there[i])
                assert_true(hf__ranges_add(&covered, i, i));
        }
        int from = rand_r(&seed) % LEDGERS, to = rand_r(&seed) % LEDGERS;
        assert_true(hf__ranges_missing(&covered, from, to, &missing));
        for (size_t i = 0; i < missing.count; i++)
            for (int64_t at = missing.items[i].from; at <= missing.items[i].to; at++) {
                assert_true(at >= from && at <= to && !there[at]);
                there[at] = true;
            }
        for (int at = from; at <= to; at++)
            assert_true(there[at]);
        hf__ranges_free(&covered);
        hf__ranges_free(&missing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps_are_those_of_the_vectors),
        cmocka_unit_test(ranges_join_with_the_last_one_that_they_touch),
        cmocka_unit_test(ranges_reach_the_greatest_number),
        cmocka_unit_test(a_window_that_is_empty_has_no_gaps),
        cmocka_unit_test(a_window_without_coverage_is_one_gap),
        cmocka_unit_test(gaps_and_coverage_make_up_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
