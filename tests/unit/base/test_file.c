#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"

static void expect_beside(const char *path, const char *other, const char *wanted)
{
    hf__buf found = {0};

    hf__put_sibling_path(&found, path, other);
    assert_string_equal(found.data, wanted);
    hf__buf_free(&found);
}

static void test_a_name_in_a_file_is_relative_to_its_folder(void **state)
{
    (void)state;
    expect_beside("locks.yaml", "a.c", "a.c");
    expect_beside("conf/locks.yaml", "src/a.c", "conf/src/a.c");
    expect_beside("/locks.yaml", "a.c", "/a.c");
    expect_beside("conf/locks.yaml", "../a.c", "conf/../a.c");
}

static void test_an_absolute_name_stays_as_it_is(void **state)
{
    (void)state;
    expect_beside("conf/locks.yaml", "/src/a.c", "/src/a.c");
}

static void test_one_byte_more_than_wanted_tells_that_it_is_too_much(void **state)
{
    hf__buf text = {0};
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "abcdef", 6), 6);
    close(ends[1]);
    assert_int_equal(hf__read_fd(ends[0], "a pipe", 3, &text, HF_SYSTEM, NULL), HF_OK);
    assert_string_equal(text.data, "abcd");
    close(ends[0]);
    hf__buf_free(&text);
}

static void test_a_file_that_is_not_there_fails_with_the_code_of_the_caller(void **state)
{
    hf__buf text = {0};
    hf_error err;

    (void)state;
    assert_int_equal(hf__read_file("/nonexistent/a\n", 9, &text, HF_BAD_DATA, &err), HF_BAD_DATA);
    assert_non_null(strstr(err.message, "cannot open /nonexistent/a\\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_in_a_file_is_relative_to_its_folder),
        cmocka_unit_test(test_an_absolute_name_stays_as_it_is),
        cmocka_unit_test(test_one_byte_more_than_wanted_tells_that_it_is_too_much),
        cmocka_unit_test(test_a_file_that_is_not_there_fails_with_the_code_of_the_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
