/* What the commands about a network have in common: its options, and the way from them to a handle. */
#ifndef HF_CLI_NETWORK_CHOICE_H
#define HF_CLI_NETWORK_CHOICE_H

#include "cli/options.h"
#include "holdfast/holdfast.h"

struct network_values {
    const char *network;
    const char *schema;
    const char *latest;
    const char *oldest;
};

/* Rows of an option table whose values begin with a struct network_values at this offset. */
#define NETWORK_OPTIONS(at)                                                                        \
    {                                                                                              \
        .name = "network",                                                                         \
        .value = "NET",                                                                            \
        .help = "the network, such as testnet",                                                    \
        .kind = OPTION_TEXT,                                                                       \
        .offset = (at) + offsetof(struct network_values, network),                                 \
    },                                                                                             \
        {                                                                                          \
            .name = "schema",                                                                      \
            .value = "NAME",                                                                       \
            .help = "its schema (default: ingest_NET)",                                            \
            .kind = OPTION_TEXT,                                                                   \
            .offset = (at) + offsetof(struct network_values, schema),                              \
        },                                                                                         \
        {                                                                                          \
            .name = "latest-cursor",                                                               \
            .value = "NAME",                                                                       \
            .help = "the cursor of the latest ledger (default: latestLedgerCursor)",               \
            .kind = OPTION_TEXT,                                                                   \
            .offset = (at) + offsetof(struct network_values, latest),                              \
        },                                                                                         \
    {                                                                                              \
        .name = "oldest-cursor", .value = "NAME",                                                  \
        .help = "the cursor of the oldest ledger (default: oldestLedgerCursor)",                   \
        .kind = OPTION_TEXT, .offset = (at) + offsetof(struct network_values, oldest),             \
    }

/* Opens the store (application as given) and the network. Both are the caller's to close. */
HF_MUST_CHECK hf_status open_network(const struct invocation *in, const char *application,
                                     const struct network_values *values, hf_store **store,
                                     hf_network **network, hf_error *err);

#endif
