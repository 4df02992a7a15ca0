#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "programs/top/cell.h"
#include "programs/top/detail.h"
#include "programs/top/list.h"
#include "programs/top/top.h"

enum { CTRL_L = 'L' & 0x1F };

/* ---- a line that somebody types ---- */

enum { CTRL_U = 'U' & 0x1F, CTRL_W = 'W' & 0x1F };

static void cut(hf__entry *entry, size_t size)
{
    entry->size = size;
    entry->text[size] = '\0';
}

static void erase_character(hf__entry *entry)
{
    size_t size = entry->size;

    while (size > 0 && ((unsigned char)entry->text[size - 1] & 0xC0) == 0x80)
        size--;
    cut(entry, size > 0 ? size - 1 : 0);
}

static void erase_word(hf__entry *entry)
{
    size_t size = entry->size;

    while (size > 0 && entry->text[size - 1] == ' ')
        size--;
    while (size > 0 && entry->text[size - 1] != ' ')
        size--;
    cut(entry, size);
}

bool hf__entry_press(hf__entry *entry, int32_t key)
{
    char bytes[4];

    if (key == HF__KEY_BACKSPACE) {
        erase_character(entry);
    } else if (key == CTRL_U) {
        cut(entry, 0);
    } else if (key == CTRL_W) {
        erase_word(entry);
    } else if (key < 0x20 || key == 0x7F || key > 0x10FFFF) {
        return false;
    } else {
        size_t size = hf__utf8_write(bytes, (uint32_t)key);
        if (entry->size + size < sizeof entry->text) {
            memcpy(entry->text + entry->size, bytes, size);
            cut(entry, entry->size + size);
        }
    }
    return true;
}

void hf__entry_set(hf__entry *entry, const char *text)
{
    size_t at = 0;
    size_t length = strlen(text);

    cut(entry, 0);
    while (at < length) {
        size_t start = at;
        (void)hf__utf8_next((const unsigned char *)text, length, &at);
        if (at >= sizeof entry->text)
            return;
        memcpy(entry->text + start, text + start, at - start);
        cut(entry, at);
    }
}

/* ---- ending a holder: whom ---- */

/* The label as it is shown, if it can be typed, or else the key. */
static void set_title(hf__victim *victim, const hf__seen_lock *lock)
{
    size_t length = strlen(lock->label);
    hf__buf key = {0};

    hf__show(victim->title, sizeof victim->title, lock->label, length);
    if (length == 0 || length > HF__TYPED_MOST) {
        hf__cell_key(&key, lock->key, lock->space);
        snprintf(victim->title, sizeof victim->title, "%s", key.broken ? "" : key.data);
    }
    hf__buf_free(&key);
}

static size_t count_held(const hf__snapshot *seen, size_t party)
{
    size_t count = 0;

    for (size_t i = 0; i < seen->view_count; i++)
        count += seen->view_party[i] == party && !seen->views[i]->waiting;
    return count;
}

static void add_victim(hf__top *top, const hf__seen_lock *lock, size_t view)
{
    const hf__snapshot *seen = top->snapshot;
    const hf_lock_view *held = seen->views[view];
    size_t index = seen->view_party[view];
    const hf__seen_party *party = index < seen->party_count ? &seen->parties[index] : NULL;
    hf__victim *victim = &top->victims[top->victim_count++];
    hf__buf who = {0};

    *victim = (hf__victim){.key = lock->key,
                           .space = lock->space,
                           .party = party != NULL ? party->id : 0,
                           .token = held->token,
                           .holds = party != NULL ? count_held(seen, index) : 1,
                           .keeps = party != NULL ? party->blocking : lock->waiters};
    set_title(victim, lock);
    if (party != NULL)
        hf__put_party(&who, seen, party);
    else
        hf__put_who(&who, held->application, held->host, held->pid);
    if (!who.broken)
        hf__show(victim->who, sizeof victim->who, who.data, who.length);
    hf__buf_free(&who);
}

/* Adds all holders of the lock, or only the given party. */
static void add_holders(hf__top *top, const hf__seen_lock *lock, size_t party)
{
    const hf__snapshot *seen = top->snapshot;

    for (size_t i = lock->first; i < lock->first + lock->count; i++) {
        size_t holder = seen->view_party[i];
        bool is_lease = seen->views[i]->lifetime == HF_LEASE && !seen->local;
        if (!seen->views[i]->waiting && (holder != SIZE_MAX || is_lease) &&
            (party == SIZE_MAX || holder == party))
            add_victim(top, lock, i);
    }
}

static void find_of_party(hf__top *top, int id)
{
    const hf__snapshot *seen = top->snapshot;
    const hf__seen_party *party = hf__find_party(seen, id);

    if (party == NULL)
        return;
    for (int wanted = 1; wanted >= 0; wanted--) /* first what others wait for */
        for (size_t i = 0; i < seen->lock_count; i++)
            if ((seen->locks[i].waiters > 0) == (wanted == 1))
                add_holders(top, &seen->locks[i], (size_t)(party - seen->parties));
}

static const hf__seen_lock *chosen_lock(const hf__top *top, const hf__row_id *id)
{
    const hf__snapshot *seen = top->snapshot;

    if (top->tab == HF__TAB_LOCKS)
        return hf__find_lock(seen, id->a, (hf_space)id->b);
    for (size_t i = 0; i < seen->event_count; i++)
        if (seen->events[i].id == id->a)
            return hf__find_lock(seen, seen->events[i].key, seen->events[i].space);
    return NULL;
}

static void find_victims(hf__top *top, const hf__row_id *id)
{
    const hf__seen_lock *lock = NULL;

    top->victim = top->victim_count = 0;
    free(top->victims);
    top->victims = calloc(top->snapshot->view_count + 1, sizeof *top->victims);
    if (top->victims == NULL || top->tab == HF__TAB_INGEST)
        return;
    if (top->tab == HF__TAB_WAITS)
        find_of_party(top, (int)id->a);
    else if ((lock = chosen_lock(top, id)) != NULL)
        add_holders(top, lock, SIZE_MAX);
}

/* Finds whom the chosen row could end. If there is nobody, a message says why. */
static void open_confirmation(hf__top *top)
{
    const hf__standing *standing = &top->standings[top->tab];
    const hf__row_id *id = top->mode == HF__MODE_DETAIL ? &top->detail : &standing->chosen;

    if (top->snapshot == NULL || (top->mode != HF__MODE_DETAIL && top->row_count == 0))
        return;
    find_victims(top, id);
    if (top->victim_count == 0) {
        hf__top_say(top, HF__INK_WARNING,
                    top->tab == HF__TAB_INGEST  ? "choose a lock or a session, in tab 1 or 2"
                    : top->tab == HF__TAB_WAITS ? "it holds nothing that could be freed"
                                                : "nobody who could be ended holds it");
        return;
    }
    top->under = top->mode;
    top->mode = HF__MODE_CONFIRM;
    hf__entry_set(&top->typed, "");
}

/* ---- ending a holder: its keys ---- */

static hf__act press_in_confirmation(hf__top *top, int32_t key)
{
    const hf__victim *victim = &top->victims[top->victim];

    if (hf__entry_press(&top->typed, key))
        return HF__ACT_NONE;
    if (key == HF__KEY_ESCAPE) {
        top->mode = top->under;
        hf__top_say(top, HF__INK_PLAIN, "nothing was ended");
    } else if (key == HF__KEY_DOWN || key == HF__KEY_UP) {
        size_t step = key == HF__KEY_DOWN ? 1 : top->victim_count - 1;
        top->victim = (top->victim + step) % top->victim_count;
    } else if (key == HF__KEY_ENTER && strcmp(top->typed.text, victim->title) != 0) {
        hf__top_say(top, HF__INK_PROBLEM, "that is not '%s': nothing was ended", victim->title);
    } else if (key == HF__KEY_ENTER) {
        top->mode = top->under;
        hf__top_say(top, HF__INK_PLAIN, "ending %s ...", victim->who);
        return HF__ACT_END;
    }
    return HF__ACT_NONE;
}

/* ---- ending a holder: what is shown ---- */

static void put_cost(const hf__top *top, hf__frame *frame, const hf__victim *victim)
{
    hf__buf text = {0};

    hf__buf_printf(&text,
                   victim->party == 0   ? "this lease, and all of the same length of its process"
                   : victim->holds == 1 ? "this lock"
                                        : "all %zu locks that it holds",
                   victim->holds);
    hf__detail_made(frame, "loses", &text);
    hf__buf_printf(&text, "%zu who wait for it", victim->keeps);
    hf__detail_made(frame, "lets on", &text);
    hf__detail_field(frame, "how", HF__INK_PLAIN,
                     victim->party == 0     ? "holdfast.end_lease: another may have it at once"
                     : top->snapshot->local ? "SIGTERM to the process"
                                            : "pg_terminate_backend: its session ends");
    hf__buf_free(&text);
}

void hf__confirm_put(const hf__top *top, hf__frame *frame)
{
    const hf__victim *victim = &top->victims[top->victim];
    hf__buf text = {0};

    hf__detail_heading(frame, victim->party == 0     ? "End the lease of this lock?"
                              : top->snapshot->local ? "End the process that holds this lock?"
                                                     : "End the session that holds this lock?");
    hf__detail_field(frame, "lock", HF__INK_BOLD, victim->title);
    hf__detail_field(frame, "holder", HF__INK_BOLD, victim->who);
    if (top->victim_count > 1) {
        hf__buf_printf(&text, "%zu of %zu; ↑ and ↓ choose another", top->victim + 1,
                       top->victim_count);
        hf__detail_made(frame, "", &text);
    }
    hf__buf_free(&text);
    put_cost(top, frame, victim);
    hf__frame_add_line(frame);
    hf__frame_add_line(frame);
    hf__frame_put(frame, HF__INK_WARNING, "Type the name of the lock to confirm: ");
    hf__frame_put(frame, HF__INK_BOLD, top->typed.text);
    if (frame->count > 0) {
        frame->has_cursor = true;
        frame->cursor_line = frame->count - 1;
    }
}

/* ---- moving ---- */

/* Moves *at among count places. False: the key does not move. */
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

/* ---- order, filter and refresh ---- */

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

/* ---- keys of each mode ---- */

static hf__act press_anywhere(hf__top *top, int32_t key)
{
    switch (key) {
    case 'q': return HF__ACT_QUIT;
    case ' ': return pause(top);
    case '+':
    case '=': return change_refresh(top, true);
    case '-': return change_refresh(top, false);
    case 'y': return top->row_count > 0 ? HF__ACT_COPY : HF__ACT_NONE;
    case 'K': open_confirmation(top); return HF__ACT_NONE;
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
    case HF__MODE_CONFIRM: return press_in_confirmation(top, key);
    case HF__MODE_HELP: return press_in_help(top, key);
    default: return press_in_list(top, key);
    }
}
