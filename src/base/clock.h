#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The deadline that never comes. */
#define HF__FOREVER INT64_MAX

int64_t hf__now_ms(void);  /* on the monotonic clock */
int64_t hf__wall_ms(void); /* Unix time, which may jump */
int64_t hf__now_ns(void);  /* like hf__now_ms() */
int64_t hf__wall_ns(void);
int64_t hf__boot_ms(void); /* like hf__now_ms(), but goes on while the machine is suspended */

/*
 * When a wait of wait_ms ends, on the monotonic clock. HF__FOREVER when wait_ms is negative or too
 * large to add.
 */
int64_t hf__deadline(int64_t wait_ms);

/* Milliseconds left, as poll() takes them: from 0 to INT_MAX, or -1 for HF__FOREVER. */
int hf__left_ms(int64_t deadline);

/* The deadline as pthread_cond_clockwait takes it, with CLOCK_MONOTONIC. */
struct timespec hf__timespec(int64_t deadline);

/*
 * A number from low to high - 1 that spreads the retries of processes and threads, or low when the
 * range is empty. It is mixed from the clock and a stack address, so it can be guessed.
 */
int hf__jitter_ms(int low, int high);

#endif
