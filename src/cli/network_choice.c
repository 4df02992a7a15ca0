#include "cli/network_choice.h"

#include "base/error.h"
#include "cli/choice.h"

enum { TRANSACTIONS = 40 }; /* workers, and what looks after them */

hf_status open_network(const struct invocation *in, const char *application,
                       const struct network_values *values, hf_store **store, hf_network **network,
                       hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_network_options of_network = HF_NETWORK_OPTIONS_INIT;

    if (values->network == NULL) {
        hf_status status = hf__fail(err, HF_INVALID, "--network is missing");
        hf__hint(err, "name the network, such as testnet");
        return status;
    }
    options.application = application;
    options.max_transactions = TRANSACTIONS;
    hf_status status = open_store(in, &options, store, err);
    if (status != HF_OK)
        return status;
    of_network.name = values->network;
    of_network.schema = values->schema;
    of_network.latest_cursor = values->latest;
    of_network.oldest_cursor = values->oldest;
    return hf_network_open(*store, &of_network, network, err);
}
