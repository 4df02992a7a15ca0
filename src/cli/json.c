#include "cli/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static void quote(hf__buf *text, const char *value)
{
    const unsigned char *bytes = (const unsigned char *)value;
    size_t size = strlen(value);

    hf__buf_puts(text, "\"");
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next(bytes, size, &at);
        if (point < 0)
            hf__buf_puts(text, "\\ufffd");
        else if (point == '"' || point == '\\')
            hf__buf_printf(text, "\\%c", (char)point);
        else if (point < 0x20 || point == 0x7f)
            hf__buf_printf(text, "\\u%04x", (unsigned)point);
        else
            hf__buf_add(text, bytes + start, at - start);
    }
    hf__buf_puts(text, "\"");
}

static void begin_value(struct json *json, const char *key)
{
    if (json->needs_comma)
        hf__buf_puts(&json->text, ",");
    json->needs_comma = true;
    if (key != NULL) {
        quote(&json->text, key);
        hf__buf_puts(&json->text, ":");
    }
}

static void begin_nested(struct json *json, const char *key, const char *bracket)
{
    begin_value(json, key);
    hf__buf_puts(&json->text, bracket);
    json->needs_comma = false;
}

static void end_nested(struct json *json, const char *bracket)
{
    hf__buf_puts(&json->text, bracket);
    json->needs_comma = true;
}

void json_begin_object(struct json *json, const char *key)
{
    begin_nested(json, key, "{");
}

void json_end_object(struct json *json)
{
    end_nested(json, "}");
}

void json_begin_array(struct json *json, const char *key)
{
    begin_nested(json, key, "[");
}

void json_end_array(struct json *json)
{
    end_nested(json, "]");
}

void json_string(struct json *json, const char *key, const char *value)
{
    begin_value(json, key);
    quote(&json->text, value);
}

void json_text(struct json *json, const char *key, const char *value)
{
    if (value == NULL || value[0] == '\0')
        json_null(json, key);
    else
        json_string(json, key, value);
}

void json_integer(struct json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    hf__buf_printf(&json->text, "%" PRId64, value);
}

/* The fewest digits that give the same number when read; no program of ours sets LC_NUMERIC. */
void json_real(struct json *json, const char *key, double value)
{
    char digits[32];

    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    begin_value(json, key);
    hf__buf_puts(&json->text, digits);
}

void json_boolean(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    hf__buf_puts(&json->text, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
    begin_value(json, key);
    hf__buf_puts(&json->text, "null");
}

bool json_finish(struct json *json, FILE *out)
{
    hf__buf_puts(&json->text, "\n");
    bool written = !json->text.broken &&
                   fwrite(json->text.data, 1, json->text.length, out) == json->text.length &&
                   fflush(out) == 0;
    hf__buf_free(&json->text);
    json->needs_comma = false;
    return written;
}
