/* A small answer of ClickHouse in memory: TabSeparated, unescaped. */
#ifndef HF_APPEND_GRID_H
#define HF_APPEND_GRID_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct hf__grid {
    char *text;   /* the cells, each ended by NUL */
    char **cells; /* by row */
    size_t rows, columns;
} hf__grid;

/* text is taken over, also on failure. Rows of different width are HF_BAD_DATA. */
HF_MUST_CHECK hf_status hf__grid_read(char *text, size_t size, hf__grid *grid, hf_error *err);
void hf__grid_free(hf__grid *grid);

const char *hf__grid_at(const hf__grid *grid, size_t row, size_t column);
/* 0 where it is no number: ClickHouse writes what the column's type says. */
int64_t hf__grid_number(const hf__grid *grid, size_t row, size_t column);

#endif
