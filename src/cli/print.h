/* Tables for people, on libsmartcols. */
#ifndef HF_CLI_TABLE_H
#define HF_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct column {
    const char *title; /* NULL ends a table */
    bool to_the_right;
    bool may_be_cut; /* on a terminal that is too narrow */
    unsigned rank;   /* > 0: left out on a terminal that is far too narrow, the greatest first, and
                      * before all others what has no text but its title */
};

struct table; /* after a failed allocation it ignores further calls, and printing says so */

struct table *table_new(const struct column *columns);
void table_add_row(struct table *table);

/* Of the last row; the text is copied, and control characters are shown escaped. */
void table_set(struct table *table, size_t column, const char *text);

/* To stdout; an empty table prints nothing. False when memory or the stream failed. */
bool table_print(struct table *table);
void table_free(struct table *table);

/* Loads the character set that widths depend on; call it before the first table. */
void prepare_for_tables(void);

/* Can stdout show what is beyond ASCII? */
bool output_is_utf8(void);

#endif
