#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/patterns/automaton.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static hf__part regex(const char *text)
{
    return (hf__part){text, strlen(text), true};
}

static hf__part plain(const char *text)
{
    return (hf__part){text, strlen(text), false};
}

static hf__language *build(const hf__part *parts, size_t count)
{
    hf__language *language = NULL;
    hf_error err = {0};
    size_t bad = 0;

    if (hf__language_build(parts, count, &language, &bad, &err) != HF_OK)
        fail_msg("%.*s: %s", (int)parts[bad].size, parts[bad].text, err.message);
    return language;
}

static hf__language *build_regex(const char *text)
{
    hf__part part = regex(text);

    return build(&part, 1);
}

/* Asks the table and the simulation, which must agree. */
static bool has(const hf__language *language, const char *text, size_t size)
{
    bool found = false;
    bool simulated = false;

    assert_int_equal(hf__language_has(language, text, size, &found, NULL), HF_OK);
    assert_int_equal(hf__automaton_run(&language->automaton, text, size, &simulated), HF_OK);
    assert_int_equal(found, simulated);
    return found;
}

/* ---- What is a word ---- */

/* yes and no are lists, one word after another, ended by "END". */
static void check_words(const char *expression, const char *const *yes, const char *const *no)
{
    hf__language *language = build_regex(expression);

    for (; strcmp(*yes, "END") != 0; yes++)
        if (!has(language, *yes, strlen(*yes)))
            fail_msg("%s has not '%s'", expression, *yes);
    for (; strcmp(*no, "END") != 0; no++)
        if (has(language, *no, strlen(*no)))
            fail_msg("%s has '%s'", expression, *no);
    hf__language_free(language);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, "END"})
#define NONE ((const char *const[]){"END"})

static void test_an_expression_ends_at_its_size(void **state)
{
    static const char *const behind[] = {"a|b", "ab", "a{2}", "a)", "a*"};

    (void)state;
    for (size_t i = 0; i < COUNT(behind); i++) {
        hf__part part = {behind[i], 1, true};
        hf__language *language = build(&part, 1);
        assert_true(has(language, "a", 1));
        assert_false(has(language, "b", 1) || has(language, "ab", 2) || has(language, "aa", 2));
        hf__language_free(language);
    }
}

static void test_an_expression_matches_the_whole_value(void **state)
{
    (void)state;
    check_words("abc", WORDS("abc"), WORDS("", "ab", "abcd", "xabc", "abc\n"));
    check_words("a|bc", WORDS("a", "bc"), WORDS("ac", "abc", ""));
    check_words("", WORDS(""), WORDS("a"));
    check_words("()", WORDS(""), WORDS("a"));
    check_words("a|", WORDS("a", ""), WORDS("aa"));
    check_words("(|a|)b", WORDS("b", "ab"), WORDS("", "aab"));
    check_words("東京|Zürich", WORDS("東京", "Zürich"), WORDS("東", "Zurich"));
}

static void test_repetitions(void **state)
{
    (void)state;
    check_words("a*", WORDS("", "a", "aaaa"), WORDS("b", "ab"));
    check_words("a+", WORDS("a", "aaaa"), WORDS("", "b"));
    check_words("a?", WORDS("", "a"), WORDS("aa"));
    check_words("a{2}", WORDS("aa"), WORDS("a", "aaa"));
    check_words("a{2,}", WORDS("aa", "aaaaa"), WORDS("a", ""));
    check_words("a{1,3}", WORDS("a", "aa", "aaa"), WORDS("", "aaaa"));
    check_words("a{0,2}", WORDS("", "a", "aa"), WORDS("aaa"));
    check_words("a{0}b", WORDS("b"), WORDS("ab"));
    check_words("(ab|c){2,3}", WORDS("abab", "cab", "ccc"), WORDS("ab", "cccc", "aab"));
    check_words("(a*)*", WORDS("", "a", "aaa"), WORDS("b"));
    check_words("(a*)+b", WORDS("b", "aab"), WORDS("a"));
    check_words("((a?){3}b){2}", WORDS("bb", "aaabab"), WORDS("aaaabb", "b"));
    check_words("(){1000}", WORDS(""), WORDS("a"));
}

static void test_lazy_repetitions_are_the_same_language(void **state)
{
    (void)state;
    check_words("a*?b+?c??d{1,2}?", WORDS("bd", "aabbcdd"), WORDS("acd"));
}

static void test_classes(void **state)
{
    (void)state;
    check_words("[a-c]", WORDS("a", "b", "c"), WORDS("d", "-", ""));
    check_words("[^a-c]", WORDS("d", "\n", "ä"), WORDS("a", "", "dd"));
    check_words("[]a]", WORDS("]", "a"), WORDS("[", ""));
    check_words("[^]a]", WORDS("b"), WORDS("]", "a"));
    check_words("[a-]", WORDS("a", "-"), WORDS("b"));
    check_words("[-a]", WORDS("a", "-"), WORDS("b"));
    check_words("[a\\-z]", WORDS("a", "-", "z"), WORDS("b"));
    check_words("[a-c-e]", WORDS("b", "-", "e"), WORDS("d"));
    check_words("[[a]", WORDS("[", "a"), WORDS("]"));
    check_words("[[:a]", WORDS("[", ":", "a"), WORDS("b"));
    check_words("[\\]\\\\^]", WORDS("]", "\\", "^"), WORDS("["));
    check_words("[.*+?(){}|$]", WORDS(".", "*", "(", "$"), WORDS("a"));
    check_words("[\\d_\\s]", WORDS("5", "_", "\t"), WORDS("a"));
    check_words("[\\D]", WORDS("a"), WORDS("5"));
    check_words("[ä-ü]", WORDS("ö"), WORDS("z", "à", "ý"));
    check_words("a]}", WORDS("a]}"), NONE);
}

static void test_posix_classes(void **state)
{
    (void)state;
    check_words("[[:alpha:]_]", WORDS("x", "Q", "_"), WORDS("1", "ä"));
    check_words("[[:digit:][:upper:]]", WORDS("1", "Q"), WORDS("q"));
    check_words("[[:^digit:]]", WORDS("a", "ä"), WORDS("1"));
    check_words("[^[:space:]]", WORDS("a"), WORDS(" ", "\v"));
    check_words("[[:xdigit:]]{2}", WORDS("fF", "09"), WORDS("fg"));
    check_words("[[:punct:]]", WORDS("!", "_", "~"), WORDS("a", " "));
    check_words("[[:word:]]+", WORDS("a_9"), WORDS("a-"));
}

static void test_escapes(void **state)
{
    (void)state;
    check_words("\\d\\w\\s", WORDS("1_ ", "9a\n"),
                WORDS("a1 ", "1- ",
                      "\xD9\xA1"
                      "a "));
    check_words("\\D\\W\\S", WORDS("a-x", "ä/1"), WORDS("1-x", "aax", "a- "));
    check_words("\\t\\n\\r\\f\\v\\a\\e", WORDS("\t\n\r\f\v\a\x1B"), WORDS("tnrfvae"));
    check_words("\\x41\\x{e4}\\x{1F512}\\u00e4\\u{2603}", WORDS("Aä🔒ä☃"), NONE);
    check_words("\\.\\*\\(\\)\\[\\{\\\\\\^\\$\\|\\/\\-\\_\\ ", WORDS(".*()[{\\^$|/-_ "), NONE);
    check_words("\\ä", WORDS("ä"), NONE);
}

static void test_groups_of_every_kind_are_groups(void **state)
{
    (void)state;
    check_words("(a)(?:b)(?<year>c)(?P<_m1>d)", WORDS("abcd"), WORDS("abc"));
}

static void test_a_nul_is_a_character(void **state)
{
    hf__part part = {"a\0b", 3, true};
    hf__language *language = build(&part, 1);

    (void)state;
    assert_true(has(language, "a\0b", 3));
    assert_false(has(language, "a", 1));
    hf__language_free(language);
    language = build_regex("[\\0]x\\x00");
    assert_true(has(language, "\0x\0", 3));
    assert_false(has(language, "0x0", 3));
    hf__language_free(language);
}

static void test_a_dot_is_anything_but_a_newline(void **state)
{
    (void)state;
    check_words(".", WORDS("a", "\r", "ä", "🔒", "\xff", "\x80"), WORDS("", "\n", "ab"));
    check_words("..", WORDS("\xC3("), WORDS("ä"));
}

static void test_bytes_that_are_no_utf8_are_characters_of_negated_classes(void **state)
{
    (void)state;
    check_words("[^:]", WORDS("\xff", "\xC3", "\xED"), WORDS(":", "\xED\xA0\x80"));
    check_words("\\S\\D\\W", WORDS("\xff\xfe\xfd"), NONE);
    check_words("[\\x{80}-\\x{10FFFF}]", WORDS("\xC2\x80"), WORDS("\x80", "\xff"));
    check_words("[\\x{D000}-\\x{E000}]", WORDS("\xEE\x80\x80"), WORDS("\xED\xA0\x80"));
}

static void test_a_class_may_be_empty(void **state)
{
    (void)state;
    check_words("[^\\s\\S]", NONE, WORDS("", "a", "\xff"));
    check_words("a|[^\\d\\D]b", WORDS("a"), WORDS("b", "ab"));
}

static void test_parts_follow_each_other(void **state)
{
    const hf__part parts[] = {plain("a|b."), regex("x|y"), plain(""), regex("\\d{2}")};
    hf__language *language = build(parts, COUNT(parts));

    (void)state;
    assert_true(has(language, "a|b.x12", 7));
    assert_true(has(language, "a|b.y99", 7));
    assert_false(has(language, "a|b.12", 6));
    assert_false(has(language, "bzx12", 5));
    hf__language_free(language);
    language = build(NULL, 0);
    assert_true(has(language, "", 0));
    assert_false(has(language, "a", 1));
    hf__language_free(language);
}

/* ---- What is refused ---- */

struct refusal {
    const char *expression;
    int position;
    const char *message; /* what it says, in part */
};

static void check_refused(const struct refusal *refusal, hf_status wanted)
{
    const hf__part parts[] = {plain("ä:"), regex(refusal->expression)};
    hf__language *language = NULL;
    hf_error err = {0};
    size_t bad = 0;
    hf_status status = hf__language_build(parts, COUNT(parts), &language, &bad, &err);

    if (status != wanted || strstr(err.message, refusal->message) == NULL ||
        err.position != refusal->position)
        fail_msg("%s: %s at %d: %s", refusal->expression, hf_status_name(status), err.position,
                 err.message);
    assert_null(language);
    assert_int_equal(bad, 1);
    assert_int_equal(err.code, wanted);
    assert_string_not_equal(err.hint, "");
}

static void check_all_refused(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_refused(&refusals[i], HF_INVALID);
}

static void test_what_is_not_regular_is_refused_by_name(void **state)
{
    static const struct refusal refusals[] = {
        {"ab(?=c)", 3, "lookahead is not allowed in a placeholder: (?= at character 3"},
        {"ä(?!c)", 2, "negative lookahead is not allowed in a placeholder: (?!"},
        {"(?<=a)b", 1, "lookbehind is not allowed in a placeholder: (?<="},
        {"(?<!a)b", 1, "negative lookbehind"},
        {"(a)\\1", 4, "a backreference is not allowed in a placeholder: \\\\1"},
        {"(?<n>a)\\k<n>", 8, "a backreference"},
        {"(?P<n>a)(?P=n)", 9, "a backreference"},
        {"(a)\\g{1}", 4, "a backreference"},
        {"a++", 2, "a possessive repetition is not allowed in a placeholder: ++"},
        {"ab*+", 3, "a possessive repetition"},
        {"a?+", 2, "a possessive repetition"},
        {"a{2,3}+", 2, "a possessive repetition is not allowed in a placeholder: {2,3}+"},
        {"(?>a)", 1, "an atomic group"},
        {"(?i)a", 1, "an inline flag"},
        {"(?i:a)", 1, "an inline flag"},
        {"(?-i)a", 1, "an inline flag"},
        {"(?(1)a|b)", 1, "a conditional"},
        {"(a(?R)?)", 3, "recursion"},
        {"(a(?1)?)", 3, "recursion"},
        {"(a(?-1)?)", 3, "recursion"},
        {"(?1", 1, "recursion"},
        {"(?P>n)", 1, "recursion"},
        {"(?&n)", 1, "recursion"},
        {"(?#c)", 1, "a comment"},
        {"(?|a|b)", 1, "a branch reset"},
        {"(?'n'a)", 1, "a group named with '"},
        {"(?C1)", 1, "a callout"},
        {"(*FAIL)", 1, "a verb"},
    };

    (void)state;
    check_all_refused(refusals, COUNT(refusals));
}

static void test_anchors_are_refused_and_said_to_be_needless(void **state)
{
    static const struct refusal refusals[] = {
        {"^a", 1, "an anchor is not allowed in a placeholder: ^"},
        {"a$", 2, "an anchor is not allowed in a placeholder: $"},
        {"\\ba", 1, "an anchor"},
        {"a\\B", 2, "an anchor"},
        {"\\Aa", 1, "an anchor"},
        {"a\\z", 2, "an anchor"},
        {"a\\Z", 2, "an anchor"},
        {"\\Ga", 1, "an anchor"},
    };
    hf_error err = {0};
    hf__language *language = NULL;
    hf__part part = regex("a$");
    size_t bad = 0;

    (void)state;
    check_all_refused(refusals, COUNT(refusals));
    assert_int_equal(hf__language_build(&part, 1, &language, &bad, &err), HF_INVALID);
    assert_non_null(strstr(err.hint, "a placeholder always matches the whole value"));
}

static void test_escapes_that_mean_different_things_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"\\p{L}", 1, "a Unicode property"},
        {"[\\P{L}]", 2, "a Unicode property"},
        {"\\Qa\\E", 1, "quoting"},
        {"\\y", 1, "an unknown escape is not allowed in a placeholder: \\\\y"},
        {"\\h", 1, "an unknown escape"},
        {"\\R", 1, "an unknown escape"},
        {"[\\b]", 2, "an unknown escape"},
        {"[\\1]", 2, "an unknown escape"},
        {"\\012", 1, "an octal escape"},
        {"\\x4", 1, "a code point is not well-formed"},
        {"\\x{}", 1, "a code point is not well-formed"},
        {"\\x{41", 1, "a code point is not well-formed"},
        {"\\u123", 1, "a code point is not well-formed"},
        {"a\\x{110000}", 2, "there is no character U+110000"},
        {"\\x{fffffffffffffffff}", 1, "there is no character"},
        {"\\ud83d\\ude00", 1, "there is no character U+D83D"},
        {"ab\\", 3, "nothing behind the backslash"},
        {"[\\", 2, "nothing behind the backslash"},
    };

    (void)state;
    check_all_refused(refusals, COUNT(refusals));
}

static void test_slips_are_refused_where_they_are(void **state)
{
    static const struct refusal refusals[] = {
        {"a(b", 2, "a group is not closed: it begins at character 2"},
        {"(((", 3, "a group is not closed"},
        {"a)b", 2, "a ')' without its '(' at character 2"},
        {"ä[b", 2, "a class is not closed: it begins at character 2"},
        {"[]", 1, "a class is not closed"},
        {"[a-", 1, "a class is not closed"},
        {"[z-a]", 2, "a range from high to low is not allowed in a placeholder: z-a"},
        {"[a-\\d]", 2, "a range that begins or ends with a class"},
        {"[\\d-z]", 2, "a range that begins or ends with a class"},
        {"[[:digit:]-z]", 2, "a range that begins or ends with a class"},
        {"[[:letter:]]", 2, "an unknown class"},
        {"[[=a=]]", 2, "an unknown class"},
        {"[:alpha:]", 1, "a class name outside of a class"},
        {"*a", 1, "there is nothing to repeat"},
        {"a|+", 3, "there is nothing to repeat"},
        {"(?)", 1, "an inline flag or unknown group"},
        {"({2})", 2, "there is nothing to repeat"},
        {"a**", 3, "a repetition is repeated"},
        {"a{2}{3}", 5, "a repetition is repeated"},
        {"a*??", 4, "a repetition is repeated"},
        {"a{,3}", 2, "'{' begins no repetition"},
        {"a{x}", 2, "'{' begins no repetition"},
        {"a{1,2", 2, "'{' begins no repetition"},
        {"{tenant}", 1, "'{' begins no repetition"},
        {"a{3,2}", 2, "at least 3 and at most 2"},
        {"(?<1a>b)", 4, "the name of a group"},
        {"(?<>b)", 4, "the name of a group"},
        {"(?P<a", 5, "the name of a group"},
        {"(?", 1, "an inline flag or unknown group"},
        {"a\xC3z", 2, "a byte that is no UTF-8"},
    };

    (void)state;
    check_all_refused(refusals, COUNT(refusals));
}

static void test_text_must_be_utf8_too(void **state)
{
    const hf__part parts[] = {plain("ok"), plain("äb\xff")};
    hf__language *language = NULL;
    hf_error err = {0};
    size_t bad = 0;

    (void)state;
    assert_int_equal(hf__language_build(parts, 2, &language, &bad, &err), HF_INVALID);
    assert_int_equal(bad, 1);
    assert_int_equal(err.position, 3);
}

/* ---- Limits ---- */

static char *repeat(const char *text, size_t times)
{
    size_t size = strlen(text);
    char *all = malloc(size * times + 1);

    assert_non_null(all);
    for (size_t i = 0; i < times; i++)
        memcpy(all + i * size, text, size);
    all[size * times] = '\0';
    return all;
}

static void test_an_expression_that_explodes_is_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"(a{1000}){1000}", 10, "the pattern has more than 20000 states at character 10"},
        {"a{20001}", 2, "more than 20000 states"},
        {"a{0,99999999999999999999}", 2, "more than 20000 states"},
        {"a{99999999999999999999,}", 2, "more than 20000 states"},
        {"((((((a{9}){9}){9}){9}){9}){9}){9}", 24, "more than 20000 states"},
        {"(((((){999}){999}){999}){999}){999}", 13, "more than 20000 states"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++)
        check_refused(&refusals[i], HF_QUOTA);
}

static void test_groups_nest_as_deep_as_the_limit(void **state)
{
    enum { LIMIT = 100, MANY = 30000 };
    char *opening = repeat("(", LIMIT);
    char *closing = repeat(")", LIMIT);
    char *deeper = repeat("(", MANY);
    hf__part parts = {NULL, 0, true};
    hf__buf text = {0};

    (void)state;
    hf__buf_printf(&text, "%sa%s", opening, closing);
    parts.text = text.data;
    parts.size = text.length;
    hf__language *language = build(&parts, 1);
    assert_true(has(language, "a", 1));
    hf__language_free(language);
    check_refused(&(struct refusal){deeper, LIMIT + 1, "groups nest deeper than 100"}, HF_QUOTA);
    hf__buf_free(&text);
    free(opening);
    free(closing);
    free(deeper);
}

static void test_long_expressions_are_refused(void **state)
{
    char *long_class = repeat("a", 70000);
    char *long_text = repeat("a", 20001);
    hf__part text = plain(long_text);
    hf__language *language = NULL;
    hf_error err = {0};
    size_t bad = 0;

    (void)state;
    check_refused(&(struct refusal){long_class, 65537, "more than 65536 bytes"}, HF_QUOTA);
    assert_int_equal(hf__language_build(&text, 1, &language, &bad, &err), HF_QUOTA);
    assert_null(language);
    assert_in_range(err.position, 19990, 20001);
    free(long_class);
    free(long_text);
}

static void test_a_class_of_a_thousand_ranges_is_the_largest(void **state)
{
    hf__buf text = {0};

    (void)state;
    hf__buf_puts(&text, "[");
    for (unsigned i = 0; i < 1001; i++)
        hf__buf_printf(&text, "\\x{%x}", 0x4E00 + 2 * i);
    hf__buf_puts(&text, "]");
    check_refused(&(struct refusal){text.data, 1, "a class of more than 1000 ranges"}, HF_QUOTA);
    hf__buf_free(&text);
}

static void test_a_match_that_takes_too_long_is_reported(void **state)
{
    hf__language *language = build_regex("(a?){5000}");
    char *text = repeat("a", 5000);
    hf_error err = {0};
    bool found = true;

    (void)state;
    assert_null(language->dfa);
    assert_int_equal(hf__language_has(language, text, 5000, &found, &err), HF_QUOTA);
    assert_false(found);
    assert_string_equal(err.message, "matching a label of 5000 bytes takes too many steps");
    assert_int_equal(hf__language_has(language, text, 100, &found, &err), HF_OK);
    assert_true(found);
    assert_int_equal(hf__language_has(language, "ab", 2, &found, &err), HF_OK);
    assert_false(found);
    free(text);
    hf__language_free(language);
}

static void test_patterns_as_people_write_them_have_a_table(void **state)
{
    static const char *const usual[] = {
        "[^:]+",
        "\\d{4}-\\d{2}-\\d{2}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "(eu|us|ap)-(north|south|east|west)-[1-9]",
        "[A-Za-z_][A-Za-z0-9_]{0,62}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(usual); i++) {
        hf__language *language = build_regex(usual[i]);
        assert_non_null(language->dfa);
        hf__language_free(language);
    }
}

static void test_no_table_is_made_of_what_explodes(void **state)
{
    hf__language *language = build_regex("(a|b)*a(a|b){20}");

    (void)state;
    assert_null(language->dfa);
    assert_true(has(language, "bbabbbbbbbbbbbbbbbbbbbb", 23));
    assert_false(has(language, "abbbbbbbbbbbbbbbbbbbbbb", 23));
    hf__language_free(language);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_expression_ends_at_its_size),
        cmocka_unit_test(test_an_expression_matches_the_whole_value),
        cmocka_unit_test(test_repetitions),
        cmocka_unit_test(test_lazy_repetitions_are_the_same_language),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_posix_classes),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_groups_of_every_kind_are_groups),
        cmocka_unit_test(test_a_nul_is_a_character),
        cmocka_unit_test(test_a_dot_is_anything_but_a_newline),
        cmocka_unit_test(test_bytes_that_are_no_utf8_are_characters_of_negated_classes),
        cmocka_unit_test(test_a_class_may_be_empty),
        cmocka_unit_test(test_parts_follow_each_other),
        cmocka_unit_test(test_what_is_not_regular_is_refused_by_name),
        cmocka_unit_test(test_anchors_are_refused_and_said_to_be_needless),
        cmocka_unit_test(test_escapes_that_mean_different_things_are_refused),
        cmocka_unit_test(test_slips_are_refused_where_they_are),
        cmocka_unit_test(test_text_must_be_utf8_too),
        cmocka_unit_test(test_an_expression_that_explodes_is_refused),
        cmocka_unit_test(test_groups_nest_as_deep_as_the_limit),
        cmocka_unit_test(test_long_expressions_are_refused),
        cmocka_unit_test(test_a_class_of_a_thousand_ranges_is_the_largest),
        cmocka_unit_test(test_a_match_that_takes_too_long_is_reported),
        cmocka_unit_test(test_patterns_as_people_write_them_have_a_table),
        cmocka_unit_test(test_no_table_is_made_of_what_explodes),
    };
    return RUN(tests);
}
