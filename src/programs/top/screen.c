#include "programs/top/screen.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "programs/top/top.h"

enum { ESCAPE_MS = 25, ESCAPE = 0x1B, DELETE = 0x7F };

struct hf__screen {
    SCREEN *terminal;
    attr_t inks[HF__INK_COUNT];
    short pairs[HF__INK_COUNT];
    bool has_clipboard;
};

/* ---- opening ---- */

static void choose_attributes(hf__screen *screen)
{
    screen->inks[HF__INK_DIM] = A_DIM;
    screen->inks[HF__INK_BOLD] = A_BOLD;
    screen->inks[HF__INK_HEAD] = A_BOLD;
    screen->inks[HF__INK_WARNING] = A_BOLD;
    screen->inks[HF__INK_PROBLEM] = A_BOLD | A_STANDOUT;
    screen->inks[HF__INK_TAB_CHOSEN] = A_REVERSE | A_BOLD;
    screen->inks[HF__INK_KEY] = A_BOLD;
}

static void choose_colours(hf__screen *screen)
{
    static const short colours[HF__INK_COUNT] = {
        [HF__INK_HEAD] = COLOR_CYAN,      [HF__INK_GOOD] = COLOR_GREEN,
        [HF__INK_WARNING] = COLOR_YELLOW, [HF__INK_PROBLEM] = COLOR_RED,
        [HF__INK_KEY] = COLOR_CYAN,
    };

    if (!has_colors() || start_color() != OK || use_default_colors() != OK)
        return;
    for (int ink = 0; ink < HF__INK_COUNT; ink++) {
        short pair = (short)(ink + 1); /* 0 is the terminal's own */
        if (colours[ink] == 0 || init_pair(pair, colours[ink], -1) != OK)
            continue;
        screen->pairs[ink] = pair;
        screen->inks[ink] &= ~A_STANDOUT;
    }
    screen->inks[HF__INK_WARNING] = A_NORMAL;
}

static void set_modes(void)
{
    cbreak();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_MS);
    curs_set(0);
}

hf_status hf__screen_open(bool colour, hf__screen **screen, hf_error *err)
{
    const char *name = getenv("TERM");
    hf__screen *made = calloc(1, sizeof *made);

    if (made == NULL)
        return hf__no_memory(err);
    made->terminal = newterm(NULL, stdout, stdin);
    if (made->terminal == NULL) {
        free(made);
        return hf__fail(err, HF_SYSTEM, "cannot use the terminal");
    }
    made->has_clipboard = name != NULL && strncmp(name, "linux", 5) != 0;
    choose_attributes(made);
    if (colour)
        choose_colours(made);
    set_modes();
    *screen = made;
    return HF_OK;
}

void hf__screen_close(hf__screen *screen)
{
    if (screen == NULL)
        return;
    endwin();
    delscreen(screen->terminal);
    free(screen);
}

/* ---- drawing ---- */

void hf__screen_size(const hf__screen *screen, size_t *width, size_t *height)
{
    (void)screen;
    *width = COLS > 0 ? (size_t)COLS : 0;
    *height = LINES > 0 ? (size_t)LINES : 0;
}

/* The chosen row is one bar without other colours. */
static void set_ink(const hf__screen *screen, hf__ink ink, bool selected)
{
    attr_t bold = screen->inks[ink] & A_BOLD;

    (void)attr_set(selected ? bold | A_REVERSE : screen->inks[ink],
                   selected ? 0 : screen->pairs[ink], NULL);
}

static void show_line(const hf__screen *screen, const hf__frame_line *line, int y)
{
    const char *text = line->text.data;

    if (move(y, 0) != OK)
        return;
    for (size_t i = 0; i < line->span_count; i++) {
        set_ink(screen, line->spans[i].ink, line->selected);
        addnstr(text, (int)line->spans[i].size);
        text += line->spans[i].size;
    }
    set_ink(screen, HF__INK_PLAIN, line->selected);
    for (size_t cell = line->cells; line->selected && cell < (size_t)COLS; cell++)
        addch(' ');
    set_ink(screen, HF__INK_PLAIN, false);
    if (!line->selected && line->cells < (size_t)COLS)
        clrtoeol();
}

static void place_cursor(const hf__frame *frame)
{
    if (!frame->has_cursor || frame->cursor_line >= frame->count) {
        curs_set(0);
        return;
    }
    size_t cell = frame->lines[frame->cursor_line].cells;
    curs_set(1);
    move((int)frame->cursor_line, cell < (size_t)COLS ? (int)cell : COLS - 1);
}

void hf__screen_show(hf__screen *screen, const hf__frame *frame)
{
    size_t count = frame->count < (size_t)LINES ? frame->count : (size_t)LINES;

    for (size_t i = 0; i < count; i++)
        show_line(screen, &frame->lines[i], (int)i);
    if (count < (size_t)LINES && move((int)count, 0) == OK)
        clrtobot();
    place_cursor(frame);
    refresh();
}

void hf__screen_forget(hf__screen *screen)
{
    (void)screen;
    clearok(curscr, TRUE);
}

/* ---- keys ---- */

static int32_t special_key(wint_t code)
{
    switch (code) {
    case KEY_UP: return HF__KEY_UP;
    case KEY_DOWN: return HF__KEY_DOWN;
    case KEY_LEFT: return HF__KEY_LEFT;
    case KEY_RIGHT: return HF__KEY_RIGHT;
    case KEY_PPAGE: return HF__KEY_PAGE_UP;
    case KEY_NPAGE: return HF__KEY_PAGE_DOWN;
    case KEY_HOME: return HF__KEY_HOME;
    case KEY_END: return HF__KEY_END;
    case KEY_BTAB: return HF__KEY_BACK_TAB;
    case KEY_ENTER: return HF__KEY_ENTER;
    case KEY_BACKSPACE: return HF__KEY_BACKSPACE;
    default: return -1;
    }
}

static int32_t plain_key(wint_t code)
{
    switch (code) {
    case '\t': return HF__KEY_TAB;
    case '\r':
    case '\n': return HF__KEY_ENTER;
    case ESCAPE: return HF__KEY_ESCAPE;
    case '\b':
    case DELETE: return HF__KEY_BACKSPACE;
    default: return (int32_t)code;
    }
}

bool hf__screen_key(hf__screen *screen, int32_t *key)
{
    wint_t code = 0;
    int kind;

    (void)screen;
    while ((kind = get_wch(&code)) != ERR) {
        *key = kind == KEY_CODE_YES ? special_key(code) : plain_key(code);
        if (*key >= 0)
            return true;
    }
    return false;
}

/* ---- size, suspension and the clipboard ---- */

void hf__screen_resized(hf__screen *screen)
{
    struct winsize size;

    (void)screen;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        (void)resizeterm(size.ws_row, size.ws_col);
}

void hf__screen_suspend(hf__screen *screen)
{
    (void)screen;
    endwin();
}

void hf__screen_resume(hf__screen *screen)
{
    reset_prog_mode();
    hf__screen_resized(screen);
    hf__screen_forget(screen);
}

static void add_base64(hf__buf *out, const unsigned char *bytes, size_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t at = 0; at < size; at += 3) {
        size_t left = size - at;
        unsigned group = (unsigned)bytes[at] << 16 | (left > 1 ? (unsigned)bytes[at + 1] << 8 : 0) |
                         (left > 2 ? bytes[at + 2] : 0);
        char four[4] = {letters[group >> 18], letters[group >> 12 & 63],
                        left > 1 ? letters[group >> 6 & 63] : '=',
                        left > 2 ? letters[group & 63] : '='};
        hf__buf_add(out, four, sizeof four);
    }
}

bool hf__screen_copy(hf__screen *screen, const char *text)
{
    hf__buf out = {0};

    if (!screen->has_clipboard)
        return false;
    hf__buf_puts(&out, "\033]52;c;");
    add_base64(&out, (const unsigned char *)text, strlen(text));
    hf__buf_puts(&out, "\a");
    bool sent = !out.broken && fwrite(out.data, 1, out.length, stdout) == out.length;
    (void)fflush(stdout);
    hf__buf_free(&out);
    return sent;
}
