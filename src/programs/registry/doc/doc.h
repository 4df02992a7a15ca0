/* A registry as a page of Markdown tables. */
#ifndef HF_PROGRAMS_REGISTRY_DOC_H
#define HF_PROGRAMS_REGISTRY_DOC_H

#include "lib/registry/registry.h"

/*
 * Appends the page. The same registry gives the same bytes, in whatever folder it is. Returns
 * HF_NO_MEMORY when out broke on the way.
 */
HF_MUST_CHECK hf_status hf__doc_write(const hf_registry *registry, hf__buf *out, hf_error *err);

/* The same as one page of HTML, with a search over all tables. */
HF_MUST_CHECK hf_status hf__doc_write_html(const hf_registry *registry, hf__buf *out,
                                           hf_error *err);

/* What stands before the number where the registry allows another risk than the default. */
#define HF__DOC_MAX_RISK "The registry allows two labels to collide with a probability of "

/* What doc.c and doc_inspect.c share. */

/* Is the entry an id, and not a pattern of labels? */
bool hf__doc_is_fixed(const hf__lock_entry *entry);

/* Appends text as code in a cell of a table, whatever is in it. */
void hf__doc_code(hf__buf *out, const char *text);

/* Appends the section on how to look at these locks in a database. */
void hf__doc_write_inspection(const hf_registry *registry, hf__buf *out);

#endif
