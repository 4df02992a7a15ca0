/*
 * A script of SQL as statements, with its :name variables turned into parameters. Strings, quoted
 * names, dollar quotes and comments are read as PostgreSQL reads them.
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

/* A :name of the script, and the $N that is sent in its place; offsets in bytes. */
struct sql_parameter {
    size_t script_at, script_size;
    size_t sent_at, sent_size;
};

struct sql_statement {
    char *sql;        /* as it is sent */
    size_t start;     /* of it in the script, comments before it included */
    size_t first;     /* its first word */
    hf_value *values; /* of $1…; the bytes are the variables' */
    struct sql_parameter *parameters;
    size_t count; /* of values and parameters */
    bool writes;  /* INSERT, UPDATE, DELETE or MERGE */
};

struct sql_script {
    struct sql_statement *statements;
    size_t count;
    size_t wrong_at; /* the offset that a failure is about */
};

/* Splits "name=value", which must outlive the variable; false when it is no such thing. */
bool sql_variable_read(const char *assignment, struct sql_variable *variable);

/*
 * Refuses, with script->wrong_at, what is not closed, variables without a value, $1 written by hand,
 * and statements that begin or end a transaction or copy from or to the client. Marks the variables
 * that are used. The script is freed with sql_script_free, after a failure too.
 */
HF_MUST_CHECK hf_status sql_script_read(const char *text, size_t size,
                                        struct sql_variable *variables, size_t variable_count,
                                        struct sql_script *script, hf_error *err);
void sql_script_free(struct sql_script *script);

/* The offset in the script of a character, counted from 1, of the statement as it was sent. */
size_t sql_statement_offset(const struct sql_statement *statement, int position);

#endif
