#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/serve/http.h"
#include "programs/serve/query.h"

/* ---- percent-encoding ------------------------------------------------------------------------ */

static void test_escapes_become_the_bytes_they_stand_for(void **state)
{
    static const struct {
        const char *text, *form, *path;
    } cases[] = {
        {"", "", ""},          {"plain", "plain", "plain"},
        {"a+b", "a b", "a+b"}, {"%2B%25%26%3d", "+%&=", "+%&="},
        {"%c3%bc", "ü", "ü"},  {"%F0%9F%92%A9", "💩", "💩"},
        {"ü", "ü", "ü"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char form[64], path[64];
        (void)snprintf(form, sizeof form, "%s", cases[i].text);
        (void)snprintf(path, sizeof path, "%s", cases[i].text);
        assert_true(hf__percent_decode(form, true));
        assert_true(hf__percent_decode(path, false));
        assert_string_equal(form, cases[i].form);
        assert_string_equal(path, cases[i].path);
    }
}

static void test_what_is_no_text_is_refused(void **state)
{
    static const char *const cases[] = {
        "%",   "%4",  "%zz",    "%4g",       "a%",           "%00",  "%0a",  "%1f",
        "%7f", "%ff", "%c0%af", "%ed%a0%80", "%f4%90%80%80", "\xff", "\x01", "%c3",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", cases[i]);
        assert_false(hf__percent_decode(text, true));
    }
}

/* ---- queries --------------------------------------------------------------------------------- */

static void test_a_query_is_split_into_names_and_values(void **state)
{
    static const char text[] = "a=1&b=&c&&d=x%3Dy=z&%61a=2";
    hf__query query;
    hf__problem problem = {0};

    (void)state;
    assert_true(hf__query_parse(text, strlen(text), &query, &problem));
    assert_int_equal(query.count, 5);
    assert_string_equal(hf__query_find(&query, "a"), "1");
    assert_string_equal(hf__query_find(&query, "b"), "");
    assert_string_equal(hf__query_find(&query, "c"), "");
    assert_string_equal(hf__query_find(&query, "d"), "x=y=z");
    assert_string_equal(hf__query_find(&query, "aa"), "2");
    assert_null(hf__query_find(&query, "e"));
    hf__query_free(&query);
}

static void test_a_query_that_cannot_be_meant_is_refused(void **state)
{
    static const char *const cases[] = {"a=1&a=2", "a=%", "%=1", "a=1&%61=2"};
    char many[HF__QUERY_MAX * 8] = "";
    hf__query query;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf__problem problem = {0};
        assert_false(hf__query_parse(cases[i], strlen(cases[i]), &query, &problem));
        assert_int_equal(problem.status, 400);
        hf__query_free(&query);
    }
    for (int i = 0; i <= HF__QUERY_MAX; i++)
        (void)snprintf(many + strlen(many), 8, "p%d&", i);
    hf__problem problem = {0};
    assert_false(hf__query_parse(many, strlen(many), &query, &problem));
    hf__query_free(&query);
    assert_false(hf__query_parse("a=1\0b", 5, &query, &problem));
    hf__query_free(&query);
}

/* ---- times ----------------------------------------------------------------------------------- */

static void test_times_are_read_as_rfc_3339_or_milliseconds(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"0", 0},
        {"1717243200250", 1717243200250},
        {"-1", -1},
        {"1970-01-01T00:00:00Z", 0},
        {"2024-06-01T12:00:00Z", 1717243200000},
        {"2024-06-01T12:00:00.25Z", 1717243200250},
        {"2024-06-01T12:00:00.123456789z", 1717243200123},
        {"2024-06-01T14:00:00+02:00", 1717243200000},
        {"2024-06-01T05:30:00-06:30", 1717243200000},
        {"2024-06-01 12:00:00Z", 1717243200000},
        {"1969-12-31T23:59:59.9999Z", -1},
        {"253402300799999", 253402300799999},
        {"-62167219200000", -62167219200000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ms = 42;
        assert_true(hf__query_time(cases[i].text, &ms));
        assert_int_equal(ms, cases[i].ms);
    }
}

static void test_what_is_no_time_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "yesterday",
        "2024-06-01",
        "2024-06-01T12:00:00",
        "2024-06-01T12:00:00.Z",
        "2024-13-01T12:00:00Z",
        "2024-06-01T12:00:00+2",
        "2024-06-01T12:00:00+99:00",
        "2024-6-1T12:00:00Z",
        "2024-02-30T12:00:00Z",
        "2024-06-01T12:00:00Zx",
        "99999999999999999999",
        " 0",
        "2024-06-01T12:00:00+02:0x",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ms;
        assert_false(hf__query_time(cases[i], &ms));
    }
}

/* ---- encodings ------------------------------------------------------------------------------- */

static void test_gzip_is_taken_unless_refused(void **state)
{
    (void)state;
    assert_true(hf__takes_gzip("gzip"));
    assert_true(hf__takes_gzip("br, GZIP;q=0.1"));
    assert_true(hf__takes_gzip("gzip ; q=1"));
    assert_false(hf__takes_gzip(NULL));
    assert_false(hf__takes_gzip(""));
    assert_false(hf__takes_gzip("br"));
    assert_false(hf__takes_gzip("gzip;q=0"));
    assert_false(hf__takes_gzip("gzip; q=0.000, br;q=1"));
}

static void test_what_does_not_shrink_stays_as_it_is(void **state)
{
    hf__buf small = {0}, noise = {0};
    uint64_t seed = 1;

    (void)state;
    hf__buf_puts(&small, "small");
    assert_false(hf__gzip(&small));
    assert_string_equal(small.data, "small");
    for (int i = 0; i < 4000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
        char byte = (char)(seed >> 56);
        hf__buf_add(&noise, &byte, 1);
    }
    assert_false(hf__gzip(&noise));
    assert_int_equal(noise.length, 4000);
    hf__buf_free(&small);
    hf__buf_free(&noise);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes_become_the_bytes_they_stand_for),
        cmocka_unit_test(test_what_is_no_text_is_refused),
        cmocka_unit_test(test_a_query_is_split_into_names_and_values),
        cmocka_unit_test(test_a_query_that_cannot_be_meant_is_refused),
        cmocka_unit_test(test_times_are_read_as_rfc_3339_or_milliseconds),
        cmocka_unit_test(test_what_is_no_time_is_refused),
        cmocka_unit_test(test_gzip_is_taken_unless_refused),
        cmocka_unit_test(test_what_does_not_shrink_stays_as_it_is),
    };

    return RUN(tests);
}
