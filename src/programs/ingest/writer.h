/* Writes ledgers into the store, and keeps those that cannot be stored in quarantine. */
#ifndef HF_INGEST_WRITER_H
#define HF_INGEST_WRITER_H

#include "base/stop.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/sources/source.h"

/*
 * Writes the rows of ledgers and transactions. Coverage and cursors are the caller's to write,
 * after it. With bulk, PostgreSQL gets them by COPY; otherwise, and in a local store, INSERTs are
 * queued: they fail with the next query or with COMMIT. Setting stop (may be NULL) ends a COPY with
 * HF_INTERRUPTED.
 */
HF_MUST_CHECK hf_status hf__write_rows(hf_tx *tx, const hf_network *network,
                                       hf__ledger *const *ledgers, size_t count, bool bulk,
                                       const hf__stop *stop, hf_error *err);

/*
 * The ledgers of the next transaction, in ascending order. After the store has refused a batch, its
 * ledgers are written one by one: all but the first are hidden until their turn comes.
 *
 * Zero-initialise it. It owns its ledgers. One thread at a time.
 */
struct batch {
    hf__ledger **ledgers; /* of the next transaction; points into items */
    size_t count;
    size_t hidden;      /* ledgers after those, for later transactions */
    size_t weight;      /* bytes of all of them, hidden ones too */
    hf__ledger **items; /* the array that is allocated */
    size_t capacity;
};

/* Adds a ledger, and owns it from then on. False: out of memory; the ledger stays the caller's. */
HF_MUST_CHECK bool batch_add(struct batch *batch, hf__ledger *ledger);

/* After the commit: frees the ledgers of the transaction, and shows the next hidden one. */
void batch_clear(struct batch *batch);

/* Hides all but the first ledger. */
void batch_split(struct batch *batch);

/* Frees the ledgers up to and including this one, hidden or not. */
void batch_drop_known(struct batch *batch, int64_t latest);

/* Frees all ledgers and the array, and empties the batch. */
void batch_free(struct batch *batch);

/* The first and last sequence of the next transaction; the batch must not be empty. */
int64_t batch_first(const struct batch *batch);
int64_t batch_last(const struct batch *batch);

/* The number of transactions in the ledgers that are not hidden. */
int64_t batch_transactions(const struct batch *batch);

/*
 * Quarantine: ledgers that could not be read or stored, kept with the reason. They are not covered,
 * and so they stay gaps.
 */

/* Describes a ledger that the store refused. Free bad with hf__bad_ledger_free. */
void hf__quarantine_describe(const hf__ledger *ledger, hf__bad_ledger *bad);

/* Replaces what quarantine has of the same ledger. At most a megabyte of its bytes is kept. */
HF_MUST_CHECK hf_status hf__quarantine_add(hf_tx *tx, const hf_network *network, int64_t sequence,
                                           const char *reason, const hf__bad_ledger *bad,
                                           hf_error *err);

/* Removes ledgers that could be stored after all. Queued: sent with the next statement. */
HF_MUST_CHECK hf_status hf__quarantine_drop(hf_tx *tx, const hf_network *network, int64_t from,
                                            int64_t to, hf_error *err);

#endif
