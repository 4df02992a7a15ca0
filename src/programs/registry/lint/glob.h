/* Patterns as .gitignore has them: '*', '?', '[a-z]', and '**' for any number of folders. */
#ifndef HF_LINT_GLOB_H
#define HF_LINT_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct hf__glob hf__glob;

/* *glob is NULL for a pattern that can match nothing: an open bracket, a lone backslash. */
HF_MUST_CHECK hf_status hf__glob_compile(const char *pattern, size_t size, hf__glob **glob,
                                         hf_error *err);
void hf__glob_free(hf__glob *glob);

/* A pattern without a slash is for names in any folder, one with a slash for the whole path. */
bool hf__glob_matches(const hf__glob *glob, const char *path, const char *name);

#endif
