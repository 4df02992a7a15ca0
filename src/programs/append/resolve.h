/* Appends that did not come to their end, as the store has them, and how people end them. */
#ifndef HF_APPEND_RESOLVE_H
#define HF_APPEND_RESOLVE_H

#include "programs/append/append.h"

/* What to take for true where nothing proves it. */
typedef enum hf__assumed {
    HF__ASSUME_NOTHING = 0,
    HF__ASSUME_ATTACHED,
    HF__ASSUME_MISSING
} hf__assumed;

typedef struct hf__resolve_options {
    const char *id;
    hf__assumed assumed;
    int64_t wait_ms; /* for locks and orphans; -1: for ever, but not for an append that runs */
    hf__append_events events;
} hf__resolve_options;

/*
 * HF_OK: the store knows this append. HF_INVALID: it does not. HF_NOT_ACQUIRED: it cannot know yet,
 * since the append is running and has not begun to attach.
 */
HF_MUST_CHECK hf_status hf__append_known(hf_store *store, hf__stop *stop,
                                         const hf__resolve_options *options, hf_error *err);

/*
 * Looks at the table again, attaches what is missing and saves what came of it; row is as it is in
 * the store afterwards. HF_IN_DOUBT: nothing proves it still. The caller frees row, also after a
 * failure.
 */
HF_MUST_CHECK hf_status hf__append_resolve(hf_store *store, hf__target *target, hf__stop *stop,
                                           const hf__resolve_options *options, hf__append_row *row,
                                           hf_error *err);

/*
 * Removes the row and, with a target, the rows that are staged. What is in the table stays there.
 * row is as it was; the caller frees it, also after a failure.
 */
HF_MUST_CHECK hf_status hf__append_forget(hf_store *store, hf__target *target, hf__stop *stop,
                                          const hf__resolve_options *options, hf__append_row *row,
                                          hf_error *err);

extern const struct command cmd_append_list, cmd_append_resolve, cmd_append_forget;

#endif
