#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

static void test_a_failure_fills_the_callers_error(void **state)
{
    hf_error err = {.sqlstate = "55P03", .hint = "old"};

    (void)state;
    assert_int_equal(hf__fail(&err, HF_LOST, "'%s' was lost", "nightly"), HF_LOST);
    assert_int_equal(err.code, HF_LOST);
    assert_string_equal(err.message, "'nightly' was lost");
    assert_string_equal(err.sqlstate, "");
    assert_string_equal(err.hint, "");
}

static void test_no_error_wanted_is_fine(void **state)
{
    (void)state;
    assert_int_equal(hf__fail(NULL, HF_QUOTA, "x"), HF_QUOTA);
    assert_int_equal(hf__fail_errno(NULL, HF_SYSTEM, ENOENT, "x"), HF_SYSTEM);
    hf__hint(NULL, "x");
}

static void test_the_reason_of_the_system_is_appended(void **state)
{
    hf_error err;

    (void)state;
    assert_int_equal(hf__fail_errno(&err, HF_SYSTEM, ENOENT, "cannot open %s", "x"), HF_SYSTEM);
    assert_string_equal(err.message, "cannot open x: No such file or directory");
}

static void test_the_reason_survives_a_long_name(void **state)
{
    char name[3000];
    hf_error err;

    (void)state;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(hf__fail_errno(&err, HF_SYSTEM, ENOSPC, "%s", name), HF_SYSTEM);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_non_null(strstr(err.message, "n: No space left on device"));
}

static void test_a_message_is_safe_on_a_terminal(void **state)
{
    hf_error err;

    (void)state;
    hf__set_error(&err, HF_INVALID, "a\033[2J\302\233 31m \342\200\256b \233c \303\251");
    assert_string_equal(err.message, "a [2J  31m b ?c \303\251");
}

static void test_a_message_is_one_line(void **state)
{
    hf_error err;

    (void)state;
    assert_int_equal(hf__fail(&err, HF_DATABASE, "FATAL:\n\nno\tpassword\x7f\r\n"), HF_DATABASE);
    assert_string_equal(err.message, "FATAL: no password");
    hf__hint(&err, "look\nthere\n");
    assert_string_equal(err.hint, "look there");
}

static void test_a_long_message_is_cut_at_a_character(void **state)
{
    char text[1100];
    hf_error err;

    (void)state;
    for (int shift = 0; shift < 4; shift++) {
        memset(text, 'a', sizeof text);
        for (size_t at = (size_t)shift; at + 4 < sizeof text; at += 4)
            memcpy(text + at, "🔒", 4);
        text[sizeof text - 1] = '\0';
        assert_int_equal(hf__fail(&err, HF_INVALID, "%s", text), HF_INVALID);
        assert_true(hf__utf8_valid(err.message, strlen(err.message)));
        assert_in_range(strlen(err.message), sizeof err.message - 4, sizeof err.message - 1);
    }
}

static void test_an_error_may_quote_itself(void **state)
{
    hf_error err;

    (void)state;
    assert_int_equal(hf__fail(&err, HF_DATABASE, "inner"), HF_DATABASE);
    hf__hint(&err, "first");
    hf__hint(&err, "%s, then second", err.hint);
    assert_string_equal(err.hint, "first, then second");
    assert_int_equal(hf__fail(&err, HF_LOST, "outer: %s", err.message), HF_LOST);
    assert_string_equal(err.message, "outer: inner");
}

static void test_without_memory_there_is_one_message(void **state)
{
    hf_error err = {.hint = "old"};

    (void)state;
    assert_int_equal(hf__no_memory(&err), HF_NO_MEMORY);
    assert_int_equal(err.code, HF_NO_MEMORY);
    assert_string_equal(err.message, "out of memory");
    assert_string_equal(err.hint, "");
    assert_int_equal(hf__no_memory(NULL), HF_NO_MEMORY);
}

static void test_the_detail_of_a_refusal_is_told_alone(void **state)
{
    hf_error err;

    (void)state;
    assert_int_equal(hf__fail(&err, HF_NOT_ACQUIRED, HF__NOT_ACQUIRED_PREFIX "'x' is held by me"),
                     HF_NOT_ACQUIRED);
    assert_string_equal(err.message, "not acquired: 'x' is held by me");
    assert_string_equal(hf__error_detail(&err), "'x' is held by me");
    assert_int_equal(hf__fail(&err, HF_NOT_ACQUIRED, "it is taken"), HF_NOT_ACQUIRED);
    assert_string_equal(hf__error_detail(&err), "it is taken");
}

struct given {
    size_t size;
    int first, second;
};

static void test_options_are_copied_as_far_as_the_caller_knows_them(void **state)
{
    struct given older = {.size = offsetof(struct given, second), .first = 1, .second = 2};
    struct given newer = {.size = sizeof newer + 8, .first = 1, .second = 2};
    struct given out = {.second = 9};
    const size_t least = offsetof(struct given, first);

    (void)state;
    assert_int_equal(hf__options_copy(&out, sizeof out, &older, least, "t", "I", NULL), HF_OK);
    assert_int_equal(out.first, 1);
    assert_int_equal(out.second, 0);
    assert_int_equal(hf__options_copy(&out, sizeof out, &newer, least, "t", "I", NULL), HF_OK);
    assert_int_equal(out.second, 2);
}

static void test_options_without_a_size_are_refused(void **state)
{
    struct given forgotten = {.size = 0}, garbage = {.size = 1 << 20}, early = {.size = 1}, out;
    hf_error err;
    const size_t least = offsetof(struct given, first);

    (void)state;
    assert_int_equal(hf__options_copy(&out, sizeof out, &forgotten, least, "t", "I", &err),
                     HF_INVALID);
    assert_string_equal(err.message, "t.size is not set: start from I");
    assert_int_equal(hf__options_copy(&out, sizeof out, &garbage, least, "t", "I", &err),
                     HF_INVALID);
    assert_string_equal(err.message, "t.size is 1048576, which no version of it has: start from I");
    assert_int_equal(hf__options_copy(&out, sizeof out, &early, least, "t", "I", NULL), HF_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failure_fills_the_callers_error),
        cmocka_unit_test(test_no_error_wanted_is_fine),
        cmocka_unit_test(test_the_reason_of_the_system_is_appended),
        cmocka_unit_test(test_the_reason_survives_a_long_name),
        cmocka_unit_test(test_a_message_is_one_line),
        cmocka_unit_test(test_a_message_is_safe_on_a_terminal),
        cmocka_unit_test(test_a_long_message_is_cut_at_a_character),
        cmocka_unit_test(test_an_error_may_quote_itself),
        cmocka_unit_test(test_without_memory_there_is_one_message),
        cmocka_unit_test(test_options_are_copied_as_far_as_the_caller_knows_them),
        cmocka_unit_test(test_options_without_a_size_are_refused),
        cmocka_unit_test(test_the_detail_of_a_refusal_is_told_alone),
    };
    return RUN(tests);
}
