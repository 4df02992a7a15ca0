/* Reads JSON in one pass that also checks it: for what is too much to look at twice. */
#ifndef HF_SOURCE_JSON_CURSOR_H
#define HF_SOURCE_JSON_CURSOR_H

#include "base/json_read.h"

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

/* Reads the value at `at` < end in text that was checked; returns its end. Never beyond end. */
const char *hf__json_read(const char *at, const char *end, hf__json_value *value);

#endif
