/* The text of a Markdown cell as people see it, without any marks of Markdown or HTML. */
#ifndef HF_PROGRAMS_REGISTRY_IMPORT_INLINE_H
#define HF_PROGRAMS_REGISTRY_IMPORT_INLINE_H

#include "base/buf.h"
#include "programs/registry/import/markdown.h"

enum { HF__SPANS_MAX = 1024 }; /* pieces of code in one cell; any more count as text */

/* Zero-initialise it, and free it in any case. The text is valid UTF-8 if the cell is. */
typedef struct hf__inline {
    hf__buf text; /* with single spaces; '\n' for <br> */
    struct {
        size_t start, end;  /* in text */
    } spans[HF__SPANS_MAX]; /* what is written as code */
    size_t span_count;
    hf__buf link; /* where the first link leads; "" without one */
} hf__inline;

/* Replaces what out had. Without memory, text or link is marked broken. Takes linear time. */
void hf__inline_read(hf__inline *out, hf__slice cell);
void hf__inline_free(hf__inline *out);

/* Is it nothing, or something that stands for nothing: "-", "n/a", "TBD"? */
bool hf__inline_is_empty(const hf__inline *in);

#endif
