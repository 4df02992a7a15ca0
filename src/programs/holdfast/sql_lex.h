#ifndef HF_CLI_SQL_LEX_H
#define HF_CLI_SQL_LEX_H

#include <stdbool.h>
#include <stddef.h>

/* The lexical rules of SQL, as PostgreSQL reads it. */

struct sql_cursor {
    const char *text;
    size_t size;
    size_t at;
};

/* The byte that is `ahead` bytes ahead, or NUL. */
char sql_peek(const struct sql_cursor *cursor, size_t ahead);
bool sql_at_pair(const struct sql_cursor *cursor, char first, char second);

bool sql_is_space(char c);
bool sql_is_digit(char c);

/*
 * Characters of a variable's name, or of a dollar quote's tag. SQL's own words may also have a $.
 */
bool sql_starts_name(char c);
bool sql_continues_name(char c);
bool sql_continues_word(char c);
size_t sql_name_size(const struct sql_cursor *cursor, size_t ahead);

/*
 * These move past what starts at the cursor. They return NULL, or what it is when it is not closed:
 * "the string".
 */
const char *sql_skip_block_comment(struct sql_cursor *cursor, bool nests);
const char *sql_skip_quoted(struct sql_cursor *cursor);        /* '…', "…" or `…` */
const char *sql_skip_bracketed(struct sql_cursor *cursor);     /* SQLite's […] */
const char *sql_skip_escape_string(struct sql_cursor *cursor); /* the '…' of E'…' */
const char *sql_skip_dollar_quoted(struct sql_cursor *cursor, size_t tag_size); /* with both $ */

/* A carriage return ends it too, but not for SQLite. */
void sql_skip_line_comment(struct sql_cursor *cursor, bool sqlite);

#define SQL_EXCERPT_MAX 160

/* A place in a script, for messages. Both numbers count from 1, the column in characters. */
struct sql_place {
    size_t line, column;
    char excerpt[SQL_EXCERPT_MAX]; /* the line, or the part of it around the column */
};

/* at may be the end of the text. */
struct sql_place sql_find_place(const char *text, size_t size, size_t at);

#endif
