#include "programs/registry/import/import_yaml.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* Words that some version of YAML takes for something else than text. */
static bool is_reserved(const char *text, size_t size)
{
    static const char *const words[] = {"yes",   "no",   "on", "off", "true",
                                        "false", "null", "y",  "n"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == size && strncasecmp(words[i], text, size) == 0)
            return true;
    return false;
}

static bool can_be_plain(const char *text, size_t size)
{
    if (size == 0 || !isascii(text[0]) || !isalpha((unsigned char)text[0]) ||
        text[size - 1] == ' ' || is_reserved(text, size))
        return false;
    for (size_t i = 1; i < size; i++)
        if (!isascii(text[i]) || (!isalnum((unsigned char)text[i]) && !strchr(" _./-", text[i])))
            return false;
    return true;
}

/* What YAML does not allow as it is, and what would hide or turn text in an editor. */
static bool must_be_escaped(int32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0xAD || point == 0x061C ||
           (point >= 0x200B && point <= 0x200F) || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF || (point & 0xFFFE) == 0xFFFE;
}

static void put_escaped(hf__buf *out, int32_t point)
{
    if (point == '\n')
        hf__buf_puts(out, "\\n");
    else if (point == '\t')
        hf__buf_puts(out, "\\t");
    else if (point <= 0xFF)
        hf__buf_printf(out, "\\x%02X", (unsigned)point);
    else if (point <= 0xFFFF)
        hf__buf_printf(out, "\\u%04X", (unsigned)point);
    else
        hf__buf_printf(out, "\\U%08X", (unsigned)point);
}

void hf__yaml_text(hf__buf *out, const char *text, size_t size)
{
    if (can_be_plain(text, size)) {
        hf__buf_add(out, text, size);
        return;
    }
    hf__buf_puts(out, "\"");
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < 0)
            put_escaped(out, 0xFFFD);
        else if (must_be_escaped(point))
            put_escaped(out, point);
        else if (point == '"' || point == '\\')
            hf__buf_printf(out, "\\%c", (char)point);
        else
            hf__buf_add(out, text + start, at - start);
    }
    hf__buf_puts(out, "\"");
}

void hf__yaml_comment_text(hf__buf *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < 0 || must_be_escaped(point))
            hf__buf_puts(out, " ");
        else
            hf__buf_add(out, text + start, at - start);
    }
}
