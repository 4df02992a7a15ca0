#include "base/when.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

/* The years that RFC 3339 can write. */
#define FIRST_MS INT64_C(-62167219200000)
#define LAST_MS INT64_C(253402300799999)

const char *hf__show_when(char out[HF__WHEN_SIZE], int64_t unix_ms)
{
    struct tm parts;

    if (unix_ms < FIRST_MS)
        unix_ms = FIRST_MS;
    if (unix_ms > LAST_MS)
        unix_ms = LAST_MS;
    int64_t ms = (unix_ms % 1000 + 1000) % 1000;
    time_t seconds = (time_t)((unix_ms - ms) / 1000);
    gmtime_r(&seconds, &parts);
    size_t size = (size_t)snprintf(out, HF__WHEN_SIZE, "%04d", (parts.tm_year + 1900) % 10000);
    size += strftime(out + size, HF__WHEN_SIZE - size, "-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(out + size, HF__WHEN_SIZE - size, ".%03dZ", (int)ms);
    return out;
}

/* ".250" as milliseconds; what is finer is cut. */
static const char *parse_fraction(const char *text, int64_t *ms)
{
    int64_t place = 100;

    *ms = 0;
    if (*text != '.')
        return text;
    size_t digits = strspn(text + 1, "0123456789");
    for (size_t i = 0; i < digits; i++, place /= 10)
        *ms += (text[1 + i] - '0') * place;
    return digits > 0 ? text + 1 + digits : NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "Z", "+02:00" */
static bool parse_offset(const char *text, int64_t *ms)
{
    *ms = 0;
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
        return true;
    if (strlen(text) != strlen("+02:00") || (text[0] != '+' && text[0] != '-') || text[3] != ':' ||
        !is_digit(text[1]) || !is_digit(text[2]) || !is_digit(text[4]) || !is_digit(text[5]))
        return false;
    int hours = (text[1] - '0') * 10 + text[2] - '0';
    int minutes = (text[4] - '0') * 10 + text[5] - '0';
    *ms = (hours * INT64_C(60) + minutes) * (text[0] == '-' ? -60000 : 60000);
    return hours < 24 && minutes < 60;
}

bool hf__parse_when(const char *text, int64_t *unix_ms)
{
    struct tm parts = {0};
    int64_t fraction, offset;

    if (hf__parse_int64(text, "a time", FIRST_MS, LAST_MS, unix_ms, NULL) == HF_OK)
        return true;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == NULL || text[strspn(text, "0123456789-T:.+zZ")] != '\0')
        return false;
    rest = parse_fraction(rest, &fraction);
    if (rest == NULL || !parse_offset(rest, &offset))
        return false;
    *unix_ms = (int64_t)timegm(&parts) * 1000 + fraction - offset;
    return *unix_ms >= FIRST_MS && *unix_ms <= LAST_MS;
}
