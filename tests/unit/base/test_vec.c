/* realloc is wrapped, so that it can be made to fail. */
#include "unit.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/vec.h"

static bool is_denied;
static size_t calls;

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
    calls++;
    return is_denied ? NULL : __real_realloc(memory, size);
}

static void test_an_array_grows_as_it_is_filled(void **state)
{
    int64_t *items = NULL;
    size_t room = 0;

    (void)state;
    calls = 0;
    for (size_t i = 0; i < 10000; i++) {
        assert_true(hf__grow(&items, &room, i + 1, sizeof *items));
        assert_true(room > i);
        items[i] = (int64_t)i;
    }
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(items[i], i);
    assert_in_range(calls, 2, 20);
    free(items);
}

static void test_much_room_is_made_at_once(void **state)
{
    char *items = NULL;
    size_t room = 0;

    (void)state;
    calls = 0;
    assert_true(hf__grow(&items, &room, 1000, sizeof *items));
    assert_in_range(room, 1000, 2000);
    items[999] = 'x';
    assert_true(hf__grow(&items, &room, room, sizeof *items));
    assert_int_equal(calls, 1);
    free(items);
}

static void test_no_room_is_wanted_for_nothing(void **state)
{
    char **items = NULL;
    size_t room = 0;

    (void)state;
    assert_true(hf__grow(&items, &room, 0, sizeof *items));
    assert_null(items);
    assert_int_equal(room, 0);
}

static void test_without_memory_the_array_stays_as_it_was(void **state)
{
    uint32_t *items = NULL;
    size_t room = 0;

    (void)state;
    assert_true(hf__grow(&items, &room, 1, sizeof *items));
    items[0] = 42;
    const uint32_t *before = items;
    size_t room_before = room;
    is_denied = true;
    bool has_grown = hf__grow(&items, &room, room + 1, sizeof *items);
    is_denied = false;
    assert_false(has_grown);
    assert_ptr_equal(items, before);
    assert_int_equal(items[0], 42);
    assert_int_equal(room, room_before);
    free(items);
}

static void test_a_size_that_does_not_fit_is_refused(void **state)
{
    struct {
        char bytes[24];
    } *items = NULL;
    size_t room = 0;

    (void)state;
    calls = 0;
    assert_false(hf__grow(&items, &room, SIZE_MAX, sizeof *items));
    assert_false(hf__grow(&items, &room, SIZE_MAX / 2 + 2, sizeof *items));
    assert_false(hf__grow(&items, &room, SIZE_MAX / 16, sizeof *items));
    assert_int_equal(calls, 0);
    assert_null(items);
    assert_int_equal(room, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_array_grows_as_it_is_filled),
        cmocka_unit_test(test_much_room_is_made_at_once),
        cmocka_unit_test(test_no_room_is_wanted_for_nothing),
        cmocka_unit_test(test_without_memory_the_array_stays_as_it_was),
        cmocka_unit_test(test_a_size_that_does_not_fit_is_refused),
    };
    return RUN(tests);
}
