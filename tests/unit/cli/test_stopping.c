/* Each case runs in a child of its own: signals end processes. */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/stopping.h"

enum { ENDED_BY_ITSELF = 7, STOPPED = 8, LIMIT_S = 30 };

static void sleep_ms(int ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

    (void)nanosleep(&time, NULL);
}

/* What the child does; it says on fd when it is ready for signals. */
typedef void child_fn(struct stopping *stopping, int fd);

static void say_ready(int fd)
{
    if (write(fd, "r", 1) != 1)
        _exit(1);
}

static pid_t start(const struct stopping_options *options, child_fn *child)
{
    int pipe_fds[2];
    char byte;

    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct stopping stopping;
        alarm(LIMIT_S); /* a test that fails must not hang */
        block_stop_signals();
        if (stopping_init(&stopping, options, NULL) != HF_OK)
            _exit(1);
        child(&stopping, pipe_fds[1]);
        stopping_destroy(&stopping);
        _exit(ENDED_BY_ITSELF);
    }
    close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    close(pipe_fds[0]);
    return pid;
}

static int exit_code(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void wait_for_ever(struct stopping *stopping, int fd)
{
    if (stopping_start(stopping, NULL) != HF_OK)
        _exit(1);
    say_ready(fd);
    for (;;)
        pause();
}

static void work_until_told(struct stopping *stopping, int fd)
{
    if (stopping_start(stopping, NULL) != HF_OK)
        _exit(1);
    stopping_work(stopping, NULL);
    say_ready(fd);
    (void)hf__stop_pause(&stopping->stop, -1);
    bool is_asked = hf__stop_why(&stopping->stop) == HF__STOP_ASKED;
    stopping_end(stopping);
    if (is_asked && atomic_load(&stopping->signal) == SIGINT)
        _exit(STOPPED);
}

static void work_on_for_ever(struct stopping *stopping, int fd)
{
    stopping_work(stopping, NULL);
    wait_for_ever(stopping, fd);
}

static void work_on_a_little(struct stopping *stopping, int fd)
{
    if (stopping_start(stopping, NULL) != HF_OK)
        _exit(1);
    stopping_work(stopping, NULL);
    say_ready(fd);
    (void)hf__stop_pause(&stopping->stop, -1);
    sleep_ms(1500);
    stopping_end(stopping);
}

static void end_at_once(struct stopping *stopping, int fd)
{
    if (stopping_start(stopping, NULL) != HF_OK)
        _exit(1);
    stopping_end(stopping);
    say_ready(fd);
}

/* The signal waits before anybody awaits it. */
static void start_late(struct stopping *stopping, int fd)
{
    kill(getpid(), SIGINT);
    stopping_work(stopping, NULL);
    say_ready(fd);
    if (stopping_start(stopping, NULL) != HF_OK)
        _exit(1);
    (void)hf__stop_pause(&stopping->stop, -1);
    stopping_end(stopping);
    _exit(STOPPED);
}

static void test_a_signal_before_the_work_ends_the_process(void **state)
{
    const struct stopping_options options = {0};

    (void)state;
    pid_t pid = start(&options, wait_for_ever);
    kill(pid, SIGTERM);
    assert_int_equal(exit_code(pid), 128 + SIGTERM);
}

static void test_a_signal_during_the_work_is_a_wish(void **state)
{
    const struct stopping_options options = {0};

    (void)state;
    pid_t pid = start(&options, work_until_told);
    kill(pid, SIGINT);
    assert_int_equal(exit_code(pid), STOPPED);
}

static void test_work_that_goes_on_is_cut_off_after_the_grace(void **state)
{
    const struct stopping_options options = {.grace_ms = 50};

    (void)state;
    pid_t pid = start(&options, work_on_for_ever);
    kill(pid, SIGHUP);
    assert_int_equal(exit_code(pid), 0);
}

/* What it exits with when signals come again and again. */
static int code_under_signals(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        kill(pid, SIGTERM);
        sleep_ms(100);
    }
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_a_second_signal_ends_at_once_where_it_may(void **state)
{
    const struct report report = {.json = true};
    const struct stopping_options options = {.second_ends = true, .report = &report};

    (void)state;
    assert_int_equal(code_under_signals(start(&options, work_on_for_ever)), 128 + SIGTERM);
}

static void test_else_a_second_signal_changes_nothing(void **state)
{
    const struct stopping_options options = {0};

    (void)state;
    assert_int_equal(code_under_signals(start(&options, work_on_a_little)), ENDED_BY_ITSELF);
}

static void test_a_thread_that_heard_nothing_ends_when_it_is_told(void **state)
{
    const struct stopping_options options = {0};

    (void)state;
    assert_int_equal(exit_code(start(&options, end_at_once)), ENDED_BY_ITSELF);
}

static void test_a_signal_that_waits_already_is_not_lost(void **state)
{
    const struct stopping_options options = {0};

    (void)state;
    assert_int_equal(exit_code(start(&options, start_late)), STOPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_before_the_work_ends_the_process),
        cmocka_unit_test(test_a_signal_during_the_work_is_a_wish),
        cmocka_unit_test(test_work_that_goes_on_is_cut_off_after_the_grace),
        cmocka_unit_test(test_a_second_signal_ends_at_once_where_it_may),
        cmocka_unit_test(test_else_a_second_signal_changes_nothing),
        cmocka_unit_test(test_a_thread_that_heard_nothing_ends_when_it_is_told),
        cmocka_unit_test(test_a_signal_that_waits_already_is_not_lost),
    };
    return RUN(tests);
}
