#include "programs/top/help.h"

static const struct {
    const char *keys, *text; /* text NULL: a heading */
} lines[] = {
    {"Where", NULL},
    {"1 2 3 4", "Locks, Waits, Ingest, Events"},
    {"tab ← →", "the next tab, the one before"},
    {"↑ ↓ k j", "one row"},
    {"PgUp PgDn", "one page; Home and End, or g and G: the first row, the last"},
    {"What", NULL},
    {"/", "filter: part of a label, name, key, holder, host; Enter keeps it, Esc clears it"},
    {"s", "order by the next column; r: the other way round"},
    {"space", "pause, and go on"},
    {"+ -", "refresh less often, more often"},
    {"The chosen row", NULL},
    {"enter", "all that is known of it; Esc goes back"},
    {"y", "copy its label, or its key, to the clipboard of the terminal"},
    {"K", "end the session or process that holds it, after the label is typed"},
    {"And", NULL},
    {"h ?", "this help"},
    {"Ctrl-L", "draw all of it again"},
    {"q", "quit"},
};

void hf__help_put(hf__frame *frame)
{
    enum { KEYS_CELLS = 11 };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (lines[i].text == NULL && frame->count > 0)
            hf__frame_line(frame);
        hf__frame_line(frame);
        if (lines[i].text == NULL) {
            hf__frame_put(frame, HF__INK_HEAD, lines[i].keys);
            continue;
        }
        hf__frame_put(frame, HF__INK_PLAIN, "  ");
        hf__frame_field(frame, HF__INK_KEY, lines[i].keys, KEYS_CELLS, false);
        hf__frame_wrap(frame, HF__INK_PLAIN, lines[i].text, KEYS_CELLS + 2);
    }
}
