#include "programs/top/cell.h"
#include "programs/top/list.h"

enum { LONG_WAIT_MS = 60000 }; /* longer waits are coloured */

static const hf__seen_lock *lock_at(const hf__top *top, size_t row)
{
    return &top->snapshot->locks[row];
}

/* The first holder, or else the first waiter. NULL if there is neither, which does not happen. */
static const hf_lock_view *first_view(const hf__top *top, size_t row)
{
    const hf__seen_lock *lock = lock_at(top, row);

    return lock->count > 0 ? top->snapshot->views[lock->first] : NULL;
}

static const hf_lock_view *holder_of(const hf__top *top, size_t row)
{
    return lock_at(top, row)->holders > 0 ? first_view(top, row) : NULL;
}

static hf__value label(const hf__top *top, size_t row)
{
    const hf__seen_lock *lock = lock_at(top, row);

    return (hf__value){.text = lock->label,
                       .ink = lock->waiters > 0        ? HF__INK_BOLD
                              : lock->label[0] == '\0' ? HF__INK_DIM
                                                       : HF__INK_PLAIN};
}

static void show_label(const hf__top *top, size_t row, hf__buf *out)
{
    hf__put_title(out, lock_at(top, row));
}

static hf__value name(const hf__top *top, size_t row)
{
    const char *text = lock_at(top, row)->name;

    return (hf__value){.text = text, .ink = text[0] == '\0' ? HF__INK_WARNING : HF__INK_DIM};
}

static void show_name(const hf__top *top, size_t row, hf__buf *out)
{
    const hf__seen_lock *lock = lock_at(top, row);

    hf__buf_puts(out, lock->name[0] != '\0' ? lock->name
                      : lock->is_own        ? "(our own)"
                                            : "(unregistered)");
}

static hf__value holder(const hf__top *top, size_t row)
{
    const hf_lock_view *view = holder_of(top, row);

    return (hf__value){.text = view != NULL ? view->application : ""};
}

static void show_holder(const hf__top *top, size_t row, hf__buf *out)
{
    hf__buf_puts(out, holder(top, row).text);
    if (lock_at(top, row)->holders > 1)
        hf__buf_printf(out, " +%zu", lock_at(top, row)->holders - 1);
}

static hf__value host(const hf__top *top, size_t row)
{
    const hf_lock_view *view = holder_of(top, row);

    return (hf__value){.text = view != NULL ? view->host : "", .ink = HF__INK_DIM};
}

static hf__value pid(const hf__top *top, size_t row)
{
    const hf_lock_view *view = holder_of(top, row);
    int number = view == NULL ? 0 : view->pid != 0 ? view->pid : view->backend_pid;

    return (hf__value){.number = number != 0 ? number : -1, .ink = HF__INK_DIM};
}

static hf__value mode(const hf__top *top, size_t row)
{
    const hf_lock_view *view = first_view(top, row);

    return (hf__value){.text = view != NULL ? hf__mode_word(view->mode) : "", .ink = HF__INK_DIM};
}

/* Shorter words than in JSON, for a narrow column. */
static void show_mode(const hf__top *top, size_t row, hf__buf *out)
{
    const hf_lock_view *view = first_view(top, row);

    if (view != NULL)
        hf__buf_puts(out, view->slot > 0 ? "slots" : view->mode == HF_SHARED ? "shared" : "excl");
}

static hf__value held(const hf__top *top, size_t row)
{
    const hf__seen_lock *lock = lock_at(top, row);

    return (hf__value){.number = lock->held_ms, .bound = lock->held_is_bound};
}

static hf__value waiters(const hf__top *top, size_t row)
{
    size_t count = lock_at(top, row)->waiters;

    return (hf__value){.number = (int64_t)count, .ink = count > 0 ? HF__INK_WARNING : HF__INK_DIM};
}

static hf__value longest(const hf__top *top, size_t row)
{
    int64_t wait = lock_at(top, row)->longest_wait_ms;

    return (hf__value){.number = wait,
                       .ink = wait >= LONG_WAIT_MS ? HF__INK_PROBLEM : HF__INK_WARNING};
}

static hf__value owner(const hf__top *top, size_t row)
{
    const hf_registry_entry *entry = lock_at(top, row)->entry;
    const char *text = entry != NULL ? entry->owner : NULL;

    return (hf__value){.text = text != NULL ? text : ""};
}

static hf__value key(const hf__top *top, size_t row)
{
    const hf__seen_lock *lock = lock_at(top, row);

    return (hf__value){.number = lock->key, .space = lock->space, .ink = HF__INK_DIM};
}

static const hf__list_column columns[] = {
    {.title = "LABEL",
     .word = "label",
     .least = 14,
     .stretches = true,
     .is_label = true,
     .value = label,
     .show = show_label},
    {.title = "HOLDER",
     .word = "holder",
     .least = 9,
     .rank = 3,
     .value = holder,
     .show = show_holder},
    {.title = "HOST", .word = "host", .least = 8, .rank = 5, .value = host},
    {.title = "PID",
     .is_extra = true,
     .word = "pid",
     .kind = HF__COUNT,
     .least = 7,
     .rank = 8,
     .value = pid},
    {.title = "MODE", .word = "mode", .least = 6, .rank = 6, .value = mode, .show = show_mode},
    {.title = "HELD",
     .word = "held",
     .kind = HF__AGE,
     .least = 7,
     .rank = 2,
     .descending = true,
     .value = held},
    {.title = "WAIT",
     .word = "waiters",
     .kind = HF__COUNT,
     .least = 6,
     .rank = 1,
     .descending = true,
     .value = waiters},
    {.title = "LONGEST",
     .word = "longest",
     .kind = HF__AGE,
     .least = 9,
     .rank = 4,
     .descending = true,
     .value = longest},
    {.title = "OWNER", .of_registry = true, .word = "owner", .least = 6, .rank = 7, .value = owner},
    {.title = "NAME",
     .of_registry = true,
     .is_extra = true,
     .word = "name",
     .least = 12,
     .rank = 9,
     .value = name,
     .show = show_name},
    {.title = "KEY",
     .is_extra = true,
     .word = "key",
     .kind = HF__KEY,
     .least = 20,
     .rank = 10,
     .value = key},
    {0},
};

static size_t count(const hf__top *top)
{
    return top->snapshot->lock_count;
}

static bool party_matches(const hf_lock_view *view, const char *needle)
{
    return hf__has(view->application, needle) || hf__has(view->host, needle);
}

static bool matches(const hf__top *top, size_t row, const char *needle)
{
    const hf__seen_lock *lock = lock_at(top, row);
    hf__buf text = {0};

    hf__cell_key(&text, lock->key, lock->space);
    bool found = hf__has(lock->label, needle) || hf__has(lock->name, needle) ||
                 hf__has(text.data, needle) || hf__has(owner(top, row).text, needle);
    hf__buf_free(&text);
    for (size_t i = 0; !found && i < lock->count; i++)
        found = party_matches(top->snapshot->views[lock->first + i], needle);
    return found;
}

static hf__row_id id(const hf__top *top, size_t row)
{
    return (hf__row_id){.a = lock_at(top, row)->key, .b = lock_at(top, row)->space};
}

const hf__list hf__list_locks = {
    .word = "locks",
    .title = "Locks",
    .columns = columns,
    .sort = 7,
    .empty = "No advisory lock is held.",
    .count = count,
    .figure = count,
    .matches = matches,
    .id = id,
    .copy = show_label,
};
