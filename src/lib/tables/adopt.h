/* The parts of hf_table_adopt: the relation, the names in it, and the problems with them. */
#ifndef HF_TABLES_ADOPT_H
#define HF_TABLES_ADOPT_H

#include "base/buf.h"
#include "lib/tables/tables.h"

/* All rows of the relation that have the same table_name. */
typedef struct hf__adopt_spelling {
    char *raw; /* the table_name itself; NULL for SQL's NULL */
    size_t raw_size;
    int64_t rows;
    int64_t with_id;   /* how many of them have an advisory_id */
    int64_t low, high; /* the least and the greatest of these */
    char *text;        /* the name of the table, as checked; or NULL */
    char *problem;     /* why it cannot be adopted, or NULL */
    size_t table;      /* index into hf__adopt_names.tables */
} hf__adopt_spelling;

/* A table that one or more spellings name. */
typedef struct hf__adopt_table {
    const char *text;
    int64_t id;         /* 0: none yet */
    int64_t moved_from; /* the live id that the registry has instead; 0: none */
    char *problem;
} hf__adopt_table;

typedef struct hf__adopt_names {
    hf__adopt_spelling *spellings;
    size_t count;
    hf__adopt_table *tables; /* by text */
    size_t table_count;
} hf__adopt_names;

typedef struct hf__adopt_source {
    const hf_store *store;
    hf__buf relation; /* quoted, with its schema */
    char oid[24];     /* on PostgreSQL */
    bool has_id;
    bool id_is_narrow;  /* advisory_id is of a smaller type than bigint */
    bool not_null;      /* advisory_id is */
    bool refers;        /* it has the foreign key of an earlier adoption */
    bool made_not_null; /* by an earlier adoption */
} hf__adopt_source;

/* ---- adopt_source.c: statements on the relation, in the caller's transaction ----------------- */

/* Finds the relation and locks it. HF_CONFIG: it does not exist, or has another shape. */
HF_MUST_CHECK hf_status hf__adopt_find(hf_tx *tx, const hf_table_adoption *adoption,
                                       hf__adopt_source *source, hf_error *err);
/* Makes sure that it has a column advisory_id of type bigint. */
HF_MUST_CHECK hf_status hf__adopt_add_column(hf_tx *tx, hf__adopt_source *source, hf_error *err);
/* One row for each spelling; the caller frees them. */
HF_MUST_CHECK hf_status hf__adopt_spellings(hf_tx *tx, const hf__adopt_source *source,
                                            hf_rows **rows, hf_error *err);
/* Some rows of a spelling, to show them; the caller frees them. */
HF_MUST_CHECK hf_status hf__adopt_rows_of(hf_tx *tx, const hf__adopt_source *source,
                                          const hf__adopt_spelling *spelling, hf_rows **rows,
                                          hf_error *err);
/* Fills advisory_id where it is NULL. ids is JSON: [[table_name, advisory_id, text], …] */
HF_MUST_CHECK hf_status hf__adopt_give_ids(hf_tx *tx, const hf__adopt_source *source,
                                           const char *ids, int64_t *given, hf_error *err);
/*
 * Adds NOT NULL and the foreign key if that is asked for, and on PostgreSQL the triggers that
 * follow the relation; adopted says what there is now.
 */
HF_MUST_CHECK hf_status hf__adopt_constrain(hf_tx *tx, hf__adopt_source *source,
                                            const hf_table_adoption *adoption,
                                            hf_table_adopted *adopted, hf_error *err);
/* On PostgreSQL: takes back what adoption has added. HF_CONFIG: it was not adopted. */
HF_MUST_CHECK hf_status hf__adopt_source_leave(hf_tx *tx, const hf_table_adoption *adoption,
                                               hf__adopt_source *source, hf_error *err);

/* ---- adopt_names.c: names and their problems; no I/O ----------------------------------------- */

/* Reads the rows of hf__adopt_spellings; defaults complete names that say less. */
HF_MUST_CHECK hf_status hf__adopt_read_names(const hf_rows *rows, const hf_table_name *defaults,
                                             hf__adopt_names *names, hf_error *err);
/* Sets the problem unless there is one already. False: out of memory. */
HF_MUST_CHECK bool hf__adopt_blame(char **problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Copies the problems of tables to their spellings, and counts the spellings that have one. */
HF_MUST_CHECK hf_status hf__adopt_count_problems(hf__adopt_names *names, int64_t *count,
                                                 hf_error *err);
void hf__adopt_names_free(hf__adopt_names *names);

#endif
