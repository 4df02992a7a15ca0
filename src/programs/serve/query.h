/* Names and values of a URL's query or of a form, decoded. */
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

/* Fills *problem and is false, so that checks read well. */
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

/* %XX in place, and '+' as a space in a form; false: not well formed, a NUL, a control character or no UTF-8. */
bool hf__percent_decode(char *text, bool plus_is_space);
bool hf__query_parse(const char *text, size_t size, hf__query *query, hf__problem *problem);
const char *hf__query_find(const hf__query *query, const char *name); /* NULL: not there */
/* RFC 3339, or Unix time in milliseconds; false: neither. */
bool hf__query_time(const char *text, int64_t *unix_ms);
void hf__query_free(hf__query *query);

#endif
