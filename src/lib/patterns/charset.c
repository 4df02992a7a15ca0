#include "lib/patterns/charset.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"

enum { SURROGATE_LOW = 0xD800, SURROGATE_HIGH = 0xDFFF };

const hf__range hf__plainest_first[HF__PLAINEST_COUNT] = {
    {'0', '9'},
    {'a', 'z'},
    {'A', 'Z'},
    {' ', '/'},
    {':', '@'},
    {'[', '`'},
    {'{', '~'},
    {0, 0x1F},
    {0x7F, HF__CHARACTER_MAX},
    {HF__STRAY_BYTE, HF__STRAY_BYTE},
};

void hf__charset_add(hf__charset *set, uint32_t low, uint32_t high)
{
    if (set->broken)
        return;
    if (!hf__grow(&set->ranges, &set->capacity, set->count + 1, sizeof *set->ranges)) {
        set->broken = true;
        return;
    }
    set->ranges[set->count++] = (hf__range){low, high};
}

void hf__charset_add_ranges(hf__charset *set, const hf__range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hf__charset_add(set, ranges[i].low, ranges[i].high);
}

static int by_low(const void *left, const void *right)
{
    const hf__range *a = left;
    const hf__range *b = right;

    return (a->low > b->low) - (a->low < b->low);
}

/* Cuts the surrogates out of the ranges; a range around them becomes two. */
static void drop_surrogates(hf__charset *set)
{
    size_t count = set->count;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        hf__range range = set->ranges[i];
        if (range.low < SURROGATE_LOW && range.high > SURROGATE_HIGH)
            hf__charset_add(set, SURROGATE_HIGH + 1, range.high);
        if (range.low >= SURROGATE_LOW && range.low <= SURROGATE_HIGH)
            range.low = SURROGATE_HIGH + 1;
        if (range.low < SURROGATE_LOW && range.high >= SURROGATE_LOW)
            range.high = SURROGATE_LOW - 1;
        if (range.low <= range.high)
            set->ranges[kept++] = range;
    }
    for (size_t i = count; i < set->count; i++)
        set->ranges[kept++] = set->ranges[i];
    set->count = kept;
}

void hf__charset_tidy(hf__charset *set)
{
    size_t kept = 0;

    drop_surrogates(set);
    if (set->broken || set->count == 0)
        return;
    qsort(set->ranges, set->count, sizeof set->ranges[0], by_low);
    for (size_t i = 1; i < set->count; i++) {
        hf__range *last = &set->ranges[kept];
        hf__range range = set->ranges[i];
        if (range.low > last->high + 1)
            set->ranges[++kept] = range;
        else if (range.high > last->high)
            last->high = range.high;
    }
    set->count = kept + 1;
}

void hf__charset_negate(hf__charset *set)
{
    hf__charset rest = {0};
    uint32_t from = 0;

    for (size_t i = 0; i < set->count; i++) {
        if (set->ranges[i].low > from)
            hf__charset_add(&rest, from, set->ranges[i].low - 1);
        from = set->ranges[i].high + 1;
    }
    if (from <= HF__STRAY_BYTE)
        hf__charset_add(&rest, from, HF__STRAY_BYTE);
    rest.broken = rest.broken || set->broken;
    hf__charset_free(set);
    *set = rest;
    hf__charset_tidy(set);
}

void hf__charset_clear(hf__charset *set)
{
    set->count = 0;
}

void hf__charset_free(hf__charset *set)
{
    free(set->ranges);
    *set = (hf__charset){0};
}

bool hf__ranges_have(const hf__range *ranges, size_t count, uint32_t character)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].high < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].low <= character;
}

/* Takes the first character of the range that is plainer than *best, which stands in *segment. */
static void prefer(hf__range common, size_t *segment, uint32_t *best)
{
    for (size_t i = 0; i < *segment; i++) {
        hf__range plain = hf__plainest_first[i];
        uint32_t low = common.low > plain.low ? common.low : plain.low;
        if (low <= common.high && low <= plain.high) {
            *segment = i;
            *best = low;
        }
    }
}

uint32_t hf__ranges_common(const hf__range *a, size_t a_count, const hf__range *b, size_t b_count)
{
    size_t segment = HF__PLAINEST_COUNT;
    uint32_t best = HF__NOWHERE;

    for (size_t i = 0, j = 0; i < a_count && j < b_count && segment > 0;) {
        hf__range common = {a[i].low > b[j].low ? a[i].low : b[j].low,
                            a[i].high < b[j].high ? a[i].high : b[j].high};
        if (common.low <= common.high)
            prefer(common, &segment, &best);
        if (a[i].high < b[j].high)
            i++;
        else
            j++;
    }
    return best;
}

uint32_t hf__character_next(const char *text, size_t size, size_t *at)
{
    int32_t point = hf__utf8_next((const unsigned char *)text, size, at);

    return point >= 0 ? (uint32_t)point : HF__STRAY_BYTE;
}

size_t hf__character_write(char out[4], uint32_t character)
{
    if (character != HF__STRAY_BYTE)
        return hf__utf8_write(out, character);
    out[0] = '\xFF';
    return 1;
}
