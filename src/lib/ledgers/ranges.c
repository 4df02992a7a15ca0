/* Ranges of ledgers in memory: ascending, disjoint, neighbours joined. Pure. */
#include <stdlib.h>

#include "lib/ledgers/ledgers.h"

void hf__ranges_free(hf__ranges *ranges)
{
    free(ranges->items);
    *ranges = (hf__ranges){0};
}

static bool grow(hf__ranges *ranges)
{
    if (ranges->items && ranges->count < ranges->capacity)
        return true;
    size_t capacity = ranges->capacity ? 2 * ranges->capacity : 16;
    hf_range *items = realloc(ranges->items, capacity * sizeof *items);
    if (!items)
        return false;
    ranges->items = items;
    ranges->capacity = capacity;
    return true;
}

bool hf__ranges_add(hf__ranges *ranges, int64_t from, int64_t to)
{
    if (from > to)
        return true;
    hf_range *last = ranges->count > 0 ? &ranges->items[ranges->count - 1] : NULL;
    if (last && from <= last->to + (last->to < INT64_MAX)) {
        if (to > last->to)
            last->to = to;
        return true;
    }
    if (!grow(ranges))
        return false;
    ranges->items[ranges->count++] = (hf_range){from, to};
    return true;
}

bool hf__ranges_missing(const hf__ranges *covered, int64_t from, int64_t to, hf__ranges *missing)
{
    for (size_t i = 0; i < covered->count && from <= to; i++) {
        const hf_range *range = &covered->items[i];
        if (range->to < from)
            continue;
        if (range->from > to)
            break;
        if (range->from > from && !hf__ranges_add(missing, from, range->from - 1))
            return false;
        if (range->to >= to)
            return true;
        from = range->to + 1;
    }
    return hf__ranges_add(missing, from, to);
}
