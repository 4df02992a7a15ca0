/* The parts of hf_table_adopt: the relation that is adopted, the names in it, and what is in the way. */
#ifndef HF_TABLE_ADOPT_H
#define HF_TABLE_ADOPT_H

#include "base/buf.h"
#include "lib/tables/tables.h"

/* All rows of the relation with the same table_name. */
typedef struct hf__adopt_spelling {
    char *raw; /* NULL: SQL's NULL */
    size_t raw_size;
    int64_t rows;
    int64_t with_id; /* of these */
    int64_t low, high;
    char *text;    /* the table that it names, or NULL */
    char *problem; /* NULL: none */
    size_t table;  /* index of the table, once they are known */
} hf__adopt_spelling;

/* What one or more spellings name. */
typedef struct hf__adopt_table {
    const char *text;
    int64_t id; /* 0: none yet */
    bool registered;
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
    char oid[24];     /* PostgreSQL's */
    bool has_id;
    bool id_is_narrow; /* of a smaller type than bigint */
    bool not_null;
} hf__adopt_source;

/* adopt_source.c: statements on the relation */
HF_MUST_CHECK hf_status hf__adopt_find(hf_tx *tx, const hf_table_adoption *adoption,
                                       hf__adopt_source *source, hf_error *err);
HF_MUST_CHECK hf_status hf__adopt_add_column(hf_tx *tx, hf__adopt_source *source, hf_error *err);
HF_MUST_CHECK hf_status hf__adopt_spellings(hf_tx *tx, const hf__adopt_source *source,
                                            hf_rows **rows, hf_error *err);
HF_MUST_CHECK hf_status hf__adopt_rows_of(hf_tx *tx, const hf__adopt_source *source,
                                          const hf__adopt_spelling *spelling, hf_rows **rows,
                                          hf_error *err);
/* ids: JSON, [[table_name, advisory_id, text], …] */
HF_MUST_CHECK hf_status hf__adopt_give_ids(hf_tx *tx, const hf__adopt_source *source,
                                           const char *ids, int64_t *given, hf_error *err);
HF_MUST_CHECK hf_status hf__adopt_constrain(hf_tx *tx, hf__adopt_source *source,
                                            const hf_table_adoption *adoption,
                                            hf_table_adopted *adopted, hf_error *err);

/* adopt_names.c: what is in the relation, and what is wrong with it; no I/O */
HF_MUST_CHECK hf_status hf__adopt_read_names(const hf_rows *rows, const hf_table_name *defaults,
                                             hf__adopt_names *names, hf_error *err);
/* Keeps the first problem. False: out of memory. */
HF_MUST_CHECK bool hf__adopt_blame(char **problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Hands the tables' problems to their spellings; returns how many spellings have one. */
HF_MUST_CHECK hf_status hf__adopt_count_problems(hf__adopt_names *names, int64_t *count,
                                                 hf_error *err);
void hf__adopt_names_free(hf__adopt_names *names);

/* adopt_sqlite.c: the CREATE TABLE statement with NOT NULL for the column; false: it was not found */
bool hf__adopt_add_not_null(const char *sql, const char *column, hf__buf *out);

#endif
