/*
 * Appending rows to a shared ClickHouse table, by way of a staging table or directly under the
 * table's lock. This is the room's front door; work.h is what its files share.
 */
#ifndef HF_APPEND_APPEND_H
#define HF_APPEND_APPEND_H

#include "cli/command.h"
#include "programs/append/state.h"
#include "programs/append/target/target.h"

typedef enum hf__append_mode { HF__AS_FITS = 0, HF__STAGED, HF__DIRECT } hf__append_mode;
typedef enum hf__orphans { HF__KILL_ORPHANS = 0, HF__AWAIT_ORPHANS } hf__orphans;

typedef struct hf__append_progress {
    int64_t bytes; /* read so far */
    int64_t size;  /* of all input; -1: unknown */
    int64_t rows;  /* read so far; -1: unknown */
} hf__append_progress;

typedef struct hf__append_events {
    void (*note)(void *arg, const char *text);
    void (*progress)(void *arg, const hf__append_progress *progress);
    void *arg;
} hf__append_events;

typedef struct hf__append_options {
    const char *table;   /* as the user wrote it; the target's database is the default */
    const char *cluster; /* NULL: none, unless the table's name has one */
    const char *id;      /* NULL: a random one */
    hf__append_mode mode;
    const hf__format *format;
    const char *const *paths; /* none: standard input */
    size_t path_count;
    const char *select; /* a query, instead of paths */
    const char *const *concat;
    size_t concat_count;
    const char *create; /* DDL for a table that does not exist; NULL: it must exist */
    hf__orphans orphans;
    int64_t wait_ms; /* for locks and orphans; -1: for ever */
    int64_t keep_ms; /* how long to keep the complete staging table of an append that died */
    hf__append_events events;
} hf__append_options;

typedef enum hf__append_outcome {
    HF__APPENDED = 0,
    HF__RESUMED,  /* an earlier run had staged the rows */
    HF__FINISHED, /* an earlier run had begun to attach them */
    HF__NOTHING,  /* an earlier run had done everything */
} hf__append_outcome;

typedef struct hf__append_result {
    char id[HF__APPEND_ID_MAX + 1];
    char table[HF_TABLE_TEXT_MAX];
    bool is_staged;
    hf__append_outcome outcome;
    int64_t rows; /* appended; of a direct append, those that are visible; -1: unknown */
    int64_t bytes;
    int64_t partitions, parts;
    int64_t lock_wait_us, lock_held_us; /* of the table's lock */
    int64_t key;                        /* of the table's lock; 0: none was acquired */
    const char *orphan; /* what became of a dead append's statement: "killed", "awaited", or NULL */
} hf__append_result;

/*
 * Runs one append and fills result as far as it is known, also after a failure. store may be NULL
 * for a table that needs no lock. Another thread may set stop to end the append, as a lost lock
 * does. HF_IN_DOUBT: the rows may or may not be in the table.
 */
HF_MUST_CHECK hf_status hf__append_run(hf_store *store, hf__target *target, hf__stop *stop,
                                       const hf__append_options *options, hf__append_result *result,
                                       hf_error *err);

/* Is the table a temporary one by its name (t_…)? Nobody shares those. */
bool hf__append_needs_no_lock(const char *table);

extern const struct command cmd_append;

#endif
