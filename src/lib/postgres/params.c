/* Claims as array parameters, and the names under which waiters listen. */
#include "lib/postgres/postgres.h"

#include <endian.h>
#include <string.h>

#include "base/text.h"

/*
 * 32 bits are enough: if two keys share a companion, some wake-ups are for nothing. Never change
 * it: processes of all versions must compute the same companion.
 */
int32_t hf__pg_companion(int64_t wake)
{
    uint64_t mixed = (uint64_t)wake * UINT64_C(0x9E3779B97F4A7C15);
    return (int32_t)(uint32_t)(mixed >> 32);
}

void hf__pg_channel(char out[24], int64_t wake)
{
    static const char hex[] = "0123456789abcdef";
    memcpy(out, "hf_", 3);
    for (int i = 0; i < 16; i++)
        out[3 + i] = hex[((uint64_t)wake >> (60 - 4 * i)) & 15];
    out[19] = '\0';
}

char *hf__pg_format(char out[24], int64_t value)
{
    char digits[24];
    size_t count = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char *at = out;
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *at++ = '-';
    while (count > 0)
        *at++ = digits[--count];
    *at = '\0';
    return at;
}

static void separate(hf__buf *buf)
{
    hf__buf_add(buf, buf->length ? "," : "{", 1);
}

void hf__pg_array_int(hf__buf *buf, int64_t value)
{
    char text[25];
    text[0] = buf->length ? ',' : '{';
    char *end = hf__pg_format(text + 1, value);
    hf__buf_add(buf, text, (size_t)(end - text));
}

static char *put_be32(char *at, uint32_t value)
{
    uint32_t big = htobe32(value);
    memcpy(at, &big, sizeof big);
    return at + sizeof big;
}

void hf__pg_binary_keys(hf__buf *buf, const hf__claim *claims, size_t count)
{
    enum { INT8_OID = 20, CHUNK = 64 };
    char chunk[CHUNK * 12], *at = chunk;
    at = put_be32(at, 1); /* dimensions */
    at = put_be32(at, 0); /* no NULLs: a lock function that gets NULL would seem to succeed */
    at = put_be32(at, INT8_OID);
    at = put_be32(at, (uint32_t)count);
    at = put_be32(at, 1); /* lower bound */
    for (size_t i = 0; i < count; i++) {
        if (at + 12 > chunk + sizeof chunk) {
            hf__buf_add(buf, chunk, (size_t)(at - chunk));
            at = chunk;
        }
        uint64_t big = htobe64((uint64_t)claims[i].key);
        at = put_be32(at, sizeof big);
        memcpy(at, &big, sizeof big);
        at += sizeof big;
    }
    hf__buf_add(buf, chunk, (size_t)(at - chunk));
}

void hf__pg_array_text(hf__buf *buf, const void *text, size_t size)
{
    const char *bytes = text;
    separate(buf);
    hf__buf_puts(buf, "\"");
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\')
            hf__buf_puts(buf, "\\");
        hf__buf_add(buf, bytes + i, 1);
    }
    hf__buf_puts(buf, "\"");
}

/* A label that is not UTF-8 cannot be stored as text, so it is stored in an escaped form. */
static void array_label(hf__buf *buf, const hf__claim *claim)
{
    char shown[4 * 256];
    if (hf__utf8_valid(claim->label, claim->label_size)) {
        hf__pg_array_text(buf, claim->label, claim->label_size);
    } else {
        hf__show(shown, sizeof shown, claim->label, claim->label_size);
        hf__pg_array_text(buf, shown, strlen(shown));
    }
}

enum { ARRAYS = sizeof(pg_arrays) / sizeof(hf__buf) };

static hf_status close_arrays(pg_arrays *arrays, hf_error *err)
{
    hf__buf *all = (hf__buf *)arrays;
    bool ok = true;
    for (size_t i = 0; i < ARRAYS; i++) {
        hf__buf_puts(&all[i], all[i].length ? "}" : "{}");
        ok = ok && !all[i].broken;
    }
    return ok ? HF_OK : hf__no_memory(err);
}

hf_status hf__pg_key_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count, hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        hf__pg_array_int(&arrays->keys, claims[i].key);
        hf__pg_array_int(&arrays->spaces, claims[i].space);
    }
    return close_arrays(arrays, err);
}

hf_status hf__pg_wake_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                             hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        char channel[24];
        hf__pg_channel(channel, claims[i].wake);
        hf__pg_array_int(&arrays->companions, hf__pg_companion(claims[i].wake));
        separate(&arrays->channels);
        hf__buf_puts(&arrays->channels, channel);
    }
    return hf__pg_key_arrays(arrays, claims, count, err);
}

hf_status hf__pg_label_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                              hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        array_label(&arrays->labels, &claims[i]);
        separate(&arrays->derivations);
        hf__buf_puts(&arrays->derivations, hf_derivation_name(claims[i].derivation));
    }
    return hf__pg_key_arrays(arrays, claims, count, err);
}

hf_status hf__pg_lease_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                              hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        hf__pg_array_int(&arrays->terms, claims[i].term);
        hf__pg_array_int(&arrays->slots, claims[i].slot);
    }
    return hf__pg_wake_arrays(arrays, claims, count, err);
}

void hf__pg_arrays_free(pg_arrays *arrays)
{
    hf__buf *all = (hf__buf *)arrays;
    for (size_t i = 0; i < ARRAYS; i++)
        hf__buf_free(&all[i]);
}
