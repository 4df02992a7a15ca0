/* Who we are, and what /proc says of processes. */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

static bool knows_itself(void)
{
    return hf__own_pid() == (int)getpid() && hf__own_tid() == (int)gettid();
}

static void *look_at_itself(void *arg)
{
    *(bool *)arg = knows_itself();
    return NULL;
}

/* Each asks before it forks, so that its child has a copy of what was right here. */
static bool know_themselves(int generations)
{
    bool thread_knows = false;
    pthread_t thread;
    int ended = 0;
    if (!knows_itself() || pthread_create(&thread, NULL, look_at_itself, &thread_knows) != 0 ||
        pthread_join(thread, NULL) != 0 || !thread_knows)
        return false;
    if (generations == 1)
        return true;
    pid_t child = fork();
    if (child == 0)
        _exit(know_themselves(generations - 1) ? 0 : 1);
    return child > 0 && waitpid(child, &ended, 0) == child && ended == 0 && knows_itself();
}

static void test_children_of_children_and_their_threads_know_their_own_ids(void **state)
{
    (void)state;
    assert_true(know_themselves(3));
}

static void test_the_start_of_a_process_stays_as_it_is(void **state)
{
    int64_t started = hf__process_started((int)getpid());

    (void)state;
    assert_true(started > 0);
    assert_int_equal(hf__process_started((int)getpid()), started);
}

static void test_a_process_that_has_gone_has_no_start(void **state)
{
    int ended = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(0);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(hf__process_started((int)child), 0);
}

static void test_a_process_is_stopped_until_it_goes_on(void **state)
{
    int changed = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        for (;;)
            pause();
    }
    assert_true(child > 0);
    assert_false(hf__process_is_stopped((int)child));
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &changed, WUNTRACED), child);
    assert_true(hf__process_is_stopped((int)child));
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &changed, WCONTINUED), child);
    assert_false(hf__process_is_stopped((int)child));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &changed, 0), child);
    assert_false(hf__process_is_stopped((int)child));
}

static void test_children_share_the_namespace_of_pids(void **state)
{
    int ended = 0;
    int64_t space = hf__own_pid_space();
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(hf__own_pid_space() == space ? 0 : 1);
    assert_true(space > 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

static void test_the_boot_has_an_id_of_one_line(void **state)
{
    char first[64], second[64];

    (void)state;
    hf__read_boot_id(first, sizeof first);
    hf__read_boot_id(second, sizeof second);
    assert_string_equal(first, second);
    assert_int_equal(strcspn(first, "\n"), strlen(first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_of_children_and_their_threads_know_their_own_ids),
        cmocka_unit_test(test_the_start_of_a_process_stays_as_it_is),
        cmocka_unit_test(test_a_process_that_has_gone_has_no_start),
        cmocka_unit_test(test_a_process_is_stopped_until_it_goes_on),
        cmocka_unit_test(test_children_share_the_namespace_of_pids),
        cmocka_unit_test(test_the_boot_has_an_id_of_one_line),
    };
    return RUN(tests);
}
