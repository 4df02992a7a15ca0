#include "programs/ingest/sources/lines.h"

#include <stdlib.h>
#include <string.h>

#include "programs/ingest/sources/ndjson.h"

enum {
    FIRST_CAPACITY = 1 << 18,
    LEAST_READ = 1 << 16,
    MOST_READ = 1 << 20,     /* at once: more would only be read ahead */
    KEPT_CAPACITY = 1 << 22, /* a larger buffer, after a long line, is shrunk again */
    STOLEN_SIZE = 1 << 20,   /* a ledger of this size or more takes the buffer instead of a copy */
};

void hf__lines_begin(hf__lines *lines, size_t line_max)
{
    hf__input input = lines->input;

    *lines = (hf__lines){.input = input, .number = 1};
    lines->line_max = line_max > 0 ? line_max : HF__LINE_MAX;
}

void hf__lines_close(hf__lines *lines)
{
    hf__input_close(&lines->input);
    free(lines->data);
    lines->data = NULL;
    lines->capacity = lines->start = lines->end = lines->scanned = 0;
}

/* Moves the unused bytes to the front, and makes room after them. */
static hf_status make_room(hf__lines *lines, hf_error *err)
{
    size_t kept = lines->end - lines->start;

    if (lines->capacity - lines->end >= LEAST_READ)
        return HF_OK;
    if (lines->start > 0 && kept > 0)
        memmove(lines->data, lines->data + lines->start, kept);
    lines->start = 0;
    lines->end = kept;
    bool is_too_large = kept < LEAST_READ && lines->capacity > KEPT_CAPACITY;
    if (lines->capacity - kept >= LEAST_READ && !is_too_large)
        return HF_OK;

    size_t capacity = is_too_large || lines->capacity == 0 ? FIRST_CAPACITY : 2 * lines->capacity;
    char *data = realloc(lines->data, capacity);
    if (data == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a line of %s", lines->input.name);
    lines->data = data;
    lines->capacity = capacity;
    return HF_OK;
}

static hf_status fill(hf__lines *lines, size_t *got, hf_error *err)
{
    hf_status status = make_room(lines, err);

    if (status != HF_OK)
        return status;
    size_t room = lines->capacity - lines->end;
    status = hf__input_read(&lines->input, lines->data + lines->end,
                            room < MOST_READ ? room : MOST_READ, got, err);
    lines->end += *got;
    return status;
}

static void consume(hf__lines *lines, size_t size)
{
    lines->start += size;
    lines->offset += (int64_t)size;
    lines->scanned = 0;
}

static void end_line(hf__lines *lines)
{
    if (lines->number > 0)
        lines->number++;
}

/* The first newline from start on, or NULL. Does not scan bytes a second time. */
static char *find_newline(hf__lines *lines)
{
    size_t unseen = lines->end - lines->start - lines->scanned;
    char *newline =
        unseen > 0 ? memchr(lines->data + lines->start + lines->scanned, '\n', unseen) : NULL;

    lines->scanned += unseen;
    return newline;
}

static bool begins_with_mark(const hf__lines *lines)
{
    return lines->offset == 0 && lines->end - lines->start >= 3 &&
           memcmp(lines->data + lines->start, "\xEF\xBB\xBF", 3) == 0;
}

static hf__line line_of(const hf__lines *lines, size_t size)
{
    hf__line line = {.text = lines->data + lines->start,
                     .size = size,
                     .number = lines->number,
                     .offset = lines->offset};

    if (line.size >= 3 && begins_with_mark(lines)) {
        line.text += 3;
        line.size -= 3;
    }
    if (line.size > 0 && line.text[line.size - 1] == '\r')
        line.size--;
    return line;
}

/* After a line that was too long: drops all bytes up to its newline. */
static hf_status skip_rest(hf__lines *lines, hf_error *err)
{
    while (lines->is_skipping) {
        char *newline = find_newline(lines);
        if (newline != NULL) {
            consume(lines, (size_t)(newline + 1 - (lines->data + lines->start)));
            end_line(lines);
            lines->is_skipping = false;
            return HF_OK;
        }
        consume(lines, lines->end - lines->start);
        size_t got = 0;
        hf_status status = fill(lines, &got, err);
        if (status != HF_OK || got == 0)
            return status;
    }
    return HF_OK;
}

/* Gives the first part of a line that is too long; skip_rest drops the rest. */
static void cut_long_line(hf__lines *lines, size_t size, hf__line *line)
{
    *line = line_of(lines, lines->line_max < HF__BAD_BYTES_MAX ? lines->line_max
                                                               : (size_t)HF__BAD_BYTES_MAX);
    line->is_too_long = true;
    consume(lines, size);
    lines->is_skipping = true;
}

/* Cuts a line from the bytes that were read. False: there is no whole line yet. */
static bool cut_line(hf__lines *lines, bool is_end, hf__line *line)
{
    char *newline = find_newline(lines);
    size_t size = newline != NULL ? (size_t)(newline - (lines->data + lines->start))
                                  : lines->end - lines->start;

    if (size > lines->line_max) {
        cut_long_line(lines, size, line);
        return true;
    }
    if (newline == NULL && (!is_end || size == 0))
        return false;
    *line = line_of(lines, size);
    line->is_rest = newline == NULL;
    consume(lines, size + (newline != NULL ? 1 : 0));
    end_line(lines);
    return true;
}

hf_status hf__lines_next(hf__lines *lines, bool is_last, hf__line *line, hf_error *err)
{
    size_t got = 1;

    *line = (hf__line){0};
    hf_status status = skip_rest(lines, err);
    if (status != HF_OK || lines->is_skipping)
        return status;
    while (!cut_line(lines, got == 0 && is_last, line)) {
        if (got == 0)
            return HF_OK;
        status = fill(lines, &got, err);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

hf__line hf__lines_rest(const hf__lines *lines)
{
    hf__line none = {0};

    return lines->start < lines->end ? line_of(lines, lines->end - lines->start) : none;
}

void hf__lines_drop_rest(hf__lines *lines)
{
    consume(lines, lines->end - lines->start);
}

hf_status hf__lines_go(hf__lines *lines, int64_t offset, int64_t number, hf_error *err)
{
    lines->start = lines->end = lines->scanned = 0;
    lines->is_skipping = false;
    lines->offset = offset;
    lines->number = number;
    lines->passed = 0;
    lines->has_given = false;
    return hf__input_go(&lines->input, offset, err);
}

/*
 * Returns the line in memory of its own. A short line is copied. A long one takes the buffer, and
 * the few bytes after it go to a new one.
 */
static char *take_bytes(hf__lines *lines, const hf__line *line)
{
    size_t before = (size_t)(line->text - lines->data);
    size_t behind = lines->end - lines->start;

    if (line->size < STOLEN_SIZE || behind > LEAST_READ) {
        char *copy = malloc(line->size);
        if (copy != NULL)
            memcpy(copy, line->text, line->size);
        return copy;
    }
    char *rest = malloc(FIRST_CAPACITY);
    if (rest == NULL)
        return NULL;
    memcpy(rest, lines->data + lines->start, behind);
    char *stolen = lines->data;
    memmove(stolen, stolen + before, line->size);
    lines->data = rest;
    lines->capacity = FIRST_CAPACITY;
    lines->start = 0;
    lines->end = behind;
    char *trimmed = realloc(stolen, line->size);
    if (trimmed != NULL)
        stolen = trimmed;
    return stolen;
}

static bool is_blank(const hf__line *line)
{
    for (size_t i = 0; i < line->size; i++)
        if (line->text[i] != ' ' && line->text[i] != '\t' && line->text[i] != '\r')
            return false;
    return true;
}

static hf_status refuse_line(const hf__line *line, hf__slice bytes, const hf_error *reason,
                             hf__where_fn *where, void *where_arg, hf__bad_ledger *bad,
                             hf_error *err)
{
    char place[HF__WHERE_SIZE];

    if (bad == NULL && err == NULL)
        return HF_BAD_DATA;
    where(where_arg, line, place, sizeof place);
    return hf__source_refuse(bad, place, hf__ndjson_sequence(bytes.text, bytes.size), bytes, reason,
                             err);
}

/* A line without a sequence stands where the one after the last is expected. */
static bool is_below(hf__lines *lines, const hf__line *line, int64_t from)
{
    int64_t sequence = hf__ndjson_sequence(line->text, line->size);

    if (sequence <= 0 && lines->passed > 0)
        sequence = lines->passed + 1;
    if (sequence > 0)
        lines->passed = sequence;
    return sequence > 0 && sequence < from;
}

hf_status hf__lines_ledger(hf__lines *lines, const hf__line *line, int64_t from,
                           hf__where_fn *where, void *where_arg, hf__ledger **ledger,
                           hf__bad_ledger *bad, hf_error *err)
{
    hf_error reason = {0};

    *ledger = NULL;
    if (is_blank(line) || (is_below(lines, line, from) && !lines->has_given))
        return HF_OK;
    if (line->is_too_long) {
        (void)hf__fail(&reason, HF_BAD_DATA, "the line is longer than %zu bytes", lines->line_max);
        return refuse_line(line, (hf__slice){line->text, line->size}, &reason, where, where_arg,
                           bad, err);
    }

    char *bytes = take_bytes(lines, line);
    if (bytes == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a line of %s", lines->input.name);
    hf_status status = hf__ndjson_parse(bytes, line->size, ledger, &reason);
    if (status == HF_OK) {
        lines->has_given = true;
        return HF_OK;
    }
    if (status == HF_BAD_DATA)
        status =
            refuse_line(line, (hf__slice){bytes, line->size}, &reason, where, where_arg, bad, err);
    else if (err != NULL)
        *err = reason;
    free(bytes);
    return status;
}

hf_status hf__source_refuse(hf__bad_ledger *bad, const char *where, int64_t sequence,
                            hf__slice bytes, const hf_error *reason, hf_error *err)
{
    if (bad != NULL) {
        size_t size = bytes.size < HF__BAD_BYTES_MAX ? bytes.size : HF__BAD_BYTES_MAX;
        *bad = (hf__bad_ledger){.sequence = sequence};
        strncpy(bad->where, where, HF__WHERE_SIZE - 1);
        bad->bytes = size > 0 ? malloc(size + 1) : NULL;
        if (bad->bytes != NULL) {
            memcpy(bad->bytes, bytes.text, size);
            bad->bytes[size] = '\0';
            bad->size = size;
        }
    }
    (void)hf__fail(err, HF_BAD_DATA, "%s: %s", where, reason->message);
    if (reason->hint[0] != '\0')
        hf__hint(err, "%s", reason->hint);
    return HF_BAD_DATA;
}
