#include "programs/ingest/sources/ndjson.h"

static const int64_t last_second = INT64_C(253402300799); /* 9999-12-31T23:59:59Z */

/* `count` digits at *at, which moves behind them. */
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

/* Days from 1970-01-01, counted from March so that a leap day ends its year. */
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

/* A leap second is the first of the next minute, as Unix time has it. */
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

/* Whatever is finer than a microsecond is cut. */
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
    } while (*at < end && **at >= '0' && **at <= '9' && take_number(at, end, 1, &digit));
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

static bool read_rfc3339(hf__slice text, int64_t *unix_us)
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
    *unix_us = (days * 86400 + seconds - offset) * 1000000 + us;
    return true;
}

bool hf__ndjson_time(const hf__json_value *value, int64_t *unix_us)
{
    int64_t seconds = 0;

    if (hf__json_integer(value, true, 0, last_second, &seconds)) {
        *unix_us = seconds * 1000000;
        return true;
    }
    return value->kind == HF__JSON_STRING && read_rfc3339(value->text, unix_us);
}
