/*
 * Finds advisory locks in source code, and what is wrong with their use. This is the front door of
 * lint: `holdfast registry lint` makes one linter, gives it paths and prints the findings.
 */
#ifndef HF_LINT_LINT_H
#define HF_LINT_LINT_H

#include <stdint.h>

#include "lib/registry/registry.h"
#include "programs/registry/lint/rules.h"
#include "programs/registry/lint/sites.h"

enum { HF__LINT_FILE_MAX = 8 * 1024 * 1024 };

typedef enum hf__confidence { HF__LOW, HF__MEDIUM, HF__HIGH } hf__confidence;

typedef struct hf__lint_options {
    const hf_registry *registry; /* NULL: the rules that need one are off */
    const char *const *includes; /* globs of files to read besides those of known languages */
    size_t include_count;
    const char *const *excludes; /* globs of files and folders to leave out */
    size_t exclude_count;
    bool vendored; /* look into node_modules, vendor and the like, too */
    bool off[HF__LINT_RULES];
    hf__confidence least; /* findings of less confidence are left out */
    uint32_t match_limit; /* 0: HF__MATCH_LIMIT */
    bool list;            /* keep every use, for hf__lint_sites_of */
    void (*warn)(void *arg, const char *path, const char *why);
    void *warn_arg;
} hf__lint_options;

typedef struct hf__lint_totals {
    size_t files;    /* that were read */
    size_t skipped;  /* binary, too large or unreadable */
    size_t ignored;  /* findings that an ignore comment covers */
    size_t vendored; /* folders of other people's code that were left out */
} hf__lint_totals;

typedef struct hf__lint hf__lint; /* for one thread at a time */

/* Compiles every expression. options must outlive *lint, which the caller frees. */
HF_MUST_CHECK hf_status hf__lint_new(const hf__lint_options *options, hf__lint **lint,
                                     hf_error *err);
void hf__lint_free(hf__lint *lint);

/*
 * Examines files, and every file below folders, and adds to findings. A file that two paths lead to
 * is examined once. HF_INVALID: there is no such path.
 */
HF_MUST_CHECK hf_status hf__lint_paths(hf__lint *lint, const char *const *paths, size_t count,
                                       hf__findings *findings, hf_error *err);

/* The same for a text in memory. The path's suffix tells the language. */
HF_MUST_CHECK hf_status hf__lint_text(hf__lint *lint, const char *path, const char *text,
                                      size_t size, hf__findings *findings, hf_error *err);

hf__lint_totals hf__lint_totals_of(const hf__lint *lint);

/* What became of every use so far. It lives as long as lint. */
const hf__sites *hf__lint_sites_of(const hf__lint *lint);

#endif
