/* Calls that wait without a thread each. */
#include "unit.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fibers/fiber.h"
#include "base/thread.h"

enum { MANY = 300, HANGS_AFTER_S = 20 };

static hf__fibers *fibers;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static hf__cond changed = HF__COND_INITIALIZER;
static int arrived, ended;
static bool go_on;

static int start_runner(void **state)
{
    (void)state;
    (void)alarm(HANGS_AFTER_S); /* what breaks here hangs */
    arrived = ended = 0;
    go_on = false;
    return hf__fibers_new(&fibers);
}

static int end_runner(void **state)
{
    (void)state;
    hf__fibers_end(fibers);
    (void)alarm(0);
    return 0;
}

static void await_count(const int *count, int wanted)
{
    pthread_mutex_lock(&mutex);
    while (*count < wanted)
        (void)hf__cond_wait(&changed, &mutex, HF__FOREVER);
    pthread_mutex_unlock(&mutex);
}

static void let_go(void)
{
    pthread_mutex_lock(&mutex);
    go_on = true;
    hf__cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_for_all(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&mutex);
    arrived++;
    hf__cond_broadcast(&changed);
    while (!go_on)
        (void)hf__cond_wait(&changed, &mutex, HF__FOREVER);
    ended++;
    hf__cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void test_many_wait_at_once_and_all_are_woken(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hf__fiber_start(fibers, wait_for_all, NULL), 0);
    await_count(&arrived, MANY);
    let_go();
    await_count(&ended, MANY);
}

static void test_the_runner_ends_when_all_have_returned(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hf__fiber_start(fibers, wait_for_all, NULL), 0);
    let_go();
    hf__fibers_end(fibers);
    fibers = NULL;
    assert_int_equal(ended, MANY);
}

static atomic_int in_time, late;

static void wait_briefly(void *arg)
{
    int64_t until = hf__deadline((intptr_t)arg);
    pthread_mutex_lock(&mutex);
    bool signalled = hf__cond_wait(&changed, &mutex, until);
    assert_true(signalled || hf__left_ms(until) == 0);
    atomic_fetch_add(signalled ? &in_time : &late, 1);
    arrived++;
    hf__cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void test_a_wait_ends_in_time(void **state)
{
    (void)state;
    atomic_store(&in_time, 0);
    atomic_store(&late, 0);
    assert_int_equal(hf__fiber_start(fibers, wait_briefly, (void *)(intptr_t)20), 0);
    hf__fibers_end(fibers);
    fibers = NULL;
    assert_int_equal(atomic_load(&late), 1);
}

static hf__baton baton;
static atomic_int inside, rounds;

static void take_turns(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++) {
        while (!hf__baton_take_until(&baton, hf__deadline(i % 3)))
            ;
        assert_int_equal(atomic_fetch_add(&inside, 1), 0);
        (void)hf__poll(NULL, 0, i % 10 == 0);
        atomic_fetch_sub(&inside, 1);
        atomic_fetch_add(&rounds, 1);
        hf__baton_give(&baton);
    }
}

static void *take_turns_in_thread(void *arg)
{
    take_turns(arg);
    return NULL;
}

static void test_fibers_and_threads_exclude_each_other(void **state)
{
    enum { EACH = 8 };
    pthread_t threads[EACH];
    (void)state;
    hf__baton_init(&baton);
    for (int i = 0; i < EACH; i++) {
        assert_int_equal(hf__fiber_start(fibers, take_turns, NULL), 0);
        assert_int_equal(hf__thread_start(&threads[i], 0, take_turns_in_thread, NULL), 0);
    }
    for (int i = 0; i < EACH; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    hf__fibers_end(fibers);
    fibers = NULL;
    assert_int_equal(atomic_load(&rounds), 2 * EACH * 50);
    hf__baton_destroy(&baton);
}

struct reading {
    int fd;
    int ready;
    short revents;
};

static void await_readable(void *arg)
{
    struct reading *reading = arg;
    struct pollfd fds[] = {{.fd = -1, .events = POLLIN}, {.fd = reading->fd, .events = POLLIN}};
    reading->ready = hf__poll(fds, 2, 20000);
    reading->revents = fds[1].revents;
}

static void test_a_descriptor_wakes_its_fiber(void **state)
{
    struct reading one = {.fd = eventfd(0, EFD_CLOEXEC)}, two = {.fd = eventfd(0, EFD_CLOEXEC)};
    const uint64_t sent = 1;
    (void)state;
    assert_int_equal(hf__fiber_start(fibers, await_readable, &one), 0);
    assert_int_equal(hf__fiber_start(fibers, await_readable, &two), 0);
    assert_int_equal(write(two.fd, &sent, sizeof sent), sizeof sent);
    assert_int_equal(write(one.fd, &sent, sizeof sent), sizeof sent);
    hf__fibers_end(fibers);
    fibers = NULL;
    assert_int_equal(one.ready, 1);
    assert_int_equal(two.ready, 1);
    assert_int_equal(one.revents, POLLIN);
    (void)close(one.fd);
    (void)close(two.fd);
}

static int64_t seen[2];
static bool was_outside;

static void look_outside(void *arg)
{
    was_outside = hf__fiber_local() == NULL;
    *(bool *)arg = true;
}

static void keep_own(void *arg)
{
    intptr_t me = (intptr_t)arg;
    bool called = false;
    *hf__fiber_local() = me;
    (void)hf__poll(NULL, 0, 1);
    hf__call_outside(look_outside, &called);
    assert_true(called);
    seen[me - 1] = *hf__fiber_local();
}

static void test_each_has_its_own_value_and_calls_others_outside(void **state)
{
    (void)state;
    assert_null(hf__fiber_local());
    assert_int_equal(hf__fiber_start(fibers, keep_own, (void *)(intptr_t)1), 0);
    assert_int_equal(hf__fiber_start(fibers, keep_own, (void *)(intptr_t)2), 0);
    hf__fibers_end(fibers);
    fibers = NULL;
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 2);
    assert_true(was_outside);
}

/* As no thread of the library does; whoever starts it takes them. */
static void look_at_signals(void *arg)
{
    sigset_t blocked;
    bool *takes_some = arg;
    (void)hf__poll(NULL, 0, 1); /* also when it comes back from a wait */
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    pthread_mutex_lock(&mutex);
    *takes_some = !sigismember(&blocked, SIGCHLD) || !sigismember(&blocked, SIGTERM);
    ended++;
    hf__cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void test_a_fiber_takes_no_signals(void **state)
{
    bool takes_some = true;
    (void)state;
    assert_int_equal(hf__fiber_start(fibers, look_at_signals, &takes_some), 0);
    await_count(&ended, 1);
    assert_false(takes_some);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_wait_at_once_and_all_are_woken, start_runner,
                                        end_runner),
        cmocka_unit_test_setup_teardown(test_the_runner_ends_when_all_have_returned, start_runner,
                                        end_runner),
        cmocka_unit_test_setup_teardown(test_a_wait_ends_in_time, start_runner, end_runner),
        cmocka_unit_test_setup_teardown(test_a_fiber_takes_no_signals, start_runner, end_runner),
        cmocka_unit_test_setup_teardown(test_fibers_and_threads_exclude_each_other, start_runner,
                                        end_runner),
        cmocka_unit_test_setup_teardown(test_a_descriptor_wakes_its_fiber, start_runner,
                                        end_runner),
        cmocka_unit_test_setup_teardown(test_each_has_its_own_value_and_calls_others_outside,
                                        start_runner, end_runner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
