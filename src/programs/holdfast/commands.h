/* The commands of `holdfast`. */
#ifndef HF_HOLDFAST_COMMANDS_H
#define HF_HOLDFAST_COMMANDS_H

#include "cli/command.h"

extern const struct command cmd_run;
extern const struct command cmd_yield;
extern const struct command cmd_tx;
extern const struct command cmd_key;
extern const struct command cmd_locks;
extern const struct command cmd_cursor;
extern const struct command cmd_gaps;
extern const struct command cmd_table;
extern const struct command cmd_doctor;
extern const struct command cmd_init;
extern const struct command cmd_completion;

#endif
