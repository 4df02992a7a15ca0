#include "unit.h"

#include <errno.h>
#include <signal.h>

#include "base/thread.h"

struct seen {
    sigset_t blocked;
    size_t stack_size;
};

static void *look(void *arg)
{
    struct seen *seen = arg;
    pthread_attr_t attributes;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, &seen->stack_size);
        (void)pthread_attr_destroy(&attributes);
    }
    return seen;
}

static void test_its_signals_are_blocked_and_the_callers_are_not(void **state)
{
    struct seen seen = {0};
    pthread_t thread;
    sigset_t before, after;
    void *result = NULL;

    (void)state;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(hf__thread_start(&thread, 0, look, &seen), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &seen);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < 32; number++) {
        if (number != SIGKILL && number != SIGSTOP)
            assert_true(sigismember(&seen.blocked, number));
        assert_int_equal(sigismember(&after, number), sigismember(&before, number));
    }
}

static void test_its_stack_is_as_large_as_asked_for(void **state)
{
    const size_t wanted = (size_t)256 << 10;
    struct seen seen = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(hf__thread_start(&thread, wanted, look, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(seen.stack_size >= wanted); /* a race detector adds its own */
}

static void test_a_stack_that_cannot_be_is_refused(void **state)
{
    struct seen seen = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(hf__thread_start(&thread, 1, look, &seen), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_its_signals_are_blocked_and_the_callers_are_not),
        cmocka_unit_test(test_its_stack_is_as_large_as_asked_for),
        cmocka_unit_test(test_a_stack_that_cannot_be_is_refused),
    };
    return RUN(tests);
}
