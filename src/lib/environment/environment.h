/*
 * Which store and which registry a program means by its environment and the folder it is in. This
 * is the only room of the library that reads them. The commands ask it, and hf_store_open where
 * options.environment says so.
 */
#ifndef HF_ENVIRONMENT_ENVIRONMENT_H
#define HF_ENVIRONMENT_ENVIRONMENT_H

#include "base/error.h"

/*
 * The URL of HOLDFAST_URL, of the file that HOLDFAST_URL_FILE names, of DATABASE_URL or libpq's
 * variables, else a local folder. The caller frees *url. *variable is what named it, or NULL.
 * HF_CONFIG: it is empty or cannot be read, or nothing names a store.
 */
HF_MUST_CHECK hf_status hf__environment_url(char **url, const char **variable, hf_error *err);

/* Completes session_pool and machine. HF_CONFIG: a variable has no such number. */
HF_MUST_CHECK hf_status hf__environment_options(hf_store_options *options, hf_error *err);

/*
 * Adds to the error that the store is from this variable, which may be NULL, and returns the
 * error's code: HF_INVALID becomes HF_CONFIG, as the caller is not at fault. err must not be NULL.
 */
HF_MUST_CHECK hf_status hf__environment_blame(const char *variable, hf_error *err);

/* The variable that names the registry, and the name of the file that is looked for without it. */
#define HF__REGISTRY_VARIABLE "HOLDFAST_REGISTRY"
#define HF__REGISTRY_FILE "locks.yaml"

/*
 * The registry of HOLDFAST_REGISTRY, else locks.yaml in this folder or one above. *path is NULL
 * when there is none, or when the variable is empty; the caller frees it. A file that nobody named
 * must belong to the user or to root, and no file may be writable by everybody: HF_CONFIG.
 */
HF_MUST_CHECK hf_status hf__environment_registry(char **path, hf_error *err);

/* The same for a file that was named. chooser is what named it, for messages. */
HF_MUST_CHECK hf_status hf__registry_named(const char *chooser, const char *named, char **path,
                                           hf_error *err);

#endif
