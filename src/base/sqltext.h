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
    const char *name;                /* of the prepared statement, or as in the file */
    const char *text[HF__DIALECTS];  /* NULL: not for that kind of store */
    size_t parameters[HF__DIALECTS]; /* the greatest N of any $N in the text */
    int prepared;                    /* index among the room's prepared ones; -1: not prepared */
} hf__sql;

/* What replaces @word@ in a statement, where a parameter is not possible: names, settings. */
typedef struct hf__sql_part {
    const char *word; /* NULL: the end of an array of parts */
    const char *text; /* copied as it is: the caller has quoted names */
} hf__sql_part;

/*
 * Appends the text to out, with each @word@ replaced by the part of that word. A word without a
 * part stays, so that the store refuses the statement and its message shows the word. Without
 * memory out is marked broken.
 */
void hf__sql_expand(hf__buf *out, const char *text, const hf__sql_part *parts);

#endif
