#include "programs/serve/query.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"

bool hf__refuse(hf__problem *problem, int status, const char *format, ...)
{
    va_list args;

    problem->status = status;
    va_start(args, format);
    (void)vsnprintf(problem->detail, sizeof problem->detail, format, args);
    va_end(args);
    return false;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that "%XX" stands for, or -1. */
static int escaped_byte(const char *text)
{
    int high = hex_digit(text[1]);
    int low = high < 0 ? -1 : hex_digit(text[2]);

    return low < 0 ? -1 : high * 16 + low;
}

bool hf__percent_decode(char *text, bool plus_is_space)
{
    char *out = text;

    for (const char *in = text; *in != '\0'; in++) {
        int byte = (unsigned char)*in;
        if (byte == '%') {
            byte = escaped_byte(in);
            in += 2;
        } else if (byte == '+' && plus_is_space) {
            byte = ' ';
        }
        if (byte < 0x20 || byte == 0x7f) /* a wrong escape is -1 */
            return false;
        *out++ = (char)byte;
    }
    *out = '\0';
    return hf__utf8_valid(text, (size_t)(out - text));
}

static bool add_pair(hf__query *query, char *pair, hf__problem *problem)
{
    char *value = strchr(pair, '=');

    if (pair[0] == '\0')
        return true;
    if (query->count == HF__QUERY_MAX)
        return hf__refuse(problem, 400, "more than %d parameters", HF__QUERY_MAX);
    if (value != NULL)
        *value++ = '\0';
    if (!hf__percent_decode(pair, true) || (value != NULL && !hf__percent_decode(value, true)))
        return hf__refuse(problem, 400,
                          "a parameter is not percent-encoded UTF-8 without control characters");
    if (hf__query_find(query, pair) != NULL)
        return hf__refuse(problem, 400, "a parameter is given twice");
    query->pairs[query->count].name = pair;
    query->pairs[query->count++].value = value != NULL ? value : pair + strlen(pair);
    return true;
}

bool hf__query_parse(const char *text, size_t size, hf__query *query, hf__problem *problem)
{
    char *rest = NULL;

    *query = (hf__query){0};
    if (memchr(text, '\0', size) != NULL)
        return hf__refuse(problem, 400, "a NUL byte stands between the parameters");
    query->memory = strndup(text, size);
    if (query->memory == NULL)
        return hf__refuse(problem, 500, "out of memory");
    for (char *pair = query->memory; pair != NULL; pair = rest) {
        rest = strchr(pair, '&');
        if (rest != NULL)
            *rest++ = '\0';
        if (!add_pair(query, pair, problem))
            return false;
    }
    return true;
}

const char *hf__query_find(const hf__query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++)
        if (strcmp(query->pairs[i].name, name) == 0)
            return query->pairs[i].value;
    return NULL;
}

bool hf__query_time(const char *text, int64_t *unix_ms)
{
    int64_t us = 0;

    if (hf__parse_int64(text, "a time", HF__TIME_FIRST_US / 1000, HF__TIME_LAST_US / 1000, unix_ms,
                        NULL) == HF_OK)
        return true;
    if (!hf__parse_time((hf__slice){text, strlen(text)}, &us))
        return false;
    *unix_ms = (us - (us % 1000 + 1000) % 1000) / 1000; /* downwards, also before 1970 */
    return true;
}

void hf__query_free(hf__query *query)
{
    free(query->memory);
    *query = (hf__query){0};
}
