#include "unit.h"

#include <string.h>

#include "base/time.h"

static bool parse(const char *text, int64_t *unix_us)
{
    return hf__parse_time((hf__slice){text, strlen(text)}, unix_us);
}

static void test_rfc_3339_is_read(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2024-06-01T12:00:00Z", INT64_C(1717243200000000)},
        {"2024-06-01t12:00:00z", INT64_C(1717243200000000)},
        {"2024-06-01 12:00:00Z", INT64_C(1717243200000000)},
        {"2024-06-01T12:00:00.25Z", INT64_C(1717243200250000)},
        {"2024-06-01T12:00:00,25Z", INT64_C(1717243200250000)},
        {"2024-06-01T12:00:00.1234567899Z", INT64_C(1717243200123456)},
        {"2024-06-01T14:00:00+02:00", INT64_C(1717243200000000)},
        {"2024-06-01T05:30:00-06:30", INT64_C(1717243200000000)},
        {"2024-02-29T12:34:56.789012Z", INT64_C(1709210096789012)},
        {"1969-12-31T23:59:59.999999Z", -1},
        {"2016-12-31T23:59:60Z", INT64_C(1483228800000000)},
        {"0001-01-01T00:00:00Z", INT64_C(-62135596800000000)},
        {"9999-12-31T23:59:59.999999Z", HF__TIME_LAST_US},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t us = 42;
        if (!parse(cases[i].text, &us))
            fail_msg("refused: %s", cases[i].text);
        assert_true(us == cases[i].us);
    }
}

static void test_anything_else_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "yesterday",
        "1717243200",
        "2024-06-01",
        "2024-06-01T12:00:00",
        "2024-06-01T12:00Z",
        "2024-6-1T12:00:00Z",
        "2024-06-01T12:00:00.Z",
        "2024-13-01T12:00:00Z",
        "2024-00-01T12:00:00Z",
        "2023-02-29T12:00:00Z",
        "1900-02-29T12:00:00Z",
        "2024-04-31T12:00:00Z",
        "2024-06-01T24:00:00Z",
        "2024-06-01T12:60:00Z",
        "2024-06-01T12:00:61Z",
        "2024-06-01T12:00:00+2",
        "2024-06-01T12:00:00+0200",
        "2024-06-01T12:00:00+24:00",
        "2024-06-01T12:00:00+02:60",
        "2024-06-01T12:00:00+02:0x",
        "2024-06-01T12:00:00Zx",
        " 2024-06-01T12:00:00Z",
        "2024-06-01T12:00:00Z ",
        "0000-06-01T12:00:00Z",
        "9999-12-31T23:59:59-00:01", /* would be in the year 10000 */
        "9999-12-31T23:59:60Z",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t us = 42;
        if (parse(cases[i], &us))
            fail_msg("read: %s", cases[i]);
        assert_int_equal(us, 42);
    }
    assert_false(hf__parse_time((hf__slice){NULL, 0}, &(int64_t){0}));
    assert_false(hf__parse_time((hf__slice){"2024-06-01T12:00:00Z", 19}, &(int64_t){0}));
}

static void test_a_time_is_shown_with_as_many_digits_as_asked_for(void **state)
{
    char out[HF__TIME_SIZE];

    (void)state;
    assert_string_equal(hf__show_time(out, INT64_C(1717243200250999), 0), "2024-06-01T12:00:00Z");
    assert_string_equal(hf__show_time(out, INT64_C(1717243200250999), 3),
                        "2024-06-01T12:00:00.250Z");
    assert_string_equal(hf__show_time(out, INT64_C(1717243200250999), 6),
                        "2024-06-01T12:00:00.250999Z");
    assert_string_equal(hf__show_time(out, -1, 6), "1969-12-31T23:59:59.999999Z");
    assert_string_equal(hf__show_time(out, -1, 0), "1969-12-31T23:59:59Z");
}

static void test_years_that_cannot_be_written_become_the_nearest(void **state)
{
    char out[HF__TIME_SIZE];

    (void)state;
    assert_string_equal(hf__show_time(out, INT64_MAX, 3), "9999-12-31T23:59:59.999Z");
    assert_string_equal(hf__show_time(out, INT64_MIN, 3), "0000-01-01T00:00:00.000Z");
    assert_string_equal(hf__show_time(out, hf__us_from_ms(INT64_MAX), 0), "9999-12-31T23:59:59Z");
    assert_string_equal(hf__show_time(out, hf__us_from_ms(INT64_MIN), 0), "0000-01-01T00:00:00Z");
}

static void test_a_time_that_is_shown_is_read_back(void **state)
{
    static const int64_t cases[] = {
        0, -1, 1, INT64_C(1717243200250999), HF__TIME_LAST_US, INT64_C(-62135596800000000),
    };
    char out[HF__TIME_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t us = 42;
        assert_true(parse(hf__show_time(out, cases[i], 6), &us));
        assert_true(us == cases[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc_3339_is_read),
        cmocka_unit_test(test_anything_else_is_refused),
        cmocka_unit_test(test_a_time_is_shown_with_as_many_digits_as_asked_for),
        cmocka_unit_test(test_years_that_cannot_be_written_become_the_nearest),
        cmocka_unit_test(test_a_time_that_is_shown_is_read_back),
    };
    return RUN(tests);
}
