/*
 * Which store, registry and network a command means, by its options and the environment, and how
 * to open them.
 */
#ifndef HF_CLI_CHOICE_H
#define HF_CLI_CHOICE_H

#include "cli/options.h"
#include "holdfast/holdfast.h"

/* Which store is meant, and what chose it. */
struct store_choice {
    char *url;            /* owned */
    const char *variable; /* the environment variable that chose it, or NULL */
};

/* Frees the url. Safe on a choice that is all zero, and twice. */
void store_choice_free(struct store_choice *choice);

/*
 * Does what open_store does, but leaves it to the caller to open the store: chooses it, completes
 * options (url, machine, session_pool, log) and loads the libraries that it needs. options->url
 * belongs to the choice, which the caller frees also after a failure; options->log_arg points into
 * `in`. HF_INVALID or HF_CONFIG for a wrong choice, HF_UNREACHABLE without the library.
 */
HF_MUST_CHECK hf_status prepare_store(const struct invocation *in, hf_store_options *options,
                                      struct store_choice *choice, hf_error *err);

/*
 * Adds to the error which variable chose the store, if one did, and returns the error's code. A
 * variable is not the command line: HF_INVALID becomes HF_CONFIG. err must not be NULL.
 */
HF_MUST_CHECK hf_status name_store_choice(const struct store_choice *choice, hf_error *err);

/*
 * Chooses the store (--url, else HOLDFAST_URL, HOLDFAST_URL_FILE, DATABASE_URL, libpq's variables,
 * a local folder), completes options and opens it. `in` must outlive the store, which the caller
 * closes. Fails as prepare_store and hf_store_open, and the error names the variable that chose the
 * store. err must not be NULL; options->url is NULL afterwards.
 */
HF_MUST_CHECK hf_status open_store(const struct invocation *in, hf_store_options *options,
                                   hf_store **store, hf_error *err);

/*
 * Finds the registry for commands that need one: --registry, else HOLDFAST_REGISTRY, else
 * locks.yaml in this folder or one above. HF_CONFIG when there is none, or when it may not be used,
 * or cannot be read. The caller frees *path.
 */
HF_MUST_CHECK hf_status demand_registry(const struct common *common, char **path, hf_error *err);

/*
 * Finds it in the same way and reads it. Without a registry *registry is NULL, which is no error.
 * The caller frees it with hf_registry_free. A file that nobody named must belong to the user or to
 * root, and no file may be writable by everybody: HF_CONFIG.
 */
HF_MUST_CHECK hf_status open_registry(const struct common *common, hf_registry **registry,
                                      hf_error *err);

/* What chose the registry: "--registry", "HOLDFAST_REGISTRY", or that it was found. */
const char *registry_chooser(const struct common *common);

/* The options that all commands about a network have. */

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

/*
 * Where the store has no cursor latestLedgerCursor, but the cursors of a program that we know, sets
 * these names, unless the options have some already. Fails as hf_network_open and hf_cursor_list.
 */
HF_MUST_CHECK hf_status recognise_cursors(hf_store *store, hf_network_options *options,
                                          hf_error *err);

/* How long commands that end by themselves wait for a table that somebody locks. */
enum { READ_WAIT_MS = 2000 };

/*
 * Opens the store, under this application name, and the network. read_wait_ms as in
 * hf_network_options. HF_INVALID without --network; else fails as open_store, hf_network_open and
 * recognise_cursors. *store and *network must be NULL before. The caller closes both, also after a
 * failure: the store may be open then.
 */
HF_MUST_CHECK hf_status open_network(const struct invocation *in, const char *application,
                                     const struct network_values *values, int64_t read_wait_ms,
                                     hf_store **store, hf_network **network, hf_error *err);

/* What a command does with an open network. Reports its own errors, and returns the exit code. */
typedef int network_fn(const struct invocation *in, hf_store *store, hf_network *network,
                       void *arg);

/*
 * Opens the store and the network, calls fn in this thread, and closes both. Returns what fn
 * returned, or the exit code of a failure to open them, which it reports.
 */
int with_network(const struct invocation *in, const char *application,
                 const struct network_values *values, network_fn *fn, void *arg);

#endif
