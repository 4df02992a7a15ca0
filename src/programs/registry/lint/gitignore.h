#ifndef HF_LINT_GITIGNORE_H
#define HF_LINT_GITIGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* What .gitignore files say, with git's own rules: the last pattern wins, deeper files win over others. */

/* The patterns of one folder, linked to those of the folder above. */
typedef struct hf__gitignore hf__gitignore;

/*
 * Reads the .gitignore of a folder; parent (may be NULL) must outlive it. name is the folder's own,
 * "" for the topmost. *ignore is never NULL on success: a folder without patterns passes questions on.
 */
HF_MUST_CHECK hf_status hf__gitignore_open(const hf__gitignore *parent, int folder,
                                           const char *name, hf__gitignore **ignore, hf_error *err);

/* The same from memory. */
HF_MUST_CHECK hf_status hf__gitignore_parse(const hf__gitignore *parent, const char *name,
                                            const char *text, size_t size, hf__gitignore **ignore,
                                            hf_error *err);
void hf__gitignore_free(hf__gitignore *ignore);

/* Is this entry of the folder to be left out? */
bool hf__gitignore_excludes(const hf__gitignore *ignore, const char *name, bool is_folder);

/* Patterns as .gitignore has them: '*', '?', '[a-z]', and '**' for any number of folders. */

typedef struct hf__glob hf__glob;

/* *glob is NULL for a pattern that can match nothing: an open bracket, a lone backslash. */
HF_MUST_CHECK hf_status hf__glob_compile(const char *pattern, size_t size, hf__glob **glob,
                                         hf_error *err);
void hf__glob_free(hf__glob *glob);

/* A pattern without a slash is for names in any folder, one with a slash for the whole path. */
bool hf__glob_matches(const hf__glob *glob, const char *path, const char *name);

#endif
