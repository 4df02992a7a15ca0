#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

/* From memory of exactly that size, so that a sanitizer sees a read behind the end. */
static hf_status parse_bytes(const char *text, size_t size, hf_error *err)
{
    hf__json_value value;
    char *copy = malloc(size > 0 ? size : 1);

    assert_non_null(copy);
    memcpy(copy, text, size);
    hf_status status = hf__json_parse(copy, size, &value, err);
    free(copy);
    return status;
}

static void accept(const char *text)
{
    hf_error err = {0};

    if (parse_bytes(text, strlen(text), &err) != HF_OK)
        fail_msg("%s: %s", text, err.message);
}

static void refuse_bytes(const char *text, size_t size, const char *message)
{
    hf_error err = {0};

    if (parse_bytes(text, size, &err) != HF_BAD_DATA)
        fail_msg("accepted: %s", text);
    if (strstr(err.message, message) == NULL)
        fail_msg("%s: '%s' has no '%s'", text, err.message, message);
}

static void refuse(const char *text, const char *message)
{
    refuse_bytes(text, strlen(text), message);
}

static hf__json_value parsed(const char *text)
{
    hf__json_value value;

    assert_int_equal(hf__json_parse(text, strlen(text), &value, NULL), HF_OK);
    return value;
}

static void assert_slice(hf__slice slice, const char *text)
{
    if (!hf__slice_is(slice, text))
        fail_msg("'%.*s' is not '%s'", (int)slice.size, slice.text, text);
}

static void test_what_the_grammar_allows_is_accepted(void **state)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1",
        "10",
        "1.5",
        "0.0e-7",
        "1E+2",
        "123456789e999999",
        "\"\"",
        "\"a\"",
        "[]",
        "{}",
        " [ ] ",
        "\t{\n}\r\n",
        "[1,2]",
        "[[],{},[[]]]",
        "{\"a\":1,\"a\":2}",
        "{ \"a\" : [ 1 , { \"b\" : null } ] , \"\" : true }",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0000\\u00e9\\uFFFF\"",
        "\"\\ud83d\\ude00\"",
        "\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"",
        "\"\x7F\"",
        "{\"longer than eight bytes\":\"and so is this, with a \\\" in it\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        accept(texts[i]);
}

static void test_what_the_grammar_forbids_is_refused(void **state)
{
    (void)state;
    refuse("", "at byte 1: there is nothing");
    refuse("  ", "there is nothing");
    refuse("nul", "no JSON value");
    refuse("True", "no JSON value");
    refuse("'a'", "no JSON value");
    refuse("NaN", "no JSON value");
    refuse("-Infinity", "a digit is missing");
    refuse("1 2", "at byte 3: something follows");
    refuse("{}}", "something follows");
    refuse("[1,2", "the text ends in an array");
    refuse("[1,]", "no JSON value");
    refuse("[,1]", "no JSON value");
    refuse("[1 2]", "a comma or ] is missing");
    refuse("[1}", "a comma or ] is missing");
    refuse("[", "a value is missing");
    refuse("{", "the text ends in an object");
    refuse("{\"a\":1", "the text ends in an object");
    refuse("{\"a\"}", "a colon is missing");
    refuse("{\"a\":}", "no JSON value");
    refuse("{\"a\":1,}", "a key in quotes");
    refuse("{a:1}", "at byte 2: a key in quotes");
    refuse("{1:1}", "a key in quotes");
    refuse("{\"a\":1 \"b\":2}", "a comma or } is missing");
    refuse("[1]//", "something follows");
}

static void test_numbers_are_read_strictly(void **state)
{
    static const char *const texts[] = {"01",  "-01",  "1.", ".5",    "+1",  "1e",    "1e+",
                                        "0x1", "1.e1", "-",  "1_000", "--1", "1.5.5", "1,5"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse(texts[i], "invalid JSON at byte");
}

static void test_strings_must_be_well_formed(void **state)
{
    (void)state;
    refuse("\"abc", "the text ends in a string");
    refuse("\"abc\\", "the text ends in a string");
    refuse("\"abc\\\"", "the text ends in a string");
    refuse("\"a\nb\"", "at byte 3: a control character");
    refuse("\"a\tb\"", "a control character");
    refuse_bytes("\"a\0b\"", 5, "a control character");
    refuse_bytes("{}\0", 3, "something follows");
    refuse("\"\\x41\"", "no such escape");
    refuse("\"\\u12\"", "four hexadecimal digits");
    refuse("\"\\u12g4\"", "four hexadecimal digits");
    refuse("\"\\ud83d\"", "first half of a surrogate pair");
    refuse("\"\\ud83dabc\"", "first half of a surrogate pair");
    refuse("\"\\ud83d\\u0041\"", "first half of a surrogate pair");
    refuse("\"\\ud83d\\ud83d\"", "first half of a surrogate pair");
    refuse("\"\\ude00\"", "second half of a surrogate pair");
}

static void test_invalid_utf8_is_refused_in_values_and_keys(void **state)
{
    static const char *const texts[] = {
        "\"\x80\"",
        "\"\xC0\xAF\"",
        "\"\xE0\x80\xAF\"",
        "\"\xED\xA0\x80\"",
        "\"\xF5\x80\x80\x80\"",
        "\"\xF4\x90\x80\x80\"",
        "\"\xE2\x82\"",
        "\"\xFF\"",
        "{\"\xC3\":1}",
        "\"12345678\xC3\"",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse(texts[i], "invalid UTF-8");
    refuse("\xEF\xBB\xBF{}", "no JSON value");
}

/* The eight bytes that are looked at together begin anywhere in a string. */
static void test_a_bad_byte_is_found_wherever_it_stands(void **state)
{
    static const char bad[] = {'\0', '\x1F', '\n', '\x80', '\xFF', '"', '\\'};
    char text[42];

    (void)state;
    for (size_t size = 2; size <= 40; size++) {
        for (size_t at = 1; at + 1 < size; at++) {
            for (size_t i = 0; i < sizeof bad; i++) {
                memset(text, 'x', size);
                text[0] = text[size - 1] = '"';
                text[at] = bad[i];
                assert_int_equal(parse_bytes(text, size, NULL), HF_BAD_DATA);
                text[at] = '!';
                assert_int_equal(parse_bytes(text, size, NULL), HF_OK);
            }
        }
    }
}

static void test_depth_is_bounded(void **state)
{
    enum { MOST = 1000 };
    char text[2 * MOST + 2];

    (void)state;
    memset(text, '[', sizeof text / 2);
    memset(text + sizeof text / 2, ']', sizeof text / 2);
    assert_int_equal(parse_bytes(text + 1, sizeof text - 2, NULL), HF_OK);
    refuse_bytes(text, sizeof text, "more than 1000 levels");
}

static void test_every_cut_of_a_text_is_refused(void **state)
{
    static const char text[] = "{\"a\":[1,-2.5e3,\"x\\u00e9\\ud83d\\ude00\xC3\xA9\",true,null],"
                               "\"b\":{\"c\":{}},\"d\":\"0123456789\"}";

    (void)state;
    accept(text);
    for (size_t size = 0; size < sizeof text - 1; size++)
        assert_int_equal(parse_bytes(text, size, NULL), HF_BAD_DATA);
}

static void test_a_value_is_a_slice_of_the_text(void **state)
{
    (void)state;
    assert_int_equal(parsed(" {\"a\": 1} ").kind, HF__JSON_OBJECT);
    assert_slice(parsed(" {\"a\": 1} ").text, "{\"a\": 1}");
    assert_int_equal(parsed("[1, 2]").kind, HF__JSON_ARRAY);
    assert_slice(parsed("[1, 2]").text, "[1, 2]");
    assert_int_equal(parsed(" -1.5 ").kind, HF__JSON_NUMBER);
    assert_slice(parsed(" -1.5 ").text, "-1.5");
    assert_int_equal(parsed("true").kind, HF__JSON_BOOLEAN);
    assert_int_equal(parsed("null").kind, HF__JSON_NULL);
    assert_int_equal(parsed("\"a\"").kind, HF__JSON_STRING);
    assert_slice(parsed("\"a b\"").text, "a b");
    assert_false(parsed("\"a b\"").escaped);
    assert_slice(parsed("\"a\\\"b\"").text, "a\\\"b");
    assert_true(parsed("\"a\\\"b\"").escaped);
}

static void test_members_and_items_come_in_their_order(void **state)
{
    hf__json_value whole =
        parsed("{ \"a\" : [1 , \"]\\\"}\", {\"x\":[]} ] ,\"b\":{}, \"c\\n\":-7 }");
    hf__json_value list;
    hf__json_value value;
    hf__json_walk walk;
    hf__slice key;

    (void)state;
    hf__json_walk_begin(&walk, &whole);
    assert_true(hf__json_walk_next(&walk, &key, &list));
    assert_slice(key, "a");
    assert_slice(list.text, "[1 , \"]\\\"}\", {\"x\":[]} ]");
    assert_true(hf__json_walk_next(&walk, &key, &value));
    assert_slice(key, "b");
    assert_slice(value.text, "{}");
    assert_true(hf__json_walk_next(&walk, &key, &value));
    assert_slice(key, "c\\n");
    assert_slice(value.text, "-7");
    assert_false(hf__json_walk_next(&walk, &key, &value));

    hf__json_walk_begin(&walk, &list);
    assert_true(hf__json_walk_next(&walk, &key, &value));
    assert_null(key.text);
    assert_slice(value.text, "1");
    assert_true(hf__json_walk_next(&walk, &key, &value));
    assert_slice(value.text, "]\\\"}");
    assert_true(value.escaped);
    assert_true(hf__json_walk_next(&walk, NULL, &value));
    assert_slice(value.text, "{\"x\":[]}");
    assert_false(hf__json_walk_next(&walk, &key, &value));
}

static void test_nothing_is_in_what_has_no_members(void **state)
{
    static const char *const texts[] = {"{}", "[ ]", "\"a\"", "12", "null"};
    hf__json_value value;
    hf__json_walk walk;
    hf__slice key;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        hf__json_value whole = parsed(texts[i]);
        hf__json_walk_begin(&walk, &whole);
        assert_false(hf__json_walk_next(&walk, &key, &value));
        assert_false(hf__json_get(&whole, "a", &value));
    }
}

static void test_of_a_repeated_key_the_last_counts(void **state)
{
    hf__json_value whole = parsed("{\"a\":1,\"b\":2,\"a\":3,\"ab\":4}");
    hf__json_value value;

    (void)state;
    assert_true(hf__json_get(&whole, "a", &value));
    assert_slice(value.text, "3");
    assert_false(hf__json_get(&whole, "c", &value));
    whole = parsed("[\"a\",1]");
    assert_false(hf__json_get(&whole, "a", &value));
}

static bool integer(const char *text, bool strings, int64_t low, int64_t high, int64_t *number)
{
    hf__json_value value = parsed(text);

    return hf__json_integer(&value, strings, low, high, number);
}

static void test_integers_are_whole_and_within_their_bounds(void **state)
{
    int64_t number = 0;

    (void)state;
    assert_true(integer("42", false, 1, 100, &number));
    assert_int_equal(number, 42);
    assert_true(integer("9223372036854775807", false, INT64_MIN, INT64_MAX, &number));
    assert_true(number == INT64_MAX);
    assert_true(integer("-9223372036854775808", false, INT64_MIN, INT64_MAX, &number));
    assert_true(number == INT64_MIN);
    assert_true(integer("\"17\"", true, 1, 100, &number));
    assert_int_equal(number, 17);
    assert_false(integer("\"17\"", false, 1, 100, &number));
    assert_false(integer("101", false, 1, 100, &number));
    assert_false(integer("0", false, 1, 100, &number));
    assert_false(integer("1.0", false, 1, 100, &number));
    assert_false(integer("1e1", false, 1, 100, &number));
    assert_false(integer("9223372036854775808", false, INT64_MIN, INT64_MAX, &number));
    assert_false(integer("99999999999999999999999", false, INT64_MIN, INT64_MAX, &number));
    assert_false(integer("\"\"", true, 0, 100, &number));
    assert_false(integer("\"-\"", true, -100, 100, &number));
    assert_false(integer("\" 1\"", true, 0, 100, &number));
    assert_false(integer("\"1a\"", true, 0, 100, &number));
    assert_false(integer("true", true, 0, 100, &number));
    assert_false(integer("[1]", true, 0, 100, &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_grammar_allows_is_accepted),
        cmocka_unit_test(test_what_the_grammar_forbids_is_refused),
        cmocka_unit_test(test_numbers_are_read_strictly),
        cmocka_unit_test(test_strings_must_be_well_formed),
        cmocka_unit_test(test_invalid_utf8_is_refused_in_values_and_keys),
        cmocka_unit_test(test_a_bad_byte_is_found_wherever_it_stands),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_every_cut_of_a_text_is_refused),
        cmocka_unit_test(test_a_value_is_a_slice_of_the_text),
        cmocka_unit_test(test_members_and_items_come_in_their_order),
        cmocka_unit_test(test_nothing_is_in_what_has_no_members),
        cmocka_unit_test(test_of_a_repeated_key_the_last_counts),
        cmocka_unit_test(test_integers_are_whole_and_within_their_bounds),
    };
    return RUN(tests);
}
