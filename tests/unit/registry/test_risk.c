#include "unit.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "programs/registry/risk.h"

/* --- words ------------------------------------------------------------------------------------ */

static void assert_words(double p, const char *wanted)
{
    char words[HF__WORDS_MAX];

    assert_string_equal(hf__risk_words(words, sizeof words, p), wanted);
}

static void test_probabilities_are_said_in_words_and_number(void **state)
{
    (void)state;
    assert_words(0.00011629, "about 1 in 8 600 (0.0116 %)");
    assert_words(2.7e-14, "practically never (1 in 3.7e13)");
    assert_words(9.96e-11, "practically never (1 in 1.0e10)");
    assert_words(1e-9, "about 1 in 1 000 000 000 (0.0000001 %)");
    assert_words(0.01, "about 1 in 100 (1 %)");
    assert_words(0.0999, "about 1 in 10 (9.99 %)");
    assert_words(0.25, "about 1 in 4 (25 %)");
    assert_words(0.3333, "about 1 in 3 (33.3 %)");
    assert_words(0.5, "as likely as not (50 %)");
    assert_words(0.75, "likely (75 %)");
    assert_words(0.992, "almost certain (99.2 %)");
}

static void test_only_what_is_impossible_is_never_and_only_what_must_be_is_certain(void **state)
{
    (void)state;
    assert_words(0, "never");
    assert_words(1, "certain");
    assert_words(4.9e-324, "practically never");
    assert_words(5.4e-20, "practically never (1 in 1.9e19)");
    assert_words(0.9995, "almost certain (more than 99.9 %)");
    assert_words(nextafter(1, 0), "almost certain (more than 99.9 %)");
}

static void test_no_probability_is_shown_as_nothing_or_everything(void **state)
{
    char words[HF__WORDS_MAX];

    (void)state;
    for (double p = 1e-320; p < 1; p *= 1.03) {
        hf__risk_words(words, sizeof words, p);
        assert_null(strstr(words, "(0 %)"));
        assert_null(strstr(words, "(100 %)"));
        assert_null(strstr(words, "0.0 %"));
        assert_true(strlen(words) < sizeof words - 1);
    }
}

static void test_words_are_the_same_in_every_locale(void **state)
{
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8", "C"};

    (void)state;
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        setlocale(LC_ALL, locales[i]); /* fails where it is not installed, and changes nothing */
        assert_words(0.00011629, "about 1 in 8 600 (0.0116 %)");
        assert_words(2.7e-14, "practically never (1 in 3.7e13)");
    }
    setlocale(LC_ALL, "C");
}

static void test_counts_are_grouped_and_cut_to_the_room(void **state)
{
    char out[32];

    (void)state;
    assert_string_equal(hf__risk_count(out, sizeof out, 0), "0");
    assert_string_equal(hf__risk_count(out, sizeof out, 999), "999");
    assert_string_equal(hf__risk_count(out, sizeof out, 1000), "1 000");
    assert_string_equal(hf__risk_count(out, sizeof out, UINT64_MAX), "18 446 744 073 709 551 615");
    for (size_t size = 1; size < 8; size++)
        assert_true(strlen(hf__risk_count(out, size, UINT64_MAX)) < size);
}

/* --- registries ------------------------------------------------------------------------------- */

struct assessed {
    hf_registry *registry;
    struct hf__risk risk;
};

static struct assessed assess(const char *locks)
{
    struct assessed assessed = {0};
    hf__findings findings = {0};
    hf__buf text = {0};
    hf_error err = {0};

    hf__buf_printf(&text, "version: 1\nlocks:\n%s", locks);
    assert_int_equal(hf__registry_examine_text("locks.yaml", text.data, text.length,
                                               &assessed.registry, &findings, &err),
                     HF_OK);
    for (size_t i = 0; i < findings.count; i++)
        if (findings.items[i].rule->severity >= HF__SEVERITY_ERROR)
            fail_msg("%u: %s", findings.items[i].line, findings.items[i].message);
    assert_int_equal(hf__risk_assess(assessed.registry, 0.01, &assessed.risk, &err), HF_OK);
    hf__findings_free(&findings);
    hf__buf_free(&text);
    return assessed;
}

static void forget(struct assessed *assessed)
{
    hf__risk_free(&assessed->risk);
    hf_registry_free(assessed->registry);
}

static const struct hf__risk_row *row_named(const struct assessed *assessed, const char *name)
{
    for (size_t i = 0; i < assessed->risk.row_count; i++)
        if (strcmp(assessed->risk.rows[i].name, name) == 0)
            return &assessed->risk.rows[i];
    fail_msg("no row '%s'", name);
    return NULL;
}

#define PATTERN(name, as, expected)                                                                \
    "  - name: " name "\n    key: { pattern: \"" name ":{x}\", as: " as " }\n"                     \
    "    lifetime: session\n    expected: " expected "\n"
#define LITERAL(name, as)                                                                          \
    "  - name: " name "\n    key: { pattern: \"" name ":all\", as: " as " }\n"                     \
    "    lifetime: session\n"
#define FIXED(name, number)                                                                        \
    "  - name: " name "\n    key: { fixed: " number " }\n    lifetime: session\n"

static void test_labels_of_a_derivation_add_up(void **state)
{
    struct assessed a = assess(PATTERN("one", "fnv1a32", "600") PATTERN("two", "fnv1a32", "399")
                                   LITERAL("three", "fnv1a32") PATTERN("four", "sha256", "7"));
    const struct hf__risk_row *row = row_named(&a, "fnv1a32");

    (void)state;
    assert_int_equal(row->labels, 1000);
    assert_int_equal(row->bits, 32);
    assert_true(fabs(row->probability - 0.00011629) < 1e-8);
    assert_false(row->too_likely);
    assert_int_equal(row_named(&a, "sha256")->labels, 7);
    assert_int_equal(row_named(&a, "all bigint")->labels, 1007);
    assert_int_equal(a.risk.advice_count, 0);
    forget(&a);
}

static void test_all_derivations_of_32_bits_share_their_range(void **state)
{
    struct assessed a =
        assess(PATTERN("one", "fnv1a32", "4650") PATTERN("two", "hashtext", "4650"));

    (void)state;
    assert_true(row_named(&a, "fnv1a32")->probability < 0.003);
    assert_true(row_named(&a, "hashtext")->probability < 0.003);
    assert_true(row_named(&a, "all bigint")->probability > 0.01);
    assert_true(row_named(&a, "all bigint")->too_likely);
    assert_int_equal(a.risk.advice_count, 1); /* one of them is enough */
    forget(&a);
}

static void test_a_fixed_id_counts_once_and_only_within_reach(void **state)
{
    struct assessed a = assess(FIXED("f", "4242") FIXED("g", "-4242") FIXED("h", "8589934592")
                                   PATTERN("one", "fnv1a32", "5"));

    (void)state;
    assert_int_equal(row_named(&a, "fnv1a32")->fixed, 2);
    assert_int_equal(row_named(&a, "all bigint")->fixed, 3);
    forget(&a);
}

static void test_a_class_is_a_space_of_its_own(void **state)
{
    struct assessed a =
        assess("  - name: p\n    key: { pair: [7, 1] }\n    lifetime: session\n"
               "  - name: q\n    key: { class: 7, pattern: \"q:{x}\", as: hashtext }\n"
               "    lifetime: session\n    expected: 20000\n"
               "  - name: r\n    key: { class: -8, pattern: \"r:{x}\", as: hashtext }\n"
               "    lifetime: session\n    expected: 20\n");

    (void)state;
    assert_int_equal(a.risk.row_count, 2);
    assert_int_equal(row_named(&a, "class 7")->fixed, 1);
    assert_true(row_named(&a, "class 7")->too_likely);
    assert_int_equal(row_named(&a, "class -8")->labels, 20);
    assert_int_equal(a.risk.advice_count, 1);
    assert_string_equal(a.risk.advice[0].entry->view.name, "q");
    assert_true(a.risk.advice[0].leaves_class);
    forget(&a);
}

static void test_the_entry_with_the_most_labels_is_advised_first(void **state)
{
    struct assessed a = assess(PATTERN("small", "fnv1a32", "5000") PATTERN(
        "large", "fnv1a32-js", "90000") PATTERN("middle", "hashtext", "20000"));

    (void)state;
    assert_int_equal(a.risk.advice_count, 2);
    assert_string_equal(a.risk.advice[0].entry->view.name, "large");
    assert_string_equal(a.risk.advice[1].entry->view.name, "middle");
    assert_int_equal(a.risk.advice[0].instead, HF_SHA256);
    forget(&a);
}

static void test_what_is_too_much_for_64_bits_should_be_minted(void **state)
{
    struct assessed a = assess(PATTERN("huge", "fnv1a32", "9000000000000000000") PATTERN(
        "vast", "sha256", "9000000000000000000") PATTERN("wide", "fnv1a64", "9000000000000000000"));

    (void)state;
    assert_int_equal(row_named(&a, "all bigint")->labels, UINT64_MAX); /* the sum is beyond it */
    assert_true(row_named(&a, "all bigint")->probability == 1);
    assert_int_equal(a.risk.advice_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(a.risk.advice[i].instead, HF_MINTED);
    forget(&a);
}

static void test_a_pattern_without_expected_is_named(void **state)
{
    struct assessed a = assess(PATTERN(
        "said", "fnv1a32", "10") "  - name: unsaid\n    key: { pattern: \"u:{x}\", as: fnv1a32 }\n"
                                 "    lifetime: session\n");

    (void)state;
    assert_int_equal(a.risk.unknown_count, 1);
    assert_string_equal(a.risk.unknown[0]->view.name, "unsaid");
    assert_int_equal(row_named(&a, "fnv1a32")->unknown, 1);
    assert_int_equal(row_named(&a, "fnv1a32")->labels, 10);
    forget(&a);
}

static void test_minted_keys_never_meet_each_other(void **state)
{
    struct assessed a = assess(PATTERN("m", "minted", "1000000000000") PATTERN("s", "sha256", "5"));

    (void)state;
    assert_true(row_named(&a, "minted")->probability == 0);
    assert_int_equal(row_named(&a, "minted")->count_1pc, 0);
    assert_true(row_named(&a, "sha256")->probability > 1e-8); /* five among a million million */
    forget(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probabilities_are_said_in_words_and_number),
        cmocka_unit_test(test_only_what_is_impossible_is_never_and_only_what_must_be_is_certain),
        cmocka_unit_test(test_no_probability_is_shown_as_nothing_or_everything),
        cmocka_unit_test(test_words_are_the_same_in_every_locale),
        cmocka_unit_test(test_counts_are_grouped_and_cut_to_the_room),
        cmocka_unit_test(test_labels_of_a_derivation_add_up),
        cmocka_unit_test(test_all_derivations_of_32_bits_share_their_range),
        cmocka_unit_test(test_a_fixed_id_counts_once_and_only_within_reach),
        cmocka_unit_test(test_a_class_is_a_space_of_its_own),
        cmocka_unit_test(test_the_entry_with_the_most_labels_is_advised_first),
        cmocka_unit_test(test_what_is_too_much_for_64_bits_should_be_minted),
        cmocka_unit_test(test_a_pattern_without_expected_is_named),
        cmocka_unit_test(test_minted_keys_never_meet_each_other),
    };
    return RUN(tests);
}
