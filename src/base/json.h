/* Writes one JSON document on one line. Keys are NULL inside arrays. */
#ifndef HF_BASE_JSON_H
#define HF_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct hf__json {
    hf__buf text;
    bool needs_comma;
} hf__json;

void hf__json_begin_object(hf__json *json, const char *key);
void hf__json_end_object(hf__json *json);
void hf__json_begin_array(hf__json *json, const char *key);
void hf__json_end_array(hf__json *json);

/* Bytes that are no UTF-8 become U+FFFD. */
void hf__json_put_string(hf__json *json, const char *key, const char *value);
void hf__json_put_text(hf__json *json, const char *key, const char *value); /* "" becomes null */
void hf__json_put_integer(hf__json *json, const char *key, int64_t value);
void hf__json_put_real(hf__json *json, const char *key,
                       double value); /* finite; as many digits as it has */
void hf__json_put_boolean(hf__json *json, const char *key, bool value);
void hf__json_put_raw(hf__json *json, const char *key, const char *value); /* JSON already */
void hf__json_put_null(hf__json *json, const char *key);

#endif
