/* What locks.yaml may say, and what is said of it when it does not. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/registry/document.h"

struct examined {
    hf_registry *registry;
    hf__findings findings;
};

static struct examined examine(const char *text, size_t size)
{
    struct examined result = {0};
    hf_error err;
    assert_int_equal(hf__registry_examine_text("locks.yaml", text, size, &result.registry,
                                               &result.findings, &err),
                     HF_OK);
    return result;
}

static void done(struct examined *result)
{
    hf_registry_free(result->registry);
    hf__findings_free(&result->findings);
}

/* "3:5 unknown-field" */
static void assert_finding(const char *text, size_t size, const char *expected)
{
    struct examined result = examine(text, size);
    char all[2000] = "";
    bool found = false;
    for (size_t i = 0; i < result.findings.count; i++) {
        const hf__finding *finding = &result.findings.items[i];
        char one[400];
        (void)snprintf(one, sizeof one, "%u:%u %s", finding->line, finding->column,
                       finding->rule->id);
        found = found || strcmp(one, expected) == 0;
        size_t used = strlen(all);
        (void)snprintf(all + used, sizeof all - used, "%s: %s\n", one, finding->message);
    }
    if (!found)
        fail_msg("expected %s in\n%s\n%s", expected, text, all);
    done(&result);
}

#define HEAD "version: 1\nlocks:\n"

static const struct {
    const char *text;
    const char *expected;
} faults[] = {
    {"", "1:1 yaml"},
    {"# only a comment\n", "1:1 yaml"},
    {"version: [1\n", "2:1 yaml"},
    {HEAD "\t- name: a\n", "3:1 yaml"},
    {"a: &a [*a]\n", "1:8 yaml"},
    {"a: *nowhere\n", "1:4 yaml"},
    {"version: 1\nlocks: []\n---\nversion: 1\n", "3:1 yaml"},
    {"version: !!int 1\nlocks: []\n", "1:10 yaml"},
    {"? [1]\n: 2\n", "1:3 yaml"},
    {"version: 1\nlocks: []\nversion: 1\n", "3:1 repeated-field"},
    {HEAD "  - name: a\n    key: { fixed: 5000 }\n    name: b\n", "5:5 repeated-field"},
    {"locks: []\n", "1:1 version"},
    {"version: 2\nlocks: []\n", "1:10 version"},
    {"version: \"1\"\nlocks: []\n", "1:10 number-as-string"},
    {"version: one\nlocks: []\n", "1:10 wrong-type"},
    {"version: 1\n", "1:1 missing-field"},
    {"[1, 2]\n", "1:1 wrong-type"},
    {"version: 1\nlocks: 7\n", "2:8 wrong-type"},
    {"version: 1\nlocks:\n  a: b\n", "3:3 wrong-type"},
    {"version: 1\nlocks: []\nlock: []\n", "3:1 unknown-field"},
    {HEAD "  - just text\n", "3:5 wrong-type"},
    {HEAD "  - key: { fixed: 5000 }\n", "3:5 missing-field"},
    {HEAD "  - name: a\n", "3:5 missing-field"},
    {HEAD "  - name: a b\n    key: { fixed: 5000 }\n", "3:11 wrong-value"},
    {HEAD "  - name: \"\"\n    key: { fixed: 5000 }\n", "3:11 wrong-value"},
    {HEAD "  - name:\n    key: { fixed: 5000 }\n", "3:10 wrong-type"},
    {HEAD "  - name: a\n    lifetme: session\n    key: { fixed: 5000 }\n", "4:5 unknown-field"},
    {HEAD "  - name: a\n    lifetime: for ever\n    key: { fixed: 5000 }\n", "4:15 wrong-value"},
    {HEAD "  - name: a\n    lifetime: lease\n    lease: 999ms\n    key: { fixed: 5000 }\n",
     "5:12 wrong-value"},
    {HEAD "  - name: a\n    lifetime: lease\n    lease: 25h\n    key: { fixed: 5000 }\n",
     "5:12 wrong-value"},
    {HEAD "  - name: a\n    lifetime: lease\n    lease: soon\n    key: { fixed: 5000 }\n",
     "5:12 wrong-value"},
    {HEAD "  - name: a\n    lifetime: lease\n    lease: [30s]\n    key: { fixed: 5000 }\n",
     "5:12 wrong-type"},
    {HEAD "  - name: a\n    lifetime: session\n    lease: 30s\n    key: { fixed: 5000 }\n",
     "5:12 wrong-value"},
    {HEAD "  - name: a\n    lease: 30s\n    key: { fixed: 5000 }\n", "4:12 wrong-value"},
    {HEAD "  - name: a\n    mode: both\n    key: { fixed: 5000 }\n", "4:11 wrong-value"},
    {HEAD "  - name: a\n    key: { fixed: \"5000\" }\n", "4:19 number-as-string"},
    {HEAD "  - name: a\n    key: { fixed: 9223372036854775808 }\n", "4:19 id-range"},
    {HEAD "  - name: a\n    key: { fixed: -9223372036854775809 }\n", "4:19 id-range"},
    {HEAD "  - name: a\n    key: { fixed: 0123 }\n", "4:19 wrong-value"},
    {HEAD "  - name: a\n    key: { fixed: 1.5 }\n", "4:19 wrong-type"},
    {HEAD "  - name: a\n    key: { fixed: [1] }\n", "4:19 wrong-type"},
    {HEAD "  - name: a\n    key: 5000\n", "4:10 wrong-type"},
    {HEAD "  - name: a\n    key: {}\n", "4:10 wrong-value"},
    {HEAD "  - name: a\n    key: { fixed: 5000, pattern: x }\n", "4:10 wrong-value"},
    {HEAD "  - name: a\n    key: { fixed: 5000, as: sha256 }\n", "4:10 wrong-value"},
    {HEAD "  - name: a\n    key: { pair: [1] }\n", "4:18 wrong-type"},
    {HEAD "  - name: a\n    key: { pair: [1, 2147483648] }\n", "4:22 id-range"},
    {HEAD "  - name: a\n    key: { pattern: x, as: md4 }\n", "4:28 wrong-value"},
    {HEAD "  - name: a\n    key: { pattern: x, as: fixed }\n", "4:28 wrong-value"},
    {HEAD "  - name: a\n    key: { pattern: x, class: 7 }\n", "4:31 wrong-value"},
    {HEAD "  - name: a\n    key: { pattern: \"{b\" }\n", "4:21 pattern"},
    {HEAD "  - name: a\n    key: { pattern: \"b}\" }\n", "4:21 pattern"},
    {HEAD "  - name: a\n    key: { pattern: \"{1b}\" }\n", "4:21 pattern"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}{b}\" }\n", "4:21 pattern"},
    {HEAD "  - name: a\n    key: { pattern: \"a\\tb\" }\n", "4:21 pattern"},
    {HEAD "  - name: a\n    key: { fixed: 5000 }\n    placeholders: { b: x }\n",
     "5:19 placeholder"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}\" }\n    placeholders: { c: x }\n",
     "5:21 placeholder"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}\" }\n    placeholders: { b: \"(?=x)\" }\n",
     "5:24 expression"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}\" }\n    placeholders: { b: '(x)\\1' }\n",
     "5:24 expression"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}\" }\n    placeholders: { b: '(' }\n",
     "5:24 expression"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}\" }\n    placeholders: { b: '(x{999}){999}' }\n",
     "5:24 expression-limit"},
    {HEAD "  - name: a\n    key: { fixed: 5000 }\n  - name: a\n    key: { fixed: 6000 }\n",
     "5:11 duplicate-name"},
    {HEAD "  - name: a\n    order: soon\n    key: { fixed: 5000 }\n", "4:12 wrong-type"},
    {HEAD "  - name: a\n    expected: 0\n    key: { fixed: 5000 }\n", "4:15 id-range"},
    {HEAD "  - name: a\n    histogram: maybe\n    key: { fixed: 5000 }\n", "4:16 wrong-value"},
    {"version: 1\nlocks: []\nconventions: { generic: lock }\n", "3:25 wrong-type"},
    {"version: 1\nlocks: []\nconventions: { max_risk: 1.5 }\n", "3:26 wrong-value"},
    {"version: 1\nlocks: []\nconventions: { label: free }\n", "3:23 wrong-value"},
    {"version: !!seq [1]\nlocks: []\n", "1:10 yaml"},
    {"version: !!map {}\nlocks: []\n", "1:10 yaml"},
    {HEAD "  - name: -a\n    key: { fixed: 5000 }\n", "3:11 wrong-value"},
    {HEAD "  - name: a=b\n    key: { fixed: 5000 }\n", "3:11 wrong-value"},
    {HEAD "  - name: \"a\\x7f\"\n    key: { fixed: 5000 }\n", "3:11 wrong-value"},
    {HEAD "  - name: ~\n    key: { fixed: 5000 }\n", "3:11 wrong-type"},
    {HEAD "  - name: null\n    key: { fixed: 5000 }\n", "3:11 wrong-type"},
    {HEAD "  - name: a\n    key: { fixed: +0x1G }\n", "4:19 wrong-type"},
    {HEAD "  - name: a\n    key: { pair: 5 }\n", "4:18 wrong-type"},
    {HEAD "  - name: a\n    key: { pattern: x, as: crc32, class: y }\n", "4:42 wrong-type"},
    {HEAD "  - name: a\n    key: { pattern: \"{}\" }\n", "4:21 pattern"},
    {HEAD "  - name: a\n    key: { pattern: \"a\\x7f\" }\n", "4:21 pattern"},
    {HEAD "  - name: a\n    key: { pattern: \"\" }\n", "4:21 wrong-value"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}\" }\n    placeholders: x\n", "5:19 wrong-type"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}\" }\n    placeholders: { b: [] }\n",
     "5:24 placeholder"},
    {HEAD "  - name: a\n    key: { pattern: \"{b}\" }\n    placeholders: { b: x, b: y }\n",
     "5:27 repeated-field"},
    {HEAD "  - name: a\n    source: { b: c }\n    key: { fixed: 5000 }\n", "4:13 wrong-type"},
    {"version: 1\nlocks: []\nstrict: often\n", "3:9 wrong-value"},
    {"version: 1\nlocks: []\nwrappers: x\n", "3:11 wrong-type"},
    {"version: 1\nlocks: []\nwrappers:\n  - { call: \"({label})\", as: sha256 }\n",
     "4:13 wrong-value"},
    {"version: 1\nlocks: []\nwrappers:\n  - { call: \"f({label)\", as: sha256 }\n",
     "4:13 wrong-value"},
    {"version: 1\nlocks: []\nconventions: { max_risk: 1e }\n", "3:26 wrong-type"},
    {"version: 1\nlocks: []\nconventions: { max_risk: . }\n", "3:26 wrong-type"},
    {"version: 1\nlocks: []\nconventions: { max_risk: [1] }\n", "3:26 wrong-type"},
    {"version: 1\nlocks: []\nconventions: { max_risk: 0.:5 }\n", "3:26 wrong-type"},
    {"version: 1\nlocks: []\nconventions: { label: \":id\" }\n", "3:23 wrong-value"},
    {"version: 1\nlocks: []\nconventions: { label: \"a:\" }\n", "3:23 wrong-value"},
    {"version: 1\nlocks: []\nconventions: 7\n", "3:14 wrong-type"},
};

static void test_every_fault_is_reported_where_it_stands(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        assert_finding(faults[i].text, strlen(faults[i].text), faults[i].expected);
}

static void test_bytes_that_are_no_text_are_reported_by_line_and_column(void **state)
{
    static const char nul[] = "version: 1\nlocks: \0\n";
    static const char invalid[] = "version: 1\n# \xc3\xa9 \xff\n";
    static const char control[] = "version: 1\n# \x07\n";
    (void)state;
    assert_finding(nul, sizeof nul - 1, "2:8 yaml");
    assert_finding(invalid, sizeof invalid - 1, "2:5 yaml");
    assert_finding(control, sizeof control - 1, "2:3 yaml");
    assert_finding("a: \"\\0\"\n", 8, "1:4 yaml");
}

static void test_line_ends_of_other_systems_and_a_byte_order_mark_are_read(void **state)
{
    static const char text[] = "\xef\xbb\xbfversion: 1\r\nlocks:\r\n  - name: a\r\n"
                               "    key: { fixed: 5000 }\r\n";
    (void)state;
    struct examined result = examine(text, sizeof text - 1);
    assert_int_equal(result.findings.count, 0);
    assert_int_equal(result.registry->count, 1);
    done(&result);
}

static void assert_too_large(const hf__buf *text)
{
    struct examined result = examine(text->data, text->length);
    assert_int_equal(hf__findings_worst(&result.findings), HF__SEVERITY_BROKEN);
    assert_string_equal(result.findings.items[0].rule->id, "too-large");
    assert_null(result.registry);
    done(&result);
}

static void test_size_nesting_and_repetition_have_limits(void **state)
{
    hf__buf text = {0};
    (void)state;
    for (int i = 0; i < HF__DEPTH_MAX + 1; i++)
        hf__buf_puts(&text, "[");
    assert_too_large(&text);

    hf__buf_clear(&text);
    for (int i = 0; i < HF__FIELDS_MAX + 1; i++)
        hf__buf_printf(&text, "field%d: 1\n", i);
    assert_too_large(&text);

    hf__buf_clear(&text);
    hf__buf_puts(&text, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 10; i++) {
        hf__buf_printf(&text, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++)
            hf__buf_printf(&text, "*a%d,", i - 1);
        hf__buf_puts(&text, "]\n");
    }
    assert_too_large(&text);

    hf__buf_clear(&text);
    while (text.length <= HF__FILE_MAX)
        hf__buf_puts(&text, "# a long, long file that says nothing at all\n");
    assert_too_large(&text);
    hf__buf_free(&text);
}

static void test_a_whole_entry_is_read(void **state)
{
    static const char text[] =
        HEAD "  - name: booking-create\n"
             "    key: { pattern: \"booking:{tenant}:{date}\", as: fnv1a32-js }\n"
             "    placeholders: { date: \"\\\\d{4}-\\\\d{2}-\\\\d{2}\" }\n"
             "    lifetime: transaction\n    mode: shared\n    scope: tenant\n"
             "    component: BookingService\n    purpose: one booking a day\n"
             "    source: [a.ts, b.ts]\n    owner: bookings\n    runbook: https://example.org\n"
             "    expected: 50000\n    order: -20\n    histogram: true\n"
             "conventions: { label: \"Operation:resource\", min_fixed: 7, generic: [x], "
             "max_risk: 0.05 }\n";
    (void)state;
    struct examined result = examine(text, sizeof text - 1);
    assert_int_equal(result.findings.count, 0);
    const hf__lock_entry *entry = &result.registry->entries[0];
    const hf_registry_entry *view = &entry->view;
    assert_string_equal(view->name, "booking-create");
    assert_string_equal(view->pattern, "booking:{tenant}:{date}");
    assert_int_equal(view->derivation, HF_FNV1A32_JS);
    assert_int_equal(view->lifetime, HF_TRANSACTION);
    assert_int_equal(view->mode, HF_SHARED);
    assert_string_equal(view->scope, "tenant");
    assert_string_equal(view->component, "BookingService");
    assert_string_equal(view->purpose, "one booking a day");
    assert_string_equal(view->owner, "bookings");
    assert_string_equal(view->runbook, "https://example.org");
    assert_int_equal(view->expected, 50000);
    assert_true(view->has_order);
    assert_int_equal(view->order, -20);
    assert_true(view->histogram);
    assert_int_equal(entry->source_count, 2);
    assert_string_equal(entry->sources[1].path, "b.ts");
    assert_string_equal(entry->literal_prefix, "booking:");
    assert_int_equal(entry->placeholder_count, 2);
    assert_true(result.registry->conventions.operation_labels);
    assert_int_equal(result.registry->conventions.min_fixed, 7);
    assert_true(result.registry->conventions.max_risk == 0.05);
    done(&result);
}

static void test_lifetime_and_mode_are_what_is_written(void **state)
{
    static const char text[] =
        HEAD "  - { name: a, key: { fixed: 5000 }, lifetime: session, mode: exclusive }\n"
             "  - { name: b, key: { fixed: 6000 }, lifetime: transaction, mode: shared }\n";
    (void)state;
    struct examined result = examine(text, sizeof text - 1);
    assert_int_equal(result.findings.count, 0);
    const hf_registry_entry *first = &result.registry->entries[0].view;
    const hf_registry_entry *second = &result.registry->entries[1].view;
    assert_true(first->lifetime_given && second->lifetime_given);
    assert_int_equal(first->lifetime, HF_SESSION);
    assert_int_equal(first->mode, HF_EXCLUSIVE);
    assert_int_equal(second->lifetime, HF_TRANSACTION);
    assert_int_equal(second->mode, HF_SHARED);
    done(&result);
}

static void test_length_of_a_lease_is_read_wherever_it_stands(void **state)
{
    static const char text[] =
        HEAD "  - { name: a, key: { fixed: 5000 }, lifetime: lease, lease: 1m }\n"
             "  - { name: b, lease: 1500ms, key: { fixed: 6000 }, lifetime: lease }\n"
             "  - { name: c, key: { fixed: 7000 }, lifetime: lease, lease: 45 }\n"
             "  - { name: d, key: { fixed: 8000 }, lifetime: lease }\n";
    static const int lengths[] = {60000, 1500, 45000, 0};
    (void)state;
    struct examined result = examine(text, sizeof text - 1);
    assert_int_equal(result.findings.count, 0);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(result.registry->entries[i].view.lifetime, HF_LEASE);
        assert_int_equal(result.registry->entries[i].view.lease_ms, lengths[i]);
    }
    done(&result);
}

static void test_keys_of_every_form_are_read(void **state)
{
    static const char text[] =
        HEAD "  - { name: a, key: { fixed: -0x10 } }\n"
             "  - { name: b, key: { pair: [-1, 2] } }\n"
             "  - { name: c, key: { pattern: \"c:{{{x}}}\" } }\n"
             "  - { name: d, key: { class: 7, pattern: d, as: hashtext } }\n";
    (void)state;
    struct examined result = examine(text, sizeof text - 1);
    assert_int_equal(result.findings.count, 0);
    const hf__lock_entry *entries = result.registry->entries;
    assert_int_equal(entries[0].view.key, -16);
    assert_int_equal(entries[1].view.space, HF_PAIR);
    assert_int_equal(entries[1].view.pair[0], -1);
    assert_int_equal(entries[2].view.derivation, HF_SHA256);
    assert_string_equal(entries[2].literal_prefix, "c:{");
    assert_int_equal(entries[3].view.space, HF_PAIR);
    assert_int_equal(entries[3].view.pair[0], 7);
    done(&result);
}

static void test_an_alias_stands_for_the_value_of_its_anchor(void **state)
{
    static const char text[] = HEAD "  - { name: a, key: &k { fixed: 5000 }, owner: &o team }\n"
                                    "  - { name: b, key: *k, owner: *o }\n";
    (void)state;
    struct examined result = examine(text, sizeof text - 1);
    assert_int_equal(result.findings.count, 0);
    assert_int_equal(result.registry->entries[1].view.key, 5000);
    assert_string_equal(result.registry->entries[1].view.owner, "team");
    done(&result);
}

static void test_what_can_be_read_is_kept_beside_the_faults(void **state)
{
    static const char text[] = HEAD "  - { name: a, key: { fixed: 5000 }, colour: red }\n"
                                    "  - { name: b, key: { fixed: 6000 } }\n";
    (void)state;
    struct examined result = examine(text, sizeof text - 1);
    assert_int_equal(result.findings.count, 1);
    assert_int_equal(result.registry->count, 2);
    assert_int_equal(result.registry->entries[1].view.key, 6000);
    done(&result);
}

static void test_a_fault_that_leaves_nothing_to_read_is_the_only_one(void **state)
{
    static const char *const texts[] = {
        HEAD "  - { name: a, key: { fixed: 5000 } }\n[\n",
        HEAD "  - { name: a, key: { pattern: \"{x}{x}\" } }\n",
        HEAD "  - { name: a, key: { pattern: \"{x}\" }, placeholders: { x: \"(\" } }\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct examined result = examine(texts[i], strlen(texts[i]));
        if (result.findings.count != 1)
            fail_msg("%zu findings in\n%s", result.findings.count, texts[i]);
        assert_true(i > 0 || result.registry == NULL);
        done(&result);
    }
}

static void test_a_number_may_be_whole(void **state)
{
    static const char text[] = HEAD "  - { name: a, key: { fixed: 5000 } }\n"
                                    "conventions: { max_risk: 1 }\n";
    (void)state;
    struct examined result = examine(text, sizeof text - 1);
    assert_int_equal(result.findings.count, 0);
    assert_true(result.registry->conventions.max_risk == 1);
    done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_is_reported_where_it_stands),
        cmocka_unit_test(test_bytes_that_are_no_text_are_reported_by_line_and_column),
        cmocka_unit_test(test_line_ends_of_other_systems_and_a_byte_order_mark_are_read),
        cmocka_unit_test(test_size_nesting_and_repetition_have_limits),
        cmocka_unit_test(test_a_whole_entry_is_read),
        cmocka_unit_test(test_lifetime_and_mode_are_what_is_written),
        cmocka_unit_test(test_length_of_a_lease_is_read_wherever_it_stands),
        cmocka_unit_test(test_keys_of_every_form_are_read),
        cmocka_unit_test(test_an_alias_stands_for_the_value_of_its_anchor),
        cmocka_unit_test(test_what_can_be_read_is_kept_beside_the_faults),
        cmocka_unit_test(test_a_fault_that_leaves_nothing_to_read_is_the_only_one),
        cmocka_unit_test(test_a_number_may_be_whole),
    };
    return RUN(tests);
}
