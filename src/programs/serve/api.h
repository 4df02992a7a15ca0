/* What the REST answers write alike. */
#ifndef HF_SERVE_API_H
#define HF_SERVE_API_H

#include "programs/serve/http.h"

enum { HF__LIMIT_DEFAULT = 100, HF__LIMIT_MAX = 1000 };

/* A list on its way: {"data":[…],"page":{…},"snapshot":{…}}. */
typedef struct hf__api_list {
    const hf__exchange *exchange;
    const hf__snapshot *snapshot;
    hf__json json;
    int64_t limit, offset;
    int64_t total; /* that fit the filters */
    int64_t shown;
} hf__api_list;

hf__api_list hf__api_list_begin(const hf__exchange *exchange, const hf__snapshot *snapshot);
/* Counts one that fits; true: it belongs to this page and is to be written. */
bool hf__api_list_takes(hf__api_list *list);
void hf__api_list_end_data(hf__api_list *list); /* after it come extras */
/* next_cursor: where the next page begins when it is not counted by offset; "": it is the last one. */
int hf__api_list_end(hf__api_list *list, const char *next_cursor, hf__buf *out);

/* Is q (may be "") part of one of the texts? Letters of ASCII are alike in both cases. */
bool hf__text_fits(const char *q, const char *const *texts, size_t count);

/* key, key_text, space and pair: JavaScript cannot hold 64 bits in a number, so each such number comes as text too. */
void hf__put_key(hf__json *json, hf_space space, int64_t key);
void hf__put_big(hf__json *json, const char *name, const char *text_name, int64_t number);
void hf__put_when(hf__json *json, const char *name, int64_t unix_ms); /* 0: null */
void hf__put_ms(hf__json *json, const char *name, int64_t ms);        /* negative: null */
void hf__put_maybe(hf__json *json, const char *name, hf__maybe number);
void hf__put_positive(hf__json *json, const char *name, int64_t number); /* 0: null */
void hf__put_token(hf__json *json, int64_t token); /* and token_text; 0: null */
const char *hf__mode_name(hf_mode mode);

/* A filter by key, as decimal text. */
bool hf__key_fits(const hf__exchange *exchange, int64_t key);

/* Rows of shapes. */
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
