/* malloc, calloc and realloc are wrapped, so that any one of them can be made to fail. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/patterns/automaton.h"

static size_t until_failure = SIZE_MAX; /* allocations that still succeed */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool is_denied(void)
{
    if (until_failure == SIZE_MAX)
        return false;
    if (until_failure == 0)
        return true;
    until_failure--;
    return false;
}

void *__wrap_malloc(size_t size)
{
    return is_denied() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_denied() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return is_denied() ? NULL : __real_realloc(memory, size);
}

static bool ignore_word(void *arg, const char *word, size_t size)
{
    (void)arg;
    (void)word;
    (void)size;
    return true;
}

static hf_status build_and_ask(hf_error *err)
{
    static const char text[] = "abc";
    const hf__part parts[] = {{"ab|c_[[:^alpha:]]+.{2,30}", 25, true}, {"ä:", 3, false}};
    const hf__part huge = {"(a|b)*a(a|b){20}", 16, true};
    hf__language *language = NULL;
    hf__language *other = NULL;
    hf__meeting meeting = HF__MEET_NEVER;
    hf__buf witness = {0};
    size_t bad = 0;
    bool is_true = false;

    hf_status status = hf__language_build(parts, 2, &language, &bad, err);
    if (status == HF_OK)
        status = hf__language_build(&huge, 1, &other, &bad, err);
    if (status == HF_OK)
        status = hf__language_has(other, text, sizeof text - 1, &is_true, err);
    if (status == HF_OK)
        status = hf__language_meet(language, other, 100000, &meeting, &witness, err);
    if (status == HF_OK)
        status = hf__language_meet(language, language, 100000, &meeting, &witness, err);
    if (status == HF_OK)
        status = hf__language_words(language, 200, ignore_word, NULL, &is_true, err);
    hf__buf_free(&witness);
    hf__language_free(language);
    hf__language_free(other);
    return status;
}

static void test_every_failed_allocation_is_reported(void **state)
{
    hf_status status = HF_NO_MEMORY;
    size_t denied = 0;

    (void)state;
    for (; status != HF_OK && denied < 100000; denied++) {
        hf_error err = {0};
        until_failure = denied;
        status = build_and_ask(&err);
        until_failure = SIZE_MAX;
        if (status == HF_OK)
            break;
        assert_int_equal(status, HF_NO_MEMORY);
        assert_int_equal(err.code, HF_NO_MEMORY);
        assert_non_null(strstr(err.message, "out of memory"));
    }
    assert_int_equal(status, HF_OK);
    assert_in_range(denied, 50, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_failed_allocation_is_reported),
    };
    return RUN(tests);
}
