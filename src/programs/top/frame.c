#include "programs/top/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"
#include "base/vec.h"

/* ---- characters ---- */

/* One character as it is shown, which may be an escape of several. */
struct piece {
    char bytes[4 * 4 + 1];
    size_t size;
    size_t cells;
};

/* Replaces the signs that we draw with on terminals that have only ASCII. */
static char ascii_of(int32_t point)
{
    switch (point) {
    case 0x2026: return '~'; /* … */
    case 0x2264: return '<'; /* ≤ */
    case 0x00B7: return '-'; /* · */
    case 0x2500: return '-'; /* ─ */
    case 0x2502: return '|'; /* │ */
    case 0x251C: return '|'; /* ├ */
    case 0x2514: return '`'; /* └ */
    case 0x2588: return '#'; /* █ */
    case 0x2591: return '.'; /* ░ */
    case 0x25B2: return '^'; /* ▲ */
    case 0x25BC: return 'v'; /* ▼ */
    case 0x21BB: return '@'; /* ↻ */
    case 0x2191: return '^'; /* ↑ */
    case 0x2193: return 'v'; /* ↓ */
    default: return '?';
    }
}

static void set_piece(struct piece *piece, const char *bytes, size_t size, size_t cells)
{
    memcpy(piece->bytes, bytes, size);
    piece->size = size;
    piece->cells = cells;
}

/*
 * Terminals join these with what stands before them to one picture, and do not agree how wide that
 * is: the joiner, the selectors of a variant, the colours of a skin.
 */
static bool is_joined(int32_t point)
{
    return point == 0x200D || point == 0xFE0E || point == 0xFE0F ||
           (point >= 0x1F3FB && point <= 0x1F3FF);
}

static void escape_piece(struct piece *piece, const char *text, size_t size)
{
    piece->size = 0;
    for (size_t i = 0; i < size; i++)
        piece->size +=
            (size_t)snprintf(piece->bytes + piece->size, sizeof piece->bytes - piece->size,
                             "\\x%02x", (unsigned char)text[i]);
    piece->cells = piece->size;
}

/* Reads the character at text, which is not at its end, and returns what follows it. */
static const char *next_piece(const char *text, bool ascii, struct piece *piece)
{
    unsigned char first = (unsigned char)*text;
    size_t at = 0;

    if (first >= 0x20 && first < 0x7F && first != '\\') {
        set_piece(piece, text, 1, 1);
        return text + 1;
    }
    int32_t point = hf__utf8_next((const unsigned char *)text, strnlen(text, 4), &at);
    hf__show(piece->bytes, sizeof piece->bytes, text, at);
    piece->size = piece->cells = strlen(piece->bytes);
    if (point < 0x80 || piece->size != at) /* it was escaped, in ASCII */
        return text + at;
    if (is_joined(point)) {
        escape_piece(piece, text, at);
        return text + at;
    }
    int width = wcwidth((wchar_t)point);
    char plain = ascii_of(point);
    if (ascii)
        set_piece(piece, &plain, 1, 1);
    else if (width < 0)
        set_piece(piece, "\xEF\xBF\xBD", 3, 1);
    else
        piece->cells = (size_t)width;
    return text + at;
}

size_t hf__text_cells(const char *text, size_t most, bool ascii)
{
    struct piece piece;
    size_t cells = 0;

    while (*text != '\0' && cells < most) {
        text = next_piece(text, ascii, &piece);
        cells += piece.cells;
    }
    return cells < most ? cells : most;
}

/* ---- lines ---- */

void hf__frame_begin(hf__frame *frame, size_t width, bool ascii)
{
    frame->count = 0;
    frame->width = width;
    frame->ascii = ascii;
    frame->has_cursor = false;
    frame->broken = false;
}

void hf__frame_free(hf__frame *frame)
{
    for (size_t i = 0; i < frame->room; i++) {
        hf__buf_free(&frame->lines[i].text);
        free(frame->lines[i].spans);
    }
    free(frame->lines);
    *frame = (hf__frame){0};
}

/* Lines are used again in the next frame, with the memory that they own: new ones start as zero. */
static bool grow_lines(hf__frame *frame)
{
    size_t room = frame->room;

    if (!hf__grow(&frame->lines, &frame->room, frame->count + 1, sizeof *frame->lines))
        return false;
    memset(frame->lines + room, 0, (frame->room - room) * sizeof *frame->lines);
    return true;
}

void hf__frame_add_line(hf__frame *frame)
{
    if (frame->broken || !grow_lines(frame)) {
        frame->broken = true;
        return;
    }
    hf__frame_line *line = &frame->lines[frame->count++];
    hf__buf_clear(&line->text);
    line->span_count = 0;
    line->cells = 0;
    line->selected = false;
}

static hf__frame_line *last_line(hf__frame *frame)
{
    if (frame->count == 0)
        hf__frame_add_line(frame);
    return frame->broken ? NULL : &frame->lines[frame->count - 1];
}

static void add_bytes(hf__frame *frame, hf__frame_line *line, hf__ink ink, const char *bytes,
                      size_t size)
{
    hf__span *last = line->span_count > 0 ? &line->spans[line->span_count - 1] : NULL;

    if (last == NULL || last->ink != ink) {
        if (!hf__grow(&line->spans, &line->span_room, line->span_count + 1, sizeof *line->spans)) {
            frame->broken = true;
            return;
        }
        line->spans[line->span_count++] = (hf__span){.ink = ink};
        last = &line->spans[line->span_count - 1];
    }
    hf__buf_add(&line->text, bytes, size);
    last->size += size;
    frame->broken |= line->text.broken;
}

static void add_piece(hf__frame *frame, hf__frame_line *line, hf__ink ink,
                      const struct piece *piece)
{
    add_bytes(frame, line, ink, piece->bytes, piece->size);
    line->cells += piece->cells;
}

static void add_spaces(hf__frame *frame, hf__frame_line *line, hf__ink ink, size_t count)
{
    for (; count > 0 && !frame->broken; count--, line->cells++)
        add_bytes(frame, line, ink, " ", 1);
}

/* Adds what fits into so many cells. Returns how many it took. */
static size_t add_text(hf__frame *frame, hf__frame_line *line, hf__ink ink, const char *text,
                       size_t room)
{
    bool cut = room != SIZE_MAX && hf__text_cells(text, room + 1, frame->ascii) > room;
    size_t start = line->cells;
    size_t end = start + (cut && room > 0 ? room - 1 : room);
    struct piece piece;

    if (room == 0)
        return 0;
    while (*text != '\0' && !frame->broken) {
        text = next_piece(text, frame->ascii, &piece);
        if (cut && piece.cells > end - line->cells)
            break;
        add_piece(frame, line, ink, &piece);
    }
    if (cut) {
        next_piece("…", frame->ascii, &piece);
        add_piece(frame, line, ink, &piece);
    }
    return line->cells - start;
}

static size_t room_left(const hf__frame *frame, const hf__frame_line *line)
{
    if (frame->width == SIZE_MAX)
        return SIZE_MAX;
    return line->cells < frame->width ? frame->width - line->cells : 0;
}

void hf__frame_put(hf__frame *frame, hf__ink ink, const char *text)
{
    hf__frame_line *line = last_line(frame);

    if (line != NULL)
        add_text(frame, line, ink, text, room_left(frame, line));
}

void hf__frame_field(hf__frame *frame, hf__ink ink, const char *text, size_t cells, bool right)
{
    hf__frame_line *line = last_line(frame);

    if (line == NULL)
        return;
    size_t room = room_left(frame, line);
    size_t field = cells < room ? cells : room;
    size_t used = hf__text_cells(text, field + 1, frame->ascii);
    if (right && used < field)
        add_spaces(frame, line, HF__INK_PLAIN, field - used);
    size_t taken = add_text(frame, line, ink, text, right && used < field ? used : field);
    if (!right && taken < field)
        add_spaces(frame, line, HF__INK_PLAIN, field - taken);
    else if (right && used > field && taken < field) /* a wide character did not fit */
        add_spaces(frame, line, HF__INK_PLAIN, field - taken);
}

/* The end of the text that fits into so many cells. */
static const char *end_of(const char *text, size_t cells, bool ascii)
{
    size_t left = hf__text_cells(text, SIZE_MAX, ascii);
    struct piece piece;

    while (left > cells) {
        text = next_piece(text, ascii, &piece);
        left -= piece.cells;
    }
    return text;
}

void hf__frame_label(hf__frame *frame, hf__ink ink, const char *text, size_t cells)
{
    hf__frame_line *line = last_line(frame);
    size_t head = cells / 2 + 1; /* with the ellipsis */

    if (line == NULL)
        return;
    if (cells < 3 || room_left(frame, line) < cells ||
        hf__text_cells(text, cells + 1, frame->ascii) <= cells) {
        hf__frame_field(frame, ink, text, cells, false);
        return;
    }
    size_t end = line->cells + cells;
    (void)add_text(frame, line, ink, text, head);
    (void)add_text(frame, line, ink, end_of(text, cells - head, frame->ascii), cells - head);
    hf__frame_pad(frame, end);
}

void hf__frame_pad(hf__frame *frame, size_t cell)
{
    hf__frame_line *line = last_line(frame);

    if (line == NULL || line->cells >= cell)
        return;
    size_t wanted = cell - line->cells;
    size_t room = room_left(frame, line);
    add_spaces(frame, line, HF__INK_PLAIN, wanted < room ? wanted : room);
}

/* ---- paragraphs ---- */

/* NULL: broken. */
static hf__frame_line *begin_indented(hf__frame *frame, size_t indent)
{
    hf__frame_add_line(frame);
    hf__frame_pad(frame, indent);
    return last_line(frame);
}

static size_t word_cells(const char *text, bool ascii)
{
    struct piece piece;
    size_t cells = 0;

    while (*text != '\0' && *text != ' ') {
        text = next_piece(text, ascii, &piece);
        cells += piece.cells;
    }
    return cells;
}

void hf__frame_wrap(hf__frame *frame, hf__ink ink, const char *text, size_t indent)
{
    hf__frame_line *line = last_line(frame);
    struct piece piece;
    bool word_begins = true;

    if (line == NULL || frame->width == 0)
        return;
    if (indent + 8 > frame->width) /* no room for indents */
        indent = 0;
    while (*text != '\0' && !frame->broken) {
        if (word_begins && line->cells > indent &&
            word_cells(text, frame->ascii) > room_left(frame, line))
            line = begin_indented(frame, indent);
        if (line == NULL)
            return;
        text = next_piece(text, frame->ascii, &piece);
        word_begins = piece.bytes[0] == ' ' && piece.size == 1;
        if (piece.cells > room_left(frame, line)) {
            if (piece.cells > frame->width - indent)
                continue; /* wider than the terminal */
            line = begin_indented(frame, indent);
            if (line == NULL)
                return;
            if (word_begins) /* no line begins with the space that broke it */
                continue;
        }
        add_piece(frame, line, ink, &piece);
    }
}

void hf__frame_keep(hf__frame *frame, size_t from, size_t skip, size_t count)
{
    if (frame->broken || from >= frame->count)
        return;
    size_t there = frame->count - from;
    if (skip > there)
        skip = there;
    if (count > there - skip)
        count = there - skip;
    for (size_t i = 0; i < count && skip > 0; i++) {
        hf__frame_line moved = frame->lines[from + skip + i];
        frame->lines[from + skip + i] = frame->lines[from + i];
        frame->lines[from + i] = moved;
    }
    frame->count = from + count;
}
