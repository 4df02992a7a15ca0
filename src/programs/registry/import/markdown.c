/*
 * This is a small reader of our own. md4c, the library that others use, gives other rows. We
 * compared the two on 5302 documents with 4282 tables and 24285 rows, with md4c 0.4.8 (Debian 12)
 * and 0.5.2:
 *
 * - md4c loses tables. 0.4.8 lost 285: it wants three characters under each title, so that "|-|-|"
 *   begins no table. 0.5.2 lost 12: neither sees a table right below a line of text. GitHub does.
 * - "|| a |" has an empty first cell. md4c drops that cell, all others move to the left, and a
 *   purpose is read as a lock's id.
 * - A '|' between backticks ends a cell on GitHub and here, but not in md4c.
 * - A refusal names the size of a cell and the line of a row. md4c tells no sizes, and no place at
 *   all for cells that are empty.
 * - a*b*c is emphasis to md4c, as CommonMark has it. In a table of locks it is a pattern.
 * - 0.4.8 reads beyond the end of its input, and takes minutes for a table of 370 kB that has many
 *   columns and short rows.
 *
 * md4c could still read the text of single cells. 133 rows differ then, most of them by links such
 * as [a][b] that are defined elsewhere, and the code around it is nearly as long as what it
 * replaces.
 */
#include "programs/registry/import/markdown.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "programs/registry/import/inline.h"

/* --- headings, tables and the prose between them -------------------------------------------- */

enum { TAB = '\t' };

struct walk {
    const hf__markdown_reader *reader;
    const char *at;
    const char *end;
    unsigned line;
    char fence; /* '`' or '~' inside a code fence, else 0 */
    size_t fence_size;
    bool in_comment;
    bool in_list;    /* since the last item, only blank and indented lines */
    bool in_code;    /* a block that is indented by four, which is code unless it is in a list */
    bool after_text; /* the line before is neither blank nor code: a paragraph goes on */
};

static bool is_blank(char c)
{
    return c == ' ' || c == TAB || c == '\r';
}

static hf__slice trim(hf__slice slice)
{
    while (slice.size > 0 && is_blank(slice.text[0])) {
        slice.text++;
        slice.size--;
    }
    while (slice.size > 0 && is_blank(slice.text[slice.size - 1]))
        slice.size--;
    return slice;
}

/* Removes indentation and '>': a table in a list or a quotation counts like any other. */
static hf__slice without_frame(hf__slice line)
{
    line = trim(line);
    while (line.size > 0 && line.text[0] == '>') {
        line.text++;
        line.size--;
        line = trim(line);
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
        row->cells[row->count++] = trim((hf__slice){start, (size_t)(end - start)});
}

/* Returns false for a line without an unescaped '|', which is no row. */
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

static size_t indent_of(hf__slice line)
{
    size_t columns = 0;

    for (size_t i = 0; i < line.size && (line.text[i] == ' ' || line.text[i] == TAB); i++)
        columns += line.text[i] == TAB ? 4 - columns % 4 : 1;
    return columns;
}

static bool begins_item(hf__slice text)
{
    size_t digits = 0;

    while (digits < text.size && text.text[digits] >= '0' && text.text[digits] <= '9')
        digits++;
    size_t mark = digits > 0 ? digits : 0;
    return mark + 1 < text.size && text.text[mark + 1] == ' ' &&
           strchr(digits > 0 ? ".)" : "-*+", text.text[mark]) != NULL;
}

/* What is indented by four is code, unless it is in a list or goes on with a paragraph. */
static bool is_indented_code(struct walk *walk, hf__slice raw)
{
    hf__slice text = trim(raw);
    bool indented = indent_of(raw) >= 4;

    if (text.size == 0) {
        walk->after_text = false;
        return walk->in_code;
    }
    walk->in_code = indented && !walk->in_list && (walk->in_code || !walk->after_text);
    walk->in_list = begins_item(text) || (walk->in_list && indent_of(raw) > 0);
    walk->after_text = !walk->in_code;
    return walk->in_code;
}

static bool read_line(struct walk *walk)
{
    const hf__markdown_reader *reader = walk->reader;
    hf__slice raw = next_line(walk);
    hf__slice line = without_frame(raw);
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
    if (is_indented_code(walk, raw))
        return reader->prose(reader->arg, walk->line, line);
    if (opens_fence(walk, line))
        return true;
    if (leaves_comment_open(line)) {
        walk->in_comment = true;
        return true;
    }
    int level = heading_level(line);
    if (level > 0) {
        hf__slice title = {line.text + level, line.size - (size_t)level};
        return reader->heading(reader->arg, walk->line, level, trim(title));
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

/* --- which column is what ------------------------------------------------------------------- */

static const struct {
    const char *title;
    hf__md_column column;
} known[] = {
    {"lock id", HF__COLUMN_ID},
    {"lock ids", HF__COLUMN_ID},
    {"advisory lock id", HF__COLUMN_ID},
    {"fixed id", HF__COLUMN_ID},
    {"fixed key", HF__COLUMN_ID},
    {"fixed lock id", HF__COLUMN_ID},
    {"lock number", HF__COLUMN_ID},
    {"numeric id", HF__COLUMN_ID},
    {"id", HF__COLUMN_ID},
    {"number", HF__COLUMN_ID},
    {"object id", HF__COLUMN_ID},
    {"objid", HF__COLUMN_ID},
    {"key2", HF__COLUMN_ID},
    {"key 2", HF__COLUMN_ID},
    {"class", HF__COLUMN_CLASS},
    {"class id", HF__COLUMN_CLASS},
    {"classid", HF__COLUMN_CLASS},
    {"key1", HF__COLUMN_CLASS},
    {"key 1", HF__COLUMN_CLASS},
    {"hash input pattern", HF__COLUMN_PATTERN},
    {"hash input", HF__COLUMN_PATTERN},
    {"hash pattern", HF__COLUMN_PATTERN},
    {"hashed pattern", HF__COLUMN_PATTERN},
    {"hashed key", HF__COLUMN_PATTERN},
    {"hash key", HF__COLUMN_PATTERN},
    {"lock pattern", HF__COLUMN_PATTERN},
    {"lock key pattern", HF__COLUMN_PATTERN},
    {"key pattern", HF__COLUMN_PATTERN},
    {"label pattern", HF__COLUMN_PATTERN},
    {"lock label", HF__COLUMN_PATTERN},
    {"input pattern", HF__COLUMN_PATTERN},
    {"pattern", HF__COLUMN_PATTERN},
    {"label", HF__COLUMN_PATTERN},
    {"lock key", HF__COLUMN_KEY},
    {"lock keys", HF__COLUMN_KEY},
    {"advisory lock key", HF__COLUMN_KEY},
    {"advisory lock", HF__COLUMN_KEY},
    {"advisory key", HF__COLUMN_KEY},
    {"key", HF__COLUMN_KEY},
    {"name", HF__COLUMN_NAME},
    {"lock name", HF__COLUMN_NAME},
    {"lock", HF__COLUMN_NAME},
    {"constant", HF__COLUMN_SYMBOL},
    {"constant name", HF__COLUMN_SYMBOL},
    {"identifier", HF__COLUMN_SYMBOL},
    {"symbol", HF__COLUMN_SYMBOL},
    {"component", HF__COLUMN_COMPONENT},
    {"service", HF__COLUMN_COMPONENT},
    {"module", HF__COLUMN_COMPONENT},
    {"subsystem", HF__COLUMN_COMPONENT},
    {"application", HF__COLUMN_COMPONENT},
    {"used by", HF__COLUMN_COMPONENT},
    {"purpose", HF__COLUMN_PURPOSE},
    {"description", HF__COLUMN_PURPOSE},
    {"reason", HF__COLUMN_PURPOSE},
    {"usage", HF__COLUMN_PURPOSE},
    {"use", HF__COLUMN_PURPOSE},
    {"used for", HF__COLUMN_PURPOSE},
    {"what", HF__COLUMN_PURPOSE},
    {"why", HF__COLUMN_PURPOSE},
    {"protects", HF__COLUMN_PURPOSE},
    {"scope", HF__COLUMN_SCOPE},
    {"granularity", HF__COLUMN_SCOPE},
    {"lock type", HF__COLUMN_TYPE},
    {"type", HF__COLUMN_TYPE},
    {"lock mode", HF__COLUMN_TYPE},
    {"mode", HF__COLUMN_TYPE},
    {"lock level", HF__COLUMN_TYPE},
    {"level", HF__COLUMN_TYPE},
    {"kind", HF__COLUMN_TYPE},
    {"lifetime", HF__COLUMN_TYPE},
    {"function", HF__COLUMN_TYPE},
    {"lock function", HF__COLUMN_TYPE},
    {"file reference", HF__COLUMN_FILE},
    {"file references", HF__COLUMN_FILE},
    {"file", HF__COLUMN_FILE},
    {"files", HF__COLUMN_FILE},
    {"file path", HF__COLUMN_FILE},
    {"location", HF__COLUMN_FILE},
    {"locations", HF__COLUMN_FILE},
    {"source", HF__COLUMN_FILE},
    {"sources", HF__COLUMN_FILE},
    {"source file", HF__COLUMN_FILE},
    {"source files", HF__COLUMN_FILE},
    {"code", HF__COLUMN_FILE},
    {"where", HF__COLUMN_FILE},
    {"reference", HF__COLUMN_FILE},
    {"references", HF__COLUMN_FILE},
    {"path", HF__COLUMN_FILE},
    {"owner", HF__COLUMN_OWNER},
    {"owners", HF__COLUMN_OWNER},
    {"owned by", HF__COLUMN_OWNER},
    {"team", HF__COLUMN_OWNER},
    {"responsible", HF__COLUMN_OWNER},
    {"contact", HF__COLUMN_OWNER},
    {"runbook", HF__COLUMN_RUNBOOK},
    {"run book", HF__COLUMN_RUNBOOK},
    {"playbook", HF__COLUMN_RUNBOOK},
    {"derivation", HF__COLUMN_DERIVATION},
    {"hash", HF__COLUMN_DERIVATION},
    {"hash function", HF__COLUMN_DERIVATION},
    {"hash algorithm", HF__COLUMN_DERIVATION},
    {"algorithm", HF__COLUMN_DERIVATION},
    {"hashing", HF__COLUMN_DERIVATION},
    {"placeholders", HF__COLUMN_PLACEHOLDERS},
    {"expected", HF__COLUMN_EXPECTED},
    {"expected labels", HF__COLUMN_EXPECTED},
    {"order", HF__COLUMN_ORDER},
    {"acquisition order", HF__COLUMN_ORDER},
    {"lock order", HF__COLUMN_ORDER},
    {"histogram", HF__COLUMN_HISTOGRAM},
};

/* "Lock_ID (decimal)" → "lock id": what stands in parentheses is not part of the name. */
static void normalise(const char *title, char *out, size_t out_size)
{
    size_t used = 0;
    bool gap = false;

    for (; *title != '\0' && *title != '(' && used + 2 < out_size; title++) {
        if (!isalnum((unsigned char)*title)) {
            gap = used > 0;
            continue;
        }
        if (gap)
            out[used++] = ' ';
        gap = false;
        out[used++] = (char)tolower((unsigned char)*title);
    }
    out[used] = '\0';
}

static hf__md_column column_of(const char *title)
{
    char plain[64];

    normalise(title, plain, sizeof plain);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].title, plain) == 0)
            return known[i].column;
    return HF__COLUMN_OTHER;
}

static bool has(const hf__table *table, hf__md_column column)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->columns[i] == column)
            return true;
    return false;
}

/* Many tables have a column "ID" or "Key". "Lock ID" is clear by itself. */
static bool names_locks(const hf__table *table)
{
    char plain[64];

    for (size_t i = 0; i < table->count; i++) {
        normalise(table->titles[i], plain, sizeof plain);
        if (strstr(plain, "lock") != NULL || strstr(plain, "hash") != NULL)
            return true;
    }
    return has(table, HF__COLUMN_TYPE) &&
           (has(table, HF__COLUMN_SCOPE) || has(table, HF__COLUMN_FILE));
}

/* "| Lock | Purpose | Type |" can have its keys only under "Lock". */
static void use_lock_as_key(hf__table *table)
{
    bool complete = has(table, HF__COLUMN_TYPE) &&
                    (has(table, HF__COLUMN_PURPOSE) || has(table, HF__COLUMN_COMPONENT));

    if (!complete || has(table, HF__COLUMN_ID) || has(table, HF__COLUMN_PATTERN) ||
        has(table, HF__COLUMN_KEY))
        return;
    for (size_t i = 0; i < table->count; i++)
        if (strcasecmp(table->titles[i], "lock") == 0)
            table->columns[i] = HF__COLUMN_KEY;
}

/* Does the table say more about its keys than "| Key | Value |" does? */
static bool describes(const hf__table *table)
{
    static const hf__md_column telling[] = {
        HF__COLUMN_NAME, HF__COLUMN_COMPONENT, HF__COLUMN_PURPOSE, HF__COLUMN_SCOPE,
        HF__COLUMN_TYPE, HF__COLUMN_FILE,      HF__COLUMN_OWNER,   HF__COLUMN_DERIVATION};

    for (size_t i = 0; i < sizeof telling / sizeof telling[0]; i++)
        if (has(table, telling[i]))
            return true;
    return false;
}

static hf__table_kind kind_of(const hf__table *table, bool about_locks)
{
    bool has_key =
        has(table, HF__COLUMN_ID) || has(table, HF__COLUMN_PATTERN) || has(table, HF__COLUMN_KEY);
    bool has_more = has(table, HF__COLUMN_OWNER) || has(table, HF__COLUMN_RUNBOOK) ||
                    has(table, HF__COLUMN_ORDER);

    if (has_key)
        return names_locks(table) || (about_locks && describes(table)) ? HF__TABLE_LOCKS
                                                                       : HF__TABLE_STRANGE;
    return has(table, HF__COLUMN_NAME) && has_more ? HF__TABLE_MORE : HF__TABLE_STRANGE;
}

static bool read_titles(hf__table *table, const hf__row *header)
{
    hf__inline title = {0};

    for (size_t i = 0; i < header->count; i++) {
        hf__inline_read(&title, header->cells[i]);
        char *text = title.text.broken ? NULL : strdup(title.text.data);
        if (text == NULL)
            break;
        hf__md_column column = column_of(text);
        bool again = column != HF__COLUMN_TYPE && column != HF__COLUMN_FILE && has(table, column);
        table->titles[i] = text;
        table->columns[i] = again ? HF__COLUMN_OTHER : column;
        table->count++;
    }
    hf__inline_free(&title);
    return table->count == header->count;
}

bool hf__table_read(hf__table *table, const hf__row *header, bool about_locks)
{
    *table = (hf__table){.line = header->line};
    if (!read_titles(table, header))
        return false;
    use_lock_as_key(table);
    table->kind = kind_of(table, about_locks);
    return true;
}

void hf__table_free(hf__table *table)
{
    for (size_t i = 0; i < HF__CELLS_MAX; i++)
        free(table->titles[i]);
    *table = (hf__table){0};
}
