#include "lib/tables/snowflake.h"

bool hf__snowflake_next(hf__snowflake *flake, int64_t now_ms, int64_t *id)
{
    int64_t ms = now_ms;
    int sequence = 0;
    if (ms <= flake->last_ms) {
        ms = flake->last_ms;
        sequence = flake->sequence + 1;
    }
    if (sequence > HF__SEQUENCE_MAX) {
        ms++;
        sequence = 0;
    }
    if (flake->last_ms == 0 && now_ms <= 0)
        return false;
    if (ms > flake->until_ms || ms > HF__SNOWFLAKE_LAST_MS)
        return false;
    flake->last_ms = ms;
    flake->sequence = sequence;
    *id = ms << (HF__MACHINE_BITS + HF__SEQUENCE_BITS) |
          (int64_t)flake->machine << HF__SEQUENCE_BITS | sequence;
    return true;
}

void hf__snowflake_lease(hf__snowflake *flake, int machine, int64_t until_ms)
{
    /* A smaller machine number in the same millisecond would be a step back. */
    if (machine != flake->machine)
        flake->sequence = HF__SEQUENCE_MAX;
    flake->machine = machine;
    flake->until_ms = until_ms;
}

hf__snowflake_parts hf__snowflake_split(int64_t id)
{
    return (hf__snowflake_parts){
        .ms = id >> (HF__MACHINE_BITS + HF__SEQUENCE_BITS),
        .machine = (int)(id >> HF__SEQUENCE_BITS & HF__MACHINE_MAX),
        .sequence = (int)(id & HF__SEQUENCE_MAX),
    };
}
