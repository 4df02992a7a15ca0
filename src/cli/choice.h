#ifndef HF_CLI_STORE_CHOICE_H
#define HF_CLI_STORE_CHOICE_H

#include "cli/options.h"
#include "holdfast/holdfast.h"

/* Which store is meant, and what said so. */
struct store_choice {
    char *url;            /* owned */
    const char *variable; /* of the environment that said so, or NULL */
};

void store_choice_free(struct store_choice *choice);

/*
 * For whoever opens the store by another call: completes options (url, session_pool, log) up to
 * that. The url lives as the choice, which is to be freed in any case.
 */
HF_MUST_CHECK hf_status prepare_store(const struct invocation *in, hf_store_options *options,
                                      struct store_choice *choice, hf_error *err);

/* Adds to the error what chose the store, where that was not the command line; returns its code. */
HF_MUST_CHECK hf_status name_store_choice(const struct store_choice *choice, hf_error *err);

/*
 * Chooses the store, completes options (url, session_pool, log) and opens it. An error names what
 * chose the store where that was not the command line.
 */
HF_MUST_CHECK hf_status open_store(const struct invocation *in, hf_store_options *options,
                                   hf_store **store, hf_error *err);

/*
 * Which registry is meant: --registry, else HOLDFAST_REGISTRY, else locks.yaml upwards from here.
 */

/* The same, where a registry is needed: none is an error. */
HF_MUST_CHECK hf_status demand_registry(const struct common *common, char **path, hf_error *err);

/* Reads the one that was chosen; *registry is NULL when there is none. */
HF_MUST_CHECK hf_status open_registry(const struct common *common, hf_registry **registry,
                                      hf_error *err);

/*
 * What the commands about a network have in common: its options, and the way from them to a handle.
 */

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
