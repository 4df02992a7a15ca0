/*
 * Durations and moments as people write them. The functions keep no state: any thread may call
 * them.
 */
#ifndef HF_BASE_TIME_H
#define HF_BASE_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* Ten years. A longer duration is taken for a mistake. */
#define HF__DURATION_MAX_MS INT64_C(315360000000)

/*
 * Reads "1.5" (seconds), "250ms", "30s", "5m", "1h" or "2d". A duration above zero but below 1 ms
 * becomes 1 ms. HF_INVALID, with a hint about the forms, for anything else.
 */
HF_MUST_CHECK hf_status hf__parse_duration(const char *text, int64_t *ms, hf_error *err);

/*
 * Writes a duration for people: "350 ms", "12 s", "12 min", "3 h 20 min", "5 d 2 h". A negative one
 * is shown as 0. Returns out.
 */
const char *hf__show_duration(char *out, size_t out_size, int64_t ms);

/* The years that RFC 3339 can write, 0000 to 9999, as microseconds of Unix time. */
#define HF__TIME_FIRST_US INT64_C(-62167219200000000)
#define HF__TIME_LAST_US INT64_C(253402300799999999)

enum { HF__TIME_SIZE = sizeof "9999-12-31T23:59:59.999999Z" };

/*
 * Writes a moment as RFC 3339 in UTC, with 0 to 6 digits of the fraction: three give
 * "2024-06-01T12:00:00.250Z". The rest of the fraction is cut off. A moment outside those years
 * becomes the nearest one inside. Returns out.
 */
const char *hf__show_time(char out[HF__TIME_SIZE], int64_t unix_us, int digits);

/*
 * Reads RFC 3339: "2024-06-01T12:00:00.25Z", or with an offset such as "+02:00" instead of Z. T and
 * Z may be lower case, a space may replace the T, and a comma the decimal point. Digits below a
 * microsecond are cut off. A leap second counts as the first second of the next minute. Returns
 * false, and leaves *unix_us alone, for anything else, for dates that do not exist, and for the
 * year 0000.
 */
bool hf__parse_time(hf__slice text, int64_t *unix_us);

/* Milliseconds as microseconds. A result that does not fit becomes INT64_MAX or INT64_MIN. */
static inline int64_t hf__us_from_ms(int64_t ms)
{
    return ms > INT64_MAX / 1000 ? INT64_MAX : ms < INT64_MIN / 1000 ? INT64_MIN : ms * 1000;
}

#endif
