#ifndef HF_CLI_INGEST_KEEP_H
#define HF_CLI_INGEST_KEEP_H

#include "programs/ingest/ingest.h"

/* "30d", "12h" or "1000-ledgers". */
HF_MUST_CHECK hf_status read_keep(const char *text, hf__keep *keep, hf_error *err);

#endif
