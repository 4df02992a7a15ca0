/* Where a network stands, read from the store, which is the only truth. */
#ifndef HF_INGEST_STATE_H
#define HF_INGEST_STATE_H

#include "lib/ledgers/ledgers.h"
#include "programs/ingest/sources/ledger.h"

typedef struct hf__ingest_state {
    bool started;                    /* at least one ledger has been ingested */
    int64_t latest;                  /* the cursor, which is the end of coverage */
    int64_t oldest;                  /* the start of coverage's last run */
    int64_t row_from;                /* where coverage's last row begins */
    char tip_hash[HF__HASH_MAX + 1]; /* of the latest ledger; "": not known */
} hf__ingest_state;

/*
 * In one transaction. HF_CONFIG where cursor and coverage disagree, with the way on: what the cursor
 * claims and the data lacks must not be built upon.
 */
HF_MUST_CHECK hf_status hf__state_read(hf_network *network, hf__ingest_state *state, hf_error *err);

/* The hash of a ledger that is there; *found false: it is not. In a transaction of its own. */
HF_MUST_CHECK hf_status hf__ledger_hash(hf_network *network, int64_t sequence, bool *found,
                                        char hash[HF__HASH_MAX + 1], hf_error *err);

#endif
