/* One statement of a transaction: prepare, bind, step; and its rows. */
#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "lib/local/transaction.h"

/* ---- preparing ------------------------------------------------------------------------------- */

/* SQLite has one code for all that is wrong with a statement's text, so this reads the message. */
static const char *text_sqlstate(const char *message)
{
    static const struct {
        const char *text;
        const char *sqlstate;
    } known[] = {
        {"no such table", "42P01"},
        {"no such column", "42703"},
        {"has no column named", "42703"},
        {"no such function", "42883"},
        {"ambiguous column name", "42702"},
        {"already exists", "42P07"},
        {"ON CONFLICT clause does not match", "42P10"},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(message, known[i].text) != NULL)
            return known[i].sqlstate;
    return "42601";
}

/* The position in characters, from 1; SQLite counts bytes from 0. */
static int position_of(const char *sql, int offset)
{
    int position = 1;

    if (offset < 0)
        return 0;
    for (int i = 0; i < offset && sql[i] != '\0'; i++)
        position += ((unsigned char)sql[i] & 0xC0) != 0x80;
    return position;
}

static hf_status fail_text(hf__local_connection *connection, const char *sql, int code,
                           hf__attempt_fault *fault, hf_error *err)
{
    int position = position_of(sql, sqlite3_error_offset(connection->handle));

    if ((code & 0xff) == SQLITE_AUTH && connection->refused != NULL)
        return hf__fail(err, HF_INVALID, "the statement is refused: %s", connection->refused);
    hf_status status = hf__local_connection_fail(connection, code, fault, err);
    if ((code & 0xff) == SQLITE_ERROR) {
        strcpy(err->sqlstate, text_sqlstate(err->message));
        err->position = position;
    }
    return status;
}

/*
 * Is there anything but comments, blanks and semicolons? It does not prepare the text to find out,
 * because that can have effects.
 */
static bool has_statement(const char *sql)
{
    while (*sql != '\0') {
        if (strchr(" \t\r\n\f;", *sql) != NULL) {
            sql++;
        } else if (strncmp(sql, "--", 2) == 0) {
            sql += strcspn(sql, "\n");
        } else if (strncmp(sql, "/*", 2) == 0) {
            const char *end = strstr(sql + 2, "*/");
            sql = end != NULL ? end + 2 : sql + strlen(sql);
        } else {
            return true;
        }
    }
    return false;
}

static hf_status prepare(hf__local_connection *connection, const char *sql, sqlite3_stmt **prepared,
                         hf__attempt_fault *fault, hf_error *err)
{
    const char *rest = NULL;

    connection->refused = NULL;
    int code = sqlite3_prepare_v3(connection->handle, sql, -1, 0, prepared, &rest);
    if (code != SQLITE_OK)
        return fail_text(connection, sql, code, fault, err);
    if (has_statement(rest)) {
        hf_status status = hf__fail(err, HF_INVALID, "there is more than one statement in it");
        hf__hint(err, "run one after the other in the same transaction");
        return status;
    }
    if (*prepared == NULL)
        return hf__fail(err, HF_INVALID, "the statement is empty");
    return HF_OK;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int find_parameter(sqlite3_stmt *prepared, size_t number)
{
    char name[32];

    (void)snprintf(name, sizeof name, "$%zu", number);
    return sqlite3_bind_parameter_index(prepared, name);
}

static bool is_number(const char *name)
{
    return name[0] == '$' && name[1 + strspn(name + 1, "0123456789")] == '\0';
}

/* The failure for a parameter of the statement that is not one of $1…$count. */
static hf_status fail_unknown(sqlite3_stmt *prepared, size_t count, hf_error *err)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(prepared); i++) {
        const char *name = sqlite3_bind_parameter_name(prepared, i);
        bool known = false;
        for (size_t k = 1; k <= count && !known; k++)
            known = find_parameter(prepared, k) == i;
        if (known)
            continue;
        hf_status status =
            name != NULL && is_number(name)
                ? hf__fail(err, HF_INVALID, "the statement uses %s and got %zu parameters", name,
                           count)
                : hf__fail(err, HF_INVALID, "'%s' is no parameter: they are $1, $2 and so on",
                           name != NULL ? name : "?");
        if (name != NULL && strstr(name, "::") != NULL)
            hf__hint(err, "SQLite has no casts with ::, write CAST($1 AS integer)");
        return status;
    }
    return hf__fail(err, HF_INVALID, "the parameters do not fit the statement");
}

static int bind(sqlite3_stmt *prepared, int index, const hf_value *value)
{
    if (value->data == NULL)
        return sqlite3_bind_null(prepared, index);
    if (value->binary)
        return sqlite3_bind_blob64(prepared, index, value->data, value->size, SQLITE_STATIC);
    return sqlite3_bind_text64(prepared, index, value->data, strlen(value->data), SQLITE_STATIC,
                               SQLITE_UTF8);
}

static hf_status bind_all(hf__local_connection *connection, sqlite3_stmt *prepared,
                          const hf__local_statement *statement, hf__attempt_fault *fault,
                          hf_error *err)
{
    int wanted = sqlite3_bind_parameter_count(prepared);

    if ((size_t)wanted > statement->count)
        return fail_unknown(prepared, statement->count, err);
    for (size_t i = 0; i < statement->count; i++) {
        int index = find_parameter(prepared, i + 1);
        if (index == 0)
            return hf__fail(err, HF_INVALID,
                            "the statement got %zu parameters and does not use $%zu",
                            statement->count, i + 1);
        int code = bind(prepared, index, &statement->values[i]);
        if (code != SQLITE_OK)
            return hf__local_connection_fail(connection, code, fault, err);
    }
    return HF_OK;
}

/* ---- stepping -------------------------------------------------------------------------------- */

static hf_status step_all(hf__local_connection *connection, sqlite3_stmt *prepared, bool binary,
                          hf_rows *rows, int64_t *count, hf__attempt_fault *fault, hf_error *err)
{
    int code = SQLITE_ROW;

    for (*count = 0; (code = sqlite3_step(prepared)) == SQLITE_ROW; ++*count)
        if (rows != NULL && !hf__local_rows_add(rows, prepared, binary))
            return hf__fail(err, HF_NO_MEMORY, "out of memory for the rows");
    if (code != SQLITE_DONE)
        return hf__local_connection_fail(connection, code, fault, err);
    return HF_OK;
}

/* A statement that changes no rows, such as CREATE TABLE, leaves sqlite3_changes64 as it was. */
static int64_t count_affected(sqlite3 *handle, sqlite3_stmt *prepared, int64_t total_before,
                              int64_t row_count)
{
    if (sqlite3_stmt_readonly(prepared) != 0)
        return row_count;
    return sqlite3_total_changes64(handle) != total_before ? sqlite3_changes64(handle) : 0;
}

static hf_status execute(hf__local_connection *connection, sqlite3_stmt *prepared, bool binary_rows,
                         hf_rows **rows, hf__attempt_fault *fault, hf_error *err)
{
    int64_t before = sqlite3_total_changes64(connection->handle);
    int64_t count = 0;
    hf_rows *copied = NULL;

    if (rows != NULL) {
        copied = hf__local_rows_new(prepared);
        if (copied == NULL)
            return hf__fail(err, HF_NO_MEMORY, "out of memory for the rows");
    }
    hf_status status = step_all(connection, prepared, binary_rows, copied, &count, fault, err);
    if (status == HF_OK && sqlite3_get_autocommit(connection->handle) != 0)
        status = hf__fail(err, HF_INVALID, "the statement has ended the transaction");
    if (status != HF_OK) {
        hf__local_rows_free(copied);
        return status;
    }
    if (rows != NULL) {
        hf__local_rows_finish(copied, count_affected(connection->handle, prepared, before, count));
        *rows = copied;
    }
    return HF_OK;
}

hf_status hf__local_statement_run(hf__local_connection *connection,
                                  const hf__local_statement *statement, bool binary_rows,
                                  hf_rows **rows, hf__attempt_fault *fault, hf_error *err)
{
    sqlite3_stmt *prepared = NULL;

    *fault = HF__FAULT_FINAL;
    err->position = 0;
    hf_status status = prepare(connection, statement->sql, &prepared, fault, err);
    if (status == HF_OK)
        status = bind_all(connection, prepared, statement, fault, err);
    if (status == HF_OK && hf__local_connection_is_over(connection))
        status = hf__local_connection_fail(connection, SQLITE_INTERRUPT, fault, err);
    else if (status == HF_OK)
        status = execute(connection, prepared, binary_rows, rows, fault, err);
    sqlite3_finalize(prepared);
    return status;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* The rows are copied out of SQLite, so that they outlive the statement. */

typedef struct cell {
    size_t at; /* where it starts in bytes, NUL-terminated; IS_NULL: SQL's NULL */
    size_t size;
} cell;

#define IS_NULL SIZE_MAX

typedef struct local_rows {
    hf_rows head;
    size_t columns;
    size_t count;
    int64_t affected;
    size_t used;
    size_t room;
    cell *cells; /* the names of the columns, then row by row */
    hf__buf bytes;
} local_rows;

/* ---- reading --------------------------------------------------------------------------------- */

static size_t rows_count(const hf_rows *rows)
{
    return ((const local_rows *)rows)->count;
}

static size_t rows_columns(const hf_rows *rows)
{
    return ((const local_rows *)rows)->columns;
}

static const char *rows_column(const hf_rows *head, size_t column)
{
    const local_rows *rows = (const local_rows *)head;
    return column < rows->columns ? rows->bytes.data + rows->cells[column].at : NULL;
}

static const char *rows_value(const hf_rows *head, size_t row, size_t column, size_t *size)
{
    const local_rows *rows = (const local_rows *)head;
    const cell *found = NULL;

    if (row < rows->count && column < rows->columns)
        found = &rows->cells[(row + 1) * rows->columns + column];
    if (size != NULL)
        *size = found != NULL ? found->size : 0;
    return found != NULL && found->at != IS_NULL ? rows->bytes.data + found->at : NULL;
}

static int64_t rows_affected(const hf_rows *rows)
{
    return ((const local_rows *)rows)->affected;
}

void hf__local_rows_free(hf_rows *head)
{
    local_rows *rows = (local_rows *)head;

    if (rows == NULL)
        return;
    hf__buf_free(&rows->bytes);
    free(rows->cells);
    free(rows);
}

static const hf__rows_ops operations = {
    .count = rows_count,
    .columns = rows_columns,
    .column = rows_column,
    .value = rows_value,
    .affected = rows_affected,
    .free = hf__local_rows_free,
};

/* ---- filling --------------------------------------------------------------------------------- */

static bool reserve(local_rows *rows)
{
    return hf__grow(&rows->cells, &rows->room, rows->used + rows->columns, sizeof *rows->cells);
}

static void add_cell(local_rows *rows, const void *bytes, size_t size)
{
    rows->cells[rows->used++] = (cell){.at = rows->bytes.length, .size = size};
    hf__buf_add(&rows->bytes, bytes, size);
    hf__buf_add(&rows->bytes, "", 1);
}

static void add_bits(local_rows *rows, uint64_t bits)
{
    bits = htobe64(bits);
    add_cell(rows, &bits, sizeof bits);
}

static void add_float(local_rows *rows, double value)
{
    uint64_t bits = 0;

    memcpy(&bits, &value, sizeof bits);
    add_bits(rows, bits);
}

/* False: SQLite had no memory to turn the value into text. */
static bool add_bytes(local_rows *rows, sqlite3_stmt *statement, int column, bool text)
{
    const void *bytes =
        text ? sqlite3_column_text(statement, column) : sqlite3_column_blob(statement, column);
    size_t size = (size_t)sqlite3_column_bytes(statement, column);

    if (bytes == NULL && sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM)
        return false;
    add_cell(rows, bytes != NULL ? bytes : "", bytes != NULL ? size : 0);
    return true;
}

static bool add_value(local_rows *rows, sqlite3_stmt *statement, int column, bool binary)
{
    int type = sqlite3_column_type(statement, column);

    if (type == SQLITE_NULL) {
        rows->cells[rows->used++] = (cell){.at = IS_NULL};
        return true;
    }
    if (binary && type == SQLITE_INTEGER) {
        add_bits(rows, (uint64_t)sqlite3_column_int64(statement, column));
        return true;
    }
    if (binary && type == SQLITE_FLOAT) {
        add_float(rows, sqlite3_column_double(statement, column));
        return true;
    }
    return add_bytes(rows, statement, column, type != SQLITE_BLOB);
}

hf_rows *hf__local_rows_new(sqlite3_stmt *statement)
{
    local_rows *rows = calloc(1, sizeof *rows);

    if (rows == NULL)
        return NULL;
    rows->head.ops = &operations;
    rows->columns = (size_t)sqlite3_column_count(statement);
    bool complete = reserve(rows);
    for (int i = 0; complete && i < (int)rows->columns; i++) {
        const char *name = sqlite3_column_name(statement, i);
        complete = name != NULL;
        if (complete)
            add_cell(rows, name, strlen(name));
    }
    if (complete && !rows->bytes.broken)
        return &rows->head;
    hf__local_rows_free(&rows->head);
    return NULL;
}

bool hf__local_rows_add(hf_rows *head, sqlite3_stmt *statement, bool binary)
{
    local_rows *rows = (local_rows *)head;

    if (!reserve(rows))
        return false;
    for (int i = 0; i < (int)rows->columns; i++)
        if (!add_value(rows, statement, i, binary))
            return false;
    rows->count++;
    return !rows->bytes.broken;
}

void hf__local_rows_finish(hf_rows *rows, int64_t affected)
{
    ((local_rows *)rows)->affected = affected;
}
