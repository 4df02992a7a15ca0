/* SIGTERM, SIGINT and SIGHUP as a wish to stop. */
#ifndef HF_CLI_INGEST_STOPPING_H
#define HF_CLI_INGEST_STOPPING_H

#include <pthread.h>

#include "base/stop.h"
#include "holdfast/holdfast.h"

struct stopping {
    hf__stop stop;
    hf_store *store; /* whose waits end too; may be NULL */
    pthread_t thread;
    atomic_bool over;
};

HF_MUST_CHECK hf_status stopping_start(struct stopping *stopping, hf_store *store, hf_error *err);

/* From here on the process ends by itself. */
void stopping_end(struct stopping *stopping);

#endif
