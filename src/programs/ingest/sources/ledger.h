/* One ledger as a source gives it. Text is sliced from the bytes that arrived, never rebuilt. */
#ifndef HF_SOURCE_LEDGER_H
#define HF_SOURCE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    HF__LEDGER_MAX = INT32_MAX,    /* so that a TOID stays positive */
    HF__ORDER_MAX = (1 << 20) - 1, /* of a transaction in its ledger */
    HF__HASH_MAX = 128,            /* bytes of a hash as text */
};

typedef struct hf__slice {
    const char *text; /* not NUL-terminated; NULL: not given */
    size_t size;
} hf__slice;

typedef struct hf__transaction {
    int32_t order; /* from 1 */
    hf__slice hash;
    hf__slice status;
    bool has_fee;
    int64_t fee;
    hf__slice body; /* the whole JSON object as it came */
} hf__transaction;

typedef struct hf__ledger {
    int64_t sequence;
    hf__slice hash;
    hf__slice previous_hash;       /* NULL: the source does not say */
    int64_t closed_at_us;          /* Unix time, microseconds */
    hf__transaction *transactions; /* ascending by order, without repeats */
    size_t transaction_count;
    size_t weight; /* bytes that it keeps in memory */
    char *bytes;   /* what the slices point into; owned */
    int64_t tip;   /* the last ledger that the source is known to have; 0: it cannot tell */
} hf__ledger;

void hf__ledger_free(hf__ledger *ledger);

/* HF_BAD_DATA when two of its transactions have one hash. */
HF_MUST_CHECK hf_status hf__ledger_check_hashes(const hf__ledger *ledger, hf_error *err);

/* (ledger << 32) | (order << 12) */
static inline int64_t hf__toid(int64_t sequence, int32_t order)
{
    return (int64_t)((uint64_t)sequence << 32 | (uint64_t)(uint32_t)order << 12);
}

#endif
