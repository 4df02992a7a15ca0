/* The commands of `holdfast registry`. */
#ifndef HF_CLI_REGISTRY_COMMANDS_H
#define HF_CLI_REGISTRY_COMMANDS_H

#include "cli/command.h"

extern const struct command cmd_registry_check;
extern const struct command cmd_registry_risk;
extern const struct command cmd_registry_lint;
extern const struct command cmd_registry_doc;
extern const struct command cmd_registry_import;
extern const struct command cmd_registry_seen;

#endif
