/*
 * What all REST answers share: lists in pages, filters, and values of JSON. Pure functions, for
 * any thread.
 */
#ifndef HF_SERVE_API_H
#define HF_SERVE_API_H

#include "programs/serve/http.h"

enum { HF__LIMIT_DEFAULT = 100, HF__LIMIT_MAX = 1000 };

/* A list that is being written: {"data":[…],"page":{…},"snapshot":{…}}. */
typedef struct hf__api_list {
    const hf__exchange *exchange;
    const hf__snapshot *snapshot;
    hf__json json;
    int64_t limit, offset;
    int64_t total; /* items that pass the filters */
    int64_t shown;
} hf__api_list;

hf__api_list hf__api_list_begin(const hf__exchange *exchange, const hf__snapshot *snapshot);
/* Counts an item that passes the filters. True: it is on this page, write it. */
bool hf__api_list_takes(hf__api_list *list);
void hf__api_list_end_data(hf__api_list *list); /* extras may follow */
/*
 * Ends the list, moves its text to out, and returns the HTTP status. next_cursor is where the next
 * page begins, "" after the last one, or NULL when pages are counted by offset.
 */
int hf__api_list_end(hf__api_list *list, const char *next_cursor, hf__buf *out);

/* Is q (may be "") part of one of the texts? ASCII letters match in both cases. */
bool hf__text_fits(const char *q, const char *const *texts, size_t count);

/*
 * Writes key, key_text, space and pair. A number in JavaScript cannot hold 64 bits, so that each
 * such number comes as text too.
 */
void hf__put_key(hf__json *json, hf_space space, int64_t key);
void hf__put_when(hf__json *json, const char *name, int64_t unix_ms); /* 0: null */
void hf__put_ms(hf__json *json, const char *name, int64_t ms);        /* negative: null */
void hf__put_maybe(hf__json *json, const char *name, hf__maybe number);
void hf__put_positive(hf__json *json, const char *name, int64_t number); /* 0: null */
void hf__put_token(hf__json *json, int64_t token); /* and token_text; 0: null */
const char *hf__mode_name(hf_mode mode);
const char *hf__lifetime_name(hf_lifetime lifetime);

/* Does the key pass the filter `key`, which is decimal text? */
bool hf__key_fits(const hf__exchange *exchange, int64_t key);

/* Rows of tables of shapes. */
#define HF__SHAPE(name, type, about)                                                               \
    {                                                                                              \
        name, type, about, false, NULL, NULL                                                       \
    }
#define HF__SHAPE_OR_NULL(name, type, about)                                                       \
    {                                                                                              \
        name, type, about, true, NULL, NULL                                                        \
    }
#define HF__KEY_SHAPE                                                                              \
    {"space", "string", "bigint: one number of 64 bits; pair: two of 32", false, NULL, NULL},      \
        {"key", "integer", "64 bits; a pair is joined, the first half above", false, NULL, NULL},  \
        {"key_text", "string", "the same for programs whose numbers are doubles",                  \
         false,      NULL,     NULL},                                                              \
    {                                                                                              \
        "pair", "array", "both halves of a pair", true, "integer", NULL                            \
    }

#endif
