#include "base/time.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define FRACTION_SCALE INT64_C(1000000000)
#define SECOND_US INT64_C(1000000)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- durations ------------------------------------------------------------------------------- */

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

struct number {
    int64_t whole;    /* stops growing beyond HF__DURATION_MAX_MS, so that it cannot overflow */
    int64_t fraction; /* in units of 1 / FRACTION_SCALE */
    bool positive;    /* some digit is not 0 */
};

/*
 * Returns the end of the number, or NULL when there is no digit. Not strtod, which takes its
 * decimal point from the locale.
 */
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

/* ---- moments --------------------------------------------------------------------------------- */

/* Writes exactly `count` digits, with leading zeros. */
static void put_digits(char *out, int number, int count)
{
    for (int i = count - 1; i >= 0; i--, number /= 10)
        out[i] = (char)('0' + number % 10);
}

const char *hf__show_time(char out[HF__TIME_SIZE], int64_t unix_us, int digits)
{
    const size_t second_end = sizeof "9999-12-31T23:59:59" - 1;
    struct tm utc = {0};

    if (unix_us < HF__TIME_FIRST_US)
        unix_us = HF__TIME_FIRST_US;
    if (unix_us > HF__TIME_LAST_US)
        unix_us = HF__TIME_LAST_US;
    int64_t us = (unix_us % SECOND_US + SECOND_US) % SECOND_US;
    time_t seconds = (time_t)((unix_us - us) / SECOND_US);
    gmtime_r(&seconds, &utc);
    (void)strftime(out, HF__TIME_SIZE, "0000-%m-%dT%H:%M:%S", &utc);
    put_digits(out, utc.tm_year + 1900, 4); /* %Y does not pad with zeros */
    out[second_end] = '.';
    put_digits(out + second_end + 1, (int)us, 6);
    memcpy(out + (digits > 0 ? second_end + 1 + (size_t)digits : second_end), "Z", 2);
    return out;
}

/* Reads exactly `count` digits and moves *at behind them. */
static bool take_number(const char **at, const char *end, int count, int *number)
{
    *number = 0;
    if (end - *at < count)
        return false;
    for (int i = 0; i < count; i++) {
        int digit = *(*at)++ - '0';
        if (digit < 0 || digit > 9)
            return false;
        *number = *number * 10 + digit;
    }
    return true;
}

/* Moves *at behind one byte, which must be one of the two. */
static bool take_byte(const char **at, const char *end, char first, char second)
{
    if (*at == end || (**at != first && **at != second))
        return false;
    (*at)++;
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

/* Days since 1970-01-01. Years begin in March here, so that the leap day is the last day. */
static int64_t days_from_epoch(int year, int month, int day)
{
    int64_t march_year = month > 2 ? year : year - 1;
    int64_t month_from_march = month > 2 ? month - 3 : month + 9;

    return march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400 +
           (month_from_march * 153 + 2) / 5 + day - 1 - 719468;
}

static bool take_date(const char **at, const char *end, int64_t *days)
{
    int year = 0;
    int month = 0;
    int day = 0;

    if (!take_number(at, end, 4, &year) || !take_byte(at, end, '-', '-') ||
        !take_number(at, end, 2, &month) || !take_byte(at, end, '-', '-') ||
        !take_number(at, end, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    *days = days_from_epoch(year, month, day);
    return true;
}

/* Unix time has no leap seconds: 23:59:60 counts as the first second of the next minute. */
static bool take_clock(const char **at, const char *end, int64_t *seconds)
{
    int hour = 0;
    int minute = 0;
    int second = 0;

    if (!take_number(at, end, 2, &hour) || !take_byte(at, end, ':', ':') ||
        !take_number(at, end, 2, &minute) || !take_byte(at, end, ':', ':') ||
        !take_number(at, end, 2, &second))
        return false;
    *seconds = (int64_t)hour * 3600 + minute * 60 + second;
    return hour <= 23 && minute <= 59 && second <= 60;
}

/* Digits beyond the sixth are read and dropped. */
static bool take_fraction(const char **at, const char *end, int64_t *us)
{
    int64_t unit = 100000;
    int digit = 0;

    *us = 0;
    if (!take_byte(at, end, '.', ','))
        return true;
    if (!take_number(at, end, 1, &digit))
        return false;
    do {
        *us += digit * unit;
        unit /= 10;
    } while (*at < end && is_digit(**at) && take_number(at, end, 1, &digit));
    return true;
}

/* Z, or +hh:mm and -hh:mm. */
static bool take_offset(const char **at, const char *end, int64_t *seconds)
{
    int hours = 0;
    int minutes = 0;

    *seconds = 0;
    if (take_byte(at, end, 'Z', 'z'))
        return true;
    bool is_west = *at < end && **at == '-';
    if (!take_byte(at, end, '+', '-') || !take_number(at, end, 2, &hours) ||
        !take_byte(at, end, ':', ':') || !take_number(at, end, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *seconds = (is_west ? -1 : 1) * ((int64_t)hours * 3600 + minutes * 60);
    return true;
}

bool hf__parse_time(hf__slice text, int64_t *unix_us)
{
    const char *at = text.text;
    const char *end = at + text.size;
    int64_t days = 0;
    int64_t seconds = 0;
    int64_t us = 0;
    int64_t offset = 0;

    if (!take_date(&at, end, &days) ||
        !(take_byte(&at, end, 'T', 't') || take_byte(&at, end, ' ', ' ')) ||
        !take_clock(&at, end, &seconds) || !take_fraction(&at, end, &us) ||
        !take_offset(&at, end, &offset) || at != end)
        return false;
    int64_t read = (days * 86400 + seconds - offset) * SECOND_US + us;
    if (read < HF__TIME_FIRST_US || read > HF__TIME_LAST_US) /* moved out by its offset */
        return false;
    *unix_us = read;
    return true;
}
