/* hf_rows_…, which call the backend; cells as numbers, text and booleans; number parameters. */
#include "lib/transactions/transactions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

size_t hf_rows_count(const hf_rows *rows)
{
    return rows->ops->count(rows);
}

size_t hf_rows_columns(const hf_rows *rows)
{
    return rows->ops->columns(rows);
}

const char *hf_rows_column(const hf_rows *rows, size_t column)
{
    return rows->ops->column(rows, column);
}

const char *hf_rows_value(const hf_rows *rows, size_t row, size_t column, size_t *size)
{
    return rows->ops->value(rows, row, column, size);
}

int64_t hf_rows_affected(const hf_rows *rows)
{
    return rows->ops->affected(rows);
}

void hf_rows_free(hf_rows *rows)
{
    if (rows)
        rows->ops->free(rows);
}

hf_value hf__number_value(char out[24], int64_t number)
{
    (void)snprintf(out, 24, "%" PRId64, number);
    return HF_TEXT(out);
}

hf_status hf__row_number(const hf_rows *rows, size_t row, size_t column, const char *what,
                         int64_t *number, hf_error *err)
{
    char shown[64];
    size_t size = 0;
    const char *text = hf_rows_value(rows, row, column, &size);
    if (!text)
        return hf__fail(err, HF_BAD_DATA, "%s is NULL, not a number", what);
    if (strlen(text) == size &&
        hf__parse_int64(text, what, INT64_MIN, INT64_MAX, number, NULL) == HF_OK)
        return HF_OK;
    return hf__fail(err, HF_BAD_DATA, "%s is '%s', not a whole number of 64 bits", what,
                    hf__show(shown, sizeof shown, text, size));
}

int64_t hf__row_int(const hf_rows *rows, size_t row, size_t column, int64_t none)
{
    const char *text = hf_rows_value(rows, row, column, NULL);
    return text ? strtoll(text, NULL, 10) : none;
}

const char *hf__row_text(const hf_rows *rows, size_t row, size_t column)
{
    const char *text = hf_rows_value(rows, row, column, NULL);
    return text ? text : "";
}

bool hf__row_bool(const hf_rows *rows, size_t row, size_t column)
{
    const char *text = hf__row_text(rows, row, column);
    return text[0] == 't' || text[0] == '1';
}
