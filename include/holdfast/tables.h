/*
 * Shared tables: one minted id for each (cluster, database, table), which is the key of its lock.
 */
#ifndef HOLDFAST_TABLES_H
#define HOLDFAST_TABLES_H

#include <holdfast/locks.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Each part is UTF-8 of at most HF_TABLE_PART_MAX bytes without quotes, backticks, backslashes,
 * dots, slashes, control characters and outer spaces; anything else is HF_INVALID. As one text, and
 * as the label of an HF_MINTED target, it is "database.table", "cluster/database.table" or just
 * "table".
 */
typedef struct hf_table_name {
    const char *cluster;  /* NULL or "": none */
    const char *database; /* NULL or "": "default", as in ClickHouse */
    const char *table;
} hf_table_name;

#define HF_TABLE_PART_MAX 200
#define HF_TABLE_TEXT_MAX (3 * HF_TABLE_PART_MAX + 3) /* with the NUL */

/* Splits a name. The parts point into *memory, which the caller frees with free(). */
HF_API HF_MUST_CHECK hf_status hf_table_name_parse(const char *text, hf_table_name *name,
                                                   char **memory, hf_error *err);
/* "cluster/database.table", or without a cluster "database.table". */
HF_API HF_MUST_CHECK hf_status hf_table_name_text(const hf_table_name *name,
                                                  char text[HF_TABLE_TEXT_MAX], hf_error *err);

/*
 * Finds the table's id, or mints one. However many register a table at once, all get the same id.
 * *created (may be NULL): this call minted it. An id is a snowflake: bit 63 is zero, then 41 bits
 * of Unix time in milliseconds, 10 of the machine and 12 of a sequence. Everything below needs the
 * schema (HF_NO_SCHEMA) and a store that is not borrowed.
 */
HF_API HF_MUST_CHECK hf_status hf_table_register(hf_store *store, const hf_table_name *name,
                                                 int64_t *id, bool *created, hf_error *err);

/* *id is 0 when the table is not registered. */
HF_API HF_MUST_CHECK hf_status hf_table_find(hf_store *store, const hf_table_name *name,
                                             int64_t *id, hf_error *err);

/*
 * Acquires the session lock on the table's id, for programs that write to the table; registers the
 * table if it is not. spec may be NULL; its targets are ignored. While the lock is held the id
 * stays the table's: it is read again under the lock, and retiring it needs the same lock.
 * hf_lock_key returns the id. hf_lock_acquire with an HF_MINTED target does the same, but does not
 * register. The caller frees *lock.
 */
HF_API HF_MUST_CHECK hf_status hf_table_lock(hf_store *store, const hf_table_name *name,
                                             const hf_lock_spec *spec, hf_lock **lock,
                                             hf_error *err);

/* The same as hf_lock_start does it: returns at once, and done tells of the end. */
HF_API HF_MUST_CHECK hf_status hf_table_lock_start(hf_store *store, const hf_table_name *name,
                                                   const hf_lock_spec *spec, hf_started_fn *done,
                                                   hf_error *err);

/*
 * A reference says that a context owns the table, too. hf_table_ref registers the table if it is
 * not. Removing the last reference retires the table's id (*retired, may be NULL) under the table's
 * lock, for which it waits up to wait_ms (-1: for ever). A name that is registered again gets a new
 * id.
 */
HF_API HF_MUST_CHECK hf_status hf_table_ref(hf_store *store, const hf_table_name *name,
                                            const char *context_id, int64_t *id, hf_error *err);
HF_API HF_MUST_CHECK hf_status hf_table_unref(hf_store *store, const hf_table_name *name,
                                              const char *context_id, int64_t wait_ms,
                                              bool *retired, hf_error *err);

/* Retires the id. HF_INVALID: there are references, and their_refs_too is false. */
HF_API HF_MUST_CHECK hf_status hf_table_drop(hf_store *store, const hf_table_name *name,
                                             bool their_refs_too, int64_t wait_ms, hf_error *err);

typedef struct hf_table_view {
    hf_table_name name;
    int64_t id;
    int64_t created_ms; /* Unix time */
    int64_t dropped_ms; /* 0: it is live */
    int64_t references;
} hf_table_view;

typedef struct hf_table_list hf_table_list;

/*
 * Registered tables by name, with retired ids too if asked for. name NULL: all. The caller frees
 * *list.
 */
HF_API HF_MUST_CHECK hf_status hf_table_list_read(hf_store *store, const hf_table_name *name,
                                                  bool retired_too, hf_table_list **list,
                                                  hf_error *err);
HF_API size_t hf_table_list_count(const hf_table_list *list);
HF_API const hf_table_view *hf_table_list_at(const hf_table_list *list, size_t index);
HF_API void hf_table_list_free(hf_table_list *list);

typedef void hf_table_context_fn(void *arg, const char *context_id);

/* The contexts that refer to the table, by name. */
HF_API HF_MUST_CHECK hf_status hf_table_refs(hf_store *store, const hf_table_name *name,
                                             hf_table_context_fn *fn, void *arg, hf_error *err);

/*
 * An existing table_context_refs(table_name, context_id), with or without an advisory_id, of a
 * program that goes on using it.
 */
typedef struct hf_table_adoption {
    size_t size;
    const char *schema;   /* PostgreSQL: NULL uses the search_path */
    const char *relation; /* NULL: "table_context_refs" */
    const char *file;     /* the local store: the SQLite file that has it */
    const char *cluster;  /* for names without one */
    const char *database; /* the same */
    bool dry_run;         /* change nothing */
    bool constrain;       /* forbid NULL, and on PostgreSQL ids that are not registered */
    int64_t wait_ms;      /* for tables whose id changes; -1: for ever */
    int64_t *moved;       /* how many those are; may be NULL */
} hf_table_adoption;

#define HF_TABLE_ADOPTION_INIT                                                                     \
    {                                                                                              \
        .size = sizeof(hf_table_adoption)                                                          \
    }

/* One row that is in the way. A string is NULL where the row has NULL, or where there is no row. */
typedef struct hf_table_fault {
    const char *problem;
    const char *table_name;
    const char *context_id;
    const char *advisory_id;
} hf_table_fault;

typedef void hf_table_fault_fn(void *arg, const hf_table_fault *fault);

typedef struct hf_table_adopted {
    int64_t rows;
    int64_t tables;
    int64_t minted;     /* tables that got a new id */
    int64_t rows_given; /* rows that had no id before */
    int64_t references; /* references that are new to the store */
    int64_t faults;     /* names in the way */
    bool not_null;      /* advisory_id cannot be NULL from now on */
    bool foreign_key;   /* advisory_id refers to the table registry */
} hf_table_adopted;

/*
 * Adopts such a table, in one transaction that can be repeated: adds the column, sets one id in all
 * rows of one name, keeps ids that are there, registers them and copies the references. A table
 * that is registered with another id gets the one in the relation, under its lock
 * (HF_NOT_ACQUIRED). On PostgreSQL triggers keep both sides on one id from then on: see
 * holdfast-table(1). HF_BAD_DATA: nothing was changed, and each row in the way was reported (at
 * most 100 of each of 100 names).
 */
HF_API HF_MUST_CHECK hf_status hf_table_adopt(hf_store *store, const hf_table_adoption *adoption,
                                              hf_table_fault_fn *report, void *arg,
                                              hf_table_adopted *adopted, hf_error *err);

/*
 * On PostgreSQL: takes back what adoption has added to the table, except for ids and their column.
 * Only schema and relation are used. HF_CONFIG: it was not adopted.
 */
HF_API HF_MUST_CHECK hf_status hf_table_leave(hf_store *store, const hf_table_adoption *adoption,
                                              hf_error *err);

#ifdef __cplusplus
}
#endif

#endif
