#ifndef HF_KEY_KEY_H
#define HF_KEY_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

uint64_t hf__fnv1a64(const unsigned char *bytes, size_t size);
uint32_t hf__fnv1a32(const unsigned char *bytes, size_t size);

/* Over the UTF-16 code units of valid UTF-8, as JavaScript's charCodeAt gives them. */
HF_MUST_CHECK hf_status hf__fnv1a32_js(const unsigned char *bytes, size_t size, uint32_t *hash,
                                       hf_error *err);

/* PostgreSQL's hash_any and hash_any_extended (seed 0), as a little-endian server computes them. */
uint32_t hf__pg_hash(const unsigned char *bytes, size_t size);
uint64_t hf__pg_hash_extended(const unsigned char *bytes, size_t size);

/* The first eight bytes of SHA-256, big endian. */
uint64_t hf__sha256_head(const unsigned char *bytes, size_t size);

#endif
