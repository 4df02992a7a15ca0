/*
 * Patterns are sorted by the text that they begin with, and each knows the next shorter one that
 * is a beginning of its own. All beginnings of a label are on the way up from its neighbour in
 * this order.
 */
#include "programs/registry/matcher.h"

#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX

struct beginning {
    const hf__lock_entry *entry;
    size_t shorter; /* index, or NONE */
};

struct hf__matcher {
    const hf_registry *registry;
    size_t count;
    struct beginning beginnings[];
};

int hf__compare_text(hf__slice a, hf__slice b)
{
    int order = memcmp(a.text, b.text, a.size < b.size ? a.size : b.size);

    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static hf__slice prefix_of(const struct beginning *beginning)
{
    return (hf__slice){beginning->entry->literal_prefix, beginning->entry->literal_prefix_size};
}

static int compare_beginnings(const void *left, const void *right)
{
    return hf__compare_text(prefix_of(left), prefix_of(right));
}

static bool begins(const struct beginning *beginning, hf__slice text)
{
    hf__slice prefix = prefix_of(beginning);

    return prefix.size <= text.size && memcmp(prefix.text, text.text, prefix.size) == 0;
}

/* The first on the way up from `at` that begins the text. */
static size_t climb(const struct beginning *beginnings, size_t at, hf__slice text)
{
    while (at != NONE && !begins(&beginnings[at], text))
        at = beginnings[at].shorter;
    return at;
}

hf_status hf__matcher_new(const hf_registry *registry, hf__matcher **matcher, hf_error *err)
{
    hf__matcher *made = calloc(1, sizeof *made + registry->count * sizeof made->beginnings[0]);

    if (made == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for %zu locks", registry->count);
    made->registry = registry;
    for (size_t i = 0; i < registry->count; i++)
        if (registry->entries[i].language != NULL)
            made->beginnings[made->count++].entry = &registry->entries[i];
    qsort(made->beginnings, made->count, sizeof made->beginnings[0], compare_beginnings);
    for (size_t i = 0; i < made->count; i++)
        made->beginnings[i].shorter =
            climb(made->beginnings, i > 0 ? i - 1 : NONE, prefix_of(&made->beginnings[i]));
    *matcher = made;
    return HF_OK;
}

void hf__matcher_free(hf__matcher *matcher)
{
    free(matcher);
}

/* The last one in the order that does not come behind the label. */
static size_t neighbour(const hf__matcher *matcher, hf__slice label)
{
    size_t low = 0;
    size_t high = matcher->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hf__compare_text(prefix_of(&matcher->beginnings[middle]), label) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : NONE;
}

/* Counts the patterns that have the label, up to two, and finds the first of them. */
static hf_status count_matches(const hf__matcher *matcher, hf__slice label, unsigned *count,
                               const hf__lock_entry **first, hf_error *err)
{
    const struct beginning *all = matcher->beginnings;
    size_t at = climb(all, neighbour(matcher, label), label);

    for (*count = 0; at != NONE && *count < 2; at = all[at].shorter) {
        bool has = false;
        hf_status status =
            hf__language_has(all[at].entry->language, label.text, label.size, &has, err);
        if (status != HF_OK)
            return status;
        if (has && (*count)++ == 0)
            *first = all[at].entry;
    }
    return HF_OK;
}

/*
 * Names, labels with two matches, keys of two numbers and failures are left to the registry
 * itself.
 */
hf_status hf__matcher_resolve(const hf__matcher *matcher, const char *label, size_t size,
                              hf_target *target, const hf_registry_entry **entry, hf_error *err)
{
    const hf__lock_entry *first = NULL;
    unsigned count = 0;

    if (hf__registry_by_name(matcher->registry, label, size) != NULL ||
        count_matches(matcher, (hf__slice){label, size}, &count, &first, err) != HF_OK ||
        count > 1 || (count == 1 && first->view.space == HF_PAIR))
        return hf_registry_resolve(matcher->registry, label, size, target, entry, err);
    *target = (hf_target){.label = label, .label_size = size};
    *entry = NULL;
    if (count == 1) {
        target->derivation = first->view.derivation;
        *entry = &first->view;
    }
    return HF_OK;
}

/* --- sorting many keys ---------------------------------------------------------------------- */

/*
 * A radix sort from the highest byte on (American flag sort): each pass puts every item into the
 * part of the array that belongs to its byte, by swaps, then goes into the parts.
 */

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
