#ifndef HF_CLI_SQL_PLACE_H
#define HF_CLI_SQL_PLACE_H

#include <stddef.h>

#define SQL_EXCERPT_MAX 160

/* Where something is in a script, for people: both numbers from 1, the column in characters. */
struct sql_place {
    size_t line, column;
    char excerpt[SQL_EXCERPT_MAX]; /* of that line, around the column */
};

/* at may be the end of the text. */
struct sql_place sql_find_place(const char *text, size_t size, size_t at);

#endif
