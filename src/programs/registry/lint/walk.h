/* Finds the files to look at: below folders, sorted, without what .gitignore leaves out. */
#ifndef HF_LINT_WALK_H
#define HF_LINT_WALK_H

#include <stddef.h>

#include "base/error.h"

typedef struct hf__walker {
    /* Called for each file; anything but HF_OK ends the walk. */
    hf_status (*file)(void *arg, int folder, const char *name, const char *path, hf_error *err);
    void (*warn)(void *arg, const char *path, const char *why);
    void *arg;
    const char *const *includes; /* globs of files to take beside those with a known suffix */
    size_t include_count;
} hf__walker;

/*
 * A file is taken whatever its name. A folder is walked; symbolic links in it are not followed, so
 * that no loop can be. HF_INVALID when there is no such path.
 */
HF_MUST_CHECK hf_status hf__walk(const hf__walker *walker, const char *path, hf_error *err);

#endif
