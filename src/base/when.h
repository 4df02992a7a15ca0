/* Times as RFC 3339 in UTC. */
#ifndef HF_SERVE_WHEN_H
#define HF_SERVE_WHEN_H

#include <stdbool.h>
#include <stdint.h>

enum { HF__WHEN_SIZE = 32 };

/* "2024-06-01T12:00:00.250Z". Returns out. */
const char *hf__show_when(char out[HF__WHEN_SIZE], int64_t unix_ms);

/* The same, an offset instead of Z too, or a number of milliseconds; false: neither. */
bool hf__parse_when(const char *text, int64_t *unix_ms);

#endif
