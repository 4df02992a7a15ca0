#include "base/text.h"
#include "lib/keys/keys.h"

#define BASIS_64 UINT64_C(0xcbf29ce484222325)
#define PRIME_64 UINT64_C(0x100000001b3)
#define BASIS_32 UINT32_C(0x811c9dc5)
#define PRIME_32 UINT32_C(0x01000193)

uint64_t hf__fnv1a64(const unsigned char *bytes, size_t size)
{
    uint64_t hash = BASIS_64;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * PRIME_64;
    return hash;
}

uint32_t hf__fnv1a32(const unsigned char *bytes, size_t size)
{
    uint32_t hash = BASIS_32;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * PRIME_32;
    return hash;
}

hf_status hf__fnv1a32_js(const unsigned char *bytes, size_t size, uint32_t *hash, hf_error *err)
{
    uint32_t sum = BASIS_32;

    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next(bytes, size, &at);
        if (point < 0) {
            hf_status status =
                hf__fail(err, HF_INVALID, "the label is not valid UTF-8 at byte %zu", start + 1);
            hf__hint(err, "fnv1a32-js hashes UTF-16 code units; use another derivation for bytes");
            return status;
        }
        if (point >= 0x10000) {
            uint32_t above = (uint32_t)point - 0x10000;
            sum = (sum ^ (0xD800 + (above >> 10))) * PRIME_32;
            sum = (sum ^ (0xDC00 + (above & 0x3FF))) * PRIME_32;
        } else {
            sum = (sum ^ (uint32_t)point) * PRIME_32;
        }
    }
    *hash = sum;
    return HF_OK;
}
