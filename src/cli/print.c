#include "cli/print.h"

#include <inttypes.h>
#include <langinfo.h>
#include <libsmartcols/libsmartcols.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

enum { LEAST_OF_CUT = 10 }; /* a text that is cut shorter says nothing */

/* What fit_to_terminal needs to know about a column. */
struct shape {
    size_t title;  /* its width */
    size_t widest; /* of the cells, without the title */
    bool may_be_cut;
    unsigned rank;
};

struct table {
    struct libscols_table *table;
    struct libscols_line *line; /* the last row */
    struct shape *shapes;
    size_t count; /* of columns */
    bool broken;
};

void prepare_for_tables(void)
{
    const char *locale = setlocale(LC_CTYPE, "");

    /* Services and containers often have no locale. Labels are UTF-8 there, too. */
    if (locale == NULL || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

bool output_is_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static int flags_of(const struct column *column)
{
    return (column->to_the_right ? SCOLS_FL_RIGHT : 0) | (column->may_be_cut ? SCOLS_FL_TRUNC : 0);
}

static size_t width_of(const char *text)
{
    wchar_t wide[256];
    size_t count = mbstowcs(wide, text, sizeof wide / sizeof wide[0]);
    int width = count == (size_t)-1 ? -1 : wcswidth(wide, count);

    return width >= 0 ? (size_t)width : strlen(text); /* a lower bound: it is shown escaped */
}

static void add_column(struct table *table, const struct column *column)
{
    table->shapes[table->count++] = (struct shape){
        .title = width_of(column->title),
        .may_be_cut = column->may_be_cut,
        .rank = column->rank,
    };
    if (scols_table_new_column(table->table, column->title, 0, flags_of(column)) == NULL)
        table->broken = true;
}

struct table *table_new(const struct column *columns)
{
    struct table *table = calloc(1, sizeof *table);
    size_t count = 0;

    if (table == NULL)
        return NULL;
    while (columns[count].title != NULL)
        count++;
    table->table = scols_new_table();
    table->shapes = calloc(count + 1, sizeof *table->shapes);
    if (table->table == NULL || table->shapes == NULL) {
        table_free(table);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        add_column(table, &columns[i]);
    return table;
}

void table_add_row(struct table *table)
{
    if (table == NULL || table->broken)
        return;
    table->line = scols_table_new_line(table->table, NULL);
    table->broken = table->line == NULL;
}

/* What turns the line around, or is not seen, as "\u202e"; libsmartcols escapes control bytes. */
static void make_safe(const char *text, hf__buf *out)
{
    size_t size = strlen(text);

    for (size_t at = 0, start = 0; at < size; start = at) {
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point >= 0x80 && hf__is_unsafe(point))
            hf__buf_printf(out, "\\u%04x", (unsigned)point);
        else
            hf__buf_add(out, text + start, at - start);
    }
}

void table_set(struct table *table, size_t column, const char *text)
{
    hf__buf safe = {0};

    if (table == NULL || table->broken)
        return;
    make_safe(text, &safe);
    const char *shown = safe.length > 0 ? safe.data : "";
    table->broken = safe.broken || scols_line_set_data(table->line, column, shown) != 0;
    size_t width = width_of(shown);
    if (column < table->count && width > table->shapes[column].widest)
        table->shapes[column].widest = width;
    hf__buf_free(&safe);
}

static size_t least_width(const struct shape *shape)
{
    bool cut = shape->may_be_cut && shape->widest > LEAST_OF_CUT;
    size_t least = cut ? LEAST_OF_CUT : shape->widest;

    return least > shape->title ? least : shape->title;
}

static bool is_hidden(const struct table *table, size_t column)
{
    return scols_column_is_hidden(scols_table_get_column(table->table, column)) != 0;
}

static size_t least_room(const struct table *table)
{
    size_t room = 0;

    for (size_t i = 0; i < table->count; i++)
        if (!is_hidden(table, i))
            room += least_width(&table->shapes[i]) + (room > 0);
    return room;
}

/* The column to hide next; table->count: none may be hidden. */
static size_t least_wanted(const struct table *table)
{
    size_t found = table->count;

    for (size_t i = 0; i < table->count; i++) {
        const struct shape *shape = &table->shapes[i];
        const struct shape *best = found < table->count ? &table->shapes[found] : NULL;
        if (shape->rank == 0 || is_hidden(table, i))
            continue;
        if (best == NULL || (best->widest > 0 && shape->widest == 0) ||
            ((best->widest == 0) == (shape->widest == 0) && shape->rank > best->rank))
            found = i;
    }
    return found;
}

/* Hides columns until the rest fits: missing columns are easier to read than wrapped lines. */
static void fit_to_terminal(const struct table *table)
{
    size_t room = scols_table_get_termwidth(table->table);

    while (isatty(STDOUT_FILENO) && least_room(table) > room) {
        size_t column = least_wanted(table);
        if (column == table->count)
            break;
        struct libscols_column *hidden = scols_table_get_column(table->table, column);
        (void)scols_column_set_flags(hidden, scols_column_get_flags(hidden) | SCOLS_FL_HIDDEN);
    }
}

/* ---- cutting: libsmartcols would cut without a sign, and the end, by which labels differ ---- */

/* How much of the text, from its beginning or to its end, fits into so many cells. */
static size_t fitting(const char *text, size_t cells, bool from_end)
{
    size_t size = strlen(text), fits = 0, used = 0;
    wchar_t wide;
    size_t total = width_of(text);

    for (size_t at = 0; at < size;) {
        int length = mbtowc(&wide, text + at, size - at);
        int width = length > 0 ? wcwidth(wide) : 1;
        used += width > 0 ? (size_t)width : 0;
        at += length > 0 ? (size_t)length : 1;
        if (from_end && total - used <= cells)
            return size - at;
        if (!from_end && used <= cells)
            fits = at;
    }
    return from_end ? 0 : fits;
}

static void cut_cell(struct table *table, struct libscols_line *line, size_t column, size_t cells)
{
    const char *text =
        scols_line_get_column_data(line, scols_table_get_column(table->table, column));
    size_t head = cells / 2;
    hf__buf cut = {0};

    if (text == NULL || width_of(text) <= cells)
        return;
    size_t tail = fitting(text, cells - head - 1, true);
    hf__buf_add(&cut, text, fitting(text, head, false));
    hf__buf_puts(&cut, output_is_utf8() ? "…" : "~");
    hf__buf_puts(&cut, text + strlen(text) - tail);
    if (cut.broken || scols_line_set_data(line, column, cut.data) != 0)
        table->broken = true;
    hf__buf_free(&cut);
}

/* The widths of columns that may be cut: one cell after the other, until nothing is left. */
static void share_room(const struct table *table, size_t room, size_t *cells)
{
    size_t left = room > least_room(table) ? room - least_room(table) : 0;
    bool any = true;

    for (size_t i = 0; i < table->count; i++)
        cells[i] = least_width(&table->shapes[i]);
    while (left > 0 && any) {
        any = false;
        for (size_t i = 0; i < table->count && left > 0; i++)
            if (!is_hidden(table, i) && cells[i] < table->shapes[i].widest) {
                cells[i]++;
                left--;
                any = true;
            }
    }
}

static void cut_to_terminal(struct table *table)
{
    size_t room = scols_table_get_termwidth(table->table);
    size_t *cells = calloc(table->count + 1, sizeof *cells);

    if (cells == NULL)
        table->broken = true;
    if (cells != NULL)
        share_room(table, room, cells);
    for (size_t row = 0; !table->broken && row < scols_table_get_nlines(table->table); row++)
        for (size_t i = 0; i < table->count; i++)
            if (table->shapes[i].may_be_cut && !is_hidden(table, i))
                cut_cell(table, scols_table_get_line(table->table, row), i, cells[i]);
    free(cells);
}

bool table_print(struct table *table)
{
    if (table == NULL || table->broken)
        return false;
    if (scols_table_get_nlines(table->table) == 0)
        return true;
    fit_to_terminal(table);
    if (isatty(STDOUT_FILENO))
        cut_to_terminal(table);
    if (table->broken)
        return false;
    return scols_print_table(table->table) == 0 && fflush(stdout) == 0;
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    scols_unref_table(table->table);
    free(table->shapes);
    free(table);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

bool print_document(hf__json *json, FILE *out)
{
    hf__buf_puts(&json->text, "\n");
    bool written = !json->text.broken &&
                   fwrite(json->text.data, 1, json->text.length, out) == json->text.length &&
                   fflush(out) == 0;
    hf__buf_free(&json->text);
    json->needs_comma = false;
    return written;
}

/* ---- what listings of locks share ------------------------------------------------------------ */

static void split_pair(int64_t key, int32_t pair[2])
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    pair[0] = (int32_t)classid;
    pair[1] = (int32_t)objid;
}

const char *show_key(char out[KEY_SHOWN_MAX], const hf_lock_view *view)
{
    int32_t pair[2];

    split_pair(view->key, pair);
    if (view->space == HF_PAIR)
        snprintf(out, KEY_SHOWN_MAX, "(%" PRId32 ", %" PRId32 ")", pair[0], pair[1]);
    else
        snprintf(out, KEY_SHOWN_MAX, "%" PRId64, view->key);
    return out;
}

const char *shown_name(const hf_lock_view *view)
{
    return view->name[0] != '\0' ? view->name : "(unregistered)";
}

const char *lifetime_name(hf_lifetime lifetime)
{
    return lifetime == HF_LEASE ? "lease" : lifetime == HF_TRANSACTION ? "transaction" : "session";
}

const char *lifetime_of(const hf_lock_view *view)
{
    return view->session_known ? lifetime_name(view->lifetime) : "";
}

void set_number(struct table *table, size_t column, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    if (number != 0)
        table_set(table, column, text);
}

void add_number(hf__json *json, const char *key, int64_t number)
{
    if (number != 0)
        hf__json_put_integer(json, key, number);
    else
        hf__json_put_null(json, key);
}

void add_token(hf__json *json, int64_t token)
{
    if (token != 0) {
        hf__json_put_big(json, "token", token);
        return;
    }
    hf__json_put_null(json, "token");
    hf__json_put_null(json, "token_text");
}

void add_time(hf__json *json, const char *key, int64_t ms)
{
    if (ms >= 0)
        hf__json_put_integer(json, key, ms);
    else
        hf__json_put_null(json, key);
}

void add_key(hf__json *json, const hf_lock_view *view)
{
    int32_t pair[2];

    hf__json_put_big(json, "key", view->key);
    if (view->space != HF_PAIR) {
        hf__json_put_null(json, "pair");
        return;
    }
    split_pair(view->key, pair);
    hf__json_begin_array(json, "pair");
    hf__json_put_integer(json, NULL, pair[0]);
    hf__json_put_integer(json, NULL, pair[1]);
    hf__json_end_array(json);
}

void add_name(hf__json *json, const hf_lock_view *view)
{
    hf__json_put_text(json, "name", view->name);
    hf__json_put_boolean(json, "registered", view->name[0] != '\0');
    hf__json_put_text(json, "pattern", view->pattern);
}

/* ---- progress -------------------------------------------------------------------------------- */

enum { BAR_EVERY_MS = 100, LINE_EVERY_MS = 10000, BAR_WIDTH = 24 };

void progress_begin(struct progress *progress, const struct report *report, const char *name)
{
    int64_t now = hf__now_ms();

    *progress = (struct progress){.report = report,
                                  .name = name,
                                  .bar = !report->json && isatty(STDERR_FILENO) == 1,
                                  .began_ms = now,
                                  .shown_ms = now};
    if (progress->bar) /* so that the first bar is drawn at once */
        progress->shown_ms -= BAR_EVERY_MS;
}

bool progress_is_due(struct progress *progress, int64_t amount)
{
    int64_t now = hf__now_ms(), passed = now - progress->shown_ms;

    if (passed < (progress->bar ? BAR_EVERY_MS : LINE_EVERY_MS))
        return false;
    double rate = (double)(amount - progress->shown_amount) * 1000.0 / (double)passed;
    progress->rate = progress->rate > 0 ? 0.8 * progress->rate + 0.2 * rate : rate;
    progress->shown_ms = now;
    progress->shown_amount = amount;
    return true;
}

void progress_draw(struct progress *progress, int64_t done, int64_t whole, const char *text)
{
    int filled =
        whole > 0 && done > 0 ? (int)(BAR_WIDTH * (done < whole ? done : whole) / whole) : 0;

    fprintf(stderr, "\r%s [%.*s%.*s] %s\033[K", progress->name, filled, "########################",
            BAR_WIDTH - filled, "                        ", text);
    fflush(stderr);
    progress->drawn = true;
}

void progress_note(struct progress *progress, const char *text)
{
    progress_clear(progress);
    report_note(progress->report, "%s", text);
}

void progress_clear(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}
