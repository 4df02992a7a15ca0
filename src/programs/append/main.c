#include "cli/program.h"
#include "programs/append/append.h"

static const struct command *const no_commands[] = {NULL};

int main(int argc, char **argv)
{
    const struct program program = {
        .name = "holdfast append",
        .summary = "Rows to a shared ClickHouse table, all or none of them.",
        .commands = no_commands,
        .fallback = &cmd_append,
    };

    return program_main(&program, argc, argv);
}
