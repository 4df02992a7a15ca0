/* How much of an append has gone to the table, for people. */
#ifndef HF_CLI_APPEND_AMOUNTS_H
#define HF_CLI_APPEND_AMOUNTS_H

#include "cli/progress.h"
#include "programs/append/append.h"

void show_amounts(struct progress *progress, const hf__append_progress *now);

#endif
