/* Makes a registry of the Markdown tables in which a team keeps its locks. */
#ifndef HF_PROGRAMS_REGISTRY_IMPORT_IMPORT_H
#define HF_PROGRAMS_REGISTRY_IMPORT_IMPORT_H

#include "base/buf.h"
#include "base/error.h"
#include "lib/registry/finding.h"

enum {
    HF__IMPORT_MAX = 8 * 1024 * 1024, /* bytes of Markdown, and of a registry */
    HF__IMPORT_LOCKS_MAX = 10000,     /* locks that a registry may have */
    HF__IMPORT_CELL_MAX = 8192,
};

/*
 * Appends a registry to yaml. name is the file's name, for messages. What was skipped or left out
 * goes to notes. Returns HF_BAD_DATA for text that cannot be read or has no table of locks. yaml
 * and notes belong to the caller, who frees them in any case.
 */
HF_MUST_CHECK hf_status hf__import_markdown(const char *name, const char *text, size_t size,
                                            hf__buf *yaml, hf__findings *notes, hf_error *err);

#endif
