#ifndef HF_INGEST_WRITER_H
#define HF_INGEST_WRITER_H

#include "base/stop.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/sources/source.h"

/* The rows of ledgers: by COPY where there are many and the store has it, else by INSERT. */

/*
 * Writes ledgers and transactions, and neither coverage nor cursor, which come after it. stop (may
 * be NULL) ends a COPY that goes on with HF_INTERRUPTED. INSERTs are queued: they fail with the
 * next query or COMMIT. The ledgers must live until then.
 */
HF_MUST_CHECK hf_status hf__write_rows(hf_tx *tx, const hf_network *network,
                                       hf__ledger *const *ledgers, size_t count, bool bulk,
                                       const hf__stop *stop, hf_error *err);

/* Ledgers that go into one transaction. After a refusal they go one by one, in their order. */

/* Zero-initialise it. It owns its ledgers. */
struct batch {
    hf__ledger **ledgers; /* those of the next transaction */
    size_t count;
    size_t hidden; /* behind them, for later ones */
    size_t weight; /* of all */
    hf__ledger **items;
    size_t capacity;
};

HF_MUST_CHECK bool batch_add(struct batch *batch, hf__ledger *ledger);

/* The transaction has committed: frees its ledgers, and shows the next hidden one. */
void batch_clear(struct batch *batch);

/* Only the first is for the next transaction. */
void batch_split(struct batch *batch);

/* Frees what is up to this ledger. */
void batch_drop_known(struct batch *batch, int64_t latest);
void batch_free(struct batch *batch);

int64_t batch_first(const struct batch *batch);
int64_t batch_last(const struct batch *batch);
int64_t batch_transactions(const struct batch *batch);

/* Ledgers that could not be read or stored, kept with the reason. They stay gaps. */

/* What the source gave of a ledger that the store refused, as far as it was kept. Free it. */
void hf__quarantine_describe(const hf__ledger *ledger, hf__bad_ledger *bad);

/* Replaces what was kept of the same ledger before. */
HF_MUST_CHECK hf_status hf__quarantine_add(hf_tx *tx, const hf_network *network, int64_t sequence,
                                           const char *reason, const hf__bad_ledger *bad,
                                           hf_error *err);

/* The ledger has come after all. Queued with the next statement. */
HF_MUST_CHECK hf_status hf__quarantine_drop(hf_tx *tx, const hf_network *network, int64_t from,
                                            int64_t to, hf_error *err);

#endif
