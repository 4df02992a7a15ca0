#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "programs/registry/doc.h"

/* Controls, and what hides or turns text. */
static bool is_unsafe(int32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x061C || point == 0x200E ||
           point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

static bool is_inside_word(const char *text, size_t at)
{
    return at > 0 && isalnum((unsigned char)text[at - 1]) && isalnum((unsigned char)text[at + 1]);
}

/* One character that means something to Markdown or HTML. */
static bool put_special(hf__buf *out, const char *text, size_t at)
{
    char c = text[at];

    if (c == '\n')
        hf__buf_puts(out, "<br>");
    else if (c == '\t')
        hf__buf_puts(out, " ");
    else if (c == '<' || c == '>' || c == '&')
        hf__buf_puts(out, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
    else if (c != '\0' && strchr("\\|`*[]~$", c) != NULL)
        hf__buf_printf(out, "\\%c", c);
    else if (c == '_' && !is_inside_word(text, at))
        hf__buf_puts(out, "\\_");
    else
        return false;
    return true;
}

void hf__markdown_text(hf__buf *out, const char *text)
{
    size_t size = strlen(text);

    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (put_special(out, text, start))
            continue;
        if (is_unsafe(point))
            hf__buf_puts(out, "\uFFFD");
        else
            hf__buf_add(out, text + start, at - start);
    }
}

/* Can it stand between backticks in a cell? There "\|" is '|', and "\\|" cannot be said. */
static bool fits_backticks(const char *text, size_t size)
{
    if (text[0] == ' ' || text[size - 1] == ' ')
        return false;
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point == '`' || is_unsafe(point) ||
            (point == '|' && start > 0 && text[start - 1] == '\\'))
            return false;
    }
    return true;
}

void hf__markdown_code(hf__buf *out, const char *text, size_t size)
{
    if (size == 0)
        return;
    bool plain = fits_backticks(text, size);
    hf__buf_puts(out, plain ? "`" : "<code>");
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (plain && point == '|')
            hf__buf_puts(out, "\\|");
        else if (!plain && is_unsafe(point))
            hf__buf_puts(out, "\uFFFD");
        else if (!plain && point < 0x80 && !isalnum((int)point))
            hf__buf_printf(out, "&#%d;", (int)point);
        else
            hf__buf_add(out, text + start, at - start);
    }
    hf__buf_puts(out, plain ? "`" : "</code>");
}

static bool is_web_address(const char *url)
{
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return false;
    for (; *url != '\0'; url++)
        if ((unsigned char)*url <= ' ' || *url == 0x7f)
            return false;
    return true;
}

/* What could end the link, or the cell, is written by its number. */
void hf__markdown_link(hf__buf *out, const char *url)
{
    if (!is_web_address(url)) {
        hf__markdown_text(out, url);
        return;
    }
    hf__buf_puts(out, "[");
    hf__markdown_text(out, url);
    hf__buf_puts(out, "](");
    for (const char *at = url; *at != '\0'; at++) {
        if (*at == '&')
            hf__buf_puts(out, "&amp;"); /* "&lt;" would be taken for '<' */
        else if (strchr("<>|()[]\\`\"'", *at) != NULL || (unsigned char)*at >= 0x80)
            hf__buf_printf(out, "%%%02X", (unsigned)(unsigned char)*at);
        else
            hf__buf_add(out, at, 1);
    }
    hf__buf_puts(out, ")");
}
