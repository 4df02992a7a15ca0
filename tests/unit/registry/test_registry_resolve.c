/* What names and labels stand for under a registry. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/registry/registry.h"

static const char text[] =
    "version: 1\n"
    "locks:\n"
    "  - { name: cleanup, key: { fixed: 42424242 } }\n"
    "  - { name: cleanup-all, key: { fixed: 42424243 } }\n"
    "  - { name: pair, key: { pair: [7, -1] } }\n"
    "  - { name: constant, key: { pattern: \"Only:one\", as: fnv1a64 } }\n"
    "  - name: booking\n"
    "    key: { pattern: \"booking:{tenant}:{date}\", as: fnv1a32-js }\n"
    "    placeholders: { date: \"\\\\d{4}-\\\\d{2}-\\\\d{2}\" }\n"
    "  - name: ingest\n"
    "    key: { pattern: \"wallet-backend-ingest-{network}\", as: fnv1a64 }\n"
    "    placeholders: { network: [testnet, pubnet, a.b] }\n"
    "  - { name: classed, key: { class: 7, pattern: \"job:{id}\", as: hashtext } }\n"
    "  - { name: table, key: { pattern: \"table:{name}\", as: minted } }\n"
    "  - { name: wide, key: { pattern: \"x:{rest}\", as: sha256 } }\n"
    "  - { name: narrow, key: { pattern: \"x:1{rest}\", as: fnv1a64 } }\n"
    "  - { name: same, key: { pattern: \"x:2{rest}\", as: sha256 } }\n"
    "  - { name: braces, key: { pattern: \"{{{a}}}\" } }\n"
    "conventions: { generic: [Stuff] }\n";

static hf_registry *registry;

static int read_registry(void **state)
{
    hf__findings findings = {0};
    (void)state;
    hf_status status =
        hf__registry_examine_text("locks.yaml", text, sizeof text - 1, &registry, &findings, NULL);
    bool clean = status == HF_OK && findings.count == 0;
    hf__findings_free(&findings);
    return clean ? 0 : -1;
}

static int free_registry(void **state)
{
    (void)state;
    hf_registry_free(registry);
    return 0;
}

static const hf_registry_entry *resolve(const char *label, hf_target *target)
{
    const hf_registry_entry *entry = NULL;
    hf_error err = {0};
    if (hf_registry_resolve(registry, label, 0, target, &entry, &err) != HF_OK)
        fail_msg("%s: %s", label, err.message);
    return entry;
}

static void test_a_name_stands_for_its_number(void **state)
{
    hf_target target;
    (void)state;
    assert_string_equal(resolve("cleanup", &target)->name, "cleanup");
    assert_int_equal(target.derivation, HF_FIXED);
    assert_int_equal(target.key, 42424242);
    assert_string_equal(target.label, "cleanup");
    assert_string_equal(resolve("cleanup-all", &target)->name, "cleanup-all");

    assert_string_equal(resolve("pair", &target)->name, "pair");
    assert_int_equal(target.space, HF_PAIR);
    assert_int_equal(target.pair[0], 7);
    assert_int_equal(target.pair[1], -1);
}

static void test_a_label_takes_the_derivation_of_its_pattern(void **state)
{
    hf_target target;
    (void)state;
    assert_string_equal(resolve("booking:7:2026-01-15", &target)->name, "booking");
    assert_int_equal(target.derivation, HF_FNV1A32_JS);
    assert_string_equal(resolve("Only:one", &target)->name, "constant");
    assert_int_equal(target.derivation, HF_FNV1A64);
    assert_string_equal(resolve("constant", &target)->name, "constant");
    assert_string_equal(target.label, "Only:one");
    assert_string_equal(resolve("wallet-backend-ingest-a.b", &target)->name, "ingest");
}

static void test_a_label_with_a_class_is_two_numbers(void **state)
{
    hf_target target;
    int64_t key = 0;
    (void)state;
    assert_string_equal(resolve("job:1", &target)->name, "classed");
    assert_int_equal(target.space, HF_PAIR);
    assert_int_equal(target.pair[0], 7);
    assert_int_equal(hf_key_derive(HF_HASHTEXT, "job:1", 5, &key, NULL), HF_OK);
    assert_int_equal(target.pair[1], (int32_t)key);
}

static void test_what_the_registry_does_not_know_is_left_alone(void **state)
{
    static const char *const labels[] = {
        "unknown",   "booking:7:2026-1-15",       "booking::2026-01-15",
        "Cleanup",   "wallet-backend-ingest-axb", "booking:a:b:2026-01-15",
        "booking:7", "wallet-backend-ingest-",    "Only:one ",
        "x:",
    };
    (void)state;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        hf_target target;
        if (resolve(labels[i], &target))
            fail_msg("%s is known", labels[i]);
        assert_int_equal(target.derivation, HF_SHA256);
        assert_ptr_equal(target.label, labels[i]);
    }
}

static void test_a_label_of_two_locks_is_refused_unless_they_agree_on_the_key(void **state)
{
    hf_target target;
    const hf_registry_entry *entry = NULL;
    hf_error err = {0};
    (void)state;
    assert_int_equal(hf_registry_resolve(registry, "x:12", 0, &target, &entry, &err), HF_CONFIG);
    assert_non_null(strstr(err.message, "wide"));
    assert_non_null(strstr(err.message, "narrow"));
    assert_string_equal(resolve("x:22", &target)->name, "wide");
}

static void test_the_name_of_a_pattern_alone_is_refused_and_told_what_it_takes(void **state)
{
    hf_target target;
    const hf_registry_entry *entry = NULL;
    hf_error err = {0};
    (void)state;
    assert_int_equal(hf_registry_resolve(registry, "booking", 0, &target, &entry, &err),
                     HF_INVALID);
    assert_non_null(strstr(err.hint, "tenant="));
    assert_non_null(strstr(err.hint, "date="));
}

static void test_a_minted_key_is_not_derived(void **state)
{
    hf_target target;
    int64_t key = 0;
    (void)state;
    assert_string_equal(resolve("table:events", &target)->name, "table");
    assert_int_equal(target.derivation, HF_MINTED);
    assert_int_equal(hf_key_derive(target.derivation, "table:events", 12, &key, NULL), HF_INVALID);
}

static void fill(const char *name, const char *const *values, size_t count, const char *expected)
{
    char *label = NULL;
    hf_error err = {0};
    hf_status status =
        hf_registry_fill(hf_registry_find(registry, name), values, count, &label, &err);
    if (expected && (status != HF_OK || strcmp(label, expected) != 0))
        fail_msg("%s became %s: %s", name, label ? label : "nothing", err.message);
    if (!expected && status != HF_INVALID)
        fail_msg("%s was filled: %s", name, label ? label : err.message);
    free(label);
}

static void test_a_pattern_is_filled_in_any_order(void **state)
{
    (void)state;
    fill("booking", (const char *[]){"date=2026-01-15", "tenant=7"}, 2, "booking:7:2026-01-15");
    fill("booking", (const char *[]){"tenant=a=b", "date=2026-01-15"}, 2, "booking:a=b:2026-01-15");
    fill("ingest", (const char *[]){"network=pubnet"}, 1, "wallet-backend-ingest-pubnet");
    fill("braces", (const char *[]){"a=x"}, 1, "{x}");
    fill("constant", NULL, 0, "Only:one");
}

static void test_missing_unknown_repeated_and_ill_formed_values_are_refused(void **state)
{
    (void)state;
    fill("booking", (const char *[]){"tenant=7"}, 1, NULL);
    fill("booking", NULL, 0, NULL);
    fill("booking", (const char *[]){"tenant=7", "date=2026-01-15", "room=1"}, 3, NULL);
    fill("booking", (const char *[]){"tenant=7", "tenant=7", "date=2026-01-15"}, 3, NULL);
    fill("booking", (const char *[]){"tenant=7", "date=tomorrow"}, 2, NULL);
    fill("booking", (const char *[]){"tenant=", "date=2026-01-15"}, 2, NULL);
    fill("booking", (const char *[]){"tenant=a:b", "date=2026-01-15"}, 2, NULL);
    fill("booking", (const char *[]){"tenant=a\nb", "date=2026-01-15"}, 2, NULL);
    fill("ingest", (const char *[]){"network=axb"}, 1, NULL);
    fill("cleanup", (const char *[]){"tenant=7"}, 1, NULL);
    fill("cleanup", NULL, 0, NULL);
}

static void test_generic_labels_are_those_of_the_conventions(void **state)
{
    (void)state;
    assert_true(hf__registry_is_generic(registry, "stuff", 5));
    assert_false(hf__registry_is_generic(registry, "lock", 4));
    assert_true(hf__registry_is_generic(NULL, "LOCK", 4));
}

static void test_fixed_keys_are_found_in_their_own_space(void **state)
{
    int64_t pair = hf_key_join(7, UINT32_MAX);
    (void)state;
    assert_string_equal(hf__registry_by_key(registry, HF_BIGINT, 42424242)->view.name, "cleanup");
    assert_string_equal(hf__registry_by_key(registry, HF_PAIR, pair)->view.name, "pair");
    assert_null(hf__registry_by_key(registry, HF_PAIR, 42424242));
    assert_null(hf__registry_by_key(registry, HF_BIGINT, pair));
    assert_null(hf__registry_by_key(registry, HF_BIGINT, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_stands_for_its_number),
        cmocka_unit_test(test_a_label_takes_the_derivation_of_its_pattern),
        cmocka_unit_test(test_a_label_with_a_class_is_two_numbers),
        cmocka_unit_test(test_what_the_registry_does_not_know_is_left_alone),
        cmocka_unit_test(test_a_label_of_two_locks_is_refused_unless_they_agree_on_the_key),
        cmocka_unit_test(test_the_name_of_a_pattern_alone_is_refused_and_told_what_it_takes),
        cmocka_unit_test(test_a_minted_key_is_not_derived),
        cmocka_unit_test(test_a_pattern_is_filled_in_any_order),
        cmocka_unit_test(test_missing_unknown_repeated_and_ill_formed_values_are_refused),
        cmocka_unit_test(test_generic_labels_are_those_of_the_conventions),
        cmocka_unit_test(test_fixed_keys_are_found_in_their_own_space),
    };
    return cmocka_run_group_tests(tests, read_registry, free_registry);
}
