/* PCRE2 with its limits: bytes, not characters, because source files are in any encoding. */
#ifndef HF_LINT_REGEX_H
#define HF_LINT_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { HF__GROUPS_MAX = 16, HF__MATCH_LIMIT = 1000000 };

typedef struct hf__regex hf__regex; /* may be used by one thread at a time */

typedef struct hf__match {
    size_t start[HF__GROUPS_MAX]; /* SIZE_MAX: the group took no part; 0 is the whole match */
    size_t end[HF__GROUPS_MAX];
} hf__match;

typedef enum hf__found {
    HF__FOUND_NOT,
    HF__FOUND,
    HF__FOUND_TOO_HARD, /* the match limit, or the stack of the JIT */
} hf__found;

/* Letters match in either case; '.' does not match a newline; '^' and '$' are of lines. */
HF_MUST_CHECK hf_status hf__regex_compile(const char *pattern, hf__regex **regex, hf_error *err);

/* As it is written: case matters, '^' and '$' are of the whole text, '.' matches anything. */
HF_MUST_CHECK hf_status hf__regex_compile_exact(const char *pattern, hf__regex **regex,
                                                hf_error *err);
void hf__regex_free(hf__regex *regex);

void hf__regex_limit(hf__regex *regex, uint32_t match_limit);

/* The number of a named group, or 0. */
unsigned hf__regex_group(const hf__regex *regex, const char *name);

hf__found hf__regex_find(hf__regex *regex, const char *text, size_t size, size_t from,
                         hf__match *match);

static inline bool hf__match_has(const hf__match *match, unsigned group)
{
    return group > 0 && group < HF__GROUPS_MAX && match->start[group] != SIZE_MAX;
}

#endif
