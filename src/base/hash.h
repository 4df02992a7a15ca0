#ifndef HF_BASE_HASH_H
#define HF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Hashes for tables in the memory of one process. They are quick and spread well, but are not
 * cryptographic. Their values may differ between versions and machines: never store or send one.
 * Hashes that other processes rely on are elsewhere (lib/keys, lib/postgres, lib/local).
 */

/* Every bit of the value affects the low bits. Different values have different hashes. */
static inline uint64_t hf__hash_int(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x9E3779B97F4A7C15);
    return value ^ value >> 29;
}

/* The hash of size bytes. bytes may be NULL when size is 0. */
static inline uint64_t hf__hash_bytes(const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t hash = hf__hash_int(size);
    uint64_t word;

    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = hf__hash_int(hash ^ word);
    }
    word = 0;
    if (size > 0)
        memcpy(&word, at, size);
    return hf__hash_int(hash ^ word);
}

#endif
