#include "programs/registry/birthday.h"

#include <math.h>
#include <stdbool.h>

/* e^-SURE is too small to make a difference when a double subtracts it from 1. */
#define SURE 800.0

enum { FEW = 64, SMALL_ROOM = 1 << 20 };

static double room_of(unsigned bits)
{
    return ldexp(1.0, (int)bits);
}

/* More keys than room: 2^bits < taken + labels, without overflow. */
static bool must_meet(unsigned bits, uint64_t taken, uint64_t labels)
{
    uint64_t last = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;

    if (labels == 0 || taken == 0)
        return labels > 0 && labels - 1 > last;
    return taken - 1 > last || labels > last - (taken - 1);
}

/* log(1 - t/room) summed over t < labels, one by one; all terms have one sign. */
static double sum_each(double room, uint64_t labels)
{
    double sum = 0;

    for (uint64_t t = labels; t-- > 1;)
        sum += log1p(-(double)t / room);
    return sum;
}

/*
 * The same by Euler and Maclaurin for labels/room < 0.04: the integral as a power series, half of
 * the last term, and the first derivative. The next term is below 1e-20 of the sum.
 */
static double sum_at_once(double room, uint64_t labels)
{
    double count = (double)labels;
    double share = count / room;
    double power = share;
    double series = 0;

    for (int k = 2; k <= 16; k++) {
        series += power / (k * (k - 1));
        power *= share;
    }
    return -count * series - log1p(-share) / 2 - share / (12 * (room - count));
}

/* The logarithm of the probability that no two meet. */
static double log_of_none(unsigned bits, uint64_t taken, uint64_t labels)
{
    double count = (double)labels;

    if (must_meet(bits, taken, labels))
        return -INFINITY;
    if (labels == 0)
        return 0;
    /* 1 - (taken + t) / N = (1 - taken / N) (1 - t / (N - taken)): nothing cancels. */
    double all = room_of(bits);
    double room = all - (double)taken;
    double log_of_free = count * log1p(-(double)taken / all);
    if (!(count * (count - 1) / (2 * room) - log_of_free <= SURE)) /* also if it is NaN */
        return -SURE;
    if (labels <= FEW || room < SMALL_ROOM)
        return log_of_free + sum_each(room, labels);
    return log_of_free + sum_at_once(room, labels);
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

double hf__crowd_probability(const struct hf__crowd *crowd)
{
    double none = log_of_none(32, crowd->fixed_small, crowd->labels32) +
                  log_of_none(64, add(crowd->fixed, crowd->labels32), crowd->labels64);
    double any = 0 - expm1(none); /* never -0 */

    return any == 1 && isfinite(none) ? nextafter(1, 0) : any;
}

/* value × part / whole with part <= whole, rounded down. */
static uint64_t share_of(uint64_t value, uint64_t part, uint64_t whole)
{
    __extension__ typedef unsigned __int128 wide;

    return (uint64_t)((wide)value * part / whole);
}

static struct hf__crowd grown_to(const struct hf__crowd *crowd, uint64_t labels)
{
    uint64_t total = add(crowd->labels32, crowd->labels64);
    struct hf__crowd grown = *crowd;

    grown.labels32 = total > 0 ? share_of(labels, crowd->labels32, total) : 0;
    grown.labels64 = labels - grown.labels32;
    return grown;
}

uint64_t hf__crowd_size_at(const struct hf__crowd *crowd, double p)
{
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct hf__crowd grown = grown_to(crowd, middle);
        if (hf__crowd_probability(&grown) >= p)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

double hf__birthday_probability(unsigned bits, uint64_t taken, uint64_t labels)
{
    const struct hf__crowd crowd = {
        .fixed = taken,
        .fixed_small = bits == 32 ? taken : 0,
        .labels32 = bits == 32 ? labels : 0,
        .labels64 = bits == 32 ? 0 : labels,
    };

    return hf__crowd_probability(&crowd);
}
