/* A snapshot and its memory. */
#include "programs/view/snapshot.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/view/parts.h"

const double hf__histogram_bounds[HF__HISTOGRAM_BUCKETS] = {0.001, 0.005, 0.025, 0.1, 0.5,
                                                            2.5,   10,    60,    600};

hf__common *hf__common_new(void)
{
    hf__common *common = calloc(1, sizeof *common);
    if (common)
        atomic_init(&common->users, 1);
    return common;
}

void hf__common_release(hf__common *common)
{
    if (!common || atomic_fetch_sub(&common->users, 1) > 1)
        return;
    hf__findings_free(&common->findings);
    free(common);
}

hf__view_draft *hf__view_draft_new(hf__common *common)
{
    hf__view_draft *draft = calloc(1, sizeof *draft);
    if (!draft)
        return NULL;
    atomic_init(&draft->users, 1);
    atomic_fetch_add(&common->users, 1);
    draft->common = common;
    draft->seen.store = "";
    draft->seen.problem = "";
    return draft;
}

/* If the older one repeats another one itself, that one is kept and not it. */
hf__view_draft *hf__view_draft_again(hf__snapshot *older, uint64_t number)
{
    hf__view_draft *source = (hf__view_draft *)older;
    if (source->older)
        source = source->older;
    hf__view_draft *draft = hf__view_draft_new(source->common);
    if (!draft)
        return NULL;
    draft->older = (hf__view_draft *)hf__snapshot_hold(&source->seen);
    draft->seen = source->seen;
    draft->seen.number = number;
    return draft;
}

hf__snapshot *hf__snapshot_hold(hf__snapshot *snapshot)
{
    atomic_fetch_add(&((hf__view_draft *)snapshot)->users, 1);
    return snapshot;
}

static void free_draft(hf__view_draft *draft)
{
    if (!draft->older) {
        hf_lock_list_free(draft->seen.list);
        for (size_t i = 0; i < draft->seen.moment_count; i++)
            hf__snapshot_release(draft->seen.moments[i].waits);
    }
    hf__arena_free(&draft->arena);
    hf__common_release(draft->common);
    free(draft);
}

void hf__snapshot_release(hf__snapshot *snapshot)
{
    hf__view_draft *draft = (hf__view_draft *)snapshot;
    while (draft && atomic_fetch_sub(&draft->users, 1) == 1) {
        hf__view_draft *older = draft->older;
        free_draft(draft);
        draft = older;
    }
}

/* ---- the arena ------------------------------------------------------------------------------- */

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

/* What does not fit into the rest of a chunk goes into a new one. */
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
