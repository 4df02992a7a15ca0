#include "programs/registry/import/markdown.h"

#include <string.h>

enum { TAB = '\t' };

struct walk {
    const hf__markdown_reader *reader;
    const char *at;
    const char *end;
    unsigned line;
    char fence; /* '`' or '~' inside of a code fence, else 0 */
    size_t fence_size;
    bool in_comment;
};

static bool is_blank(char c)
{
    return c == ' ' || c == TAB || c == '\r';
}

hf__slice hf__slice_trim(hf__slice slice)
{
    while (slice.size > 0 && is_blank(slice.text[0])) {
        slice.text++;
        slice.size--;
    }
    while (slice.size > 0 && is_blank(slice.text[slice.size - 1]))
        slice.size--;
    return slice;
}

/* What is in a list or a quotation counts like the rest: indentation and '>' go. */
static hf__slice without_frame(hf__slice line)
{
    line = hf__slice_trim(line);
    while (line.size > 0 && line.text[0] == '>') {
        line.text++;
        line.size--;
        line = hf__slice_trim(line);
    }
    return line;
}

static hf__slice peek_line(const struct walk *walk)
{
    size_t left = (size_t)(walk->end - walk->at);
    const char *newline = memchr(walk->at, '\n', left);

    return (hf__slice){walk->at, newline != NULL ? (size_t)(newline - walk->at) : left};
}

static hf__slice next_line(struct walk *walk)
{
    hf__slice line = peek_line(walk);

    walk->at += line.size;
    if (walk->at < walk->end)
        walk->at++;
    walk->line++;
    return line;
}

static size_t run_length(hf__slice text, char c)
{
    size_t length = 0;

    while (length < text.size && text.text[length] == c)
        length++;
    return length;
}

static bool opens_fence(struct walk *walk, hf__slice line)
{
    char c = line.size > 0 ? line.text[0] : 0;
    size_t size = c == '`' || c == '~' ? run_length(line, c) : 0;

    if (size < 3 || (c == '`' && memchr(line.text + size, '`', line.size - size) != NULL))
        return false;
    walk->fence = c;
    walk->fence_size = size;
    return true;
}

static bool closes_fence(const struct walk *walk, hf__slice line)
{
    size_t size = run_length(line, walk->fence);

    return size >= walk->fence_size && size == line.size;
}

/* Does a comment that begins in this line go on in the next one? */
static bool leaves_comment_open(hf__slice line)
{
    const char *at = line.text;
    const char *end = line.text + line.size;

    for (;;) {
        const char *open = memmem(at, (size_t)(end - at), "<!--", 4);
        if (open == NULL)
            return false;
        const char *close = memmem(open + 4, (size_t)(end - open - 4), "-->", 3);
        if (close == NULL)
            return true;
        at = close + 3;
    }
}

static int heading_level(hf__slice line)
{
    size_t level = run_length(line, '#');

    return level >= 1 && level <= 6 && (level == line.size || is_blank(line.text[level]))
               ? (int)level
               : 0;
}

static void add_cell(hf__row *row, const char *start, const char *end)
{
    if (row->count < HF__CELLS_MAX)
        row->cells[row->count++] = hf__slice_trim((hf__slice){start, (size_t)(end - start)});
}

/* False when no unescaped '|' is there: it is no row. */
static bool split_row(hf__slice line, unsigned number, hf__row *row)
{
    const char *end = line.text + line.size;
    const char *start = line.text;
    bool has_pipe = false;

    row->line = number;
    row->count = 0;
    for (const char *at = line.text; at < end; at++) {
        if (*at == '\\' && at + 1 < end) {
            at++;
        } else if (*at == '|') {
            if (at > line.text)
                add_cell(row, start, at);
            start = at + 1;
            has_pipe = true;
        }
    }
    if (start < end)
        add_cell(row, start, end);
    return has_pipe && row->count > 0;
}

/* A line of '=' or '-' under a title makes it a heading: its level, or 0. */
static int underline_level(hf__slice line)
{
    char c = line.size > 0 ? line.text[0] : 0;

    if ((c != '=' && c != '-') || run_length(line, c) != line.size)
        return 0;
    return c == '=' ? 1 : 2;
}

/* "|---|:--:|" */
static bool is_alignment(hf__slice line)
{
    bool has_dash = false;

    for (size_t i = 0; i < line.size; i++) {
        if (strchr("-:| \t", line.text[i]) == NULL || line.text[i] == '\0')
            return false;
        has_dash |= line.text[i] == '-';
    }
    return has_dash;
}

static bool read_rows(struct walk *walk)
{
    hf__row row;

    while (walk->at < walk->end) {
        hf__slice line = without_frame(peek_line(walk));
        if (heading_level(line) > 0 || !split_row(line, walk->line + 1, &row))
            return true;
        next_line(walk);
        if (!walk->reader->row(walk->reader->arg, &row))
            return false;
    }
    return true;
}

static bool read_line(struct walk *walk)
{
    const hf__markdown_reader *reader = walk->reader;
    hf__slice line = without_frame(next_line(walk));
    hf__row row;

    if (walk->in_comment) {
        walk->in_comment = memmem(line.text, line.size, "-->", 3) == NULL;
        return true;
    }
    if (walk->fence != 0) {
        if (closes_fence(walk, line))
            walk->fence = 0;
        return reader->prose(reader->arg, walk->line, line);
    }
    if (opens_fence(walk, line))
        return true;
    if (leaves_comment_open(line)) {
        walk->in_comment = true;
        return true;
    }
    int level = heading_level(line);
    if (level > 0) {
        hf__slice title = {line.text + level, line.size - (size_t)level};
        return reader->heading(reader->arg, walk->line, level, hf__slice_trim(title));
    }
    hf__slice below = without_frame(peek_line(walk));
    bool has_pipe = split_row(line, walk->line, &row);
    level = has_pipe || line.size == 0 ? 0 : underline_level(below);
    if (level > 0) {
        unsigned number = walk->line;
        next_line(walk);
        return reader->heading(reader->arg, number, level, line);
    }
    if (!has_pipe || !is_alignment(below))
        return reader->prose(reader->arg, walk->line, line);
    next_line(walk);
    return reader->header(reader->arg, &row) && read_rows(walk);
}

bool hf__markdown_read(const char *text, size_t size, const hf__markdown_reader *reader)
{
    struct walk walk = {.reader = reader, .at = text, .end = text + size};

    while (walk.at < walk.end)
        if (!read_line(&walk))
            return false;
    return true;
}
