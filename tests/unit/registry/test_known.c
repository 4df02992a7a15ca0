#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "lib/registry/registry.h"

static hf_registry *registry_of(const char *locks)
{
    hf__findings findings = {0};
    hf_registry *registry = NULL;
    hf__buf text = {0};
    hf_error err;

    hf__buf_printf(&text, "version: 1\nlocks:\n%s", locks);
    hf_status status =
        hf__registry_examine_text("locks.yaml", text.data, text.length, &registry, &findings, &err);
    assert_int_equal(status, HF_OK);
    for (size_t i = 0; i < findings.count; i++)
        print_message("%u: %s\n", findings.items[i].line, findings.items[i].message);
    assert_int_equal(findings.count, 0);
    assert_non_null(registry);
    hf__findings_free(&findings);
    hf__buf_free(&text);
    return registry;
}

static hf__known *known_of(const hf_registry *registry)
{
    hf__known *known = NULL;
    hf_error err;

    assert_int_equal(hf__known_build(registry, &known, &err), HF_OK);
    return known;
}

static int64_t key_of(hf_derivation derivation, const char *label)
{
    int64_t key = 0;

    assert_int_equal(hf_key_derive(derivation, label, strlen(label), &key, NULL), HF_OK);
    return key;
}

static void assert_known(const hf__known *known, hf_space space, int64_t key, const char *name,
                         const char *label)
{
    const char *found = NULL;
    const hf__lock_entry *entry = hf__known_find(known, space, key, &found);

    assert_non_null(entry);
    assert_string_equal(entry->view.name, name);
    assert_non_null(found);
    assert_string_equal(found, label);
}

static void assert_unknown(const hf__known *known, hf_space space, int64_t key)
{
    const char *found = "";

    assert_null(hf__known_find(known, space, key, &found));
    assert_null(found);
}

static void test_labels_of_small_patterns_are_known_by_their_keys(void **state)
{
    hf_registry *registry =
        registry_of("  - { name: nightly, key: { pattern: \"Report:nightly\" } }\n"
                    "  - name: region\n"
                    "    key: { pattern: \"Rebuild:{region}\", as: fnv1a64 }\n"
                    "    placeholders: { region: [eu, us] }\n"
                    "  - name: month\n"
                    "    key: { pattern: \"Close:{month}\", as: hashtext }\n"
                    "    placeholders: { month: \"2026-(0[1-9]|1[0-2])\" }\n");
    hf__known *known = known_of(registry);

    (void)state;
    assert_known(known, HF_BIGINT, key_of(HF_SHA256, "Report:nightly"), "nightly",
                 "Report:nightly");
    assert_known(known, HF_BIGINT, key_of(HF_FNV1A64, "Rebuild:us"), "region", "Rebuild:us");
    assert_known(known, HF_BIGINT, key_of(HF_HASHTEXT, "Close:2026-12"), "month", "Close:2026-12");
    assert_unknown(known, HF_BIGINT, key_of(HF_HASHTEXT, "Close:2026-13"));
    assert_unknown(known, HF_BIGINT, key_of(HF_SHA256, "Rebuild:us"));
    assert_unknown(known, HF_PAIR, key_of(HF_SHA256, "Report:nightly"));
    assert_unknown(known, HF_BIGINT, key_of(HF_FNV1A64, ""));
    hf__known_free(known);
    hf_registry_free(registry);
}

static void test_labels_beside_a_class_are_known_in_the_space_of_pairs(void **state)
{
    hf_registry *registry =
        registry_of("  - name: shard\n"
                    "    key: { class: -7, pattern: \"Shard:{n}\", as: hashtext }\n"
                    "    placeholders: { n: \"[0-9]\" }\n");
    hf__known *known = known_of(registry);
    uint32_t second = (uint32_t)key_of(HF_HASHTEXT, "Shard:3");

    (void)state;
    assert_known(known, HF_PAIR, hf_key_join((uint32_t)-7, second), "shard", "Shard:3");
    assert_unknown(known, HF_PAIR, hf_key_join(7, second));
    assert_unknown(known, HF_BIGINT, hf_key_join((uint32_t)-7, second));
    hf__known_free(known);
    hf_registry_free(registry);
}

static void test_patterns_with_too_many_labels_are_left_out_at_no_cost(void **state)
{
    hf__buf locks = {0};
    hf__buf_puts(&locks, "  - { name: anything, key: { pattern: \"A:{x}\" } }\n");
    for (int i = 0; i < 30; i++)
        hf__buf_printf(&locks,
                       "  - name: big%d\n"
                       "    key: { pattern: \"B%d:{n}\" }\n"
                       "    placeholders: { n: \"\\\\d{8}\" }\n",
                       i, i);
    hf__buf_puts(&locks, "  - name: small\n"
                         "    key: { pattern: \"S:{n}\" }\n"
                         "    placeholders: { n: \"\\\\d{2}\" }\n");
    hf_registry *registry = registry_of(locks.data);
    hf__known *known = known_of(registry);

    (void)state;
    assert_unknown(known, HF_BIGINT, key_of(HF_SHA256, "A:a"));
    assert_unknown(known, HF_BIGINT, key_of(HF_SHA256, "B0:00000000"));
    assert_known(known, HF_BIGINT, key_of(HF_SHA256, "S:42"), "small", "S:42");
    hf__known_free(known);
    hf_registry_free(registry);
    hf__buf_free(&locks);
}

static void test_small_expressions_of_every_form_are_known(void **state)
{
    static const struct {
        const char *regex, *word;
        bool is_small;
    } forms[] = {
        {"[ab]", "a", true},     {"[]a]", "]", true}, {"[\\d]", "7", true},
        {"[\\]a]", "]", true},   {"\\d", "7", true},  {"a{2}", "aa", true},
        {"(a|b)c?", "bc", true}, {"\\D", "x", false}, {"[^a]", "b", false},
        {"a{2,}", "aa", false},  {"a.", "ab", false}, {"a+", "aa", false},
    };
    char locks[200], label[20];

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        (void)snprintf(
            locks, sizeof locks,
            "  - name: a\n    key: { pattern: \"A:{x}\" }\n    placeholders: { x: '%s' }\n",
            forms[i].regex);
        (void)snprintf(label, sizeof label, "A:%s", forms[i].word);
        hf_registry *registry = registry_of(locks);
        hf__known *known = known_of(registry);
        if (forms[i].is_small)
            assert_known(known, HF_BIGINT, key_of(HF_SHA256, label), "a", label);
        else
            assert_unknown(known, HF_BIGINT, key_of(HF_SHA256, label));
        hf__known_free(known);
        hf_registry_free(registry);
    }
}

static void test_every_label_of_a_pattern_of_ten_thousand_is_known(void **state)
{
    hf_registry *registry = registry_of("  - name: customer\n"
                                        "    key: { pattern: \"Customer:{n}\" }\n"
                                        "    placeholders: { n: \"\\\\d{4}\" }\n");
    hf__known *known = known_of(registry);
    char label[32];

    (void)state;
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(label, sizeof label, "Customer:%04d", i);
        assert_known(known, HF_BIGINT, key_of(HF_SHA256, label), "customer", label);
    }
    hf__known_free(known);
    hf_registry_free(registry);
}

/* A collision of 32-bit FNV-1a that is widely known. */
static void test_a_key_of_two_labels_has_a_name_but_no_label(void **state)
{
    hf_registry *registry = registry_of("  - name: words\n"
                                        "    key: { pattern: \"{word}\", as: fnv1a32 }\n"
                                        "    placeholders: { word: [costarring, liquid] }\n");
    hf__known *known = known_of(registry);
    const char *label = "";
    int64_t key = key_of(HF_FNV1A32, "costarring");

    (void)state;
    assert_int_equal(key, key_of(HF_FNV1A32, "liquid"));
    const hf__lock_entry *entry = hf__known_find(known, HF_BIGINT, key, &label);
    assert_non_null(entry);
    assert_string_equal(entry->view.name, "words");
    assert_null(label);
    hf__known_free(known);
    hf_registry_free(registry);
}

static void test_a_registry_without_labels_knows_nothing(void **state)
{
    hf_registry *registry = registry_of("  - { name: fixed, key: { fixed: 42424242 } }\n");
    hf__known *known = known_of(registry);

    (void)state;
    assert_unknown(known, HF_BIGINT, 42424242);
    hf__known_free(known);
    hf__known_free(NULL);
    hf_registry_free(registry);
}

static const char *owner_of(const hf_registry *registry, hf_space space, int64_t key,
                            const char *label)
{
    const hf__lock_entry *entry = NULL;
    hf_error err;

    assert_int_equal(hf__registry_owner(registry, space, key, label, strlen(label), &entry, &err),
                     HF_OK);
    return entry ? entry->view.name : NULL;
}

static void test_a_recorded_label_belongs_to_the_entry_that_gives_it_this_key(void **state)
{
    hf_registry *registry =
        registry_of("  - { name: wide, key: { pattern: \"Job:{x}\", as: fnv1a64 } }\n"
                    "  - { name: same, key: { pattern: \"Job:{x}\", as: sha256 } }\n"
                    "  - { name: class, key: { class: 5, pattern: \"Job:{x}\", as: hashtext } }\n"
                    "  - { name: minted, key: { pattern: \"Mint:{x}\", as: minted } }\n");
    int64_t in_class = hf_key_join(5, (uint32_t)key_of(HF_HASHTEXT, "Job:a"));

    (void)state;
    assert_string_equal(owner_of(registry, HF_BIGINT, key_of(HF_FNV1A64, "Job:a"), "Job:a"),
                        "wide");
    assert_string_equal(owner_of(registry, HF_BIGINT, key_of(HF_SHA256, "Job:a"), "Job:a"), "same");
    assert_string_equal(owner_of(registry, HF_PAIR, in_class, "Job:a"), "class");
    assert_string_equal(owner_of(registry, HF_BIGINT, 17, "Mint:a"), "minted");
    assert_null(owner_of(registry, HF_BIGINT, in_class, "Job:a"));
    assert_null(owner_of(registry, HF_BIGINT, 17, "Job:a"));
    assert_null(owner_of(registry, HF_BIGINT, key_of(HF_SHA256, "Job"), "Job"));
    assert_null(owner_of(registry, HF_BIGINT, key_of(HF_SHA256, "Job:a:b"), "Job:a:b"));
    hf_registry_free(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_of_small_patterns_are_known_by_their_keys),
        cmocka_unit_test(test_labels_beside_a_class_are_known_in_the_space_of_pairs),
        cmocka_unit_test(test_patterns_with_too_many_labels_are_left_out_at_no_cost),
        cmocka_unit_test(test_small_expressions_of_every_form_are_known),
        cmocka_unit_test(test_every_label_of_a_pattern_of_ten_thousand_is_known),
        cmocka_unit_test(test_a_key_of_two_labels_has_a_name_but_no_label),
        cmocka_unit_test(test_a_registry_without_labels_knows_nothing),
        cmocka_unit_test(test_a_recorded_label_belongs_to_the_entry_that_gives_it_this_key),
    };

    return RUN(tests);
}
