/* PCRE2 with its limits: bytes, not characters, because source files are in any encoding. */
#ifndef HF_LINT_PCRE_H
#define HF_LINT_PCRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { HF__GROUPS_MAX = 16, HF__MATCH_LIMIT = 1000000 };

typedef struct hf__pcre hf__pcre; /* may be used by one thread at a time */

typedef struct hf__pcre_match {
    size_t start[HF__GROUPS_MAX]; /* SIZE_MAX: the group took no part; 0 is the whole match */
    size_t end[HF__GROUPS_MAX];
} hf__pcre_match;

typedef enum hf__pcre_found {
    HF__PCRE_NOT_FOUND,
    HF__PCRE_FOUND,
    HF__PCRE_TOO_HARD, /* the match limit, or the stack of the JIT */
} hf__pcre_found;

/* Letters match in either case; '.' does not match a newline; '^' and '$' are of lines. */
HF_MUST_CHECK hf_status hf__pcre_compile(const char *pattern, hf__pcre **regex, hf_error *err);

/* As it is written: case matters, '^' and '$' are of the whole text, '.' matches anything. */
HF_MUST_CHECK hf_status hf__pcre_compile_exact(const char *pattern, hf__pcre **regex,
                                               hf_error *err);
void hf__pcre_free(hf__pcre *regex);

void hf__pcre_limit(hf__pcre *regex, uint32_t match_limit);

/* The number of a named group, or 0. */
unsigned hf__pcre_group(const hf__pcre *regex, const char *name);

hf__pcre_found hf__pcre_find(hf__pcre *regex, const char *text, size_t size, size_t from,
                             hf__pcre_match *match);

static inline bool hf__pcre_match_has(const hf__pcre_match *match, unsigned group)
{
    return group > 0 && group < HF__GROUPS_MAX && match->start[group] != SIZE_MAX;
}

#endif
