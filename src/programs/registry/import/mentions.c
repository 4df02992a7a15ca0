/* Which hash a text speaks of, and so which derivation the labels beside it have. */
#include <ctype.h>
#include <string.h>

#include "programs/registry/import/key.h"

enum { SHA256 = 1, FNV = 2, HASHTEXT = 4, HASHTEXTEXTENDED = 8, FOREIGN = 16, MD5 = 32, CRC = 64 };
enum { LINE_MAX_SIZE = 1024 }; /* the rest of a longer line is not read */

static const struct {
    const char *word;
    unsigned kind;
    const char *foreign;
} hashes[] = {
    {"sha256", SHA256, NULL},
    {"fnv", FNV, NULL},
    {"hashtextextended", HASHTEXTEXTENDED, NULL},
    {"hashtext", HASHTEXT, NULL},
    {"md5", MD5, NULL},
    {"sha1", FOREIGN, "SHA-1"},
    {"sha512", FOREIGN, "SHA-512"},
    {"crc32", CRC, NULL},
    {"crc64", FOREIGN, "CRC-64"},
    {"murmur", FOREIGN, "MurmurHash"},
    {"xxh", FOREIGN, "xxHash"},
    {"djb2", FOREIGN, "djb2"},
    {"cityhash", FOREIGN, "CityHash"},
    {"siphash", FOREIGN, "SipHash"},
    {"adler32", FOREIGN, "Adler-32"},
};

/* In small letters, without '-' and '_': "FNV-1a" → "fnv1a". */
static void simplify(hf__slice text, char out[LINE_MAX_SIZE])
{
    size_t used = 0;

    for (size_t i = 0; i < text.size && used + 1 < LINE_MAX_SIZE; i++) {
        unsigned char c = (unsigned char)text.text[i];
        if (c != '-' && c != '_' && c != '\0')
            out[used++] = (char)tolower(c);
    }
    out[used] = '\0';
}

/* FNV-1 is not FNV-1a. A bare "FNV" means the latter, which everybody uses. */
static void add_fnv(hf__mentions *mentions, const char *line, const char *rest)
{
    if (rest[0] == '1' && rest[1] != 'a') {
        mentions->kinds |= FOREIGN;
        mentions->foreign = "FNV-1";
        return;
    }
    mentions->kinds |= FNV;
    if (strncmp(rest, "1a64", 4) == 0 || strstr(line, "64bit") != NULL ||
        strstr(line, "64 bit") != NULL)
        mentions->widths |= 64;
    if (strncmp(rest, "1a32", 4) == 0 || strstr(line, "32bit") != NULL ||
        strstr(line, "32 bit") != NULL)
        mentions->widths |= 32;
    if (strncmp(rest, "1a32js", 6) == 0)
        mentions->utf16 = true;
}

static void add_hash(hf__mentions *mentions, size_t index, const char *line, const char *rest)
{
    if (hashes[index].kind == FNV) {
        add_fnv(mentions, line, rest);
        return;
    }
    mentions->kinds |= hashes[index].kind;
    if (hashes[index].foreign != NULL)
        mentions->foreign = hashes[index].foreign;
}

void hf__mentions_add(hf__mentions *mentions, unsigned line, hf__slice text)
{
    char plain[LINE_MAX_SIZE];
    bool found = false;

    simplify(text, plain);
    for (const char *at = plain; *at != '\0'; at++) {
        if (at > plain && isalnum((unsigned char)at[-1]))
            continue;
        for (size_t i = 0; i < sizeof hashes / sizeof hashes[0]; i++) {
            size_t size = strlen(hashes[i].word);
            if (strncmp(at, hashes[i].word, size) != 0)
                continue;
            add_hash(mentions, i, plain, at + size);
            found = true;
            break;
        }
    }
    mentions->utf16 |= strstr(plain, "charcodeat") != NULL || strstr(plain, "utf16") != NULL;
    if (found && mentions->first_line == 0)
        mentions->first_line = line;
    if (found)
        mentions->last_line = line;
}

static hf_derivation fnv_of(const hf__mentions *mentions, bool from_javascript, hf__buf *doubts)
{
    if (mentions->widths == 64)
        return HF_FNV1A64;
    if (mentions->widths == 0)
        hf__buf_puts(doubts, "FNV-1a of 32 or 64 bits is not stated, 32 assumed\n");
    if (mentions->utf16)
        return HF_FNV1A32_JS;
    if (!from_javascript)
        return HF_FNV1A32;
    hf__buf_puts(doubts,
                 "bytes or UTF-16 units (charCodeAt) are not stated, the latter assumed for "
                 "JavaScript\n");
    return HF_FNV1A32_JS;
}

hf__hash_verdict hf__mentions_decide(const hf__mentions *mentions, bool from_javascript,
                                     hf_derivation *derivation, hf__buf *doubts)
{
    switch (mentions->kinds) {
    case 0: return HF__HASH_NONE;
    case SHA256:
    case MD5:
        *derivation = mentions->kinds == MD5 ? HF_MD5 : HF_SHA256;
        hf__buf_printf(doubts,
                       "which bytes of %s make the key is not stated, the first 8 assumed\n",
                       mentions->kinds == MD5 ? "MD5" : "SHA-256");
        return HF__HASH_KNOWN;
    case CRC:
        *derivation = HF_CRC32;
        hf__buf_puts(doubts, "how CRC-32 becomes the key is not stated, sign-extended assumed\n");
        return HF__HASH_KNOWN;
    case HASHTEXT: *derivation = HF_HASHTEXT; return HF__HASH_KNOWN;
    case HASHTEXTEXTENDED: *derivation = HF_HASHTEXTEXTENDED; return HF__HASH_KNOWN;
    case FNV:
        if (mentions->widths == (32 | 64))
            return HF__HASH_UNCLEAR;
        *derivation = fnv_of(mentions, from_javascript, doubts);
        return HF__HASH_KNOWN;
    case FOREIGN: return HF__HASH_FOREIGN;
    default: return HF__HASH_UNCLEAR;
    }
}
