#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 16 };

bool hf__grow(void *items, size_t *room, size_t wanted, size_t item_size)
{
    size_t larger = *room > 0 ? *room : FIRST_ROOM;
    void *array;

    if (wanted <= *room)
        return true;
    while (larger < wanted) {
        if (larger > SIZE_MAX / 2)
            return false;
        larger *= 2;
    }
    if (larger > SIZE_MAX / item_size)
        return false;
    /* Copied as bytes, because reading a T * through a void ** breaks the aliasing rules. */
    memcpy(&array, items, sizeof array);
    void *grown = realloc(array, larger * item_size);
    if (grown == NULL)
        return false;
    memcpy(items, &grown, sizeof grown);
    *room = larger;
    return true;
}
