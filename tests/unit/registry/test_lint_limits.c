#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "programs/registry/lint/lint.h"

static const char call[] = "f(\"SELECT pg_advisory_lock(1)\")\n";

static hf__lint *opened(const hf__lint_options *options)
{
    hf__lint *lint = NULL;
    hf_error err;

    assert_int_equal(hf__lint_new(options, &lint, &err), HF_OK);
    return lint;
}

static void test_a_file_that_hits_the_match_limit_is_reported_and_the_next_is_read(void **state)
{
    hf__lint_options options = {.match_limit = 1};
    hf__lint *lint = opened(&options);
    hf__findings findings = {0};

    (void)state;
    assert_int_equal(hf__lint_text(lint, "a.py", call, strlen(call), &findings, NULL), HF_OK);
    assert_int_equal(hf__lint_text(lint, "b.py", call, strlen(call), &findings, NULL), HF_OK);
    assert_int_equal(findings.count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(findings.items[i].rule->id, "match-limit");
    assert_string_equal(findings.items[1].file, "b.py");
    assert_int_equal(hf__lint_totals_of(lint).files, 2);
    hf__findings_free(&findings);
    hf__lint_free(lint);
}

static void test_within_the_limit_the_same_file_is_searched(void **state)
{
    hf__lint_options options = {0};
    hf__lint *lint = opened(&options);
    hf__findings findings = {0};

    (void)state;
    assert_int_equal(hf__lint_text(lint, "a.py", call, strlen(call), &findings, NULL), HF_OK);
    assert_int_equal(findings.count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_not_equal(findings.items[i].rule->id, "match-limit");
    hf__findings_free(&findings);
    hf__lint_free(lint);
}

/* Every beginning of a text that has something of everything: nothing is read behind the end. */
static void test_any_beginning_of_a_file_can_be_read(void **state)
{
    static const char text[] =
        "x = <<~Q + \"a#{b}\" + %q(c) + `d` + 'e' # holdfast-ignore: common-id why\n"
        "SELECT pg_advisory_lock(hashtext('a:' || $1), ?, :x, {y}, %s, 42::bigint)\nQ\n"
        "BEGIN ISOLATION LEVEL SERIALIZABLE; select a from b; update b set a = 1; $$ COMMIT $$;\n"
        "r#\"pg_advisory_unlock(\"# R\"(pg_advisory_unlock_all())\" /* */ -- \n"
        "function f() { with_advisory_lock(\"l\") HF_LABEL(\"m\") HF_KEY(1) }\n"
        "X = 42\n";
    static const char *const names[] = {"a.c",    "a.go",  "a.ts",     "a.py", "a.rb",
                                        "a.java", "a.kt",  "a.cs",     "a.rs", "a.php",
                                        "a.ex",   "a.sql", "a.prisma", "a.sh"};
    hf__lint_options options = {0};
    hf__lint *lint = opened(&options);

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (size_t size = 0; size < sizeof text; size++) {
            hf__findings findings = {0};
            assert_int_equal(hf__lint_text(lint, names[i], text, size, &findings, NULL), HF_OK);
            assert_false(findings.broken);
            hf__findings_free(&findings);
        }
    }
    hf__lint_free(lint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_that_hits_the_match_limit_is_reported_and_the_next_is_read),
        cmocka_unit_test(test_within_the_limit_the_same_file_is_searched),
        cmocka_unit_test(test_any_beginning_of_a_file_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
