/* Durations and moments as people write them. Pure: every call works on its arguments alone. */
#ifndef HF_BASE_TIME_H
#define HF_BASE_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* A longer duration is taken for a mistake: ten years. */
#define HF__DURATION_MAX_MS INT64_C(315360000000)

/*
 * Reads "1.5" (seconds), "250ms", "30s", "5m", "1h" or "2d". A duration above zero but below 1 ms
 * becomes 1 ms. HF_INVALID, with a hint about the forms, for anything else.
 */
HF_MUST_CHECK hf_status hf__parse_duration(const char *text, int64_t *ms, hf_error *err);

/* For people: "350 ms", "12 s", "12 min", "3 h 20 min", "5 d 2 h". Returns out. */
const char *hf__show_duration(char *out, size_t out_size, int64_t ms);

/* The years that RFC 3339 can write, 0000 to 9999, as microseconds of Unix time. */
#define HF__TIME_FIRST_US INT64_C(-62167219200000000)
#define HF__TIME_LAST_US INT64_C(253402300799999999)

enum { HF__TIME_SIZE = sizeof "9999-12-31T23:59:59.999999Z" };

/*
 * Writes a moment as RFC 3339 in UTC: "2024-06-01T12:00:00.250Z" with three digits behind the
 * second, of 0 to 6. Finer parts are cut, and a moment outside those years becomes the nearest
 * inside. Returns out.
 */
const char *hf__show_time(char out[HF__TIME_SIZE], int64_t unix_us, int digits);

/*
 * Reads RFC 3339: "2024-06-01T12:00:00.25Z", or an offset such as "+02:00" instead of Z. A space
 * may stand for the T and a comma for the point, and letters may be small. Finer parts than a
 * microsecond are cut; a leap second is the first second of the next minute. False, and *unix_us
 * untouched, for anything else, for days that no calendar has, and for the year 0000.
 */
bool hf__parse_time(hf__slice text, int64_t *unix_us);

/* Milliseconds as microseconds; what does not fit becomes the nearest that does. */
static inline int64_t hf__us_from_ms(int64_t ms)
{
    return ms > INT64_MAX / 1000 ? INT64_MAX : ms < INT64_MIN / 1000 ? INT64_MIN : ms * 1000;
}

#endif
