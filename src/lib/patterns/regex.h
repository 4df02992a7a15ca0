/* What the readers of expressions (regex.c) and of their classes and escapes (regex_class.c) share. */
#ifndef HF_REGISTRY_REGEX_H
#define HF_REGISTRY_REGEX_H

#include "lib/patterns/automaton.h"

enum {
    HF__NESTING_MAX = 100,
    HF__CLASS_RANGES_MAX = 1000,
};

typedef struct hf__regex {
    const char *text; /* UTF-8 */
    size_t size;
    size_t at; /* in bytes */
    unsigned depth;
    hf__draft *draft;
    hf__charset class; /* the one being read */
    hf_status status;
    hf_error *err;
} hf__regex;

/* "FORMAT at character N" about the byte at `at`, with a hint; false. Only the first one counts. */
bool hf__regex_refuse(hf__regex *regex, size_t at, hf_status code, const char *hint,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));

/* About the construct whose bytes, from `at` to where the reader is, are shown. */
bool hf__regex_refuse_construct(hf__regex *regex, size_t at, const char *what, const char *hint);

/* The character at this byte of the text, from 1. */
size_t hf__regex_position(const char *text, size_t at);

/* Of ASCII, whatever the locale. */
static inline bool hf__is_digit(uint32_t character)
{
    return character >= '0' && character <= '9';
}

static inline bool hf__is_letter(uint32_t character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
}

bool hf__regex_ahead(const hf__regex *regex, const char *text); /* does this come next? */
bool hf__regex_eat(hf__regex *regex, const char *text);         /* the same, and moves behind it */

/* Reads "[...]" or "\..." into regex->class, tidy. */
bool hf__regex_class(hf__regex *regex);
bool hf__regex_escape(hf__regex *regex);

#endif
