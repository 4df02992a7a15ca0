#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "programs/registry/lint/text/scan.h"

/* Each byte of the text as a letter: c code, t text, q quote, - comment. */
static char *scanned(const char *file, const char *text)
{
    size_t size = strlen(text);
    char *classes = calloc(size + 1, 1);
    const hf__syntax *syntax = hf__syntax_of(file);

    assert_non_null(classes);
    hf__scan(syntax != NULL ? syntax : &hf__text_syntax, text, size, (unsigned char *)classes);
    for (size_t i = 0; i < size; i++)
        classes[i] = "ctq-"[(unsigned char)classes[i]];
    return classes;
}

static void expect(const char *file, const char *text, const char *classes)
{
    char *found = scanned(file, text);

    if (strcmp(found, classes) != 0)
        fail_msg("%s:\n%s\n%s\nbut expected\n%s", file, text, found, classes);
    free(found);
}

static void test_comments_and_strings_are_told_apart(void **state)
{
    (void)state;
    expect("a.c", "f(\"a\\\"b\"); // c", "ccqttttqccc----");
    expect("a.c", "x /* \" */ 'y'", "cc-------cqtq");
    expect("a.py", "x = 'a' # b", "ccccqtqc---");
    expect("a.sql", "a -- 'b", "cc-----");
    expect("a.sql", "'a''b' x", "qttttqcc");
    expect("a.sql", "E'\\'' x", "qqttqcc");
    expect("a.kt", "/* /* */ */ x", "-----------cc");
    expect("a.java", "/* /* */ x", "--------cc");
}

static void test_a_string_that_must_not_span_lines_ends_with_its_line(void **state)
{
    (void)state;
    expect("a.c", "'a\nb", "qtcc");
    expect("a.rb", "'a\nb", "qttt");
}

static void test_expressions_in_strings_are_text(void **state)
{
    (void)state;
    expect("a.ts", "`a${f(\"}\")}b`c", "qtttttttttttqc");
    expect("a.rb", "\"#{h['\"']}\"c", "qtttttttttqc");
}

static void test_heredocs_and_raw_strings_are_text(void **state)
{
    (void)state;
    expect("a.rb", "f(<<~Q)\nx'\n Q\ny", "cccccccqtttqqcc");
    expect("a.php", "<?php <<<Q\nx'\nQ;", "ccccccqqqqqtttqc");
    expect("a.rs", "r#\"a\"b\"#;'a'<'a>", "qqqtttqqcqqqcqcc");
    expect("a.cpp", "R\"x(a)\")x\";", "qqqqtttqqqc");
    expect("a.cs", "@\"a\"\"b\";", "qqttttqc");
    expect("a.go", "`a\\`b", "qttqc");
    expect("a.ex", "~s(a)b", "qqqtqc");
    expect("a.rb", "%q(a(b))c", "qqqttttqc");
}

static void test_what_looks_like_a_quote_may_be_none(void **state)
{
    (void)state;
    expect("a.c", "1'000'0", "ccccccc");
    expect("a.ts", "x=/'/;y", "ccqqqcc");
    expect("a.rb", "5 % (1)", "ccccccc");
    expect("a.php", "it's<?php 'a'", "ccccccccccqtq");
    expect("a.sql", "$a$'b'$a$", "qqqqtqqqq");
}

static void test_documentation_is_comment(void **state)
{
    (void)state;
    expect("a.py", "def f():\n \"\"\"a\"\"\"\n", "cccccccccc-------c");
    expect("a.py", "f(\n \"\"\"a\"\"\"\n)", "ccccqqqtqqqcc");
    expect("a.ex", "@doc \"a\"", "ccccc---");
}

static void test_sql_comments_in_strings_are_comments(void **state)
{
    (void)state;
    expect("a.py", "f('a -- b')", "ccqtt----qc");
    expect("a.py", "f('a --b')", "ccqtttttqc");
    expect("a.go", "`a /* b */ c`", "qtt-------ttq");
}

static void test_other_files_are_text_but_for_comment_lines(void **state)
{
    (void)state;
    assert_null(hf__syntax_of("a.conf"));
    assert_null(hf__syntax_of("py"));
    assert_null(hf__syntax_of("a."));
    assert_non_null(hf__syntax_of("x.y/a.PY"));
    assert_null(hf__syntax_of("x.py/a"));
    expect("a.conf", "a\n # b\nc", "tt-----t");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comments_and_strings_are_told_apart),
        cmocka_unit_test(test_a_string_that_must_not_span_lines_ends_with_its_line),
        cmocka_unit_test(test_expressions_in_strings_are_text),
        cmocka_unit_test(test_heredocs_and_raw_strings_are_text),
        cmocka_unit_test(test_what_looks_like_a_quote_may_be_none),
        cmocka_unit_test(test_documentation_is_comment),
        cmocka_unit_test(test_sql_comments_in_strings_are_comments),
        cmocka_unit_test(test_other_files_are_text_but_for_comment_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
