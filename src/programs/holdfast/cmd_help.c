#include <stdio.h>

#include "cli/options.h"
#include "cli/program.h"

/* `help registry check` is `registry check --help`, which the program answers. */
static int help_of_program(const struct invocation *in)
{
    in->operands[in->count] = "--help"; /* there is room where the word "help" was */
    in->operands[in->count + 1] = NULL;
    return run_program(&holdfast_program, in->operands);
}

static int help_main(const struct command *self, int argc, char **argv)
{
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, NULL, &in, &code))
        return code;
    if (in.count == 0) {
        print_overview(&holdfast_program, stdout);
        return EXIT_OK;
    }
    const struct command *command = find_command(&holdfast_program, in.operands[0]);
    if (command == NULL)
        return help_of_program(&in);
    if (in.count > 1)
        return report_usage(&in.report, self, "help is about one command at a time");
    print_help(command, stdout);
    return EXIT_OK;
}

const struct command cmd_help = {
    .name = "help",
    .summary = "Show the commands, or the options of one.",
    .usage = "[COMMAND]",
    .takes_operands = true,
    .main = help_main,
};
