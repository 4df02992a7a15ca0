#include "cli/program.h"
#include "programs/append/append.h"
#include "programs/append/resolve.h"

static const struct command *const commands[] = {
    &cmd_append_list,
    &cmd_append_resolve,
    &cmd_append_forget,
    NULL,
};

int main(int argc, char **argv)
{
    const struct program program = {
        .name = "holdfast append",
        .summary = "Rows to a shared ClickHouse table, all or none of them.",
        .commands = commands,
        .fallback = &cmd_append,
    };

    return program_main(&program, argc, argv);
}
