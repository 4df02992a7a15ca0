/* Writes one JSON document on one line. Keys are NULL inside arrays. */
#ifndef HF_CLI_JSON_H
#define HF_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

struct json {
    hf__buf text;
    bool needs_comma;
};

void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);

/* Bytes that are no UTF-8 become U+FFFD. */
void json_string(struct json *json, const char *key, const char *value);
void json_text(struct json *json, const char *key, const char *value); /* "" becomes null */
void json_integer(struct json *json, const char *key, int64_t value);
void json_real(struct json *json, const char *key,
               double value); /* finite; as many digits as it has */
void json_boolean(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* Writes the document and a newline, then frees it. False when memory or the stream failed. */
bool json_finish(struct json *json, FILE *out);

#endif
