/* Ledgers that go into one transaction. After a refusal they go one by one, in their order. */
#ifndef HF_INGEST_BATCH_H
#define HF_INGEST_BATCH_H

#include "programs/ingest/sources/ledger.h"

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

#endif
