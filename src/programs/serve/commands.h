/* The command of holdfast-serve. */
#ifndef HF_CLI_SERVE_COMMANDS_H
#define HF_CLI_SERVE_COMMANDS_H

#include "cli/command.h"

extern const struct command cmd_serve;

#endif
