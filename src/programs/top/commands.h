#ifndef HF_CLI_TOP_COMMANDS_H
#define HF_CLI_TOP_COMMANDS_H

#include "cli/command.h"

extern const struct command cmd_top;

#endif
