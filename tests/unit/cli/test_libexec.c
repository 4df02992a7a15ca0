/* Built with folders of its own: "moved" beside this program, and HOLDFAST_LIBEXECDIR. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/libexec.h"

static char own[PATH_MAX];
static char moved[PATH_MAX + sizeof "/" HOLDFAST_LIBEXEC_FROM_BIN];
static char stated[] = "/tmp/test_libexec.XXXXXX";

static void write_script(const char *folder, const char *name, const char *script, mode_t mode)
{
    char path[PATH_MAX * 2];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void remove_file(const char *folder, const char *name)
{
    char path[PATH_MAX * 2];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static int set_up(void **state)
{
    (void)state;
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0 || mkdtemp(stated) == NULL)
        return -1;
    own[length] = '\0';
    *strrchr(own, '/') = '\0';
    snprintf(moved, sizeof moved, "%s/%s", own, HOLDFAST_LIBEXEC_FROM_BIN);
    mkdir(moved, 0755);
    mkdir(HOLDFAST_LIBEXECDIR, 0755);
    return unsetenv("HOLDFAST_LIBEXEC");
}

static char *const hello[] = {(char[]){"hello"}, NULL};

static int tear_down(void **state)
{
    (void)state;
    return rmdir(stated) | rmdir(moved) | rmdir(HOLDFAST_LIBEXECDIR);
}

static void assert_answer(const char *name, const char *wanted)
{
    hf__buf answer = {0};

    assert_true(ask_program(name, hello, &answer));
    assert_string_equal(answer.data, wanted);
    hf__buf_free(&answer);
}

static void test_the_nearest_folder_wins(void **state)
{
    (void)state;
    write_script(HOLDFAST_LIBEXECDIR, "holdfast-probe", "echo installed $1", 0755);
    assert_answer("probe", "installed hello\n");
    write_script(moved, "holdfast-probe", "echo moved $1", 0755);
    assert_answer("probe", "moved hello\n");
    write_script(own, "holdfast-probe", "echo own $1", 0755);
    assert_answer("probe", "own hello\n");
    remove_file(own, "holdfast-probe");
    remove_file(moved, "holdfast-probe");
    remove_file(HOLDFAST_LIBEXECDIR, "holdfast-probe");
}

static void test_a_stated_folder_is_the_only_one(void **state)
{
    hf__buf answer = {0};

    (void)state;
    write_script(HOLDFAST_LIBEXECDIR, "holdfast-probe", "echo installed", 0755);
    write_script(stated, "holdfast-other", "echo stated", 0755);
    setenv("HOLDFAST_LIBEXEC", stated, 1);
    assert_answer("other", "stated\n");
    assert_false(ask_program("probe", hello, &answer));
    char **names = find_programs();
    assert_string_equal(names[0], "other");
    assert_null(names[1]);
    free_programs(names);

    setenv("HOLDFAST_LIBEXEC", "", 1);
    assert_answer("probe", "installed\n");
    unsetenv("HOLDFAST_LIBEXEC");
    remove_file(HOLDFAST_LIBEXECDIR, "holdfast-probe");
    remove_file(stated, "holdfast-other");
    hf__buf_free(&answer);
}

static void test_programs_are_listed_in_order_and_once(void **state)
{
    (void)state;
    write_script(HOLDFAST_LIBEXECDIR, "holdfast-b", "", 0755);
    write_script(HOLDFAST_LIBEXECDIR, "holdfast-c", "", 0755);
    write_script(moved, "holdfast-b", "", 0755);
    write_script(moved, "holdfast-a", "", 0755);
    write_script(moved, "holdfast-unrunnable", "", 0644);
    write_script(moved, "holdfast-x.p", "", 0755);
    write_script(moved, "other", "", 0755);
    char **names = find_programs();
    assert_string_equal(names[0], "a");
    assert_string_equal(names[1], "b");
    assert_string_equal(names[2], "c");
    assert_null(names[3]);
    free_programs(names);
    remove_file(HOLDFAST_LIBEXECDIR, "holdfast-b");
    remove_file(HOLDFAST_LIBEXECDIR, "holdfast-c");
    remove_file(moved, "holdfast-b");
    remove_file(moved, "holdfast-a");
    remove_file(moved, "holdfast-unrunnable");
    remove_file(moved, "holdfast-x.p");
    remove_file(moved, "other");
}

static void test_a_name_cannot_lead_out_of_the_folder(void **state)
{
    static const char *const names[] = {"", "../probe", "a/b", "UPPER", "a b", "x.p"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        errno = 0;
        exec_program(names[i], (char *[]){"x", NULL});
        assert_int_equal(errno, ENOENT);
    }
}

static void test_a_program_that_cannot_run_is_not_taken_for_missing(void **state)
{
    (void)state;
    write_script(moved, "holdfast-probe", "", 0644);
    exec_program("probe", (char *[]){"probe", NULL});
    assert_int_equal(errno, EACCES);
    remove_file(moved, "holdfast-probe");
}

static void test_a_program_that_fails_has_no_answer(void **state)
{
    hf__buf answer = {0};

    (void)state;
    write_script(moved, "holdfast-probe", "echo half; exit 64", 0755);
    assert_false(ask_program("probe", hello, &answer));
    hf__buf_free(&answer);
    remove_file(moved, "holdfast-probe");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nearest_folder_wins),
        cmocka_unit_test(test_a_stated_folder_is_the_only_one),
        cmocka_unit_test(test_programs_are_listed_in_order_and_once),
        cmocka_unit_test(test_a_name_cannot_lead_out_of_the_folder),
        cmocka_unit_test(test_a_program_that_cannot_run_is_not_taken_for_missing),
        cmocka_unit_test(test_a_program_that_fails_has_no_answer),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
