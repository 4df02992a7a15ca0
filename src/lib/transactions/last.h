/* The last transaction under two locks. */
#ifndef HF_TX_LAST_H
#define HF_TX_LAST_H

#include "base/error.h"

/*
 * As hf_lock_transact on the first lock's session, and releases both locks: in the message of the commit
 * where they share a session. After HF_OK they are released, else held as before.
 */
HF_MUST_CHECK hf_status hf__lock_transact_last(hf_lock *const locks[2],
                                               const hf_tx_options *options, hf_tx_fn *fn,
                                               void *arg, hf_error *err);

#endif
