#include "unit.h"

#include <poll.h>
#include <pthread.h>

#include "base/stop.h"

static bool is_readable(const hf__stop *stop)
{
    struct pollfd pollfd = {.fd = stop->fd, .events = POLLIN};

    return poll(&pollfd, 1, 0) == 1;
}

static void test_it_goes_on_until_a_reason_is_set(void **state)
{
    hf__stop stop;

    (void)state;
    assert_int_equal(hf__stop_init(&stop, NULL), HF_OK);
    assert_false(hf__stop_is_set(&stop));
    assert_int_equal(hf__stop_why(&stop), HF__STOP_NONE);
    assert_int_equal(hf__stop_check(&stop, NULL), HF_OK);
    assert_false(is_readable(&stop));
    assert_false(hf__stop_pause(&stop, 0));
    assert_false(hf__stop_pause(&stop, 5));
    hf__stop_destroy(&stop);
}

static void test_the_first_reason_stays(void **state)
{
    hf__stop asked, lost;
    hf_error err;

    (void)state;
    assert_int_equal(hf__stop_init(&asked, NULL), HF_OK);
    assert_int_equal(hf__stop_init(&lost, NULL), HF_OK);
    hf__stop_set(&asked, HF__STOP_ASKED);
    hf__stop_set(&asked, HF__STOP_LOST);
    hf__stop_set(&lost, HF__STOP_LOST);
    hf__stop_set(&lost, HF__STOP_ASKED);
    assert_int_equal(hf__stop_check(&asked, &err), HF_INTERRUPTED);
    assert_string_equal(err.message, "told to stop");
    assert_int_equal(hf__stop_check(&lost, &err), HF_LOST);
    assert_string_equal(err.message, "the lock was lost");
    hf__stop_destroy(&asked);
    hf__stop_destroy(&lost);
}

static void test_its_descriptor_stays_readable(void **state)
{
    hf__stop stop;

    (void)state;
    assert_int_equal(hf__stop_init(&stop, NULL), HF_OK);
    hf__stop_set(&stop, HF__STOP_ASKED);
    assert_true(is_readable(&stop));
    assert_true(hf__stop_pause(&stop, 600000));
    assert_true(is_readable(&stop));
    hf__stop_destroy(&stop);
    assert_int_equal(stop.fd, -1);
    hf__stop_destroy(&stop);
}

static void *ask(void *arg)
{
    hf__stop_set(arg, HF__STOP_ASKED);
    return NULL;
}

static void test_a_pause_for_ever_ends_when_another_thread_asks(void **state)
{
    hf__stop stop;
    pthread_t thread;

    (void)state;
    assert_int_equal(hf__stop_init(&stop, NULL), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, ask, &stop), 0);
    assert_true(hf__stop_pause(&stop, -1));
    pthread_join(thread, NULL);
    hf__stop_destroy(&stop);
}

static void test_pauses_grow_up_to_the_longest(void **state)
{
    (void)state;
    assert_int_equal(hf__backoff_ms(0, 30000), 1000);
    assert_int_equal(hf__backoff_ms(1, 30000), 1000);
    assert_int_equal(hf__backoff_ms(2, 30000), 2000);
    assert_int_equal(hf__backoff_ms(5, 30000), 16000);
    assert_int_equal(hf__backoff_ms(6, 30000), 30000);
    assert_int_equal(hf__backoff_ms(4000000000u, 30000), 30000);
    assert_int_equal(hf__backoff_ms(1, 500), 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_goes_on_until_a_reason_is_set),
        cmocka_unit_test(test_the_first_reason_stays),
        cmocka_unit_test(test_its_descriptor_stays_readable),
        cmocka_unit_test(test_a_pause_for_ever_ends_when_another_thread_asks),
        cmocka_unit_test(test_pauses_grow_up_to_the_longest),
    };
    return RUN(tests);
}
