#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/registry/collisions.h"
#include "programs/registry/matcher.h"

/* --- sorting ---------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t number)
{
    number = (number ^ number >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return number ^ number >> 27;
}

static void assert_sorts(size_t count, uint64_t mask)
{
    hf__keyed *items = calloc(count + 1, sizeof *items);
    uint64_t places = 0;

    assert_non_null(items);
    for (size_t i = 0; i < count; i++)
        items[i] = (hf__keyed){.key = mixed(i) & mask, .place = i};
    hf__keyed_sort(items, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || items[i - 1].key <= items[i].key);
        assert_true(items[i].key == (mixed(items[i].place) & mask));
        places += items[i].place;
    }
    assert_true(places == (uint64_t)count * (count - (count > 0)) / 2);
    free(items);
}

static void test_items_come_sorted_and_keep_their_places(void **state)
{
    static const size_t counts[] = {0, 1, 2, 23, 24, 25, 1000, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        assert_sorts(counts[i], UINT64_MAX);
        assert_sorts(counts[i], 0);
        assert_sorts(counts[i], 0xFF);
        assert_sorts(counts[i], UINT64_C(0xFF) << 56);
        assert_sorts(counts[i], UINT64_C(0xFFFF0000FFFF));
    }
}

/* --- labels ----------------------------------------------------------------------------------- */

struct seen {
    struct hf__collisions found;
    struct hf__own_labels own;
    hf_registry *registry;
    hf_status status;
    hf_error err;
};

static struct seen look(const char *text, size_t size, char separator, const char *registry,
                        const hf_derivation *as)
{
    struct seen seen = {0};
    struct hf__label_list list = {"labels", text, size, separator};
    hf__findings findings = {0};

    if (registry != NULL) {
        hf_status status = hf__registry_examine_text("locks.yaml", registry, strlen(registry),
                                                     &seen.registry, &findings, NULL);
        assert_int_equal(status, HF_OK);
        for (size_t i = 0; i < findings.count; i++)
            if (findings.items[i].rule->severity >= HF__SEVERITY_ERROR)
                fail_msg("%u: %s", findings.items[i].line, findings.items[i].message);
        hf__findings_free(&findings);
    }
    if (seen.registry != NULL)
        assert_int_equal(hf__own_labels_list(seen.registry, false, &seen.own, NULL), HF_OK);
    seen.status = hf__collisions_find(&list, seen.registry, &seen.own, as, &seen.found, &seen.err);
    return seen;
}

static void forget(struct seen *seen)
{
    hf__collisions_free(&seen->found);
    hf__own_labels_free(&seen->own);
    hf_registry_free(seen->registry);
}

static struct seen look_at(const char *text, hf_derivation as)
{
    return look(text, strlen(text), '\n', NULL, &as);
}

/* Different labels that get one key, found by trying: about 80 000 are enough for 32 bits. */
struct pair {
    char first[256];
    char second[256];
};

static const char *label_number(char out[256], const char *prefix, uint64_t number)
{
    snprintf(out, 256, "%s%" PRIx64, prefix, mixed(number));
    return out;
}

static struct pair find_pair(const char *prefix, hf_derivation derivation)
{
    enum { TRIES = 400000 };
    hf__keyed *tried = calloc(TRIES, sizeof *tried);
    struct pair pair = {"", ""};
    int64_t key = 0;

    assert_non_null(tried);
    for (unsigned i = 0; i < TRIES; i++) {
        label_number(pair.first, prefix, i);
        assert_int_equal(hf_key_derive(derivation, pair.first, strlen(pair.first), &key, NULL), 0);
        tried[i] = (hf__keyed){.key = (uint64_t)key, .place = i};
    }
    hf__keyed_sort(tried, TRIES);
    for (size_t i = 1; i < TRIES && pair.second[0] == '\0'; i++) {
        if (tried[i - 1].key == tried[i].key) {
            label_number(pair.first, prefix, tried[i - 1].place);
            label_number(pair.second, prefix, tried[i].place);
        }
    }
    free(tried);
    assert_true(pair.second[0] != '\0');
    assert_string_not_equal(pair.first, pair.second);
    return pair;
}

static void assert_collider(const struct hf__collider *collider, const char *label, uint64_t line,
                            uint64_t times)
{
    assert_int_equal(collider->size, strlen(label));
    assert_memory_equal(collider->label, label, collider->size);
    assert_int_equal(collider->line, line);
    assert_int_equal(collider->times, times);
}

static void test_real_collisions_are_found_with_their_lines(void **state)
{
    static const hf_derivation small[] = {HF_FNV1A32, HF_FNV1A32_JS, HF_HASHTEXT};

    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        struct pair pair = find_pair("k", small[i]);
        char text[1024];
        int64_t key = 0;
        snprintf(text, sizeof text, "x\n\n%s\ny\n%s\n%s", pair.second, pair.first, pair.second);
        struct seen seen = look_at(text, small[i]);
        assert_int_equal(seen.status, HF_OK);
        assert_int_equal(seen.found.labels, 5);
        assert_int_equal(seen.found.duplicates, 1);
        assert_int_equal(seen.found.count, 1);
        assert_int_equal(seen.found.items[0].count, 2);
        assert_collider(&seen.found.items[0].colliders[0], pair.second, 3, 2);
        assert_collider(&seen.found.items[0].colliders[1], pair.first, 5, 1);
        assert_int_equal(hf_key_derive(small[i], pair.first, strlen(pair.first), &key, NULL),
                         HF_OK);
        assert_true(seen.found.items[0].key == key);
        forget(&seen);
    }
}

static void test_duplicates_are_no_collisions(void **state)
{
    struct seen seen = look_at("a\nb\na\na\nb\nc\n", HF_FNV1A32);

    (void)state;
    assert_int_equal(seen.found.labels, 6);
    assert_int_equal(seen.found.duplicates, 3);
    assert_int_equal(seen.found.count, 0);
    forget(&seen);
}

static void test_line_ends_of_every_kind_are_no_part_of_a_label(void **state)
{
    static const char *const texts[] = {"a\nb\n", "a\r\nb\r\n", "a\nb", "a\r\nb\r", "\n\na\n\r\nb"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct seen seen = look_at(texts[i], HF_FNV1A32);
        assert_int_equal(seen.status, HF_OK);
        assert_int_equal(seen.found.labels, 2);
        assert_int_equal(seen.found.duplicates, 0);
        forget(&seen);
    }
    hf_derivation as = HF_SHA256;
    struct seen seen = look("a\0b\0\0a", 6, '\0', NULL, &as);
    assert_int_equal(seen.found.labels, 3);
    assert_int_equal(seen.found.duplicates, 1);
    forget(&seen);
}

static void test_an_empty_list_has_no_collisions(void **state)
{
    static const char *const texts[] = {"", "\n", "\r\n\n\n"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct seen seen = look_at(texts[i], HF_SHA256);
        assert_int_equal(seen.status, HF_OK);
        assert_int_equal(seen.found.labels, 0);
        forget(&seen);
    }
}

static void refuse(const char *text, size_t size, hf_derivation as, const char *message)
{
    struct seen seen = look(text, size, '\n', NULL, &as);

    assert_int_equal(seen.status, HF_BAD_DATA);
    assert_string_equal(seen.err.message, message);
    assert_null(seen.found.items);
    forget(&seen);
}

static void test_what_is_no_label_is_refused_with_its_line(void **state)
{
    size_t size = HF_LABEL_MAX + 3;
    char *text = malloc(size);

    (void)state;
    refuse("a\nb\tc\n", 6, HF_SHA256, "labels:2: the label has a control character: 'b\\tc'");
    refuse("a\n\nb\0c", 6, HF_SHA256, "labels:3: the label has a control character: 'b\\x00c'");
    refuse("a\rb\n", 4, HF_SHA256, "labels:1: the label has a control character: 'a\\rb'");
    refuse("a\nb\xff\n", 5, HF_FNV1A32_JS, "labels:2: the label is not valid UTF-8 at byte 2");
    refuse("12\nx\n", 5, HF_FIXED, "labels:2: the key is not a whole number: 'x'");
    assert_non_null(text);
    memset(text, 'x', size);
    text[1] = '\n';
    refuse(text, size, HF_SHA256, "labels:2: the label has 65537 bytes, more than 65536");
    struct seen seen = look(text, size - 1, '\n', NULL, NULL);
    assert_int_equal(seen.status, HF_OK);
    assert_int_equal(seen.found.labels, 2);
    forget(&seen);
    free(text);
}

/* FNV-1a goes on from what it has, so a pair goes on colliding with any common end. */
static void test_output_is_bounded_whatever_the_list(void **state)
{
    enum { KEYS = HF__COLLISIONS_MAX + 50 };
    struct pair pair = find_pair("k", HF_FNV1A32);
    hf__buf text = {0};

    (void)state;
    for (int i = 0; i < KEYS; i++)
        hf__buf_printf(&text, "%s-%d\n%s-%d\n", pair.first, i, pair.second, i);
    assert_false(text.broken);
    struct seen seen = look_at(text.data, HF_FNV1A32);
    assert_int_equal(seen.status, HF_OK);
    assert_int_equal(seen.found.count, KEYS);
    assert_int_equal(seen.found.kept, HF__COLLISIONS_MAX);
    for (size_t i = 0; i < seen.found.kept; i++) {
        assert_int_equal(seen.found.items[i].colliders[0].line + 1,
                         seen.found.items[i].colliders[1].line);
        assert_true(i == 0 || seen.found.items[i - 1].colliders[0].line <
                                  seen.found.items[i].colliders[0].line);
    }
    forget(&seen);
    hf__buf_free(&text);
}

/* Each pair that collides behind the last one doubles the labels of the one key. */
static void test_many_labels_of_one_key_are_counted(void **state)
{
    enum { STEPS = 8, LABELS = 1 << STEPS };
    struct pair steps[STEPS] = {0};
    hf__buf text = {0};
    const char *prefix = "";

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        steps[step] = find_pair(prefix, HF_FNV1A32);
        prefix = steps[step].first;
    }
    for (unsigned i = 0; i < 3 * LABELS; i++) {
        for (unsigned step = 0, from = 0; step < STEPS; step++) {
            hf__buf_puts(&text, (i >> step & 1 ? steps[step].second : steps[step].first) + from);
            from = (unsigned)strlen(steps[step].first);
        }
        hf__buf_puts(&text, "\n");
    }
    assert_false(text.broken);
    struct seen seen = look_at(text.data, HF_FNV1A32);
    assert_int_equal(seen.found.labels, 3 * LABELS);
    assert_int_equal(seen.found.duplicates, 2 * LABELS);
    assert_int_equal(seen.found.count, 1);
    assert_int_equal(seen.found.items[0].count, LABELS);
    assert_int_equal(seen.found.items[0].kept, HF__COLLIDERS_MAX);
    forget(&seen);
    hf__buf_free(&text);
}

/* --- with a registry -------------------------------------------------------------------------- */

static struct seen look_with(const char *locks, const char *text)
{
    hf__buf registry = {0};

    hf__buf_printf(&registry, "version: 1\nlocks:\n%s", locks);
    assert_false(registry.broken);
    struct seen seen = look(text, strlen(text), '\n', registry.data, NULL);
    hf__buf_free(&registry);
    return seen;
}

static void test_a_label_that_hits_a_fixed_id_collides_with_its_lock(void **state)
{
    char locks[256];
    int64_t key = 0;

    (void)state;
    assert_int_equal(hf_key_derive(HF_FNV1A32, "k:7", 3, &key, NULL), HF_OK);
    snprintf(locks, sizeof locks,
             "  - name: cleanup\n    key: { fixed: %" PRId64 " }\n    lifetime: session\n"
             "  - name: k\n    key: { pattern: \"k:{n}\", as: fnv1a32 }\n    lifetime: session\n",
             key);
    struct seen seen = look_with(locks, "k:6\nk:7\nk:8\n");
    assert_int_equal(seen.status, HF_OK);
    assert_int_equal(seen.found.count, 1);
    assert_collider(&seen.found.items[0].colliders[0], "k:7", 2, 1);
    assert_string_equal(seen.found.items[0].colliders[0].entry->view.name, "k");
    assert_collider(&seen.found.items[0].colliders[1], "cleanup", 0, 0);
    assert_string_equal(seen.found.items[0].colliders[1].entry->view.name, "cleanup");
    forget(&seen);
}

static void test_a_name_and_its_own_label_are_one_lock(void **state)
{
    static const char locks[] =
        "  - name: cleanup\n    key: { fixed: 42424242 }\n    lifetime: session\n"
        "  - name: nightly\n    key: { pattern: \"Nightly:all\", as: fnv1a32 }\n"
        "    lifetime: session\n";
    struct seen seen = look_with(locks, "cleanup\nnightly\nNightly:all\ncleanup\n");

    (void)state;
    assert_int_equal(seen.status, HF_OK);
    assert_int_equal(seen.found.labels, 4);
    assert_int_equal(seen.found.duplicates, 2);
    assert_int_equal(seen.found.count, 0);
    forget(&seen);
}

static void test_a_label_of_the_registry_that_is_not_in_the_list_counts(void **state)
{
    struct pair pair = find_pair("k", HF_FNV1A32);
    char locks[1024];

    (void)state;
    snprintf(locks, sizeof locks,
             "  - name: known\n    key: { pattern: \"%s\", as: fnv1a32 }\n    lifetime: session\n"
             "  - name: others\n    key: { pattern: \"k{n}\", as: fnv1a32 }\n"
             "    placeholders: { n: \"[0-9a-f]+\" }\n    lifetime: session\n",
             pair.first);
    struct seen seen = look_with(locks, pair.second);
    assert_int_equal(seen.status, HF_OK);
    assert_int_equal(seen.found.count, 1);
    assert_collider(&seen.found.items[0].colliders[1], pair.first, 0, 0);
    forget(&seen);
}

static void test_keys_of_one_and_of_two_numbers_never_meet(void **state)
{
    struct pair pair = find_pair("k", HF_FNV1A32);
    char locks[2048], text[2048];

    (void)state;
    /* In class 0 a positive key has the bits of the bigint key. */
    snprintf(locks, sizeof locks,
             "  - name: a\n    key: { pattern: \"%s\", as: fnv1a32 }\n    lifetime: session\n"
             "  - name: b\n    key: { class: 0, pattern: \"%s\", as: fnv1a32 }\n"
             "    lifetime: session\n"
             "  - name: c\n    key: { class: -1, pattern: \"%s!\", as: fnv1a32 }\n"
             "    lifetime: session\n",
             pair.first, pair.second, pair.second);
    snprintf(text, sizeof text, "%s\n%s\n%s!\n%s!\n", pair.first, pair.second, pair.second,
             pair.first);
    struct seen seen = look_with(locks, text);
    assert_int_equal(seen.status, HF_OK);
    assert_int_equal(seen.found.labels, 4);
    assert_int_equal(seen.found.count, 0);
    forget(&seen);
}

static void test_minted_labels_are_counted_and_not_compared(void **state)
{
    struct seen seen = look_with("  - name: m\n    key: { pattern: \"m:{x}\", as: minted }\n"
                                 "    lifetime: session\n",
                                 "m:1\nm:2\nother\n");

    (void)state;
    assert_int_equal(seen.status, HF_OK);
    assert_int_equal(seen.found.labels, 3);
    assert_int_equal(seen.found.minted, 2);
    forget(&seen);
}

static void test_a_label_that_stands_for_no_lock_is_refused_with_its_line(void **state)
{
    static const char locks[] =
        "  - name: a\n    key: { pattern: \"a:{x}\", as: fnv1a32 }\n    lifetime: session\n"
        "  - name: b\n    key: { pattern: \"{y}:b\", as: sha256 }\n    lifetime: session\n";
    struct seen seen = look_with(locks, "a:1\nb\n");

    (void)state;
    assert_int_equal(seen.status, HF_BAD_DATA);
    assert_int_equal(strncmp(seen.err.message, "labels:2: b is a pattern", 24), 0);
    forget(&seen);
    seen = look_with(locks, "a:1\n\na:b\n");
    assert_int_equal(seen.status, HF_CONFIG);
    assert_int_equal(strncmp(seen.err.message, "labels:3: 'a:b' matches two", 27), 0);
    forget(&seen);
}

static void compare_answers(const hf__matcher *matcher, const hf_registry *registry,
                            const char *label)
{
    const hf_registry_entry *wanted_entry = NULL, *entry = NULL;
    hf_target wanted, target;
    hf_error wanted_err = {0}, err = {0};
    size_t size = strlen(label);

    hf_status status =
        hf_registry_resolve(registry, label, size, &wanted, &wanted_entry, &wanted_err);
    if (hf__matcher_resolve(matcher, label, size, &target, &entry, &err) != status)
        fail_msg("%s: %s, not %s", label, err.message, wanted_err.message);
    assert_string_equal(err.message, wanted_err.message);
    if (status != HF_OK)
        return;
    assert_ptr_equal(entry, wanted_entry);
    assert_int_equal(target.derivation, wanted.derivation);
    assert_int_equal(target.space, wanted.space);
    assert_true(target.key == wanted.key);
    assert_memory_equal(target.pair, wanted.pair, sizeof target.pair);
    assert_int_equal(target.label_size, wanted.label_size);
    assert_memory_equal(target.label, wanted.label, wanted.label_size);
}

static void test_the_index_answers_as_the_registry_does(void **state)
{
    static const char *const patterns[] = {"a:{x}",  "a:b:{x}", "{x}:b",  "ab{x}", "a:b:c",
                                           "ab:{x}", "b",       "a:{x}:", "c:{x}", "{x}:{y}:c"};
    enum { PATTERNS = sizeof patterns / sizeof patterns[0] };
    hf__buf text = {0};
    hf__matcher *matcher = NULL;
    char label[8];

    (void)state;
    hf__buf_puts(&text, "version: 1\nlocks:\n"
                        "  - name: ab:a\n    key: { fixed: 9999 }\n    lifetime: session\n");
    for (int i = 0; i < PATTERNS; i++)
        hf__buf_printf(&text,
                       "  - name: p%d\n    key: { pattern: \"%s\", as: %s%s }\n"
                       "    lifetime: session\n",
                       i, patterns[i], i % 3 == 0 ? "fnv1a32" : "hashtext",
                       i % 4 == 0 ? ", class: 3" : "");
    assert_false(text.broken);
    struct seen seen = look("", 0, '\n', text.data, NULL);
    assert_int_equal(seen.status, HF_OK);
    assert_int_equal(hf__matcher_new(seen.registry, &matcher, NULL), HF_OK);
    for (unsigned i = 0; i < 4 * 4 * 4 * 4 * 4 * 4; i++) { /* every text of up to six letters */
        size_t size = 0;
        for (unsigned rest = i + 1; rest > 0; rest /= 4)
            label[size++] = "abc:"[rest % 4];
        label[size] = '\0';
        compare_answers(matcher, seen.registry, label);
    }
    compare_answers(matcher, seen.registry, "p3");
    compare_answers(matcher, seen.registry, "p6");
    hf__matcher_free(matcher);
    forget(&seen);
    hf__buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_come_sorted_and_keep_their_places),
        cmocka_unit_test(test_real_collisions_are_found_with_their_lines),
        cmocka_unit_test(test_duplicates_are_no_collisions),
        cmocka_unit_test(test_line_ends_of_every_kind_are_no_part_of_a_label),
        cmocka_unit_test(test_an_empty_list_has_no_collisions),
        cmocka_unit_test(test_what_is_no_label_is_refused_with_its_line),
        cmocka_unit_test(test_output_is_bounded_whatever_the_list),
        cmocka_unit_test(test_many_labels_of_one_key_are_counted),
        cmocka_unit_test(test_a_label_that_hits_a_fixed_id_collides_with_its_lock),
        cmocka_unit_test(test_a_name_and_its_own_label_are_one_lock),
        cmocka_unit_test(test_a_label_of_the_registry_that_is_not_in_the_list_counts),
        cmocka_unit_test(test_keys_of_one_and_of_two_numbers_never_meet),
        cmocka_unit_test(test_the_index_answers_as_the_registry_does),
        cmocka_unit_test(test_minted_labels_are_counted_and_not_compared),
        cmocka_unit_test(test_a_label_that_stands_for_no_lock_is_refused_with_its_line),
    };
    return RUN(tests);
}
