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

/* For whoever opens the store by another call: completes options (url, session_pool, log) up to that. The
 * url lives as the choice, which is to be freed in any case. */
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

#endif
