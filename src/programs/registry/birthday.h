/*
 * How likely it is that two labels get the same key, if hashes are uniform. Labels that somebody
 * chose in order to collide are another matter.
 */
#ifndef HF_PROGRAMS_REGISTRY_BIRTHDAY_H
#define HF_PROGRAMS_REGISTRY_BIRTHDAY_H

#include <stdint.h>

/*
 * What shares a space of 2^64 keys. Keys of 32 bits are sign-extended, so all 32-bit derivations
 * and the small fixed ids share one range of 2^32 in it. A class of the two-int space is such a
 * range alone.
 */
struct hf__crowd {
    uint64_t fixed;       /* distinct keys that are simply there, anywhere */
    uint64_t fixed_small; /* of these, in the range of 32 bits */
    uint64_t labels32;
    uint64_t labels64;
};

/*
 * The probability that any key is taken twice: 1 - prod(1 - (taken + i) / N) over both sizes, to
 * about 1e-15 of its value. Exactly 0 and exactly 1 only when it cannot and when it must happen.
 */
double hf__crowd_probability(const struct hf__crowd *crowd);

/*
 * The fewest labels for which it reaches p (above 0, below 1), beside the same fixed keys and with
 * 32 and 64 bits in the same proportion; a crowd without labels grows by 64-bit ones.
 */
uint64_t hf__crowd_size_at(const struct hf__crowd *crowd, double p);

/* The probability for labels of one size beside so many keys that are taken. bits is 32 or 64. */
double hf__birthday_probability(unsigned bits, uint64_t taken, uint64_t labels);

#endif
