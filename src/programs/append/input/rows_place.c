/*
 * A row may have several lines: a quoted value of CSV, an escaped newline, an object that was
 * printed to be read. Rows are passed on unread, so all that is looked for is which lines begin
 * one; lines and rows are counted apart, and a mark is kept wherever they part company.
 */
#include "programs/append/input/rows_place.h"

#include <stdlib.h>
#include <string.h>

enum { MARKS_MAX = 1 << 20, GROW = 64 };

void hf__places_init(hf__row_places *places, const hf__format *format)
{
    *places = (hf__row_places){.ends = format->ends};
    atomic_init(&places->rows, 0);
    hf__places_enter(places, 0, 1);
}

void hf__places_free(hf__row_places *places)
{
    free(places->marks);
    places->marks = NULL;
}

void hf__places_enter(hf__row_places *places, size_t source, int64_t line)
{
    places->source = source;
    places->line = line;
    places->next_line = 0;
    places->is_header = places->is_indented = places->is_inside = places->is_escaping = false;
    places->is_new = true;
    places->quote = places->closed = places->last = '\0';
}

void hf__places_expect_header(hf__row_places *places)
{
    places->is_header = true;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void add_mark(hf__row_places *places, int64_t row)
{
    hf__row_mark *grown = places->marks;

    if (places->count % GROW == 0)
        grown = places->count < MARKS_MAX ? reallocarray(grown, places->count + GROW, sizeof *grown)
                                          : NULL;
    if (grown == NULL) {
        places->unknown_from = row;
        return;
    }
    places->marks = grown;
    places->marks[places->count++] = (hf__row_mark){row, places->line, places->source};
}

static void begin_row(hf__row_places *places)
{
    int64_t row = atomic_fetch_add_explicit(&places->rows, 1, memory_order_relaxed) + 1;

    if (places->line != places->next_line && places->unknown_from == 0)
        add_mark(places, row);
    places->next_line = places->line + 1;
}

/* Inside of a row a closed brace is followed by more of the row, and an object is indented. */
static bool begins_object(const hf__row_places *places, char first)
{
    return places->last == '\0' || (first == '{' && !places->is_indented) ||
           (places->last == '}' && strchr(",]}", first) == NULL);
}

/* The first byte of a line that is not blank; a newline: there is none. */
static void begin_line(hf__row_places *places, char first)
{
    bool begins =
        places->ends == HF__ENDS_BY_BRACES ? begins_object(places, first) : !places->is_inside;

    if (begins && !places->is_header)
        begin_row(places);
    places->is_new = false;
}

static void end_line(hf__row_places *places, bool is_inside)
{
    places->line++;
    places->is_header = places->is_indented = false;
    places->is_inside = is_inside;
    places->is_new = true;
    places->is_escaping = false;
    if (places->ends != HF__ENDS_BY_BRACES)
        places->last = '\n';
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Does a quote that follows this byte open a value? Servers may have other delimiters. */
static bool opens_value(const hf__row_places *places)
{
    char before = places->last;

    return before == '\0' || before == '\n' ||
           (places->delimiter != '\0' ? before == places->delimiter
                                      : strchr(",;|\t", before) != NULL);
}

/* Servers skip blanks in front of a value. */
static bool is_skipped(const hf__row_places *places, char c)
{
    return c == ' ' || (c == '\t' && places->delimiter != '\0' && places->delimiter != '\t');
}

/* A quote behind the one that has just closed a value is a twofold one: the value goes on. */
static void pass_csv(hf__row_places *places, char c)
{
    char closed = places->closed;

    places->closed = '\0';
    if (places->quote != '\0' && c == places->quote) {
        places->closed = c;
        places->quote = '\0';
    } else if (places->quote == '\0' && (c == '"' || (c == '\'' && !places->is_strict)) &&
               (opens_value(places) || closed == c)) {
        places->quote = c;
    }
}

/* Reads byte by byte, where a quote is or may be open. */
static void pass_quotes(hf__row_places *places, const char *bytes, size_t size)
{
    for (const char *at = bytes; at < bytes + size; at++) {
        if (places->is_new)
            begin_line(places, *at);
        pass_csv(places, *at);
        if (*at == '\n')
            end_line(places, places->quote != '\0');
        else if (!is_skipped(places, *at))
            places->last = *at;
    }
}

/* Is what follows the end escaped by a backslash? */
static bool escapes_next(const hf__row_places *places, const char *line, const char *end)
{
    const char *at = end;

    while (at > line && at[-1] == '\\')
        at--;
    return ((end - at) % 2 != 0) != (at == line && places->is_escaping);
}

static void remember_last(hf__row_places *places, const char *line, const char *end)
{
    places->closed = '\0';
    while (end > line &&
           (places->ends == HF__ENDS_BY_BRACES ? is_blank(end[-1]) : is_skipped(places, end[-1])))
        end--;
    if (end > line)
        places->last = end[-1];
}

static void pass_lines(hf__row_places *places, const char *bytes, size_t size)
{
    const char *end = bytes + size;

    for (const char *line = bytes; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline != NULL ? newline : end;
        const char *first = line;
        while (places->ends == HF__ENDS_BY_BRACES && first < stop && is_blank(*first))
            first++;
        places->is_indented = places->is_indented || first > line;
        /* An empty line of text is a row of one empty column; between objects it is nothing. */
        if (places->is_new && (first < stop || (newline && places->ends != HF__ENDS_BY_BRACES)))
            begin_line(places, first < stop ? *first : '\n');
        places->is_escaping = places->ends == HF__ENDS_BY_LINE && escapes_next(places, line, stop);
        remember_last(places, line, stop);
        if (newline == NULL)
            return;
        end_line(places, places->is_escaping);
        line = newline + 1;
    }
}

void hf__places_pass(hf__row_places *places, const char *bytes, size_t size)
{
    bool has_quotes = places->ends == HF__ENDS_BY_QUOTES &&
                      (places->quote != '\0' || memchr(bytes, '"', size) != NULL ||
                       memchr(bytes, '\'', size) != NULL);

    if (has_quotes)
        pass_quotes(places, bytes, size);
    else
        pass_lines(places, bytes, size);
}

bool hf__places_is_inside(const hf__row_places *places)
{
    switch (places->ends) {
    case HF__ENDS_BY_QUOTES: return places->quote != '\0';
    case HF__ENDS_BY_LINE: return places->is_escaping || (places->is_inside && places->is_new);
    case HF__ENDS_BY_BRACES: /* a comma may stand between two rows, and all may be one array */
        return places->last != '\0' && strchr("},;]", places->last) == NULL;
    case HF__ENDS_UNKNOWN:
    default: return false;
    }
}

bool hf__places_find(const hf__row_places *places, int64_t row, size_t *source, int64_t *line)
{
    size_t low = 0, high = places->count;

    if (row < 1 || (places->unknown_from != 0 && row >= places->unknown_from))
        return false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (places->marks[middle].row <= row)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    *source = places->marks[low - 1].source;
    *line = places->marks[low - 1].line + row - places->marks[low - 1].row;
    return true;
}
