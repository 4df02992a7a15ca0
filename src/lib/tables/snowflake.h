#ifndef HF_KEY_SNOWFLAKE_H
#define HF_KEY_SNOWFLAKE_H

#include <stdbool.h>
#include <stdint.h>

enum { HF__MACHINE_BITS = 10, HF__SEQUENCE_BITS = 12 };

#define HF__MACHINE_MAX ((1 << HF__MACHINE_BITS) - 1)
#define HF__SEQUENCE_MAX ((1 << HF__SEQUENCE_BITS) - 1)
#define HF__SNOWFLAKE_LAST_MS ((INT64_C(1) << 41) - 1) /* in September 2039 */

/*
 * Mints ids: a zero bit, 41 bits of Unix time in milliseconds, the machine, a sequence. Whoever shares
 * one guards it with a mutex.
 */
typedef struct hf__snowflake {
    int machine;
    int64_t until_ms; /* the machine number is ours up to and including this time; 0: not at all */
    int64_t last_ms;
    int sequence; /* of the last id */
} hf__snowflake;

/*
 * An id greater than every earlier one, whatever the clock does: a time that has passed or is used up
 * is left for the next millisecond. False when that time is not ours, or needs more than 41 bits.
 */
bool hf__snowflake_next(hf__snowflake *flake, int64_t now_ms, int64_t *id);

/* Another machine number, or a longer time for the same. */
void hf__snowflake_lease(hf__snowflake *flake, int machine, int64_t until_ms);

typedef struct hf__snowflake_parts {
    int64_t ms;
    int machine;
    int sequence;
} hf__snowflake_parts;

hf__snowflake_parts hf__snowflake_split(int64_t id);

#endif
