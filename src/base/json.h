/*
 * Writes one JSON document on one line. Zero-initialise the hf__json, and free its text with
 * hf__buf_free; text.broken says at the end whether memory ran out. In these functions key is the
 * member's name, or NULL inside an array and for the outermost value.
 */
#ifndef HF_BASE_JSON_H
#define HF_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct hf__json {
    hf__buf text; /* the document so far */
    bool needs_comma;
} hf__json;

/* Each begin needs its end. The nesting is not checked. */
void hf__json_begin_object(hf__json *json, const char *key);
void hf__json_end_object(hf__json *json);
void hf__json_begin_array(hf__json *json, const char *key);
void hf__json_end_array(hf__json *json);

/* Bytes that are not UTF-8 become U+FFFD. */
void hf__json_put_string(hf__json *json, const char *key, const char *value);

/* The same for text that may have NUL in it. */
void hf__json_put_bytes(hf__json *json, const char *key, const char *value, size_t size);

/* The same, but NULL and "" become null. */
void hf__json_put_text(hf__json *json, const char *key, const char *value);

void hf__json_put_integer(hf__json *json, const char *key, int64_t value);

/* Of 64 bits: also as text, in KEY_text, for programs whose numbers are doubles. */
void hf__json_put_big(hf__json *json, const char *key, int64_t value);

/* value must be finite. It is written with as many digits as it needs to be read back exactly. */
void hf__json_put_real(hf__json *json, const char *key, double value);

void hf__json_put_boolean(hf__json *json, const char *key, bool value);

/* value is JSON already, and is copied unchecked. */
void hf__json_put_raw(hf__json *json, const char *key, const char *value);

void hf__json_put_null(hf__json *json, const char *key);

#endif
