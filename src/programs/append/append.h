#ifndef HF_APPEND_APPEND_H
#define HF_APPEND_APPEND_H

#include "cli/command.h"
#include "programs/append/state.h"
#include "programs/append/target/target.h"

/* Appending to a shared table: staged, or directly under its lock. */

typedef enum hf__append_mode { HF__AS_FITS = 0, HF__STAGED, HF__DIRECT } hf__append_mode;
typedef enum hf__orphans { HF__KILL_ORPHANS = 0, HF__AWAIT_ORPHANS } hf__orphans;

typedef struct hf__append_progress {
    int64_t bytes; /* of the input */
    int64_t size;  /* of all of it; -1: unknown */
    int64_t rows;  /* read so far; -1: unknown */
} hf__append_progress;

typedef struct hf__append_events {
    void (*note)(void *arg, const char *text);
    void (*progress)(void *arg, const hf__append_progress *progress);
    void *arg;
} hf__append_events;

typedef struct hf__append_options {
    const char *table;   /* as people write it; without a database the target's is meant */
    const char *cluster; /* NULL: none, unless the table says so */
    const char *id;      /* NULL: one is minted */
    hf__append_mode mode;
    const hf__format *format;
    const char *const *paths; /* none: standard input */
    size_t path_count;
    const char *select; /* instead of paths */
    const char *const *concat;
    size_t concat_count;
    const char *create; /* NULL: the table must be there */
    hf__orphans orphans;
    int64_t wait_ms; /* for locks and orphans; -1: for ever */
    int64_t keep_ms; /* staging tables that are complete are kept so long after their append died */
    hf__append_events events;
} hf__append_options;

typedef enum hf__append_outcome {
    HF__APPENDED = 0,
    HF__RESUMED,  /* an earlier run had staged the rows */
    HF__FINISHED, /* an earlier run had begun to attach them */
    HF__NOTHING,  /* an earlier run had done it all */
} hf__append_outcome;

typedef struct hf__append_result {
    char id[HF__APPEND_ID_MAX + 1];
    char table[HF_TABLE_TEXT_MAX];
    bool is_staged;
    hf__append_outcome outcome;
    int64_t rows; /* appended; of a failed direct append, that are visible; -1: unknown */
    int64_t bytes;
    int64_t partitions, parts;
    int64_t lock_wait_us, lock_held_us; /* of the table's lock */
    int64_t key;                        /* of it; 0: none was taken */
    const char *orphan; /* what became of a dead holder's statement: "killed", "awaited", or NULL */
} hf__append_result;

/*
 * stop is set when the append must not go on; a lost lock sets it. store may be NULL for a table that needs
 * no lock. HF_IN_DOUBT: it may or may not be in the table. result is filled as far as is known.
 */
HF_MUST_CHECK hf_status hf__append_run(hf_store *store, hf__target *target, hf__stop *stop,
                                       const hf__append_options *options, hf__append_result *result,
                                       hf_error *err);

/* A temporary table by its name: nobody shares it. */
bool hf__append_needs_no_lock(const char *table);

extern const struct command cmd_append;

#endif
