#include "unit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { MANY = 10000, BUCKETS = 1024 };

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* No two hashes are the same, and no bucket has much more than its share. */
static void spread_well(uint64_t *hashes, size_t count)
{
    size_t low[BUCKETS] = {0};

    for (size_t i = 0; i < count; i++)
        low[hashes[i] % BUCKETS]++;
    for (size_t i = 0; i < BUCKETS; i++)
        assert_in_range(low[i], 0, 5 * (count / BUCKETS + 1));
    qsort(hashes, count, sizeof *hashes, by_value);
    for (size_t i = 1; i < count; i++)
        assert_true(hashes[i - 1] != hashes[i]);
}

static void test_numbers_close_together_are_spread(void **state)
{
    uint64_t hashes[MANY];

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        hashes[i] = hf__hash_int(i);
    spread_well(hashes, MANY);
}

static void test_numbers_that_differ_in_their_high_bits_are_spread(void **state)
{
    uint64_t hashes[MANY];

    (void)state;
    for (uint64_t i = 0; i < MANY; i++)
        hashes[i] = hf__hash_int(i << 50);
    spread_well(hashes, MANY);
    for (uint64_t i = 0; i < MANY; i++)
        hashes[i] = hf__hash_int(i << 32 | 7);
    spread_well(hashes, MANY);
}

static void test_texts_are_spread(void **state)
{
    static const char *const formats[] = {"%zu", "Transfer:account%zu", "%zu:of-a-longer-text"};
    uint64_t hashes[MANY];
    char text[64];

    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        for (size_t i = 0; i < MANY; i++) {
            int size = snprintf(text, sizeof text, formats[f], i);
            hashes[i] = hf__hash_bytes(text, (size_t)size);
        }
        spread_well(hashes, MANY);
    }
}

static void test_only_the_bytes_count(void **state)
{
    char room[64];

    (void)state;
    for (size_t size = 0; size <= 24; size++) {
        const char text[] = "abcdefghijklmnopqrstuvwxyz";
        uint64_t wanted = hf__hash_bytes(text, size);
        for (size_t at = 0; at < 8; at++) {
            memset(room, 'x', sizeof room);
            memcpy(room + at, text, size);
            assert_true(hf__hash_bytes(room + at, size) == wanted);
        }
    }
}

static void test_zeros_at_the_end_count(void **state)
{
    static const char zeros[32];
    uint64_t hashes[33];

    (void)state;
    hashes[0] = hf__hash_bytes(NULL, 0);
    for (size_t size = 1; size <= 32; size++)
        hashes[size] = hf__hash_bytes(zeros, size);
    spread_well(hashes, 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_close_together_are_spread),
        cmocka_unit_test(test_numbers_that_differ_in_their_high_bits_are_spread),
        cmocka_unit_test(test_texts_are_spread),
        cmocka_unit_test(test_only_the_bytes_count),
        cmocka_unit_test(test_zeros_at_the_end_count),
    };
    return RUN(tests);
}
