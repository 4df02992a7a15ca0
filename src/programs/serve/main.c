#include "cli/program.h"
#include "programs/serve/serve.h"

static const struct command *const no_commands[] = {NULL};

int main(int argc, char **argv)
{
    const struct program program = {
        .name = "holdfast serve",
        .summary = "Every lock, who waits for whom, and ingests: a page, REST and metrics.",
        .commands = no_commands,
        .fallback = &cmd_serve,
    };

    return program_main(&program, argc, argv);
}
