/*
 * All that is known about one row, on the whole screen. It stays with its lock, party or network
 * when new snapshots come.
 */
#ifndef HF_TOP_DETAIL_H
#define HF_TOP_DETAIL_H

#include "programs/top/top.h"

void hf__detail_open(hf__top *top);
void hf__detail_put(const hf__top *top, hf__frame *frame);

/* "  name      value", or nothing when the value is NULL or "". */
void hf__detail_heading(hf__frame *frame, const char *text);
void hf__detail_field(hf__frame *frame, const char *name, hf__ink ink, const char *value);
/* The same with the text in scratch, which it clears. */
void hf__detail_made(hf__frame *frame, const char *name, hf__buf *scratch);

#endif
