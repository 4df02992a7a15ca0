/* PCRE2 with limits. It matches bytes, because a source file may be in any encoding. */
#ifndef HF_LINT_PCRE_H
#define HF_LINT_PCRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { HF__GROUPS_MAX = 16, HF__MATCH_LIMIT = 1000000 };

typedef struct hf__pcre hf__pcre; /* for one thread at a time */

typedef struct hf__pcre_match {
    size_t start[HF__GROUPS_MAX]; /* SIZE_MAX: no match; group 0 is the whole match */
    size_t end[HF__GROUPS_MAX];
} hf__pcre_match;

typedef enum hf__pcre_found {
    HF__PCRE_NOT_FOUND,
    HF__PCRE_FOUND,
    HF__PCRE_TOO_HARD, /* it ran into the match limit, or out of the JIT's stack */
} hf__pcre_found;

/* Ignores case; '.' does not match a newline; '^' and '$' match at every line. Free the result. */
HF_MUST_CHECK hf_status hf__pcre_compile(const char *pattern, hf__pcre **regex, hf_error *err);

/* Case matters; '.' matches everything; '^' and '$' match at the ends of the text. */
HF_MUST_CHECK hf_status hf__pcre_compile_exact(const char *pattern, hf__pcre **regex,
                                               hf_error *err);
void hf__pcre_free(hf__pcre *regex);

/* How many steps a match may take, instead of HF__MATCH_LIMIT. */
void hf__pcre_limit(hf__pcre *regex, uint32_t match_limit);

/* The number of a named group, or 0. */
unsigned hf__pcre_group(const hf__pcre *regex, const char *name);

/* Finds the first match at or after `from`. */
hf__pcre_found hf__pcre_find(hf__pcre *regex, const char *text, size_t size, size_t from,
                             hf__pcre_match *match);

static inline bool hf__pcre_match_has(const hf__pcre_match *match, unsigned group)
{
    return group > 0 && group < HF__GROUPS_MAX && match->start[group] != SIZE_MAX;
}

#endif
