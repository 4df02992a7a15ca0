#ifndef HF_LINT_GITIGNORE_H
#define HF_LINT_GITIGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * .gitignore files, by git's rules: the last pattern wins, and deeper files win over higher ones.
 */

/* The patterns of one folder, linked to those of the folder above it. */
typedef struct hf__gitignore hf__gitignore;

/*
 * Reads the .gitignore of an open folder. parent, which may be NULL, must outlive the result. name
 * is the folder's own name, "" for the topmost. The caller frees *ignore, which is not NULL even
 * when the folder has no patterns: then its parents decide.
 */
HF_MUST_CHECK hf_status hf__gitignore_open(const hf__gitignore *parent, int folder,
                                           const char *name, hf__gitignore **ignore, hf_error *err);

/* The same from memory. */
HF_MUST_CHECK hf_status hf__gitignore_parse(const hf__gitignore *parent, const char *name,
                                            const char *text, size_t size, hf__gitignore **ignore,
                                            hf_error *err);
void hf__gitignore_free(hf__gitignore *ignore);

/* Should this entry of the folder be left out? */
bool hf__gitignore_excludes(const hf__gitignore *ignore, const char *name, bool is_folder);

/* A pattern of .gitignore: '*', '?', '[a-z]', and '**' for any number of folders. */

typedef struct hf__glob hf__glob;

/* *glob is NULL when the pattern matches nothing: an open bracket, a backslash at the end. */
HF_MUST_CHECK hf_status hf__glob_compile(const char *pattern, size_t size, hf__glob **glob,
                                         hf_error *err);
void hf__glob_free(hf__glob *glob);

/* Compares the name, or the whole path when the pattern has a slash. */
bool hf__glob_matches(const hf__glob *glob, const char *path, const char *name);

#endif
