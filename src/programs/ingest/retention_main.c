#include "cli/program.h"
#include "programs/ingest/ingest.h"

static const struct command *const commands[] = {
    &cmd_retention_reconcile,
    NULL,
};

int main(int argc, char **argv)
{
    const struct program program = {
        .name = "holdfast retention",
        .summary = "Old ledgers of a network go; what is claimed stays true.",
        .commands = commands,
        .fallback = &cmd_retention,
    };

    return program_main(&program, argc, argv);
}
