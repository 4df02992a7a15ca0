/* Threads that are cancelled while they wait: the engine goes on working for the others. */
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder.h"
#include "holdfast/holdfast.h"

enum { HANGS_AFTER_S = 20 };

static hf_store *store;

static int open_store(void **state)
{
    char url[128];
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_error err = {0};

    (void)alarm(HANGS_AFTER_S); /* what breaks here hangs */
    if (make_folder(state) != 0)
        return -1;
    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    if (hf_store_open(&options, &store, &err) != HF_OK)
        fail_msg("%s", err.message);
    return 0;
}

static int close_store(void **state)
{
    hf_store_close(store);
    (void)alarm(0);
    return drop_folder(state);
}

static const hf_target job = {.label = "job"};

static hf_lock_spec spec_of(int64_t wait_ms)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = &job;
    spec.target_count = 1;
    spec.wait_ms = wait_ms;
    return spec;
}

static hf_lock *acquire(int64_t wait_ms)
{
    hf_lock_spec spec = spec_of(wait_ms);
    hf_lock *lock = NULL;
    hf_error err = {0};
    if (hf_lock_acquire(store, &spec, &lock, &err) != HF_OK)
        fail_msg("%s", err.message);
    return lock;
}

/* ---- the threads ----------------------------------------------------------------------------- */

struct waiter {
    pthread_t thread;
    int64_t wait_ms;
    int about_to_wait[2]; /* its thread's id comes through here */
    bool entered;
};

static void tell_waiting(const hf_error *why, void *arg)
{
    struct waiter *waiter = arg;
    (void)why;
    pid_t id = gettid();
    (void)!write(waiter->about_to_wait[1], &id, sizeof id);
}

static hf_status enter(hf_lock *lock, void *arg, hf_error *err)
{
    struct waiter *waiter = arg;
    (void)lock, (void)err;
    waiter->entered = true;
    pthread_testcancel();
    return HF_OK;
}

static void *wait_with(void *arg)
{
    struct waiter *waiter = arg;
    hf_lock_spec spec = spec_of(waiter->wait_ms);
    hf_error err = {0};
    spec.on_wait = tell_waiting;
    spec.arg = waiter;
    (void)!hf_lock_with(store, &spec, enter, waiter, &err);
    pthread_testcancel();
    return NULL;
}

static bool is_asleep(pid_t thread)
{
    char path[64], stat[512] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(stat, 1, sizeof stat - 1, file) > 0);
    fclose(file);
    const char *name_end = strrchr(stat, ')');
    return name_end != NULL && name_end[2] == 'S';
}

static void start(struct waiter *waiter, int64_t wait_ms)
{
    pid_t id = 0;
    *waiter = (struct waiter){.wait_ms = wait_ms};
    assert_int_equal(pipe(waiter->about_to_wait), 0);
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_with, waiter), 0);
    assert_int_equal(read(waiter->about_to_wait[0], &id, sizeof id), sizeof id);
    while (!is_asleep(id)) /* from being told to being in the wait */
        (void)poll(NULL, 0, 1);
}

static void cancel(struct waiter *waiter)
{
    assert_int_equal(pthread_cancel(waiter->thread), 0);
}

static void assert_ended(struct waiter *waiter, bool is_cancelled)
{
    void *end = NULL;
    assert_int_equal(pthread_join(waiter->thread, &end), 0);
    assert_ptr_equal(end, is_cancelled ? PTHREAD_CANCELED : NULL);
    close(waiter->about_to_wait[0]);
    close(waiter->about_to_wait[1]);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_cancelled_waiter_gives_back_what_it_gets(void **state)
{
    struct waiter waiter;
    (void)state;
    hf_lock *held = acquire(0);
    start(&waiter, -1);
    cancel(&waiter);
    hf_lock_free(held);
    assert_ended(&waiter, true);
    assert_true(waiter.entered);
    hf_lock_free(acquire(0));
}

static void test_cancelled_waiter_that_times_out_leaves_the_holder_alone(void **state)
{
    struct waiter waiter;
    (void)state;
    hf_lock *held = acquire(0);
    start(&waiter, 300);
    cancel(&waiter);
    assert_ended(&waiter, true);
    assert_false(waiter.entered);
    assert_int_equal(hf_lock_get_state(held), HF_STATE_HELD);
    hf_lock_free(held);
    hf_lock_free(acquire(0));
}

static void test_others_in_the_queue_go_on(void **state)
{
    struct waiter waiters[4];
    (void)state;
    hf_lock *held = acquire(0);
    for (int i = 0; i < 4; i++)
        start(&waiters[i], -1);
    for (int i = 0; i < 4; i += 2)
        cancel(&waiters[i]);
    hf_lock_free(held);
    for (int i = 0; i < 4; i++) {
        assert_ended(&waiters[i], i % 2 == 0);
        assert_true(waiters[i].entered);
    }
    hf_lock_free(acquire(0));
}

static void test_interrupt_ends_the_wait_of_a_cancelled_thread(void **state)
{
    struct waiter waiter;
    (void)state;
    hf_lock *held = acquire(0);
    start(&waiter, -1);
    cancel(&waiter);
    hf_store_interrupt(store);
    assert_ended(&waiter, true);
    assert_false(waiter.entered);
    hf_lock_free(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cancelled_waiter_gives_back_what_it_gets, open_store,
                                        close_store),
        cmocka_unit_test_setup_teardown(
            test_cancelled_waiter_that_times_out_leaves_the_holder_alone, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_others_in_the_queue_go_on, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_interrupt_ends_the_wait_of_a_cancelled_thread,
                                        open_store, close_store),
    };
    return RUN(tests);
}
