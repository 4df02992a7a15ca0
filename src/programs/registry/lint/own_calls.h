/* The calls of Holdfast's own SQL functions and bindings: which of their arguments name locks. */
#ifndef HF_LINT_OWN_CALLS_H
#define HF_LINT_OWN_CALLS_H

#include "programs/registry/lint/uses.h"

/* Are Holdfast's bindings loaded here? */
extern const char *const hf__own_import;

/*
 * Reads the keys of one call, which may lock several labels: at most HF__PIECES_MAX, and *count is
 * 0 when it names none. What cannot be read is a key too, of which nothing is known. The caller
 * frees each.
 */
HF_MUST_CHECK hf_status hf__own_keys_read(const hf__scope *scope, const hf__use_kind *kind,
                                          const hf__args *args, hf__lock_key *keys, size_t *count,
                                          hf_error *err);

#endif
