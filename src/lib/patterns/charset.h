/*
 * Sets of characters as sorted ranges. The alphabet has every code point except the surrogates, and
 * one more character that stands for any byte that is not UTF-8: expressions cannot tell such bytes
 * apart.
 */
#ifndef HF_PATTERNS_CHARSET_H
#define HF_PATTERNS_CHARSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HF__CHARACTER_MAX = 0x10FFFF,
    HF__STRAY_BYTE = 0x110000, /* any byte that is not UTF-8 */
};

#define HF__NOWHERE UINT32_MAX /* no character, no state */

/* Both ends belong to it. */
typedef struct hf__range {
    uint32_t low;
    uint32_t high;
} hf__range;

/* Zero-initialise it. After a failed allocation it is marked broken and ignores further calls. */
typedef struct hf__charset {
    hf__range *ranges;
    size_t count;
    size_t capacity;
    bool broken;
} hf__charset;

void hf__charset_add(hf__charset *set, uint32_t low, uint32_t high);
void hf__charset_add_ranges(hf__charset *set, const hf__range *ranges, size_t count);
void hf__charset_tidy(hf__charset *set);   /* sorted, merged, without surrogates */
void hf__charset_negate(hf__charset *set); /* the set must be tidy, and stays so */
void hf__charset_clear(hf__charset *set);  /* keeps the memory */
void hf__charset_free(hf__charset *set);

bool hf__ranges_have(const hf__range *ranges, size_t count, uint32_t character);

/* The plainest character that is in both, or HF__NOWHERE. */
uint32_t hf__ranges_common(const hf__range *a, size_t a_count, const hf__range *b, size_t b_count);

/* The whole alphabet, the plainest characters first: digits, lower case, upper case, ... */
enum { HF__PLAINEST_COUNT = 10 };
extern const hf__range hf__plainest_first[HF__PLAINEST_COUNT];

/* Decodes the character at *at, which must be less than size, and moves *at behind it. */
uint32_t hf__character_next(const char *text, size_t size, size_t *at);

/*
 * Writes it as UTF-8, HF__STRAY_BYTE as 0xFF (which joins with no other byte), and returns the
 * size.
 */
size_t hf__character_write(char out[4], uint32_t character);

#endif
