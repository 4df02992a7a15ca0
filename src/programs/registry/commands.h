/* The commands of `holdfast registry`, and what they share. */
#ifndef HF_PROGRAMS_REGISTRY_COMMANDS_H
#define HF_PROGRAMS_REGISTRY_COMMANDS_H

#include "cli/command.h"
#include "cli/options.h"

/*
 * Opens the registry that the options and the environment choose; having none is an error.
 * *registry is the caller's to free.
 */
HF_MUST_CHECK hf_status open_needed_registry(const struct common *common, hf_registry **registry,
                                             hf_error *err);

extern const struct command cmd_registry_init;
extern const struct command cmd_registry_check;
extern const struct command cmd_registry_risk;
extern const struct command cmd_registry_lint;
extern const struct command cmd_registry_doc;
extern const struct command cmd_registry_import;
extern const struct command cmd_registry_seen;

#endif
