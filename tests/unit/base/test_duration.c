#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/time.h"

static void test_the_documented_forms_are_understood(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"0", 0},
        {"0s", 0},
        {"0.0ms", 0},
        {"1", 1000},
        {"1.5", 1500},
        {".5", 500},
        {"2.", 2000},
        {"250ms", 250},
        {"30s", 30000},
        {"5m", 300000},
        {"5min", 300000},
        {"1h", 3600000},
        {"1.25h", 4500000},
        {"2d", 172800000},
        {"0.001", 1},
        {"0.0004", 1},
        {"0.1ms", 1},
        {"0.000000000001d", 1},
        {"1.4ms", 1},
        {"1.6ms", 2},
        {"0.3333333333333333h", 1200000},
        {"007", 7000},
        {"3650d", HF__DURATION_MAX_MS},
        {"315360000", HF__DURATION_MAX_MS},
        {"315360000000ms", HF__DURATION_MAX_MS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hf_error err = {0};
        int64_t ms = -1;
        if (hf__parse_duration(cases[i].text, &ms, &err) != HF_OK || ms != cases[i].ms)
            fail_msg("'%s' became %lld: %s", cases[i].text, (long long)ms, err.message);
    }
}

static void refuse(const char *text, const char *message)
{
    hf_error err = {0};
    int64_t ms = 77;

    assert_int_equal(hf__parse_duration(text, &ms, &err), HF_INVALID);
    assert_int_equal(ms, 77);
    assert_int_equal(err.code, HF_INVALID);
    assert_string_equal(err.message, message);
    assert_non_null(strstr(err.hint, "250ms"));
    assert_int_equal(hf__parse_duration(text, &ms, NULL), HF_INVALID);
}

static void test_negative_times_are_refused(void **state)
{
    (void)state;
    refuse("-1", "a time cannot be negative: '-1'");
    refuse("-0.5s", "a time cannot be negative: '-0.5s'");
}

static void test_absurd_times_are_refused(void **state)
{
    (void)state;
    refuse("3651d", "a time beyond ten years: '3651d'");
    refuse("3650.1d", "a time beyond ten years: '3650.1d'");
    refuse("99999999999999999999999999h", "a time beyond ten years: '99999999999999999999999999h'");
    refuse("315360000001ms", "a time beyond ten years: '315360000001ms'");
}

static void test_what_is_no_time_is_refused(void **state)
{
    (void)state;
    refuse("", "not a time: ''");
    refuse(".", "not a time: '.'");
    refuse("s", "not a time: 's'");
    refuse("5 m", "not a time: '5 m'");
    refuse(" 5m", "not a time: ' 5m'");
    refuse("+5", "not a time: '+5'");
    refuse("1e3", "not a time: '1e3'");
    refuse("0x10", "not a time: '0x10'");
    refuse("inf", "not a time: 'inf'");
    refuse("nan", "not a time: 'nan'");
    refuse("1,5", "not a time: '1,5'");
    refuse("1.5.2", "not a time: '1.5.2'");
    refuse("5M", "not a time: '5M'");
    refuse("5m30s", "not a time: '5m30s'");
    refuse("1\n", "not a time: '1\\n'");
}

static void test_times_are_shown_for_people(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {-5, "0 ms"},
        {0, "0 ms"},
        {350, "350 ms"},
        {999, "999 ms"},
        {1000, "1 s"},
        {12999, "12 s"},
        {60000, "1 min"},
        {12 * 60000 + 59999, "12 min"},
        {3600000, "1 h"},
        {INT64_C(12000000), "3 h 20 min"},
        {INT64_C(86400000), "1 d"},
        {INT64_C(439200000), "5 d 2 h"},
    };
    char out[40];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hf__show_duration(out, sizeof out, cases[i].ms), cases[i].text);
    assert_string_equal(hf__show_duration(out, 4, 12000000), "3 h");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_documented_forms_are_understood),
        cmocka_unit_test(test_negative_times_are_refused),
        cmocka_unit_test(test_absurd_times_are_refused),
        cmocka_unit_test(test_what_is_no_time_is_refused),
        cmocka_unit_test(test_times_are_shown_for_people),
    };
    return RUN(tests);
}
