/*
 * A picture of the terminal: lines of text with their inks, made without a terminal. All text is
 * escaped as hf__show does and measured in cells, so that no label can move the cursor or the
 * columns. After a failed allocation a frame is broken and ignores further calls. Zero-initialise
 * it; it belongs to one thread.
 */
#ifndef HF_TOP_FRAME_H
#define HF_TOP_FRAME_H

#include "base/buf.h"

typedef enum hf__ink {
    HF__INK_PLAIN,
    HF__INK_DIM,
    HF__INK_BOLD,
    HF__INK_HEAD, /* titles of columns */
    HF__INK_GOOD,
    HF__INK_WARNING,
    HF__INK_PROBLEM,
    HF__INK_TAB_CHOSEN,
    HF__INK_KEY, /* names of keys */
    HF__INK_COUNT,
} hf__ink;

typedef struct hf__span {
    size_t size; /* bytes of the line's text */
    hf__ink ink;
} hf__span;

typedef struct hf__frame_line {
    hf__buf text;
    hf__span *spans;
    size_t span_count, span_room;
    size_t cells;
    bool selected;
} hf__frame_line;

typedef struct hf__frame {
    hf__frame_line *lines;
    size_t count, room; /* lines beyond count keep their memory */
    size_t width;       /* cells; SIZE_MAX: no limit */
    bool ascii;         /* the terminal can show nothing else */
    bool has_cursor;    /* it is at the end of cursor_line, where somebody types */
    size_t cursor_line;
    bool broken;
} hf__frame;

void hf__frame_begin(hf__frame *frame, size_t width, bool ascii);
void hf__frame_free(hf__frame *frame);

void hf__frame_add_line(hf__frame *frame); /* begins a new line */

/* Text that does not fit is cut with an ellipsis. */
void hf__frame_put(hf__frame *frame, hf__ink ink, const char *text);

/* Puts the text into exactly so many cells. */
void hf__frame_field(hf__frame *frame, hf__ink ink, const char *text, size_t cells, bool right);
/* The same on the left, cut in the middle: labels often differ at their ends only. */
void hf__frame_label(hf__frame *frame, hf__ink ink, const char *text, size_t cells);

/* Puts spaces up to this cell; nothing if the line is longer already. */
void hf__frame_pad(hf__frame *frame, size_t cell);

/*
 * Uses as many lines as it needs, broken at spaces. All but the first begin at the cell `indent`.
 */
void hf__frame_wrap(hf__frame *frame, hf__ink ink, const char *text, size_t indent);

/* Of the lines from `from` on, drops the first `skip` and keeps `count`. */
void hf__frame_keep(hf__frame *frame, size_t from, size_t skip, size_t count);

/* How many cells the text takes when it is put, counted up to `most`. */
size_t hf__text_cells(const char *text, size_t most, bool ascii);

#endif
