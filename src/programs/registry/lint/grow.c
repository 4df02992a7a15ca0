#include "programs/registry/lint/grow.h"

#include <stdlib.h>

bool hf__grow(void **items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity)
        return true;

    size_t room = *capacity == 0 ? 16 : *capacity * 2;
    void *larger = reallocarray(*items, room, item_size);
    if (larger == NULL)
        return false;
    *items = larger;
    *capacity = room;
    return true;
}
