/* Does the server leave out blocks that a table has had before? */
#ifndef HF_APPEND_DEDUP_H
#define HF_APPEND_DEDUP_H

#include "programs/append/grid.h"

/* How many blocks it remembers: 0 where it does not, or where that is not known. */
int64_t hf__dedup_window(const char *engine_full, const hf__grid *settings);

/* Blocks can be named by the client, so that equal ones of two appends are both kept. */
bool hf__dedup_has_token(const hf__grid *settings);

#endif
