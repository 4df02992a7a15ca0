#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define HF__FOREVER INT64_MAX

int64_t hf__now_ms(void);  /* monotonic */
int64_t hf__wall_ms(void); /* Unix time */

/* Monotonic deadline for a wait of wait_ms; negative means HF__FOREVER, overflow too. */
int64_t hf__deadline(int64_t wait_ms);

/*
 * Milliseconds left, never negative, capped at INT_MAX so that it fits poll(); -1 for HF__FOREVER.
 */
int hf__left_ms(int64_t deadline);

/* A monotonic deadline as the timespec of pthread_cond_clockwait. */
struct timespec hf__timespec(int64_t deadline);

/* [low, high), from a per-call mixed clock and address: jitter, not secrecy. */
int hf__jitter_ms(int low, int high);

#endif
