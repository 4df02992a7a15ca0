#include "cli/program.h"
#include "programs/top/run.h"

static const struct command *const no_commands[] = {NULL};

int main(int argc, char **argv)
{
    const struct program program = {
        .name = "holdfast top",
        .summary = "Every lock, who waits for whom, and what happened, in the terminal.",
        .commands = no_commands,
        .fallback = &cmd_top,
    };

    return program_main(&program, argc, argv);
}
