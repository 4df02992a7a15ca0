/* All that is known of one row, over the whole screen. It follows its subject from refresh to refresh. */
#ifndef HF_TOP_DETAIL_H
#define HF_TOP_DETAIL_H

#include "programs/top/top.h"

void hf__detail_open(hf__top *top);
void hf__detail_put(const hf__top *top, hf__frame *frame);

/* For those below: "  name      value", nothing where the value is NULL or "". */
void hf__detail_heading(hf__frame *frame, const char *text);
void hf__detail_field(hf__frame *frame, const char *name, hf__ink ink, const char *value);
/* The same with what was just made in scratch, which is emptied. */
void hf__detail_made(hf__frame *frame, const char *name, hf__buf *scratch);

#endif
