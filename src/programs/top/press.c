
#include "base/time.h"
#include "programs/top/confirm.h"
#include "programs/top/detail.h"
#include "programs/top/list.h"

enum { CTRL_L = 'L' & 0x1F };

/* ---- moving ------------------------------------------------------------------------------------------- */

/* Where a key leads from `at` among count places; false: it is no such key. */
static bool move(int32_t key, size_t page, size_t count, size_t *at)
{
    size_t last = count > 0 ? count - 1 : 0;
    size_t step = page > 0 ? page : 1;

    switch (key) {
    case HF__KEY_UP:
    case 'k': *at -= *at > 0; break;
    case HF__KEY_DOWN:
    case 'j': *at += *at < last; break;
    case HF__KEY_PAGE_UP: *at = *at > step ? *at - step : 0; break;
    case HF__KEY_PAGE_DOWN: *at = last - *at > step ? *at + step : last; break;
    case HF__KEY_HOME:
    case 'g': *at = 0; break;
    case HF__KEY_END:
    case 'G': *at = last; break;
    default: return false;
    }
    return true;
}

static bool move_in_list(hf__top *top, int32_t key)
{
    size_t index = top->standings[top->tab].index;

    if (!move(key, top->page, top->row_count, &index))
        return false;
    hf__list_choose(top, index);
    return true;
}

static void go_to_tab(hf__top *top, hf__tab tab)
{
    top->tab = tab;
    top->mode = HF__MODE_LIST;
    hf__list_rebuild(top);
}

static bool change_tab(hf__top *top, int32_t key)
{
    if (key >= '1' && key < '1' + HF__TAB_COUNT)
        go_to_tab(top, (hf__tab)(key - '1'));
    else if (key == HF__KEY_TAB || key == HF__KEY_RIGHT)
        go_to_tab(top, (top->tab + 1) % HF__TAB_COUNT);
    else if (key == HF__KEY_BACK_TAB || key == HF__KEY_LEFT)
        go_to_tab(top, (top->tab + HF__TAB_COUNT - 1) % HF__TAB_COUNT);
    else
        return false;
    return true;
}

/* ---- what is shown, and how often ----------------------------------------------------------------------- */

static void sort_by_next(hf__top *top)
{
    hf__standing *standing = &top->standings[top->tab];

    standing->sort = (standing->sort + 1) % hf__list_columns(hf__list_of(top));
    standing->reversed = false;
    hf__list_rebuild(top);
}

static void reverse(hf__top *top)
{
    top->standings[top->tab].reversed = !top->standings[top->tab].reversed;
    hf__list_rebuild(top);
}

static hf__act change_refresh(hf__top *top, bool longer)
{
    static const int64_t steps[] = {HF__REFRESH_LEAST_MS, 500, 1000, 2000, 5000, 10000, 30000,
                                    HF__REFRESH_MOST_MS};
    enum { COUNT = sizeof steps / sizeof steps[0] };
    int64_t before = top->refresh_ms;
    char shown[32];

    for (size_t i = 0; i < COUNT; i++) {
        size_t at = longer ? i : COUNT - 1 - i;
        if (longer ? steps[at] > before : steps[at] < before) {
            top->refresh_ms = steps[at];
            break;
        }
    }
    hf__top_say(top, HF__INK_PLAIN, "refreshed every %s",
                hf__show_duration(shown, sizeof shown, top->refresh_ms));
    return HF__ACT_REFRESH;
}

static hf__act pause(hf__top *top)
{
    top->paused = !top->paused;
    hf__top_say(top, HF__INK_PLAIN, top->paused ? "paused: space goes on" : "goes on");
    return HF__ACT_PAUSE;
}

static void clear_filter(hf__top *top)
{
    hf__entry_set(&top->filter, "");
    hf__list_rebuild(top);
}

static hf__act press_in_filter(hf__top *top, int32_t key)
{
    if (hf__entry_press(&top->filter, key)) {
        hf__list_rebuild(top);
    } else if (key == HF__KEY_ESCAPE) {
        top->mode = HF__MODE_LIST;
        clear_filter(top);
    } else if (key == HF__KEY_ENTER) {
        top->mode = HF__MODE_LIST;
    } else {
        (void)move_in_list(top, key);
    }
    return HF__ACT_NONE;
}

/* ---- every key ---------------------------------------------------------------------------------------- */

static hf__act press_anywhere(hf__top *top, int32_t key)
{
    switch (key) {
    case 'q': return HF__ACT_QUIT;
    case ' ': return pause(top);
    case '+':
    case '=': return change_refresh(top, true);
    case '-': return change_refresh(top, false);
    case 'y': return top->row_count > 0 ? HF__ACT_COPY : HF__ACT_NONE;
    case 'K': hf__confirm_open(top); return HF__ACT_NONE;
    case 'h':
    case '?':
        top->under = top->mode;
        top->mode = HF__MODE_HELP;
        top->detail_scroll = 0;
        return HF__ACT_NONE;
    default: (void)change_tab(top, key); return HF__ACT_NONE;
    }
}

static hf__act press_in_list(hf__top *top, int32_t key)
{
    if (move_in_list(top, key))
        return HF__ACT_NONE;
    switch (key) {
    case '/': top->mode = HF__MODE_FILTER; return HF__ACT_NONE;
    case 's': sort_by_next(top); return HF__ACT_NONE;
    case 'r': reverse(top); return HF__ACT_NONE;
    case HF__KEY_ENTER: hf__detail_open(top); return HF__ACT_NONE;
    case HF__KEY_ESCAPE: clear_filter(top); return HF__ACT_NONE;
    default: return press_anywhere(top, key);
    }
}

static bool scrolls(hf__top *top, int32_t key)
{
    size_t places = top->detail_lines > top->page ? top->detail_lines - top->page + 1 : 1;

    return move(key, top->page, places, &top->detail_scroll);
}

static hf__act press_in_detail(hf__top *top, int32_t key)
{
    if (scrolls(top, key))
        return HF__ACT_NONE;
    if (key != HF__KEY_ESCAPE && key != HF__KEY_ENTER && key != HF__KEY_BACKSPACE)
        return press_anywhere(top, key);
    top->mode = HF__MODE_LIST;
    return HF__ACT_NONE;
}

static hf__act press_in_help(hf__top *top, int32_t key)
{
    if (scrolls(top, key))
        return HF__ACT_NONE;
    top->mode = top->under;
    top->detail_scroll = 0;
    return HF__ACT_NONE;
}

hf__act hf__top_press(hf__top *top, int32_t key)
{
    top->message[0] = '\0';
    if (key == CTRL_L)
        return HF__ACT_REDRAW;
    switch (top->mode) {
    case HF__MODE_FILTER: return press_in_filter(top, key);
    case HF__MODE_DETAIL: return press_in_detail(top, key);
    case HF__MODE_CONFIRM: return hf__confirm_press(top, key);
    case HF__MODE_HELP: return press_in_help(top, key);
    default: return press_in_list(top, key);
    }
}
