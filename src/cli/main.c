#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/help.h"
#include "cli/libexec.h"
#include "cli/options.h"
#include "cli/suggest.h"

const struct command *const commands[] = {
    &cmd_run,  &cmd_tx,   &cmd_key,        &cmd_locks, &cmd_doctor,
    &cmd_init, &cmd_help, &cmd_completion, NULL,
};

const struct command *find_command(const char *name)
{
    for (const struct command *const *c = commands; *c != NULL; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

/* A file of ours must not become somebody's standard output. */
static void fill_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

static int refuse_command(const struct report *report, const char *name, int reason)
{
    struct suggestion suggestion = {.word = name};
    char shown[SHOWN_MAX];

    show_argument(shown, name);
    if (reason != ENOENT) {
        hf_error err = {.code = HF_SYSTEM};
        snprintf(err.message, sizeof err.message, "cannot run holdfast-%s: %s", shown,
                 strerror(reason));
        return report_error(report, &err);
    }
    for (const struct command *const *c = commands; *c != NULL; c++)
        if (!(*c)->hidden)
            suggest(&suggestion, (*c)->name);
    if (suggestion.nearest == NULL)
        return report_usage(report, NULL, "unknown command '%s'", shown);
    return report_usage(report, NULL, "unknown command '%s'; did you mean '%s'?", shown,
                        suggestion.nearest);
}

static int run_named(int argc, char **argv, const struct report *report)
{
    const struct command *command = find_command(argv[0]);

    if (command != NULL)
        return command->main(command, argc, argv);
    exec_program(argv[0], argv);
    return refuse_command(report, argv[0], errno);
}

/* What stands before the command: nothing, or --help or --version alone. */
static int dispatch(int argc, char **argv)
{
    struct report report = report_to_stderr(false);
    char shown[SHOWN_MAX];

    if (argc < 2)
        return report_usage(&report, NULL, "COMMAND is missing");
    const char *first = argv[1];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        print_overview(stdout);
        return EXIT_OK;
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        print_version(stdout);
        return EXIT_OK;
    }
    if (first[0] == '-')
        return report_usage(&report, NULL, "options stand after the command: %s",
                            show_argument(shown, first));
    return run_named(argc - 1, argv + 1, &report);
}

int main(int argc, char **argv)
{
    fill_standard_descriptors();
    int code = dispatch(argc, argv);

    int reason = fflush(stdout) != 0 ? errno : ferror(stdout) ? EIO : 0;

    if (reason == 0 || code != EXIT_OK)
        return code;
    struct report report = report_to_stderr(false);
    hf_error err = {.code = HF_SYSTEM};
    snprintf(err.message, sizeof err.message, "cannot write to standard output: %s",
             strerror(reason));
    return report_error(&report, &err);
}
