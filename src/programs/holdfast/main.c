#include <stdio.h>
#include <string.h>

#include "cli/libexec.h"
#include "cli/options.h"
#include "cli/program.h"
#include "programs/holdfast/commands.h"

static const struct command cmd_help;

static const struct command *const commands[] = {
    &cmd_run,   &cmd_yield,  &cmd_tx,   &cmd_key,  &cmd_locks,      &cmd_cursor, &cmd_gaps,
    &cmd_table, &cmd_doctor, &cmd_init, &cmd_help, &cmd_completion, NULL,
};

/* What the programs of this version do. Others are listed by name only. */
static const struct {
    const char *name;
    const char *summary;
} known_programs[] = {
    {"append", "Append rows to a shared ClickHouse table: contiguous, all or none."},
    {"ingest", "Ingest a network's ledgers, alone, and go on where it stopped."},
    {"registry", "Check, document and compare the registry of locks."},
    {"retention", "Drop a network's old ledgers."},
    {"serve", "Show every lock: a page, REST and metrics."},
    {"top", "Show every lock in the terminal."},
};

static const char *summary_of(const char *name)
{
    for (size_t i = 0; i < sizeof known_programs / sizeof known_programs[0]; i++)
        if (strcmp(known_programs[i].name, name) == 0)
            return known_programs[i].summary;
    return "";
}

static void print_rest(FILE *out)
{
    char **programs = find_programs();

    if (programs != NULL && programs[0] != NULL)
        fputs("\nPrograms:\n", out);
    for (char **name = programs; name != NULL && *name != NULL; name++) {
        const char *summary = summary_of(*name);
        fprintf(out, "  %-*s%s%s\n", summary[0] != '\0' ? 8 : 0, *name,
                summary[0] != '\0' ? " " : "", summary);
    }
    free_programs(programs);
    fputs(
        "\n'holdfast COMMAND --help' shows the options of a command.\n"
        "The store: --url, else HOLDFAST_URL, else the file HOLDFAST_URL_FILE, else DATABASE_URL,\n"
        "else libpq's PG* variables, else the local folder $XDG_STATE_HOME/holdfast.\n"
        "The registry: --registry, else HOLDFAST_REGISTRY, else locks.yaml here or in a folder "
        "above.\n",
        out);
}

const struct program holdfast_program = {
    .name = "holdfast",
    .summary = "Dependable advisory locks on PostgreSQL, or on an embedded store.",
    .commands = commands,
    .print_rest = print_rest,
    .has_programs = true,
};

/* ---- holdfast help --------------------------------------------------------------------------- */

/* `help registry check` runs `registry check --help`. */
static int help_of_program(const struct invocation *in)
{
    in->operands[in->count] = "--help"; /* there is room: the word "help" is gone */
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

static const struct command cmd_help = {
    .name = "help",
    .summary = "Show the commands, or the options of one.",
    .usage = "[COMMAND]",
    .takes_operands = true,
    .main = help_main,
};

int main(int argc, char **argv)
{
    return program_main(&holdfast_program, argc, argv);
}
