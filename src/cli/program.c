#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/libexec.h"
#include "cli/options.h"
#include "cli/report.h"

/* The last word of the command's name: "check" of "registry check". */
static const char *command_word(const struct command *command)
{
    const char *space = strrchr(command->name, ' ');

    return space != NULL ? space + 1 : command->name;
}

const struct command *find_command(const struct program *program, const char *word)
{
    for (const struct command *const *c = program->commands; *c != NULL; c++)
        if (strcmp(command_word(*c), word) == 0)
            return *c;
    return NULL;
}

void print_overview(const struct program *program, FILE *out)
{
    if (program->fallback != NULL) {
        print_help(program->fallback, out);
        if (program->commands[0] != NULL)
            fputs("\nCommands:\n", out);
    } else {
        fprintf(out, "Usage: %s COMMAND [OPTION...] [ARG...]\n\n%s\n\nCommands:\n", program->name,
                program->summary);
    }
    for (const struct command *const *c = program->commands; *c != NULL; c++)
        if (!(*c)->hidden)
            fprintf(out, "  %-8s %s\n", command_word(*c), (*c)->summary);
    if (program->print_rest != NULL)
        program->print_rest(out);
}

void print_option_names(const struct option *options, FILE *out)
{
    for (; options != NULL && options->name != NULL; options++) {
        bool takes_word = options->value != NULL && !options->value_optional;
        const char *equals = takes_word ? "=" : "", *value = takes_word ? options->value : "";
        if (options->letter != 0)
            fprintf(out, " -%c%s%s", options->letter, equals, value);
        fprintf(out, " --%s%s%s", options->name, equals, value);
    }
}

/*
 * Prints a line for each command: its name and its options. The name is "-" for options without a
 * command.
 */
static int list_for_completion(const struct program *program)
{
    if (program->fallback != NULL) {
        fputs("-", stdout);
        print_option_names(program->fallback->options, stdout);
        print_option_names(common_options, stdout);
        putchar('\n');
    }
    for (const struct command *const *c = program->commands; *c != NULL; c++) {
        if ((*c)->hidden)
            continue;
        fputs(command_word(*c), stdout);
        print_option_names((*c)->options, stdout);
        print_option_names(common_options, stdout);
        putchar('\n');
    }
    return EXIT_OK;
}

/*
 * Opens /dev/null for every standard descriptor that is closed. Otherwise a file that we open could
 * become standard output or standard error, and messages would be written into it. A closed
 * standard input stays one that cannot be read: it is not the same as one without anything in it.
 */
static void fill_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* Options are not read yet where the command is not known. */
static bool asks_for_json(char **argv)
{
    for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--json") == 0)
            return true;
    return false;
}

static int wrong_usage(const struct program *program, char **argv, hf_error *err)
{
    struct report report = report_to_stderr(asks_for_json(argv));

    hf__hint(err, "see '%s --help'", program->name);
    return report_error(&report, err);
}

static int refuse_command(const struct program *program, char **argv)
{
    const char *word = argv[0];
    struct suggestion suggestion = {.word = word};
    char **programs = program->has_programs ? find_programs() : NULL;
    char shown[SHOWN_MAX];
    hf_error err;

    show_argument(shown, word);
    for (const struct command *const *c = program->commands; *c != NULL; c++)
        if (!(*c)->hidden)
            suggest(&suggestion, command_word(*c));
    for (char **name = programs; name != NULL && *name != NULL; name++)
        suggest(&suggestion, *name);
    if (suggestion.nearest == NULL)
        hf__set_error(&err, HF_INVALID, "unknown command '%s'", shown);
    else
        hf__set_error(&err, HF_INVALID, "unknown command '%s'; did you mean '%s'?", shown,
                      suggestion.nearest);
    free_programs(programs);
    return wrong_usage(program, argv, &err);
}

int run_program(const struct program *program, char **argv)
{
    struct report report = report_to_stderr(false);
    hf_error err;

    exec_program(argv[0], argv);
    if (errno == ENOENT)
        return refuse_command(program, argv);
    hf__set_error_errno(&err, HF_SYSTEM, errno, "cannot run holdfast-%s", argv[0]);
    return report_error(&report, &err);
}

/* Only --help and --version may come first. Other options are for the fallback, or refused. */
static int dispatch(const struct program *program, int argc, char **argv)
{
    char shown[SHOWN_MAX];
    hf_error err;

    if (argc < 2 && program->fallback == NULL) {
        hf__set_error(&err, HF_INVALID, "COMMAND is missing");
        return wrong_usage(program, argv, &err);
    }
    const char *first = argc < 2 ? "" : argv[1];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        print_overview(program, stdout);
        return EXIT_OK;
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        print_version(stdout);
        return EXIT_OK;
    }
    bool is_list = strcmp(first, LIST_FOR_COMPLETION) == 0;
    bool has_commands = program->commands[0] != NULL;
    if (program->fallback != NULL &&
        (first[0] == '-' || first[0] == '\0' || (!has_commands && !is_list)))
        return program->fallback->main(program->fallback, argc, argv);
    if (first[0] == '-') {
        hf__set_error(&err, HF_INVALID, "options stand after the command: %s",
                      show_argument(shown, first));
        return wrong_usage(program, argv, &err);
    }
    const struct command *command = find_command(program, first);
    if (command != NULL)
        return command->main(command, argc - 1, argv + 1);
    if (!is_list && program->fallback != NULL && program->fallback->takes_operands)
        return program->fallback->main(program->fallback, argc, argv);
    if (program->has_programs)
        return run_program(program, argv + 1);
    return is_list ? list_for_completion(program) : refuse_command(program, argv + 1);
}

int program_main(const struct program *program, int argc, char **argv)
{
    fill_standard_descriptors();
    char **own_argv = hide_passwords(argc, argv);
    int code = dispatch(program, argc, own_argv);
    if (own_argv != argv)
        free((void *)own_argv);

    int reason = fflush(stdout) != 0 ? errno : ferror(stdout) ? EIO : 0;

    if (reason == 0 || code != EXIT_OK)
        return code;
    struct report report = report_to_stderr(false);
    hf_error err;
    hf__set_error_errno(&err, HF_SYSTEM, reason, "cannot write to standard output");
    return report_error(&report, &err);
}
