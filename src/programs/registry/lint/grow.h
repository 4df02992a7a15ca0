#ifndef HF_LINT_GROW_H
#define HF_LINT_GROW_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for one more item of the given size; false when there is no memory. */
bool hf__grow(void **items, size_t count, size_t *capacity, size_t item_size);

/* hf__grow over a typed array. */
#define HF__GROW(items, count, capacity)                                                           \
    hf__grow((void **)&(items), (count), &(capacity), sizeof *(items))

#endif
