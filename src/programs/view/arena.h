/* Memory that is given back all at once: a snapshot's. One thread fills it. */
#ifndef HF_VIEW_ARENA_H
#define HF_VIEW_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise it. After a failed allocation it is marked broken, so that only the end needs a check. */
typedef struct hf__arena {
    struct hf__arena_chunk *chunks; /* the newest first */
    bool broken;
} hf__arena;

/* count things of size bytes, zeroed and aligned for anything; NULL when broken. 0 of them are fine. */
void *hf__arena_array(hf__arena *arena, size_t count, size_t size);
/* Never NULL: "" when broken, and for NULL. */
const char *hf__arena_text(hf__arena *arena, const char *text);
const char *hf__arena_printf(hf__arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hf__arena_free(hf__arena *arena);

#endif
