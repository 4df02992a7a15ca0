#include "programs/ingest/exclusive.h"

#include <inttypes.h>

hf_status hf__take_network(hf_store *store, const hf_network *network, hf_lock **lock,
                           hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_target target = {.label = network->label, .derivation = HF_FNV1A64};
    spec.targets = &target;
    spec.target_count = 1;
    spec.flags = HF_PRIVATE;
    spec.wait_ms = 0;
    hf_status status = hf_lock_acquire(store, &spec, lock, err);
    if (status != HF_NOT_ACQUIRED || !err)
        return status;
    hf_error found = *err;
    status =
        hf__fail(err, HF_NOT_ACQUIRED, "network %s (key %" PRId64 ") is being ingested: %.700s",
                 network->name, network->lock_key, found.message);
    hf__hint(err, "stop the ingester first");
    return status;
}
