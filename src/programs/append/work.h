/*
 * One append at work: what the files of this room share. The thread that runs the append uses it;
 * a lost lock is reported from another thread, through work->stop.
 */
#ifndef HF_APPEND_WORK_H
#define HF_APPEND_WORK_H

#include "lib/tables/tables.h"
#include "programs/append/append.h"
#include "programs/append/plan.h"
#include "programs/append/resolve.h"
#include "programs/append/target/target.h"

typedef struct hf__work {
    hf_store *store;
    hf__target *target; /* where statements go; see cluster.c for when it changes */
    hf__stop *stop;
    const hf__append_options *options;
    hf__append_result *result;

    hf__table_name name; /* with the database filled in */
    hf__buf dest;        /* `database`.`table` */
    char engine[64];
    hf__buf engine_full;
    hf__buf views;    /* names of the views that the table feeds; "": none */
    hf__buf timed;    /* columns whose default depends on the moment, and is evaluated; "": none */
    hf__grid columns; /* as hf__clickhouse_columns reads them */
    bool is_merge_tree;
    bool collapses;              /* merges of this engine change the number of rows */
    bool is_modern;              /* the server tells checksums of parts and uuids of tables */
    char server[HF__SERVER_MAX]; /* which server it is: its host and folder */
    char zookeeper_path[HF__SERVER_MAX];     /* of a replicated table; "": of another */
    char zookeeper_mark[HF__TABLE_MARK_MAX]; /* when that path was created there */

    hf_lock *own;  /* the lock of the append's id */
    hf_rows *seen; /* the store's row of the id, read with that lock; NULL: it was not asked for */
    char store_id[HF__SERVER_MAX]; /* tells stores apart, by whatever name they are reached */
    hf_rows *attaching; /* rows of appends to the table that had begun to attach; NULL: as above */
    hf_lock *lock;      /* the table's lock, while it is held */
    /* Of a replicated table: several clusters' names for it are several locks. */
    hf_lock *path_lock;
    int64_t locked_us;
    hf_error why_lost;
    char staging[128];
    size_t concat_done; /* tables of --concat that are in: a retry leaves them out */

    hf__grid settings; /* the server's, once they have been read */

    /* For a direct append that may be sent twice, because the server drops blocks that it knows. */
    int64_t dedup_window; /* how many blocks it remembers; 0: do not send twice */
    char token[128];      /* the setting that names our blocks, or "" */

    /* A replicated table takes equal parts once: */
    bool is_equal_to_known; /* it knows parts of the append, so nothing was attached */
    bool was_deduplicated;  /* it left parts of the append out */

    hf__assumed assumed; /* of what nothing proves */

    bool is_balanced;      /* the URL leads to several servers */
    hf__target *given;     /* the caller's target, where another replica is used; else NULL */
    hf__target **replicas; /* of the cluster, the one in use among them */
    size_t replica_count;  /* 0: there is one server */
} hf__work;

/* ---- append.c -------------------------------------------------------------------------------- */

/* Tells the user something, through options->events. */
void hf__work_note(const hf__work *work, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes the number of rows that were appended into the history of the table's lock. */
void hf__work_record(const hf__work *work, int64_t rows);

/* Runs a statement that has no answer. Frees sql. */
HF_MUST_CHECK hf_status hf__work_do(hf__work *work, const char *what, hf__buf *sql, hf_error *err);

/* Releases the locks and frees what the work has gathered; not the store and the target. */
void hf__work_close(hf__work *work);

/* HF_OK, or why the append must stop: HF_LOST with the reason of the loss, or HF_INTERRUPTED. */
HF_MUST_CHECK hf_status hf__work_check(hf__work *work, hf_error *err);

/* ---- clickhouse.c ---------------------------------------------------------------------------- */

/* Checks that the target is one ClickHouse, or a cluster, and fills work->name. */
HF_MUST_CHECK hf_status hf__clickhouse_check(hf__work *work, hf_error *err);
/* Asks system.tables, again while others drop theirs. Frees sql; the caller frees the grid. */
HF_MUST_CHECK hf_status hf__clickhouse_tables(hf__work *work, hf__buf *sql, hf__grid *grid,
                                              hf_error *err);
/* The same for another question that leads there. */
HF_MUST_CHECK hf_status hf__clickhouse_ask_tables(hf__work *work, const hf__statement *statement,
                                                  hf__buf *sql, hf__grid *grid, hf_error *err);
/* The columns of a table: name, kind of default. The caller frees the grid; 0 rows: no table. */
HF_MUST_CHECK hf_status hf__clickhouse_columns(hf__work *work, const char *database,
                                               const char *table, hf__grid *grid, hf_error *err);
/* Can rows bring values for this column? */
bool hf__column_is_given(const hf__grid *columns, const char *name);
/* Is it in the table's files? */
bool hf__column_is_stored(const hf__grid *columns, size_t row);
/* Is it one of the columns of SELECT *? */
bool hf__column_is_selected(const hf__grid *columns, size_t row);
/* Reads the table's engine, views and columns. Creates it first if the user asked for that. */
HF_MUST_CHECK hf_status hf__clickhouse_describe(hf__work *work, hf_error *err);

/* Asks a server who it is: one row of host, start, version, database and folder. */
HF_MUST_CHECK hf_status hf__clickhouse_ask(hf__target *target, hf__grid *who, hf_error *err);
/* Are these two answers from the same server? */
bool hf__clickhouse_is_same(const hf__grid *a, const hf__grid *b);
/* Waits until this replica has the parts that the others have now. */
HF_MUST_CHECK hf_status hf__clickhouse_sync(hf__work *work, hf_error *err);

/* By the engine's name, or its full text. */
bool hf__engine_is_replicated(const char *engine);

/* Reads the settings that an append depends on into work->settings, once. Does nothing for chdb. */
HF_MUST_CHECK hf_status hf__settings_read(hf__work *work, hf_error *err);
/* The value of a setting; NULL: this server does not have it. */
const char *hf__settings_value(const hf__grid *settings, const char *name);
/* What to set for an INSERT of a stream: "name=value", URL-encoded, or "". */
const char *hf__settings_for_rows(const hf__grid *settings);
/* What to set for an INSERT into the table itself, so that it ends when the rows are there. */
const char *hf__settings_for_arrival(const hf__work *work);

/* What to set for a statement that the server shall write into its log. */
const char *hf__settings_for_log(const hf__grid *settings);

/* ---- cluster.c: every replica, each by its own address --------------------------------------- */

/* Opens all replicas. is_balanced: the target leads to several servers; one is chosen instead. */
HF_MUST_CHECK hf_status hf__cluster_open(hf__work *work, bool is_balanced, hf_error *err);
void hf__cluster_close(hf__work *work);
/* Moves work->target to the replica that has a staging table of this append, if one does. known as
 * for hf__staging_find. */
HF_MUST_CHECK hf_status hf__cluster_follow(hf__work *work, const char *id, const char *known,
                                           hf_error *err);
/* The servers that may run a statement on the table: from 0, NULL after the last. */
hf__target *hf__cluster_at(const hf__work *work, size_t i);

/* ---- state.c: the two locks of an append ----------------------------------------------------- */

/*
 * Acquires the lock of the append's id, and reads the store's row of the id if it was given.
 * HF_NOT_ACQUIRED: the append runs, and did not end within wait_ms.
 */
HF_MUST_CHECK hf_status hf__work_lock_id(hf__work *work, int64_t wait_ms, hf_error *err);
/* Fills in work->store_id, if it has not been heard with a lock. */
HF_MUST_CHECK hf_status hf__work_know_store(hf__work *work, hf_error *err);
/* What the store knows about the append's id, under its lock. The caller frees row. */
HF_MUST_CHECK hf_status hf__work_load(hf__work *work, hf__append_row *row, hf_error *err);
/* Acquires the table's lock. HF_NOT_ACQUIRED: not within wait_ms. */
HF_MUST_CHECK hf_status hf__work_lock_table(hf__work *work, int64_t wait_ms, hf_error *err);
/* Releases the table's lock, if it is held. HF_LOST: it had been lost before. */
HF_MUST_CHECK hf_status hf__work_unlock_table(hf__work *work, hf_error *err);

/* ---- feed.c: rows into a table --------------------------------------------------------------- */

/* Inserts all rows into `into`, a quoted name. Every INSERT has the given query id. */
HF_MUST_CHECK hf_status hf__work_feed(hf__work *work, const char *into, const char *query_id,
                                      hf_error *err);
/*
 * Streams a large file into work->staging over two connections. *done false with HF_OK: the file is
 * not suited to that, and hf__work_feed must do it.
 */
HF_MUST_CHECK hf_status hf__feed_halves(hf__work *work, bool *done, hf_error *err);

/*
 * Adds the columns that a line of CSV names, " (`a`, `b`)". HF_BAD_DATA: it is not well formed, or
 * one of them is not among the columns (NULL: any will do).
 */
HF_MUST_CHECK hf_status hf__columns_parse(const char *line, size_t size, char delimiter,
                                          const hf__grid *columns, hf__buf *out, hf_error *err);

/* ---- staged.c, direct.c: the two ways -------------------------------------------------------- */

HF_MUST_CHECK hf_status hf__staged_run(hf__work *work, hf_error *err);
HF_MUST_CHECK hf_status hf__direct_run(hf__work *work, hf_error *err);

/* How many blocks the server remembers, to drop repeated ones; 0: none, or that is not known. */
int64_t hf__dedup_window(const char *engine_full, const hf__grid *settings);

/* ---- attach.c: from the staging table into the table, under the table's lock ----------------- */

/*
 * The query id of everything that writes to the table under its lock, which is held. ClickHouse
 * refuses to run two statements of one id, so a late one of a dead append cannot overtake us.
 */
void hf__writer_id(const hf__work *work, char out[40]);

/* "ATTACH PARTITION ID 'partition' FROM `database`.`staging`" */
void hf__put_attach(hf__buf *sql, const char *database, const char *partition, const char *staging);

/*
 * Writes into the store what is about to be attached and what the table has now: after a crash that
 * is held against what is there. *in_the_way as for hf__append_save. HF_DATABASE with
 * work->is_equal_to_known: the table would leave some parts out.
 */
HF_MUST_CHECK hf_status hf__attach_write_plan(hf__work *work, hf__append_row *row, hf__plan *plan,
                                              bool *in_the_way, hf_error *err);
/*
 * Attaches the partitions whose verdict is HF__NOT_ATTACHED, then checks that every part is there.
 * *is_none, after a failure: it is certain that nothing was attached.
 */
HF_MUST_CHECK hf_status hf__attach_missing(hf__work *work, hf__plan *plan, hf__verdict *verdicts,
                                           const char *staging, bool *is_none, hf_error *err);
/* Attaches them to a private table, or all partitions if verdicts is NULL. */
HF_MUST_CHECK hf_status hf__attach_private(hf__work *work, const char *into, const hf__plan *plan,
                                           const hf__verdict *verdicts, const char *from,
                                           hf_error *err);
size_t hf__count_verdicts(const hf__plan *plan, const hf__verdict *verdicts, hf__verdict wanted);
/* HF_DATABASE: a replicated table leaves this part out. */
hf_status hf__refuse_equal(const hf__work *work, const hf__plan_part *part, hf_error *err);

/* ---- leftovers.c: what dead appends have left ------------------------------------------------ */

/*
 * Ends a statement of a dead append that still writes to the table, or waits for its end. The
 * caller holds the table's lock. is_known: the server has just refused its id. HF_NOT_ACQUIRED: it
 * goes on.
 */
HF_MUST_CHECK hf_status hf__orphan_end(hf__work *work, bool is_known, hf_error *err);

/*
 * Settles an append, ours or another one, that died while it attached: attaches what is missing,
 * and saves its row as done or doubtful, or removes it if nothing is attached and the server
 * refuses the parts. The caller holds the table's lock. HF__APPEND_ATTACHING afterwards: it is on
 * another server.
 */
HF_MUST_CHECK hf_status hf__leftover_finish(hf__work *work, hf__append_row *row, hf_error *err);

/*
 * Settles every append to the table that died while it attached. The caller has just acquired the
 * table's lock: nobody writes to the table before that, for it would be harder to tell afterwards.
 */
HF_MUST_CHECK hf_status hf__leftovers_settle(hf__work *work, hf_error *err);

/* Drops the staging tables of appends that have died. Failures are noted, not returned. */
void hf__leftovers_sweep(hf__work *work);

#endif
