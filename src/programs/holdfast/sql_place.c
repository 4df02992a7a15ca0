#include "programs/holdfast/sql_place.h"

#include <string.h>

#include "base/text.h"
#include "programs/holdfast/sql_lex.h"

/* A column beyond FAR is shown with so many bytes before it. */
enum { FAR = 80, BEFORE = 40 };

static size_t count_characters(const char *text, size_t size)
{
    size_t count = 0;

    for (size_t at = 0; at < size; count++)
        (void)hf__utf8_next((const unsigned char *)text, size, &at);
    return count;
}

static size_t end_of_line(const char *text, size_t size, size_t start)
{
    const char *end = memchr(text + start, '\n', size - start);
    size_t at = end != NULL ? (size_t)(end - text) : size;

    while (at > start && sql_is_space(text[at - 1]))
        at--;
    return at;
}

static size_t start_of_excerpt(const char *text, size_t line, size_t at)
{
    size_t start = line;

    if (at - line > FAR) {
        start = at - BEFORE;
        while (((unsigned char)text[start] & 0xC0) == 0x80)
            start++;
    }
    while (start < at && sql_is_space(text[start]))
        start++;
    return start;
}

struct sql_place sql_find_place(const char *text, size_t size, size_t at)
{
    struct sql_place place = {.line = 1};
    size_t line = 0;

    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            line = i + 1;
            place.line++;
        }
    }
    place.column = count_characters(text + line, at - line) + 1;

    size_t start = start_of_excerpt(text, line, at);
    size_t end = end_of_line(text, size, line);
    hf__show(place.excerpt, sizeof place.excerpt, text + start, end > start ? end - start : 0);
    return place;
}
