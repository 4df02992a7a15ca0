#include "lib/keys/keys.h"

#include <string.h>

#include "base/text.h"

static const char *const names[] = {
    [HF_SHA256] = "sha256",     [HF_FNV1A64] = "fnv1a64",
    [HF_FNV1A32] = "fnv1a32",   [HF_FNV1A32_JS] = "fnv1a32-js",
    [HF_HASHTEXT] = "hashtext", [HF_HASHTEXTEXTENDED] = "hashtextextended",
    [HF_FIXED] = "fixed",       [HF_MINTED] = "minted",
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
    hf__hint(err, "one of sha256, fnv1a64, fnv1a32, fnv1a32-js, hashtext, hashtextextended, fixed");
    return status;
}

/* 32 bits become a key as PostgreSQL turns an int4 into a bigint: with the sign. */
static int64_t widen(uint32_t hash)
{
    return (int32_t)hash;
}

static hf_status derive_js(const unsigned char *bytes, size_t size, int64_t *key, hf_error *err)
{
    uint32_t hash = 0;
    hf_status status = hf__fnv1a32_js(bytes, size, &hash, err);

    if (status == HF_OK)
        *key = widen(hash);
    return status;
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
    case HF_FNV1A32_JS: return derive_js(bytes, label_size, key, err);
    case HF_HASHTEXT: *key = widen(hf__pg_hash(bytes, label_size)); return HF_OK;
    case HF_HASHTEXTEXTENDED: *key = (int64_t)hf__pg_hash_extended(bytes, label_size); return HF_OK;
    case HF_FIXED: return derive_fixed(bytes, label_size, key, err);
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
