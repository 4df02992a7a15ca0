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

/* Is the slice exactly this text? False for a slice whose text is NULL. */
bool hf__slice_is(hf__slice slice, const char *text);

/* Has it a control character, such as no label may have? */
bool hf__has_control(const void *text, size_t size);

/*
 * Writes a label or other text so that it is safe on a terminal: control characters, backslashes
 * and invalid UTF-8 become escapes (\n, \x07, \xff). Text that does not fit is cut between
 * characters and ends with "…". Returns out.
 */
const char *hf__show(char *out, size_t out_size, const void *label, size_t label_size);

/* Is all of it UTF-8, without overlong forms and surrogates? */
bool hf__utf8_valid(const void *bytes, size_t size);

/*
 * Decodes the code point at *at, which must be below size, and moves *at behind it. Where the bytes
 * are invalid it returns -1 and moves by one byte.
 */
int32_t hf__utf8_next(const unsigned char *bytes, size_t size, size_t *at);

/*
 * Control characters, invalid bytes (-1), and what moves or hides text: line separators, direction
 * overrides.
 */
bool hf__is_unsafe(int32_t point);

/* Writes a valid code point as UTF-8, without a NUL, and returns its size in bytes. */
size_t hf__utf8_write(char out[4], uint32_t point);

/*
 * Reads a decimal number from low to high. HF_INVALID, with a hint about the range, for anything
 * else, also for spaces around it. `what` names the thing in the message.
 */
HF_MUST_CHECK hf_status hf__parse_int64(const char *text, const char *what, int64_t low,
                                        int64_t high, int64_t *value, hf_error *err);

#endif
