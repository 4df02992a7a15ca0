/* Names and values of a URL's query or of a form, decoded. Pure functions, for any thread. */
#ifndef HF_SERVE_QUERY_H
#define HF_SERVE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a request is not answered with what it asks for. */
typedef struct hf__problem {
    int status; /* of HTTP; 0: none */
    char detail[400];
} hf__problem;

/* Fills *problem and returns false, so that a check can return it. */
bool hf__refuse(hf__problem *problem, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum { HF__QUERY_MAX = 24 };

typedef struct hf__query {
    struct {
        const char *name, *value;
    } pairs[HF__QUERY_MAX];
    size_t count;
    char *memory;
} hf__query;

/*
 * Decodes %XX in place, and '+' to a space if asked to. False when an escape is wrong, or the text
 * has control characters or is not UTF-8.
 */
bool hf__percent_decode(char *text, bool plus_is_space);
/* Copies what it keeps; free the query in any case. False: *problem says why. */
bool hf__query_parse(const char *text, size_t size, hf__query *query, hf__problem *problem);
const char *hf__query_find(const hf__query *query, const char *name); /* NULL: not there */
/* RFC 3339, or Unix time in milliseconds; false: neither. */
bool hf__query_time(const char *text, int64_t *unix_ms);
void hf__query_free(hf__query *query);

#endif
