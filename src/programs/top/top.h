/*
 * What a person at a terminal looks at: a tab, a filter, an order, a chosen row. None of it needs
 * a terminal: keys go in, frames come out, and what only the caller can do comes back as an act. A
 * top belongs to one thread.
 */
#ifndef HF_TOP_TOP_H
#define HF_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "programs/top/frame.h"
#include "programs/top/tree.h"
#include "programs/view/snapshot.h"

/* ---- a line that somebody types ---- */

enum { HF__ENTRY_ROOM = 512 };

typedef struct hf__entry {
    char text[HF__ENTRY_ROOM];
    size_t size;
} hf__entry;

/* Returns true when it has used the key: a character, backspace, Ctrl-U or Ctrl-W. */
bool hf__entry_press(hf__entry *entry, int32_t key);
void hf__entry_set(hf__entry *entry, const char *text); /* what does not fit is cut */

/* ---- keys: a character is its code point ---- */

enum {
    HF__KEY_UP = 0x110000,
    HF__KEY_DOWN,
    HF__KEY_LEFT,
    HF__KEY_RIGHT,
    HF__KEY_PAGE_UP,
    HF__KEY_PAGE_DOWN,
    HF__KEY_HOME,
    HF__KEY_END,
    HF__KEY_TAB,
    HF__KEY_BACK_TAB,
    HF__KEY_ENTER,
    HF__KEY_ESCAPE,
    HF__KEY_BACKSPACE,
};

/* ---- what is shown ---- */

typedef enum hf__tab {
    HF__TAB_LOCKS,
    HF__TAB_WAITS,
    HF__TAB_INGEST,
    HF__TAB_EVENTS,
    HF__TAB_COUNT,
} hf__tab;

/* Identifies a row when it moves, or when a new snapshot comes. */
typedef struct hf__row_id {
    int64_t a, b, c;
} hf__row_id;

typedef struct hf__standing {
    hf__row_id chosen;
    bool has_chosen;
    size_t index;  /* of the chosen row */
    size_t scroll; /* the first row that is shown */
    size_t sort;   /* column */
    bool reversed;
} hf__standing;

enum { HF__WHO_ROOM = 256, HF__COLUMNS_MAX = 12, HF__TYPED_MOST = 120 };

/* A holder that could be ended, and the lock that would then be free. */
typedef struct hf__victim {
    int64_t key;
    hf_space space;
    int party;                  /* 0: a lease, whose term is token */
    int64_t token;              /* of its hold; 0: none */
    char title[HF__ENTRY_ROOM]; /* the lock as it is shown, which must be typed */
    char who[HF__WHO_ROOM];
    size_t holds; /* how many locks that party holds */
    size_t keeps; /* how many parties wait for it directly */
} hf__victim;

typedef enum hf__mode_of_top {
    HF__MODE_LIST,
    HF__MODE_FILTER, /* the list, while its filter is typed */
    HF__MODE_DETAIL,
    HF__MODE_CONFIRM,
    HF__MODE_HELP,
} hf__mode_of_top;

typedef struct hf__top {
    const hf__snapshot *snapshot; /* borrowed; NULL: none yet */
    int64_t now_ms;               /* Unix time of the picture */
    bool ascii;
    bool paused;
    int64_t refresh_ms;
    hf__tab tab;
    hf__standing standings[HF__TAB_COUNT];
    hf__entry filter;
    hf__mode_of_top mode;
    hf__mode_of_top under; /* the mode to which help and confirmation return */

    hf__tree tree;
    size_t *rows; /* of the tab, filtered and sorted */
    size_t row_count, row_room;
    size_t naturals[HF__COLUMNS_MAX]; /* the widest cell of each column */
    bool blanks[HF__COLUMNS_MAX];     /* there is nothing in it */
    size_t page;                      /* rows that the last frame had room for */

    hf__row_id detail; /* the row of the tab that the detail is about */
    char detail_title[HF__ENTRY_ROOM];
    size_t detail_scroll, detail_lines;

    hf__victim *victims;
    size_t victim_count, victim;
    hf__entry typed;

    char message[512]; /* the result of the last key */
    hf__ink message_ink;
    bool broken; /* out of memory: the picture is not complete */
} hf__top;

typedef enum hf__act {
    HF__ACT_NONE,
    HF__ACT_QUIT,
    HF__ACT_PAUSE,   /* top->paused has changed */
    HF__ACT_REFRESH, /* top->refresh_ms has changed */
    HF__ACT_COPY,    /* hf__top_copied to the clipboard */
    HF__ACT_END,     /* top->victims[top->victim] was confirmed */
    HF__ACT_REDRAW,  /* draw everything: another program wrote to the terminal */
} hf__act;

enum { HF__REFRESH_LEAST_MS = 250, HF__REFRESH_MOST_MS = 60000 };

void hf__top_init(hf__top *top);
void hf__top_free(hf__top *top);

/*
 * Words of --tab and --sort. False: there is no such word. A '-' before a column reverses the
 * order.
 */
bool hf__top_choose_tab(hf__top *top, const char *word);
bool hf__top_choose_sort(hf__top *top, const char *word);
void hf__top_choose_filter(hf__top *top, const char *text);
/* "locks, waits, ingest, events", and the columns of the tab. */
void hf__top_list_tabs(hf__buf *out);
void hf__top_list_columns(const hf__top *top, hf__buf *out);

/* Shows this snapshot from now on. It is borrowed until the next call. */
void hf__top_see(hf__top *top, const hf__snapshot *snapshot);

/* Does what the key means, and returns what the caller has to do. */
hf__act hf__top_press(hf__top *top, int32_t key);
/* Shows a message until the next key. */
void hf__top_say(hf__top *top, hf__ink ink, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes the label of the chosen row, or its key, without escapes. Returns the text of out. */
const char *hf__top_copied(const hf__top *top, hf__buf *out);

void hf__top_draw(hf__top *top, size_t width, size_t height, hf__frame *frame);

/* For scripts: every row, without what only people need. */
void hf__top_print(hf__top *top, size_t width, hf__frame *frame);
void hf__top_print_json(const hf__top *top, hf__json *json);

/* Shows whom the confirmation would end, what that costs, and what has been typed. */
void hf__confirm_put(const hf__top *top, hf__frame *frame);

#endif
