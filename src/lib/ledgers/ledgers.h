#ifndef HF_CURSOR_CURSOR_H
#define HF_CURSOR_CURSOR_H

#include "base/buf.h"
#include "lib/transactions/transactions.h"

/*
 * Cursors, coverage and tables of one network, inside a transaction of the caller's: hf_transact, or
 * hf_lock_transact for the ingester, whose writes must not outlive its lock. Every call takes the hf_tx of
 * the store that the network belongs to.
 *
 * Coverage is the set of ledgers whose rows are in the tables, as disjoint rows (lo, hi). It is touched
 * after the data and before the cursor: it is the row that live and backfill contend for.
 */

struct hf_network {
    hf_store *store;
    bool local;
    char name[48];
    char schema[64];  /* as it is called; local: the database (file) */
    char prefix[140]; /* "\"ingest_testnet\"." before every table; local: "" */
    char latest[128]; /* names of the cursors */
    char oldest[128];
    char label[128];        /* of the network's lock: wallet-backend-ingest-<name> */
    int64_t lock_key;       /* fnv1a64 of it */
    int64_t coverage_key;   /* PostgreSQL: taken by whoever adds, clips or rebuilds coverage */
    int64_t partitions_key; /* likewise by whoever creates tables or partitions */
};

/* Rows of our own in ingest_store, beside the cursors. */
#define HF__WANTED_FROM "holdfast.wantedFrom"         /* how far back the operator wants */
#define HF__RETENTION_FLOOR "holdfast.retentionFloor" /* below it nothing is kept */

/* network.c: a transaction on the store, in the network's database */
HF_MUST_CHECK hf_status hf__network_transact(hf_network *network, hf_tx_fn *fn, void *arg,
                                             hf_error *err);
hf_tx_options hf__network_tx_options(const hf_network *network); /* read committed */
/* Read-only, in one snapshot. *there false, and fn not called: a local file that nobody has made yet. */
HF_MUST_CHECK hf_status hf__network_read(hf_network *network, hf_tx_fn *fn, void *arg, bool *there,
                                         hf_error *err);
/* hf__tx_query_sql, with the network's prefix for @prefix@; rows may be NULL. */
HF_MUST_CHECK hf_status hf__network_query(hf_tx *tx, const hf_network *network, const hf__sql *sql,
                                          size_t count, const hf_value *values, hf_rows **rows,
                                          hf_error *err);
/* The same, queued with the next query or COMMIT. */
HF_MUST_CHECK hf_status hf__network_queue(hf_tx *tx, const hf_network *network, const hf__sql *sql,
                                          size_t count, const hf_value *values, hf_error *err);

/* cursor.c: one row of ingest_store */
HF_MUST_CHECK hf_status hf__cursor_read(hf_tx *tx, const hf_network *network, const char *name,
                                        bool lock_row, bool *found, int64_t *value, hf_error *err);
HF_MUST_CHECK hf_status hf__cursor_write(hf_tx *tx, const hf_network *network, const char *name,
                                         int64_t value, hf_error *err); /* upsert */
/* value - 1 → value for a single step, or from → to in general; HF_CURSOR when it stands elsewhere. */
HF_MUST_CHECK hf_status hf__cursor_move(hf_tx *tx, const hf_network *network, const char *name,
                                        int64_t from, int64_t to, hf_error *err);
HF_MUST_CHECK hf_status hf__text_read(hf_tx *tx, const hf_network *network, const char *name,
                                      hf__buf *value, bool *found, hf_error *err);
HF_MUST_CHECK hf_status hf__text_write(hf_tx *tx, const hf_network *network, const char *name,
                                       const char *value, hf_error *err);

/* coverage.c */
typedef struct hf__ranges {
    hf_range *items; /* ascending, disjoint */
    size_t count;
    size_t capacity;
} hf__ranges;
void hf__ranges_free(hf__ranges *ranges);
HF_MUST_CHECK bool hf__ranges_add(hf__ranges *ranges, int64_t from,
                                  int64_t to); /* at the end; merges neighbours */

HF_MUST_CHECK hf_status hf__coverage_read(hf_tx *tx, const hf_network *network, int64_t from,
                                          int64_t to, hf__ranges *ranges, hf_error *err);
/* Adds a range, merging what it touches. Ranges that others add at the same time stay apart, which is
 * as true: readers join neighbours. */
HF_MUST_CHECK hf_status hf__coverage_add(hf_tx *tx, const hf_network *network, int64_t from,
                                         int64_t to, hf_error *err);
/* The live ingester's step: the range that begins at `from` and ends at `end` grows to `to`. One
 * update by primary key, whatever the number of ranges. A row whose start retention has moved since is
 * found by its end, for a trip more: hf__coverage_last tells where it begins now. HF_CURSOR when no
 * range ends there. */
HF_MUST_CHECK hf_status hf__coverage_extend(hf_tx *tx, const hf_network *network, int64_t from,
                                            int64_t end, int64_t to, hf_error *err);
/* Removes what is below `floor` (or above `ceiling`, when not 0). */
HF_MUST_CHECK hf_status hf__coverage_clip(hf_tx *tx, const hf_network *network, int64_t floor,
                                          int64_t ceiling, hf_error *err);
/* The last run of neighbouring ranges: its end is what latest may claim, its start what oldest may.
 * *found false: there is no coverage. row_from: where the last row itself begins. */
HF_MUST_CHECK hf_status hf__coverage_last(hf_tx *tx, const hf_network *network, bool *found,
                                          hf_range *last, int64_t *row_from, hf_error *err);
/* verify.c: coverage against the rows of ledgers and transactions */
typedef enum hf__disagreement {
    HF__DATA_MISSING,    /* covered, but there is no such ledger */
    HF__DATA_INCOMPLETE, /* the ledger is there, but not as many transactions as it says */
    HF__DATA_UNCOVERED,  /* there, whole, and not covered */
} hf__disagreement;
typedef void hf__disagreement_fn(void *arg, hf__disagreement kind, hf_range ledgers);
/* Of the ledgers from…to, whatever their number in bounded memory: in many short transactions, each of
 * which sees rows and coverage of a piece at one moment. */
HF_MUST_CHECK hf_status hf__coverage_verify(hf_network *network, int64_t from, int64_t to,
                                            hf__disagreement_fn *fn, void *arg, hf_error *err);
/* Coverage becomes what the data says, above the retention floor; *ranges is what it is now. For a
 * transaction that nothing else of the network is done in. */
HF_MUST_CHECK hf_status hf__coverage_rebuild(hf_tx *tx, const hf_network *network,
                                             hf__ranges *ranges, hf_error *err);
typedef struct hf__repair {
    size_t ranges;
    int64_t ledgers;
    bool latest_moved, oldest_moved; /* the cursors follow coverage */
    int64_t latest, oldest;          /* where they stand now; 0: nothing is covered */
} hf__repair;
/* Under the network's lock; HF_NOT_ACQUIRED while an ingester runs. */
HF_MUST_CHECK hf_status hf__coverage_repair(hf_network *network, hf__repair *repair, hf_error *err);

/* ranges.c: window − coverage. Pure. */
HF_MUST_CHECK bool hf__ranges_missing(const hf__ranges *covered, int64_t from, int64_t to,
                                      hf__ranges *missing);

/* gaps.c: hf_network_gaps in a transaction; zeros in the window mean what they mean there. */
HF_MUST_CHECK hf_status hf__gaps_read(hf_tx *tx, const hf_network *network, hf_range window,
                                      hf__ranges *missing, hf_error *err);

/* tables.c */
enum { HF__PARTITION_LEDGERS = 131072 };
/* Creates schema and tables where they are missing, each partitioned parent included; safe when
 * several do it at once. Adopted tables of another shape are HF_CONFIG, naming what differs. */
HF_MUST_CHECK hf_status hf__tables_install(hf_network *network, hf_error *err);
/* Is everything there? Without creating anything. */
HF_MUST_CHECK hf_status hf__tables_check(hf_network *network, bool *there, hf_error *err);
/*
 * PostgreSQL: makes sure that partitions of ledgers and transactions exist for [from, to], in a transaction
 * of their own on the store's pool, by LIKE + ATTACH; existing bounds are respected whatever their width.
 * Local: nothing to do.
 */
HF_MUST_CHECK hf_status hf__partitions_ensure(hf_network *network, int64_t from, int64_t to,
                                              int64_t width, hf_error *err);
typedef struct hf__partition {
    char table[64]; /* of transactions */
    char ledgers[64];
    hf_range ledger_range;
} hf__partition;
/* Ascending by range; the caller frees. */
HF_MUST_CHECK hf_status hf__partitions_list(hf_network *network, hf__partition **partitions,
                                            size_t *count, hf_error *err);
/* One partition goes, with a short lock timeout and retries; HF_NOT_ACQUIRED: somebody is in the way. */
HF_MUST_CHECK hf_status hf__partition_drop(hf_network *network, const hf__partition *partition,
                                           hf_error *err);

/* What the files of this folder share besides the contract of cursor.h. */

#define HF__OWN_ROWS "holdfast." /* how the keys of our own rows begin */

/* network.c */
HF_MUST_CHECK hf_status hf__cursor_check_name(const char *name, hf_error *err);
/* Queues a transaction-level lock; the statement after it sees what the last holder committed. */
HF_MUST_CHECK hf_status hf__network_lock(hf_tx *tx, const hf_network *network, int64_t key,
                                         hf_error *err);
bool hf__is_missing_table(const hf_error *err); /* or its schema */

/* cursor.c */
bool hf__cursor_is_own(const char *name);

/* tables.c: only ingest_store, for a cursor that is set before anything is ingested */
HF_MUST_CHECK hf_status hf__tables_install_store(hf_network *network, hf_error *err);
/* That and ingest_coverage, beside tables that may have any shape: for adopting them. */
HF_MUST_CHECK hf_status hf__tables_install_coverage(hf_network *network, hf_error *err);
/* Of all tables, which are there? In a transaction of the caller's. */
typedef struct hf__tables_there {
    bool store, coverage, ledgers, transactions, quarantine;
} hf__tables_there;
HF_MUST_CHECK hf_status hf__tables_look(hf_tx *tx, const hf_network *network,
                                        hf__tables_there *there, hf_error *err);

#endif
