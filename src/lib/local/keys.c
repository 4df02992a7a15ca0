/* The set of keys that a session holds. */
#include <stdlib.h>

#include "base/hash.h"
#include "lib/local/local.h"

static size_t first_slot(const hf__local_keys *keys, int64_t key, uint8_t space)
{
    return (size_t)hf__hash_int((uint64_t)key ^ space) & (keys->size - 1);
}

/* The slot of the key, or the free one where it would go. */
static size_t find_slot(const hf__local_keys *keys, int64_t key, uint8_t space)
{
    size_t at = first_slot(keys, key, space);

    while (keys->slot[at].used && (keys->slot[at].key != key || keys->slot[at].space != space))
        at = (at + 1) & (keys->size - 1);
    return at;
}

bool hf__local_keys_have(const hf__local_keys *keys, const hf__claim *claim)
{
    return keys->count > 0 && keys->slot[find_slot(keys, claim->key, (uint8_t)claim->space)].used;
}

bool hf__local_keys_reserve(hf__local_keys *keys, size_t more)
{
    size_t size = keys->size > 0 ? keys->size : 8;

    while (size / 2 < keys->count + more)
        size *= 2;
    if (size == keys->size)
        return true;

    hf__local_keys grown = {.slot = calloc(size, sizeof *grown.slot), .size = size};
    if (grown.slot == NULL)
        return false;
    grown.count = keys->count;
    for (size_t i = 0; i < keys->size; i++)
        if (keys->slot[i].used)
            grown.slot[find_slot(&grown, keys->slot[i].key, keys->slot[i].space)] = keys->slot[i];
    free(keys->slot);
    *keys = grown;
    return true;
}

void hf__local_keys_add(hf__local_keys *keys, const hf__claim *claim)
{
    uint8_t space = (uint8_t)claim->space;
    hf__local_key *slot = &keys->slot[find_slot(keys, claim->key, space)];

    if (!slot->used)
        keys->count++;
    *slot = (hf__local_key){.key = claim->key, .space = space, .used = true};
}

bool hf__local_keys_remove(hf__local_keys *keys, const hf__claim *claim)
{
    if (!hf__local_keys_have(keys, claim))
        return false;

    size_t mask = keys->size - 1;
    size_t hole = find_slot(keys, claim->key, (uint8_t)claim->space);
    keys->slot[hole].used = false;
    keys->count--;

    /* Moves back keys that were pushed past the hole, because a search ends at a free slot. */
    for (size_t at = (hole + 1) & mask; keys->slot[at].used; at = (at + 1) & mask) {
        size_t wanted = first_slot(keys, keys->slot[at].key, keys->slot[at].space);
        if (((at - wanted) & mask) < ((at - hole) & mask))
            continue;
        keys->slot[hole] = keys->slot[at];
        keys->slot[at].used = false;
        hole = at;
    }
    return true;
}

void hf__local_keys_free(hf__local_keys *keys)
{
    free(keys->slot);
    *keys = (hf__local_keys){0};
}
