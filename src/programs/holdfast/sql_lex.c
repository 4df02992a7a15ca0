#include "programs/holdfast/sql_lex.h"

#include <string.h>

#include "base/text.h"

bool sql_starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

bool sql_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool sql_continues_name(char c)
{
    return sql_starts_name(c) || sql_is_digit(c);
}

bool sql_continues_word(char c)
{
    return sql_continues_name(c) || c == '$';
}

bool sql_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

char sql_peek(const struct sql_cursor *cursor, size_t ahead)
{
    return ahead < cursor->size - cursor->at ? cursor->text[cursor->at + ahead] : '\0';
}

bool sql_at_pair(const struct sql_cursor *cursor, char first, char second)
{
    return sql_peek(cursor, 0) == first && sql_peek(cursor, 1) == second;
}

size_t sql_name_size(const struct sql_cursor *cursor, size_t ahead)
{
    size_t size = 0;

    while (sql_continues_name(sql_peek(cursor, ahead + size)))
        size++;
    return size;
}

void sql_skip_line_comment(struct sql_cursor *cursor, bool sqlite)
{
    while (cursor->at < cursor->size &&
           (sqlite ? sql_peek(cursor, 0) != '\n' : !is_line_end(sql_peek(cursor, 0))))
        cursor->at++;
}

const char *sql_skip_block_comment(struct sql_cursor *cursor, bool nests)
{
    size_t depth = 0;

    while (cursor->at < cursor->size) {
        bool opens = sql_at_pair(cursor, '/', '*') && (depth == 0 || nests);
        bool closes = sql_at_pair(cursor, '*', '/');

        cursor->at += opens || closes ? 2 : 1;
        depth += opens;
        depth -= closes;
        if (depth == 0)
            return NULL;
    }
    return "the comment";
}

static const char *skip_quoted(struct sql_cursor *cursor, bool backslashes)
{
    char quote = cursor->text[cursor->at++];

    while (cursor->at < cursor->size) {
        char c = cursor->text[cursor->at++];
        bool escapes = (c == '\\' && backslashes) || (c == quote && sql_peek(cursor, 0) == quote);

        if (escapes && cursor->at < cursor->size)
            cursor->at++;
        else if (c == quote)
            return NULL;
    }
    return quote == '\'' ? "the string" : "the quoted name";
}

const char *sql_skip_bracketed(struct sql_cursor *cursor)
{
    while (cursor->at < cursor->size)
        if (cursor->text[cursor->at++] == ']')
            return NULL;
    return "the quoted name";
}

const char *sql_skip_quoted(struct sql_cursor *cursor)
{
    return skip_quoted(cursor, false);
}

/* After a line break, and perhaps comments, a string continues in the next quotes. */
static bool skip_to_continuation(struct sql_cursor *cursor)
{
    size_t end = cursor->at;
    bool new_line = false;

    for (;;) {
        new_line |= is_line_end(sql_peek(cursor, 0));
        if (sql_at_pair(cursor, '-', '-'))
            sql_skip_line_comment(cursor, false);
        else if (sql_is_space(sql_peek(cursor, 0)))
            cursor->at++;
        else
            break;
    }
    if (new_line && sql_peek(cursor, 0) == '\'')
        return true;
    cursor->at = end;
    return false;
}

const char *sql_skip_escape_string(struct sql_cursor *cursor)
{
    const char *open;

    do
        open = skip_quoted(cursor, true);
    while (open == NULL && skip_to_continuation(cursor));
    return open;
}

const char *sql_skip_dollar_quoted(struct sql_cursor *cursor, size_t tag_size)
{
    const char *tag = cursor->text + cursor->at;
    const char *body = tag + tag_size;
    const char *end = memmem(body, cursor->size - cursor->at - tag_size, tag, tag_size);

    if (end == NULL)
        return "the dollar quote";
    cursor->at = (size_t)(end - cursor->text) + tag_size;
    return NULL;
}

/* ---- Places in a script ---------------------------------------------------------------------- */

/* An excerpt begins BEFORE bytes before its column when the column is beyond FAR. */
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
