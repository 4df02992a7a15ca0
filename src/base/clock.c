#include "base/clock.h"

#include <limits.h>

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t read_ms(clockid_t clock)
{
    return read_ns(clock) / 1000000;
}

int64_t hf__now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t hf__wall_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

int64_t hf__now_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

int64_t hf__boot_ms(void)
{
    return read_ms(CLOCK_BOOTTIME);
}

int64_t hf__wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

int64_t hf__deadline(int64_t wait_ms)
{
    int64_t now = hf__now_ms();

    if (wait_ms < 0 || wait_ms >= HF__FOREVER - now)
        return HF__FOREVER;
    return now + wait_ms + (wait_ms > 0); /* now is rounded down: do not end early */
}

int hf__left_ms(int64_t deadline)
{
    if (deadline == HF__FOREVER)
        return -1;

    int64_t now = hf__now_ms();
    if (deadline <= now)
        return 0;
    return deadline - now > INT_MAX ? INT_MAX : (int)(deadline - now);
}

struct timespec hf__timespec(int64_t deadline)
{
    return (struct timespec){
        .tv_sec = (time_t)(deadline / 1000),
        .tv_nsec = (long)(deadline % 1000) * 1000000,
    };
}

/* The finaliser of splitmix64: every input bit affects every output bit. */
static uint64_t mix(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

int hf__jitter_ms(int low, int high)
{
    struct timespec now;

    if (high <= low)
        return low;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t clock = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    uint64_t range = (uint64_t)((int64_t)high - low);
    return (int)(low + (int64_t)(mix(clock ^ mix((uintptr_t)&now)) % range));
}
