#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static void quote(hf__buf *text, const char *value, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)value;

    hf__buf_puts(text, "\"");
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next(bytes, size, &at);
        if (point < 0)
            hf__buf_puts(text, "\\ufffd");
        else if (point == '"' || point == '\\')
            hf__buf_printf(text, "\\%c", (char)point);
        else if (hf__is_unsafe(point))
            hf__buf_printf(text, "\\u%04x", (unsigned)point);
        else
            hf__buf_add(text, bytes + start, at - start);
    }
    hf__buf_puts(text, "\"");
}

static void begin_value(hf__json *json, const char *key)
{
    if (json->needs_comma)
        hf__buf_puts(&json->text, ",");
    json->needs_comma = true;
    if (key != NULL) {
        quote(&json->text, key, strlen(key));
        hf__buf_puts(&json->text, ":");
    }
}

static void begin_nested(hf__json *json, const char *key, const char *bracket)
{
    begin_value(json, key);
    hf__buf_puts(&json->text, bracket);
    json->needs_comma = false;
}

static void end_nested(hf__json *json, const char *bracket)
{
    hf__buf_puts(&json->text, bracket);
    json->needs_comma = true;
}

void hf__json_begin_object(hf__json *json, const char *key)
{
    begin_nested(json, key, "{");
}

void hf__json_end_object(hf__json *json)
{
    end_nested(json, "}");
}

void hf__json_begin_array(hf__json *json, const char *key)
{
    begin_nested(json, key, "[");
}

void hf__json_end_array(hf__json *json)
{
    end_nested(json, "]");
}

void hf__json_put_bytes(hf__json *json, const char *key, const char *value, size_t size)
{
    begin_value(json, key);
    quote(&json->text, value, size);
}

void hf__json_put_string(hf__json *json, const char *key, const char *value)
{
    hf__json_put_bytes(json, key, value, strlen(value));
}

void hf__json_put_text(hf__json *json, const char *key, const char *value)
{
    if (value == NULL || value[0] == '\0')
        hf__json_put_null(json, key);
    else
        hf__json_put_string(json, key, value);
}

void hf__json_put_integer(hf__json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    hf__buf_printf(&json->text, "%" PRId64, value);
}

void hf__json_put_big(hf__json *json, const char *key, int64_t value)
{
    char name[64], text[24];

    (void)snprintf(name, sizeof name, "%s_text", key);
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    hf__json_put_integer(json, key, value);
    hf__json_put_string(json, name, text);
}

/*
 * Writes the fewest digits that read back as the same number. The decimal point is '.' because no
 * program of Holdfast sets LC_NUMERIC.
 */
void hf__json_put_real(hf__json *json, const char *key, double value)
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

void hf__json_put_boolean(hf__json *json, const char *key, bool value)
{
    begin_value(json, key);
    hf__buf_puts(&json->text, value ? "true" : "false");
}

void hf__json_put_raw(hf__json *json, const char *key, const char *value)
{
    begin_value(json, key);
    hf__buf_puts(&json->text, value);
}

void hf__json_put_null(hf__json *json, const char *key)
{
    begin_value(json, key);
    hf__buf_puts(&json->text, "null");
}
