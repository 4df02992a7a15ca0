/* How far the ingester has come, for people. */
#ifndef HF_CLI_INGEST_LEDGERS_H
#define HF_CLI_INGEST_LEDGERS_H

#include "cli/progress.h"
#include "programs/ingest/ingest.h"

void show_ledgers(struct progress *progress, const hf__ingest_progress *now);
void sum_up_ledgers(struct progress *progress, const hf__ingest_progress *now); /* at the end */

#endif
