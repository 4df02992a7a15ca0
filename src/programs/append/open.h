/* How the commands of this program open the target. */
#ifndef HF_APPEND_OPEN_H
#define HF_APPEND_OPEN_H

#include "programs/append/append.h"

/*
 * Opens options->url, or its default where that is NULL: on a local store a chdb folder beside the
 * store's data. Looks for libchdb.so where the environment says. The caller closes *target.
 */
HF_MUST_CHECK hf_status open_append_target(const hf_store *store, const hf__target_options *options,
                                           hf__target **target, hf_error *err);

#endif
