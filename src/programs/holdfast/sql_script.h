/*
 * Splits a script of SQL into statements and turns its :name variables into parameters. It reads
 * strings, quoted names, dollar quotes and comments as PostgreSQL does, or also as SQLite does.
 */
#ifndef HF_CLI_SQL_SCRIPT_H
#define HF_CLI_SQL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/holdfast.h"

struct sql_variable {
    const char *name; /* name_size bytes */
    size_t name_size;
    const char *value;
    bool used;
};

/* A :name in the script, and the $N that is sent instead. Offsets are in bytes. */
struct sql_parameter {
    size_t script_at, script_size;
    size_t sent_at, sent_size;
};

struct sql_statement {
    char *sql;        /* as it is sent */
    size_t start;     /* where it starts in the script, with the comments before it */
    size_t first;     /* where its first word is */
    hf_value *values; /* of $1…; they point to the values of the variables */
    struct sql_parameter *parameters;
    size_t count; /* of values and parameters */
    bool writes;  /* INSERT, UPDATE, DELETE or MERGE */
};

struct sql_script {
    struct sql_statement *statements;
    size_t count;
    size_t wrong_at; /* after a failure: the offset that it is about */
};

/* Splits "name=value", which must outlive the variable. False: it has no such form. */
bool sql_variable_read(const char *assignment, struct sql_variable *variable);

/*
 * Reads a script and marks the variables that it uses. HF_INVALID, with script->wrong_at: something
 * is not closed, a variable has no value, $1 is written by hand, or a statement begins or ends a
 * transaction or copies from or to the client. Free the script, also after a failure. The text need
 * not outlive it; the variables must.
 */
HF_MUST_CHECK hf_status sql_script_read(const char *text, size_t size, bool sqlite,
                                        struct sql_variable *variables, size_t variable_count,
                                        struct sql_script *script, hf_error *err);
void sql_script_free(struct sql_script *script);

/* Where a character of the statement as it was sent, counted from 1, is in the script. */
size_t sql_statement_offset(const struct sql_statement *statement, int position);

#endif
