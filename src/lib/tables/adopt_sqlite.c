/*
 * SQLite cannot add NOT NULL to a column; it keeps the CREATE TABLE statement as it was written, and
 * that is what is changed. Nothing else in the file depends on the constraint.
 */
#include "lib/tables/adopt.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Behind a string, a quoted name or a comment at *at; else behind one character. */
static const char *skip(const char *at)
{
    const char *end = NULL;
    if (at[0] == '-' && at[1] == '-')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*')
        return (end = strstr(at + 2, "*/")) ? end + 2 : at + strlen(at);
    char close = at[0] == '[' ? ']' : at[0];
    if (!strchr("'\"`[", at[0]))
        return at + 1;
    for (at++; *at; at++) {
        if (*at == close && (close == ']' || at[1] != close))
            return at + 1;
        at += *at == close;
    }
    return at;
}

static bool is_blank(const char *at)
{
    return isspace((unsigned char)*at) || (at[0] == '-' && at[1] == '-') ||
           (at[0] == '/' && at[1] == '*');
}

static bool is_column(const char *at, const char *column)
{
    size_t size = strlen(column);
    while (*at && is_blank(at))
        at = skip(at);
    if (*at && strchr("'\"`[", *at))
        return skip(at) == at + size + 2 && strncasecmp(at + 1, column, size) == 0;
    return strncasecmp(at, column, size) == 0 && at[size] != '_' && at[size] != '$' &&
           !isalnum((unsigned char)at[size]) && (unsigned char)at[size] < 0x80;
}

/* The ',' or ')' that ends a column's definition. */
static const char *end_of(const char *at)
{
    int depth = 0;
    while (*at && !(depth == 0 && (*at == ',' || *at == ')'))) {
        depth += (*at == '(') - (*at == ')');
        at = skip(at);
    }
    return at;
}

bool hf__adopt_add_not_null(const char *sql, const char *column, hf__buf *out)
{
    const char *at = sql;
    while (*at && *at != '(')
        at = skip(at);
    while (*at && *at != ')') {
        const char *definition = at + 1;
        at = end_of(definition);
        if (!*at || !is_column(definition, column))
            continue;
        hf__buf_add(out, sql, (size_t)(at - sql));
        hf__buf_puts(out, " NOT NULL");
        hf__buf_puts(out, at);
        return true;
    }
    return false;
}
