#ifndef HF_TX_TRANSACT_H
#define HF_TX_TRANSACT_H

#include "base/error.h"
#include "lib/locks/engine.h"

/* Transactions elsewhere than in the caller's database of the local store; on PostgreSQL like any. */

/* As hf_transact. HF__TX_FILE takes options->database as the path of a file that must be there. */
HF_MUST_CHECK hf_status hf__transact_at(hf_store *store, hf__tx_place place,
                                        const hf_tx_options *options, hf_tx_fn *fn, void *arg,
                                        hf_error *err);

/* As hf_lock_transact. */
HF_MUST_CHECK hf_status hf__lock_transact_at(hf_lock *lock, hf__tx_place place,
                                             const hf_tx_options *options, hf_tx_fn *fn, void *arg,
                                             hf_error *err);

/* The last transaction under two locks. */

/*
 * As hf_lock_transact on the first lock's session, and releases both locks: in the message of the commit
 * where they share a session. After HF_OK they are released, else held as before.
 */
HF_MUST_CHECK hf_status hf__lock_transact_last(hf_lock *const locks[2],
                                               const hf_tx_options *options, hf_tx_fn *fn,
                                               void *arg, hf_error *err);

#endif
