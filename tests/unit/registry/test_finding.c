#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/registry/finding.h"

static const hf__rule duplicate = {"duplicate", HF__SEVERITY_ERROR, "Names are unique."};
static const hf__rule advice = {"advice", HF__SEVERITY_NOTE, "Could be better."};
static const hf__rule broken = {"broken", HF__SEVERITY_BROKEN, "Cannot be read."};

static void assert_finding(const hf__findings *findings, size_t index, const char *file,
                           unsigned line, unsigned column, const char *message)
{
    assert_true(index < findings->count);
    const hf__finding *finding = &findings->items[index];
    assert_string_equal(finding->file, file);
    assert_int_equal(finding->line, line);
    assert_int_equal(finding->column, column);
    assert_string_equal(finding->message, message);
}

static void test_a_finding_keeps_copies_of_what_it_was_given(void **state)
{
    hf__findings findings = {0};
    char file[] = "locks.yaml";
    char remedy[] = "rename one";

    (void)state;
    hf__finding *made =
        hf__findings_add(&findings, &duplicate, file, 3, 7, remedy, "%s is there %d times", "a", 2);
    memset(file, 'x', sizeof file - 1);
    memset(remedy, 'x', sizeof remedy - 1);
    assert_ptr_equal(made, &findings.items[0]);
    assert_finding(&findings, 0, "locks.yaml", 3, 7, "a is there 2 times");
    assert_string_equal(made->remedy, "rename one");
    assert_null(made->confidence);
    hf__findings_free(&findings);
    assert_null(findings.items);
    assert_int_equal(findings.count, 0);
}

static void test_a_file_is_named_once_however_often_it_is_pointed_to(void **state)
{
    hf__findings findings = {0};

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        hf__findings_add(&findings, &advice, i % 2 == 0 ? "a" : "b", i + 1, 1, NULL, "x");
    assert_int_equal(findings.file_count, 2);
    assert_ptr_equal(findings.items[0].file, findings.items[98].file);
    hf__findings_free(&findings);
}

static void test_sorting_goes_by_file_as_first_named_then_place_then_rule(void **state)
{
    hf__findings findings = {0};

    (void)state;
    hf__findings_add(&findings, &duplicate, "z.yaml", 9, 1, "", "last of z");
    hf__findings_add(&findings, &duplicate, "a.yaml", 1, 1, "", "in a");
    hf__findings_add(&findings, &duplicate, "z.yaml", 2, 10, "", "second rule");
    hf__findings_add(&findings, &advice, "z.yaml", 2, 10, "", "first rule");
    hf__findings_add(&findings, &duplicate, "z.yaml", 2, 9, "", "earlier column");
    hf__findings_add(&findings, &duplicate, "z.yaml", 0, 0, "", "whole file");
    hf__findings_sort(&findings);
    assert_int_equal(findings.count, 6);
    assert_finding(&findings, 0, "z.yaml", 0, 0, "whole file");
    assert_finding(&findings, 1, "z.yaml", 2, 9, "earlier column");
    assert_finding(&findings, 2, "z.yaml", 2, 10, "first rule");
    assert_finding(&findings, 3, "z.yaml", 2, 10, "second rule");
    assert_finding(&findings, 4, "z.yaml", 9, 1, "last of z");
    assert_finding(&findings, 5, "a.yaml", 1, 1, "in a");
    hf__findings_free(&findings);
}

static void test_only_an_exact_repetition_goes(void **state)
{
    hf__findings findings = {0};

    (void)state;
    hf__findings_sort(&findings);
    hf__findings_add(&findings, &duplicate, "a", 1, 1, "do", "same");
    hf__findings_add(&findings, &duplicate, "a", 1, 1, "do", "other");
    hf__findings_add(&findings, &duplicate, "a", 1, 1, "do", "same");
    hf__findings_add(&findings, &duplicate, "a", 1, 1, "do not", "same");
    hf__findings_add(&findings, &duplicate, "a", 1, 1, "do", "same");
    hf__findings_sort(&findings);
    assert_int_equal(findings.count, 3);
    assert_string_equal(findings.items[0].message, "other");
    assert_string_equal(findings.items[1].remedy, "do");
    assert_string_equal(findings.items[2].remedy, "do not");
    hf__findings_free(&findings);
}

static void test_the_worst_severity_is_that_of_the_worst_finding(void **state)
{
    hf__findings findings = {0};

    (void)state;
    assert_int_equal(hf__findings_worst(&findings), HF__SEVERITY_NOTE);
    hf__findings_add(&findings, &duplicate, "a", 1, 1, "", "x");
    hf__findings_add(&findings, &advice, "a", 2, 1, "", "x");
    assert_int_equal(hf__findings_worst(&findings), HF__SEVERITY_ERROR);
    hf__findings_add(&findings, &broken, "a", 3, 1, "", "x");
    assert_int_equal(hf__findings_worst(&findings), HF__SEVERITY_BROKEN);
    assert_string_equal(hf__severity_name(HF__SEVERITY_BROKEN), "error");
    hf__findings_free(&findings);
}

static void test_findings_beyond_the_limit_are_counted(void **state)
{
    hf__findings findings = {0};

    (void)state;
    for (unsigned i = 0; i < HF__FINDINGS_MAX; i++)
        assert_non_null(hf__findings_add(&findings, &advice, "a", i, 1, "", "x"));
    assert_null(hf__findings_add(&findings, &advice, "a", 1, 1, "", "x"));
    assert_null(hf__findings_add(&findings, &advice, "a", 1, 1, "", "x"));
    assert_int_equal(findings.count, HF__FINDINGS_MAX);
    assert_int_equal(findings.dropped, 2);
    assert_false(findings.broken);
    hf__findings_free(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_finding_keeps_copies_of_what_it_was_given),
        cmocka_unit_test(test_a_file_is_named_once_however_often_it_is_pointed_to),
        cmocka_unit_test(test_sorting_goes_by_file_as_first_named_then_place_then_rule),
        cmocka_unit_test(test_only_an_exact_repetition_goes),
        cmocka_unit_test(test_the_worst_severity_is_that_of_the_worst_finding),
        cmocka_unit_test(test_findings_beyond_the_limit_are_counted),
    };

    return RUN(tests);
}
