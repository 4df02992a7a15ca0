#include "programs/view/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024 };

struct hf__arena_chunk {
    struct hf__arena_chunk *next;
    size_t used, room;
    alignas(max_align_t) unsigned char bytes[];
};

static struct hf__arena_chunk *add_chunk(hf__arena *arena, size_t size)
{
    size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    struct hf__arena_chunk *chunk = malloc(sizeof *chunk + room);
    if (!chunk)
        return NULL;
    chunk->used = 0;
    chunk->room = room;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

/* What is too large for the rest of a chunk gets the next one: the rest stays unused. */
static void *take(hf__arena *arena, size_t size)
{
    struct hf__arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->room - chunk->used < size)
        chunk = add_chunk(arena, size);
    if (!chunk) {
        arena->broken = true;
        return NULL;
    }
    void *taken = chunk->bytes + chunk->used;
    chunk->used += size;
    return taken;
}

void *hf__arena_array(hf__arena *arena, size_t count, size_t size)
{
    const size_t unit = alignof(max_align_t);
    if (arena->broken || (size > 0 && count > (SIZE_MAX / 2 - unit) / size)) {
        arena->broken = true;
        return NULL;
    }
    size_t bytes = (count * size + unit - 1) / unit * unit;
    void *array = take(arena, bytes > 0 ? bytes : unit);
    if (array)
        memset(array, 0, count * size);
    return array;
}

const char *hf__arena_text(hf__arena *arena, const char *text)
{
    size_t size = text && text[0] ? strlen(text) + 1 : 0;
    char *copy = size > 0 ? hf__arena_array(arena, size, 1) : NULL;
    return copy ? memcpy(copy, text, size) : "";
}

const char *hf__arena_printf(hf__arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    char *text = size >= 0 ? hf__arena_array(arena, (size_t)size + 1, 1) : NULL;
    if (text)
        (void)vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    return text ? text : "";
}

void hf__arena_free(hf__arena *arena)
{
    while (arena->chunks) {
        struct hf__arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
}
