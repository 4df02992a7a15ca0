#include <errno.h>
#include <stdio.h>

#include "cli/help.h"
#include "cli/libexec.h"
#include "cli/options.h"

void print_overview(FILE *out)
{
    fputs("Usage: holdfast COMMAND [OPTION...] [ARG...]\n\n"
          "Dependable advisory locks on PostgreSQL, or on an embedded store.\n\n"
          "Commands:\n",
          out);
    for (const struct command *const *c = commands; *c != NULL; c++)
        if (!(*c)->hidden)
            fprintf(out, "  %-8s %s\n", (*c)->name, (*c)->summary);
    list_programs(out);
    fputs(
        "\n'holdfast COMMAND --help' shows the options of a command.\n"
        "The store: --url, else HOLDFAST_URL, else DATABASE_URL, else libpq's PG* variables, else\n"
        "the local folder $XDG_STATE_HOME/holdfast.\n",
        out);
}

static int help_main(const struct command *self, int argc, char **argv)
{
    struct invocation in = {0};
    char shown[SHOWN_MAX];
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, NULL, &in, &code))
        return code;
    if (in.count > 1)
        return report_usage(&in.report, self, "help is about one command at a time");
    if (in.count == 0) {
        print_overview(stdout);
        return EXIT_OK;
    }
    const struct command *command = find_command(in.operands[0]);
    if (command != NULL) {
        print_help(command, stdout);
        return EXIT_OK;
    }
    exec_program(in.operands[0], (char *[]){in.operands[0], "--help", NULL});
    return report_usage(&in.report, NULL, "there is no command '%s'",
                        show_argument(shown, in.operands[0]));
}

const struct command cmd_help = {
    .name = "help",
    .summary = "Show the commands, or the options of one.",
    .usage = "[COMMAND]",
    .takes_operands = true,
    .main = help_main,
};
