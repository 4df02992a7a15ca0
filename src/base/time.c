#include "base/time.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define FRACTION_SCALE INT64_C(1000000000)

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"", 1000},     {"ms", 1},      {"s", 1000},     {"m", 60000},
    {"min", 60000}, {"h", 3600000}, {"d", 86400000},
};

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(name, units[i].name) == 0)
            return &units[i];
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

struct number {
    int64_t whole;    /* stops growing beyond HF__DURATION_MAX_MS */
    int64_t fraction; /* in units of 1 / FRACTION_SCALE */
    bool positive;
};

/* By hand, because strtod takes its decimal point from the locale. Returns NULL without a digit. */
static const char *scan_number(const char *text, struct number *number)
{
    int digits = 0;
    int64_t scale = FRACTION_SCALE;

    for (; is_digit(*text); text++, digits++) {
        if (number->whole <= HF__DURATION_MAX_MS)
            number->whole = number->whole * 10 + (*text - '0');
        number->positive |= *text != '0';
    }
    if (*text == '.') {
        for (text++; is_digit(*text); text++, digits++) {
            scale /= 10;
            number->fraction += (*text - '0') * scale;
            number->positive |= *text != '0';
        }
    }
    return digits > 0 ? text : NULL;
}

static hf_status refuse(hf_error *err, const char *text, const char *why)
{
    char shown[64];
    hf_status status = hf__fail(err, HF_INVALID, "%s: '%s'", why,
                                hf__show(shown, sizeof shown, text, strlen(text)));
    hf__hint(err, "write it as 1.5 (seconds), 250ms, 30s, 5m, 1h or 2d; ten years at most");
    return status;
}

hf_status hf__parse_duration(const char *text, int64_t *ms, hf_error *err)
{
    struct number number = {0};

    if (text[0] == '-')
        return refuse(err, text, "a time cannot be negative");

    const char *suffix = scan_number(text, &number);
    const struct unit *unit = suffix != NULL ? find_unit(suffix) : NULL;
    if (unit == NULL)
        return refuse(err, text, "not a time");
    if (number.whole > HF__DURATION_MAX_MS / unit->ms)
        return refuse(err, text, "a time beyond ten years");

    /* The fraction rounds to the nearest millisecond. */
    int64_t part = (number.fraction / 10 * unit->ms + FRACTION_SCALE / 20) / (FRACTION_SCALE / 10);
    int64_t total = number.whole * unit->ms + part;
    if (total > HF__DURATION_MAX_MS)
        return refuse(err, text, "a time beyond ten years");
    *ms = total == 0 && number.positive ? 1 : total;
    return HF_OK;
}

static const char *show_two(char *out, size_t out_size, int64_t large, const char *large_unit,
                            int64_t small, const char *small_unit)
{
    if (small == 0)
        snprintf(out, out_size, "%" PRId64 " %s", large, large_unit);
    else
        snprintf(out, out_size, "%" PRId64 " %s %" PRId64 " %s", large, large_unit, small,
                 small_unit);
    return out;
}

const char *hf__show_duration(char *out, size_t out_size, int64_t ms)
{
    int64_t seconds = ms / 1000;
    int64_t minutes = seconds / 60;
    int64_t hours = minutes / 60;

    if (ms < 1000)
        return show_two(out, out_size, ms < 0 ? 0 : ms, "ms", 0, "");
    if (seconds < 60)
        return show_two(out, out_size, seconds, "s", 0, "");
    if (minutes < 60)
        return show_two(out, out_size, minutes, "min", 0, "");
    if (hours < 24)
        return show_two(out, out_size, hours, "h", minutes % 60, "min");
    return show_two(out, out_size, hours / 24, "d", hours % 24, "h");
}
