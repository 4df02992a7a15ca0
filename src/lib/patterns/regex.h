/*
 * What the reader of expressions (regex.c) and the reader of their classes and escapes
 * (regex_class.c) share. A function that returns bool has read something, or has refused it: the
 * first refusal fills status and err, and reading is over.
 */
#ifndef HF_PATTERNS_REGEX_H
#define HF_PATTERNS_REGEX_H

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
    hf__charset chars; /* the one being read */
    hf_status status;
    hf_error *err;
} hf__regex;

/* Refuses with "FORMAT at character N", for the byte at `at`, and returns false. */
bool hf__regex_refuse(hf__regex *regex, size_t at, hf_status code, const char *hint,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Refuses the construct from `at` to where the reader is, whose bytes are shown. Returns false. */
bool hf__regex_refuse_construct(hf__regex *regex, size_t at, const char *what, const char *hint);

/* The number of the character at this byte of the text, from 1. */
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

/* Read "[...]" and "\..." into regex->chars, which is tidy then. */
bool hf__regex_class(hf__regex *regex);
bool hf__regex_escape(hf__regex *regex);

#endif
