#ifndef HF_PROGRAMS_REGISTRY_IMPORT_MARKDOWN_H
#define HF_PROGRAMS_REGISTRY_IMPORT_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/*
 * Reads from a Markdown file what matters to a registry: headings, tables and the prose between
 * them. It skips comments. The lines of a code fence are prose.
 */

enum { HF__CELLS_MAX = 64 }; /* in a row; any more are ignored */

typedef struct hf__row {
    unsigned line; /* from 1 */
    hf__slice cells[HF__CELLS_MAX];
    size_t count;
} hf__row;

/* Called in the order of the file, with slices of its text. Each returns false to stop reading. */
typedef struct hf__markdown_reader {
    bool (*heading)(void *arg, unsigned line, int level, hf__slice text);
    bool (*prose)(void *arg, unsigned line, hf__slice text);
    bool (*header)(void *arg, const hf__row *row); /* a table begins */
    bool (*row)(void *arg, const hf__row *row);    /* of the table that began last */
    void *arg;
} hf__markdown_reader;

/* Returns false when a callback stopped it. */
bool hf__markdown_read(const char *text, size_t size, const hf__markdown_reader *reader);

/* Which column of a team's table is what. */

typedef enum hf__md_column {
    HF__COLUMN_OTHER,
    HF__COLUMN_ID,      /* numbers */
    HF__COLUMN_PATTERN, /* labels */
    HF__COLUMN_KEY,     /* either */
    HF__COLUMN_CLASS,
    HF__COLUMN_NAME,
    HF__COLUMN_SYMBOL, /* a name as code has it */
    HF__COLUMN_COMPONENT,
    HF__COLUMN_PURPOSE,
    HF__COLUMN_SCOPE,
    HF__COLUMN_TYPE, /* lifetime, mode, or the function that acquires it */
    HF__COLUMN_FILE,
    HF__COLUMN_OWNER,
    HF__COLUMN_RUNBOOK,
    HF__COLUMN_DERIVATION,
    HF__COLUMN_PLACEHOLDERS,
    HF__COLUMN_EXPECTED,
    HF__COLUMN_ORDER,
    HF__COLUMN_HISTOGRAM,
    HF__COLUMN_KINDS,
} hf__md_column;

typedef enum hf__table_kind {
    HF__TABLE_STRANGE, /* not about locks */
    HF__TABLE_LOCKS,   /* each row is a lock */
    HF__TABLE_MORE,    /* each row says more about a lock of another table, by its name */
} hf__table_kind;

typedef struct hf__table {
    hf__table_kind kind;
    unsigned line;
    size_t count;
    hf__md_column columns[HF__CELLS_MAX];
    char *titles[HF__CELLS_MAX]; /* as people see them */
} hf__table;

/*
 * Finds out what the columns mean. about_locks: a heading above speaks of locks. Free the table in
 * any case, also when this returns false: there was not enough memory.
 */
bool hf__table_read(hf__table *table, const hf__row *header, bool about_locks);
void hf__table_free(hf__table *table);

#endif
