#include <string.h>

#include "programs/top/cell.h"
#include "programs/top/list.h"

static const hf__seen_event *event_at(const hf__top *top, size_t row)
{
    return &top->snapshot->events[row];
}

static hf__value when(const hf__top *top, size_t row)
{
    return (hf__value){.number = event_at(top, row)->at_ms, .ink = HF__INK_DIM};
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static hf__value what(const hf__top *top, size_t row)
{
    static const char *const bad[] = {"lost", "deadlock", "terminated", "orphan_killed", NULL};
    static const char *const doubtful[] = {"timeout", "conflict", "orphan_awaited", NULL};
    const char *word = event_at(top, row)->event;

    return (hf__value){.text = word,
                       .ink = is_one_of(word, bad)        ? HF__INK_PROBLEM
                              : is_one_of(word, doubtful) ? HF__INK_WARNING
                                                          : HF__INK_PLAIN};
}

static hf__value label(const hf__top *top, size_t row)
{
    return (hf__value){.text = event_at(top, row)->label};
}

static void show_label(const hf__top *top, size_t row, hf__buf *out)
{
    const hf__seen_event *event = event_at(top, row);

    if (event->label[0] != '\0')
        hf__buf_puts(out, event->label);
    else
        hf__cell_key(out, event->key, event->space);
}

static hf__value who(const hf__top *top, size_t row)
{
    return (hf__value){.text = event_at(top, row)->application};
}

static hf__value host(const hf__top *top, size_t row)
{
    return (hf__value){.text = event_at(top, row)->host, .ink = HF__INK_DIM};
}

static hf__value waited(const hf__top *top, size_t row)
{
    return (hf__value){.number = event_at(top, row)->wait_ms};
}

static hf__value held(const hf__top *top, size_t row)
{
    return (hf__value){.number = event_at(top, row)->hold_ms};
}

static hf__value detail(const hf__top *top, size_t row)
{
    return (hf__value){.text = event_at(top, row)->detail, .ink = HF__INK_DIM};
}

static hf__value key(const hf__top *top, size_t row)
{
    const hf__seen_event *event = event_at(top, row);

    return (hf__value){.number = event->key, .space = event->space, .ink = HF__INK_DIM};
}

static const hf__list_column columns[] = {
    {.title = "WHEN",
     .word = "when",
     .kind = HF__MOMENT,
     .least = 8,
     .rank = 2,
     .descending = true,
     .value = when},
    {.title = "EVENT", .word = "event", .least = 10, .rank = 1, .value = what},
    {.title = "LABEL",
     .word = "label",
     .least = 14,
     .stretches = true,
     .is_label = true,
     .value = label,
     .show = show_label},
    {.title = "WHO", .word = "who", .least = 9, .rank = 4, .value = who},
    {.title = "WAITED",
     .word = "waited",
     .kind = HF__AGE,
     .least = 8,
     .rank = 5,
     .descending = true,
     .value = waited},
    {.title = "HELD",
     .word = "held",
     .kind = HF__AGE,
     .least = 7,
     .rank = 6,
     .descending = true,
     .value = held},
    {.title = "DETAIL", .word = "detail", .least = 10, .rank = 3, .value = detail},
    {.title = "HOST", .is_extra = true, .word = "host", .least = 8, .rank = 7, .value = host},
    {.title = "KEY",
     .is_extra = true,
     .word = "key",
     .kind = HF__KEY,
     .least = 20,
     .rank = 8,
     .value = key},
    {0},
};

static size_t count(const hf__top *top)
{
    return top->snapshot->event_count;
}

static bool matches(const hf__top *top, size_t row, const char *needle)
{
    const hf__seen_event *event = event_at(top, row);
    hf__buf text = {0};

    hf__cell_key(&text, event->key, event->space);
    bool found = hf__has(event->label, needle) || hf__has(event->name, needle) ||
                 hf__has(event->event, needle) || hf__has(event->application, needle) ||
                 hf__has(event->host, needle) || hf__has(event->detail, needle) ||
                 hf__has(text.data, needle);
    hf__buf_free(&text);
    return found;
}

static hf__row_id id(const hf__top *top, size_t row)
{
    return (hf__row_id){.a = event_at(top, row)->id};
}

const hf__list hf__list_events = {
    .word = "events",
    .title = "Events",
    .columns = columns,
    .sort = 0,
    .empty = "Nothing is recorded.",
    .count = count,
    .figure = count,
    .matches = matches,
    .id = id,
    .copy = show_label,
};
