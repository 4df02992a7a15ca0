/* The Markdown tables in which teams keep their locks, as a registry. */
#ifndef HF_AUDIT_IMPORT_H
#define HF_AUDIT_IMPORT_H

#include "base/buf.h"
#include "lib/registry/finding.h"

enum {
    HF__IMPORT_MAX = 8 * 1024 * 1024, /* bytes of Markdown, and of what a registry may have */
    HF__IMPORT_LOCKS_MAX = 10000,     /* a registry takes so many, however much each says */
    HF__IMPORT_CELL_MAX = 8192,
};

/*
 * Appends a registry to yaml. name is the file's, for messages. What was skipped or is in doubt is
 * in notes; text that cannot be read, or has no table of locks, is HF_BAD_DATA.
 */
HF_MUST_CHECK hf_status hf__import_markdown(const char *name, const char *text, size_t size,
                                            hf__buf *yaml, hf__findings *notes, hf_error *err);

#endif
