/* Rows of a transaction, copied out of SQLite so that they outlive their statement. */
#include "lib/local/transaction.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

typedef struct cell {
    size_t at; /* in bytes, NUL-terminated; IS_NULL: there is no value */
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
    if (rows->room - rows->used >= rows->columns)
        return true;
    size_t room = rows->room * 2 + rows->columns * 2;
    cell *cells = reallocarray(rows->cells, room, sizeof *cells);
    if (cells == NULL)
        return false;
    rows->cells = cells;
    rows->room = room;
    return true;
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

/* False when SQLite has no memory to turn the value into text. */
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
