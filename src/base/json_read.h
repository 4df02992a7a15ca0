#ifndef HF_BASE_JSON_READ_H
#define HF_BASE_JSON_READ_H

#include "base/text.h"

/*
 * Reads JSON in place. Values are slices of the text, which must outlive them. The text is checked
 * against the grammar of RFC 8259, UTF-8 included. Depth is bounded, and nothing is allocated.
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
    hf__slice text; /* an object or array includes its brackets */
    bool escaped;   /* it is a string with backslashes in it */
} hf__json_value;

/*
 * Checks text that holds one value, with nothing but space around it. HF_BAD_DATA says what is
 * wrong and at which byte, counted from 1.
 */
HF_MUST_CHECK hf_status hf__json_parse(const char *text, size_t size, hf__json_value *value,
                                       hf_error *err);

/* Visits the members of an object, or the items of an array, that hf__json_parse has checked. */
typedef struct hf__json_walk {
    const char *at, *end;
    bool is_object;
} hf__json_walk;

/* A value that is neither an object nor an array has nothing to visit. */
void hf__json_walk_begin(hf__json_walk *walk, const hf__json_value *value);

/*
 * Returns false at the end. *key is the member's name with its escapes still in it; its text is
 * NULL in an array. key may be NULL.
 */
bool hf__json_walk_next(hf__json_walk *walk, hf__slice *key, hf__json_value *value);

/*
 * Finds a member of an object. Of a repeated key the last one counts. Returns false when there is
 * no such member, or `object` is of another kind.
 */
bool hf__json_get(const hf__json_value *object, const char *key, hf__json_value *value);

/*
 * Reads a whole number from low to high, written as a number or, when `strings` is true, also as a
 * string of digits. Returns false, and leaves *number alone, for anything else.
 */
bool hf__json_integer(const hf__json_value *value, bool strings, int64_t low, int64_t high,
                      int64_t *number);

/*
 * Reads JSON and checks it in one pass, for text that is too large to look at twice. Start with
 * .at and .end set and the rest zero.
 */

typedef struct hf__json_cursor {
    const char *at;
    const char *end;
    const char *fault; /* what is wrong at `at`; NULL: nothing yet */
    bool fresh;        /* `at` is just behind an opening bracket */
} hf__json_cursor;

/* Those that return bool return false at a fault, and set it. */

/* Reads the whole value that begins at `at`, and moves behind it. */
bool hf__json_take(hf__json_cursor *cursor, hf__json_value *value);

/* Skips space and the opening bracket, which must be the given one: { or [. */
bool hf__json_enter(hf__json_cursor *cursor, char bracket);

/*
 * Move to the next member's value, or to the next item. They return false also at the end of the
 * object or array, when they have moved behind the closing bracket; fault is NULL then.
 */
bool hf__json_member(hf__json_cursor *cursor, hf__slice *key);
bool hf__json_item(hf__json_cursor *cursor);

/* Call it behind the last value, where nothing but space may follow. */
bool hf__json_finish(hf__json_cursor *cursor);

/* Returns HF_BAD_DATA with an error about the cursor's fault. The text began at start. */
hf_status hf__json_refuse(const hf__json_cursor *cursor, const char *start, hf_error *err);

/*
 * Finds the first byte that is a quote, a backslash, a control character or not ASCII. Returns end
 * when there is none.
 */
const char *hf__json_plain_end(const char *at, const char *end);

/* The kind of a valid value, from its first byte. */
hf__json_kind hf__json_kind_of(char first);

#endif
