/* Cells of a row that the store itself has typed. */
#ifndef HF_VIEW_ROWS_H
#define HF_VIEW_ROWS_H

#include <stdlib.h>

#include "holdfast/holdfast.h"

static inline const char *hf__row_text(const hf_rows *rows, size_t row, size_t column)
{
    const char *text = hf_rows_value(rows, row, column, NULL);
    return text ? text : "";
}

static inline int64_t hf__row_int(const hf_rows *rows, size_t row, size_t column, int64_t none)
{
    const char *text = hf_rows_value(rows, row, column, NULL);
    return text ? strtoll(text, NULL, 10) : none;
}

/* PostgreSQL says t, SQLite 1. */
static inline bool hf__row_bool(const hf_rows *rows, size_t row, size_t column)
{
    const char *text = hf__row_text(rows, row, column);
    return text[0] == 't' || text[0] == '1';
}

#endif
