/*
 * The hashes that make a key of a label. Other programs compute the same keys with functions of
 * their own, so that no value may ever change: tests/vectors keeps them. All of it is pure, and
 * any thread may call it. hf_key_derive and its like, which are public, are in keys.c.
 */
#ifndef HF_KEYS_KEYS_H
#define HF_KEYS_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

uint64_t hf__fnv1a64(const unsigned char *bytes, size_t size);
uint32_t hf__fnv1a32(const unsigned char *bytes, size_t size);

/*
 * FNV-1a over UTF-16 code units, as JavaScript's charCodeAt gives them. Returns HF_INVALID, and
 * leaves *hash alone, when the bytes are not UTF-8.
 */
HF_MUST_CHECK hf_status hf__fnv1a32_js(const unsigned char *bytes, size_t size, uint32_t *hash,
                                       hf_error *err);

/* PostgreSQL's hash_any and hash_any_extended (seed 0), as a little-endian server computes them. */
uint32_t hf__pg_hash(const unsigned char *bytes, size_t size);
uint64_t hf__pg_hash_extended(const unsigned char *bytes, size_t size);

/* Java's String.hashCode. Fails as hf__fnv1a32_js. */
HF_MUST_CHECK hf_status hf__java_hash(const unsigned char *bytes, size_t size, uint32_t *hash,
                                      hf_error *err);

/* CRC-32 as zlib has it. */
uint32_t hf__crc32(const unsigned char *bytes, size_t size);

/* The first eight bytes of a digest: SHA-256 and MD5 big endian, SHA-1 little endian. */
uint64_t hf__sha256_head(const unsigned char *bytes, size_t size);
uint64_t hf__md5_head(const unsigned char *bytes, size_t size);
uint64_t hf__sha1_head_le(const unsigned char *bytes, size_t size);

/*
 * The well-known program that locks this key in a database of this name, or "". A guess, since
 * anybody may use the number. The text is a constant.
 */
const char *hf__well_known(hf_space space, int64_t key, const char *database);

#endif
