#ifndef HF_BASE_JSON_READ_H
#define HF_BASE_JSON_READ_H

#include "base/text.h"

/*
 * Reads JSON in place: values are slices of the text, checked by the grammar of RFC 8259 (UTF-8
 * included) and never copied. Depth is bounded; no recursion, no allocation.
 */

typedef enum hf__json_kind {
    HF__JSON_NULL,
    HF__JSON_BOOLEAN,
    HF__JSON_NUMBER,
    HF__JSON_STRING, /* the slice has no quotes; escapes are still in it */
    HF__JSON_OBJECT,
    HF__JSON_ARRAY,
} hf__json_kind;

typedef struct hf__json_value {
    hf__json_kind kind;
    hf__slice text; /* of an object or array with its brackets */
    bool escaped;   /* a string with backslashes in it */
} hf__json_value;

/*
 * One value and nothing behind it but space. HF_BAD_DATA says what is wrong at which byte, from 1.
 */
HF_MUST_CHECK hf_status hf__json_parse(const char *text, size_t size, hf__json_value *value,
                                       hf_error *err);

/* Over the members of an object or the items of an array that hf__json_parse has checked. */
typedef struct hf__json_walk {
    const char *at, *end;
    bool is_object;
} hf__json_walk;

void hf__json_walk_begin(hf__json_walk *walk, const hf__json_value *value);
/* False at the end. key is NULL-text in an array; a key with escapes is given as it stands. */
bool hf__json_walk_next(hf__json_walk *walk, hf__slice *key, hf__json_value *value);

/* A member of an object; false: not there. Of a repeated key the last counts, as everywhere. */
bool hf__json_get(const hf__json_value *object, const char *key, hf__json_value *value);

/* A whole number, written as a number or (where strings is true) as a string of digits. */
bool hf__json_integer(const hf__json_value *value, bool strings, int64_t low, int64_t high,
                      int64_t *number);

/* Reads JSON in one pass that also checks it: for what is too much to look at twice. */

typedef struct hf__json_cursor {
    const char *at;
    const char *end;
    const char *fault; /* what is wrong at `at`; NULL: nothing yet */
    bool fresh;        /* just behind an opening bracket */
} hf__json_cursor;

/* Each of them: false at a fault. */
bool hf__json_take(hf__json_cursor *cursor, hf__json_value *value); /* the value that begins here */
bool hf__json_enter(hf__json_cursor *cursor, char bracket);         /* { or [ */

/* To the next member's value, or the next item; false also behind the closing bracket. */
bool hf__json_member(hf__json_cursor *cursor, hf__slice *key);
bool hf__json_item(hf__json_cursor *cursor);

/* Behind the last value: nothing but space may follow. */
bool hf__json_finish(hf__json_cursor *cursor);

/* HF_BAD_DATA about the fault in text, which began at start. */
hf_status hf__json_refuse(const hf__json_cursor *cursor, const char *start, hf_error *err);

/* The first byte that is a quote, a backslash, a control character or beyond ASCII; end: none. */
const char *hf__json_plain_end(const char *at, const char *end);

hf__json_kind hf__json_kind_of(char first);

#endif
