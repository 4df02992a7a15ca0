/* A registry as a page of Markdown tables. */
#ifndef HF_AUDIT_DOC_H
#define HF_AUDIT_DOC_H

#include "lib/registry/registry.h"

/* Appends the page: the same bytes for the same registry, wherever it lies. */
HF_MUST_CHECK hf_status hf__doc_write(const hf_registry *registry, hf__buf *out, hf_error *err);

/* doc_inspect.c: how to look at these locks in a database. */
void hf__doc_write_inspection(const hf_registry *registry, hf__buf *out);

/* Text as code inside of a table, whatever is in it. */
void hf__markdown_code(hf__buf *out, const char *text, size_t size);

#endif
