#include "programs/top/confirm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "programs/top/cell.h"
#include "programs/top/detail.h"
#include "programs/top/list.h"

/* ---- whom --------------------------------------------------------------------------------------------- */

/* The label as it is shown, where that can be typed; else the key. */
static void set_title(hf__victim *victim, const hf__seen_lock *lock)
{
    size_t length = strlen(lock->label);
    hf__buf key = {0};

    hf__show(victim->title, sizeof victim->title, lock->label, length);
    if (length == 0 || length > HF__TYPED_MOST) {
        hf__put_key(&key, lock->key, lock->space);
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
    size_t index = seen->view_party[view];
    const hf__seen_party *party = &seen->parties[index];
    hf__victim *victim = &top->victims[top->victim_count++];
    hf__buf who = {0};

    *victim = (hf__victim){.key = lock->key,
                           .space = lock->space,
                           .party = party->id,
                           .token = seen->views[view]->token,
                           .holds = count_held(seen, index),
                           .keeps = party->blocking};
    set_title(victim, lock);
    hf__put_party(&who, seen, party);
    if (!who.broken)
        hf__show(victim->who, sizeof victim->who, who.data, who.length);
    hf__buf_free(&who);
}

/* Everybody who holds the lock; with a party, only that one. */
static void add_holders(hf__top *top, const hf__seen_lock *lock, size_t party)
{
    const hf__snapshot *seen = top->snapshot;

    for (size_t i = lock->first; i < lock->first + lock->count; i++) {
        size_t holder = seen->view_party[i];
        if (!seen->views[i]->waiting && holder != SIZE_MAX &&
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

void hf__confirm_open(hf__top *top)
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

/* ---- keys --------------------------------------------------------------------------------------------- */

hf__act hf__confirm_press(hf__top *top, int32_t key)
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

/* ---- the picture -------------------------------------------------------------------------------------- */

static void put_cost(const hf__top *top, hf__frame *frame, const hf__victim *victim)
{
    hf__buf text = {0};

    hf__buf_printf(&text, victim->holds == 1 ? "this lock" : "all %zu locks that it holds",
                   victim->holds);
    hf__detail_made(frame, "loses", &text);
    hf__buf_printf(&text, "%zu who wait for it", victim->keeps);
    hf__detail_made(frame, "lets on", &text);
    hf__detail_field(frame, "how", HF__INK_PLAIN,
                     top->snapshot->local ? "SIGTERM to the process"
                                          : "pg_terminate_backend: its session ends");
    hf__buf_free(&text);
}

void hf__confirm_put(const hf__top *top, hf__frame *frame)
{
    const hf__victim *victim = &top->victims[top->victim];
    hf__buf text = {0};

    hf__detail_heading(frame, top->snapshot->local ? "End the process that holds this lock?"
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
    hf__frame_line(frame);
    hf__frame_line(frame);
    hf__frame_put(frame, HF__INK_WARNING, "Type the name of the lock to confirm: ");
    hf__frame_put(frame, HF__INK_BOLD, top->typed.text);
    if (frame->count > 0) {
        frame->has_cursor = true;
        frame->cursor_line = frame->count - 1;
    }
}
