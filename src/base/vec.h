#ifndef HF_BASE_VEC_H
#define HF_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes room for `wanted` items of `item_size` bytes in an array that the caller owns and frees:
 *
 *     if (!hf__grow(&items, &room, count + 1, sizeof *items))
 *         return hf__no_memory(err);
 *     items[count++] = item;
 *
 * items is the address of the array's pointer (NULL while *room is 0), of whatever type. The array
 * at least doubles, so that adding one item at a time stays cheap. New items are not initialised.
 * Returns false, with the array as it was, when there is no memory or the size does not fit in
 * size_t.
 */
bool hf__grow(void *items, size_t *room, size_t wanted, size_t item_size);

#endif
