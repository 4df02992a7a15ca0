#include "programs/ingest/keeper.h"

#include <pthread.h>
#include <stdlib.h>

#include "programs/ingest/retention.h"

struct hf__keeper {
    hf_store *store;
    hf_network *network;
    hf__keep keep;
    hf__stop stop;
    pthread_t thread;
};

/* What fails now is tried again in a minute: nothing is lost by keeping more for a while. */
static void *keep_on(void *arg)
{
    hf__keeper *keeper = arg;
    do {
        hf__retention_report report = {0};
        hf_error ignored;
        (void)!hf__retention_run(keeper->store, keeper->network, &keeper->keep, &keeper->stop,
                                 &report, &ignored);
    } while (!hf__stop_pause(&keeper->stop, HF__RETENTION_EVERY_MS));
    return NULL;
}

hf_status hf__keeper_start(hf_store *store, hf_network *network, const hf__keep *keep,
                           hf__keeper **out, hf_error *err)
{
    hf__keeper *keeper = calloc(1, sizeof *keeper);
    if (!keeper)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    keeper->store = store;
    keeper->network = network;
    keeper->keep = *keep;
    keeper->keep.every_ms = HF__RETENTION_EVERY_MS;
    hf_status status = hf__stop_init(&keeper->stop, err);
    if (status == HF_OK && pthread_create(&keeper->thread, NULL, keep_on, keeper) != 0) {
        hf__stop_destroy(&keeper->stop);
        status = hf__fail(err, HF_NO_MEMORY, "cannot start a thread for retention");
    }
    if (status != HF_OK) {
        free(keeper);
        return status;
    }
    *out = keeper;
    return HF_OK;
}

void hf__keeper_stop(hf__keeper *keeper, bool once_more)
{
    hf__retention_report report = {0};
    hf_error ignored;
    if (!keeper)
        return;
    hf__stop_request(&keeper->stop);
    pthread_join(keeper->thread, NULL);
    keeper->keep.every_ms = 0;
    if (once_more)
        (void)!hf__retention_run(keeper->store, keeper->network, &keeper->keep, NULL, &report,
                                 &ignored);
    hf__stop_destroy(&keeper->stop);
    free(keeper);
}
