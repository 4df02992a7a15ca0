#include <stdlib.h>

#include "base/error.h"
#include "cli/choice.h"
#include "cli/program.h"
#include "programs/registry/commands.h"

static const struct command *const commands[] = {
    &cmd_registry_init, &cmd_registry_check,  &cmd_registry_risk, &cmd_registry_lint,
    &cmd_registry_doc,  &cmd_registry_import, &cmd_registry_seen, NULL,
};

hf_status open_needed_registry(const struct common *common, hf_registry **registry, hf_error *err)
{
    char *path = NULL;
    hf_status status = demand_registry(common, &path, err);

    free(path);
    if (status == HF_OK)
        status = open_registry(common, registry, err);
    if (status == HF_OK && *registry == NULL)
        status = hf__fail(err, HF_CONFIG, "the registry has just been removed");
    return status;
}

static void print_rest(FILE *out)
{
    fputs("\n'holdfast registry COMMAND --help' shows the options of a command.\n"
          "The registry: --registry, else HOLDFAST_REGISTRY, else locks.yaml here or in a folder "
          "above.\n",
          out);
}

int main(int argc, char **argv)
{
    const struct program program = {
        .name = "holdfast registry",
        .summary = "The registry of locks: locks.yaml, checked, documented and compared.",
        .commands = commands,
        .print_rest = print_rest,
    };

    return program_main(&program, argc, argv);
}
