#define OPENSSL_SUPPRESS_DEPRECATED /* see digests */
#include "lib/keys/keys.h"

#include <openssl/md5.h>
#include <openssl/sha.h>

#include "base/text.h"

/* ---- FNV-1a ---- */

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

/* ---- over UTF-16 code units, as JavaScript and Java have text ---- */

typedef uint32_t unit_fn(uint32_t hash, uint32_t unit);

static hf_status over_units(const unsigned char *bytes, size_t size, unit_fn *step, uint32_t *hash,
                            hf_error *err)
{
    uint32_t sum = *hash;

    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next(bytes, size, &at);
        if (point < 0) {
            hf_status status =
                hf__fail(err, HF_INVALID, "the label is not valid UTF-8 at byte %zu", start + 1);
            hf__hint(err, "this derivation hashes UTF-16 code units; use another one for bytes");
            return status;
        }
        if (point >= 0x10000) {
            uint32_t above = (uint32_t)point - 0x10000;
            sum = step(sum, 0xD800 + (above >> 10));
            sum = step(sum, 0xDC00 + (above & 0x3FF));
        } else {
            sum = step(sum, (uint32_t)point);
        }
    }
    *hash = sum;
    return HF_OK;
}

static uint32_t fnv1a_step(uint32_t hash, uint32_t unit)
{
    return (hash ^ unit) * PRIME_32;
}

static uint32_t java_step(uint32_t hash, uint32_t unit)
{
    return hash * 31 + unit;
}

hf_status hf__fnv1a32_js(const unsigned char *bytes, size_t size, uint32_t *hash, hf_error *err)
{
    *hash = BASIS_32;
    return over_units(bytes, size, fnv1a_step, hash, err);
}

hf_status hf__java_hash(const unsigned char *bytes, size_t size, uint32_t *hash, hf_error *err)
{
    *hash = 0;
    return over_units(bytes, size, java_step, hash, err);
}

/* ---- CRC-32 ---- */

uint32_t hf__crc32(const unsigned char *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
    }
    return ~crc;
}

/*
 * ---- PostgreSQL's hash ----
 * Bob Jenkins's lookup3 as PostgreSQL has it: with a start value of its own, and with a tail that
 * keeps the low byte of the third word for the length.
 */

struct state {
    uint32_t a, b, c;
};

static uint32_t rotate(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

static void mix(struct state *s)
{
    s->a = (s->a - s->c) ^ rotate(s->c, 4);
    s->c += s->b;
    s->b = (s->b - s->a) ^ rotate(s->a, 6);
    s->a += s->c;
    s->c = (s->c - s->b) ^ rotate(s->b, 8);
    s->b += s->a;
    s->a = (s->a - s->c) ^ rotate(s->c, 16);
    s->c += s->b;
    s->b = (s->b - s->a) ^ rotate(s->a, 19);
    s->a += s->c;
    s->c = (s->c - s->b) ^ rotate(s->b, 4);
    s->b += s->a;
}

static void finish(struct state *s)
{
    s->c = (s->c ^ s->b) - rotate(s->b, 14);
    s->a = (s->a ^ s->c) - rotate(s->c, 11);
    s->b = (s->b ^ s->a) - rotate(s->a, 25);
    s->c = (s->c ^ s->b) - rotate(s->b, 16);
    s->a = (s->a ^ s->c) - rotate(s->c, 4);
    s->b = (s->b ^ s->a) - rotate(s->a, 14);
    s->c = (s->c ^ s->b) - rotate(s->b, 24);
}

/* Reads up to four bytes in little-endian order on every machine. */
static uint32_t word_of(const unsigned char *bytes, size_t count)
{
    uint32_t word = 0;

    for (size_t i = 0; i < count && i < 4; i++)
        word |= (uint32_t)bytes[i] << (8 * i);
    return word;
}

static struct state hash(const unsigned char *bytes, size_t size)
{
    uint32_t start = UINT32_C(0x9e3779b9) + (uint32_t)size + 3923095;
    struct state s = {start, start, start};

    for (; size >= 12; bytes += 12, size -= 12) {
        s.a += word_of(bytes, 4);
        s.b += word_of(bytes + 4, 4);
        s.c += word_of(bytes + 8, 4);
        mix(&s);
    }
    s.a += word_of(bytes, size);
    if (size > 4)
        s.b += word_of(bytes + 4, size - 4);
    if (size > 8)
        s.c += word_of(bytes + 8, size - 8) << 8;
    finish(&s);
    return s;
}

uint32_t hf__pg_hash(const unsigned char *bytes, size_t size)
{
    return hash(bytes, size).c;
}

uint64_t hf__pg_hash_extended(const unsigned char *bytes, size_t size)
{
    struct state s = hash(bytes, size);

    return (uint64_t)s.b << 32 | s.c;
}

/*
 * ---- digests ----
 * OpenSSL deprecates these low-level calls. But they neither load its configuration nor fetch a
 * provider, which together cost a short-lived process more time than its lock; and MD5 and SHA-1
 * must give other programs' keys even where they are forbidden for secrets.
 */

static uint64_t big_endian(const unsigned char *digest)
{
    uint64_t head = 0;

    for (int i = 0; i < 8; i++)
        head = head << 8 | digest[i];
    return head;
}

uint64_t hf__sha256_head(const unsigned char *bytes, size_t size)
{
    SHA256_CTX context;
    unsigned char digest[SHA256_DIGEST_LENGTH];

    SHA256_Init(&context);
    SHA256_Update(&context, bytes, size);
    SHA256_Final(digest, &context);
    return big_endian(digest);
}

uint64_t hf__md5_head(const unsigned char *bytes, size_t size)
{
    MD5_CTX context;
    unsigned char digest[MD5_DIGEST_LENGTH];

    MD5_Init(&context);
    MD5_Update(&context, bytes, size);
    MD5_Final(digest, &context);
    return big_endian(digest);
}

uint64_t hf__sha1_head_le(const unsigned char *bytes, size_t size)
{
    SHA_CTX context;
    unsigned char digest[SHA_DIGEST_LENGTH];
    uint64_t head = 0;

    SHA1_Init(&context);
    SHA1_Update(&context, bytes, size);
    SHA1_Final(digest, &context);
    for (int i = 7; i >= 0; i--)
        head = head << 8 | digest[i];
    return head;
}
