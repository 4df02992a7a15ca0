#ifndef HF_CLI_STORE_CHOICE_H
#define HF_CLI_STORE_CHOICE_H

#include "cli/options.h"
#include "holdfast/holdfast.h"

/* Which store is meant, and what said so. */
struct store_choice {
    char *url;            /* owned */
    const char *variable; /* of the environment that said so, or NULL */
};

/* Nothing falls back to the local store once anything points to PostgreSQL. */
HF_MUST_CHECK hf_status choose_store(const struct common *common, struct store_choice *choice,
                                     hf_error *err);
void store_choice_free(struct store_choice *choice);

/*
 * Chooses the store, completes options (url, session_pool, log) and opens it. An error names what
 * chose the store where that was not the command line.
 */
HF_MUST_CHECK hf_status open_store(const struct invocation *in, hf_store_options *options,
                                   hf_store **store, hf_error *err);

#endif
