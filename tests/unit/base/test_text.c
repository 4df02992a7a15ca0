#include "unit.h"

#include <string.h>

#include "base/text.h"

static void shows(const char *label, size_t size, const char *wanted)
{
    char out[256];

    assert_string_equal(hf__show(out, sizeof out, label, size), wanted);
}

static void test_plain_text_is_shown_as_it_is(void **state)
{
    (void)state;
    shows("", 0, "");
    shows("Transfer:acc1:acc2", 18, "Transfer:acc1:acc2");
    shows("Zürich 東京 🔒", strlen("Zürich 東京 🔒"), "Zürich 東京 🔒");
}

static void test_what_could_deceive_is_escaped(void **state)
{
    (void)state;
    shows("a\nb\tc\rd", 7, "a\\nb\\tc\\rd");
    shows("\x07\x1b[31m\x7f", 7, "\\x07\\x1b[31m\\x7f");
    shows("a\0b", 3, "a\\x00b");
    shows("back\\slash", 10, "back\\\\slash");
    shows("\xff\xfe", 2, "\\xff\\xfe");
    shows("\xc2\x85", 2, "\\xc2\\x85");
    shows("\xe2\x80\xae"
          "gpj",
          6, "\\xe2\\x80\\xaegpj");
    shows("\xe6\x9d", 2, "\\xe6\\x9d");
}

static void test_long_text_is_cut_at_a_character(void **state)
{
    char out[12];

    (void)state;
    assert_string_equal(hf__show(out, sizeof out, "12345678901", 11), "12345678901");
    assert_string_equal(hf__show(out, sizeof out, "123456789012", 12), "12345678…");
    assert_string_equal(hf__show(out, sizeof out, "東京東京", 12), "東京…");
    assert_string_equal(hf__show(out, sizeof out, "1234567\n890", 11), "1234567…");
}

static void test_the_smallest_rooms_are_respected(void **state)
{
    char out[8] = "";

    (void)state;
    for (size_t room = 1; room < sizeof out; room++) {
        memset(out, 'X', sizeof out);
        hf__show(out, room, "\xff\xff\xff", 3);
        assert_true(strlen(out) < room);
        for (size_t i = room; i < sizeof out; i++)
            assert_int_equal(out[i], 'X');
    }
    assert_ptr_equal(hf__show(out, 0, "a", 1), out);
}

static void test_utf8_is_judged_strictly(void **state)
{
    static const char *const good[] = {"",
                                       "a",
                                       "\x7f",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2\x61",
                                      "\xe0\x9f\xbf",
                                      "\xe0\xa0",
                                      "\xed\xa0\x80",
                                      "\xed\xbf\xbf",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf0\x90\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "a\xfe"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(hf__utf8_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(hf__utf8_valid(bad[i], strlen(bad[i])));
}

static void test_decoding_moves_behind_the_character(void **state)
{
    const unsigned char text[] = "aü東🔒\xff!";
    const int32_t points[] = {'a', 0xFC, 0x6771, 0x1F512, -1, '!'};
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        assert_int_equal(hf__utf8_next(text, sizeof text - 1, &at), points[i]);
    assert_int_equal(at, sizeof text - 1);
}

static void test_encoding_is_what_decoding_reads(void **state)
{
    static const uint32_t points[] = {1,      'a',    0x7F,   0x80,    0x7FF,   0x800,
                                      0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F512, 0x10FFFF};
    char bytes[4];

    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        size_t size = hf__utf8_write(bytes, points[i]);
        size_t at = 0;
        assert_int_equal(hf__utf8_next((const unsigned char *)bytes, size, &at), points[i]);
        assert_int_equal(at, size);
    }
}

static void test_integers_use_their_whole_range(void **state)
{
    int64_t value = 0;

    (void)state;
    assert_int_equal(
        hf__parse_int64("9223372036854775807", "the key", INT64_MIN, INT64_MAX, &value, NULL),
        HF_OK);
    assert_true(value == INT64_MAX);
    assert_int_equal(
        hf__parse_int64("-9223372036854775808", "the key", INT64_MIN, INT64_MAX, &value, NULL),
        HF_OK);
    assert_true(value == INT64_MIN);
    assert_int_equal(hf__parse_int64("-0007", "n", -7, 7, &value, NULL), HF_OK);
    assert_int_equal(value, -7);
}

static void refuse(const char *text, const char *message)
{
    hf_error err = {0};
    int64_t value = 77;

    assert_int_equal(hf__parse_int64(text, "the number of slots", 1, 4095, &value, &err),
                     HF_INVALID);
    assert_string_equal(err.message, message);
    assert_string_equal(err.hint, "give a decimal number from 1 to 4095");
    assert_int_equal(value, 77);
}

static void test_what_is_no_integer_is_refused(void **state)
{
    (void)state;
    refuse("", "the number of slots is not a whole number: ''");
    refuse("-", "the number of slots is not a whole number: '-'");
    refuse("+1", "the number of slots is not a whole number: '+1'");
    refuse(" 1", "the number of slots is not a whole number: ' 1'");
    refuse("1 ", "the number of slots is not a whole number: '1 '");
    refuse("1.0", "the number of slots is not a whole number: '1.0'");
    refuse("0x1", "the number of slots is not a whole number: '0x1'");
    refuse("0", "the number of slots is out of range: '0'");
    refuse("4096", "the number of slots is out of range: '4096'");
    refuse("9223372036854775808", "the number of slots is out of range: '9223372036854775808'");
}

static void test_a_slice_is_compared_whole(void **state)
{
    const char *text = "ledger";

    (void)state;
    assert_true(hf__slice_is((hf__slice){text, 6}, "ledger"));
    assert_true(hf__slice_is((hf__slice){text, 4}, "ledg"));
    assert_true(hf__slice_is((hf__slice){text, 0}, ""));
    assert_false(hf__slice_is((hf__slice){text, 5}, "ledger"));
    assert_false(hf__slice_is((hf__slice){text, 6}, "ledge"));
    assert_false(hf__slice_is((hf__slice){text, 6}, "Ledger"));
    assert_false(hf__slice_is((hf__slice){"a\0b", 3}, "a"));
    assert_false(hf__slice_is((hf__slice){NULL, 0}, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_text_is_shown_as_it_is),
        cmocka_unit_test(test_what_could_deceive_is_escaped),
        cmocka_unit_test(test_long_text_is_cut_at_a_character),
        cmocka_unit_test(test_the_smallest_rooms_are_respected),
        cmocka_unit_test(test_utf8_is_judged_strictly),
        cmocka_unit_test(test_decoding_moves_behind_the_character),
        cmocka_unit_test(test_encoding_is_what_decoding_reads),
        cmocka_unit_test(test_integers_use_their_whole_range),
        cmocka_unit_test(test_what_is_no_integer_is_refused),
        cmocka_unit_test(test_a_slice_is_compared_whole),
    };
    return RUN(tests);
}
