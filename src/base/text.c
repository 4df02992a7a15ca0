#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ellipsis[] = "…";

bool hf__slice_is(hf__slice slice, const char *text)
{
    size_t size = strlen(text);

    return slice.text != NULL && slice.size == size && memcmp(slice.text, text, size) == 0;
}

/*
 * Returns how many bytes follow the lead byte, or -1 when it cannot be one. *bits is what the lead
 * byte adds to the code point. A code point below *least was encoded with too many bytes.
 */
static int continuation_count(unsigned char lead, int32_t *bits, int32_t *least)
{
    if (lead < 0x80) {
        *bits = lead;
        *least = 0;
        return 0;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        *bits = lead & 0x1F;
        *least = 0x80;
        return 1;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        *bits = lead & 0x0F;
        *least = 0x800;
        return 2;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        *bits = lead & 0x07;
        *least = 0x10000;
        return 3;
    }
    return -1;
}

static bool is_surrogate(int32_t point)
{
    return point >= 0xD800 && point <= 0xDFFF;
}

int32_t hf__utf8_next(const unsigned char *bytes, size_t size, size_t *at)
{
    int32_t point = 0;
    int32_t least = 0;
    size_t start = (*at)++;
    int count = continuation_count(bytes[start], &point, &least);

    if (count < 0 || (size_t)count > size - start - 1)
        return -1;
    for (int i = 1; i <= count; i++) {
        unsigned char byte = bytes[start + (size_t)i];
        if ((byte & 0xC0) != 0x80)
            return -1;
        point = point << 6 | (byte & 0x3F);
    }
    if (point < least || point > 0x10FFFF || is_surrogate(point))
        return -1;
    *at = start + 1 + (size_t)count;
    return point;
}

size_t hf__utf8_write(char out[4], uint32_t point)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

    for (size_t i = size - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3F));
    out[0] = (char)(leads[size] | point);
    return size;
}

bool hf__utf8_valid(const void *bytes, size_t size)
{
    for (size_t at = 0; at < size;)
        if (hf__utf8_next(bytes, size, &at) < 0)
            return false;
    return true;
}

bool hf__is_unsafe(int32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x061C || point == 0x200E ||
           point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

static size_t escape_byte(char *out, size_t out_size, unsigned char byte)
{
    const char *format = byte == '\n'   ? "\\n"
                         : byte == '\t' ? "\\t"
                         : byte == '\r' ? "\\r"
                         : byte == '\\' ? "\\\\"
                                        : NULL;
    int length = format != NULL ? snprintf(out, out_size, "%s", format)
                                : snprintf(out, out_size, "\\x%02x", byte);
    return (size_t)length;
}

/*
 * Writes the character at *at as it is shown, unchanged or with each byte escaped, and moves *at
 * behind it. Returns the size written.
 */
static size_t show_character(char *piece, size_t piece_size, const unsigned char *bytes,
                             size_t size, size_t *at)
{
    size_t start = *at;
    size_t length = 0;
    int32_t point = hf__utf8_next(bytes, size, at);

    if (point >= 0 && point != '\\' && !hf__is_unsafe(point)) {
        memcpy(piece, bytes + start, *at - start);
        return *at - start;
    }
    for (size_t i = start; i < *at; i++)
        length += escape_byte(piece + length, piece_size - length, bytes[i]);
    return length;
}

bool hf__has_control(const void *text, size_t size)
{
    const unsigned char *bytes = text;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < 0x20 || bytes[i] == 0x7f)
            return true;
    return false;
}

const char *hf__show(char *out, size_t out_size, const void *label, size_t label_size)
{
    enum { ELLIPSIS_SIZE = sizeof ellipsis - 1 };
    char piece[4 * 4 + 1];
    size_t used = 0;
    size_t cut = 0; /* the last end of a character that leaves room for the ellipsis */

    if (out_size == 0)
        return out;
    for (size_t at = 0; at < label_size;) {
        size_t length = show_character(piece, sizeof piece, label, label_size, &at);
        if (length > out_size - 1 - used) {
            used = cut;
            if (out_size > ELLIPSIS_SIZE) {
                memcpy(out + used, ellipsis, ELLIPSIS_SIZE);
                used += ELLIPSIS_SIZE;
            }
            break;
        }
        memcpy(out + used, piece, length);
        used += length;
        if (used + ELLIPSIS_SIZE < out_size)
            cut = used;
    }
    out[used] = '\0';
    return out;
}

static bool is_decimal(const char *text)
{
    if (*text == '-')
        text++;
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

hf_status hf__parse_int64(const char *text, const char *what, int64_t low, int64_t high,
                          int64_t *value, hf_error *err)
{
    char shown[64];
    hf_status status;

    hf__show(shown, sizeof shown, text, strlen(text));
    if (is_decimal(text)) {
        errno = 0;
        long long number = strtoll(text, NULL, 10);
        if (errno == 0 && number >= low && number <= high) {
            *value = number;
            return HF_OK;
        }
        status = hf__fail(err, HF_INVALID, "%s is out of range: '%s'", what, shown);
    } else {
        status = hf__fail(err, HF_INVALID, "%s is not a whole number: '%s'", what, shown);
    }
    hf__hint(err, "give a decimal number from %" PRId64 " to %" PRId64, low, high);
    return status;
}
