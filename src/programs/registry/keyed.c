/* A radix sort from the highest byte on (American flag sort): each pass puts every item into the part
 * of the array that belongs to its byte, by swaps, then goes into the parts. */
#include "programs/registry/keyed.h"

enum { RADIX = 256, FEW = 24 };

static void sort_few(hf__keyed *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        hf__keyed item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].key > item.key; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static unsigned byte_of(uint64_t key, unsigned shift)
{
    return key >> shift & (RADIX - 1);
}

/* Where each part ends; next is where its first item out of place stands. */
static void find_parts(const hf__keyed *items, size_t count, unsigned shift, size_t next[RADIX],
                       size_t end[RADIX])
{
    size_t sum = 0;

    for (size_t i = 0; i < RADIX; i++)
        end[i] = 0;
    for (size_t i = 0; i < count; i++)
        end[byte_of(items[i].key, shift)]++;
    for (size_t i = 0; i < RADIX; i++) {
        next[i] = sum;
        sum += end[i];
        end[i] = sum;
    }
}

static void move_to_parts(hf__keyed *items, unsigned shift, size_t next[RADIX],
                          const size_t end[RADIX])
{
    for (unsigned part = 0; part < RADIX; part++) {
        while (next[part] < end[part]) {
            hf__keyed item = items[next[part]];
            for (unsigned home; (home = byte_of(item.key, shift)) != part;) {
                hf__keyed displaced = items[next[home]];
                items[next[home]++] = item;
                item = displaced;
            }
            items[next[part]++] = item;
        }
    }
}

/* At most eight levels deep. */
static void sort_from(hf__keyed *items, size_t count, unsigned shift) // NOLINT(misc-no-recursion)
{
    size_t next[RADIX], end[RADIX];

    if (count <= FEW) {
        sort_few(items, count);
        return;
    }
    find_parts(items, count, shift, next, end);
    move_to_parts(items, shift, next, end);
    for (size_t i = 0, start = 0; shift > 0 && i < RADIX; start = end[i++])
        if (end[i] - start > 1)
            sort_from(items + start, end[i] - start, shift - 8);
}

void hf__keyed_sort(hf__keyed *items, size_t count)
{
    sort_from(items, count, 64 - 8);
}
