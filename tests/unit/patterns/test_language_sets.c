/* Languages against each other, against their words, and against the C library's own matcher. */
#include "unit.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/patterns/automaton.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { MOST_STATES = 100000 };

static hf__language *build(const char *expression)
{
    hf__part part = {expression, strlen(expression), true};
    hf__language *language = NULL;
    hf_error err = {0};
    size_t bad = 0;

    if (hf__language_build(&part, 1, &language, &bad, &err) != HF_OK)
        fail_msg("%s: %s", expression, err.message);
    return language;
}

static bool has(const hf__language *language, const char *text, size_t size)
{
    bool found = false;

    assert_int_equal(hf__language_has(language, text, size, &found, NULL), HF_OK);
    return found;
}

/* ---- Meeting ---- */

static hf__meeting meet(const hf__language *a, const hf__language *b, hf__buf *witness)
{
    hf__meeting meeting = HF__MEET_UNDECIDED;

    assert_int_equal(hf__language_meet(a, b, MOST_STATES, &meeting, witness, NULL), HF_OK);
    if (meeting == HF__MEET) {
        assert_true(has(a, witness->data, witness->length));
        assert_true(has(b, witness->data, witness->length));
    }
    return meeting;
}

/* Either way round; witness NULL: they never meet. */
static void check_meeting(const char *left, const char *right, const char *witness, size_t size)
{
    hf__language *a = build(left);
    hf__language *b = build(right);
    hf__buf found = {0};

    for (int i = 0; i < 2; i++) {
        hf__meeting meeting = i == 0 ? meet(a, b, &found) : meet(b, a, &found);
        assert_int_equal(meeting, witness != NULL ? HF__MEET : HF__MEET_NEVER);
        if (witness != NULL && (found.length != size || memcmp(found.data, witness, size) != 0))
            fail_msg("%s and %s meet in '%s'", left, right, found.data);
    }
    hf__buf_free(&found);
    hf__language_free(a);
    hf__language_free(b);
}

static void test_languages_meet_in_a_shortest_plain_word(void **state)
{
    static const struct meeting {
        const char *left;
        const char *right;
        const char *witness;
    } meetings[] = {
        {"[^:]+:\\d{4}", "user:[^:]+", "user:0000"},
        {"[^:]+", "[^:]+", "0"},
        {"[^:]*", "[^/]*", "0"}, /* no label is empty */
        {"[^0-9]", "[^:]", "a"},
        {"[^0-9a-z]", "[^:]", "A"},
        {"\\W", "[^:]", " "},
        {"\\W", "[^ -/]", ":"},
        {"[ä-ü]{2}", "[ö-ÿ]+", "öö"},
        {"a{2,}", "(aaa)*", "aaa"},
        {"(aa)*b", "(aaa)+b", "aaaaaab"},
        {"(a|b)*a(a|b){3}", "b*ab*", "abbb"},
        {"((a*)*)*c", "(((a?)+)+)c", "c"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(meetings); i++)
        check_meeting(meetings[i].left, meetings[i].right, meetings[i].witness,
                      strlen(meetings[i].witness));
}

static void test_a_witness_is_utf8_if_it_can_be(void **state)
{
    (void)state;
    check_meeting("[^ -~]", "\\D", "\0", 1);
    check_meeting("[^\\x00-\\x7f]", ".", "\xC2\x80", 2);
    check_meeting("[^\\x00-\\x{10ffff}]", ".", "\xff", 1);
    check_meeting("[^\\x00-\\x{10ffff}]{2}ä", ".*", "\xff\xff\xC3\xA4", 4);
}

static void test_languages_that_never_meet(void **state)
{
    (void)state;
    check_meeting("a*", "b+", NULL, 0);
    check_meeting("a*", "b*", NULL, 0);
    check_meeting("[a-m]+", "[n-z]+", NULL, 0);
    check_meeting("(a|b)*a", "(a|b)*b", NULL, 0);
    check_meeting("(aa)*", "a(aa)*", NULL, 0);
    check_meeting("\\d{4}", "\\d{5,}", NULL, 0);
    check_meeting("[^\\s\\S]", ".*", NULL, 0);
    check_meeting("[^:]+:[^:]+", "[^:]+", NULL, 0);
    check_meeting("ä", "a", NULL, 0);
    check_meeting("[^\\x00-\\x{10ffff}]", "[\\x00-\\x{10ffff}]", NULL, 0);
}

static void test_a_search_over_the_limit_is_undecided(void **state)
{
    hf__language *a = build("(a{90})*");
    hf__language *b = build("(a{91})*a");
    hf__meeting meeting = HF__MEET;
    hf__buf witness = {0};

    (void)state;
    assert_int_equal(hf__language_meet(a, b, 1000, &meeting, &witness, NULL), HF_OK);
    assert_int_equal(meeting, HF__MEET_UNDECIDED);
    assert_int_equal(meet(a, b, &witness), HF__MEET);
    assert_int_equal(witness.length, 90 * 90);
    assert_int_equal(hf__language_meet(a, b, 0, &meeting, &witness, NULL), HF_OK);
    assert_int_equal(meeting, HF__MEET_UNDECIDED);
    hf__buf_free(&witness);
    hf__language_free(a);
    hf__language_free(b);
}

/* ---- Words ---- */

enum { KEPT = 4000 };

struct word {
    char *text;
    size_t size;
};

struct words {
    const hf__language *language;
    struct word items[KEPT];
    size_t count;
    size_t stop_after; /* 0: never */
    bool complete;
};

static bool keep_word(void *arg, const char *word, size_t size)
{
    struct words *words = arg;
    struct word *kept = &words->items[words->count];

    assert_true(words->count++ < KEPT);
    assert_true(has(words->language, word, size));
    kept->text = calloc(1, size + 1);
    assert_non_null(kept->text);
    memcpy(kept->text, word, size);
    kept->size = size;
    return words->count != words->stop_after;
}

static int by_text(const void *left, const void *right)
{
    const struct word *a = left;
    const struct word *b = right;
    int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);

    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static void assert_distinct(const struct words *words)
{
    struct word *sorted = calloc(words->count + 1, sizeof *sorted);

    assert_non_null(sorted);
    memcpy(sorted, words->items, words->count * sizeof *sorted);
    qsort(sorted, words->count, sizeof *sorted, by_text);
    for (size_t i = 1; i < words->count; i++)
        assert_int_not_equal(by_text(&sorted[i - 1], &sorted[i]), 0);
    free(sorted);
}

static void list_words(struct words *words, const char *expression, size_t most)
{
    hf__language *language = build(expression);

    words->language = language;
    words->count = 0;
    assert_int_equal(hf__language_words(language, most, keep_word, words, &words->complete, NULL),
                     HF_OK);
    assert_true(words->count <= most);
    hf__language_free(language);
}

static void forget(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i].text);
    words->count = 0;
}

/* wanted is a list with '|' behind each word. */
static void check_list(const char *expression, size_t most, bool complete, const char *wanted)
{
    struct words words = {0};
    hf__buf found = {0};

    list_words(&words, expression, most);
    for (size_t i = 0; i < words.count; i++) {
        hf__buf_add(&found, words.items[i].text, words.items[i].size);
        hf__buf_puts(&found, "|");
    }
    hf__buf_puts(&found, "");
    assert_string_equal(found.data, wanted);
    assert_int_equal(words.complete, complete);
    hf__buf_free(&found);
    forget(&words);
}

static void test_short_words_and_plain_characters_come_first(void **state)
{
    (void)state;
    check_list("[^:]+", 14, false, "0|1|2|3|4|5|6|7|8|9|a|b|c|d|");
    check_list("(b|a){1,2}", 100, true, "a|b|aa|ab|ba|bb|");
    check_list("[.\\-A0a]", 100, true, "0|a|A|-|.|");
    check_list("[ä0]{2}", 100, true, "00|0ä|ä0|ää|");
    check_list("x{3}|y|z{2}", 100, true, "y|zz|xxx|");
    check_list("v[12](-rc)?", 100, true, "v1|v2|v1-rc|v2-rc|");
    check_list("(aa)*", 4, false, "|aa|aaaa|aaaaaa|");
}

static void test_each_word_comes_once(void **state)
{
    (void)state;
    check_list("a|a|(a|a)|[ab]", 100, true, "a|b|");
    check_list("(a?){3}", 100, true, "|a|aa|aaa|");
    check_list("(a|ab)(c|bc)?", 100, true, "a|ab|ac|abc|abbc|");
}

static void test_all_words_were_delivered_or_it_is_said(void **state)
{
    (void)state;
    check_list("[ab]", 2, true, "a|b|");
    check_list("[ab]", 1, false, "a|");
    check_list("[a_]", 1, false, "a|");
    check_list("[a_]", 2, true, "a|_|");
    check_list("[ab]", 0, false, "");
    check_list("[^\\s\\S]", 0, true, "");
    check_list("[^\\s\\S]|a[^\\s\\S]*", 5, true, "a|");
    check_list("", 0, false, "");
    check_list("", 1, true, "|");
}

static void test_a_stray_byte_stands_for_many_so_the_list_is_never_complete(void **state)
{
    (void)state;
    check_list("[^\\x00-\\x{10ffff}]|[a_]", 10, false, "a|\xff|_|");
}

static void test_a_listener_may_stop(void **state)
{
    struct words words = {.stop_after = 2};

    (void)state;
    list_words(&words, "[abc]", 100);
    assert_int_equal(words.count, 2);
    assert_false(words.complete);
    forget(&words);
    words.stop_after = 3;
    list_words(&words, "[abc]", 100);
    assert_int_equal(words.count, 3);
    assert_false(words.complete);
    forget(&words);
}

static void test_the_order_is_by_length_among_plain_words(void **state)
{
    struct words words = {0};

    (void)state;
    list_words(&words, "[^:]{1,9}(-[a-z]+)?", 3000);
    for (size_t i = 1; i < words.count; i++)
        assert_true(words.items[i - 1].size <= words.items[i].size);
    forget(&words);
}

static void test_huge_languages_give_what_is_asked_for(void **state)
{
    static const char *const huge[] = {
        "[^:]+",
        ".{1,100}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "\\d{4}-\\d{2}-\\d{2}",
        "(a|b)*a(a|b){20}",
        "(a?){1000}[0-9]{3}",
        "a{3000}[0-9]*",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(huge); i++) {
        struct words words = {0};
        list_words(&words, huge[i], 1000);
        assert_int_equal(words.count, 1000);
        assert_false(words.complete);
        assert_distinct(&words);
        forget(&words);
    }
}

static void test_words_longer_than_any_label_are_left_out(void **state)
{
    struct words words = {0};

    (void)state;
    list_words(&words, "(a{9000})*", 100);
    assert_int_equal(words.count, 1 + HF_LABEL_MAX / 9000);
    assert_false(words.complete);
    forget(&words);
}

/* ---- Against the C library ---- */

enum { LONGEST = 5, EXPRESSIONS = 1500, EXPRESSION_SIZE = 512 };

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

static void draw_choice(hf__buf *out, uint64_t *seed, unsigned depth)
{
    static const char *const atoms[] = {"a", "b", "c", ".", "[ab]", "[^a]", "[^bc]"};
    static const char *const repetitions[] = {"*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}"};

    for (uint32_t branch = 1 + draw(seed, 2); branch > 0; branch--) {
        for (uint32_t length = 1 + draw(seed, 3); length > 0; length--) {
            if (depth > 0 && draw(seed, 3) == 0) {
                hf__buf_puts(out, "(");
                draw_choice(out, seed, depth - 1);
                hf__buf_puts(out, ")");
            } else {
                hf__buf_puts(out, atoms[draw(seed, COUNT(atoms))]);
            }
            if (draw(seed, 3) == 0)
                hf__buf_puts(out, repetitions[draw(seed, COUNT(repetitions))]);
        }
        if (branch > 1)
            hf__buf_puts(out, "|");
    }
}

struct subject {
    hf__buf expression;
    hf__language *language;
    regex_t posix;
};

static void draw_subject(struct subject *subject, uint64_t *seed)
{
    char anchored[EXPRESSION_SIZE];

    *subject = (struct subject){0};
    draw_choice(&subject->expression, seed, 2);
    subject->language = build(subject->expression.data);
    snprintf(anchored, sizeof anchored, "^(%s)$", subject->expression.data);
    assert_int_equal(regcomp(&subject->posix, anchored, REG_EXTENDED | REG_NOSUB), 0);
}

static void free_subject(struct subject *subject)
{
    hf__buf_free(&subject->expression);
    hf__language_free(subject->language);
    regfree(&subject->posix);
}

static bool posix_has(const struct subject *subject, const char *text)
{
    return regexec(&subject->posix, text, 0, NULL, 0) == 0;
}

/* Every text over a, b and c, the short ones first; false after the last. */
static bool next_text(char text[LONGEST + 1])
{
    for (size_t i = strlen(text); i-- > 0; text[i] = 'a')
        if (text[i] < 'c') {
            text[i]++;
            return true;
        }
    if (strlen(text) == LONGEST)
        return false;
    text[strlen(text)] = 'a';
    return true;
}

static void test_matching_agrees_with_the_c_library(void **state)
{
    uint64_t seed = 4;

    (void)state;
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        struct subject subject;
        char text[LONGEST + 2] = "";
        draw_subject(&subject, &seed);
        do {
            bool simulated = false;
            bool wanted = posix_has(&subject, text);
            assert_int_equal(
                hf__automaton_run(&subject.language->automaton, text, strlen(text), &simulated),
                HF_OK);
            if (has(subject.language, text, strlen(text)) != wanted || simulated != wanted)
                fail_msg("%s and '%s'", subject.expression.data, text);
        } while (next_text(text));
        free_subject(&subject);
    }
}

static bool find_common(const struct subject *a, const struct subject *b, char text[LONGEST + 1])
{
    text[0] = '\0';
    while (next_text(text))
        if (posix_has(a, text) && posix_has(b, text))
            return true;
    return false;
}

static void test_meetings_agree_with_the_c_library(void **state)
{
    uint64_t seed = 44;
    size_t met = 0;

    (void)state;
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        struct subject a;
        struct subject b;
        char text[LONGEST + 2] = "";
        hf__buf witness = {0};
        draw_subject(&a, &seed);
        draw_subject(&b, &seed);
        bool is_common = find_common(&a, &b, text);
        hf__meeting meeting = meet(a.language, b.language, &witness);
        if (meeting == HF__MEET) {
            met++;
            assert_true(posix_has(&a, witness.data) && posix_has(&b, witness.data));
            assert_true(!is_common || witness.length <= strlen(text));
        } else if (is_common) {
            fail_msg("%s and %s share '%s'", a.expression.data, b.expression.data, text);
        }
        hf__buf_free(&witness);
        free_subject(&a);
        free_subject(&b);
    }
    assert_in_range(met, EXPRESSIONS / 10, EXPRESSIONS - EXPRESSIONS / 10);
}

static bool is_listed(const struct words *words, const char *text)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->items[i].text, text) == 0)
            return true;
    return false;
}

/* Without which the C library's matcher sees bytes, or the end. */
static bool is_ascii(const struct word *word)
{
    for (size_t i = 0; i < word->size; i++)
        if (word->text[i] <= 0)
            return false;
    return true;
}

static void test_complete_lists_agree_with_the_c_library(void **state)
{
    uint64_t seed = 444;
    size_t complete = 0;

    (void)state;
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        struct subject subject;
        struct words words = {0};
        char text[LONGEST + 2] = "";
        draw_subject(&subject, &seed);
        list_words(&words, subject.expression.data, 300);
        assert_distinct(&words);
        for (size_t k = 0; k < words.count; k++)
            assert_true(!is_ascii(&words.items[k]) || posix_has(&subject, words.items[k].text));
        do {
            if (words.complete && posix_has(&subject, text) && !is_listed(&words, text))
                fail_msg("%s: '%s' is not listed", subject.expression.data, text);
        } while (next_text(text));
        complete += words.complete ? 1 : 0;
        forget(&words);
        free_subject(&subject);
    }
    assert_in_range(complete, EXPRESSIONS / 20, EXPRESSIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_languages_meet_in_a_shortest_plain_word),
        cmocka_unit_test(test_a_witness_is_utf8_if_it_can_be),
        cmocka_unit_test(test_languages_that_never_meet),
        cmocka_unit_test(test_a_search_over_the_limit_is_undecided),
        cmocka_unit_test(test_short_words_and_plain_characters_come_first),
        cmocka_unit_test(test_each_word_comes_once),
        cmocka_unit_test(test_all_words_were_delivered_or_it_is_said),
        cmocka_unit_test(test_a_stray_byte_stands_for_many_so_the_list_is_never_complete),
        cmocka_unit_test(test_a_listener_may_stop),
        cmocka_unit_test(test_the_order_is_by_length_among_plain_words),
        cmocka_unit_test(test_huge_languages_give_what_is_asked_for),
        cmocka_unit_test(test_words_longer_than_any_label_are_left_out),
        cmocka_unit_test(test_matching_agrees_with_the_c_library),
        cmocka_unit_test(test_meetings_agree_with_the_c_library),
        cmocka_unit_test(test_complete_lists_agree_with_the_c_library),
    };
    return RUN(tests);
}
