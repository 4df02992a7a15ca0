/* The rows of one statement: a PGresult behind the common head. */
#include "lib/postgres/postgres.h"

#include <stdlib.h>

struct pg_rows {
    hf_rows base;
    PGresult *result;
};

static const PGresult *result_of(const hf_rows *rows)
{
    return ((const struct pg_rows *)rows)->result;
}

static size_t rows_count(const hf_rows *rows)
{
    return (size_t)PQntuples(result_of(rows));
}

static size_t rows_columns(const hf_rows *rows)
{
    return (size_t)PQnfields(result_of(rows));
}

static const char *rows_column(const hf_rows *rows, size_t column)
{
    return PQfname(result_of(rows), (int)column);
}

static const char *rows_value(const hf_rows *rows, size_t row, size_t column, size_t *size)
{
    const PGresult *result = result_of(rows);
    if (row >= rows_count(rows) || column >= rows_columns(rows) ||
        PQgetisnull(result, (int)row, (int)column))
        return NULL;
    if (size)
        *size = (size_t)PQgetlength(result, (int)row, (int)column);
    return PQgetvalue(result, (int)row, (int)column);
}

static int64_t rows_affected(const hf_rows *rows)
{
    return strtoll(PQcmdTuples(((const struct pg_rows *)rows)->result), NULL, 10);
}

static void rows_free(hf_rows *rows)
{
    PQclear(((struct pg_rows *)rows)->result);
    free(rows);
}

static const hf__rows_ops pg_rows_ops = {rows_count, rows_columns,  rows_column,
                                         rows_value, rows_affected, rows_free};

hf_status hf__pg_rows(PGresult *result, hf_rows **out, hf_error *err)
{
    struct pg_rows *rows = malloc(sizeof *rows);
    if (!rows) {
        PQclear(result);
        return hf__no_memory(err);
    }
    *rows = (struct pg_rows){{&pg_rows_ops}, result};
    *out = &rows->base;
    return HF_OK;
}
