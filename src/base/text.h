#ifndef HF_BASE_TEXT_H
#define HF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A piece of somebody else's text: not NUL-terminated, never freed through the slice. */
typedef struct hf__slice {
    const char *text; /* NULL: there is none */
    size_t size;
} hf__slice;

/* Whether the slice has exactly the bytes of text. */
bool hf__slice_is(hf__slice slice, const char *text);

/*
 * Writes a label as people may see it: control characters, backslashes and invalid UTF-8 as
 * escapes (\n, \x07, \xff), anything beyond the room cut at a character with "…". Returns out.
 */
const char *hf__show(char *out, size_t out_size, const void *label, size_t label_size);

bool hf__utf8_valid(const void *bytes, size_t size);

/* Decodes one code point at *at < size and moves *at behind it; -1 and one byte when invalid. */
int32_t hf__utf8_next(const unsigned char *bytes, size_t size, size_t *at);

/* Writes a code point, which must be a valid one, as UTF-8 and returns its size in bytes. */
size_t hf__utf8_write(char out[4], uint32_t point);

/* Decimal int64, the whole string, no spaces. what names the thing in the message. */
HF_MUST_CHECK hf_status hf__parse_int64(const char *text, const char *what, int64_t low,
                                        int64_t high, int64_t *value, hf_error *err);

#endif
