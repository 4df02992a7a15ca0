/* Finds the files to examine: below folders, sorted, without those that .gitignore leaves out. */
#ifndef HF_LINT_WALK_H
#define HF_LINT_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct hf__walker {
    /* Called for each file, with its open folder. Any status but HF_OK ends the walk. */
    hf_status (*file)(void *arg, int folder, const char *name, const char *path, hf_error *err);
    void (*warn)(void *arg, const char *path, const char *why);
    void *arg;
    const char *const *includes; /* globs of files to visit besides those with a known suffix */
    size_t include_count;
    const char *const *excludes; /* globs of files and folders to leave out */
    size_t exclude_count;
    bool vendored;        /* visit node_modules, vendor and the like, too */
    size_t *vendored_out; /* counts such folders that were left out; may be NULL */
} hf__walker;

/*
 * Visits a file, whatever its name, or everything below a folder. It does not follow symbolic links
 * in folders, so there are no loops. HF_INVALID: there is no such path.
 */
HF_MUST_CHECK hf_status hf__walk(const hf__walker *walker, const char *path, hf_error *err);

#endif
