#ifndef HF_CLI_APPEND_COMMANDS_H
#define HF_CLI_APPEND_COMMANDS_H

#include "cli/command.h"

extern const struct command cmd_append;

#endif
