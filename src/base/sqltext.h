#ifndef HF_BASE_SQLTEXT_H
#define HF_BASE_SQLTEXT_H

#include "base/buf.h"

/*
 * Named SQL. The statements of a room are in its .sql file; scripts/embed-sql turns them into
 * constants of the type hf__sql, hf__sql_ROOM_NAME, and writes their declarations to the room's
 * sql.h.
 */

typedef enum hf__dialect { HF__POSTGRES, HF__SQLITE, HF__DIALECTS } hf__dialect;

typedef struct hf__sql {
    const char *name;                /* as in the file; a prepared statement is called so */
    const char *text[HF__DIALECTS];  /* NULL: not for that kind of store */
    size_t parameters[HF__DIALECTS]; /* the greatest number N of a $N in the text */
    int prepared;                    /* its number among the room's prepared ones; -1: it is not */
} hf__sql;

/* What stands for @word@ in a statement that parameters cannot complete: names, settings. */
typedef struct hf__sql_part {
    const char *word; /* NULL: the end of an array of parts */
    const char *text; /* as it goes into the statement; quoted already where it is a name */
} hf__sql_part;

/*
 * Appends the text to out, each @word@ replaced by the text of the part with that word. A word
 * without a part stays as it is, so that the store refuses the statement and shows it. Out of
 * memory: out is marked as broken.
 */
void hf__sql_expand(hf__buf *out, const char *text, const hf__sql_part *parts);

#endif
