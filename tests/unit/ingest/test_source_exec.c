#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source_support.h"

/* line N is one ledger; up_to N is those from where --from says. */
#define SCRIPT                                                                                     \
    "exec:line() { echo "                                                                          \
    "'{\"sequence\":'$1',\"hash\":\"h\",\"closed_at\":0,\"transactions\":[]}'; };"                 \
    " up_to() { i=$3; while [ $i -le $1 ]; do line $i; i=$((i+1)); done; }; "

static void open_command(struct place *place, const char *spec, bool follow)
{
    place_open(place, &(hf__source_options){.spec = spec, .follow = follow});
}

static void test_a_command_is_told_where_to_begin(void **state)
{
    struct place *place = *state;

    open_command(place, SCRIPT "up_to 5", false);
    expect_extent(place, 0, 0);
    expect_ledgers(place, 1, 5);
    expect_end(place);
    expect_end(place);
    seek_to(place, 4);
    expect_ledgers(place, 4, 5);
    expect_end(place);
    seek_to(place, 2);
    expect_ledger(place, 2);
    seek_to(place, 3);
    expect_ledgers(place, 3, 5);
    expect_end(place);
}

static void test_ledgers_below_the_beginning_are_passed_over(void **state)
{
    struct place *place = *state;

    open_command(place, SCRIPT "line 1; line 2; line 3; : ", false);
    seek_to(place, 3);
    expect_ledger(place, 3);
    expect_end(place);
}

static void test_a_command_that_fails_is_started_again_where_it_ended(void **state)
{
    struct place *place = *state;

    open_command(place, SCRIPT "fail() { line $2; exit 3; }; fail", false);
    expect_ledger(place, 1);
    expect_status(place, HF_UNREACHABLE, "exited with status 3");
    expect_ledger(place, 2);
    assert_non_null(strstr(place->log, "is started again from ledger 2"));
    expect_status(place, HF_UNREACHABLE, "exited with status 3");
    expect_ledger(place, 3);
}

static void test_a_signal_is_a_failure_too(void **state)
{
    struct place *place = *state;

    open_command(place, "exec:kill -KILL $$; :", false);
    expect_status(place, HF_UNREACHABLE, "was ended by signal 9");
}

static void test_what_cannot_be_run_is_a_failure(void **state)
{
    struct place *place = *state;

    open_command(place, "exec:/nonexistent/program 2>&-", false);
    expect_status(place, HF_UNREACHABLE, "exec:/nonexistent/program exited with status 127");
    assert_int_equal(place_try_open(place, "exec: "), HF_INVALID);
}

static void test_the_half_line_of_a_command_that_failed_is_no_data(void **state)
{
    struct place *place = *state;

    open_command(place, SCRIPT "line 1; printf '{\"sequence\":2,'; exit 1;", false);
    expect_ledger(place, 1);
    expect_status(place, HF_UNREACHABLE, "exited with status 1");
}

static void test_the_last_line_of_a_command_that_went_well_counts(void **state)
{
    struct place *place = *state;

    open_command(place, SCRIPT "printf '%s' \"$(line 1)\"; :", false);
    expect_ledger(place, 1);
    expect_end(place);
    open_command(place, SCRIPT "line 1; printf '{\"sequence\":2,'; :", false);
    expect_ledger(place, 1);
    expect_bad(place, "exec: line 2", "the text ends in an object");
    assert_int_equal(place->bad.sequence, 2);
    expect_end(place);
}

static void test_a_bad_line_is_not_asked_for_again(void **state)
{
    struct place *place = *state;

    open_command(place,
                 SCRIPT "f() { if [ $2 = 1 ]; then line 1; echo '{\"sequence\":2,oops}';"
                        " exit 1; fi; line $2; }; f",
                 false);
    expect_ledger(place, 1);
    expect_bad(place, "exec: line 2", "a key in quotes");
    expect_status(place, HF_UNREACHABLE, "exited with status 1");
    expect_ledger(place, 3);
    expect_end(place);
}

static void test_followed_a_command_is_started_again_at_its_end(void **state)
{
    struct place *place = *state;

    open_command(place, SCRIPT "f() { line $2; }; f", true);
    for (int64_t i = 1; i <= 3; i++) {
        expect_ledger(place, i);
        expect_status(place, HF_UNREACHABLE, "has no more ledgers at the moment");
    }
}

static void test_a_silent_command_can_be_stopped(void **state)
{
    struct place *place = *state;

    open_command(place, SCRIPT "line 1; exec sleep 1000; :", false);
    expect_ledger(place, 1);
    stop_source(place);
    expect_status(place, HF_INTERRUPTED, "interrupted");
}

/* 'Z' and 'X' are as good as gone: only init has not looked yet. */
static bool is_alive(pid_t pid)
{
    char path[64];
    char state = 'X';

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    int got = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return got == 1 && state != 'Z' && state != 'X';
}

/* The kernel takes its time. */
static void await_death(pid_t pid)
{
    for (int i = 0; i < 2000 && is_alive(pid); i++)
        poll(NULL, 0, 5);
    assert_false(is_alive(pid));
}

/* A bad line brings its number. */
static pid_t pid_from(struct place *place)
{
    char digits[32] = "";

    expect_bad(place, "exec: line", "an object is expected");
    assert_in_range(place->bad.size, 1, sizeof digits - 1);
    memcpy(digits, place->bad.bytes, place->bad.size);
    return (pid_t)atoi(digits);
}

static void close_source(struct place *place)
{
    hf__source_close(place->source);
    place->source = NULL;
}

static void test_nothing_of_a_command_is_left_when_it_is_closed(void **state)
{
    struct place *place = *state;

    open_command(place, "exec:sleep 1000 & echo $!; echo $$; wait; :", false);
    pid_t grandchild = pid_from(place);
    pid_t child = pid_from(place);
    assert_true(is_alive(child) && is_alive(grandchild));
    assert_int_equal(getpgid(child), child);
    close_source(place);
    assert_int_equal(kill(child, 0), -1);
    assert_int_equal(errno, ESRCH);
    await_death(grandchild);
}

static void test_a_command_that_ignores_sigterm_is_ended_too(void **state)
{
    struct place *place = *state;

    open_command(place, "exec:trap '' TERM; echo $$; while :; do sleep 1000; done; :", false);
    pid_t child = pid_from(place);
    close_source(place);
    assert_int_equal(kill(child, 0), -1);
}

static void test_what_a_command_leaves_behind_at_its_end_is_ended(void **state)
{
    struct place *place = *state;

    open_command(place, "exec:sleep 1000 >&- & echo $!; :", false);
    pid_t left = pid_from(place);
    expect_end(place);
    await_death(left);
}

/* Reads from a command in a process of its own, which tells its pid and is killed. */
static void be_a_reader(struct place *place, int tell)
{
    open_command(place, "exec:echo $$; exec sleep 1000; :", false);
    pid_t pid = pid_from(place);
    if (write(tell, &pid, sizeof pid) == (ssize_t)sizeof pid)
        pause();
    _exit(1);
}

static void test_a_command_does_not_outlive_a_reader_that_is_killed(void **state)
{
    struct place *place = *state;
    pid_t command = 0;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t reader = fork();
    assert_true(reader >= 0);
    if (reader == 0)
        be_a_reader(place, ends[1]);
    assert_int_equal(read(ends[0], &command, sizeof command), (ssize_t)sizeof command);
    assert_true(is_alive(command));
    assert_int_equal(kill(reader, SIGKILL), 0);
    assert_int_equal(waitpid(reader, NULL, 0), reader);
    await_death(command);
    close(ends[0]);
    close(ends[1]);
}

/* But for 32 and 33, which belong to the C library: nobody can set them through it. */
static void expect_no_signals(const struct place *place)
{
    static const unsigned long long own = 0x180000000;
    const char *tab = strchr(place->bad.bytes, '\t');

    assert_non_null(tab);
    if ((strtoull(tab + 1, NULL, 16) & ~own) != 0)
        fail_msg("inherited: %s", place->bad.bytes);
}

static void test_a_command_starts_with_a_clean_slate(void **state)
{
    struct place *place = *state;
    sigset_t blocked;
    sigset_t before;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    void (*handler)(int) = signal(SIGPIPE, SIG_IGN);
    open_command(place, "exec:grep -E 'SigBlk|SigIgn' /proc/self/status; wc -c; :", false);
    expect_bad(place, "exec: line 1", "an object is expected");
    expect_no_signals(place);
    expect_bad(place, "exec: line 2", "an object is expected");
    expect_no_signals(place);
    expect_bad(place, "exec: line 3", "an object is expected"); /* its input is empty */
    assert_memory_equal(place->bad.bytes, "0", 1);
    (void)signal(SIGPIPE, handler);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

static void test_a_name_for_messages_has_no_arguments(void **state)
{
    struct place *place = *state;

    open_command(place, "exec: TOKEN=secret  fetch --password secret", false);
    assert_string_equal(place->source->name, "exec:fetch");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_command_is_told_where_to_begin),
        TEST(test_ledgers_below_the_beginning_are_passed_over),
        TEST(test_a_command_that_fails_is_started_again_where_it_ended),
        TEST(test_a_signal_is_a_failure_too),
        TEST(test_what_cannot_be_run_is_a_failure),
        TEST(test_the_half_line_of_a_command_that_failed_is_no_data),
        TEST(test_the_last_line_of_a_command_that_went_well_counts),
        TEST(test_a_bad_line_is_not_asked_for_again),
        TEST(test_followed_a_command_is_started_again_at_its_end),
        TEST(test_a_silent_command_can_be_stopped),
        TEST(test_nothing_of_a_command_is_left_when_it_is_closed),
        TEST(test_a_command_that_ignores_sigterm_is_ended_too),
        TEST(test_what_a_command_leaves_behind_at_its_end_is_ended),
        TEST(test_a_command_does_not_outlive_a_reader_that_is_killed),
        TEST(test_a_command_starts_with_a_clean_slate),
        TEST(test_a_name_for_messages_has_no_arguments),
    };
    return RUN(tests);
}
