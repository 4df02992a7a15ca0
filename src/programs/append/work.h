#ifndef HF_APPEND_WORK_H
#define HF_APPEND_WORK_H

#include "lib/tables/name.h"
#include "programs/append/append.h"
#include "programs/append/plan.h"
#include "programs/append/target/target.h"

/* One append at work: what its parts share. */

/* holdfast_staging_… while rows come in, holdfast_staged_… once all are there. */
#define HF__STAGING_PREFIX "holdfast_staging_"
#define HF__STAGED_PREFIX "holdfast_staged_"

typedef struct hf__work {
    hf_store *store;
    hf__target *target;
    hf__stop *stop;
    const hf__append_options *options;
    hf__append_result *result;

    hf__table_name name; /* with the database that is meant */
    hf__buf dest;        /* `database`.`table` */
    char engine[64];
    hf__buf engine_full;
    hf__buf views; /* that the table feeds, in words; "": none */
    bool is_merge_tree;
    bool collapses;

    hf_lock *own;  /* of the append's id */
    hf_rows *seen; /* what the store knew of the id once that was held; NULL: it was not asked */
    hf_lock *lock; /* of the table */
    int64_t locked_us;
    hf_error why_lost;
    char staging[128];
    size_t merged; /* tables of --concat that are in; a repeat of the rest leaves them out */

    hf__grid settings; /* of the server, once they are asked for */

    /* Of a direct append that can be sent again: the server leaves out so many blocks that it has had. */
    int64_t dedup_window;
    char token[128]; /* the setting that names them, or "" */
    bool left_out;   /* the server took parts for ones that it had attached before */

    bool is_balanced;  /* the target that was given leads to several servers */
    hf__target *given; /* by the caller, where another replica is meant; else NULL */
    hf__target *
        *replicas; /* all of the cluster, the one that is used too; none: there is one server */
    size_t replica_count;
} hf__work;

void hf__work_note(const hf__work *work, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* In the history of the table's lock: so many rows have come. */
void hf__work_record(const hf__work *work, int64_t rows);

/* A statement without an answer. sql is freed. */
HF_MUST_CHECK hf_status hf__work_do(hf__work *work, const char *what, hf__buf *sql, hf_error *err);

/* hf__stop_check, with the reason of the loss. */
HF_MUST_CHECK hf_status hf__work_check(hf__work *work, hf_error *err);

/* ---- server.c ---------------------------------------------------------------------------------- */

/* Is it one ClickHouse, and what is its database? */
HF_MUST_CHECK hf_status hf__clickhouse_check(hf__work *work, hf_error *err);
/* The table's engine; creates the table if that was asked for. */
HF_MUST_CHECK hf_status hf__clickhouse_describe(hf__work *work, hf_error *err);

/* Who it is: host, start, version, database, folder; a row. */
HF_MUST_CHECK hf_status hf__clickhouse_ask(hf__target *target, hf__grid *who, hf_error *err);
/* Until a replica has what the others had a moment ago. */
HF_MUST_CHECK hf_status hf__clickhouse_sync(hf__work *work, hf_error *err);
bool hf__clickhouse_is_same(const hf__grid *a, const hf__grid *b);

/* ---- cluster.c: all replicas of the cluster, each by its own address ----------------------------- */

/* is_balanced: the target leads to several servers, and one of them is chosen in its place. */
HF_MUST_CHECK hf_status hf__cluster_open(hf__work *work, bool is_balanced, hf_error *err);
void hf__cluster_close(hf__work *work);
/* Where the append of this id has left a staging table: statements go there from now on. */
HF_MUST_CHECK hf_status hf__cluster_follow(hf__work *work, const char *id, hf_error *err);
/* Every server that may run a statement of the table's: i from 0, NULL behind the last. */
hf__target *hf__cluster_at(const hf__work *work, size_t i);

/* ---- locks.c ----------------------------------------------------------------------------------- */

HF_MUST_CHECK hf_status hf__work_lock_id(hf__work *work, hf_error *err);
/* What is known of the append's id, under its lock. */
HF_MUST_CHECK hf_status hf__work_load(hf__work *work, struct hf__append_row *row, hf_error *err);
HF_MUST_CHECK hf_status hf__work_lock_table(hf__work *work, int64_t wait_ms, hf_error *err);
/* HF_LOST when it had been lost. */
HF_MUST_CHECK hf_status hf__work_unlock_table(hf__work *work, hf_error *err);

/* ---- feed.c ------------------------------------------------------------------------------------ */

/* Puts all that is to be appended into `into`, a quoted name; every INSERT has the query id. */
HF_MUST_CHECK hf_status hf__work_feed(hf__work *work, const char *into, const char *query_id,
                                      hf_error *err);
/* Whatever ClickHouse makes of a statement that was ended, the reason is ours. */
HF_MUST_CHECK hf_status hf__work_blame(hf__work *work, hf_status status, hf_error *err);

/* ---- halves.c ---------------------------------------------------------------------------------- */

/* A large file into work->staging in two streams. *done false: it is for hf__work_feed. */
HF_MUST_CHECK hf_status hf__feed_halves(hf__work *work, bool *done, hf_error *err);

/* ---- staged.c, settle.c, sweep.c ------------------------------------------------------------------ */

HF_MUST_CHECK hf_status hf__staged_run(hf__work *work, hf_error *err);

/* "holdfast_staged_0123abcd4567cdef_ID": the id in the name of a staging table, or NULL. */
const char *hf__staging_id(const char *name, bool *is_complete);
/* table: the text of the one that its rows are for. */
void hf__staging_name(char out[128], bool is_complete, const char *id, const char *table);
/* Ends what still writes into it, then drops it. */
HF_MUST_CHECK hf_status hf__staging_drop(hf__work *work, const char *name, hf_error *err);

/* What ClickHouse refuses to run twice at once: all that writes to the table under its lock has this id. */
void hf__writer_id(char out[40], int64_t key);

/* Which partitions of the plan are in the table? */
HF_MUST_CHECK hf_status hf__judge_all(hf__work *work, const hf__plan *plan, hf__verdict *verdicts,
                                      hf_error *err);
/* Attaches those that are not, and makes sure. Under the table's lock. */
HF_MUST_CHECK hf_status hf__attach_missing(hf__work *work, const hf__plan *plan,
                                           hf__verdict *verdicts, const char *staging,
                                           hf_error *err);
/* What is about to be attached, and what the table had before: a crash from here on can be judged. */
HF_MUST_CHECK hf_status hf__write_down(hf__work *work, hf__append_row *row, hf__plan *plan,
                                       bool *in_the_way, hf_error *err);
/*
 * Under the table's lock: finishes an append that was attaching when it died, ours or another's, and
 * saves its row as done or doubtful.
 */
HF_MUST_CHECK hf_status hf__leftover_finish(hf__work *work, hf__append_row *row, hf_error *err);

/* Drops staging tables whose append has died. Failures are noted, not returned. */
void hf__leftovers_sweep(hf__work *work);

/* ---- orphan.c ---------------------------------------------------------------------------------- */

/*
 * A dead holder's statement may still write to the table: it is ended or awaited. Under the table's
 * lock. is_known: the server has just refused the id.
 */
HF_MUST_CHECK hf_status hf__orphan_end(hf__work *work, bool is_known, hf_error *err);

/* ---- direct.c ---------------------------------------------------------------------------------- */

HF_MUST_CHECK hf_status hf__direct_run(hf__work *work, hf_error *err);

/* Does the server leave out blocks that a table has had before? */

/* How many blocks it remembers: 0 where it does not, or where that is not known. */
int64_t hf__dedup_window(const char *engine_full, const hf__grid *settings);

/* Blocks can be named by the client, so that equal ones of two appends are both kept. */
bool hf__dedup_has_token(const hf__grid *settings);

/* The columns that the header of a file names, for the INSERT: not every server reads the header itself. */

/* Adds " (`a`, `b`)" for a header line of CSV; nothing for one without a name. */
HF_MUST_CHECK hf_status hf__columns_parse(const char *line, size_t size, char delimiter,
                                          hf__buf *out, hf_error *err);

/* The same for the input's header, which is waited for; nothing for a format that has none. Knows the settings. */
HF_MUST_CHECK hf_status hf__columns_add(hf__work *work, hf__rows_input *input, hf__buf *out,
                                        hf_error *err);

/* What the server is set to, as far as an append has to know it. Asked once. */

/* Once for an append, into work->settings: name, value, whether it has been changed. Nothing where a target is embedded. */
HF_MUST_CHECK hf_status hf__settings_read(hf__work *work, hf_error *err);

/* NULL: the server has no such setting. */
const char *hf__settings_value(const hf__grid *settings, const char *name);

/* What to set for the INSERT of a stream, as "name=value", encoded; "" for nothing. */
const char *hf__settings_for_rows(const hf__grid *settings);

#endif
