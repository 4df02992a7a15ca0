#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static void test_text_is_appended_and_terminated(void **state)
{
    hf__buf buf = {0};

    (void)state;
    hf__buf_puts(&buf, "lock ");
    hf__buf_add(&buf, "nightly!", 7);
    hf__buf_printf(&buf, " key %d", 42);
    assert_string_equal(buf.data, "lock nightly key 42");
    assert_int_equal(buf.length, strlen(buf.data));
    assert_false(buf.broken);
    hf__buf_free(&buf);
    assert_null(buf.data);
}

static void test_an_empty_write_terminates(void **state)
{
    hf__buf buf = {0};

    (void)state;
    hf__buf_add(&buf, NULL, 0);
    assert_string_equal(buf.data, "");
    hf__buf_free(&buf);
}

static void test_it_grows_across_every_boundary(void **state)
{
    hf__buf buf = {0};

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        hf__buf_add(&buf, "x", 1);
        assert_int_equal(buf.length, i + 1);
        assert_int_equal(buf.data[i + 1], '\0');
    }
    hf__buf_printf(&buf, "%5000s", "y");
    assert_int_equal(buf.length, 10000);
    assert_int_equal(buf.data[9999], 'y');
    hf__buf_free(&buf);
}

static void test_bytes_may_hold_nul(void **state)
{
    hf__buf buf = {0};

    (void)state;
    hf__buf_add(&buf, "a\0b", 3);
    assert_int_equal(buf.length, 3);
    assert_memory_equal(buf.data, "a\0b", 4);
    hf__buf_free(&buf);
}

static void test_clear_keeps_the_memory(void **state)
{
    hf__buf buf = {0};

    (void)state;
    hf__buf_clear(&buf);
    hf__buf_puts(&buf, "something");
    const char *memory = buf.data;
    hf__buf_clear(&buf);
    assert_int_equal(buf.length, 0);
    assert_string_equal(buf.data, "");
    hf__buf_puts(&buf, "else");
    assert_ptr_equal(buf.data, memory);
    hf__buf_free(&buf);
}

static void test_a_broken_buffer_ignores_writes(void **state)
{
    hf__buf buf = {0};

    (void)state;
    hf__buf_puts(&buf, "kept");
    hf__buf_add(&buf, "", SIZE_MAX / 2 + 1);
    assert_true(buf.broken);
    hf__buf_puts(&buf, "ignored");
    hf__buf_printf(&buf, "%d", 1);
    assert_string_equal(buf.data, "kept");
    hf__buf_free(&buf);
    assert_false(buf.broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_appended_and_terminated),
        cmocka_unit_test(test_an_empty_write_terminates),
        cmocka_unit_test(test_it_grows_across_every_boundary),
        cmocka_unit_test(test_bytes_may_hold_nul),
        cmocka_unit_test(test_clear_keeps_the_memory),
        cmocka_unit_test(test_a_broken_buffer_ignores_writes),
    };
    return RUN(tests);
}
