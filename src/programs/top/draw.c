#include <inttypes.h>

#include "programs/top/cell.h"
#include "programs/top/detail.h"
#include "programs/top/frame.h"
#include "programs/top/list.h"
#include "programs/top/top.h"

enum {
    ROWS_LEAST = 3,   /* rows that the list gets before anything else, */
    ROWS_ENOUGH = 10, /* and before a second alert */
    ALERTS = 3,
};

/* ---- the head ---- */

/* Puts the text on the right, if the text on the left leaves room for it. */
static void put_right(hf__frame *frame, hf__ink ink, const char *text)
{
    size_t cells = hf__text_cells(text, SIZE_MAX, frame->ascii);
    size_t used = frame->count > 0 ? frame->lines[frame->count - 1].cells : 0;

    if (frame->width == SIZE_MAX)
        hf__frame_put(frame, HF__INK_PLAIN, "  ");
    else if (used + cells + 1 > frame->width)
        return;
    else
        hf__frame_pad(frame, frame->width - cells);
    hf__frame_put(frame, ink, text);
}

static void put_store(const hf__top *top, hf__frame *frame)
{
    const hf__snapshot *seen = top->snapshot;
    int64_t age = top->now_ms - seen->taken_ms;
    hf__buf right = {0};

    hf__frame_add_line(frame);
    if (top->paused)
        hf__buf_puts(&right, "PAUSED · ");
    hf__buf_puts(&right, "every ");
    hf__put_age(&right, top->refresh_ms, false);
    hf__buf_puts(&right, " · ");
    if (age < 1000)
        hf__buf_puts(&right, "just now");
    else
        hf__put_age(&right, age, false);
    hf__buf_puts(&right, age < 1000 ? "" : " old");
    size_t cells = right.broken ? 0 : hf__text_cells(right.data, SIZE_MAX, frame->ascii);
    hf__frame_put(frame, HF__INK_BOLD, "holdfast  ");
    if (frame->width > cells + 24)
        hf__frame_field(frame, HF__INK_PLAIN, seen->store,
                        hf__text_cells(seen->store, frame->width - cells - 12, frame->ascii),
                        false);
    bool stale = age > 3 * top->refresh_ms + 2000;
    if (!right.broken)
        put_right(frame,
                  top->paused ? HF__INK_WARNING
                  : stale     ? HF__INK_PROBLEM
                              : HF__INK_DIM,
                  right.data);
    hf__buf_free(&right);
}

/* One number of the summary, unless it would be cut. */
static void put_figure(hf__frame *frame, hf__ink ink, hf__buf *text)
{
    const hf__frame_line *line = &frame->lines[frame->count - 1];
    size_t cells = text->broken ? SIZE_MAX : hf__text_cells(text->data, SIZE_MAX, frame->ascii);
    size_t between = line->cells > 0 ? 3 : 0;

    if (!frame->broken &&
        (frame->width == SIZE_MAX ||
         (cells < frame->width && line->cells + between + cells <= frame->width))) {
        hf__frame_put(frame, HF__INK_DIM, between > 0 ? " · " : "");
        hf__frame_put(frame, ink, text->broken ? "" : text->data);
    }
    hf__buf_clear(text);
}

static void put_gaps(hf__frame *frame, const hf__snapshot *seen, hf__buf *text)
{
    if (seen->gaps_unknown && seen->gaps == 0)
        hf__buf_puts(text, "gaps unknown");
    else
        hf__buf_printf(text, "%s%zu %s", seen->gaps_unknown ? "at least " : "", seen->gaps,
                       seen->gaps == 1 ? "gap" : "gaps");
    if (seen->missing_ledgers > 0)
        hf__buf_printf(text, " (%" PRId64 " ledgers)", seen->missing_ledgers);
    put_figure(frame, seen->gaps > 0 || seen->gaps_unknown ? HF__INK_PROBLEM : HF__INK_PLAIN, text);
}

static void put_figures(const hf__top *top, hf__frame *frame)
{
    const hf__snapshot *seen = top->snapshot;
    hf__buf text = {0};

    hf__frame_add_line(frame);
    if (frame->broken)
        return;
    hf__buf_printf(&text, "%zu held", seen->held);
    put_figure(frame, HF__INK_PLAIN, &text);
    hf__buf_printf(&text, "%zu waiting", seen->waiting);
    put_figure(frame, seen->waiting > 0 ? HF__INK_WARNING : HF__INK_PLAIN, &text);
    hf__buf_puts(&text, "longest wait ");
    hf__put_age(&text, seen->longest_wait_ms, false);
    if (seen->waiting > 0)
        put_figure(frame, HF__INK_WARNING, &text);
    hf__buf_clear(&text);
    if (seen->losses_unknown)
        hf__buf_puts(&text, "unknown lost in 24 h");
    else
        hf__buf_printf(&text, "%" PRIu64 " lost in 24 h", seen->losses_24h);
    put_figure(frame, seen->losses_24h > 0 ? HF__INK_PROBLEM : HF__INK_PLAIN, &text);
    put_gaps(frame, seen, &text);
    hf__buf_printf(&text, "%zu unregistered", seen->unregistered);
    if (seen->registry != NULL)
        put_figure(frame, seen->unregistered > 0 ? HF__INK_WARNING : HF__INK_PLAIN, &text);
    hf__buf_free(&text);
}

/* Sentences worth a line of their own. That the store is away hides what was seen before. */
static size_t count_alerts(const hf__top *top)
{
    const hf__snapshot *seen = top->snapshot;
    size_t count = 0;

    if (seen->problem[0] != '\0')
        return 1;
    while (count < seen->attention_count && seen->attention[count].urgency > HF__URGENCY_NOTE)
        count++;
    return count;
}

static void put_away(const hf__top *top, hf__buf *text)
{
    const hf__snapshot *seen = top->snapshot;

    hf__buf_puts(text, "store away for ");
    hf__put_age(text,
                top->now_ms > seen->problem_since_ms ? top->now_ms - seen->problem_since_ms : 0,
                false);
    hf__buf_printf(text, ": %s", seen->problem);
}

/* The last one says how many more there are. */
static void put_alerts(const hf__top *top, hf__frame *frame, size_t lines)
{
    const hf__snapshot *seen = top->snapshot;

    for (size_t i = 0; i < lines; i++) {
        bool is_away = seen->problem[0] != '\0';
        bool is_problem = is_away || seen->attention[i].urgency == HF__URGENCY_PROBLEM;
        hf__buf text = {0};
        if (is_away)
            put_away(top, &text);
        else
            hf__buf_puts(&text, seen->attention[i].text);
        if (!is_away && i + 1 == lines && seen->attention_count > lines)
            hf__buf_printf(&text, " (and %zu more)", seen->attention_count - lines);
        hf__frame_add_line(frame);
        hf__frame_put(frame, is_problem ? HF__INK_PROBLEM : HF__INK_WARNING,
                      text.broken ? "" : text.data);
        hf__buf_free(&text);
    }
}

static void put_order(const hf__standing *standing, const hf__list_column *column, hf__buf *out)
{
    hf__buf_puts(out, column->descending != standing->reversed ? " ▼" : " ▲");
}

/* Shows the filter, or else the order if its column is not visible. */
static void put_choices(const hf__top *top, hf__frame *frame, hf__buf *text)
{
    const hf__standing *standing = &top->standings[top->tab];
    const hf__list_column *column = &hf__list_of(top)->columns[standing->sort];
    size_t cells[HF__COLUMNS_MAX] = {0};

    hf__layout(top, frame->width, cells);
    hf__buf_clear(text);
    if (top->filter.size > 0 && top->mode != HF__MODE_FILTER) {
        hf__buf_printf(text, "/%s", top->filter.text);
    } else if (cells[standing->sort] == 0) {
        hf__buf_printf(text, "by %s", column->word);
        put_order(standing, column, text);
    }
    if (text->length > 0 && !text->broken)
        put_right(frame, top->filter.size > 0 ? HF__INK_WARNING : HF__INK_DIM, text->data);
}

static void put_tabs(const hf__top *top, hf__frame *frame)
{
    bool brief = frame->width < 60;
    hf__buf text = {0};

    hf__frame_add_line(frame);
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++) {
        const hf__list *list = hf__list_at(tab);
        hf__buf_clear(&text);
        hf__buf_printf(&text, " %d %s ", (int)tab + 1, list->title);
        if (!brief)
            hf__buf_printf(&text, "%zu ", list->figure(top));
        if (!text.broken)
            hf__frame_put(frame, tab == top->tab ? HF__INK_TAB_CHOSEN : HF__INK_PLAIN, text.data);
    }
    put_choices(top, frame, &text);
    hf__buf_free(&text);
}

/* ---- the list ---- */

static bool is_right(const hf__list_column *column)
{
    return column->kind != HF__TEXT && column->kind != HF__MOMENT && column->show == NULL;
}

static void put_heading(const hf__top *top, hf__frame *frame, const size_t cells[HF__COLUMNS_MAX])
{
    const hf__list *list = hf__list_of(top);
    const hf__standing *standing = &top->standings[top->tab];
    hf__buf text = {0};
    bool first = true;

    hf__frame_add_line(frame);
    for (size_t i = 0; list->columns[i].title != NULL; i++) {
        const hf__list_column *column = &list->columns[i];
        if (cells[i] == 0)
            continue;
        hf__frame_put(frame, HF__INK_HEAD, first ? "" : "  ");
        first = false;
        hf__buf_clear(&text);
        hf__buf_puts(&text, column->title);
        if (i == standing->sort)
            put_order(standing, column, &text);
        hf__frame_field(frame, HF__INK_HEAD, text.broken ? "" : text.data, cells[i],
                        is_right(column));
    }
    hf__buf_free(&text);
}

static void put_row(const hf__top *top, hf__frame *frame, const size_t cells[HF__COLUMNS_MAX],
                    size_t row, hf__buf *text)
{
    const hf__list *list = hf__list_of(top);
    bool first = true;

    hf__frame_add_line(frame);
    for (size_t i = 0; list->columns[i].title != NULL; i++) {
        const hf__list_column *column = &list->columns[i];
        if (cells[i] == 0)
            continue;
        hf__frame_put(frame, HF__INK_PLAIN, first ? "" : "  ");
        first = false;
        hf__list_show(top, column, row, text);
        const char *shown = text->broken ? "" : text->data;
        if (column->is_label)
            hf__frame_label(frame, column->value(top, row).ink, shown, cells[i]);
        else
            hf__frame_field(frame, column->value(top, row).ink, shown, cells[i], is_right(column));
    }
}

static void put_rows(const hf__top *top, hf__frame *frame, const size_t cells[HF__COLUMNS_MAX],
                     size_t from, size_t count)
{
    size_t chosen = top->standings[top->tab].index;
    hf__buf text = {0};

    for (size_t i = from; i < top->row_count && i - from < count; i++) {
        put_row(top, frame, cells, top->rows[i], &text);
        if (!frame->broken)
            frame->lines[frame->count - 1].selected = i == chosen;
    }
    hf__buf_free(&text);
    if (top->row_count > 0 || count == 0)
        return;
    hf__frame_add_line(frame);
    hf__frame_put(frame, HF__INK_DIM,
                  top->filter.size > 0 ? "Nothing matches the filter." : hf__list_of(top)->empty);
}

static void keep_chosen_in_sight(hf__top *top)
{
    hf__standing *standing = &top->standings[top->tab];
    size_t page = top->page > 0 ? top->page : 1;

    if (standing->index < standing->scroll)
        standing->scroll = standing->index;
    if (standing->index - standing->scroll >= page)
        standing->scroll = standing->index - page + 1;
    if (top->row_count <= page)
        standing->scroll = 0;
    else if (standing->scroll > top->row_count - page)
        standing->scroll = top->row_count - page;
}

/* ---- the foot ---- */

static void put_keys(hf__frame *frame, const char *const *keys)
{
    for (; *keys != NULL; keys += 2) {
        size_t cells = hf__text_cells(keys[0], SIZE_MAX, frame->ascii) +
                       hf__text_cells(keys[1], SIZE_MAX, frame->ascii) + 3;
        if (frame->broken || frame->lines[frame->count - 1].cells + cells > frame->width + 2)
            return;
        hf__frame_put(frame, HF__INK_KEY, keys[0]);
        hf__frame_put(frame, HF__INK_DIM, " ");
        hf__frame_put(frame, HF__INK_DIM, keys[1]);
        if (keys[2] != NULL)
            hf__frame_put(frame, HF__INK_DIM, "  ");
    }
}

static const char *const *keys_of(const hf__top *top)
{
    static const char *const list[] = {"q",     "quit",   "?",     "help",  "/", "filter",
                                       "enter", "detail", "s",     "sort",  "K", "end",
                                       "y",     "copy",   "space", "pause", NULL};
    static const char *const detail[] = {"esc",  "back", "K",      "end", "y",
                                         "copy", "↑↓",   "scroll", NULL};
    static const char *const confirm[] = {"enter", "end it", "esc", "leave it alone", NULL};
    static const char *const help[] = {"esc", "back", "↑↓", "scroll", NULL};

    switch (top->mode) {
    case HF__MODE_DETAIL: return detail;
    case HF__MODE_CONFIRM: return confirm;
    case HF__MODE_HELP: return help;
    default: return list;
    }
}

static void put_foot(const hf__top *top, hf__frame *frame)
{
    hf__frame_add_line(frame);
    if (top->mode == HF__MODE_FILTER) {
        hf__frame_put(frame, HF__INK_KEY, "/");
        hf__frame_put(frame, HF__INK_BOLD, top->filter.text);
        frame->has_cursor = true;
        frame->cursor_line = frame->count > 0 ? frame->count - 1 : 0;
    } else if (top->message[0] != '\0') {
        hf__frame_put(frame, top->message_ink, top->message);
    } else if (top->broken) {
        hf__frame_put(frame, HF__INK_PROBLEM, "out of memory: not all is shown");
    } else {
        put_keys(frame, keys_of(top));
    }
}

/* ---- help ---- */

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

static void put_help(hf__frame *frame)
{
    enum { KEYS_CELLS = 11 };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (lines[i].text == NULL && frame->count > 0)
            hf__frame_add_line(frame);
        hf__frame_add_line(frame);
        if (lines[i].text == NULL) {
            hf__frame_put(frame, HF__INK_HEAD, lines[i].keys);
            continue;
        }
        hf__frame_put(frame, HF__INK_PLAIN, "  ");
        hf__frame_field(frame, HF__INK_KEY, lines[i].keys, KEYS_CELLS, false);
        hf__frame_wrap(frame, HF__INK_PLAIN, lines[i].text, KEYS_CELLS + 2);
    }
}

/* ---- the whole picture ---- */

/* The lines for which there is room, the most important ones first. */
struct parts {
    bool foot, alert, heading, tabs, figures, store;
    size_t alerts; /* lines */
};

static size_t take(bool *part, bool wanted, size_t left)
{
    *part = wanted && left > ROWS_LEAST;
    return left - *part;
}

static struct parts choose_parts(const hf__top *top, size_t height, size_t *left)
{
    bool asks = top->mode == HF__MODE_FILTER || top->message[0] != '\0';
    bool is_list = top->mode == HF__MODE_LIST || top->mode == HF__MODE_FILTER;
    struct parts parts = {0};

    *left = height;
    if (height > 1 && asks) { /* a question is shown even if there is little room */
        parts.foot = true;
        --*left;
    }
    if (height > 2 && top->snapshot->problem[0] != '\0') {
        parts.alert = true;
        --*left;
    }
    *left = take(&parts.heading, is_list, *left);
    *left = take(&parts.figures, true, *left);
    *left = take(&parts.tabs, true, *left);
    if (!parts.alert)
        *left = take(&parts.alert, count_alerts(top) > 0, *left);
    *left = take(&parts.store, true, *left);
    if (!parts.foot)
        *left = take(&parts.foot, true, *left);
    parts.alerts = parts.alert;
    while (parts.alert && parts.alerts < ALERTS && parts.alerts < count_alerts(top) &&
           *left > ROWS_ENOUGH) {
        parts.alerts++;
        --*left;
    }
    return parts;
}

static void put_body(hf__top *top, hf__frame *frame, bool heading)
{
    size_t cells[HF__COLUMNS_MAX] = {0};
    size_t from = frame->count;

    if (top->mode == HF__MODE_LIST || top->mode == HF__MODE_FILTER) {
        hf__layout(top, frame->width, cells);
        keep_chosen_in_sight(top);
        if (heading)
            put_heading(top, frame, cells);
        put_rows(top, frame, cells, top->standings[top->tab].scroll, top->page);
        return;
    }
    if (top->mode == HF__MODE_CONFIRM)
        hf__confirm_put(top, frame);
    else if (top->mode == HF__MODE_HELP)
        put_help(frame);
    else
        hf__detail_put(top, frame);
    top->detail_lines = frame->count - from;
    size_t most = top->detail_lines > top->page ? top->detail_lines - top->page : 0;
    if (top->detail_scroll > most)
        top->detail_scroll = most;
    size_t skip = top->mode == HF__MODE_CONFIRM ? most : top->detail_scroll; /* where one types */
    hf__frame_keep(frame, from, skip, top->page);
    if (frame->has_cursor)
        frame->cursor_line = frame->count - 1;
}

void hf__top_draw(hf__top *top, size_t width, size_t height, hf__frame *frame)
{
    hf__frame_begin(frame, width, top->ascii);
    if (top->snapshot == NULL || height == 0 || width == 0)
        return;
    struct parts parts = choose_parts(top, height, &top->page);
    if (parts.store)
        put_store(top, frame);
    if (parts.figures)
        put_figures(top, frame);
    put_alerts(top, frame, parts.alerts);
    if (parts.tabs)
        put_tabs(top, frame);
    put_body(top, frame, parts.heading);
    while (frame->count < height - parts.foot && !frame->broken)
        hf__frame_add_line(frame);
    if (parts.foot)
        put_foot(top, frame);
}

void hf__top_print(hf__top *top, size_t width, hf__frame *frame)
{
    size_t cells[HF__COLUMNS_MAX] = {0};

    hf__frame_begin(frame, width, top->ascii);
    hf__layout(top, width, cells);
    hf__frame_add_line(frame);
    hf__frame_put(frame, HF__INK_BOLD, top->snapshot->store);
    put_figures(top, frame);
    size_t alerts = count_alerts(top);
    put_alerts(top, frame, alerts < ALERTS ? alerts : ALERTS);
    hf__frame_add_line(frame);
    put_heading(top, frame, cells);
    put_rows(top, frame, cells, 0, SIZE_MAX);
}
