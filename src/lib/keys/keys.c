#include "lib/keys/keys.h"

#include <string.h>

#include "base/text.h"

static const char *const names[] = {
    [HF_SHA256] = "sha256",
    [HF_FNV1A64] = "fnv1a64",
    [HF_FNV1A32] = "fnv1a32",
    [HF_FNV1A32_JS] = "fnv1a32-js",
    [HF_HASHTEXT] = "hashtext",
    [HF_HASHTEXTEXTENDED] = "hashtextextended",
    [HF_FIXED] = "fixed",
    [HF_MINTED] = "minted",
    [HF_CRC32] = "crc32",
    [HF_CRC32_SQLX] = "crc32-sqlx",
    [HF_MD5] = "md5",
    [HF_JAVA_HASHCODE] = "java-hashcode",
    [HF_WITH_ADVISORY_LOCK] = "with-advisory-lock",
    [HF_DISTRIBUTEDLOCK_ASCII] = "distributedlock-ascii",
    [HF_DISTRIBUTEDLOCK_HASH] = "distributedlock-hash",
};

enum { NAME_COUNT = sizeof names / sizeof names[0] };

const char *hf_derivation_name(hf_derivation derivation)
{
    return (unsigned)derivation < NAME_COUNT ? names[derivation] : NULL;
}

hf_status hf_derivation_parse(const char *name, hf_derivation *derivation, hf_error *err)
{
    char shown[64];

    for (unsigned i = 0; i < NAME_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *derivation = (hf_derivation)i;
            return HF_OK;
        }
    }
    hf_status status = hf__fail(err, HF_INVALID, "unknown derivation: '%s'",
                                hf__show(shown, sizeof shown, name, strlen(name)));
    hf__hint(err, "one of sha256, fnv1a64, fnv1a32, fnv1a32-js, hashtext, hashtextextended, fixed, "
                  "crc32, crc32-sqlx, md5, java-hashcode, with-advisory-lock, "
                  "distributedlock-ascii, distributedlock-hash");
    return status;
}

hf_space hf_derivation_space(hf_derivation derivation)
{
    bool is_pair = derivation == HF_WITH_ADVISORY_LOCK || derivation == HF_DISTRIBUTEDLOCK_ASCII;

    return is_pair ? HF_PAIR : HF_BIGINT;
}

/* 32 bits become a key as PostgreSQL turns an int4 into a bigint: with the sign. */
static int64_t widen(uint32_t hash)
{
    return (int32_t)hash;
}

typedef hf_status units_fn(const unsigned char *bytes, size_t size, uint32_t *hash, hf_error *err);

static hf_status derive_units(units_fn *fn, const unsigned char *bytes, size_t size, int64_t *key,
                              hf_error *err)
{
    uint32_t hash = 0;
    hf_status status = fn(bytes, size, &hash, err);

    if (status == HF_OK)
        *key = widen(hash);
    return status;
}

/* sqlx multiplies the checksum by a number of its own; the product fits. */
static int64_t derive_sqlx(const unsigned char *bytes, size_t size)
{
    return INT64_C(0x3d32ad9e) * (int64_t)hf__crc32(bytes, size);
}

/*
 * The gem locks two int4: the checksum without its sign, and a prefix, which is 0 unless somebody
 * sets WITH_ADVISORY_LOCK_PREFIX to a number.
 */
static int64_t derive_with_advisory_lock(const unsigned char *bytes, size_t size)
{
    return hf_key_join(hf__crc32(bytes, size) & INT32_MAX, 0);
}

/* ---- .NET's DistributedLock ---- */

enum { ASCII_MOST = 9, ASCII_BITS = 7 };

static bool fits_ascii(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] > 0x7f)
            return false;
    return size <= ASCII_MOST;
}

/* Seven bits for each character, a zero, and then ones: no two such names have the same key. */
static hf_status derive_ascii(const unsigned char *bytes, size_t size, int64_t *key, hf_error *err)
{
    uint64_t bits = 0;

    if (!fits_ascii(bytes, size)) {
        hf_status status =
            hf__fail(err, HF_INVALID, "the label is not at most %d ASCII characters", ASCII_MOST);
        hf__hint(err, "DistributedLock hashes such names: use distributedlock-hash");
        return status;
    }
    for (size_t i = 0; i < size; i++)
        bits = bits << ASCII_BITS | bytes[i];
    bits <<= 1;
    for (size_t i = size; i < ASCII_MOST; i++)
        bits = bits << ASCII_BITS | 0x7f;
    *key = (int64_t)bits;
    return HF_OK;
}

/* "deadbeefdeadbeef" and "deadbeef,deadbeef" are numbers to DistributedLock. */
static bool is_number_in_hex(const unsigned char *bytes, size_t size)
{
    if (size != 16 && !(size == 17 && bytes[8] == ','))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!(size == 17 && i == 8) && !strchr("0123456789abcdefABCDEF", bytes[i]))
            return false;
    return memchr(bytes, '\0', size) == NULL;
}

static hf_status derive_hashed(const unsigned char *bytes, size_t size, int64_t *key, hf_error *err)
{
    bool is_ascii = fits_ascii(bytes, size);

    if (is_ascii || is_number_in_hex(bytes, size)) {
        hf_status status = hf__fail(err, HF_INVALID, "DistributedLock does not hash this label");
        hf__hint(err,
                 is_ascii ? "use distributedlock-ascii" : "it is the number itself: use fixed");
        return status;
    }
    *key = (int64_t)hf__sha1_head_le(bytes, size);
    return HF_OK;
}

static hf_status derive_fixed(const void *label, size_t size, int64_t *key, hf_error *err)
{
    char digits[32] = "";

    if (size < sizeof digits && memchr(label, '\0', size) == NULL) {
        memcpy(digits, label, size);
        return hf__parse_int64(digits, "the key", INT64_MIN, INT64_MAX, key, err);
    }

    char shown[64];
    hf_status status = hf__fail(err, HF_INVALID, "the key is not a 64-bit number: '%s'",
                                hf__show(shown, sizeof shown, label, size));
    hf__hint(err, "give a decimal number, or another derivation than fixed");
    return status;
}

static hf_status check_size(size_t size, hf_error *err)
{
    if (size <= HF_LABEL_MAX)
        return HF_OK;
    hf_status status =
        hf__fail(err, HF_INVALID, "the label has %zu bytes, more than %d", size, HF_LABEL_MAX);
    hf__hint(err, "shorten it, or use a digest of it as the label");
    return status;
}

hf_status hf_key_derive(hf_derivation derivation, const void *label, size_t label_size,
                        int64_t *key, hf_error *err)
{
    const unsigned char *bytes = label_size > 0 ? label : (const void *)"";
    hf_status status = check_size(label_size, err);

    if (status != HF_OK)
        return status;
    switch (derivation) {
    case HF_SHA256: *key = (int64_t)hf__sha256_head(bytes, label_size); return HF_OK;
    case HF_FNV1A64: *key = (int64_t)hf__fnv1a64(bytes, label_size); return HF_OK;
    case HF_FNV1A32: *key = widen(hf__fnv1a32(bytes, label_size)); return HF_OK;
    case HF_FNV1A32_JS: return derive_units(hf__fnv1a32_js, bytes, label_size, key, err);
    case HF_HASHTEXT: *key = widen(hf__pg_hash(bytes, label_size)); return HF_OK;
    case HF_HASHTEXTEXTENDED: *key = (int64_t)hf__pg_hash_extended(bytes, label_size); return HF_OK;
    case HF_FIXED: return derive_fixed(bytes, label_size, key, err);
    case HF_CRC32: *key = widen(hf__crc32(bytes, label_size)); return HF_OK;
    case HF_CRC32_SQLX: *key = derive_sqlx(bytes, label_size); return HF_OK;
    case HF_MD5: *key = (int64_t)hf__md5_head(bytes, label_size); return HF_OK;
    case HF_JAVA_HASHCODE: return derive_units(hf__java_hash, bytes, label_size, key, err);
    case HF_WITH_ADVISORY_LOCK: *key = derive_with_advisory_lock(bytes, label_size); return HF_OK;
    case HF_DISTRIBUTEDLOCK_ASCII: return derive_ascii(bytes, label_size, key, err);
    case HF_DISTRIBUTEDLOCK_HASH: return derive_hashed(bytes, label_size, key, err);
    case HF_MINTED:
        status = hf__fail(err, HF_INVALID, "a minted key is not computed from a label");
        hf__hint(err, "minted keys come from the table registry");
        return status;
    }
    return hf__fail(err, HF_INVALID, "unknown derivation: %d", (int)derivation);
}

void hf_key_split(int64_t key, uint32_t *classid, uint32_t *objid)
{
    *classid = (uint32_t)((uint64_t)key >> 32);
    *objid = (uint32_t)key;
}

int64_t hf_key_join(uint32_t classid, uint32_t objid)
{
    return (int64_t)((uint64_t)classid << 32 | objid);
}
