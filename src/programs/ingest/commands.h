/* The commands of `holdfast ingest` and `holdfast retention`. */
#ifndef HF_CLI_INGEST_COMMANDS_H
#define HF_CLI_INGEST_COMMANDS_H

#include "cli/command.h"

extern const struct command cmd_ingest; /* without a word behind it */
extern const struct command cmd_ingest_status;
extern const struct command cmd_ingest_adopt;
extern const struct command cmd_ingest_reset;

extern const struct command cmd_retention; /* without a word behind it */
extern const struct command cmd_retention_reconcile;

#endif
