/* Networks: cursors, and the exact set of ledgers that are in the store. */
#ifndef HOLDFAST_LEDGERS_H
#define HOLDFAST_LEDGERS_H

#include <holdfast/locks.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ledgers of one network in a store. Any thread may use it; the store must outlive it. */
typedef struct hf_network hf_network;

typedef struct hf_network_options {
    size_t size;
    const char *name; /* "testnet": small letters, digits, '_' and '-', at most 40 */
    /* PostgreSQL: NULL is ingest_<name>; the local store has a file of that name */
    const char *schema;
    const char *latest_cursor; /* NULL: "latestLedgerCursor" */
    const char *oldest_cursor; /* NULL: "oldestLedgerCursor" */
    /*
     * PostgreSQL: what only reads waits at most this long for a table that somebody locks, then it
     * returns HF_NOT_ACQUIRED, and err says who. 0: for ever.
     */
    int64_t read_wait_ms;
} hf_network_options;

#define HF_NETWORK_OPTIONS_INIT                                                                    \
    {                                                                                              \
        .size = sizeof(hf_network_options)                                                         \
    }

/* Only checks the names. The caller frees *network. */
HF_API HF_MUST_CHECK hf_status hf_network_open(hf_store *store, const hf_network_options *options,
                                               hf_network **network, hf_error *err);
HF_API void hf_network_free(hf_network *network);

/*
 * Cursors are rows of ingest_store(key, value), as text. *found false: there is no such row, or no
 * such table yet, which is not the same as zero. HF_BAD_DATA: the value is not a number; err names
 * the row.
 */
HF_API HF_MUST_CHECK hf_status hf_cursor_get(hf_network *network, const char *name, bool *found,
                                             int64_t *value, hf_error *err);

/* Creates the table and the row where they are missing. */
HF_API HF_MUST_CHECK hf_status hf_cursor_set(hf_network *network, const char *name, int64_t value,
                                             hf_error *err);

/*
 * The next three return HF_CURSOR, and change nothing, when the row is missing or is not where it
 * should be. hf_cursor_set_min lowers the cursor, or leaves it when it is lower already.
 */
HF_API HF_MUST_CHECK hf_status hf_cursor_set_min(hf_network *network, const char *name,
                                                 int64_t value, hf_error *err);
/* Moves the cursor to value, only from value - 1. */
HF_API HF_MUST_CHECK hf_status hf_cursor_advance(hf_network *network, const char *name,
                                                 int64_t value, hf_error *err);
/* Moves the cursor to `to`, only from `from`. */
HF_API HF_MUST_CHECK hf_status hf_cursor_swap(hf_network *network, const char *name, int64_t from,
                                              int64_t to, hf_error *err);

typedef void hf_cursor_fn(void *arg, const char *name, int64_t value);

/* Calls fn for every row that is a number, by name. */
HF_API HF_MUST_CHECK hf_status hf_cursor_list(hf_network *network, hf_cursor_fn *fn, void *arg,
                                              hf_error *err);

typedef struct hf_range {
    int64_t from, to; /* both included */
} hf_range;

/*
 * The ledgers between from and to that are missing. from 0: the first ledger that is wanted and
 * that retention keeps. to 0: the latest ledger. The caller frees *gaps with free().
 */
HF_API HF_MUST_CHECK hf_status hf_network_gaps(hf_network *network, int64_t from, int64_t to,
                                               hf_range **gaps, size_t *count, hf_error *err);

#ifdef __cplusplus
}
#endif

#endif
