#ifndef HF_LEDGERS_LEDGERS_H
#define HF_LEDGERS_LEDGERS_H

#include "base/buf.h"
#include "lib/transactions/transactions.h"

/*
 * The cursors, the coverage and the tables of one network.
 *
 * Coverage is the set of ledgers whose rows are in the tables, stored as disjoint rows (lo, hi). A
 * writer changes the data first, then coverage, then the cursor: coverage is the row that the live
 * ingester and a backfill compete for.
 *
 * A call that takes an hf_tx works in the caller's transaction: hf_transact, or hf_lock_transact
 * for the ingester, whose writes must not outlive its lock. The transaction must be on the store
 * that the network belongs to. The other calls run transactions of their own. A network may be used
 * by several threads: nothing here changes it after it is open.
 */

struct hf_network {
    hf_store *store;
    bool local;
    char name[48];
    char schema[64];  /* local: the name of the database file */
    char prefix[140]; /* goes before the name of every table: "\"ingest_testnet\"."; local: "" */
    char latest[128]; /* names of the cursors */
    char oldest[128];
    char label[128];        /* of the network's lock: wallet-backend-ingest-<name> */
    int64_t lock_key;       /* fnv1a64 of the label */
    int64_t coverage_key;   /* PostgreSQL: locked while coverage is added to, clipped or rebuilt */
    int64_t partitions_key; /* PostgreSQL: locked while tables or partitions are created */
    int64_t read_wait_ms;   /* hf__network_read waits so long for a table's lock; 0: for ever */
};

#define HF__SCHEMA_PREFIX "ingest_" /* before the network's name, where no schema is named */
#define HF__LATEST_CURSOR "latestLedgerCursor"
#define HF__OLDEST_CURSOR "oldestLedgerCursor"
#define HF__OWN_ROWS "holdfast." /* the rows of ingest_store that are not cursors begin like this */
#define HF__WANTED_FROM "holdfast.wantedFrom"         /* how far back the operator wants ledgers */
#define HF__RETENTION_FLOOR "holdfast.retentionFloor" /* nothing below this ledger is kept */

/* ---- network.c: transactions and statements on a network ------------------------------------- */

/* A read-committed transaction in the network's database. */
HF_MUST_CHECK hf_status hf__network_transact(hf_network *network, hf_tx_fn *fn, void *arg,
                                             hf_error *err);
/* The options for such a transaction, to be changed or passed on. */
hf_tx_options hf__network_tx_options(const hf_network *network);
/*
 * A read-only transaction with one snapshot. Where the file of a local network does not exist yet,
 * it sets *there to false, does not call fn and returns HF_OK. HF_NOT_ACQUIRED: somebody locks one
 * of the tables for longer than read_wait_ms; err says who.
 */
HF_MUST_CHECK hf_status hf__network_read(hf_network *network, hf_tx_fn *fn, void *arg, bool *there,
                                         hf_error *err);
/*
 * The same for a schema of which nobody knows yet what network it holds: a read-only transaction
 * that waits at most wait_ms for a table of the schema. On a local store wait_ms does not count.
 */
HF_MUST_CHECK hf_status hf__schema_read(hf_store *store, const char *schema, int64_t wait_ms,
                                        hf_tx_fn *fn, void *arg, hf_error *err);
/* PostgreSQL: from here on this transaction waits at most so long for a table that is locked. */
HF_MUST_CHECK hf_status hf__tx_bound_waits(hf_tx *tx, int64_t wait_ms, hf_error *err);
/* Like hf__tx_query_sql, with the network's prefix for @prefix@. */
HF_MUST_CHECK hf_status hf__network_query(hf_tx *tx, const hf_network *network, const hf__sql *sql,
                                          size_t count, const hf_value *values, hf_rows **rows,
                                          hf_error *err);
/* Like hf__tx_queue_sql, with the network's prefix for @prefix@. */
HF_MUST_CHECK hf_status hf__network_queue(hf_tx *tx, const hf_network *network, const hf__sql *sql,
                                          size_t count, const hf_value *values, hf_error *err);
/*
 * Queues a lock on the key that lasts as long as the transaction. Statements after it see what the
 * last holder committed. The local store needs no such lock.
 */
HF_MUST_CHECK hf_status hf__network_lock(hf_tx *tx, const hf_network *network, int64_t key,
                                         hf_error *err);
/* Fails with HF_INVALID unless a cursor may have this name. */
HF_MUST_CHECK hf_status hf__cursor_check_name(const char *name, hf_error *err);
/* Did a statement fail because a table, or its schema, does not exist? */
bool hf__is_missing_table(const hf_error *err);

/* ---- cursor.c: rows of ingest_store ---------------------------------------------------------- */

/*
 * Reads a row, with a lock on it if lock_row is set. HF_BAD_DATA: its value is not a number.
 * Without such a row *found is false.
 */
HF_MUST_CHECK hf_status hf__cursor_read(hf_tx *tx, const hf_network *network, const char *name,
                                        bool lock_row, bool *found, int64_t *value, hf_error *err);
/* Writes a row, whether it exists or not. */
HF_MUST_CHECK hf_status hf__cursor_write(hf_tx *tx, const hf_network *network, const char *name,
                                         int64_t value, hf_error *err);
HF_MUST_CHECK hf_status hf__text_write(hf_tx *tx, const hf_network *network, const char *name,
                                       const char *value, hf_error *err);
/* Moves a cursor; HF_CURSOR: it was not at from, or does not exist. */
HF_MUST_CHECK hf_status hf__cursor_move(hf_tx *tx, const hf_network *network, const char *name,
                                        int64_t from, int64_t to, hf_error *err);
/* Is it a row of Holdfast's own, and no cursor? */
bool hf__cursor_is_own(const char *name);

/* ---- identity.c: which network a schema holds ------------------------------------------------ */

typedef struct hf__identity {
    char network[64]; /* or what is no name of a network: nobody has written it down */
    char latest[128], oldest[128];
} hf__identity;

/* Reads it from the schema's ingest_store, which must exist; local: from the tx's file. */
HF_MUST_CHECK hf_status hf__identity_read(hf_tx *tx, bool local, const char *schema,
                                          hf__identity *identity, hf_error *err);
bool hf__identity_is(const hf__identity *identity, const hf_network *network);
/* Writes it down, unless the schema says so already. */
HF_MUST_CHECK hf_status hf__identity_write(hf_tx *tx, const hf_network *network, hf_error *err);
/* Opens the network that the schema holds. HF_CONFIG: nobody has written down which one that is. */
HF_MUST_CHECK hf_status hf__network_find(hf_store *store, hf_tx *tx, const char *schema,
                                         hf_network **out, hf_error *err);

/* ---- gaps.c: ranges, and what is missing between them ---------------------------------------- */

typedef struct hf__ranges {
    hf_range *items; /* ascending, disjoint, no two of them neighbours */
    size_t count;
    size_t capacity;
} hf__ranges;

void hf__ranges_free(hf__ranges *ranges);
/* Adds a range at the end, or lets the last one grow. False: out of memory. */
HF_MUST_CHECK bool hf__ranges_add(hf__ranges *ranges, int64_t from, int64_t to);
/* Adds to missing what the window from…to has and covered does not. False: out of memory. */
HF_MUST_CHECK bool hf__ranges_missing(const hf__ranges *covered, int64_t from, int64_t to,
                                      hf__ranges *missing);
/* hf_network_gaps in a transaction of the caller's. Zeros in the window mean the same as there. */
HF_MUST_CHECK hf_status hf__gaps_read(hf_tx *tx, const hf_network *network, hf_range window,
                                      hf__ranges *missing, hf_error *err);

/* ---- coverage.c ------------------------------------------------------------------------------ */

/* Adds to ranges what is covered of from…to. */
HF_MUST_CHECK hf_status hf__coverage_read(hf_tx *tx, const hf_network *network, int64_t from,
                                          int64_t to, hf__ranges *ranges, hf_error *err);
/*
 * Adds a range and merges it with the rows that it touches. Two ranges that are added at the same
 * time may stay two rows; readers join neighbours.
 */
HF_MUST_CHECK hf_status hf__coverage_add(hf_tx *tx, const hf_network *network, int64_t from,
                                         int64_t to, hf_error *err);
/*
 * Adds ranges between which everything is covered, as one: many small gaps cost no more than one.
 * HF_CURSOR: something between them is not covered. There must be at least one.
 */
HF_MUST_CHECK hf_status hf__coverage_add_runs(hf_tx *tx, const hf_network *network,
                                              const hf__ranges *runs, hf_error *err);
/*
 * The live ingester's step: the row from…end grows to `to`. This is one update by primary key,
 * however many rows there are. If retention has moved the row's start, one more trip finds the row
 * by its end; hf__coverage_last says where it begins now. HF_CURSOR: no row ends there.
 */
HF_MUST_CHECK hf_status hf__coverage_extend(hf_tx *tx, const hf_network *network, int64_t from,
                                            int64_t end, int64_t to, hf_error *err);
/* Removes what is below floor and, unless ceiling is 0, what is above it. */
HF_MUST_CHECK hf_status hf__coverage_clip(hf_tx *tx, const hf_network *network, int64_t floor,
                                          int64_t ceiling, hf_error *err);
/*
 * The last range, with rows that are neighbours joined: the cursor latest may stand at its end,
 * oldest at its start. *row_from is where the last row itself begins. Without coverage *found is
 * false.
 */
HF_MUST_CHECK hf_status hf__coverage_last(hf_tx *tx, const hf_network *network, bool *found,
                                          hf_range *last, int64_t *row_from, hf_error *err);

/* ---- verify.c: coverage against the rows of ledgers and transactions ------------------------- */

typedef enum hf__disagreement {
    HF__DATA_MISSING,    /* covered, but the ledger does not exist */
    HF__DATA_INCOMPLETE, /* the ledger exists, with fewer or more transactions than it says */
    HF__DATA_UNCOVERED,  /* the ledger is complete, but not covered */
} hf__disagreement;
typedef void hf__disagreement_fn(void *arg, hf__disagreement kind, hf_range ledgers);

/*
 * Compares the ledgers from…to with coverage and calls fn for each range that disagrees, in the
 * caller's thread. Memory is bounded: it runs many short transactions, each of which sees one piece
 * of the ledgers and their coverage at the same moment.
 */
HF_MUST_CHECK hf_status hf__coverage_verify(hf_network *network, int64_t from, int64_t to,
                                            hf__disagreement_fn *fn, void *arg, hf_error *err);
/* Adds to ranges the ledgers from `from` on that have as many transactions as they state. */
HF_MUST_CHECK hf_status hf__coverage_measure(hf_tx *tx, const hf_network *network, int64_t from,
                                             hf__ranges *ranges, hf_error *err);
/* Replaces coverage by the ranges. The coverage lock must be held, see hf__network_lock. */
HF_MUST_CHECK hf_status hf__coverage_replace(hf_tx *tx, const hf_network *network,
                                             const hf__ranges *ranges, hf_error *err);
typedef struct hf__repair {
    size_t ranges;
    int64_t ledgers;
    bool latest_moved, oldest_moved; /* the cursors follow coverage */
    int64_t latest, oldest;          /* where they are now; 0: nothing is covered */
} hf__repair;

/* Rebuilds coverage under the network's lock. HF_NOT_ACQUIRED: an ingester is running. */
HF_MUST_CHECK hf_status hf__coverage_repair(hf_network *network, hf__repair *repair, hf_error *err);

/* ---- schema.c: the tables of a network ------------------------------------------------------- */

typedef struct hf__tables_there {
    bool store, coverage, ledgers, transactions, quarantine;
} hf__tables_there;

/* Which of the tables exist? HF_CONFIG: they are of a network of another name. */
HF_MUST_CHECK hf_status hf__tables_look(hf_tx *tx, const hf_network *network,
                                        hf__tables_there *there, hf_error *err);
/* Do all of them exist? Creates nothing. */
HF_MUST_CHECK hf_status hf__tables_check(hf_network *network, bool *there, hf_error *err);
/*
 * Creates the schema and the tables that do not exist, and writes down which network they are of.
 * Several processes may do it at once.
 * HF_CONFIG: a table that exists does not fit; the error says what differs.
 */
HF_MUST_CHECK hf_status hf__tables_install(hf_network *network, hf_error *err);
/* Creates only ingest_store, for a cursor that is set before anything is ingested. */
HF_MUST_CHECK hf_status hf__tables_install_store(hf_network *network, hf_error *err);
/* Creates ingest_store and ingest_coverage beside tables of any shape, to adopt those. */
HF_MUST_CHECK hf_status hf__tables_install_coverage(hf_network *network, hf_error *err);

/* ---- partitions.c: PostgreSQL only; the calls do nothing on a local network ------------------ */

enum { HF__PARTITION_LEDGERS = 131072 }; /* the width, unless another is asked for */

typedef struct hf__partition {
    char table[64];   /* of transactions; "" if it was dropped already */
    char ledgers[64]; /* likewise */
    hf_range ledger_range;
    bool may_drop; /* the role of the store has the right to */
} hf__partition;

/*
 * Creates the partitions of ledgers and transactions that from…to needs and that do not exist, each
 * in a transaction of its own. Bounds that exist stay as they are, whatever their width.
 */
HF_MUST_CHECK hf_status hf__partitions_ensure(hf_network *network, int64_t from, int64_t to,
                                              int64_t width, hf_error *err);
/* In ascending order; the caller frees the array. */
HF_MUST_CHECK hf_status hf__partitions_list(hf_network *network, hf__partition **partitions,
                                            size_t *count, hf_error *err);
/*
 * Drops both tables, with a short lock timeout and several attempts. HF_NOT_ACQUIRED: somebody uses
 * them.
 */
HF_MUST_CHECK hf_status hf__partition_drop(hf_network *network, const hf__partition *partition,
                                           hf_error *err);

#endif
