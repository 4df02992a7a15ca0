/* Ledgers that could not be read or stored, kept with the reason. They stay gaps. */
#ifndef HF_INGEST_QUARANTINE_H
#define HF_INGEST_QUARANTINE_H

#include "lib/ledgers/ledgers.h"
#include "programs/ingest/sources/source.h"

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
