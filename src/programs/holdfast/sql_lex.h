/* The lexical rules of SQL, as PostgreSQL has them. */
#ifndef HF_CLI_SQL_LEX_H
#define HF_CLI_SQL_LEX_H

#include <stdbool.h>
#include <stddef.h>

struct sql_cursor {
    const char *text;
    size_t size;
    size_t at;
};

/* The byte so far ahead, or NUL. */
char sql_peek(const struct sql_cursor *cursor, size_t ahead);
bool sql_at_pair(const struct sql_cursor *cursor, char first, char second);

bool sql_is_space(char c);
bool sql_is_digit(char c);

/* Of a variable or of a dollar quote's tag; SQL's own words may have a $ too. */
bool sql_starts_name(char c);
bool sql_continues_name(char c);
bool sql_continues_word(char c);
size_t sql_name_size(const struct sql_cursor *cursor, size_t ahead);

/*
 * These move behind what starts at the cursor. They return NULL, or what it is when it is not
 * closed: "the string".
 */
const char *sql_skip_block_comment(struct sql_cursor *cursor);
const char *sql_skip_quoted(struct sql_cursor *cursor);        /* '…' or "…" */
const char *sql_skip_escape_string(struct sql_cursor *cursor); /* the '…' of E'…' */
const char *sql_skip_dollar_quoted(struct sql_cursor *cursor, size_t tag_size); /* with both $ */

void sql_skip_line_comment(struct sql_cursor *cursor);

#endif
