/* The rows of ledgers: by COPY where there are many and the store has it, else by INSERT. */
#ifndef HF_INGEST_WRITER_H
#define HF_INGEST_WRITER_H

#include <stdatomic.h>

#include "lib/ledgers/ledgers.h"
#include "programs/ingest/sources/ledger.h"

/*
 * Writes ledgers and transactions, and neither coverage nor cursor, which come after it. stop (may be
 * NULL) ends a COPY that goes on with HF_INTERRUPTED. INSERTs are queued: they fail with the next query or
 * COMMIT. The ledgers must live until then.
 */
HF_MUST_CHECK hf_status hf__write_rows(hf_tx *tx, const hf_network *network,
                                       hf__ledger *const *ledgers, size_t count, bool bulk,
                                       const atomic_bool *stop, hf_error *err);

enum { HF__TIME_SIZE = 96 };

/* "2026-01-15T12:00:00.000000Z", as both stores take it. Returns out. */
const char *hf__time_text(char out[HF__TIME_SIZE], int64_t unix_us);

#endif
