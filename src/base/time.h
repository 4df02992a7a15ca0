#ifndef HF_BASE_DURATION_H
#define HF_BASE_DURATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The longest time that is taken for meant: ten years. */
#define HF__DURATION_MAX_MS INT64_C(315360000000)

/* "1.5" (seconds), "250ms", "30s", "5m", "1h", "2d"; a non-zero value below 1 ms becomes 1 ms. */
HF_MUST_CHECK hf_status hf__parse_duration(const char *text, int64_t *ms, hf_error *err);

/* For people: "350 ms", "12 s", "12 min", "3 h 20 min", "5 d 2 h". Returns out. */
const char *hf__show_duration(char *out, size_t out_size, int64_t ms);

#endif
