#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "base/clock.h"

static void test_a_negative_wait_is_for_ever(void **state)
{
    (void)state;
    assert_true(hf__deadline(-1) == HF__FOREVER);
    assert_true(hf__deadline(INT64_MIN) == HF__FOREVER);
    assert_int_equal(hf__left_ms(HF__FOREVER), -1);
}

static void test_a_wait_beyond_time_is_for_ever(void **state)
{
    (void)state;
    assert_true(hf__deadline(INT64_MAX) == HF__FOREVER);
    assert_true(hf__deadline(INT64_MAX - 1) == HF__FOREVER);
}

static void test_what_is_left_is_never_negative_and_fits_poll(void **state)
{
    (void)state;
    assert_int_equal(hf__left_ms(hf__now_ms() - 1000), 0);
    assert_int_equal(hf__left_ms(INT64_MIN), 0);
    assert_int_equal(hf__left_ms(hf__deadline(0)), 0);
    assert_int_equal(hf__left_ms(hf__deadline(INT64_C(1) << 40)), INT_MAX);
    assert_in_range(hf__left_ms(hf__deadline(60000)), 1, 60001);
}

static void test_the_wall_clock_is_after_2025(void **state)
{
    (void)state;
    assert_true(hf__wall_ms() > INT64_C(1735689600000));
}

static void test_a_timespec_splits_the_deadline(void **state)
{
    (void)state;
    struct timespec at = hf__timespec(1234567);
    assert_int_equal(at.tv_sec, 1234);
    assert_int_equal(at.tv_nsec, 567000000);
    at = hf__timespec(HF__FOREVER);
    assert_in_range(at.tv_nsec, 0, 999999999);
}

static int wait_until(int64_t deadline)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until = hf__timespec(deadline);
    int code = 0;

    pthread_mutex_lock(&mutex);
    while (code == 0)
        code = pthread_cond_clockwait(&never, &mutex, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&mutex);
    return code;
}

static void test_a_condition_ends_at_the_deadline_and_not_before(void **state)
{
    (void)state;
    int64_t deadline = hf__deadline(20);
    assert_int_equal(wait_until(deadline), ETIMEDOUT);
    assert_true(hf__now_ms() >= deadline);
}

static void test_jitter_stays_in_its_range_and_varies(void **state)
{
    int seen[10] = {0};
    int distinct = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        int ms = hf__jitter_ms(5, 15);
        assert_in_range(ms, 5, 14);
        seen[ms - 5]++;
    }
    for (int i = 0; i < 10; i++)
        distinct += seen[i] > 0;
    assert_int_equal(distinct, 10);
    assert_int_equal(hf__jitter_ms(7, 7), 7);
    assert_int_equal(hf__jitter_ms(7, 8), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_negative_wait_is_for_ever),
        cmocka_unit_test(test_a_wait_beyond_time_is_for_ever),
        cmocka_unit_test(test_what_is_left_is_never_negative_and_fits_poll),
        cmocka_unit_test(test_the_wall_clock_is_after_2025),
        cmocka_unit_test(test_a_timespec_splits_the_deadline),
        cmocka_unit_test(test_a_condition_ends_at_the_deadline_and_not_before),
        cmocka_unit_test(test_jitter_stays_in_its_range_and_varies),
    };
    return RUN(tests);
}
