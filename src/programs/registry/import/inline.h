/* What a reader sees of one Markdown cell: no emphasis, links, tags, entities or escapes. */
#ifndef HF_AUDIT_IMPORT_INLINE_H
#define HF_AUDIT_IMPORT_INLINE_H

#include "base/buf.h"
#include "programs/registry/import/markdown.h"

enum { HF__SPANS_MAX = 1024 }; /* pieces of code in one cell that are told apart */

/* Zero-initialise it, free it. Text is valid UTF-8 if the cell was. */
typedef struct hf__inline {
    hf__buf text; /* white space collapsed; a forced line break is '\n' */
    struct {
        size_t start, end; /* of text: what was written as code */
    } spans[HF__SPANS_MAX];
    size_t span_count;
    hf__buf link; /* where the first link leads, "" without one */
} hf__inline;

/* Replaces what was there. */
void hf__inline_read(hf__inline *out, hf__slice cell);
void hf__inline_free(hf__inline *out);

/* Nothing, or what stands for nothing: "-", "n/a", "TBD". */
bool hf__inline_is_empty(const hf__inline *in);

#endif
