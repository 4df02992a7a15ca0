/* The columns of a header are named in the INSERT, whatever the server makes of the header. */
#include "unit.h"

#include <string.h>

#include "programs/append/work.h"

static void expect(const char *line, char delimiter, const char *wanted)
{
    hf__buf out = {0};

    hf__buf_puts(&out, "t");
    assert_int_equal(hf__columns_parse(line, strlen(line), delimiter, NULL, &out, NULL), HF_OK);
    assert_string_equal(out.data + 1, wanted);
    hf__buf_free(&out);
}

static void refuse(const char *line, size_t size, const char *why)
{
    hf__buf out = {0};
    hf_error err = {0};

    assert_int_equal(hf__columns_parse(line, size, ',', NULL, &out, &err), HF_BAD_DATA);
    assert_non_null(strstr(err.message, why));
    hf__buf_free(&out);
}

static void test_names_are_taken_in_their_order(void **state)
{
    (void)state;
    expect("b,a", ',', " (`b`, `a`)");
    expect("b,a\r\n", ',', " (`b`, `a`)");
    expect("b;a\n", ';', " (`b`, `a`)");
    expect("b;a\n", ',', " (`b;a`)");
    expect("one\n", ',', " (`one`)");
    expect("b\ta\n", '\t', " (`b`, `a`)");
}

static void test_names_may_be_quoted(void **state)
{
    (void)state;
    expect("\"b\",'a'\n", ',', " (`b`, `a`)");
    expect("\"b, \"\"c\"\"\",a\n", ',', " (`b, \"c\"`, `a`)");
    expect(" \"b\" , a b ,c\n", ',', " (`b`, `a b`, `c`)");
    expect("a`b,it's\n", ',', " (`a\\`b`, `it's`)");
}

static void test_a_mark_at_the_start_is_no_part_of_a_name(void **state)
{
    (void)state;
    expect("\xef\xbb\xbfid,n\n", ',', " (`id`, `n`)");
    expect("\xef\xbb\xbf\"id\",n\n", ',', " (`id`, `n`)");
}

static void test_no_line_names_nothing(void **state)
{
    (void)state;
    expect("", ',', "");
    expect("\r\n", ',', "");
    expect("\xef\xbb\xbf", ',', "");
}

static void test_an_empty_name_is_left_to_the_server(void **state)
{
    (void)state;
    expect("a,,b\n", ',', " (`a`, ``, `b`)");
    expect("a,\n", ',', " (`a`, ``)");
}

static void test_what_is_no_name_is_refused(void **state)
{
    (void)state;
    refuse("\"a\"b,c\n", 7, "more than a quoted name");
    refuse("a\0b,c\n", 6, "NUL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_taken_in_their_order),
        cmocka_unit_test(test_names_may_be_quoted),
        cmocka_unit_test(test_a_mark_at_the_start_is_no_part_of_a_name),
        cmocka_unit_test(test_no_line_names_nothing),
        cmocka_unit_test(test_an_empty_name_is_left_to_the_server),
        cmocka_unit_test(test_what_is_no_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
