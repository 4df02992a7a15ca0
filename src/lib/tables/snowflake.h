#ifndef HF_TABLES_SNOWFLAKE_H
#define HF_TABLES_SNOWFLAKE_H

#include <stdbool.h>
#include <stdint.h>

enum { HF__MACHINE_BITS = 10, HF__SEQUENCE_BITS = 12 };

#define HF__MACHINE_MAX ((1 << HF__MACHINE_BITS) - 1)
#define HF__SEQUENCE_MAX ((1 << HF__SEQUENCE_BITS) - 1)
#define HF__SNOWFLAKE_LAST_MS ((INT64_C(1) << 41) - 1) /* in September 2039 */

/*
 * Makes ids: a zero bit, 41 bits of Unix time in milliseconds, the machine number, a sequence
 * number. It is not safe for threads; callers that share one lock a mutex.
 */
typedef struct hf__snowflake {
    int machine;
    int64_t until_ms; /* the last time at which the machine number is ours; 0: it is not */
    int64_t last_ms;
    int sequence; /* of the last id */
} hf__snowflake;

/*
 * Makes an id that is greater than all earlier ones, whatever the clock does. If the time has
 * passed, or all its sequence numbers are used, the id has the next millisecond. False: the machine
 * number is not ours at that time, or the time needs more than 41 bits.
 */
bool hf__snowflake_next(hf__snowflake *flake, int64_t now_ms, int64_t *id);

/* Sets another machine number, or a longer time for the same one. */
void hf__snowflake_lease(hf__snowflake *flake, int machine, int64_t until_ms);

/* The parts of an id. */
typedef struct hf__snowflake_parts {
    int64_t ms;
    int machine;
    int sequence;
} hf__snowflake_parts;

hf__snowflake_parts hf__snowflake_split(int64_t id);

#endif
