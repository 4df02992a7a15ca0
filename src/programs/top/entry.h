/* A line that somebody types. */
#ifndef HF_TOP_ENTRY_H
#define HF_TOP_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HF__ENTRY_ROOM = 512 };

typedef struct hf__entry {
    char text[HF__ENTRY_ROOM];
    size_t size;
} hf__entry;

/* True when the key was for it: a character, backspace, Ctrl-U, Ctrl-W. */
bool hf__entry_press(hf__entry *entry, int32_t key);
void hf__entry_set(hf__entry *entry, const char *text); /* what does not fit is cut */

#endif
