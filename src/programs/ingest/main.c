#include "cli/program.h"
#include "programs/ingest/ingest.h"

static const struct command *const commands[] = {
    &cmd_ingest_status,
    &cmd_ingest_adopt,
    &cmd_ingest_reset,
    NULL,
};

int main(int argc, char **argv)
{
    const struct program program = {
        .name = "holdfast ingest",
        .summary = "Ledgers of a network, by one ingester at a time.",
        .commands = commands,
        .fallback = &cmd_ingest,
    };

    return program_main(&program, argc, argv);
}
