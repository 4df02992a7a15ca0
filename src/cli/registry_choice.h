/* Which registry is meant: --registry, else HOLDFAST_REGISTRY, else locks.yaml upwards from here. */
#ifndef HF_CLI_REGISTRY_CHOICE_H
#define HF_CLI_REGISTRY_CHOICE_H

#include "cli/options.h"
#include "holdfast/holdfast.h"

/* *path is NULL when there is none; the caller frees it. What was named but is missing is an error. */
HF_MUST_CHECK hf_status choose_registry(const struct common *common, char **path, hf_error *err);

/* The same, where a registry is needed: none is an error. */
HF_MUST_CHECK hf_status demand_registry(const struct common *common, char **path, hf_error *err);

/* Reads the one that was chosen; *registry is NULL when there is none. */
HF_MUST_CHECK hf_status open_registry(const struct common *common, hf_registry **registry,
                                      hf_error *err);

#endif
